/**
 * Tests aspects of XML other than results: limits against hostile documents and paths, storage,
 * copies, other threads and parameters. The expected results are in `cases/xml.slt`.
 */
import { expect, test } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

async function refusal(engine: TestEngine, sql: string, params: string[] = []): Promise<string> {
  const { error } = await engine.ask(sql, { params });
  return `${error?.code}: ${error?.message}`;
}

test("entities that a DOCTYPE declares are never expanded", async () => {
  await using engine = await TestEngine.open();
  const declared = Array.from(
    { length: 20 },
    (_, at) => `<!ENTITY e${at + 1} "&e${at};&e${at};&e${at};&e${at};">`,
  );
  const bomb = `<!DOCTYPE a [<!ENTITY e0 "ha">${declared.join("")}]><a>&e20;</a>`;
  const outside = '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>';
  for (const text of [bomb, outside]) {
    expect(await engine.rows("SELECT $1::xml", { params: [text] })).toEqual([[text]]);
    expect(await refusal(engine, "SELECT xpath('/a', $1::xml)", [text])).toMatch(
      /^UNSUPPORTED_FEATURE: .* entities that a DOCTYPE declares are never expanded$/,
    );
    const table = "SELECT * FROM XMLTABLE('/a' PASSING $1::xml COLUMNS a TEXT PATH '.')";
    expect(await refusal(engine, table, [text])).toStartWith("UNSUPPORTED_FEATURE: ");
  }
});

test.each([
  ["<a>".repeat(257) + "</a>".repeat(257), "elements are nested more than 256 levels deep"],
  ["<a>".repeat(150_000), "elements are nested more than 256 levels deep"],
  ["<".repeat(200_000), "a name is missing"],
  [`<a ${'x="1" '.repeat(50_000)}/>`, 'attribute "x" is repeated'],
  [`<!-- ${"- ".repeat(100_000)}`, "a comment is not closed"],
  ["<?a".repeat(100_000), "a processing instruction is not closed"],
  [`&${"a".repeat(200_000)}`, "a reference is malformed"],
])("a hostile text is refused: case %#", async (text, why) => {
  await using engine = await TestEngine.open();
  const found = await refusal(engine, "SELECT $1::xml", [text]);
  expect(found).toStartWith("INVALID_VALUE: Cannot read ");
  expect(found).toContain(why);
  expect(found.length).toBeLessThan(400);
});

test("elements nest 256 deep, and are read at that depth", async () => {
  await using engine = await TestEngine.open();
  const text = "<a>".repeat(256) + "</a>".repeat(256);
  expect(
    await engine.rows("SELECT xpath('count(//a)', $1::xml), xpath('/a/a', $1)::text", {
      params: [text],
    }),
  ).toEqual([[["256"], `{${"<a>".repeat(254)}<a/>${"</a>".repeat(254)}}`]]);
});

const HARD_PATHS = [
  ["//a[//a]", "evaluation requires more than 8388608 steps"],
  ["//a[preceding::a = following::a]", "evaluation requires more than 8388608 steps"],
  ["//a = //a/@id", "evaluation requires more than 8388608 steps"],
  [`${"(".repeat(5000)}1${")".repeat(5000)}`, "it has more than 1000 parts"],
  [`1${"+1".repeat(50_000)}`, "it has more than 1000 parts"],
  [`//a${"[1]".repeat(5000)}`, "it has more than 1000 parts"],
] as const;

test.each(shareOf(HARD_PATHS, { oneOf: 3 }))(
  "a path that takes too much work is refused: %.40s",
  async (path, why) => {
    await using engine = await TestEngine.open();
    const found = await refusal(
      engine,
      "SELECT xpath($1, xmlelement(name r, xmlagg(xmlelement(name a, xmlattributes('x' AS id), g)))) FROM generate_series(1, 20000) g",
      [path],
    );
    expect(found).toStartWith("LIMIT_EXCEEDED: Cannot evaluate the XPath");
    expect(found).toContain(why);
  },
);

testThoroughly(
  "a document with too many nodes for a path is stored, but not searched",
  async () => {
    await using engine = await TestEngine.open();
    const document = "string_agg(part, '')::xml";
    const source =
      "FROM (VALUES ('<r>'), (repeat('<a/>', 524288)), (repeat('<a/>', 524288)), ('</r>')) AS v(part)";
    expect(await engine.rows(`SELECT length(${document}::text) ${source}`)).toEqual([[4_194_311]]);
    expect(await refusal(engine, `SELECT xpath('/r', ${document}) ${source}`)).toStartWith(
      "LIMIT_EXCEEDED: Cannot evaluate a path in the XML document: it has more than 1048576 nodes",
    );
  },
);

test("XML made in a query is limited in length", async () => {
  await using engine = await TestEngine.open();
  const text = "repeat('x', 2000000)";
  expect(await refusal(engine, `SELECT xmlelement(name a, ${text}, ${text})`)).toStartWith(
    "VALUE_TOO_LONG: ",
  );
});

test("XML survives a flush, is copied, and is read in a segment", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE TABLE d (id INT PRIMARY KEY, doc XML, more XML[])");
  await engine.run(
    "INSERT INTO d SELECT g, xmlelement(name a, xmlattributes(g AS n), 'é'), ARRAY[xmlelement(name b, g)] FROM generate_series(1, 300) g",
  );
  await engine.run("STORAGE FLUSH TABLE d");
  await engine.run("INSERT INTO d VALUES (301, '<z/>', NULL), (302, NULL, '{}')");
  const sql =
    "SELECT id, doc, more FROM d WHERE xmlexists('/a[@n > 299] | /z' PASSING doc) ORDER BY id";
  expect(await engine.rows(sql)).toEqual([
    [300, '<a n="300">é</a>', ["<b>300</b>"]],
    [301, "<z/>", null],
  ]);
  await engine.run("UPDATE d SET doc = xmlcomment('gone') WHERE id = 300");
  expect(await engine.rows("SELECT doc FROM d WHERE id = 300")).toEqual([["<!--gone-->"]]);
});

test("the result's type is Text, and a parameter is checked when it is assigned", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE TABLE d (id INT PRIMARY KEY, doc XML)");
  expect(await refusal(engine, "INSERT INTO d VALUES (1, $1)", ["<a"])).toStartWith(
    "INVALID_VALUE: ",
  );
  await engine.run("INSERT INTO d VALUES (1, $1)", { params: ["<?xml version='1.0'?><a/>"] });
  const { results } = await engine.ask("SELECT doc, doc::text AS t FROM d");
  expect(results[0]?.rows).toEqual([["<a/>", "<?xml version='1.0'?><a/>"]]);
  expect(results[0]?.schema?.map(({ data_type: type }) => type)).toEqual(["Text", "Text"]);
});
