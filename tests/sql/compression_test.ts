/**
 * Tests the table option COMPRESSION: the segments that are packed, and how they are listed. No
 * query result depends on the option.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
});
afterAll(() => engine[Symbol.asyncDispose]());

/**
 * Long, distinct strings that compress to less than half their size, and NULL in every fifth row.
 */
const BODY = `CASE WHEN n % 5 = 4 THEN NULL
  ELSE repeat('the tide turns at ' || n || ' and ', 8) || md5(n::text) END`;

async function fill(table: string, from: number, to: number): Promise<void> {
  await engine.run(
    `INSERT INTO ${table} SELECT n, n % 100, ${BODY} FROM generate_series(${from}, ${to}) AS s(n)`,
  );
  // A STREAM table is flushed automatically, and no statement can flush it.
  const { catalog, store } = engine.database;
  await store.flush(catalog.table("app", table.replace("app.", ""))?.tableId ?? 0);
}

/**
 * Returns the compression of each segment with current rows of a table, in order, as reported by
 * both the system view and the manifest.
 */
async function compressionOf(name: string): Promise<unknown[]> {
  const where = `namespace_id = 'app' AND table_name = '${name}'`;
  const rows = await engine.rows(
    `SELECT compression FROM system.segments WHERE ${where} AND kind = 'current' ORDER BY min_seq`,
  );
  const [[manifest] = []] = await engine.rows(
    `SELECT manifest_json FROM system.manifest WHERE ${where}`,
  );
  const { segments } = JSON.parse(String(manifest)) as {
    segments: { compression: string; kind: string }[];
  };
  const current = segments.filter(({ kind }) => kind === "current");
  expect(current.map(({ compression }) => [compression])).toEqual(rows as string[][]);
  return rows.flat();
}

async function bytesOf(name: string): Promise<number> {
  const [row = []] = await engine.rows(`SHOW STATS FOR TABLE app.${name}`);
  return Number(row[6]);
}

test("each table is packed according to its option, which is auto by default, and a stream is never packed", async () => {
  const columns = "(id INT PRIMARY KEY, k INT, body TEXT)";
  await engine.run(`CREATE TABLE app.plain ${columns} WITH (COMPRESSION = 'none')`);
  await engine.run(`CREATE TABLE app.usual ${columns}`);
  await engine.run(`CREATE TABLE app.whole ${columns} WITH (compression = 'ZSTD')`);
  await engine.run(`CREATE STREAM TABLE app.stream ${columns} WITH (TTL_SECONDS = 3600)`);
  const answers: unknown[] = [];
  for (const name of ["plain", "usual", "whole", "stream"]) {
    await fill(`app.${name}`, 1, 3000);
    answers.push([
      await engine.rows(`SELECT id, k, body FROM app.${name} ORDER BY id`),
      await engine.rows(
        `SELECT k, count(*), count(body), min(body), max(length(body)) FROM app.${name}
         WHERE body LIKE '%2 and%' OR id = 77 GROUP BY k ORDER BY k`,
      ),
      await engine.rows(`SELECT body FROM app.${name} WHERE id = 1234`),
      await engine.rows(`SELECT count(*) FROM app.${name} WHERE k = 200 AND body IS NULL`),
    ]);
  }
  const [first] = answers;
  expect(answers).toEqual([first, first, first, first]);
  expect(await compressionOf("plain")).toEqual(["none"]);
  expect(await compressionOf("usual")).toEqual(["zstd"]);
  expect(await compressionOf("whole")).toEqual(["zstd"]);
  expect(await compressionOf("stream")).toEqual(["none"]);
  expect(await bytesOf("usual")).toBeLessThan((await bytesOf("plain")) * 0.5);
  expect(await bytesOf("whole")).toBeLessThan(await bytesOf("usual"));
  expect(await engine.failure("ALTER TABLE app.stream SET (COMPRESSION = 'zstd')")).toStartWith(
    "INVALID_OPTION",
  );
});

test("auto leaves short text and small segments uncompressed", async () => {
  await engine.run("CREATE TABLE app.short (id INT PRIMARY KEY, word TEXT)");
  await engine.run(
    "INSERT INTO app.short SELECT n, 'word number ' || n FROM generate_series(1, 20000) AS s(n);" +
      "STORAGE FLUSH TABLE app.short",
  );
  await engine.run("CREATE TABLE app.small (id INT PRIMARY KEY, k INT, body TEXT)");
  await fill("app.small", 1, 100);
  expect(await compressionOf("short")).toEqual(["none"]);
  expect(await compressionOf("small")).toEqual(["none"]);
});

test("a changed option applies to segments written later, and a merge makes all segments alike", async () => {
  await engine.run("CREATE USER TABLE app.changing (id INT PRIMARY KEY, k INT, body TEXT)");
  await fill("app.changing", 1, 2000);
  await engine.run("ALTER TABLE app.changing SET (COMPRESSION = 'none')");
  await fill("app.changing", 2001, 4000);
  await engine.run("ALTER TABLE app.changing SET (COMPRESSION = 'zstd')");
  await fill("app.changing", 4001, 4100);
  await engine.run("ALTER TABLE app.changing RESET (COMPRESSION)");
  await fill("app.changing", 4101, 4200);
  expect(await compressionOf("changing")).toEqual(["zstd", "none", "zstd", "none"]);
  await engine.run("UPDATE app.changing SET body = 'replaced' WHERE id % 1000 = 7");
  await engine.run("DELETE FROM app.changing WHERE id % 1000 = 8");
  const all = async (): Promise<unknown> => [
    await engine.rows("SELECT id, k, body FROM app.changing ORDER BY id"),
    await engine.rows("SELECT count(*) FROM app.changing WHERE body LIKE 'replaced%'"),
  ];
  const before = await all();
  await engine.run("ALTER TABLE app.changing SET (COMPRESSION = 'none')");
  await engine.run("STORAGE FLUSH TABLE app.changing; STORAGE COMPACT TABLE app.changing");
  expect(await compressionOf("changing")).toEqual(["none"]);
  expect(await all()).toEqual(before);
  const plainBytes = await bytesOf("changing");
  await engine.run("ALTER TABLE app.changing SET (COMPRESSION = 'auto')");
  await fill("app.changing", 5001, 5002);
  await engine.run("STORAGE COMPACT TABLE app.changing");
  expect(await compressionOf("changing")).toEqual(["zstd"]);
  expect(await bytesOf("changing")).toBeLessThan(plainBytes * 0.6);
  await engine.run("DELETE FROM app.changing WHERE id > 5000");
  expect(await all()).toEqual(before);
  await engine.restart();
  expect(await compressionOf("changing")).toEqual(["zstd"]);
  expect(await all()).toEqual(before);
});

testThoroughly(
  "packed text that a filter never reads stays packed, and so do pruned row groups",
  async () => {
    await engine.run(
      "CREATE TABLE app.groups (id INT PRIMARY KEY, k INT, body TEXT) WITH (COMPRESSION = 'auto')",
    );
    await fill("app.groups", 1, 70_000);
    expect(await compressionOf("groups")).toEqual(["zstd"]);
    const plan = await engine.rows(
      "EXPLAIN (ANALYZE, FORMAT JSON) SELECT body FROM app.groups WHERE id > 69999",
    );
    expect(String(plan[0]?.[0])).toContain('"segments_pruned":2');
    const [[body] = []] = await engine.rows("SELECT body FROM app.groups WHERE id = 70000");
    expect(String(body)).toStartWith("the tide turns at 70000 and ");
    // Columns get wider types while their strings stay packed.
    await engine.run("ALTER TABLE app.groups MODIFY COLUMN id BIGINT NOT NULL");
    expect(await engine.rows("SELECT count(body) FROM app.groups WHERE k < 10")).toEqual([
      [7000 - 1400],
    ]);
  },
);
