/** Tests the limits of text search. The expected results are in `cases/text_search.slt`. */
import { expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

async function refusal(engine: TestEngine, sql: string, params: string[] = []): Promise<string> {
  const { error } = await engine.ask(sql, { params });
  return `${error?.code}: ${error?.message}`;
}

test("a word too long for a tsvector is omitted from documents, and refused as a value", async () => {
  await using engine = await TestEngine.open();
  const rows = await engine.rows("SELECT to_tsvector('simple', $1)::text", {
    params: [`cat ${"x".repeat(2047)} ${"y".repeat(2046)}`],
  });
  expect(rows).toEqual([[`'cat':1 '${"y".repeat(2046)}':2`]]);
  expect(await refusal(engine, "SELECT $1::tsvector", ["x".repeat(2047)])).toContain(
    "it is 2047 bytes long, but the maximum is 2046",
  );
});

test("a document has at most 255 positions for each word, and none above 16383", async () => {
  await using engine = await TestEngine.open();
  const rows = await engine.rows(
    "SELECT length(v), array_length(string_to_array(v::text, ','), 1) FROM (SELECT to_tsvector('simple', repeat('cat ', 20000)) v) t",
  );
  expect(rows).toEqual([[1, 255]]);
  expect(await engine.rows("SELECT ('a:16000'::tsvector || 'b:16000'::tsvector)::text")).toEqual([
    ["'a':16000 'b':16383"],
  ]);
});

test("a document with more than a megabyte of words is refused, and nothing is written", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v TSVECTOR)");
  const sql =
    "INSERT INTO t SELECT 1, to_tsvector('simple', string_agg(md5(n::text), ' ')) FROM generate_series(1, 34000) n";
  expect(await refusal(engine, sql)).toStartWith("VALUE_TOO_LONG: Cannot create the tsvector");
  expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[0]]);
});

test("a query that is nested too deeply is refused", async () => {
  await using engine = await TestEngine.open();
  const query = `${"(".repeat(300)}a${")".repeat(300)}`;
  expect(await refusal(engine, `SELECT '${query}'::tsquery`)).toStartWith(
    "INVALID_SQL: Cannot read ",
  );
});

test.each([
  "SELECT word_similarity(string_agg('a' || n, ' '), string_agg('a' || n, ' ')) FROM generate_series(1, 4000) n",
  "SELECT ts_rank(to_tsvector('simple', repeat('a b c d e f g h i j k l m n o p q r s t u v w x y z aa bb cc dd ee ff gg hh ii jj ', 300)), 'a & b & c & d & e & f & g & h & i & j & k & l & m & n & o & p & q & r & s & t & u & v & w & x & y & z & aa & bb & cc & dd & ee & ff & gg & hh & ii & jj'::tsquery)",
])("a comparison that takes too many steps is refused: case %#", async (sql) => {
  await using engine = await TestEngine.open();
  expect(await refusal(engine, sql)).toStartWith(
    "LIMIT_EXCEEDED: Cannot search the text: comparing the words requires more than 4194304 steps",
  );
});

test("a document in a table survives a flush and is searched in a segment", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE a (id INT PRIMARY KEY, body TEXT, words TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)",
  );
  await engine.run(
    "INSERT INTO a (id, body) SELECT n, 'cats ' || n FROM generate_series(1, 300) n",
  );
  await engine.run("STORAGE FLUSH TABLE a");
  const sql = "SELECT id FROM a WHERE words @@ to_tsquery('english', 'cat & 77')";
  expect(await engine.rows(sql)).toEqual([[77]]);
  expect(await engine.rows("SELECT words::text FROM a WHERE id = 3")).toEqual([["'3':2 'cat':1"]]);
});
