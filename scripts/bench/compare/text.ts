/**
 * Measures the overhead of a statement apart from its actual work: from SQL with new literals to
 * its cached plan, from such SQL to its result on an empty table, and from SQL of a new shape to a
 * plan. It runs in-process, because HTTP would cost more than all of these.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import { defined } from "../../../src/base/assert.ts";
import type { Database } from "../../../src/database.ts";
import { StatementBinding } from "../../../src/sql/bind/binding.ts";
import type { DmlDeps } from "../../../src/sql/bind/change/dml_target.ts";
import { bindInSteps, bindQuery } from "../../../src/sql/bind/query/select_binder.ts";
import { everyRow } from "../../../src/sql/bind/row_rights.ts";
import type { SelectFromStatement } from "../../../src/sql/parse/ast/ast.ts";
import { parseNormalized } from "../../../src/sql/parse/parser.ts";
import {
  type NormalizedStatement,
  normalizeStatement,
} from "../../../src/sql/parse/text/normalize.ts";
import { planSelect } from "../../../src/sql/plan/planner.ts";
import { statisticsOf } from "../../../src/sql/prepare/binding_deps.ts";
import { type CacheKey, literalValues, PlanCache } from "../../../src/sql/prepare/plan_cache.ts";
import { type Prepared, prepare } from "../../../src/sql/prepare/prepared.ts";
import { openAt } from "../../../tests/support/database.ts";
import { median } from "../../support/statistics.ts";
import type { Line } from "./jobs.ts";

const STATEMENTS_PER_ROUND = 50_000;
const SHAPES_PER_ROUND = 3000;

/**
 * The number of initial rounds that are not counted. The planner has more code than the execution
 * of a statement, and its code is compiled gradually.
 */
const PLAN_WARM_ROUNDS = 10;

/** The caller of the statements that a benchmark runs in-process. */
export const BENCH_PRINCIPAL: Principal = {
  userId: "bench",
  role: "dba",
  owner: undefined,
  actorId: "bench",
  actorRole: "dba",
  isImpersonated: false,
  sessionId: "",
};

export async function textLines(roundCount: number): Promise<Line[]> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const database = await openAt(directory);
  const run = async (sql: string): Promise<void> => {
    const { error } = await database.sql.execute(BENCH_PRINCIPAL, { sql, params: [] });
    if (error !== undefined) throw error;
  };
  await run("CREATE TABLE default.t (id BIGINT PRIMARY KEY, usr TEXT, body TEXT, ts BIGINT)");
  const plans = new PlanCache(database.catalog, 24 * 2 ** 20);
  const first = keyOf(plans, textOf(0));
  plans.set(first, preparedOf(textOf(0), first, database), BENCH_PRINCIPAL);
  const toPlan: number[] = [];
  const toResult: number[] = [];
  // The first round warms up the compilers.
  for (let round = -1; round < roundCount; round += 1) {
    const startNs = Bun.nanoseconds();
    for (let n = 0; n < STATEMENTS_PER_ROUND; n += 1) hit(plans, textOf(n));
    const plannedNs = Bun.nanoseconds();
    for (let n = 0; n < STATEMENTS_PER_ROUND; n += 1) await run(textOf(n));
    if (round < 0) continue;
    toPlan.push((plannedNs - startNs) / 1000 / STATEMENTS_PER_ROUND);
    toResult.push((Bun.nanoseconds() - plannedNs) / 1000 / STATEMENTS_PER_ROUND);
  }
  await database.close();
  rmSync(directory, { recursive: true, force: true });
  return [
    {
      job: "statement with new literals, from text to the plan kept for it",
      unit: "µs",
      isRate: false,
      values: { Tidemark: median(toPlan) },
      target: { atMost: 5 },
    },
    {
      job: "statement with new literals, from text to an empty result",
      unit: "µs",
      isRate: false,
      values: { Tidemark: median(toResult) },
      target: { atMost: 20 },
    },
  ];
}

function textOf(n: number): string {
  return `SELECT id, usr, body, ts FROM default.t WHERE id = ${n} AND usr <> 'u${n}'`;
}

function keyOf(plans: PlanCache, text: string): CacheKey {
  const key = plans.keyOf(text, { namespace: "default", types: [] });
  return defined(key, "benchmark text is not a single query");
}

/** Looks up a statement's plan and its literals' values in the cache. */
function hit(plans: PlanCache, text: string): void {
  const key = keyOf(plans, text);
  defined(plans.get(key, BENCH_PRINCIPAL), "plan cache has no plan for the first benchmark text");
  literalValues(key.normalized.literals);
}

function preparedOf(text: string, { normalized }: CacheKey, database: Database): Prepared {
  const { deps, node } = parsedSelect(text, normalized, database);
  return prepare(node, { deps, statement: deps.statement });
}

/** Measures planning without a cached plan: each statement has a different shape. */
export async function planLine(roundCount: number): Promise<Line> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const database = await openAt(directory);
  for (const sql of [
    "CREATE TABLE default.o (id BIGINT PRIMARY KEY, c BIGINT, total DECIMAL(10,2), state TEXT)",
    "CREATE TABLE default.c (id BIGINT PRIMARY KEY, name TEXT, city TEXT)",
  ]) {
    const { error } = await database.sql.execute(BENCH_PRINCIPAL, { sql, params: [] });
    if (error !== undefined) throw error;
  }
  const microseconds: number[] = [];
  for (let round = 0; round < PLAN_WARM_ROUNDS + roundCount; round += 1) {
    const from = round * SHAPES_PER_ROUND;
    const texts = Array.from({ length: SHAPES_PER_ROUND }, (_, i) => joinOfShape(from + i));
    const before = process.cpuUsage();
    for (const text of texts) plan(text, database);
    const { system, user } = process.cpuUsage(before);
    if (round >= PLAN_WARM_ROUNDS) microseconds.push((user + system) / SHAPES_PER_ROUND);
  }
  await database.close();
  rmSync(directory, { recursive: true, force: true });
  return {
    job: "two-table join with a new shape, from text to plan",
    unit: "µs",
    isRate: false,
    values: { Tidemark: median(microseconds) },
    target: { atMost: 60 },
  };
}

/**
 * The number becomes part of an alias, so that each query has a different key in the plan cache.
 */
function joinOfShape(n: number): string {
  return (
    `SELECT o.id AS id${n}, o.total, c.name FROM default.o o JOIN default.c c ON c.id = o.c ` +
    `WHERE c.city = 'c${n}' AND o.total > ${n} AND o.state <> 'done' ORDER BY o.id LIMIT 10`
  );
}

function plan(text: string, database: Database): void {
  const normalized = defined(normalizeStatement(text), "benchmark text is not a single query");
  const { deps, node } = parsedSelect(text, normalized, database);
  planSelect(bindQuery(node, deps));
}

function parsedSelect(
  text: string,
  normalized: NormalizedStatement,
  { catalog, store }: Database,
): { node: SelectFromStatement; deps: DmlDeps } {
  const parsed = defined(
    parseNormalized(text, normalized),
    "benchmark literals were not lifted into slots",
  );
  const { statement: node } = parsed;
  if (node.type !== "select") throw new Error("Cannot plan the text: it is no SELECT");
  const deps = {
    statement: new StatementBinding([], { statistics: statisticsOf({ store }) }),
    isOutermost: true,
    bindInSteps,
    rights: everyRow((tableId) => catalog.tableById(tableId)),
    requiresWhere: false,
    source: {
      namespace: "default",
      table: ({ name, schema }: { name: string; schema?: string | undefined }) =>
        defined(
          catalog.table(schema ?? "default", name),
          "benchmark table is missing from the catalog",
        ),
      partsOf: () => undefined,
      systemView: () => undefined,
      view: () => undefined,
      functions: () => [],
    },
  };
  return { node, deps };
}
