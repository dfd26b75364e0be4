/**
 * Plans queries that are followed as a whole: a query is evaluated again after a change of one of
 * its tables, and the rows are compared with those that were delivered before.
 *
 * A plan is an ordinary statement. Columns that identify or order the rows are added to the select
 * list if they are not in it. Invariant: two evaluations of a plan at the same seq and time give
 * the same rows. The time may be compared with a column, so that the next change is known. Other
 * functions whose values change by themselves are refused.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { seqFromUnixMs } from "../../base/seq.ts";
import { DEFAULT_NAMESPACE, type ViewEntry } from "../../catalog/mod.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { type DataType, exactCellMakerFor, isTimeWord, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundSelect, Requirement } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { expressionsIn, relationsIn } from "../bind/query/query_walk.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { childrenOf } from "../bind/walk.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import { MaintainedQuery } from "../maintain/maintained_query.ts";
import { NotMaintained } from "../maintain/not_maintained.ts";
import type { AstNode, SelectStatement, Statement } from "../parse/ast/ast.ts";
import { changesRows, coreOf, isSelectNode, mapCore } from "../parse/ast/query_nodes.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import type { LiveRequest, ResultSort, ResultTable } from "../ports/engine.ts";
import { requireNoGap, typedParameters } from "../ports/parameters.ts";
import { CellRows } from "../result/result.ts";
import { authorize, meetsAll } from "../rights/requirements.ts";
import { dmlDepsOf, statisticsOf } from "./binding_deps.ts";
import { type ClockTerms, clockTermsOf } from "./clock_terms.ts";
import {
  fieldsWithNames,
  keyFieldsOf,
  sortOf,
  windowTermsOf,
  withHiddenColumns,
  withTotalOrder,
} from "./followed_select.ts";
import {
  FIXED_FUNCTIONS,
  fingerprintOf,
  followedNode,
  type LiveCaller,
  type LivePlanDeps,
  startOfCall,
  unfixedFunction,
  withOwner,
} from "./live_planner.ts";
import { type NextChange, nextChangeOf } from "./next_change.ts";
import { boundFor, type PreparedQuery, prepare } from "./prepared.ts";
import { type ContextOptions, newContext } from "./statement_context.ts";
import { watchOf } from "./statement_watch.ts";
import { mayReadTombstones } from "./tombstone_reads.ts";

/** A bound query that is followed as a whole. */
export interface WholeQuery {
  readonly node: SelectStatement;
  readonly types: readonly DataType[];
  readonly slots: readonly Value[];
  readonly namespace: string;
  /** The caller, with an owner number. */
  readonly principal: Principal;
  readonly prepared: PreparedQuery;
  readonly tables: readonly ResultTable[];
  readonly changesByTime: boolean;
  /** Finds the moments at which the result changes without a commit. */
  readonly nextChanges: readonly NextChange[];
  /** The fields of a row. Their names are unique. */
  readonly fields: readonly SchemaField[];
  /** The fields that identify a row; undefined if a row is identified only by its values. */
  readonly keyFields: readonly number[] | undefined;
  readonly sort: readonly ResultSort[];
  /** Queries with the same fingerprint have the same rows at every seq. */
  readonly fingerprint: string;
  /** The newest change of a view, if the query reads a view; otherwise 0. */
  readonly viewsChangedSeq: number;
  /** Whether a user may read the rows now. */
  mayRead(principal: Principal): boolean;
  /**
   * Plans how the result is kept up to date from the changes of its tables. Returns the reason if
   * the query has to be evaluated again after each change.
   *
   * @throws {DatabaseError} If a definition has changed.
   */
  maintained(): MaintainedPlan | string;
}

/** A query that can be maintained, and its seed statement. */
export interface MaintainedPlan {
  readonly query: MaintainedQuery;
  readonly seed: StatementToRun;
}

/** A prepared statement, and its text for readers in other threads. */
export interface StatementToRun {
  readonly node: SelectStatement;
  readonly prepared: PreparedQuery;
}

/**
 * Plans a query in one tick of the event loop.
 *
 * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
 */
export function planFollowedQuery(
  deps: LivePlanDeps,
  request: LiveRequest,
  { ledger, principal }: LiveCaller,
): WholeQuery {
  const { catalog, limits } = deps;
  const { types, values } = typedParameters(request.params, limits);
  const written = selectIn(request.sql, { limits, parameterCount: types.length });
  const namespace = request.namespace ?? DEFAULT_NAMESPACE;
  const owned = withOwner(catalog, principal);
  const watch = watchOf(ledger, deps);
  const statistics = statisticsOf(deps);
  const newStatement = (): StatementBinding => new StatementBinding(types, { statistics, watch });
  const bound = (node: SelectStatement): BoundSelect => {
    const statement = newStatement();
    const dmlDeps = dmlDepsOf(deps, { namespace, principal: owned, statement });
    return boundFor({ catalog, principal: owned, statement }, () => bindQuery(node, dmlDeps));
  };
  const { node, select, sortCount } = withTotalOrder(withHiddenColumns(written, bound), bound);
  const clockTerms = clockTermsOf(select);
  refuseUnfixed(select, { node: written, slots: values, clockTerms });
  const statement = newStatement();
  const dmlDeps = dmlDepsOf(deps, { namespace, principal: owned, statement });
  const prepared = prepare(node, { deps: dmlDeps, statement });
  if (prepared.kind !== "query") throw notFollowed(written, "a statement that changes rows");
  requireNoGap(statement.usedParameters, types.length);
  const { requirements } = prepared;
  authorize(requirements, owned, catalog);
  readLiterals(prepared.literals);
  const tables = tablesOf(prepared, owned);
  const readsSystemViews = requirements.some(({ action }) => action === "read-system");
  const isOfCaller =
    readsSystemViews ||
    mayReadTombstones(prepared) ||
    tables.some(({ owner }) => owner !== SHARED_OWNER) ||
    [...callsIn(select)].some(({ name }) => FIXED_FUNCTIONS.has(name));
  const changesByTime = readsSystemViews || requirements.some(mayExpire);
  const nextChanges = clockTerms.terms.map((term) => nextChangeOf(deps, term, owned));
  const maintained = (): MaintainedPlan | string =>
    request.way === "evaluated"
      ? "the subscription asks for it"
      : maintainedPlan(deps, {
          node,
          select,
          changesByTime: changesByTime || nextChanges.length > 0,
          start: { principal: owned, namespace, slots: values, atSeq: deps.store.visibleSeq },
          // The result is maintained beyond the time of the request.
          binding: () => new StatementBinding(types, { statistics }),
        });
  if (request.way === "maintained") requireMaintained(maintained());
  return {
    node,
    types,
    slots: values,
    namespace,
    principal: owned,
    maintained,
    prepared: { ...prepared, cells: new CellRows(prepared.cells.types, exactCellMakerFor) },
    viewsChangedSeq: statement.viewCount === 0 ? 0 : newestChangeOf(catalog.views()),
    tables,
    changesByTime,
    nextChanges,
    fields: fieldsWithNames(prepared.fields ?? []),
    keyFields: keyFieldsOf(select),
    sort: sortOf(select).slice(0, sortCount),
    fingerprint: fingerprintOf(request, namespace, isOfCaller ? owned : undefined),
    mayRead: (reader) => mayReadNow(catalog, requirements, reader),
  };
}

/** Whether a user may read the rows, with the present role of the user. */
function mayReadNow(
  catalog: LivePlanDeps["catalog"],
  requirements: readonly Requirement[],
  reader: Principal,
): boolean {
  const user = catalog.user(reader.userId);
  return user !== undefined && meetsAll(requirements, { ...reader, role: user.role }, catalog);
}

/**
 * Returns the only statement of an SQL text, which has to be a query.
 *
 * @throws {DatabaseError}
 */
function selectIn(sql: string, options: Parameters<typeof followedNode>[1]): SelectStatement {
  const written = followedNode(sql, options);
  if (!isSelectNode(written)) throw notFollowed(written, written.type.toUpperCase());
  if (changesRows(written)) throw notFollowed(written, "a statement that changes rows");
  refuseHistory(written);
  return written;
}

interface MaintainedText {
  readonly node: SelectStatement;
  readonly select: BoundSelect;
  readonly changesByTime: boolean;
  readonly start: ContextOptions;
  readonly binding: () => StatementBinding;
}

/**
 * Returns a plan for maintaining the query, or the reason why there is none. @throws
 * {DatabaseError}
 */
function maintainedPlan(
  deps: LivePlanDeps,
  { binding, changesByTime, node, select, start }: MaintainedText,
): MaintainedPlan | string {
  if (changesByTime) return "its rows change by time";
  const core = coreOf(node);
  if (core === undefined) return "it is not one SELECT";
  const { namespace, principal } = start;
  const depsFor = (statement: StatementBinding): ReturnType<typeof dmlDepsOf> =>
    dmlDepsOf(deps, { namespace, principal, statement });
  try {
    const query = new MaintainedQuery({
      core,
      bind: (other) =>
        bindQuery(
          mapCore(node, () => other),
          depsFor(binding()),
        ),
      terms: windowTermsOf(select),
      principal,
      store: deps.store,
      context: newContext(deps, start),
    });
    const seedNode = mapCore(node, () => query.seed);
    const statement = binding();
    const seed = prepare(seedNode, { deps: depsFor(statement), statement });
    assert(seed.kind === "query", "a seed is a query");
    const cells = new CellRows(seed.cells.types, () => (value) => value);
    return { query, seed: { node: seedNode, prepared: { ...seed, cells } } };
  } catch (error) {
    if (error instanceof NotMaintained) return error.message;
    throw error;
  }
}

function notFollowed(node: Statement, what: string): DatabaseError {
  return new DatabaseError("INVALID_SQL", `Cannot subscribe to ${what}`, {
    position: node._location.start,
    hint: "a live query is one SELECT, which may begin with WITH",
  });
}

function refuseHistory(node: AstNode): void {
  for (const part of partsOf([node])) {
    const { systemTime }: { readonly systemTime?: AstNode } = part;
    if (systemTime === undefined) continue;
    throw new DatabaseError("INVALID_SQL", "Cannot subscribe to a query with FOR SYSTEM_TIME", {
      position: systemTime._location.start,
      hint: "the rows of a past moment do not change: run the query once",
    });
  }
}

function newestChangeOf(views: readonly ViewEntry[]): number {
  const seqs = views.map(({ changedSeq, updatedAtMs }) => {
    return changedSeq ?? seqFromUnixMs(updatedAtMs + 1);
  });
  return Math.max(0, ...seqs);
}

/** @throws {DatabaseError} UNSUPPORTED_FEATURE */
function requireMaintained(plan: MaintainedPlan | string): void {
  if (typeof plan !== "string") return;
  throw new DatabaseError("UNSUPPORTED_FEATURE", `Cannot maintain the result: ${plan}`, {
    hint: "leave out the option way: the query is then evaluated again after each change",
  });
}

/** Whether the rows of a table may disappear without a commit. */
function mayExpire(requirement: Requirement): boolean {
  return "table" in requirement && requirement.table.options.ttlSeconds !== undefined;
}

function tablesOf({ requirements }: PreparedQuery, principal: Principal): ResultTable[] {
  const byId = new Map<number, ResultTable>();
  for (const requirement of requirements) {
    if (!("table" in requirement)) continue;
    const { table } = requirement;
    const { name, namespace, tableId } = table;
    const owner = ownerOf(principal, table);
    byId.set(tableId, { tableId, owner, name: `${namespace}.${name}` });
  }
  return [...byId.values()];
}

/** Refuses functions, and words such as 'now', whose values change without a change of a row. */
function refuseUnfixed(
  select: BoundSelect,
  {
    clockTerms,
    node,
    slots,
  }: { node: SelectStatement; slots: readonly Value[]; clockTerms: ClockTerms },
): void {
  for (const call of callsIn(select)) {
    const { name, volatility } = call;
    const isFixed = FIXED_FUNCTIONS.has(name) || clockTerms.calls.has(call);
    if (volatility !== "immutable" && !isFixed) {
      throw unfixedFunction(name, startOfCall(node, name));
    }
    const word = call.readsTimeWords === true ? timeWordIn(call.args[0], slots) : undefined;
    if (word === undefined) continue;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot subscribe with '${word}' as a time: its value changes even if the row does not`,
      {
        position: node._location.start,
        hint: "write the time itself, or pass it as a parameter",
      },
    );
  }
}

function timeWordIn(
  operand: BoundExpression | undefined,
  slots: readonly Value[],
): string | undefined {
  if (operand?.kind !== "constant" && operand?.kind !== "slot") return undefined;
  const value = operand.kind === "constant" ? operand.value : slots[operand.slot];
  return typeof value === "string" && isTimeWord(value) ? value : undefined;
}

type CallExpression = Extract<BoundExpression, { kind: "call" }>;

/** Returns every call in a query, its WITH entries, and the queries in its expressions. */
function callsIn(select: BoundSelect): Set<CallExpression> {
  const calls = new Set<CallExpression>();
  const seen = new Set<BoundSelect>();
  const visit = (query: BoundSelect): void => {
    if (seen.has(query)) return;
    seen.add(query);
    for (const expression of expressionsIn(query)) visitExpression(expression);
    for (const relation of relationsIn(query))
      if (relation.kind === "cte") visit(relation.cte.query);
  };
  const visitExpression = (expression: BoundExpression): void => {
    if (expression.kind === "call") calls.add(expression);
    if (expression.kind === "subquery") visit(expression.subquery.query);
    for (const child of childrenOf(expression)) visitExpression(child);
  };
  visit(select);
  return calls;
}
