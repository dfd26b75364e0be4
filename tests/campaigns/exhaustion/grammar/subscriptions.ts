/** Defines the constructs of live queries, which are sent as subscriptions. */
import { type Construct, each, WALL } from "./construct.ts";

const live = (title: string, sql: (count: number) => string): Construct => ({
  title: `live: ${title}`,
  sql,
  isLive: true,
  isNotExplained: true,
});
const where = `SELECT id FROM ${WALL} WHERE id < 0 AND`;

export const SUBSCRIPTIONS: readonly Construct[] = [
  live("OR", (count) => `${where} (${each(count, (i) => `id = ${i}`, " OR ")})`),
  live("AND", (count) => `${where} ${each(count, (i) => `id > ${i}`, " AND ")}`),
  live("IN", (count) => `${where} id IN (${each(count, String)})`),
  live("LIKE", (count) => `${where} (${each(count, (i) => `body LIKE '%${i}%'`, " OR ")})`),
  live(
    "regular expressions",
    (count) => `${where} (${each(count, (i) => `body ~ '(a|b)*${i}'`, " OR ")})`,
  ),
  live(
    "WHENs",
    (count) => `${where} CASE ${each(count, (i) => `WHEN id = ${i} THEN ${i}`, " ")} END = 1`,
  ),
  live(
    "outputs",
    (count) => `SELECT ${each(count, (i) => `id + ${i} AS c${i}`)} FROM ${WALL} WHERE id < 0`,
  ),
  live("subqueries", (count) => `${where} ${each(count, () => "1 IN (SELECT 1)", " AND ")}`),
  live(
    "FROM",
    (count) =>
      `SELECT 1 FROM ${WALL} w${each(count, (i) => ` LEFT JOIN ${WALL} t${i} USING (id)`, "")}`,
  ),
  live("sums", (count) => `${where} ${each(count, String, "+")} = 1`),
];
