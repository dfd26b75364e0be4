/**
 * Statements that were not written for the parser: what the other tests run, and what the campaign
 * beside PostgreSQL generates.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { changeOf, columnsOf, type StoredTable } from "../../../scripts/fuzz_sql/changes.ts";
import { queryOf } from "../../../scripts/fuzz_sql/queries.ts";
import { textOf } from "../../../scripts/fuzz_sql/tree.ts";
import { COLUMN_TYPES } from "../../../scripts/fuzz_sql/values.ts";
import { chanceFromSeed } from "../../../scripts/support/chance.ts";
import { parseSlt } from "../../support/slt.ts";

const SQL = join(import.meta.dir, "..");

/** The requests of the cases, examples of the contract among them; some hold several statements. */
export async function requestsOfCases(): Promise<string[]> {
  const texts: string[] = [];
  for (const file of readdirSync(join(SQL, "cases")).filter((name) => name.endsWith(".txt"))) {
    const lines = (await Bun.file(join(SQL, "cases", file)).text()).split("\n");
    texts.push(...lines.flatMap((line) => /^\w*> (.*)$/.exec(line)?.[1] ?? []));
  }
  return texts;
}

/** The statements of the corpus in `slt/`. */
export function statementsOfSlt(): Promise<string[]> {
  return statementsIn("slt", ".test");
}

/** The statements of the cases that `scripts/write_cases.ts` writes. */
export function statementsOfWrittenCases(): Promise<string[]> {
  return statementsIn("cases", ".slt");
}

async function statementsIn(directory: string, ending: string): Promise<string[]> {
  const texts: string[] = [];
  for (const file of readdirSync(join(SQL, directory)).filter((name) => name.endsWith(ending))) {
    const text = await Bun.file(join(SQL, directory, file)).text();
    texts.push(...parseSlt(text, "postgresql").map(({ sql }) => sql));
  }
  return texts;
}

/** Queries and changes as `scripts/fuzz_sql.ts` sends them. */
export function generatedStatements(count: number, seed: number): string[] {
  const chance = chanceFromSeed(seed);
  const stored: StoredTable[] = ["t1", "t2", "t3"].map((name) => ({ name, columns: COLUMN_TYPES }));
  const tables = stored.map((table) => ({ name: table.name, columns: columnsOf(table) }));
  return Array.from({ length: count }, () =>
    textOf(chance.below(3) > 0 ? queryOf(tables, chance).root : changeOf(stored, chance)),
  );
}
