/**
 * Defines the constructs of conditions: subqueries of every kind, chains, lists, patterns and
 * rows.
 */
import { type Construct, each, nested, WALL } from "./construct.ts";

const where = `SELECT 1 FROM ${WALL} w WHERE id < 0 AND`;
const subqueries: readonly (readonly [string, (index: number) => string])[] = [
  ["IN", (i) => `${i} IN (SELECT 1)`],
  ["IN of a table", (i) => `w.id + ${i} IN (SELECT id FROM ${WALL})`],
  ["EXISTS", (i) => `EXISTS (SELECT ${i})`],
  ["EXISTS around", (i) => `EXISTS (SELECT 1 FROM ${WALL} x WHERE x.id = w.id + ${i})`],
  ["NOT EXISTS around", (i) => `NOT EXISTS (SELECT 1 FROM ${WALL} x WHERE x.id = w.id + ${i})`],
  ["scalar", (i) => `(SELECT ${i}) = 1`],
  [
    "scalar around",
    (i) => `(SELECT max(x.id) FROM ${WALL} x WHERE x.room = w.room AND x.id > ${i}) = 1`,
  ],
  ["ANY", (i) => `w.id = ANY (SELECT ${i})`],
  ["ALL", (i) => `w.id <> ALL (SELECT ${i})`],
  ["ARRAY", (i) => `ARRAY(SELECT ${i}) = ARRAY[1]`],
];

export const CONDITIONS: readonly Construct[] = [
  ...subqueries.flatMap(([title, text]): Construct[] => [
    {
      title: `subqueries with AND: ${title}`,
      sql: (count) => `${where} ${each(count, text, " AND ")}`,
    },
    {
      title: `subqueries with OR: ${title}`,
      sql: (count) => `${where} (${each(count, text, " OR ")})`,
    },
    {
      title: `subqueries as outputs: ${title}`,
      sql: (count) => `SELECT ${each(count, text)} FROM ${WALL} w WHERE id < 0`,
    },
  ]),
  {
    title: "subqueries in subqueries",
    sql: (count) => `SELECT ${nested(count, "(SELECT ", "1", ")")}`,
  },
  {
    title: "EXISTS in EXISTS, around",
    sql: (count) =>
      `SELECT 1 FROM ${WALL} w WHERE ${nested(count, `EXISTS (SELECT 1 FROM ${WALL} x WHERE x.id = w.id AND `, "w.id > 0", ")")}`,
  },
  { title: "AND", sql: (count) => `${where} ${each(count, (i) => `id <> ${i}`, " AND ")}` },
  { title: "OR", sql: (count) => `${where} (${each(count, (i) => `id > ${i}`, " OR ")})` },
  {
    title: "OR of equalities",
    sql: (count) => `${where} (${each(count, (i) => `id = ${i}`, " OR ")})`,
  },
  {
    title: "OR of AND",
    sql: (count) => `${where} (${each(count, (i) => `(id = ${i} AND body = 'a')`, " OR ")})`,
  },
  {
    title: "AND of OR",
    sql: (count) => `${where} ${each(count, (i) => `(id = ${i} OR body = 'a')`, " AND ")}`,
  },
  { title: "NOT", sql: (count) => `${where} ${"NOT ".repeat(count)}TRUE` },
  { title: "IN of literals", sql: (count) => `${where} id IN (${each(count, String)})` },
  {
    title: "IN of expressions",
    sql: (count) => `${where} id IN (${each(count, (i) => `id + ${i}`)})`,
  },
  { title: "IN of texts", sql: (count) => `${where} body IN (${each(count, (i) => `'t${i}'`)})` },
  {
    title: "IN of rows",
    sql: (count) => `${where} (id, body) IN (${each(count, (i) => `(${i}, 'a')`)})`,
  },
  { title: "INs", sql: (count) => `${where} ${each(count, (i) => `id IN (${i}, 2)`, " AND ")}` },
  {
    title: "BETWEEN",
    sql: (count) => `${where} ${each(count, (i) => `id BETWEEN ${i} AND 9`, " OR ")}`,
  },
  {
    title: "LIKE",
    sql: (count) => `${where} ${each(count, (i) => `body LIKE '%a${i}%'`, " OR ")}`,
  },
  {
    title: "regular expressions",
    sql: (count) => `${where} ${each(count, (i) => `body ~ '(a|b)*${i}'`, " OR ")}`,
  },
  {
    title: "SIMILAR TO",
    sql: (count) => `${where} ${each(count, (i) => `body SIMILAR TO '(a|b)*${i}'`, " OR ")}`,
  },
  {
    title: "% in a pattern",
    sql: (count) => `SELECT count(*) FROM ${WALL} WHERE body LIKE '${"%x".repeat(count)}y'`,
  },
  {
    title: "a pattern",
    sql: (count) => `SELECT count(*) FROM ${WALL} WHERE body ~ '${"(x|y)*".repeat(count)}z'`,
  },
  {
    title: "alternatives of a pattern",
    sql: (count) =>
      `SELECT count(*) FROM ${WALL} WHERE body ~ '${each(count, (i) => `x${i}`, "|")}'`,
  },
  {
    title: "row values compared",
    sql: (count) => `SELECT (${each(count, String)}) < (${each(count, String)})`,
  },
  { title: "row values", sql: (count) => `SELECT ROW(${each(count, String)})` },
  {
    title: "IS DISTINCT FROM",
    sql: (count) => `${where} ${each(count, (i) => `body IS DISTINCT FROM 'a${i}'`, " AND ")}`,
  },
  {
    title: "ANY of an array",
    sql: (count) => `${where} id = ANY (ARRAY[${each(count, String)}])`,
  },
  {
    title: "equalities of columns",
    sql: (count) =>
      `SELECT 1 FROM ${WALL} a, ${WALL} b WHERE ${each(count, () => "a.id = b.id", " AND ")} AND a.id < 0`,
  },
];
