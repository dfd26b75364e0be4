/** Defines the constructs that consist of several statements in one request. */
import { type Construct, each, WALL } from "./construct.ts";

const several = (title: string, text: (index: number) => string): Construct => ({
  title: `statements: ${title}`,
  sql: (count) => each(count, text, ";"),
  isNotExplained: true,
});

/** SET and EXPLAIN require a role that an ordinary user does not have. */
const byAdministrator = (construct: Construct): Construct => ({ ...construct, isDefining: true });

export const STATEMENTS: readonly Construct[] = [
  several("SELECT", () => "SELECT 1"),
  several("SELECT of a table", (i) => `SELECT body FROM ${WALL} WHERE id = ${i}`),
  several("joins", () => `SELECT 1 FROM ${WALL} a JOIN ${WALL} b USING (id) WHERE a.id < 0`),
  byAdministrator(several("SET", () => "SET statement_timeout = 1000")),
  several("USE", () => "USE app"),
  several("BEGIN and COMMIT", (i) => (i % 2 === 0 ? "BEGIN" : "COMMIT")),
  byAdministrator(several("EXPLAIN", () => "EXPLAIN SELECT 1")),
  several("SHOW", () => "SHOW TABLES"),
  several("SUBSCRIBE", () => `SUBSCRIBE TO ${WALL} WHERE id = 1`),
  several("nothing", () => ""),
  several(
    "of 20 joins",
    () =>
      `SELECT 1 FROM ${WALL} w${each(20, (i) => ` LEFT JOIN ${WALL} t${i} ON t${i}.id = w.id`, "")} WHERE w.id < 0`,
  ),
  several(
    "INSERT",
    (i) =>
      `INSERT INTO app.notes VALUES (${-1 - i}, 'a') ON CONFLICT (id) DO UPDATE SET body = 'b'`,
  ),
];
