/**
 * Asks Tidemark the same question in two ways and compares the results, so that no second database
 * is needed.
 *
 * Each round creates tables, flushes, indexes and alters some of them, changes rows, and checks
 * laws on the tables. For example, a query returns the same rows as its three parts, in which a
 * condition is true, false and NULL. `fuzz_sql/laws.ts` lists all laws. A law that does not hold
 * is printed with the seed of its round and in the shortest form that still breaks it, and the
 * script exits with 1. With `--inject`, some results lose a row. The script then ends once it
 * finds the lost row, or exits with 1.
 */

import { countOption, flag, readOptions, seedOption } from "../../scripts/support/arguments.ts";
import { chanceFromSeed } from "../../scripts/support/chance.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { OF_VALUES } from "./fuzz_sql/allowed.ts";
import { cellFromWire } from "./fuzz_sql/cells.ts";
import { changeOf, type StoredTable } from "./fuzz_sql/changes.ts";
import type { IndexPreparer } from "./fuzz_sql/indexes.ts";
import { type Law, lawOf, type Sameness } from "./fuzz_sql/laws.ts";
import {
  addIndex,
  alter,
  dropViews,
  flush,
  makeTable,
  makeViews,
  type Preparer,
} from "./fuzz_sql/tables.ts";
import { openTidemark } from "./fuzz_sql/tidemark.ts";
import { type Node, shrink, textOf } from "./fuzz_sql/tree.ts";

const LAWS_PER_ROUND = 60;
const SHRINK_TRIES_MAX = 400;
const ROWS_SHOWN_MAX = 6;
const PROGRESS_EVERY = 1000;
// One in this many queries loses a row. The SQL of a query determines whether it does, so the
// result is the same in every run.
const INJECTED_EVERY = 50;
type Refusal = NonNullable<SqlResponse["error"]>;

const {
  count,
  seed: firstSeed,
  inject: isInjected,
} = readOptions({
  count: countOption("the number of laws to check", 3000),
  seed: seedOption("the seed of the first round, as a run prints it"),
  inject: flag("removes a row from some results, and requires that this is found"),
});
const totals = { laws: 0, violations: 0, refused: 0 };

process.stdout.write(`fuzz_laws: ${count} laws, seed ${firstSeed}\n`);
await using own = await openTidemark();
const preparer: IndexPreparer & Preparer = {
  both: own.prepare,
  tidemark: own.prepare,
  index: own.mayIndex,
};
for (let seed = firstSeed; !isOver(); seed += 1) await runRound(seed);
process.stdout.write(
  `${totals.laws} laws: ${totals.violations} do not hold, ${totals.refused} could not be compared\n`,
);
process.exitCode = totals.violations > 0 === isInjected ? 0 : 1;

/**
 * Returns whether enough laws have been checked. With an injected fault, a single violation is
 * enough, because it shows that a lost row is found.
 */
function isOver(): boolean {
  return totals.laws >= count || (isInjected && totals.violations > 0);
}

async function runRound(seed: number): Promise<void> {
  const chance = chanceFromSeed(seed);
  const tables: StoredTable[] = [];
  for (let number = 1; number <= 2 + chance.below(2); number += 1) {
    tables.push(await makeTable(preparer, `t${number}`, chance));
  }
  let views = await makeViews(preparer, tables, chance);
  for (let done = 0; done < LAWS_PER_ROUND && !isOver(); done += 1) {
    totals.laws += 1;
    if (totals.laws % PROGRESS_EVERY === 0) process.stdout.write(`  ${totals.laws} laws\n`);
    if (chance.below(8) === 0) await flush(preparer, tables, chance);
    if (chance.below(10) === 0) await addIndex(preparer, tables, { allowsUnique: true, chance });
    if (chance.below(12) === 0) {
      await dropViews(preparer, views);
      await alter(preparer, tables, chance);
      views = await makeViews(preparer, tables, chance);
    }
    // Neither the effect of this change nor its error matters.
    if (chance.below(4) === 0) await own.ask(textOf(changeOf(tables, chance)));
    const law = lawOf(tables, views, chance);
    const found = await violationOf(law.sameness(law.root));
    if (found === "refused") totals.refused += 1;
    else if (found !== undefined) await report(law, seed);
  }
  await dropViews(preparer, views);
  for (const { name } of tables) await own.prepare(`DROP TABLE ${name}`);
}

/**
 * Returns the difference between the results of two queries; undefined if they agree, "refused" if
 * they cannot be compared.
 */
async function violationOf({
  isOfParts = false,
  isSet,
  parts,
  whole,
}: Sameness): Promise<string | undefined> {
  const rows: (readonly string[])[] = [];
  const refusals: Refusal[] = [];
  for (const text of [whole, ...parts]) {
    const answer = await rowsOf(text);
    if ("code" in answer) refusals.push(answer);
    else rows.push(isSet ? [...new Set(answer)] : answer);
  }
  const [refusal] = refusals.toSorted((one, two) => weightOf(two) - weightOf(one));
  if (refusal !== undefined) {
    // Every query that contains an invalid condition is refused.
    const faultyCount = isOfParts ? parts.length : parts.length + 1;
    const isSenseless = weightOf(refusal) === 1 && refusals.length >= faultyCount;
    if (weightOf(refusal) === 0 || isSenseless) return "refused";
    return `${refusal.code}: ${refusal.message}`;
  }
  const [one = [], ...others] = rows;
  const expected = one.toSorted();
  const found = (isSet ? [...new Set(others.flat())] : others.flat()).toSorted();
  if (expected.join("\n") === found.join("\n")) return undefined;
  return `${shown(expected, found)}\n  against ${shown(found, expected)}`;
}

/**
 * Returns the severity of a refusal: 0 for an error about a value that only one of the two queries
 * may compute, 1 for invalid SQL, and 2 for a defect.
 */
function weightOf({ code }: Refusal): number {
  if (OF_VALUES.has(code)) return 0;
  return code === "INTERNAL_ERROR" ? 2 : 1;
}

function shown(rows: readonly string[], others: readonly string[]): string {
  const only = rows.filter((row) => !others.includes(row)).slice(0, ROWS_SHOWN_MAX);
  return [`${rows.length} row(s)`, ...only.map((row) => `    ${row}`)].join("\n");
}

/** Returns the rows of a query as text. For a change, returns the number of changed rows. */
async function rowsOf(sql: string): Promise<readonly string[] | Refusal> {
  const { error, results } = await own.ask(sql);
  if (error !== undefined) return error;
  const entry = results.find(({ rows }) => rows !== undefined) ?? results[1];
  const { rowCount = 0, rows = [[rowCount]], schema = [] } = entry ?? {};
  const texts = rows.map((row) =>
    row.map((cell, i) => alike(cellFromWire(cell, schema[i]?.data_type ?? "BigInt"))).join(" | "),
  );
  const isFaulty = isInjected && Bun.hash.crc32(sql) % INJECTED_EVERY === 0;
  return isFaulty ? texts.slice(1) : texts;
}

/** Numbers of different types may be equal even if their texts differ. */
function alike(text: string): string {
  return /^-?\d+(\.\d+)?$/.test(text) ? String(Number(Number(text).toPrecision(13))) : text;
}

async function report(law: Law, seed: number): Promise<void> {
  totals.violations += 1;
  const isBroken = async (root: Node): Promise<boolean> => {
    const found = await violationOf(law.sameness(root));
    return found !== undefined && /^\d+ row/.test(found);
  };
  const first = (await violationOf(law.sameness(law.root))) ?? "it held when asked again";
  const least = /^\d+ row/.test(first)
    ? await shrink(law.root, isBroken, SHRINK_TRIES_MAX)
    : law.root;
  const { parts, whole } = law.sameness(least);
  const found = (await violationOf(law.sameness(least))) ?? first;
  const texts = [whole, ...parts].map((text) => `  ${text}\n`).join("");
  process.stdout.write(`\nseed ${seed}: ${law.name}\n${texts}  ${found}\n`);
}
