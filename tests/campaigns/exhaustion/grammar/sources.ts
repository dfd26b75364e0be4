/** Defines the constructs in FROM: joins of every kind, queries, functions and views. */
import { type Construct, each, nested, WALL } from "./construct.ts";

const joins: readonly (readonly [string, (index: number) => string])[] = [
  ["LEFT JOIN", (i) => ` LEFT JOIN ${WALL} t${i} ON t${i}.id = w.id`],
  [
    "LEFT JOIN of the one before",
    (i) => ` LEFT JOIN ${WALL} t${i} ON t${i}.id = ${i === 0 ? "w" : `t${i - 1}`}.id`,
  ],
  ["RIGHT JOIN", (i) => ` RIGHT JOIN ${WALL} t${i} ON t${i}.id = w.id`],
  ["FULL JOIN USING", (i) => ` FULL JOIN ${WALL} t${i} USING (id)`],
  ["LEFT JOIN USING", (i) => ` LEFT JOIN ${WALL} t${i} USING (id, room)`],
  ["NATURAL JOIN", (i) => ` NATURAL JOIN ${WALL} t${i}`],
  ["NATURAL FULL JOIN", (i) => ` NATURAL FULL JOIN ${WALL} t${i}`],
  ["CROSS JOIN", (i) => ` CROSS JOIN ${WALL} t${i}`],
  ["JOIN ON", (i) => ` JOIN ${WALL} t${i} ON t${i}.id = w.id`],
  ["JOIN ON TRUE", (i) => ` JOIN ${WALL} t${i} ON TRUE`],
  ["comma", (i) => `, ${WALL} t${i}`],
  ["LATERAL", (i) => ` LEFT JOIN LATERAL (SELECT w.id + ${i} AS v) t${i} ON TRUE`],
  [
    "LATERAL of a table",
    (i) => ` CROSS JOIN LATERAL (SELECT x.id FROM ${WALL} x WHERE x.id = w.id) t${i}`,
  ],
  [
    "LATERAL of the one before",
    (i) => `, LATERAL (SELECT ${i === 0 ? "w.id" : `t${i - 1}.v`} + 1 AS v) t${i}`,
  ],
  ["derived tables", (i) => `, (SELECT ${i} AS v) t${i}`],
  ["functions", (i) => `, generate_series(1, 1) t${i}`],
  ["VALUES", (i) => `, (VALUES (${i})) t${i}(v)`],
  [
    "grouped joins",
    (i) => ` JOIN (${WALL} a${i} JOIN ${WALL} b${i} USING (id)) ON a${i}.id = w.id`,
  ],
  ["system views", (i) => `, information_schema.columns t${i}`],
];
const all = joins.flatMap(([title, join]): Construct[] => [
  {
    title: `FROM by ${title}`,
    sql: (count) => `SELECT 1 FROM ${WALL} w${each(count, join, "")} WHERE w.id < 0`,
  },
  {
    title: `FROM by ${title}, all columns`,
    sql: (count) => `SELECT * FROM ${WALL} w${each(count, join, "")} WHERE w.id < 0 LIMIT 1`,
  },
]);

export const SOURCES: readonly Construct[] = [
  ...all,
  {
    title: "joins in parentheses, nested",
    sql: (count) =>
      `SELECT 1 FROM ${nested(count, "(", `${WALL} w`, ` LEFT JOIN ${WALL} t USING (id))`)}`,
  },
  {
    title: "derived tables, nested",
    sql: (count) => `SELECT 1 FROM ${nested(count, "(SELECT * FROM ", WALL, ") q")}`,
  },
  {
    title: "ROWS FROM",
    sql: (count) => `SELECT 1 FROM ROWS FROM (${each(count, () => "generate_series(1, 1)")}) t`,
  },
  {
    title: "joins in each of 8 queries in FROM",
    sql: (count) =>
      `SELECT 1 FROM ${each(8, (i) => `(SELECT 1 FROM ${WALL} w${each(count, (j) => ` LEFT JOIN ${WALL} t${j} ON t${j}.id = w.id`, "")} WHERE w.id < 0) q${i}`)}`,
  },
];
