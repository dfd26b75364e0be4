/**
 * Verifies that a fault injected at any stage of a request, a subscription, a connection or a job
 * of the real process ends only the request, subscription, connection or job itself. A bug in a
 * commit, or in the publication of a segment, stops the process; recovery from the log makes this
 * safe.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SocketClient } from "../support/client.ts";
import { EventClient } from "../support/event_client.ts";
import { FAULT_KINDS, type InjectedFault } from "../support/fault_point.ts";
import { bundleWithFaults, type FaultStage } from "../support/injected_faults.ts";
import {
  type ServerProcess,
  type SqlAnswer,
  type SqlBody,
  startReadyServer,
} from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

const MS_MAX = 120_000;

const directory = mkdtempSync(join(tmpdir(), "tidemark-injected-"));
const control = join(directory, "bug.json");

let command: readonly string[];
let kindIndex = 0;
let server: ServerProcess;
let follower: SocketClient;
let bugCount = 0;
let rowCount = 0;

function start(): Promise<ServerProcess> {
  return startReadyServer({
    env: { INJECTED_FAULT: control },
    command,
    config: { websocket: { auth_timeout_secs: 5 }, storage: { allowed_roots: [directory] } },
  });
}

/** Injects a fault, of a different kind each time. */
function inject(stage: FaultStage, skip = 0): void {
  const kind = FAULT_KINDS[kindIndex % FAULT_KINDS.length] ?? "type";
  kindIndex += 1;
  const bug: InjectedFault = { stage, kind, skip };
  writeFileSync(control, JSON.stringify(bug));
}

function headers(accept = "application/json"): Record<string, string> {
  return { Authorization: `Bearer ${server.token}`, Accept: accept };
}

function asked(sql: string, accept: string): Promise<Response> {
  return server.post("/v1/api/sql", { sql }, headers(accept));
}

function expectBug({ body, status }: SqlAnswer): void {
  expect([status, body.error?.code]).toEqual([500, "INTERNAL_ERROR"]);
}

/** Returns the names of the files below a folder of the data directory. */
function namesIn(folder: string): readonly string[] {
  const path = join(server.dataPath, folder);
  return existsSync(path) ? readdirSync(path, { recursive: true }).map(String) : [];
}

/**
 * Checks that the injected fault occurred and was reported, that the server serves other requests,
 * and that the fault left nothing behind: no request entry, no file, no closed gate, no row.
 */
async function expectUnharmed(): Promise<void> {
  expect(existsSync(control)).toBe(false);
  expect(server.condition).toBe("running");
  const before = bugCount;
  bugCount = await server.metric("tidemark_bugs_total");
  expect(bugCount).toBeGreaterThan(before);
  const stats = "SELECT count(*) FROM system.stats WHERE metric_name = 'tidemark_bugs_total'";
  expect(await server.rows(stats)).toEqual([[1]]);
  expect(await server.metric("tidemark_http_requests_running")).toBe(1);
  const others = "SELECT count(*) FROM system.queries WHERE sql NOT LIKE '%system.queries%'";
  expect(await server.rows(others)).toEqual([[0]]);
  expect(readdirSync(join(server.dataPath, "tmp"))).toEqual([]);
  // The subscriber has not missed anything.
  rowCount += 1;
  await server.rows(`INSERT INTO default.kept VALUES (${rowCount}, 'kept')`);
  expect(await follower.expect("change")).toMatchObject({ rows: [{ id: rowCount }] });
  expect(await server.rows("SELECT count(*), max(id) FROM default.kept")).toEqual([
    [rowCount, rowCount],
  ]);
}

beforeAll(async () => {
  command = await bundleWithFaults(join(directory, "program"));
  server = await start();
  await server.rows(
    "CREATE TABLE default.kept (id INT PRIMARY KEY, v TEXT); CREATE TABLE default.other (id INT PRIMARY KEY, v TEXT); CREATE TABLE default.files (id INT PRIMARY KEY, f FILE)",
  );
  for (rowCount = 0; rowCount < 3; ) {
    rowCount += 1;
    await server.rows(`INSERT INTO default.kept VALUES (${rowCount}, 'kept')`);
  }
  // The rows must be in a segment file, so that a scan keeps a file open.
  await server.rows("STORAGE FLUSH TABLE default.kept");
  follower = await SocketClient.connect(server.url, { token: server.token });
  await follower.expect("auth_success");
  follower.send({
    type: "subscribe",
    subscription: { id: "f", sql: "SELECT * FROM default.kept" },
  });
  await follower.expect("subscription_ack");
  await follower.expect("initial_data_batch");
}, MS_MAX);

afterAll(async () => {
  follower.close();
  await server.stop();
  rmSync(directory, { recursive: true });
});

const LONG = "SELECT count(*) FROM generate_series(1, 600000) g(i) WHERE i % 7 = 1";

const RECURSION =
  "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT * FROM t";
const LITERALS = Array.from({ length: 2000 }, (_, i) => `(${1000 + i}, 'lost')`).join(", ");
const MANY = "INSERT INTO default.other SELECT i, 'x' FROM generate_series(1, 20000) g(i)";

describe("a bug in a statement ends its request", () => {
  const STATEMENTS: readonly (readonly [stage: FaultStage, sql: string, skip?: number])[] = [
    ["body", "SELECT 1"],
    ["normalise", "SELECT id FROM default.kept"],
    ["parse, short", "SELECT id AS parsed FROM default.kept"],
    ["parse, long", "SELECT 1; SELECT 2"],
    ["bind", "SELECT id AS bound FROM default.kept"],
    ["bind", "SELECT 1; SELECT id FROM default.kept", 1],
    ["plan", "SELECT id AS planned FROM default.kept"],
    ["compile", "SELECT id AS compiled FROM default.kept"],
    ["build", "SELECT a.id FROM default.kept a JOIN default.kept b ON a.v = b.v"],
    ["build", "SELECT a.id FROM default.kept a JOIN default.kept b ON a.v = b.v", 1],
    ["build", "UPDATE default.kept SET v = 'lost'"],
    ["evaluate", "SELECT id + 1 FROM default.kept"],
    ["time slice", LONG],
    ["aggregate", LONG],
    ["subquery", "SELECT id, (SELECT max(id) FROM default.kept) FROM default.kept"],
    [
      "subquery",
      "SELECT id FROM default.kept k WHERE id > (SELECT min(id) FROM default.kept i WHERE i.id <= k.id)",
    ],
    ["recursion", RECURSION, 3],
    ["cells", "SELECT id, v FROM default.kept ORDER BY v"],
    ["json", "SELECT id FROM default.kept"],
    ["insert", "INSERT INTO default.kept VALUES (1000, 'lost')"],
    ["insert, columns", `INSERT INTO default.kept VALUES ${LITERALS}`],
    ["change", "INSERT INTO default.kept VALUES (1000, 'lost') RETURNING id"],
    ["change", "UPDATE default.kept SET v = 'lost'"],
    ["long change", MANY],
    ["transaction", "BEGIN; INSERT INTO default.kept VALUES (1000, 'lost'); COMMIT"],
    ["long transaction", `BEGIN; ${MANY}; COMMIT`],
    [
      "evaluate",
      "BEGIN; INSERT INTO default.kept VALUES (1000, 'lost'); SELECT id + 1 FROM default.kept; COMMIT",
    ],
  ];

  test.each(shareOf(STATEMENTS, { oneOf: 5 }))(
    "in stage %p: %s",
    async (stage, sql, skip = 0) => {
      inject(stage, skip);
      expectBug(await server.sql(sql));
      await expectUnharmed();
      const kept = "SELECT count(*) FROM default.kept WHERE v <> 'kept'";
      expect(await server.rows(kept)).toEqual([[0]]);
      expect(await server.rows("SELECT count(*) FROM default.other")).toEqual([[0]]);
      // Without the fault, the statement succeeds. The test does not repeat statements that change
      // rows.
      if (!sql.includes("lost") && sql !== MANY && !sql.includes(MANY)) await server.rows(sql);
    },
    MS_MAX,
  );

  test(
    "a bug in a statement with an idempotency key leaves the key usable",
    async () => {
      const sql = "INSERT INTO default.other VALUES (7, 'once')";
      for (const stage of ["key", "record"] as const) {
        inject(stage);
        expectBug(await server.sql(sql, { fields: { idempotency_key: "k" } }));
        await expectUnharmed();
      }
      for (const replayed of [null, "true"]) {
        const { headers: sent, status } = await server.sql(sql, {
          fields: { idempotency_key: "k" },
        });
        expect([status, sent.get("Idempotency-Replayed")]).toEqual([200, replayed]);
      }
      expect(await server.rows("DELETE FROM default.other RETURNING id")).toEqual([[7]]);
    },
    MS_MAX,
  );

  test(
    "the log contains the stack of the bug, and the statement without its password",
    async () => {
      kindIndex = FAULT_KINDS.indexOf("assertion");
      inject("bind");
      expectBug(await server.sql("SELECT id AS told FROM default.kept WHERE v = 'a text'"));
      inject("parse, long");
      expectBug(await server.sql("CREATE USER eve WITH PASSWORD 'a secret of hers' ROLE user"));
      await expectUnharmed();
      await server.outputHas(/a bug ended a request .*CREATE USER/);
      expect(server.output).toMatch(/a bug ended a request .*told.*'a text'.*prepareInSteps/);
      expect(server.output).not.toContain("a secret of hers");
    },
    MS_MAX,
  );
});

describe("a bug in a response ends its request", () => {
  test.each<[stage: FaultStage, accept: string]>([
    ["ndjson", "application/x-ndjson"],
    ["csv", "text/csv"],
  ])("before the first byte of %s", async (stage, accept) => {
    inject(stage);
    const answer = await asked("SELECT id FROM default.kept", accept);
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ error: { code: "INTERNAL_ERROR" } });
    await expectUnharmed();
  });

  const STREAM = "SELECT i, repeat('x', 100) AS v FROM generate_series(1, 100000) g(i)";

  test(
    "a bug in the middle of JSON is reported at the end of the JSON",
    async () => {
      inject("push", 3);
      const answer = await asked(STREAM, "application/json");
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({
        status: "error",
        error: { code: "INTERNAL_ERROR" },
      });
      await expectUnharmed();
    },
    MS_MAX,
  );

  test(
    "a bug in the middle of NDJSON is reported in the last line",
    async () => {
      inject("push", 3);
      const lines = (await (await asked(STREAM, "application/x-ndjson")).text())
        .trimEnd()
        .split("\n");
      expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
        status: "error",
        error: { code: "INTERNAL_ERROR" },
      });
      await expectUnharmed();
    },
    MS_MAX,
  );

  test(
    "a bug in the middle of CSV breaks the connection",
    async () => {
      inject("push", 3);
      const answer = await asked(STREAM, "text/csv");
      expect(await answer.text().catch(() => "broken")).toBe("broken");
      await expectUnharmed();
    },
    MS_MAX,
  );

  test(
    "a bug while rows become text ends the request, on the event loop and in a reader",
    async () => {
      inject("pieces", 3);
      const answer = await asked(STREAM, "application/json");
      const text = await answer.text().catch(() => "broken");
      // A reader fails before its rows become part of the response. The end of the response then
      // reports the failure.
      if (text !== "broken") expect(text).toEndWith(',"statement":0}}');
      if (text !== "broken") expect(text).toContain('"code":"INTERNAL_ERROR"');
      await expectUnharmed();
    },
    MS_MAX,
  );
});

describe("a bug in the access to files ends its request", () => {
  async function uploaded(id: number): Promise<SqlAnswer> {
    const form = new FormData();
    form.append("sql", `INSERT INTO default.files VALUES (${id}, FILE('a')) RETURNING f`);
    form.append("file:a", new File(["hello"], "a.txt", { type: "text/plain" }));
    const answer = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: headers(),
      body: form,
    });
    return {
      status: answer.status,
      headers: answer.headers,
      body: (await answer.json()) as SqlBody,
    };
  }

  test.each<FaultStage>(["upload", "upload, listed", "change"])("in stage %p", async (stage) => {
    inject(stage);
    expectBug(await uploaded(1));
    await expectUnharmed();
    expect(await server.rows("SELECT count(*) FROM default.files")).toEqual([[0]]);
    expect(await server.rows("SELECT count(*) FROM system.files")).toEqual([[0]]);
    expect(namesIn("files").filter((name) => name.endsWith(".txt"))).toEqual([]);
  });

  test("a bug while a file is read ends the download", async () => {
    const { body } = await uploaded(2);
    const file = JSON.parse(String(body.results[0]?.rows?.[0]?.[0])) as Record<string, string>;
    const path = `/v1/files/default/files/${file["sub"]}/${file["id"]}`;
    inject("download");
    expect((await server.get(path, headers())).status).toBe(500);
    await expectUnharmed();
    expect(await (await server.get(path, headers())).text()).toBe("hello");
  });
});

describe("a bug in a connection ends no other connection", () => {
  async function connected(): Promise<SocketClient> {
    const client = await SocketClient.connect(server.url, { token: server.token });
    await client.expect("auth_success");
    return client;
  }

  async function subscribed(client: SocketClient, id: string): Promise<void> {
    client.send({ type: "subscribe", subscription: { id, sql: "SELECT * FROM default.other" } });
    await client.expect("subscription_ack");
    await client.expect("initial_data_batch");
  }

  test.each<FaultStage>(["live plan", "live batch"])(
    "while a subscription begins, in stage %p",
    async (stage) => {
      const client = await connected();
      await subscribed(client, "before");
      inject(stage);
      client.send({
        type: "subscribe",
        subscription: { id: "ends", sql: `SELECT id, '${stage}' AS s FROM default.other` },
      });
      let message = await client.next();
      if (message.type === "subscription_ack") message = await client.next();
      const told = {
        type: "error",
        subscription_id: "ends",
        code: "SUBSCRIPTION_FAILED",
        ended: true,
      };
      expect(message).toMatchObject(told);
      await expectUnharmed();
      // The connection continues with its other subscriptions.
      await server.rows("INSERT INTO default.other VALUES (1, 'x'); DELETE FROM default.other");
      expect(await client.expect("change")).toMatchObject({ subscription_id: "before" });
      client.close();
    },
  );

  test.each<FaultStage>(["live change", "live tick"])(
    "where changes are read, in stage %p",
    async (stage) => {
      const client = await connected();
      await subscribed(client, "ends");
      inject(stage);
      await server.rows("INSERT INTO default.other VALUES (1, 'x'); DELETE FROM default.other");
      const told = { type: "error", subscription_id: "ends", code: "SUBSCRIPTION_FAILED" };
      expect(await client.next()).toMatchObject(told);
      await expectUnharmed();
      await subscribed(client, "again");
      client.close();
    },
  );

  test("a bug while a connection authenticates ends only that connection", async () => {
    const client = await SocketClient.connect(server.url);
    inject("authenticate");
    client.send({ type: "authenticate", method: "jwt", token: server.token });
    expect(await client.closed()).toMatchObject({ code: 1011 });
    await expectUnharmed();
  });

  test("a bug while a connection unsubscribes ends nothing else", async () => {
    const client = await connected();
    await subscribed(client, "ends");
    inject("unsubscribe");
    client.send({ type: "unsubscribe", subscription_id: "ends" });
    expect(await client.closed()).toMatchObject({ code: 1011 });
    await expectUnharmed();
    expect(await server.rows("SELECT count(*) FROM system.live")).toEqual([[1]]);
  });

  test(
    "a bug in a timer shared by all connections ends none of the others",
    async () => {
      inject("timer");
      await until(() => !existsSync(control));
      await expectUnharmed();
    },
    MS_MAX,
  );

  test("a bug in server-sent events ends only that stream, whether it has begun or not", async () => {
    const query = { sql: "SELECT * FROM default.other" };
    inject("event stream");
    expect((await EventClient.open(server.url, query, headers())).response.status).toBe(500);
    await expectUnharmed();
    inject("events");
    const events = await EventClient.open(server.url, query, headers());
    let last = await events.next();
    for (let next = last; next !== undefined; next = await events.next()) last = next;
    expect(last?.message).toMatchObject({ type: "error", code: "SUBSCRIPTION_FAILED" });
    await expectUnharmed();
    expect(await server.rows("SELECT count(*) FROM system.live")).toEqual([[1]]);
  });
});

describe("a bug in background work ends only that work", () => {
  /** Returns the outcome of the most recent job of a kind. */
  async function lastJob(kind: string): Promise<readonly unknown[] | undefined> {
    const sql = `SELECT status, error FROM system.jobs WHERE job_type = '${kind}' ORDER BY created_at DESC LIMIT 1`;
    return (await server.rows(sql))[0];
  }

  function failed(kind: string): readonly string[] {
    const error =
      `Cannot finish the job (${kind}): it failed because of a bug in the server; the server's ` +
      "log has the details";
    return ["failed", error];
  }

  beforeAll(async () => {
    await server.rows("CREATE TABLE default.worked (id INT PRIMARY KEY, v TEXT)");
  });

  test.each<[stage: FaultStage, kind: string, sql: string]>([
    ["flush", "flush", "STORAGE FLUSH TABLE default.worked"],
    ["merge", "compact", "STORAGE COMPACT TABLE default.worked"],
  ])(
    "in stage %p, whose statement can be repeated",
    async (stage, kind, sql) => {
      for (const id of [1, 2]) {
        if (stage === "merge") await server.rows("STORAGE FLUSH TABLE default.worked");
        await server.rows(
          `INSERT INTO default.worked VALUES (${id}, 'x'); DELETE FROM default.worked`,
        );
      }
      if (stage === "merge") await server.rows("STORAGE FLUSH TABLE default.worked");
      inject(stage);
      expectBug(await server.sql(sql));
      expect(await lastJob(kind)).toEqual(failed(kind));
      await server.outputHas(new RegExp(`a bug ended a job .*kind=${kind}`));
      await until(() => namesIn("tmp").length === 0);
      await expectUnharmed();
      await server.rows(sql);
      await server.rows("INSERT INTO default.worked VALUES (9, 'x'); DELETE FROM default.worked");
    },
    MS_MAX,
  );

  test(
    "a bug in a backup or its restore ends only that job",
    async () => {
      const path = join(directory, "backup");
      for (const [kind, sql] of [
        ["backup", `BACKUP DATABASE TO '${path}'`],
        ["restore", `RESTORE DATABASE FROM '${path}'`],
      ] as const) {
        inject(kind);
        expectBug(await server.sql(sql));
        expect(await lastJob(kind)).toEqual(failed(kind));
        await expectUnharmed();
        expect(namesIn("restore.new")).toEqual([]);
        await server.rows(sql);
        expect(await lastJob(kind)).toEqual(["completed", null]);
      }
    },
    MS_MAX,
  );

  test(
    "a bug in an erasure leaves the erasure due",
    async () => {
      await server.rows("CREATE USER gone INTERNAL");
      inject("erasure");
      await server.rows("DROP USER gone PURGE");
      expect(await lastJob("purge")).toEqual(failed("purge"));
      await expectUnharmed();
      await server.rows("CREATE USER gone INTERNAL; DROP USER gone PURGE");
      await until(async () => (await lastJob("purge"))?.[0] === "completed");
    },
    MS_MAX,
  );

  test.each(shareOf<FaultStage>(["upkeep", "free space"], { oneOf: 2 }))(
    "the regular checks, in stage %p",
    async (stage) => {
      inject(stage);
      await until(() => !existsSync(control));
      await expectUnharmed();
      await server.outputHas(/a bug ended the attempt to .*; the server will try again/);
    },
    MS_MAX,
  );
});

describe("a bug in a reader, or in the messages to it, ends one statement", () => {
  const MANY_ROWS = 30_000;

  beforeAll(async () => {
    await server.rows(
      "CREATE SHARED TABLE default.many (id INT PRIMARY KEY, v TEXT);" +
        `INSERT INTO default.many SELECT i, 'v' || i FROM generate_series(1, ${MANY_ROWS}) g(i);` +
        "STORAGE FLUSH TABLE default.many; UPDATE default.many SET v = 'w' WHERE id % 1000 = 1",
    );
  }, MS_MAX);

  const STAGES: readonly FaultStage[] = [
    "reader, share",
    "reader, sent",
    "reader, tables",
    "reader, plan",
    "aggregate",
    "reader, rows",
    "reader, taken",
    "reader, ended",
  ];

  test.each(shareOf(STAGES, { oneOf: 8 }))(
    "in stage %p",
    async (stage) => {
      const read = `SELECT count(*), count(DISTINCT v), '${stage}' AS stage FROM default.many`;
      const rows = [[MANY_ROWS, MANY_ROWS - 29, stage]];
      const before = await server.metric("tidemark_queries_in_readers_total");
      await until(async () => {
        expect(await server.rows(read)).toEqual(rows);
        return (await server.metric("tidemark_queries_in_readers_total")) > before + 1;
      });
      // The query is new to all readers, so none of them has a plan for it.
      const sql = stage === "reader, plan" ? read.replace("AS stage", "AS planned") : read;
      inject(stage);
      expectBug(await server.sql(sql));
      await expectUnharmed();
      await server.outputHas(/ERROR a bug ended a request .*many.*cause=/);
      await until(async () => (await server.metric("tidemark_readers_busy")) === 0);
      expect(await server.rows(sql)).toEqual(rows);
      // A change that was not reported to the reader would be missing here.
      await server.rows("UPDATE default.many SET v = 'x' || id WHERE id = 1");
      expect(await server.rows(sql)).toEqual([[MANY_ROWS, MANY_ROWS - 28, stage]]);
      await server.rows("UPDATE default.many SET v = 'w' WHERE id = 1");
    },
    MS_MAX,
  );
});

test("a bug in the audit log does not make a login fail", async () => {
  inject("audit");
  await server.login("ada");
  await expectUnharmed();
});

test.each(["kept", "many"])(
  "no segment of %p is held after all these bugs",
  async (table) => {
    for (let round = 0; round < 2; round += 1) {
      rowCount += 1;
      await server.rows(`INSERT INTO default.${table} VALUES (100000 + ${rowCount}, 'kept')`);
      await server.rows(`STORAGE FLUSH TABLE default.${table}`);
    }
    await server.rows(`STORAGE COMPACT TABLE default.${table}`);
    const [[tableId] = []] = await server.rows(
      `SELECT table_id FROM system.tables WHERE table_name = '${table}'`,
    );
    const listed = await server.rows(
      `SELECT kind FROM system.segments WHERE table_name = '${table}' ORDER BY kind`,
    );
    expect(["current", "current,history"]).toContain(listed.flat().join());
    const folder = `segments/${String(tableId)}`;
    // Files replaced by a merge are removed once the last reader has released them.
    await until(
      () => namesIn(folder).filter((name) => name.endsWith(".seg")).length === listed.length,
    );
  },
  MS_MAX,
);

describe("a bug in a commit stops the process", () => {
  const STAGES: readonly (readonly [stage: FaultStage, sql: string])[] = [
    ["flush, published", "STORAGE FLUSH TABLE default.t"],
    [
      "merge, published",
      "INSERT INTO default.t VALUES (2); DELETE FROM default.t WHERE id = 2; STORAGE FLUSH TABLE default.t; STORAGE COMPACT TABLE default.t",
    ],
    ["commit", "INSERT INTO default.t VALUES (2)"],
    ["commit", "BEGIN; INSERT INTO default.t VALUES (2); COMMIT"],
    ["staged commit", "INSERT INTO default.t SELECT i + 1 FROM generate_series(1, 20000) g(i)"],
  ];

  test.each(shareOf(STAGES, { oneOf: 5 }))(
    "in stage %p: %s",
    async (stage, sql) => {
      await using own = await start();
      await own.rows(
        "CREATE TABLE default.t (id INT PRIMARY KEY); INSERT INTO default.t VALUES (1)",
      );
      if (stage === "merge, published") await own.rows("STORAGE FLUSH TABLE default.t");
      inject(stage);
      await own.sql(sql).catch(() => undefined);
      expect(await own.exited()).toBe(70);
      const log = readFileSync(join(own.directory, "logs/tidemark.log"), "utf8");
      expect(log).toMatch(/stopping because of a bug/);
      await own.start();
      expect(await own.rows("SELECT id FROM default.t")).toEqual([[1]]);
    },
    MS_MAX,
  );
});
