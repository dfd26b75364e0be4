/**
 * Defines the constructs that chain or nest queries: WITH, set operations, VALUES and subqueries.
 */
import { type Construct, each, nested } from "./construct.ts";

export const QUERIES: readonly Construct[] = [
  {
    title: "entries of WITH",
    sql: (count) => `WITH ${each(count, (i) => `w${i} AS (SELECT ${i} AS a)`)} SELECT 1`,
  },
  {
    title: "entries of WITH, each of the one before",
    sql: (count) =>
      `WITH w0 AS (SELECT 1 AS a)${each(count, (i) => `, w${i + 1} AS (SELECT a FROM w${i})`, "")} SELECT a FROM w${count}`,
  },
  {
    title: "entries of WITH, each twice of the one before",
    sql: (count) =>
      `WITH w0 AS (SELECT 1 AS a)${each(count, (i) => `, w${i + 1} AS (SELECT x.a FROM w${i} x, w${i} y)`, "")} SELECT a FROM w${count}`,
  },
  {
    title: "entries of WITH, all read",
    sql: (count) =>
      `WITH ${each(count, (i) => `w${i} AS (SELECT ${i} AS a)`)} SELECT 1 FROM ${each(count, (i) => `w${i}`)}`,
  },
  {
    title: "recursive entries of WITH",
    sql: (count) =>
      `WITH RECURSIVE ${each(count, (i) => `w${i}(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w${i} WHERE n < 2)`)} SELECT n FROM w0`,
  },
  {
    title: "columns of a recursive entry",
    sql: (count) =>
      `WITH RECURSIVE w(${each(count, (i) => `c${i}`)}) AS (SELECT ${each(count, String)} UNION ALL SELECT ${each(count, (i) => `c${i} + 1`)} FROM w WHERE c0 < 2) SELECT c0 FROM w`,
  },
  {
    title: "WITH in WITH",
    sql: (count) =>
      `SELECT a FROM ${nested(count, "(WITH w AS (SELECT 1 AS a) SELECT w.a FROM w, ", "(SELECT 1) z", ") q")}`,
  },
  ...["UNION ALL", "UNION", "INTERSECT", "EXCEPT"].flatMap((operator): Construct[] => [
    {
      title: operator,
      sql: (count) => each(count + 1, (i) => `SELECT ${i}`, ` ${operator} `),
    },
    {
      title: `${operator} of 900 columns`,
      sql: (count) =>
        each(Math.min(count, 500), () => `SELECT ${each(900, String)}`, ` ${operator} `),
    },
  ]),
  {
    title: "UNION ALL of columns",
    sql: (count) => each(20, () => `SELECT ${each(count, String)}`, " UNION ALL "),
  },
  {
    title: "UNION ALL of types",
    sql: (count) =>
      each(count + 1, (i) => `SELECT ${i % 2 === 0 ? "1" : "1.5"}, 'a'`, " UNION ALL "),
  },
  {
    title: "set operations, nested",
    sql: (count) => nested(count, "(SELECT 1 UNION ", "SELECT 2", ")"),
  },
  { title: "VALUES of rows", sql: (count) => `VALUES ${each(count, (i) => `(${i})`)}` },
  {
    title: "VALUES of expressions",
    sql: (count) => `VALUES ${each(count, (i) => `(${i} + 1, abs(${i}))`)}`,
  },
  {
    title: "VALUES of columns",
    sql: (count) => `VALUES (${each(count, String)}), (${each(count, String)})`,
  },
];
