/**
 * Verifies that conditions on text search, LIKE, similarity, JSONB and arrays use inverted
 * indexes, and that these never change a result. The tests examine plans and the number of rows
 * they read, and compare random statements on two tables with the same rows, only one of which has
 * indexes: in memory, in files, after merges and after a restart.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { amountOf, shareOf } from "../../support/thoroughness.ts";

const ROWS = 6000;
const ROUNDS = amountOf({ usual: 3, thorough: 40 });
const COLUMNS =
  "(id INT PRIMARY KEY, body TEXT, words TSVECTOR, data JSONB, tags TEXT[], numbers INT[], done BOOLEAN)";
const INDEXES = `
  CREATE INDEX docs_english ON docs USING gin (to_tsvector('english', body));
  CREATE INDEX docs_words ON docs USING gin (words);
  CREATE INDEX docs_trigrams ON docs USING gin (body gin_trgm_ops);
  CREATE INDEX docs_data ON docs USING gin (data jsonb_path_ops);
  CREATE INDEX docs_lists ON docs USING gin (tags, numbers);
  CREATE INDEX docs_open ON docs USING gin (lower(body) gin_trgm_ops) WHERE NOT done;`;

const VALUES = `SELECT i, 'Report ' || i || ' about ' ||
    (ARRAY['running dogs', 'a lazy cat', 'Zürich & Basel', '100% wool', 'the ΟΔΟΣ sign'])[1 + i % 5],
  to_tsvector('simple', 'w' || i % 700 || ' common'),
  jsonb_build_object('n', i % 900, 'user', jsonb_build_object('name', 'u' || i % 50, 'tags', jsonb_build_array(i % 7, 'x'))),
  ARRAY['t' || i % 400, NULL], ARRAY[i % 300, -1], i % 2 = 0
  FROM generate_series(1, ${ROWS}) i`;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(`CREATE TABLE docs ${COLUMNS}; CREATE TABLE plain ${COLUMNS}`);
  await engine.run(INDEXES);
  for (const table of ["docs", "plain"]) {
    await engine.run(
      `INSERT INTO ${table} ${VALUES}; STORAGE FLUSH TABLE ${table};` +
        `UPDATE ${table} SET body = 'Rewritten ' || id, words = NULL, data = NULL WHERE id % 1000 = 0;` +
        `DELETE FROM ${table} WHERE id % 700 = 0`,
    );
  }
});
afterAll(() => engine[Symbol.asyncDispose]());

async function planOf(sql: string): Promise<string> {
  return (await engine.rows(`EXPLAIN ANALYZE ${sql}`)).join("\n");
}

function mostRows(plan: string): number {
  return Math.max(...Array.from(plan.matchAll(/; rows: (\d+)/g), ([, rows]) => Number(rows)));
}

/**
 * Asserts that a condition selects the same rows as on the table without indexes. Returns the
 * number of these rows.
 */
async function requireSame(condition: string): Promise<number> {
  const sql = `SELECT id FROM docs WHERE ${condition} ORDER BY id`;
  const found = await engine.rows(sql);
  expect(found).toEqual(await engine.rows(sql.replace("docs", "plain")));
  return found.length;
}

describe("an inverted index finds rows", () => {
  /**
   * A condition, the index that its plan must name, and the maximum number of rows that the index
   * may read.
   */
  const FOUND: readonly (readonly [condition: string, index: string, rowsMax: number])[] = [
    [
      "to_tsvector('english', body) @@ to_tsquery('english', 'rewritten')",
      "docs_english (to_tsvector('english', body) @@",
      6,
    ],
    [
      "to_tsvector('english', body) @@ websearch_to_tsquery('english', 'report 80 run')",
      "docs_english",
      1,
    ],
    ["words @@ 'w5'", "docs_words (words @@", 9],
    ["words @@ 'w5 & common'::tsquery", "docs_words", 9],
    ["words @@ 'w5 | w6'::tsquery", "docs_words", 18],
    ["words @@ 'w69:* & !w690'::tsquery", "docs_words", 100],
    ["'w5 <-> common'::tsquery @@ words", "docs_words", 9],
    ["body LIKE '%rt 77 about%'", "docs_trigrams (body LIKE '%rt 77 about%')", 2],
    ["body ILIKE '%REWRITTEN%'", "docs_trigrams (body ILIKE", 6],
    ["body ILIKE 'rewritten_3%'", "docs_trigrams", 6],
    ["body % 'rewritten 3000'", "docs_trigrams (body % ", 60],
    ["'rewritten' <% body", "docs_trigrams (body <% 'rewritten')", 6],
    [`data @> '{"n": 5}'`, "docs_data (data @> ", 7],
    [`data @> '{"n": 5.0, "user": {"tags": [5]}}'`, "docs_data", 7],
    [`'{"user": {"name": "u3"}, "n": 53}' <@ data`, "docs_data", 7],
    ["tags @> ARRAY['t5']", "docs_lists (tags @> ", 15],
    ["tags && ARRAY['t5', 't6']", "docs_lists", 30],
    ["numbers @> ARRAY[5] AND tags @> ARRAY['t5']", "docs_lists", 5],
    ["lower(body) LIKE '%t 77 ab%' AND NOT done", "docs_open", 2],
  ];

  test.each(shareOf(FOUND, { oneOf: 4 }))("%s", async (condition, index, rowsMax) => {
    const plan = await planOf(`SELECT id FROM docs WHERE ${condition}`);
    expect(plan).toContain(index);
    expect(mostRows(plan)).toBeLessThanOrEqual(rowsMax);
    expect(await requireSame(condition)).toBeGreaterThan(0);
  });

  test.each([
    "to_tsvector('simple', body) @@ 'running'",
    "words @@ '!w5'::tsquery",
    "words @@ ''::tsquery",
    "words @@ NULL",
    "body LIKE '%'",
    "body LIKE '%e%'",
    "body LIKE '%ΟΔΟΣ%'",
    "body LIKE '%ΟΔΟΣ sign'",
    "body LIKE '%100\\% wool'",
    "body LIKE '%Zürich & B%'",
    "body NOT LIKE '%wool%' AND id < 20",
    "body LIKE '%77#% w%' ESCAPE '#'",
    "body ILIKE '%ZÜRICH%' AND id < 50",
    "body % ''",
    "data @> '{}' AND id < 10",
    "data @> '[]'",
    `data ? 'user' AND id < 10`,
    `data ?| ARRAY['nothing', 'n'] AND id < 10`,
    `data ?& ARRAY['user', 'n'] AND id < 10`,
    `data ? 'name'`,
    `data @> '{"user": {"tags": []}}' AND id < 10`,
    "tags @> ARRAY[NULL]::text[]",
    "tags @> ARRAY[]::text[] AND id < 10",
    "tags && ARRAY[]::text[]",
    "tags <@ ARRAY['t5', 't6']",
    "lower(body) LIKE '%t 77 ab%'",
    "words @@ 'w5' OR data @> '{\"n\": 7}'",
    "words @@ 'w5' OR id = 12",
    "words @@ 'w5' OR done IS NULL",
    "id IN (3, 4) OR tags && ARRAY['t9']",
  ])("%s is answered like a scan", async (condition) => {
    await requireSame(condition);
  });

  test("rows are found by several indexes for an OR", async () => {
    for (const [condition, index, rowsMax] of [
      [
        "words @@ 'w5' OR tags && ARRAY['t9']",
        "docs_words (words @@ '''w5''') and docs_lists (tags && ",
        24,
      ],
      ["id = 12 OR words @@ 'w5'", "the primary key (id = 12) and docs_words", 10],
    ] as const) {
      const plan = await planOf(`SELECT id FROM docs WHERE ${condition}`);
      expect(plan).toContain(index);
      expect(mostRows(plan)).toBeLessThanOrEqual(rowsMax);
    }
  });
});

describe("results equal those of a table without indexes", () => {
  const words = ["cat", "hat", "tree", "running", "runs", "blue sky", "100%", "Zoë"];

  function randomRow(random: SeededRandom, id: number): string {
    const text = Array.from({ length: random.below(6) }, () => random.pick(words)).join(" ");
    const quoted = random.chance(0.1) ? "NULL" : `'${text}'`;
    const data = random.chance(0.1)
      ? "NULL"
      : `'{"a": ${random.below(4)}, "b": [{"c": "${random.pick(words)}"}, ${random.below(3)}.0]}'`;
    const tags = random.chance(0.1)
      ? "NULL"
      : `ARRAY['${random.pick(words)}', '${random.pick(words)}']`;
    return `(${id}, ${quoted}, to_tsvector('english', ${quoted}), ${data}, ${tags}, ARRAY[${random.below(5)}], ${random.chance(0.5)})`;
  }

  function randomCondition(random: SeededRandom): string {
    const word = random.pick(words);
    const one = random.pick([
      `to_tsvector('english', body) @@ plainto_tsquery('english', '${word}')`,
      `words @@ to_tsquery('english', '''${word}'' | tree')`,
      `words @@ 'r:*'::tsquery`,
      `body LIKE '%${word.slice(1)}%'`,
      `body ILIKE '${word}%'`,
      `body LIKE '%${word}_${random.pick(words)}'`,
      `body % '${word} ${random.pick(words)}'`,
      `'${word}' <% body`,
      `body %>> '${word}'`,
      `data @> '{"a": ${random.below(4)}}'`,
      `data @> '{"b": [{"c": "${word}"}, ${random.below(3)}]}'`,
      `data ? '${random.pick(["a", "c"])}'`,
      `tags @> ARRAY['${word}']`,
      `tags && ARRAY['${word}', 'none']`,
      `numbers @> ARRAY[${random.below(5)}]`,
      `lower(body) LIKE '%${word.toLowerCase()}%' AND NOT done`,
    ]);
    return random.chance(0.3) ? `(${one} OR ${randomCondition(random)})` : one;
  }

  test("results stay the same through changes, flushes, merges, restarts and transactions", async () => {
    await using own = await TestEngine.open({ clock: systemClock });
    await own.run(`CREATE TABLE docs ${COLUMNS}; CREATE TABLE plain ${COLUMNS}; ${INDEXES}`);
    const random = new SeededRandom(11);
    const both = async (sql: string): Promise<void> => {
      await own.run(sql.replaceAll("$T", "docs"));
      await own.run(sql.replaceAll("$T", "plain"));
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      const rows = Array.from({ length: 20 }, (_, at) =>
        randomRow(random, random.below(400) * 20 + at),
      );
      await both(`INSERT INTO $T VALUES ${rows.join(", ")} ON CONFLICT (id) DO UPDATE SET
        body = EXCLUDED.body, words = EXCLUDED.words, data = EXCLUDED.data, tags = EXCLUDED.tags`);
      await both(`DELETE FROM $T WHERE id % 97 = ${random.below(97)}`);
      if (random.chance(0.3)) await both("STORAGE FLUSH TABLE $T");
      if (random.chance(0.1)) await both("STORAGE COMPACT TABLE $T");
      if (random.chance(0.1)) await own.restart();
      for (let question = 0; question < 4; question += 1) {
        const condition = randomCondition(random);
        const staged = random.chance(0.2)
          ? `BEGIN; INSERT INTO $T VALUES ${randomRow(random, 99_999)}; UPDATE $T SET body = 'blue cat' WHERE id % 31 = 0;`
          : "";
        const asked = `${staged} SELECT id FROM $T WHERE ${condition} ORDER BY id; ${staged === "" ? "" : "ROLLBACK"}`;
        const answers: unknown[] = [];
        for (const table of ["docs", "plain"]) {
          const results = await own.run(asked.replaceAll("$T", table));
          answers.push(results.find(({ rows: found }) => found !== undefined)?.rows);
        }
        expect({ condition, rows: answers[0] }).toEqual({ condition, rows: answers[1] });
      }
    }
  });
});

test("the rows of each user are found separately", async () => {
  await using own = await TestEngine.open({ clock: systemClock });
  await own.run(
    "CREATE USER TABLE notes (id INT PRIMARY KEY, body TEXT); CREATE INDEX ON notes USING gin (body gin_trgm_ops);" +
      "INSERT INTO notes SELECT i, 'mine ' || i FROM generate_series(1, 500) i;" +
      "CREATE USER 'bob' PASSWORD 'correct horse 9' ROLE user;" +
      "EXECUTE AS USER 'bob' (INSERT INTO notes SELECT i, 'his ' || i FROM generate_series(1, 500) i);" +
      "STORAGE FLUSH TABLE notes; INSERT INTO notes VALUES (501, 'mine last')",
  );
  expect(await own.rows("SELECT count(*) FROM notes WHERE body LIKE '%mine%'")).toEqual([[501]]);
  expect(await own.rows("SELECT count(*) FROM notes WHERE body LIKE '%his 4%'")).toEqual([[0]]);
  const his = "EXECUTE AS USER 'bob' (SELECT count(*) FROM notes WHERE body LIKE '%his 49%')";
  expect(await own.rows(his)).toEqual([[11]]);
});

test("inverted indexes can be defined, and faulty ones are refused", async () => {
  await using own = await TestEngine.open({ clock: systemClock });
  await own.run(
    "CREATE TABLE d (id INT PRIMARY KEY, body TEXT, data JSONB, list INT[], raw JSON, words TSVECTOR);" +
      "CREATE INDEX ON d USING gin (to_tsvector('english'::regconfig, body), list);" +
      "CREATE INDEX d_body ON d USING GIN (body gin_trgm_ops) WHERE id > 5;" +
      "CREATE TABLE e (LIKE d INCLUDING INDEXES)",
  );
  const definitions =
    "SELECT definition FROM system.indexes WHERE table_name = 'd' AND NOT is_primary ORDER BY index_name";
  expect(await own.rows(definitions)).toEqual([
    ["CREATE INDEX d_body ON default.d USING gin (body gin_trgm_ops) WHERE id > 5"],
    [
      "CREATE INDEX d_to_tsvector_list_idx ON default.d USING gin ((to_tsvector('english'::regconfig, body)), list)",
    ],
  ]);
  expect(
    await own.rows(
      "SELECT count(*) FROM system.indexes WHERE table_name = 'e' AND definition LIKE '%USING gin%'",
    ),
  ).toEqual([[2]]);
  await own.run("ALTER TABLE d RENAME COLUMN body TO text");
  expect((await own.rows(definitions))[0]).toEqual([
    'CREATE INDEX d_body ON default.d USING gin ("text" gin_trgm_ops) WHERE id > 5',
  ]);
  await own.run("INSERT INTO d (id, text) VALUES (7, 'running dogs')");
  expect(
    await own.rows("SELECT id FROM d WHERE to_tsvector('english'::regconfig, text) @@ 'run'"),
  ).toEqual([[7]]);
  await own.run("ALTER TABLE d DROP COLUMN text");
  expect(await own.rows(definitions)).toEqual([]);
});

test.each([
  ["(id)", "INVALID_DEFINITION", 'Cannot create a gin index on "id": values of type integer'],
  ["(body)", "INVALID_DEFINITION", 'Cannot create a gin index on "body": values of type text'],
  ["(body array_ops)", "INVALID_DEFINITION", 'gin index on "body" by array_ops'],
  ["(body text_ops)", "INVALID_DEFINITION", 'gin index on "body" by text_ops'],
  ["(nothing)", "COLUMN_NOT_FOUND", "nothing"],
  ["(to_tsvector(now()::text))", "INVALID_DEFINITION", "is not immutable"],
])("USING gin %s is refused by name", async (parts, code, message) => {
  const { error } = await engine.ask(`CREATE INDEX refused ON docs USING gin ${parts}`);
  expect(error?.code).toBe(code as never);
  expect(error?.message).toContain(message);
});

test("a unique inverted index, and its operator classes in a sorted index, are refused by name", async () => {
  for (const [sql, code, named] of [
    ["CREATE UNIQUE INDEX ON docs USING gin (words)", "INVALID_DEFINITION", "cannot be unique"],
    ["CREATE INDEX ON docs (body gin_trgm_ops)", "UNSUPPORTED_FEATURE", "gin_trgm_ops"],
    ["CREATE INDEX ON docs USING gist (words)", "UNSUPPORTED_FEATURE", "gist"],
  ] as const) {
    const { error } = await engine.ask(sql);
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(named);
  }
});
