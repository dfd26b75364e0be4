/**
 * Follows random queries as a whole while random commits change their tables, and compares each
 * complete state with the query evaluated at the seq of that state.
 *
 * Each round creates tables and views, follows queries of the generator of `fuzz_sql`, and changes
 * the tables in bursts of commits. Between bursts some followers disconnect and resume, and once a
 * round the database is closed and opened again. A state that differs is printed with the seed of
 * its round, and the script exits with 1. With `--inject` a fault is planted into what followers
 * receive, and the script exits with 1 unless it finds the fault.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  countOption,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { type Chance, chanceFromSeed } from "../../scripts/support/chance.ts";
import type { Principal } from "../../src/auth/mod.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import type { Seq } from "../../src/base/seq.ts";
import type { Database } from "../../src/database.ts";
import { SubscriptionError } from "../../src/live/mod.ts";
import type { ResultPlan } from "../../src/sql/mod.ts";
import { openAt } from "../support/database.ts";
import { principalFor } from "../support/principal_for.ts";
import {
  type FollowedState,
  type PlantedFault,
  ResultFollower,
} from "../support/result_follower.ts";
import { changeOf, columnsOf, type StoredTable } from "./fuzz_sql/changes.ts";
import { queryOf } from "./fuzz_sql/queries.ts";
import { makeTable, makeViews, type Preparer } from "./fuzz_sql/tables.ts";
import { textOf } from "./fuzz_sql/tree.ts";

const QUERIES_PER_ROUND = 12;
const BURSTS_PER_ROUND = 8;
const COMMITS_PER_BURST_MAX = 4;

const options = readOptions({
  count: countOption("queries to follow", 400),
  seed: seedOption("the seed of the first round, as a run prints it"),
  inject: optionalOneOf(
    ["lost", "altered", "early", "undead"],
    "the fault to plant, which has to be found",
  ),
});
const fault: PlantedFault | undefined = options.inject;
const totals = { queries: 0, states: 0, resumes: 0, differences: 0 };

interface Followed {
  readonly sql: string;
  readonly states: FollowedState[];
  follower: ResultFollower;
}

const directory = mkdtempSync(join(tmpdir(), "tidemark-fuzz-live-"));
let database: Database = await opened();
const fuzz: Principal = principalFor(database, "root");
try {
  for (let seed = options.seed; totals.queries < options.count; seed += 1) await runRound(seed);
} finally {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
}
process.stdout.write(
  `${totals.queries} queries, ${totals.states} states, ${totals.resumes} resumes: ${totals.differences} differences\n`,
);
process.exitCode = totals.differences > 0 === (fault !== undefined) ? 0 : 1;

function opened(): Promise<Database> {
  return openAt(directory, { config: 'storage.durability = "relaxed"' });
}

async function ask(sql: string): Promise<DatabaseError | undefined> {
  return (await database.sql.execute(fuzz, { sql, params: [], namespace: "fuzz" })).error;
}

async function prepare(sql: string): Promise<void> {
  const error = await ask(sql);
  if (error !== undefined) throw new Error(`Cannot prepare with ${sql}`, { cause: error });
}

async function runRound(seed: number): Promise<void> {
  const chance = chanceFromSeed(seed);
  await prepare("DROP NAMESPACE IF EXISTS fuzz CASCADE; CREATE NAMESPACE fuzz");
  const preparer: Preparer = { both: prepare, tidemark: prepare };
  const tables: StoredTable[] = [];
  for (let number = 1; number <= 2 + chance.below(2); number += 1) {
    tables.push(await makeTable(preparer, `t${number}`, chance));
  }
  const views = await makeViews(preparer, tables, chance);
  const named = tables.map((table) => ({ name: table.name, columns: columnsOf(table) }));
  const followed: Followed[] = [];
  for (let count = 0; count < QUERIES_PER_ROUND; count += 1) {
    const made = follow(textOf(queryOf([...named, ...views], chance).root));
    if (made !== undefined) followed.push(made);
  }
  totals.queries += followed.length;
  await check(followed, seed);
  for (let burst = 0; burst < BURSTS_PER_ROUND; burst += 1) {
    const away = followed.filter(({ follower }) => {
      if (chance.below(4) > 0) return false;
      follower.subscription?.close();
      return true;
    });
    await change(tables, chance);
    if (burst === BURSTS_PER_ROUND / 2) {
      for (const { follower } of followed) follower.subscription?.close();
      await database.close();
      database = await opened();
      for (const each of followed) resume(each);
    } else for (const each of away) resume(each);
    await check(followed, seed);
  }
  for (const { follower } of followed) follower.subscription?.close();
}

/** Changes the tables in several commits. A change that the server refuses changes nothing. */
async function change(tables: readonly StoredTable[], chance: Chance): Promise<void> {
  for (let commit = 0; commit <= chance.below(COMMITS_PER_BURST_MAX); commit += 1) {
    const changes = Array.from({ length: 1 + chance.below(3) }, () =>
      textOf(changeOf(tables, chance)),
    );
    await ask(changes.length === 1 ? changes.join() : `BEGIN; ${changes.join("; ")}; COMMIT`);
  }
}

/** Returns undefined for a query that is followed row by row, or not at all. */
function follow(sql: string): Followed | undefined {
  if (planOf(sql) === undefined) return undefined;
  const states: FollowedState[] = [];
  const follower = new ResultFollower({ onState: (state) => states.push(state), fault });
  const each = { sql, states, follower };
  subscribe(each);
  return each;
}

function resume(each: Followed): void {
  const { follower: held, states } = each;
  if (held.seq === undefined || held.failure !== undefined) return;
  totals.resumes += 1;
  each.follower = new ResultFollower({ onState: (state) => states.push(state), held, fault });
  subscribe(each, held.seq);
}

function subscribe({ follower, sql }: Followed, from?: number): void {
  const spec = {
    id: "q",
    sql,
    namespace_id: "fuzz",
    ...(from === undefined ? {} : { options: { from_seq_id: from } }),
  };
  follower.subscription = database.live.subscribe({ principal: fuzz, spec, sink: follower });
}

function planOf(sql: string): ResultPlan | undefined {
  try {
    const planned = database.sql.planFollowed(fuzz, { sql, params: [], namespace: "fuzz" });
    return planned.way === "result" ? planned.plan : undefined;
  } catch (error) {
    if (error instanceof DatabaseError || error instanceof SubscriptionError) return undefined;
    throw error;
  }
}

/** Waits until the followers have everything, and compares all of their states since then. */
async function check(followed: readonly Followed[], seed: number): Promise<void> {
  for (const each of followed) {
    const { follower, sql, states } = each;
    let failure: string | undefined;
    try {
      await follower.reaches(database.store.visibleSeq);
    } catch (error) {
      failure = error instanceof Error ? error.message : "the follower failed";
    }
    const plan = planOf(sql);
    if (plan === undefined) continue;
    for (const state of states.splice(0)) {
      totals.states += 1;
      const expected = await expectedAt(plan, state.seq as Seq);
      if (expected !== undefined && expected !== rowsText(plan, state))
        report(seed, sql, `at ${state.seq}`);
    }
    if (failure === undefined) continue;
    // A query that fails on a row ends, as the SELECT does.
    if ((await expectedAt(plan, database.store.visibleSeq)) === undefined) continue;
    report(seed, sql, failure);
  }
}

function report(seed: number, sql: string, what: string): void {
  totals.differences += 1;
  if (fault === undefined) process.stdout.write(`seed ${seed}, ${what}:\n  ${sql}\n`);
}

/** The rows of the query at a seq as text; undefined if the query fails there. */
async function expectedAt(plan: ResultPlan, seq: Seq): Promise<string | undefined> {
  try {
    const { rows } = await plan.evaluate(seq).result;
    return sortedText(rows);
  } catch (error) {
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

function rowsText({ fields }: ResultPlan, { rows }: FollowedState): string {
  return sortedText(rows.map((row) => fields.map(({ name }) => row[name] ?? null)));
}

function sortedText(rows: readonly (readonly unknown[])[]): string {
  const texts = rows.map((row) =>
    JSON.stringify(row, (_, cell: unknown) => (typeof cell === "bigint" ? String(cell) : cell)),
  );
  return texts.toSorted().join("\n");
}
