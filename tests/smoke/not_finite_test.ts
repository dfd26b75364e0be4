/**
 * Tests NaN and infinity throughout the system: parameters and cells over HTTP, live queries, the
 * client library, COPY, topics, zone maps, keys and indexes of segments, merges and restarts.
 * `tests/sql/cases/not_finite.slt` contains the results that agree with PostgreSQL's.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import { testThoroughly } from "../support/requirements.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let db: Client;

beforeAll(async () => {
  server = await startReadyServer();
  db = createClient({ url: server.url, auth: { user: ADMIN, password: PASSWORD } });
  await db.execute("CREATE NAMESPACE app");
});

afterAll(async () => {
  db.close();
  await server.stop();
});

test("NaN and infinity are strings on the wire, and numbers in the client", async () => {
  await db.execute(
    `CREATE SHARED TABLE app.t (id INT PRIMARY KEY, d DOUBLE, r REAL, ds DOUBLE[]);
     CREATE TOPIC app.changes; ALTER TOPIC app.changes ADD SOURCE app.t ON INSERT WITH (PAYLOAD = 'full')`,
  );
  let shown: readonly Readonly<Record<string, unknown>>[] = [];
  const live = db.live("SELECT id, d, r, ds FROM app.t WHERE d >= 'Infinity'", {
    onRows: (rows) => {
      shown = rows.map(({ d, ds, id, r }) => ({ id, d, r, ds }));
    },
  });
  await until(() => live.status === "ready");
  await db.execute("INSERT INTO app.t VALUES (1, $1, $2, '{1,NaN,-inf}'), (2, 1.5, 'NaN', NULL)", {
    params: [Number.NaN, Number.NEGATIVE_INFINITY],
  });
  await until(() => shown.length === 1);
  expect(shown).toEqual([{ id: 1, d: Number.NaN, r: -Infinity, ds: [1, Number.NaN, -Infinity] }]);
  live.close();
  expect(await server.rows("SELECT d, r, ds, d + 1 FROM app.t ORDER BY id")).toEqual([
    ["NaN", "-Infinity", [1, "NaN", "-Infinity"], "NaN"],
    [1.5, "NaN", null, 2.5],
  ]);
  const found = await db.query("SELECT id FROM app.t WHERE d = $1 AND r < 0", [Number.NaN]);
  expect(found).toEqual([{ id: 1 }]);
  const [message] = await server.rows("CONSUME FROM app.changes GROUP 'g' FROM EARLIEST LIMIT 1");
  expect(JSON.stringify(message)).toContain('\\"d\\":\\"NaN\\"');
});

test.each(["text", "csv", "binary", "ndjson"])(
  "COPY in %s preserves NaN and infinity",
  async (format) => {
    const copy = (sql: string, body?: ArrayBuffer): Promise<Response> =>
      fetch(`${server.url}/v1/api/copy?sql=${encodeURIComponent(sql)}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${server.token}` },
        ...(body === undefined ? {} : { body }),
      });
    const rows = [
      [1, "NaN", "Infinity"],
      [2, "-Infinity", "NaN"],
      [3, -0.5, 7],
    ];
    await server.sql(
      `DROP TABLE IF EXISTS app.a; CREATE SHARED TABLE app.a (id INT PRIMARY KEY, d DOUBLE, r REAL)`,
    );
    await server.sql(
      "INSERT INTO app.a VALUES (1, 'NaN', 'inf'), (2, '-inf', 'NaN'), (3, -0.5, 7)",
    );
    const bytes = await (
      await copy(`COPY app.a (id, d, r) TO STDOUT (FORMAT ${format})`)
    ).arrayBuffer();
    await server.sql("DELETE FROM app.a");
    const into = await copy(`COPY app.a (id, d, r) FROM STDIN (FORMAT ${format})`, bytes);
    expect(into.status).toBe(200);
    expect(await server.rows("SELECT id, d, r FROM app.a ORDER BY id")).toEqual(rows);
  },
);

const SPECIAL = ["NaN", "Infinity", "-Infinity"];

testThoroughly(
  "keys, indexes, zone maps and merges of segments find NaN and infinity, even after a restart",
  async () => {
    await server.sql(
      `CREATE SHARED TABLE app.keyed (k DOUBLE PRIMARY KEY, n INT, d DOUBLE);
     CREATE INDEX ON app.keyed (d); CREATE SHARED TABLE app.only (id INT PRIMARY KEY, d DOUBLE)`,
    );
    const expected = new Map<string, number>();
    for (let round = 0; round < 5; round += 1) {
      const values = [...SPECIAL, ...Array.from({ length: 40 }, (_, i) => String(i + round * 20))];
      const rows = values.map((value) => `('${value}', ${round}, '${value}')`).join();
      await server.sql(
        `INSERT INTO app.keyed VALUES ${rows} ON CONFLICT (k) DO UPDATE SET n = EXCLUDED.n`,
      );
      for (const value of values) expected.set(value, round);
      await server.sql(`INSERT INTO app.only VALUES (${round}, '${SPECIAL[round % 3]}')`);
      await server.rows("STORAGE FLUSH TABLE app.keyed");
      await server.rows("STORAGE FLUSH TABLE app.only");
    }
    const check = async (): Promise<void> => {
      const all = await server.rows("SELECT k, n FROM app.keyed ORDER BY k");
      expect(all).toHaveLength(expected.size);
      expect(all[0]).toEqual(["-Infinity", 4]);
      expect(all.slice(-2)).toEqual([
        ["Infinity", 4],
        ["NaN", 4],
      ]);
      const queries: [string, unknown[][]][] = [
        ["SELECT n FROM app.keyed WHERE k = 'NaN'", [[4]]],
        ["SELECT n FROM app.keyed WHERE d = 'NaN'", [[4]]],
        ["SELECT n FROM app.keyed WHERE d = '-Infinity'", [[4]]],
        ["SELECT k FROM app.keyed WHERE k > 118 ORDER BY k", [[119], ["Infinity"], ["NaN"]]],
        ["SELECT k FROM app.keyed WHERE d > 118 ORDER BY d DESC", [["NaN"], ["Infinity"], [119]]],
        ["SELECT k FROM app.keyed WHERE k < 1 ORDER BY k", [["-Infinity"], [0]]],
        ["SELECT d FROM app.keyed ORDER BY d DESC LIMIT 3", [["NaN"], ["Infinity"], [119]]],
        ["SELECT d FROM app.keyed ORDER BY d LIMIT 2", [["-Infinity"], [0]]],
        ["SELECT min(d), max(d), count(DISTINCT d) FROM app.keyed", [["-Infinity", "NaN", 123]]],
        ["SELECT id FROM app.only WHERE d = 'NaN' ORDER BY id", [[0], [3]]],
        ["SELECT id FROM app.only WHERE d = 'inf' ORDER BY id", [[1], [4]]],
        ["SELECT id FROM app.only WHERE d < 0 ORDER BY id", [[2]]],
        ["SELECT id FROM app.only WHERE d > 5 ORDER BY id", [[0], [1], [3], [4]]],
      ];
      for (const [sql, rows] of queries) {
        expect({ sql, rows: await server.rows(sql) }).toEqual({ sql, rows });
      }
    };
    await check();
    const { body } = await server.sql("INSERT INTO app.keyed VALUES ('NaN', 0, 0)");
    expect(body.error?.code).toBe("SQL_EXECUTION_ERROR");
    await server.rows("STORAGE COMPACT TABLE app.keyed");
    await server.rows("STORAGE COMPACT TABLE app.only");
    await check();
    await server.rows("DELETE FROM app.keyed WHERE k = 'NaN'");
    await server.rows("INSERT INTO app.keyed VALUES ('NaN', 4, 'NaN')");
    await server.restart("SIGKILL");
    await check();
    await server.restart("SIGTERM");
    await check();
  },
);
