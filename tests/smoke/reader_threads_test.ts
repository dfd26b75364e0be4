/**
 * Tests long queries in the reader threads of the real process. They return correct results while
 * their tables change in every possible way, end with everything that ends a statement, and leave
 * nothing behind.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { testThoroughly } from "../support/requirements.ts";
import { AS_FOR_USERS, type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const MS_MAX = 180_000;

const ROW_COUNT = 100_000;

const NEWLINE = 10;

/**
 * A query that takes longer than a tick of the event loop. The sums of `a` and `b` are equal after
 * every transaction.
 */
const SUMS = "SELECT sum(a), sum(b), count(*), count(DISTINCT s) FROM r.t";

/** A query that compares 10 billion pairs. It takes a reader longer than the entire test. */
const ENDLESS = "SELECT count(*) FROM r.t x, r.t y WHERE x.a + y.b = -1";

let server: ServerProcess;

beforeAll(async () => {
  server = await started();
}, MS_MAX);

afterAll(async () => {
  await server.stop();
});

async function started(performance: Readonly<Record<string, number>> = {}): Promise<ServerProcess> {
  const made = await startReadyServer({
    config: { server: { workers: 2, shutdown_timeout_secs: 0 }, performance },
    env: AS_FOR_USERS,
  });
  await made.rows("CREATE NAMESPACE r");
  await fill(made, "t");
  return made;
}

async function fill(into: ServerProcess, table: string): Promise<void> {
  await into.rows(
    `CREATE SHARED TABLE r.${table} (id INT PRIMARY KEY, a INT, b INT, s TEXT);` +
      `INSERT INTO r.${table} SELECT g, 0, 0, 'text ' || g FROM generate_series(1, ${ROW_COUNT}) x(g)`,
    { fields: { timeout_ms: 300_000 } },
  );
}

/**
 * A query as `system.queries` lists it. It is the only one besides the query that reads the view.
 */
interface Listed {
  readonly queryId: string;
  readonly rowsRead: number;
  readonly memoryBytes: number;
}

async function listed(at: ServerProcess = server): Promise<Listed | undefined> {
  const [row] = await at.rows(
    "SELECT query_id, rows_read, memory_bytes FROM system.queries WHERE sql NOT LIKE '%system.%'",
  );
  if (row === undefined) return undefined;
  return { queryId: String(row[0]), rowsRead: Number(row[1]), memoryBytes: Number(row[2]) };
}

/** Waits until a query that has been sent is running in a reader. */
async function untilReading(at: ServerProcess = server): Promise<Listed> {
  let found: Listed | undefined;
  await until(async () => {
    found = await listed(at);
    return found !== undefined && found.rowsRead > 0;
  });
  if (found === undefined) throw new Error("No query runs");
  return found;
}

async function untilIdle(): Promise<void> {
  await until(async () => (await server.metric("tidemark_readers_busy")) === 0);
  expect(await listed()).toBeUndefined();
}

function post(sql: string, signal?: AbortSignal): Promise<Response> {
  return fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Authorization: `Bearer ${server.token}`,
      Accept: "application/x-ndjson",
    },
    body: JSON.stringify({ sql }),
    ...(signal !== undefined && { signal }),
  });
}

/** The number of lines in a response's head, including the empty line. */
const HEAD_LINES = 9;

/**
 * Starts a client that reads the beginning of a response, and reads the rest only when the test
 * asks for it.
 */
async function slowClient(sql: string): Promise<{ linesToEnd(): Promise<number> }> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  const ended = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let lines = 0;
  socket.on("data", (part: Buffer) => {
    for (let at = part.indexOf(NEWLINE); at >= 0; at = part.indexOf(NEWLINE, at + 1)) lines += 1;
    if (lines > 100) begun.resolve();
  });
  socket.on("end", ended.resolve);
  socket.on("error", ended.reject);
  const body = JSON.stringify({ sql });
  socket.write(
    `POST /v1/api/sql HTTP/1.0\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n` +
      `Authorization: Bearer ${server.token}\r\nAccept: application/x-ndjson\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  await begun.promise;
  socket.pause();
  return {
    async linesToEnd() {
      socket.resume();
      await ended.promise;
      return lines;
    },
  };
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

async function folderOf(table: string): Promise<string> {
  const [[tableId] = []] = await server.rows(
    `SELECT table_id FROM system.tables WHERE table_name = '${table}'`,
  );
  return `segments/${String(tableId)}`;
}

function segmentsIn(folder: string): readonly string[] {
  const path = join(server.dataPath, folder);
  return existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(".seg")) : [];
}

/**
 * Returns the files of a folder that the process has mapped into memory, including files that have
 * been removed.
 */
function mappedOf(folder: string): readonly string[] {
  const maps = readFileSync(`/proc/${server.pid}/maps`, "utf8").split("\n");
  const paths = maps.filter((line) => line.includes(`/${folder}/`));
  return [...new Set(paths.map((line) => line.slice(line.indexOf("/"))))];
}

describe("a long query runs in a reader", () => {
  test(
    "a long query reads one snapshot while transactions run",
    async () => {
      const before = await server.metric("tidemark_queries_in_readers_total");
      let transactions = 0;
      const reading = new AbortController();
      const write = async (): Promise<void> => {
        while (!reading.signal.aborted) {
          transactions += 1;
          const id = (transactions * 7919) % ROW_COUNT;
          await server.rows(
            `BEGIN; UPDATE r.t SET a = a + 3 WHERE id = ${id + 1};` +
              `UPDATE r.t SET b = b + 3 WHERE id = ${ROW_COUNT - id};` +
              "DELETE FROM r.t WHERE id = -1; INSERT INTO r.t VALUES (-1, 0, 0, 'one'); COMMIT",
          );
        }
      };
      const writing = write();
      let last = -1;
      for (let read = 0; read < 8; read += 1) {
        const [[a, b, count, distinct] = []] = await server.rows(SUMS);
        expect(b).toBe(a);
        expect(distinct).toBe(count);
        expect(Number(a)).toBeGreaterThanOrEqual(last);
        last = Number(a);
        if (read === 3) await server.rows("STORAGE FLUSH TABLE r.t");
        if (read === 6) await server.rows("STORAGE COMPACT TABLE r.t");
      }
      reading.abort();
      await writing;
      expect(await server.rows("SELECT sum(a) FROM r.t")).toEqual([[3 * transactions]]);
      expect(await server.metric("tidemark_queries_in_readers_total")).toBeGreaterThanOrEqual(
        before + 5,
      );
      await untilIdle();
    },
    MS_MAX,
  );

  test(
    "EXPLAIN ANALYZE measures a long query in its reader",
    async () => {
      const lines = (await server.rows(`EXPLAIN ANALYZE ${SUMS}`)).flat().map(String);
      expect(lines.find((line) => line.includes("Aggregate"))).toInclude("rows: 1;");
      expect(lines.at(-1)).toMatch(/^Readers: 1 {2}\(ms: \d+\.\d{3}/);
    },
    MS_MAX,
  );

  testThoroughly(
    "a long query waits for a reader, but not for all queries before it",
    async () => {
      const token = await server.createUser("greedy", "dba");
      const killing = Array.from({ length: 12 }, () => server.sql(ENDLESS, { token }));
      const waiting =
        "SELECT count(*) FROM system.queries WHERE user_id = 'greedy' AND state = 'waiting'";
      await until(async () => (await server.rows(waiting))[0]?.[0] === 10);
      expect(await server.metric("tidemark_statements_waiting")).toBe(10);
      const sums = server.sql(SUMS, { fields: { timeout_ms: 120_000 } });
      await until(async () => (await server.metric("tidemark_statements_waiting")) === 11);
      const running =
        "SELECT query_id FROM system.queries WHERE user_id = 'greedy' AND state = 'running'";
      await server.rows(`KILL QUERY '${String((await server.rows(running))[0]?.[0])}'`);
      // One of the twelve queries ends while others, which were sent earlier, are still waiting.
      expect((await sums).body.status).toBe("success");
      await server.rows("DROP USER greedy");
      for (const { body } of await Promise.all(killing))
        expect(body.error?.reason).toBe("cancelled");
      await untilIdle();
    },
    MS_MAX,
  );

  test(
    "a long query is listed with its rows and memory, and ends after KILL QUERY",
    async () => {
      const running = server.sql(
        "SELECT count(*) FROM (SELECT DISTINCT x.id, y.id AS other FROM r.t x, r.t y) AS d",
      );
      let found: Listed | undefined;
      await until(async () => {
        found = await listed();
        return found !== undefined && found.rowsRead > 0 && found.memoryBytes > 100_000;
      });
      await server.rows(`KILL QUERY '${found?.queryId ?? ""}'`);
      const { body } = await running;
      expect([body.error?.code, body.error?.reason]).toEqual(["SQL_EXECUTION_ERROR", "cancelled"]);
      await untilIdle();
    },
    MS_MAX,
  );

  test(
    "a long query ends at its time limit",
    async () => {
      const { body, status } = await server.sql(ENDLESS, { fields: { timeout_ms: 300 } });
      expect([status, body.error?.code]).toEqual([400, "QUERY_TIMEOUT"]);
      await untilIdle();
    },
    MS_MAX,
  );

  testThoroughly(
    "a long query ends when its user is dropped",
    async () => {
      const token = await server.createUser("leaving", "dba");
      const running = server.sql(ENDLESS, { token });
      await untilReading();
      await server.rows("DROP USER leaving");
      const { body } = await running;
      expect(body.status).toBe("error");
      await untilIdle();
    },
    MS_MAX,
  );

  testThoroughly(
    "a long query ends when its client disconnects in the middle of the response",
    async () => {
      const leaving = new AbortController();
      const answer = await post("SELECT id, repeat(s, 400) FROM r.t", leaving.signal);
      const reader = answer.body?.getReader();
      await reader?.read();
      // The server's own work may occupy the other reader for a moment.
      await until(async () => (await server.metric("tidemark_readers_busy")) === 1);
      leaving.abort();
      await untilIdle();
      // The reader must stay in use to the end, because the runtime disconnects once the response
      // has been garbage-collected.
      const end = reader?.closed.then(
        () => "whole",
        () => "left",
      );
      expect(await end).toBe("left");
    },
    MS_MAX,
  );

  testThoroughly(
    "a long query waits for a client that reads slowly, and uses little memory meanwhile",
    async () => {
      // Warms up both readers.
      await Promise.all([server.rows(SUMS), server.rows(SUMS)]);
      const before = residentBytes();
      const client = await slowClient("SELECT id, repeat(s, 250) FROM r.t");
      // Meanwhile, other queries run for so long that the server could have produced the complete
      // result.
      for (let read = 0; read < 12; read += 1) {
        const [[a, b] = []] = await server.rows(SUMS);
        expect(b).toBe(a);
        // The result is larger than 250 MB.
        expect(residentBytes() - before).toBeLessThan(200_000_000);
      }
      await until(async () => (await server.metric("tidemark_readers_busy")) === 1);
      const [[count] = []] = await server.rows("SELECT count(*) FROM r.t");
      expect(await client.linesToEnd()).toBe(HEAD_LINES + Number(count) + 2);
      await untilIdle();
    },
    MS_MAX,
  );
});

describe("a reader asks the event loop for data that only the event loop has", () => {
  /** Statements that take longer than their first time slice, with their results. */
  test.each([
    [
      "rows that a transaction has staged",
      `BEGIN; INSERT INTO r.t SELECT g, 0, 0, 'staged ' || g FROM generate_series(-3000, -2) AS x(g);
        SELECT count(*), count(DISTINCT s) FROM r.t WHERE id < -1 OR s LIKE '%staged%' OR length(repeat(s, 20)) < 0;
        ROLLBACK`,
      [[2999, 2999]],
    ],
    [
      "rows of a system view",
      `SELECT count(*) > 20000, bool_and(a.category IS NOT NULL)
        FROM system.settings a, system.settings b, generate_series(1, 20) c(n) WHERE a.name <> b.name || c.n`,
      [[true, true]],
    ],
    [
      "ids",
      "SELECT count(DISTINCT snowflake_id()) - count(*), min(snowflake_id()) > 0 FROM r.t",
      [[0, true]],
    ],
  ] as const)(
    "%s",
    async (_, sql, rows) => {
      const before = await server.metric("tidemark_queries_in_readers_total");
      const { body } = await server.sql(sql);
      expect(body.error).toBeUndefined();
      const [told] = body.results.flatMap(({ rows: some = [] }) => (some.length > 0 ? [some] : []));
      expect(told).toEqual(rows.map((row) => [...row]));
      expect(await server.metric("tidemark_queries_in_readers_total")).toBeGreaterThan(before);
      await untilIdle();
    },
    MS_MAX,
  );

  test.each([
    `BEGIN; INSERT INTO r.t SELECT g, 0, 0, 'x' FROM generate_series(-3000, -2) AS x(g); ${ENDLESS}; ROLLBACK`,
    "SELECT count(*) FROM system.settings a, system.settings b, system.settings c, system.settings d WHERE a.name = b.name || c.name || d.name",
    "SELECT (SELECT count(*) FROM system.settings s WHERE s.name > x.s || snowflake_id()) FROM r.t x, r.t y",
  ])(
    "and is ended by KILL QUERY: %s",
    async (sql) => {
      const before = await server.metric("tidemark_queries_in_readers_total");
      const running = server.sql(sql);
      await until(async () => (await server.metric("tidemark_queries_in_readers_total")) > before);
      const [[queryId] = []] = await server.rows(
        "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.queries%'",
      );
      await server.rows(`KILL QUERY '${String(queryId)}'`);
      expect((await running).body.error).toMatchObject({ reason: "cancelled" });
      await until(async () => (await server.metric("tidemark_readers_busy")) === 0);
    },
    MS_MAX,
  );
});

describe("a long query that sleeps does so in its reader, without blocking the event loop", () => {
  const SLEEPING = "SELECT count(DISTINCT s) > 0, pg_sleep(3000) FROM r.t";

  test(
    "a query in a reader sleeps for its time, as often as requested",
    async () => {
      const before = await server.metric("tidemark_queries_in_readers_total");
      const sinceMs = performance.now();
      expect(
        await server.rows("SELECT count(DISTINCT s) > 0, pg_sleep(0.2), pg_sleep(0.1) FROM r.t"),
      ).toEqual([[true, "", ""]]);
      expect(performance.now() - sinceMs).toBeGreaterThanOrEqual(300);
      // The query is short, but it is restarted so often that it moves to a reader.
      expect(
        await server.rows("SELECT count(pg_sleep(0.0001)) FROM generate_series(1, 3000)"),
      ).toEqual([[3000]]);
      const after = await server.metric("tidemark_queries_in_readers_total");
      expect(after).toBeGreaterThanOrEqual(before + 2);
      await untilIdle();
    },
    MS_MAX,
  );

  testThoroughly(
    "a sleeping query ends after KILL QUERY or at its time limit",
    async () => {
      const running = server.sql(SLEEPING);
      const { queryId } = await untilReading();
      await until(async () => (await server.metric("tidemark_readers_busy")) === 1);
      await server.rows(`KILL QUERY '${queryId}'`);
      expect((await running).body.error).toMatchObject({ reason: "cancelled" });
      await untilIdle();
      const { body } = await server.sql(SLEEPING, { fields: { timeout_ms: 400 } });
      expect(body.error?.code).toBe("QUERY_TIMEOUT");
      await untilIdle();
    },
    MS_MAX,
  );
});

describe("clients that keep readers waiting do not block other clients", () => {
  /** A query with a result of 40 MB, far more than sockets and queues can hold. */
  const ANSWER = "SELECT id, repeat(s, 40) FROM r.t";

  testThoroughly(
    "clients that read slowly leave the other readers free",
    async () => {
      const clients = await Promise.all([slowClient(ANSWER), slowClient(ANSWER)]);
      const [[a, b] = []] = await server.rows(SUMS);
      expect(b).toBe(a);
      const [[count] = []] = await server.rows("SELECT count(*) FROM r.t");
      for (const client of clients) {
        expect(await client.linesToEnd()).toBe(HEAD_LINES + Number(count) + 2);
      }
      await untilIdle();
      // Surplus readers, which were opened as replacements, are closed again.
      expect(await server.metric("tidemark_readers_open")).toBeLessThanOrEqual(3);
    },
    MS_MAX,
  );

  testThoroughly(
    "clients that read slowly may occupy all readers only for a while",
    async () => {
      const clients = await Promise.all([1, 2, 3, 4].map(() => slowClient(ANSWER)));
      const [[a, b] = []] = await server.rows(SUMS);
      expect(b).toBe(a);
      const [[count] = []] = await server.rows("SELECT count(*) FROM r.t");
      const lines = await Promise.all(clients.map((client) => client.linesToEnd()));
      const whole = HEAD_LINES + Number(count) + 2;
      expect(lines.filter((each) => each < whole)).toHaveLength(1);
      expect(lines.filter((each) => each === whole)).toHaveLength(3);
      await untilIdle();
    },
    MS_MAX,
  );
});

describe("the files that a reader has read are removed", () => {
  testThoroughly(
    "the files of a table that is dropped while a reader reads them are removed afterwards",
    async () => {
      await fill(server, "gone");
      await server.rows("STORAGE FLUSH TABLE r.gone");
      const folder = await folderOf("gone");
      expect(segmentsIn(folder)).not.toEqual([]);
      const running = server.sql("SELECT count(*) FROM r.gone x, r.gone y WHERE x.a + y.b = 1");
      const { queryId } = await untilReading();
      await server.rows("DROP TABLE r.gone");
      expect(mappedOf(folder)).not.toEqual([]);
      await server.rows(`KILL QUERY '${queryId}'`);
      expect((await running).body.error).toMatchObject({ reason: "cancelled" });
      await until(() => segmentsIn(folder).length === 0 && mappedOf(folder).length === 0);
    },
    MS_MAX,
  );

  testThoroughly(
    "the files that a merge replaces while a reader reads them are removed afterwards",
    async () => {
      const folder = await folderOf("t");
      await server.rows("UPDATE r.t SET s = s || '!' WHERE id % 50 = 1; STORAGE FLUSH TABLE r.t");
      const replaced = segmentsIn(folder);
      expect(replaced.length).toBeGreaterThan(1);
      const running = server.sql(ENDLESS);
      const { queryId } = await untilReading();
      await server.rows("STORAGE COMPACT TABLE r.t");
      expect(mappedOf(folder)).not.toEqual([]);
      await server.rows(`KILL QUERY '${queryId}'`);
      await running;
      // The segment of current versions and the segment of history remain. A background merge may
      // have created another segment, which has been replaced since.
      await until(() => segmentsIn(folder).length === 2);
      expect(segmentsIn(folder).filter((name) => replaced.includes(name))).toEqual([]);
      await until(() =>
        mappedOf(folder).every((path) => replaced.every((name) => !path.endsWith(`/${name}`))),
      );
      expect((await server.rows(SUMS))[0]?.[2]).toBe((await server.rows(SUMS))[0]?.[3]);
    },
    MS_MAX,
  );
});

testThoroughly(
  "a server that stops ends the query of a busy reader",
  async () => {
    await using own = await started();
    const running = own.sql(ENDLESS);
    await untilReading(own);
    own.kill("SIGTERM");
    const { body } = await running;
    expect(body.error?.code).toBe("SHUTTING_DOWN");
    expect(await own.exited()).toBe(0);
  },
  MS_MAX,
);

testThoroughly(
  "a long query waits while other statements use all the statement memory",
  async () => {
    const mib = 2 ** 20;
    await using own = await started({
      query_memory_bytes: 64 * mib,
      total_query_memory_bytes: 16 * mib,
    });
    const sums = await own.rows(SUMS);
    const holding = own.sql(
      "SELECT count(*) FROM (SELECT DISTINCT x.id, y.id AS other FROM r.t x, r.t y) AS d",
      { fields: { timeout_ms: 600_000 } },
    );
    let holder: Listed | undefined;
    await until(async () => {
      holder = await listed(own);
      return (holder?.memoryBytes ?? 0) > 16 * mib;
    });
    // The tenant's server has a reader and a memory limit of its own.
    const { body } = await own.sql(SUMS, { fields: { timeout_ms: 500 } });
    expect(body.error?.code).toBe("QUERY_TIMEOUT");
    // Short statements need no reader, so they do not wait.
    expect(await own.rows("SELECT id FROM r.t WHERE id = 7")).toEqual([[7]]);
    const waiting = own.sql(SUMS, { fields: { timeout_ms: 600_000 } });
    await until(async () => {
      const rows = await own.rows("SELECT rows_read FROM system.queries WHERE sql LIKE '%sum(a)%'");
      return rows.length > 0;
    });
    await own.rows(`KILL QUERY '${holder?.queryId ?? ""}'`);
    expect((await holding).body.error?.reason).toBe("cancelled");
    expect((await waiting).body.results[0]?.rows).toEqual(sums);
  },
  MS_MAX,
);
