/**
 * Defines the constructs in the clauses of a single query: outputs, windows, aggregates, groups,
 * order.
 */
import { type Construct, each, nested, WALL } from "./construct.ts";

const from = `FROM ${WALL} WHERE id < 0`;

export const OUTPUTS: readonly Construct[] = [
  { title: "outputs", sql: (count) => `SELECT ${each(count, String)}` },
  { title: "outputs of columns", sql: (count) => `SELECT ${each(count, () => "body")} ${from}` },
  {
    title: "outputs of expressions",
    sql: (count) => `SELECT ${each(count, (i) => `id + ${i}`)} ${from}`,
  },
  {
    title: "aliases",
    sql: (count) => `SELECT ${each(count, (i) => `id AS a${i}`)} ${from} ORDER BY a0`,
  },
  { title: "stars", sql: (count) => `SELECT ${each(count, () => "*")} ${from}` },
  {
    title: "DISTINCT",
    sql: (count) => `SELECT DISTINCT ${each(count, (i) => `id + ${i}`)} ${from}`,
  },
  {
    title: "DISTINCT ON",
    sql: (count) =>
      `SELECT DISTINCT ON (${each(count, (i) => `id + ${i}`)}) id ${from} ORDER BY ${each(count, (i) => `id + ${i}`)}`,
  },
  {
    title: "windows",
    sql: (count) => `SELECT ${each(count, (i) => `sum(id) OVER (ORDER BY id + ${i})`)} ${from}`,
  },
  {
    title: "calls over one window",
    sql: (count) => `SELECT ${each(count, (i) => `sum(id + ${i}) OVER (ORDER BY id)`)} ${from}`,
  },
  {
    title: "keys of a window",
    sql: (count) => `SELECT sum(id) OVER (PARTITION BY ${each(count, (i) => `id + ${i}`)}) ${from}`,
  },
  {
    title: "named windows",
    sql: (count) =>
      `SELECT sum(id) OVER w0 ${from} WINDOW ${each(count, (i) => `w${i} AS (ORDER BY id + ${i})`)}`,
  },
  {
    title: "named windows, each of the one before",
    sql: (count) =>
      `SELECT sum(id) OVER w${count} ${from} WINDOW w0 AS (PARTITION BY id)${each(count, (i) => `, w${i + 1} AS (w${i})`, "")}`,
  },
  {
    title: "aggregates",
    sql: (count) => `SELECT ${each(count, (i) => `sum(id + ${i})`)} ${from}`,
  },
  {
    title: "aggregates with FILTER",
    sql: (count) => `SELECT ${each(count, (i) => `count(*) FILTER (WHERE id > ${i})`)} ${from}`,
  },
  {
    title: "ordered aggregates",
    sql: (count) =>
      `SELECT ${each(count, (i) => `string_agg(body, ',' ORDER BY id + ${i})`)} ${from}`,
  },
  {
    title: "ordered sets",
    sql: (count) =>
      `SELECT ${each(count, (i) => `percentile_cont(0.${i + 1}) WITHIN GROUP (ORDER BY id)`)} ${from}`,
  },
  {
    title: "table functions",
    sql: (count) => `SELECT ${each(count, () => "generate_series(1, 2)")}`,
  },
  {
    title: "GROUP BY",
    sql: (count) => `SELECT 1 ${from} GROUP BY ${each(count, (i) => `id + ${i}`)}`,
  },
  {
    title: "GROUP BY and outputs",
    sql: (count) =>
      `SELECT ${each(count, (i) => `id + ${i}`)} ${from} GROUP BY ${each(count, (i) => `id + ${i}`)}`,
  },
  {
    title: "GROUPING SETS",
    sql: (count) =>
      `SELECT 1 ${from} GROUP BY GROUPING SETS (${each(count, (i) => `(id + ${i})`)})`,
  },
  {
    title: "GROUPING SETS of the same",
    sql: (count) => `SELECT 1 ${from} GROUP BY GROUPING SETS (${each(count, () => "(id, body)")})`,
  },
  {
    title: "CUBE",
    sql: (count) => `SELECT 1 ${from} GROUP BY CUBE (${each(count, (i) => `(id + ${i})`)})`,
  },
  {
    title: "ROLLUP",
    sql: (count) => `SELECT 1 ${from} GROUP BY ROLLUP (${each(count, (i) => `id + ${i}`)})`,
  },
  {
    title: "CUBEs",
    sql: (count) => `SELECT 1 ${from} GROUP BY ${each(count, (i) => `CUBE (id, body, id + ${i})`)}`,
  },
  {
    title: "GROUPING",
    sql: (count) => `SELECT ${each(count, () => "grouping(id, body)")} ${from} GROUP BY id, body`,
  },
  {
    title: "HAVING",
    sql: (count) => `SELECT 1 ${from} HAVING ${each(count, (i) => `sum(id + ${i}) > 0`, " AND ")}`,
  },
  {
    title: "ORDER BY",
    sql: (count) => `SELECT id ${from} ORDER BY ${each(count, (i) => `id + ${i}`)}`,
  },
  {
    title: "ORDER BY of one",
    sql: (count) => `SELECT id ${from} ORDER BY ${each(count, () => "1")}`,
  },
  {
    title: "outputs in a tower of queries",
    sql: (count) =>
      `SELECT 1 FROM ${nested(60, "(SELECT * FROM ", `(SELECT ${each(count, (i) => `${i} AS a${i}`)}) q`, ") q")}`,
  },
];
