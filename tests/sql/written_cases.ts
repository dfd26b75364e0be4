/**
 * Runs the SQL cases in the folder `cases/` in-process. The cases of each file run in order on a
 * separate database. `scripts/write_cases.ts` writes the cases that PostgreSQL can run, too.
 * `functions/registry_test.ts` checks that every function has a case in `functions.slt`. Most
 * error codes that SQL can raise have a case in `errors.slt`.
 *
 * The files are divided between two tests by their names, so that two workers can run
 * them. A usual run tries every fifth SELECT of the files that combine a few forms with many
 * values.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runSlt, type SltAnswer, type SltRequest } from "../support/slt.ts";
import { withArrayTexts } from "../support/slt_arrays.ts";
import { withoutHiddenColumns } from "../support/slt_server.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";

const DIRECTORY: string = join(import.meta.dir, "cases");

/** Files in which many queries have the same form, with other values. */
const COMBINED: ReadonlySet<string> = new Set([
  "geometry.slt",
  "groups.slt",
  "json_paths.slt",
  "math.slt",
  "partners.slt",
  "patterns.slt",
  "planned.slt",
  "ranges.slt",
  "read_by_patterns.slt",
  "text_search.slt",
]);

async function answerOf(engine: TestEngine, { sql }: SltRequest): Promise<SltAnswer> {
  const { error, results } = await engine.ask(sql);
  if (error !== undefined) {
    const { code, message, statementIndex = -1 } = error;
    const isUnsupported = code === "UNSUPPORTED_FEATURE";
    const statement = statementIndex + 1;
    return { ok: false, isUnsupported, message: `${code}: ${message}`, codes: [code], statement };
  }
  const shown = results.map(({ rowCount, rows = [], schema = [] }) =>
    withoutHiddenColumns({
      columns: schema.map(({ name }) => name),
      rows: withArrayTexts(rows, schema),
      count: rowCount,
      text: JSON.stringify(rows),
    }),
  );
  return { ok: true, results: shown };
}

/** Defines a test for each file whose name is included. */
export function testCases(isIncluded: (file: string) => boolean): void {
  for (const file of readdirSync(DIRECTORY).filter(isIncluded)) {
    test(file, async () => {
      await using engine = await TestEngine.open();
      const text = readFileSync(join(DIRECTORY, file), "utf8");
      const execute = (request: SltRequest): Promise<SltAnswer> => answerOf(engine, request);
      const queryOneOf = COMBINED.has(file) ? amountOf({ usual: 5, thorough: 1 }) : 1;
      const report = await runSlt(text, { execute, engine: "tidemark", hasKeys: true, queryOneOf });
      expect(report.failures.slice(0, 10)).toEqual([]);
      expect(report.waiting).toEqual([]);
      expect(report.passedCount).toBeGreaterThan(40);
    });
  }
}
