/**
 * Runs the same random statements on Tidemark and PostgreSQL and compares the results. For
 * queries, DuckDB's results are compared, too.
 *
 * Each round creates tables, some of them with partitions or triggers, and views, fills them,
 * flushes, indexes or alters some, and runs SELECTs and changes on them. Some SELECTs call
 * functions in PL/pgSQL and user-defined aggregates. After each change, the whole tables are
 * compared. A difference is printed with the seed of its round and the shortest statement that
 * still shows it, and the script exits with code 1. With `--values`, the script also prints
 * statements that failed for a value on only one side. Such a difference may be correct, since SQL
 * does not guarantee which values are computed. If DuckDB's result differs from both others,
 * `fuzz_sql/duckdb.ts` must know the reason; otherwise it counts as a difference, too. Allowed
 * differences from PostgreSQL are listed in `fuzz_sql/allowed.ts` and in
 * `fuzz_sql/order_barrier.ts`. If PostgreSQL's own result depends on the physical order of the
 * rows, the difference is listed in `fuzz_sql/sides.ts`.
 */

import { countOption, flag, readOptions, seedOption } from "../../scripts/support/arguments.ts";
import { chanceFromSeed } from "../../scripts/support/chance.ts";
import { changeOf, columnsOf, type StoredTable } from "./fuzz_sql/changes.ts";
import { indexedQuery } from "./fuzz_sql/indexes.ts";
import type { Difference } from "./fuzz_sql/outcome.ts";
import {
  LOG,
  makePrograms,
  makeTriggers,
  partitionsOf,
  programQuery,
} from "./fuzz_sql/programs.ts";
import { queryOf } from "./fuzz_sql/queries.ts";
import { openSides, type Way } from "./fuzz_sql/sides.ts";
import { addIndex, alter, dropViews, flush, makeTable, makeViews } from "./fuzz_sql/tables.ts";
import { findNode, list, type Node, node, shrink, textOf } from "./fuzz_sql/tree.ts";

const STATEMENTS_PER_ROUND = 60;
const SHRINK_TRIES_MAX = 400;
const PROGRESS_EVERY = 1000;
const WAYS: readonly Way[] = ["alone", "alone", "in a text", "in a transaction"];

const options = readOptions({
  count: countOption("the number of statements to compare", 2000),
  seed: seedOption("the seed of the first round, as a run prints it"),
  values: flag("also prints statements that failed for a value on one side only"),
});
const { count, seed: firstSeed } = options;
const totals = { statements: 0, differences: 0, unavailable: 0, valueErrors: 0 };
const seen = new Set<string>();

process.stdout.write(`fuzz_sql: ${count} statements, seed ${firstSeed}\n`);
await using sides = await openSides();
await makePrograms(sides);
for (let seed = firstSeed; totals.statements < count; seed += 1) await runRound(seed);
process.stdout.write(
  `${totals.statements} statements: ${totals.differences} differences, ` +
    `${totals.valueErrors} failed on one side for a value, ${sides.refusedCount} on both, ` +
    `${totals.unavailable} not available; DuckDB had an opinion of ${sides.opinionCount}\n`,
);
for (const [because, times] of sides.otherMeanings) {
  process.stdout.write(`  DuckDB alone, ${times} times: ${because}\n`);
}
for (const [because, times] of sides.listed) {
  process.stdout.write(`  PostgreSQL alone, ${times} times: ${because}\n`);
}
process.exitCode = totals.differences === 0 ? 0 : 1;

async function runRound(seed: number): Promise<void> {
  const chance = chanceFromSeed(seed);
  const tables: StoredTable[] = [];
  for (let number = 1; number <= 2 + chance.below(2); number += 1) {
    const name = `t${number}`;
    const partitions = chance.below(4) === 0 ? partitionsOf(name, chance) : undefined;
    const table = await makeTable(sides, name, chance, partitions);
    // Partitioned tables cannot have triggers in Tidemark.
    const mayHaveTriggers = partitions === undefined && chance.below(2) === 0;
    if (mayHaveTriggers) await makeTriggers(sides, table, chance);
    tables.push(table);
  }
  let last = `seed ${seed}`;
  await sides.both("DELETE FROM log");
  let views = await makeViews(sides, tables, chance);
  sides.changed(tables.map(copied));
  for (let done = 0; done < STATEMENTS_PER_ROUND && totals.statements < count; done += 1) {
    totals.statements += 1;
    if (totals.statements % PROGRESS_EVERY === 0) {
      process.stdout.write(`  ${totals.statements} statements, seed ${seed}\n`);
    }
    if (chance.below(8) === 0) await flush(sides, tables, chance);
    if (chance.below(10) === 0) await addIndex(sides, tables, { allowsUnique: false, chance });
    if (chance.below(12) === 0) {
      await dropViews(sides, views);
      await alter(sides, tables, chance);
      sides.changed(tables.map(copied));
      views = await makeViews(sides, tables, chance);
    }
    if (chance.below(3) > 0) {
      if (chance.below(5) === 0) {
        const root = programQuery(chance.pick(tables), chance);
        const way = chance.pick(WAYS);
        const found = await sides.difference(root, { isOrdered: false, way });
        if (found !== undefined) await report(root, { found, isOrdered: false, way, seed });
        continue;
      }
      const indexed = chance.below(4) === 0 ? indexedQuery(chance.pick(tables), chance) : undefined;
      const { isOrdered, root } =
        indexed === undefined
          ? queryOf(
              [
                ...tables.map((table) => ({ name: table.name, columns: columnsOf(table) })),
                ...views,
              ],
              chance,
            )
          : { isOrdered: true, root: indexed };
      const way = chance.pick(WAYS);
      const found = await sides.difference(root, { isOrdered, way });
      if (found !== undefined) await report(root, { found, isOrdered, way, seed });
      continue;
    }
    const change = changeOf(tables, chance);
    const way = chance.pick(WAYS);
    last = textOf(change);
    const found = await sides.difference(change, { isOrdered: false, way });
    sides.changed(tables.map(copied));
    // From here on, the rows of the two sides differ, so these tables cannot reveal any other
    // fault.
    if (sides.wasAllowed) break;
    const stored = await differenceIn([...tables, LOG]);
    if (found !== undefined) {
      await report(change, { found, isOrdered: false, way, seed, isChange: true });
    } else if (stored !== undefined) {
      totals.differences += 1;
      print(last, `seed ${seed}: the tables differ after`, stored);
    }
    if (stored !== undefined) break;
  }
  await dropViews(sides, views);
  for (const { name } of tables) await sides.both(`DROP TABLE ${name}`);
}

/** Describes a table in the form in which it is copied to DuckDB. */
function copied({ columns, name }: StoredTable): Parameters<typeof sides.changed>[0][number] {
  return { name, columns: [{ name: "id", type: "INT" }, ...columns] };
}

/**
 * Returns the difference between the rows of the two sides, in the first table in which they
 * differ; undefined if they agree.
 */
async function differenceIn(tables: readonly StoredTable[]): Promise<Difference | undefined> {
  for (const table of tables) {
    const names = columnsOf(table).map((column) => column.name);
    const root = node(
      "query",
      "SELECT ",
      list("outputs", names),
      ` FROM ${table.name} ORDER BY id`,
    );
    const found = await sides.difference(root, { isOrdered: true, way: "alone" });
    if (found !== undefined) return found;
  }
  return undefined;
}

interface Report {
  readonly found: Difference;
  readonly isOrdered: boolean;
  readonly way: Way;
  readonly seed: number;
  readonly isChange?: boolean;
}

async function report(
  root: Node,
  { found, isChange, isOrdered, seed, way }: Report,
): Promise<void> {
  if (found.isUnavailable) {
    totals.unavailable += 1;
    if (!seen.has(found.tidemark)) process.stdout.write(`\nseed ${seed}: ${found.tidemark}\n`);
    seen.add(found.tidemark);
    return;
  } else if (found.isValueError) {
    totals.valueErrors += 1;
    if (!options.values) return;
  } else {
    totals.differences += 1;
  }
  // A change cannot be repeated, because it has already changed its rows.
  const isFaulty = async (candidate: Node): Promise<boolean> => {
    if (isOrdered && orderIn(candidate) !== orderIn(root)) return false;
    const now = await sides.difference(candidate, { isOrdered, way });
    return now !== undefined && isAlike(now, found);
  };
  const least = isChange === true ? root : await shrink(root, isFaulty, SHRINK_TRIES_MAX);
  const now = isChange === true ? found : await sides.difference(least, { isOrdered, way });
  print(textOf(least), `seed ${seed}, ${way}`, now ?? found);
}

/**
 * Returns the ORDER BY clause that must be preserved when a statement is shrunk, if its rows are
 * compared in order.
 */
function orderIn(root: Node): string {
  const outputs = findNode(root, "outputs");
  const keys = findNode(root, "tail");
  return [outputs, keys].map((part) => (part === undefined ? "" : textOf(part))).join(" ");
}

function isAlike(one: Difference, other: Difference): boolean {
  if (isRows(one.tidemark) !== isRows(other.tidemark)) return false;
  if (isRows(one.postgres) !== isRows(other.postgres)) return false;
  if ((one.duckdb === undefined) !== (other.duckdb === undefined)) return false;
  return isRows(one.tidemark) || conditionOf(one) === conditionOf(other);
}

function isRows(text: string): boolean {
  return /^\d+ row/.test(text);
}

function conditionOf({ tidemark }: Difference): string {
  return tidemark.split(":")[0] ?? "";
}

function print(sql: string, where: string, { duckdb, postgres, tidemark }: Difference): void {
  const second = duckdb === undefined ? "" : `  duckdb:     ${duckdb}\n`;
  process.stdout.write(
    `\n${where}\n  ${sql}\n  tidemark:   ${tidemark}\n  postgresql: ${postgres}\n${second}`,
  );
}
