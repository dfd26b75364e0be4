/**
 * Verifies that a server stays within its configured memory: its budgets, as shown by
 * `system.memory`, `system.settings` and `/metrics`, and the refusals for lack of memory.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ANSWERS_PER_READER, readLongAnswers } from "../../scripts/bench/soak/long_answers.ts";
import { linuxMissing, testThoroughly, testUnless } from "../support/requirements.ts";
import { type Run, runCommandToEnd } from "../support/run_to_end.ts";
import {
  AS_FOR_USERS,
  type ServerProcess,
  serverCommand,
  startReadyServer,
} from "../support/server_process.ts";
import { amountOf, onlyThorough } from "../support/thoroughness.ts";

const MIB = 1024 ** 2;

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({
    config: { performance: { memory_bytes: 256 * MIB } },
    env: AS_FOR_USERS,
  });
});

afterAll(async () => {
  await server.stop();
});

/** The memory that each part of the server may use, in MiB. */
const ALLOWED: Readonly<Record<string, number>> = {
  resident: 256,
  statements: 26,
  memtables: 20,
  chunk_cache: 10,
  reader_caches: 5,
  bodies: 30,
  messages: 16,
  send_queues: 5,
  plans: 5,
};

test("system.memory and /metrics list each part with its share", async () => {
  const rows = await server.rows("SELECT part, used_bytes, allowed_bytes FROM system.memory");
  const allowed = rows.flatMap(([part, , bytes]) =>
    bytes === null ? [] : [[String(part), Number(bytes) / MIB]],
  );
  expect(Object.fromEntries(allowed)).toEqual(ALLOWED);
  const used = new Map(rows.map(([part, bytes]) => [String(part), Number(bytes)]));
  for (const part of ["resident", "files", "plans", "heap_live", "rest"]) {
    expect(used.get(part), part).toBeGreaterThan(0);
  }
  const answer = await server.get("/metrics", { Authorization: `Bearer ${server.token}` });
  const text = await answer.text();
  for (const [part, mib] of Object.entries(ALLOWED)) {
    expect(text).toContain(`tidemark_memory_allowed_bytes{part="${part}"} ${mib * MIB}\n`);
  }
  for (const part of used.keys()) {
    expect(text).toMatch(new RegExp(`^tidemark_memory_bytes\\{part="${part}"\\} \\d+$`, "m"));
  }
});

testThoroughly("system.memory lists the heaps of threads after they have worked", async () => {
  const heaps = async (): Promise<readonly number[]> => {
    const rows = await server.rows(
      "SELECT used_bytes FROM system.memory WHERE part IN ('reader_heaps', 'segment_thread_heaps') ORDER BY part",
    );
    return rows.map(([bytes]) => Number(bytes));
  };
  expect((await heaps())[1]).toBe(0);
  // The query takes too long for the event loop, so a reader thread runs it.
  await server.rows("SELECT count(*) FROM generate_series(1, 3000000) AS g(x) WHERE x % 3 = 1");
  expect((await heaps())[0]).toBeGreaterThan(1_000_000);
  await server.sql("CREATE NAMESPACE flushed; CREATE SHARED TABLE flushed.t (id INT PRIMARY KEY)");
  await server.sql("INSERT INTO flushed.t SELECT x FROM generate_series(1, 1000) AS g(x)");
  await server.sql("STORAGE FLUSH TABLE flushed.t");
  expect((await heaps())[1]).toBeGreaterThan(0);
});

test("system.settings shows the values of computed defaults", async () => {
  const rows = await server.rows(
    "SELECT name, value, source FROM system.settings WHERE name IN ('performance.memory_bytes', 'storage.cache_bytes') ORDER BY 1",
  );
  expect(rows).toEqual([
    ["performance.memory_bytes", String(256 * MIB), "file"],
    ["storage.cache_bytes", String(10 * MIB), "default"],
  ]);
});

/** Statements that need more memory than is available, with the errors that they should get. */
const TOO_LARGE: readonly (readonly [what: string, sql: string, expected: object])[] = [
  [
    "row",
    "INSERT INTO app.held SELECT 1, repeat('\u20ac', 1000000)",
    {
      reason: "row_too_large",
      message: "Statement 1: Cannot store a row of 3000008 bytes: the maximum is 2097152",
      hint: "put long values into columns of type FILE, or raise limits.max_row_bytes",
    },
  ],
  [
    "value of a result",
    "SELECT string_agg(repeat('x', 1000), '') FROM generate_series(1, 100000) AS g(x)",
    {
      reason: "memory",
      message: `Statement 1: Cannot run the statement: it needs more than ${20 * MIB} bytes of memory`,
      hint: "read fewer rows, or raise performance.query_memory_bytes",
    },
  ],
  [
    "change",
    "INSERT INTO app.held SELECT x, repeat('x', 1000) FROM generate_series(1, 100000) AS g(x)",
    {
      reason: "memory",
      message: `Statement 1: Cannot run the statement: it needs more than ${20 * MIB} bytes of memory`,
      hint: "read fewer rows, or raise performance.query_memory_bytes",
    },
  ],
  [
    "transaction",
    `BEGIN; ${[1, 2, 3]
      .map(
        (part) =>
          `INSERT INTO app.held SELECT ${part} * 10000 + x, repeat('x', 1000) FROM generate_series(1, 4000) AS g(x)`,
      )
      .join("; ")}; COMMIT`,
    {
      reason: "transaction_limit",
      message: `Statement 3: Cannot continue the transaction: its changes take more than ${10 * MIB} bytes`,
      hint: "split the transaction, or raise limits.transaction_max_bytes",
    },
  ],
];

test.each(TOO_LARGE)(
  "a %s too large for the memory is refused with helpful advice",
  async (_what, sql, expected) => {
    await server.sql(
      "CREATE NAMESPACE IF NOT EXISTS app; CREATE SHARED TABLE IF NOT EXISTS app.held (id BIGINT PRIMARY KEY, text TEXT)",
    );
    const { body } = await server.sql(sql);
    expect(body.error).toMatchObject({ code: "SQL_EXECUTION_ERROR", ...expected });
    // The statement must leave nothing behind, and the server must continue.
    expect(await server.rows("SELECT count(*) FROM app.held")).toEqual([[0]]);
  },
);

test("a body too large for the memory is refused, and the error contains the limit", async () => {
  const answer = await server.post(
    "/v1/api/sql",
    { sql: "SELECT $1", params: ["x".repeat(6 * MIB)] },
    { Authorization: `Bearer ${server.token}` },
  );
  expect(answer.status).toBe(413);
  const body = await answer.json();
  expect(body).toMatchObject({ error: { code: "BODY_TOO_LARGE", max_bytes: 5 * MIB } });
});

test("a result larger than the memory is sent while it is produced", async () => {
  const answer = await server.post(
    "/v1/api/sql",
    { sql: "SELECT repeat('x', 1000000) FROM generate_series(1, 60) AS g(x)" },
    { Authorization: `Bearer ${server.token}`, Accept: "application/x-ndjson" },
  );
  let bytes = 0;
  for await (const part of answer.body ?? []) bytes += part.length;
  expect(bytes).toBeGreaterThan(60_000_000);
});

testUnless(onlyThorough ?? linuxMissing)(
  "answers that are read fast, several at a time, leave a server with 256 MiB alive",
  async () => {
    const atOnce = 4;
    const { codes, completeCount, isAlive } = await readLongAnswers({
      answerBytes: amountOf({ usual: 20_000_000, thorough: 100_000_000 }),
      atOnce,
      limitBytes: 256 * MIB,
    });
    expect(isAlive).toBe(true);
    expect(completeCount + codes.length).toBe(atOnce * ANSWERS_PER_READER);
    // A response may be refused for lack of memory, but never truncated.
    expect(codes.filter((code) => code !== "SQL_EXECUTION_ERROR")).toEqual([]);
  },
  180_000,
);

/** Runs the server with a configuration until it exits. */
async function runWith(toml: string, wrapper: readonly string[] = []): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-memory-"));
  try {
    const path = join(folder, "config.toml");
    writeFileSync(path, `${toml}\nstorage.data_path = ${JSON.stringify(join(folder, "data"))}`);
    const env = { PATH: process.env["PATH"] ?? "" };
    return await runCommandToEnd([...wrapper, ...serverCommand(), path], env);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("less memory than startup needs stops the server, with the figure", async () => {
  const { code, stderr } = await runWith(`performance.memory_bytes = ${128 * MIB}`);
  expect(stderr).toMatch(
    /^Cannot start Tidemark:\n\S+: performance.memory_bytes is 134217728, but must be at least 201326592, or 0 to detect the limit\n$/,
  );
  expect(code).toBe(1);
});

testUnless(linuxMissing)("too little address space stops startup, with the figure", async () => {
  const { code, stderr } = await runWith("", ["bash", "-c", 'ulimit -v 570000; exec "$@"', "bash"]);
  expect(stderr).toMatch(
    /: the process may use only \d+ bytes of memory, according to the limit on the address space, 583680000, but needs at least 201326592: raise that limit\n$/,
  );
  expect(code).toBe(1);
});
