/**
 * Verifies that a live query in the client keeps its rows in the order of the SELECT, even for
 * types whose cells, as the client receives them, do not sort in that order.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

const COLUMNS = [
  ["stage", "play.stage", ["'todo'", "'doing'", "'done'", "NULL"]],
  ["price", "MONEY", ["'$9.00'", "'$10.00'", "'-$1.00'", "NULL"]],
  ["wait", "INTERVAL", ["'2 days'", "'10 hours'", "'1 month'", "'-1 day'"]],
  ["opens", "TIMETZ", ["'09:00+02'", "'08:00+00'", "'7:30+00'", "NULL"]],
  ["host", "INET", ["'9.0.0.1'", "'10.0.0.1'", "'::1'", "NULL"]],
  ["span", "INT8RANGE", ["'[9,10)'", "'[10,11)'", "'empty'", "'(,5)'"]],
  ["doc", "JSONB", ["'9'", "'10'", "'\"a\"'", "'[1]'"]],
  ["waits", "INTERVAL[]", ["'{2 days}'", "'{10 hours}'", "'{}'", "NULL"]],
  ["day", "DATE", ["'infinity'", "'-infinity'", "'2026-01-01'", "'1999-01-01'"]],
  ["word", "TEXT", ["'😀'", "'\uff01'", "'z'", "''"]],
] as const;

let server: ServerProcess;
let db: Client;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows(
    "CREATE NAMESPACE play; CREATE TYPE play.stage AS ENUM ('todo', 'doing', 'done')",
  );
  const columns = COLUMNS.map(([name, type]) => `${name} ${type}`);
  await server.rows(
    `CREATE TABLE play.t (id INT PRIMARY KEY, ${columns.join(", ")}) WITH (TYPE = 'SHARED')`,
  );
  const rows = [0, 1, 2, 3].map((row) => {
    const values = COLUMNS.map(([, , each], index) => each[(row + index) % each.length]);
    return `(${row}, ${values.join(", ")})`;
  });
  await server.rows(`INSERT INTO play.t VALUES ${rows.join(", ")}`);
  db = createClient({ url: server.url, auth: { user: ADMIN, password: PASSWORD } });
});
afterAll(async () => {
  db.close();
  await server.stop();
});

const FORMS = COLUMNS.flatMap(([name], index) => [
  `SELECT * FROM play.t ORDER BY ${name}, id`,
  `SELECT id, ${name} AS x FROM play.t ORDER BY x DESC NULLS LAST, id`,
  `SELECT t.id, t.${name} FROM play.t t JOIN play.t u ON u.id = t.id ORDER BY 2 DESC, 1`,
  `SELECT id FROM play.t ORDER BY ${name} LIMIT ${2 + (index % 2)}`,
  `SELECT ${name}, min(id) AS id FROM play.t GROUP BY ${name} ORDER BY ${name}`,
]);

test.each(shareOf(FORMS, { oneOf: 6 }))(
  "the client orders the rows like the SELECT: %s",
  async (sql) => {
    const live = db.live<{ id: number }>(sql, { onRows: () => undefined });
    const showsTheSelect = async (): Promise<void> => {
      const wanted = (await db.query<{ id: number }>(sql)).map(({ id }) => id);
      const shown = (): number[] => live.rows.map(({ id }) => id);
      const sorted = (ids: number[]): string => ids.toSorted((a, b) => a - b).join();
      await until(() => sorted(shown()) === sorted(wanted));
      expect(shown()).toEqual(wanted);
    };
    await showsTheSelect();
    await server.rows("UPDATE play.t SET id = id + 100 WHERE id < 2");
    await showsTheSelect();
    await server.rows("UPDATE play.t SET id = id - 100 WHERE id >= 100");
    live.close();
  },
);
