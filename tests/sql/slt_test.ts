/**
 * Runs the corpus of SQL cases in `slt/` on the real server. Every case must pass, and none may be
 * pending.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import {
  parseSlt,
  runSlt,
  type SltAnswer,
  type SltRequest,
  type SltResult,
} from "../support/slt.ts";
import { runSltOn } from "../support/slt_server.ts";
import { tableTranslator } from "../support/slt_tables.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";

const DIRECTORY = process.env["SLT_DIR"] ?? join(import.meta.dir, "slt");

const QUERY_ONE_OF = amountOf({ usual: 100, thorough: 1 });

describe("every file of the SQL corpus passes", () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startReadyServer();
  });
  afterAll(async () => {
    await server.stop();
  });

  const files = readdirSync(DIRECTORY).filter((name) => name.endsWith(".test"));
  for (const file of shareOf(files.toSorted(), { oneOf: 3 })) {
    test(file, async () => {
      const text = await Bun.file(join(DIRECTORY, file)).text();
      const name = `slt_${basename(file, ".test")}`;
      const report = await runSltOn(server, name, text, { queryOneOf: QUERY_ONE_OF });
      expect(report.failures.slice(0, 10)).toEqual([]);
      expect(report.waiting.slice(0, 10)).toEqual([]);
      expect(report.passedCount).toBeGreaterThan(0);
    });
  }
});

test("LICENSES.md names the origin of exactly the files of the corpus", async () => {
  const folder = join(import.meta.dir, "slt");
  const text = await Bun.file(join(folder, "LICENSES.md")).text();
  const named = [...text.matchAll(/^\| `([^`]+)` \| `?[^|`]/gm)].map(([, name = ""]) => name);
  const files = readdirSync(folder).filter((name) => name !== "LICENSES.md");
  expect(new Set(named)).toEqual(new Set(files));
  expect(named).toHaveLength(files.length);
});

describe("runSlt executes the cases of a file", () => {
  test("runSlt compares values as the corpus prints them, in the order that the case requests", async () => {
    const rows = rowsOf([10, "b", 1.5], [9, "", null], [true, "é", 2]);
    const query = "query ITR rowsort\nSELECT\n----\n";
    const values = ["1", "@", "2.000", "10", "b", "1.500", "9", "(empty)", "NULL"];
    expect(await reasonOf(query + values.join("\n"), rows)).toBeUndefined();
    expect(
      await reasonOf(query.replace("rowsort", "nosort") + values.join("\n"), rows),
    ).toBeDefined();
    expect(await reasonOf(query + values.with(4, "c").join("\n"), rows)).toContain("wanted");
  });

  test("runSlt compares hashes and counts", async () => {
    const hash = new Bun.CryptoHasher("md5").update("1\n2\n").digest("hex");
    const query = `query I nosort\nSELECT\n----\n2 values hashing to ${hash}`;
    expect(await reasonOf(query, rowsOf([1], [2]))).toBeUndefined();
    expect(await reasonOf(query, rowsOf([2], [1]))).toContain("other values");
    expect(await reasonOf(query, rowsOf([1]))).toContain("should be 2");
  });

  test("runSlt distinguishes expected and unexpected errors, and pending cases from both", async () => {
    const refused: SltAnswer = { ok: false, isUnsupported: false, message: "no" };
    expect(await reasonOf("statement ok\nX", refused)).toBe("no");
    expect(await reasonOf("statement error\nX", refused)).toBeUndefined();
    expect(await reasonOf("statement error\nX", rowsOf())).toBeDefined();
    const waiting: SltAnswer = { ...refused, isUnsupported: true };
    const report = await runSlt("statement ok\nX", { execute: () => Promise.resolve(waiting) });
    expect(report).toMatchObject({
      passedCount: 0,
      failures: [],
      waiting: [{ line: 1, sql: "X" }],
    });
  });

  test("runSlt requires that queries with one label return the same values", async () => {
    const text = "query I nosort l1\nSELECT\n----\n1\n\nquery I nosort l1\nSELECT\n----\n2\n";
    let value = 0;
    const execute = (): Promise<SltAnswer> => Promise.resolve(rowsOf([(value += 1)]));
    const report = await runSlt(text, { execute });
    expect(report.failures).toMatchObject([{ line: 6 }]);
  });
});

describe("the runner supports extensions of the sqllogictest format", () => {
  test("users stay in effect, whereas parameters and a namespace belong to one request", async () => {
    const requests: SltRequest[] = [];
    const execute = (request: SltRequest): Promise<SltAnswer> => {
      requests.push(request);
      return Promise.resolve(rowsOf());
    };
    const text = [
      "statement ok\nA",
      'user bob two words\n\nparams [1, "# x"]\nnamespace app\nstatement ok\nB',
      "statement ok\nC",
      "user root 1\nskipif postgresql\nparams [2]\nstatement ok\nD",
      "user bob\nstatement ok\nE",
    ].join("\n\n");
    expect(await runSlt(text, { execute })).toMatchObject({ passedCount: 4, failures: [] });
    const user = { name: "bob", password: "two words" };
    expect(requests).toEqual([
      { sql: "A" },
      { sql: "B", user, params: [1, "# x"], namespace: "app" },
      { sql: "C", user },
      { sql: "E", user },
    ]);
    expect(() => parseSlt("user eve\nstatement ok\nA", "postgresql")).toThrow("a password");
  });

  test("an expected error names its codes and the statement that raises it", async () => {
    const refused: SltAnswer = {
      ok: false,
      isUnsupported: false,
      message: "no",
      codes: ["A", "B"],
      statement: 2,
    };
    expect(await reasonOf("statement error\nX", refused)).toBeUndefined();
    expect(await reasonOf("statement error C|B at 2\nX", refused)).toBeUndefined();
    expect(await reasonOf("statement error C\nX", refused)).toContain("fail with C");
    expect(await reasonOf("statement error B at 1\nX", refused)).toContain("2 does");
    expect(await reasonOf("statement error B at 1\nX", rowsOf())).toContain("it succeeded");
  });

  test("the count, columns, rows and text of every result of a request are checked", async () => {
    const answer: SltAnswer = {
      ok: true,
      results: [
        resultOf({ count: 3 }),
        resultOf({ columns: ["a", "b c"], rows: [["x", 1.5]], text: '{"t":"\\\"q\\\""}' }),
      ],
    };
    const faultOf = (checks: string): Promise<string | undefined> =>
      reasonOf(`statement ok\nX\n\n${checks}`, answer);
    expect(await reasonOf('query UU\nX\n----\n"x"\n1.5', answer)).toBeUndefined();
    expect(await reasonOf("statement count 3\nX", answer)).toContain("should be 3");
    expect(await faultOf("result 1 count 3")).toBeUndefined();
    expect(await faultOf("result 1 count 4")).toContain("1: its count is 3");
    expect(await faultOf("result columns a, b c")).toBeUndefined();
    expect(await faultOf("result columns a, b")).toContain("a, b c");
    expect(await faultOf('result 2 contains "t":""q""')).toBeUndefined();
    expect(await faultOf("result 1 contains t")).toContain("does not contain t");
    expect(await faultOf('result 2 query UU\n----\n"x"\n1.5')).toBeUndefined();
    expect(await faultOf('result 2 query UU\n----\n"x"\n2')).toContain("wanted");
    expect(await faultOf("result 3 count 0")).toContain("no result");
    // All checks of a result count, not only the last check.
    expect(await faultOf("result 1 count 4\nresult 1 count 3")).toContain("1: its count is 3");
    expect(() => parseSlt("statement ok\nX\n\nresult 1 number 3", "postgresql")).toThrow("line 4");
  });
});

test("parseSlt keeps the cases for its engine, and refuses unknown directives", () => {
  const text = [
    "hash-threshold 8",
    "skipif postgresql # why\nstatement ok\nA",
    "onlyif mysql\nskipif sqlite\nstatement ok\nB",
    "onlyif postgresql\nstatement ok\nC",
    "skipif mysql\nquery I nosort\nD\n----\n1",
    "halt",
    "statement ok\nE",
  ].join("\n\n");
  expect(parseSlt(text, "postgresql").map(({ sql }) => sql)).toEqual(["C", "D"]);
  expect(() => parseSlt("quarry I nosort\nD\n----\n1", "postgresql")).toThrow("line 1");
});

test("tableTranslator adds a key, names the columns of an INSERT, and expands *", () => {
  const translate = tableTranslator();
  expect(translate("CREATE TABLE t(a INT, b DECIMAL(5,2))")).toBe(
    "CREATE TABLE t (a INT, b DECIMAL(5,2), hidden_key BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID())",
  );
  expect(translate("INSERT INTO t VALUES (1, 2)")).toBe("INSERT INTO t (a, b) VALUES (1, 2)");
  expect(translate("INSERT INTO t(b,a) VALUES (1, 2)")).toBe("INSERT INTO t(b,a) VALUES (1, 2)");
  expect(translate("SELECT DISTINCT * FROM t AS x, t y CROSS JOIN t WHERE x.a > 1")).toBe(
    "SELECT DISTINCT x.a, x.b, y.a, y.b, t.a, t.b FROM t AS x, t y CROSS JOIN t WHERE x.a > 1",
  );
  expect(translate("SELECT COUNT(*) FROM t")).toBe("SELECT COUNT(*) FROM t");
});

function rowsOf(...rows: unknown[][]): SltAnswer {
  return { ok: true, results: [resultOf({ rows })] };
}

function resultOf(parts: Partial<SltResult>): SltResult {
  return { columns: [], rows: [], count: undefined, text: "", ...parts };
}

/**
 * Returns the reason why the first case in a file fails if every request gets the same response.
 */
async function reasonOf(text: string, answer: SltAnswer): Promise<string | undefined> {
  const report = await runSlt(text, { execute: () => Promise.resolve(answer) });
  return report.failures[0]?.reason;
}
