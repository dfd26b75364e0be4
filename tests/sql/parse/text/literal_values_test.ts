/**
 * Compares two paths for long VALUES lists of plain literals: the fast path from bytes to columns,
 * and the ordinary path token by token and row by row. Both must give the same rows, and the same
 * errors at the same positions.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { parseStatements } from "../../../../src/sql/parse/parser.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { amountOf } from "../../../support/thoroughness.ts";
import { randomFrom, seedOf } from "../../../types/random.ts";

const LISTS = amountOf({ usual: 40, thorough: 100 });

/** The number of rows. Together, they have more cells than a plan has slots. */
const ROWS = 40;

const TYPES = [
  "BIGINT PRIMARY KEY",
  "INT NOT NULL DEFAULT 7",
  "SMALLINT",
  "BIGINT",
  "DOUBLE",
  "REAL",
  "DECIMAL(12, 3)",
  "TEXT DEFAULT 'none'",
  "VARCHAR(6)",
  "BOOLEAN",
  "TIMESTAMP",
  "DATE",
  "UUID",
  "JSON",
  "BYTES",
];
const COLUMNS = TYPES.map((_, index) => `c${index}`);

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
  const columns = TYPES.map((type, index) => `c${index} ${type}`).join(", ");
  await engine.run(
    `CREATE NAMESPACE n; CREATE TABLE n.t (${columns}, extra INT DEFAULT 5, CHECK (c3 <> 13))`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

type Pick = <T>(...from: readonly T[]) => T;

function pickWith(random: () => number): Pick {
  return (...from) => from[Math.floor(random() * from.length)] ?? (from[0] as (typeof from)[0]);
}

/** Returns the text of a random cell that fits a column, in any form allowed in a list. */
function fitting(column: number, pick: Pick): string {
  switch (column) {
    case 1:
    case 2:
      return pick("0", "-0", "7", "-32768", "32767", "007", "12.4", "'42'", "DEFAULT", "1e2");
    case 3:
      return pick("1", "-999999999999999", "9007199254740993", "-9223372036854775808", "NULL");
    case 4:
    case 5:
      return pick(
        "1",
        "-0",
        "-0.0",
        ".5",
        "5.",
        "1.25",
        "-1e-3",
        "3E+2",
        "0.1",
        "123456789.123456",
        "NULL",
      );
    case 6:
      return pick("1", "-1.005", ".5", "99999.9994", "'12.5'", "1e3", "null");
    case 7:
      return pick(
        "'a'",
        "''",
        "'it''s'",
        "E'tab\\t\\'q\\\\'",
        "'ä€😀'",
        "'-- no comment'",
        "'(,)'",
        "DEFAULT",
        "NULL",
        "e'x'",
      );
    case 8:
      return pick("'abc'", "'äöü'", "'abc   '", "NULL", "12", "true");
    case 9:
      return pick("TRUE", "false", "True", "NULL", "'yes'");
    case 10:
      return pick("'2026-01-02 03:04:05.678'", "'2026-01-02T03:04:05Z'", "NULL");
    case 11:
      return pick("'2026-02-28'", "'1969-12-31'", "NULL");
    case 12:
      return pick("'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "NULL");
    case 13:
      return pick("'{\"a\": [1, null]}'", "'7'", "NULL");
    default:
      return pick("'\\x00ff'", "NULL");
  }
}

/** Returns the text of a random cell that fits few columns or none, or is not a literal. */
function strange(pick: Pick): string {
  return pick(
    "NULL",
    "DEFAULT",
    "TRUE",
    "'x'",
    "''",
    "1e400",
    "-1e400",
    "1e-400",
    "99999999999999999999999",
    "2147483648",
    "'too long for it'",
    "1.5",
    "13",
    "CAST(1 AS INT)",
    "1 + 1",
    "- 5",
    "--5\n6",
    "0xff",
    "1_000",
    "$$d$$",
    "'a'\n'b'",
    "E'\\u00e4'",
    "E'\\x41'",
    "x'00'",
    "$1",
    "now",
    "1 2",
    "'open",
    "5-",
    "1..2",
    "+1",
    "nullx",
    "1e",
    ".",
    "E 'x'",
    "trueish",
    "(1)",
    "\u00a01",
    "ä",
  );
}

function list(random: () => number, width: number): string {
  const pick = pickWith(random);
  const isFaulty = random() < 0.5;
  const space = (): string =>
    random() < 0.9 ? "" : pick(" ", "\n\t", " -- it's ) a comment\n", "\r\n");
  const rows = Array.from({ length: ROWS }, (_, row) => {
    const cells = Array.from({ length: width }, (_unused, column) => {
      if (isFaulty && random() < 1 / ROWS / 4) return strange(pick);
      return column === 0 ? String(row - 3) : fitting(column, pick);
    });
    if (isFaulty && random() < 1 / ROWS / 8) cells.pop();
    return `${space()}(${cells.map((cell) => space() + cell + space()).join(",")})${space()}`;
  });
  if (isFaulty && random() < 0.1) rows.push(rows[0] ?? "");
  return rows.join(",");
}

interface Effect {
  readonly failure: readonly unknown[] | undefined;
  readonly position: number | undefined;
  readonly rows: unknown;
  readonly count: number | undefined;
}

/** Returns the effect of a statement on the empty table. */
async function effect(sql: string): Promise<Effect> {
  const { error, results } = await engine.ask(sql);
  const [stored] = await engine.run(`SELECT ${COLUMNS.join(", ")}, extra FROM n.t ORDER BY c0`);
  await engine.run("DELETE FROM n.t WHERE true");
  const failure =
    error === undefined ? undefined : [error.code, error.message, error.hint, error.statementIndex];
  const rows = stored?.rows;
  return { failure, position: error?.position, rows, count: results[0]?.rowCount };
}

test("a list has the same rows and errors by columns, by rows and token by token", async () => {
  const random = randomFrom(seedOf());
  let shortCount = 0;
  let errorCount = 0;
  for (let round = 0; round < LISTS; round += 1) {
    const width = 3 + Math.floor(random() * (COLUMNS.length - 2));
    const order = COLUMNS.slice(0, width);
    const head = `INSERT INTO n.t (${order.join(", ")}) VALUES `;
    const values = list(random, width);
    // A block comment after the last cell moves none of the cells. The fast scanner does not
    // support comments, so this text takes the ordinary path.
    const plain = values.replace(/\)([^)]*)$/, "/**/)$1");
    const tail = random() < 0.2 ? "; -- end" : "";
    const wanted = await effect(head + plain + tail);
    const sql = head + values + tail;
    const found = await effect(sql);
    // If a cast fails when its row is reached, only the fast path reports the position of the
    // cell.
    const { failure, position = found.position } = wanted;
    expect(found, sql).toEqual({ ...wanted, position });
    if (failure !== undefined) errorCount += 1;
    const [statement] = failure === undefined ? parseStatements(sql) : [];
    if (statement?.type === "insert" && statement.insert.type === "literal values") shortCount += 1;
    if (failure === undefined) {
      const { rows } = await effect(`${head}${values} RETURNING c0`);
      expect(rows, sql).toEqual(wanted.rows);
    }
  }
  expect(shortCount).toBeGreaterThan(LISTS / 4);
  expect(errorCount).toBeGreaterThan(LISTS / 8);
});

test.each(["1e-400", "-2e-324", "5e-324", "0e-400", "-0e400", "0.0000000000000000000", "1e400"])(
  "a list of the double %s has the same value as a single row",
  async (cell) => {
    await engine.run("CREATE TABLE n.d (id INT PRIMARY KEY, v DOUBLE)");
    const answers: unknown[] = [];
    for (const rowCount of [1, 100]) {
      const rows = Array.from({ length: rowCount }, (_, row) => `(${row}, ${cell})`);
      const { error } = await engine.ask(`INSERT INTO n.d VALUES ${rows.join(", ")}`);
      answers.push([error?.code, await engine.rows("SELECT v FROM n.d WHERE id = 0")]);
      await engine.run("DELETE FROM n.d WHERE true");
    }
    await engine.run("DROP TABLE n.d");
    const [one, many] = answers;
    expect(many).toEqual(one);
  },
);

test("NUL is refused in a string on every path of a statement", async () => {
  const cell = "'a\u0000b'";
  const rows = Array.from({ length: ROWS }, (_, row) => `(${row}, ${cell})`).join(", ");
  for (const sql of [
    `INSERT INTO n.t (c0, c7) VALUES (1, ${cell})`,
    `INSERT INTO n.t (c0, c14) VALUES (1, ${cell})`,
    `INSERT INTO n.t (c0, c7) VALUES ${rows}`,
    `UPDATE n.t SET c7 = ${cell} WHERE c0 = 1`,
    `SELECT c0 FROM n.t WHERE c7 = ${cell}`,
  ]) {
    // From here on, the statement runs with a cached plan.
    await engine.run(sql.replaceAll("\u0000", ""));
    await engine.run("DELETE FROM n.t WHERE true");
    const position = sql.indexOf("\u0000");
    expect(await engine.failure(sql), sql).toBe(`INVALID_SQL@1:${position}`);
  }
});

test.each(["BIGINT", "INT", "TEXT", "DOUBLE"])(
  "a key of type %s is refused at any position, and the whole list is discarded",
  async (type) => {
    await engine.run(`CREATE TABLE n.k (id ${type} PRIMARY KEY, v TEXT)`);
    const insert = (ids: readonly number[]): Promise<Effect["failure"]> => {
      const rows = ids.map((id) => `(${type === "TEXT" ? `'${id}'` : id}, 'v')`);
      return engine
        .ask(`INSERT INTO n.k VALUES ${rows.join(", ")}`)
        .then(({ error }) => (error === undefined ? undefined : [error.code]));
    };
    const range = (from: number, count = ROWS): number[] =>
      Array.from({ length: count }, (_, index) => from + index);
    const refused = ["DUPLICATE_KEY"];
    expect(await insert(range(1000))).toBeUndefined();
    await engine.run("STORAGE FLUSH TABLE n.k");
    expect(await insert(range(3000))).toBeUndefined();
    // The duplicate keys are in the segment, in the memtable or in the list itself; the new keys
    // are in gaps, below all keys, and above all keys.
    expect(await insert([...range(2000), 1007])).toEqual(refused);
    expect(await insert([...range(2000), 3039])).toEqual(refused);
    expect(await insert([...range(5000), 5007])).toEqual(refused);
    expect(await insert([...range(2000), ...range(4000), ...range(-50)])).toBeUndefined();
    expect(await insert([1000, ...range(6000)])).toEqual(refused);
    await engine.run(`DELETE FROM n.k WHERE v = 'v'`);
    expect(await insert([...range(1000), ...range(4000)])).toBeUndefined();
    const [stored] = await engine.run("SELECT count(*) FROM n.k");
    expect(stored?.rows).toEqual([[2 * ROWS]]);
    await engine.run("DROP TABLE n.k");
  },
);
