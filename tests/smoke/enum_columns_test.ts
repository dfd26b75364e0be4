/**
 * Tests columns of enum types throughout the system: as parameters, in live queries that continue
 * while labels are added and renamed, in COPY and topics, after a restart with rows in segments
 * and in the log, and in a backup.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { type Client, createClient } from "../../src/client/mod.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import { freshDirectory, maintain, removeDirectories, serverOn } from "../support/maintenance.ts";
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
const root = freshDirectory();

beforeAll(async () => {
  server = await startReadyServer({ config: { storage: { allowed_roots: [root] } } });
  db = createClient({ url: server.url, auth: { user: ADMIN, password: PASSWORD } });
  await db.execute(
    `CREATE NAMESPACE app; CREATE TYPE app.mood AS ENUM ('sad', 'ok', 'happy');
     CREATE SHARED TABLE app.diary (id INT PRIMARY KEY, m app.mood, ms app.mood[]);
     CREATE INDEX ON app.diary (m); CREATE TOPIC app.moods;
     ALTER TOPIC app.moods ADD SOURCE app.diary ON INSERT WHERE m > 'sad' WITH (PAYLOAD = 'full')`,
  );
});

afterAll(async () => {
  db.close();
  await server.stop();
  removeDirectories();
});

test("labels are strings for clients, and new labels reach subscribers", async () => {
  const shown = new Map<unknown, unknown>();
  let count = 0;
  const live = db.live("SELECT id, m, ms FROM app.diary WHERE m >= 'ok'", {
    onRows: (rows) => {
      shown.clear();
      for (const row of rows) shown.set(row["id"], row["m"]);
      count += 1;
    },
  });
  await until(() => count > 0);
  await db.execute("INSERT INTO app.diary VALUES ($1, $2, $3)", {
    params: [1, "happy", ["sad", null]],
  });
  await until(() => shown.get(1) === "happy");
  await db.execute("ALTER TYPE app.mood ADD VALUE 'fine' AFTER 'ok'");
  await db.execute("INSERT INTO app.diary VALUES ($1, $2)", { params: [2, "fine"] });
  await until(() => shown.get(2) === "fine");
  live.close();
  await db.execute("DELETE FROM app.diary");
  const { body } = await server.sql("INSERT INTO app.diary VALUES (3, 'angry')");
  expect(body.error?.message).toMatch(/Cannot read "angry" as app.mood/);
  expect(await db.query("SELECT count(*) AS n FROM app.diary")).toEqual([{ n: 0 }]);
});

testThoroughly(
  "labels survive COPY, topics, segments, the log, a restart and a backup",
  async () => {
    const rows = (on: ServerProcess): Promise<readonly (readonly unknown[])[]> =>
      on.rows("SELECT id, m, ms FROM app.diary WHERE m >= 'sad' ORDER BY m, id");
    await server.sql('COPY app.diary FROM stdin (FORMAT csv);\n1,happy,"{sad,ok}"\n2,sad,\n\\.\n');
    await server.rows("STORAGE FLUSH TABLE app.diary");
    await server.rows("ALTER TYPE app.mood ADD VALUE 'meh' BEFORE 'ok'");
    await server.rows("INSERT INTO app.diary VALUES (3, 'meh', '{meh,happy}')");
    await server.rows("ALTER TYPE app.mood RENAME VALUE 'happy' TO 'glad'");
    const expected = [
      [2, "sad", null],
      [3, "meh", ["meh", "glad"]],
      [1, "glad", ["sad", "ok"]],
    ];
    expect(await rows(server)).toEqual(expected);
    for (const format of ["text", "csv", "binary", "ndjson"]) {
      const ask = (sql: string, body?: ArrayBuffer): Promise<Response> =>
        fetch(`${server.url}/v1/api/copy?sql=${encodeURIComponent(sql)}`, {
          method: "POST",
          headers: { Authorization: `Bearer ${server.token}` },
          ...(body === undefined ? {} : { body }),
        });
      const bytes = await (
        await ask(`COPY app.diary (id, m, ms) TO STDOUT (FORMAT ${format})`)
      ).arrayBuffer();
      await server.rows(`CREATE TABLE app.${format}_copy (LIKE app.diary INCLUDING ALL)`);
      const into = await ask(
        `COPY app.${format}_copy (id, m, ms) FROM STDIN (FORMAT ${format})`,
        bytes,
      );
      expect(into.status).toBe(200);
      const copied = `SELECT id, m, ms FROM app.${format}_copy ORDER BY m`;
      expect({ format, rows: await server.rows(copied) }).toEqual({ format, rows: expected });
    }
    const messages = await server.rows("CONSUME FROM app.moods GROUP 'g' FROM EARLIEST LIMIT 99");
    expect(JSON.stringify(messages)).toContain('\\"m\\":\\"meh\\"');
    await server.rows(`BACKUP DATABASE TO '${join(root, "saved")}'`);
    await server.restart("SIGKILL");
    expect(await rows(server)).toEqual(expected);
    expect(await server.rows("SELECT id FROM app.diary WHERE m = 'meh'")).toEqual([[3]]);

    const target = join(freshDirectory(), "data");
    const say = (): void => undefined;
    const parts = { disk: bunDisk, clock: systemClock, random: systemRandom, log: silentLog };
    expect(await runRestore([join(root, "saved"), target], { ...parts, say, tell: say })).toBe(0);
    expect(maintain("verify", [target])).toMatchObject({ code: 0 });
    await using restored = await serverOn(target);
    expect(await rows(restored)).toEqual(expected);
    await restored.rows("ALTER TYPE app.mood ADD VALUE 'best'");
    expect(await restored.rows("SELECT enum_last(NULL::app.mood)")).toEqual([["best"]]);
  },
);
