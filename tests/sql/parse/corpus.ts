/**
 * Collects statements that were not written to test the parser: those of the other tests, and
 * generated statements of the campaign that compares results with PostgreSQL's.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { chanceFromSeed } from "../../../scripts/support/chance.ts";
import { changeOf, columnsOf, type StoredTable } from "../../campaigns/fuzz_sql/changes.ts";
import { queryOf } from "../../campaigns/fuzz_sql/queries.ts";
import { textOf } from "../../campaigns/fuzz_sql/tree.ts";
import { COLUMN_TYPES } from "../../campaigns/fuzz_sql/values.ts";
import { parseSlt } from "../../support/slt.ts";

const SQL = join(import.meta.dir, "..");

/** The case files that `scripts/write_cases.ts` does not write. */
const OWN_CASES = ["cases/functions.slt", "cases/errors.slt", "contract/examples.slt"];

/**
 * Returns the requests in the project's own cases, including the acceptance examples. Some
 * requests contain several statements.
 */
export async function requestsOfCases(): Promise<string[]> {
  return await requestsIn(OWN_CASES, "tidemark");
}

/** Returns the statements of the corpus in `slt/`. */
export async function statementsOfSlt(): Promise<string[]> {
  const files = readdirSync(join(SQL, "slt")).filter((name) => name.endsWith(".test"));
  return await requestsIn(files.map((name) => `slt/${name}`));
}

/** Returns the statements in the cases written by `scripts/write_cases.ts`. */
export async function statementsOfWrittenCases(): Promise<string[]> {
  const files = readdirSync(join(SQL, "cases")).map((name) => `cases/${name}`);
  return await requestsIn(files.filter((path) => !OWN_CASES.includes(path)));
}

async function requestsIn(paths: readonly string[], engine = "postgresql"): Promise<string[]> {
  const texts: string[] = [];
  for (const path of paths) {
    const text = await Bun.file(join(SQL, path)).text();
    texts.push(...parseSlt(text, engine).map(({ sql }) => sql));
  }
  return texts;
}

/** Returns queries and changes as `tests/campaigns/fuzz_sql.ts` sends them. */
export function generatedStatements(count: number, seed: number): string[] {
  const chance = chanceFromSeed(seed);
  const stored: StoredTable[] = ["t1", "t2", "t3"].map((name) => ({ name, columns: COLUMN_TYPES }));
  const tables = stored.map((table) => ({ name: table.name, columns: columnsOf(table) }));
  return Array.from({ length: count }, () =>
    textOf(chance.below(3) > 0 ? queryOf(tables, chance).root : changeOf(stored, chance)),
  );
}
