/**
 * The cases of `cases/functions.txt` and `cases/errors.txt`, in order, each file on a database of
 * its own. Every function of the library has a case, and most conditions that a text can raise.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { functionNames } from "../../src/sql/functions/registry.ts";
import { TestEngine } from "../support/sql_engine.ts";

interface Case {
  readonly line: number;
  readonly sql: string;
  /** Rows as they are sent; undefined: none are asked for. */
  readonly rows: unknown;
  readonly condition: string | undefined;
}

async function casesOf(file: string): Promise<readonly Case[]> {
  const lines = (await Bun.file(join(import.meta.dir, "cases", file)).text()).split("\n");
  return lines.flatMap((line, i) => {
    if (!line.startsWith("> ")) return [];
    const expected = lines[i + 1] ?? "";
    return {
      line: i + 1,
      sql: line.slice(2),
      rows: expected.startsWith("= ") ? JSON.parse(expected.slice(2)) : undefined,
      condition: expected.startsWith("! ") ? expected.slice(2) : undefined,
    };
  });
}

const FUNCTIONS = await casesOf("functions.txt");
const ERRORS = await casesOf("errors.txt");

describe.each([
  ["functions.txt", FUNCTIONS],
  ["errors.txt", ERRORS],
])("%s", (_, cases) => {
  test("every case answers as it says", async () => {
    await using engine = await TestEngine.open();
    const wrong: unknown[] = [];
    for (const { condition, line, rows, sql } of cases) {
      const { error, results } = await engine.ask(sql);
      const found = results.at(-1)?.rows;
      if (error?.condition !== condition) wrong.push([line, sql, error?.condition, error?.message]);
      else if (rows !== undefined && !Bun.deepEquals(found, rows)) wrong.push([line, sql, found]);
    }
    expect(wrong).toEqual([]);
  });
});

test("every function of the library has a case", () => {
  const text = FUNCTIONS.map(({ sql }) => sql.toLowerCase()).join("\n");
  const missing = functionNames().filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  expect(missing).toEqual([]);
});
