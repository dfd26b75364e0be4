/**
 * Plans a materialised query for one subscriber, using the caller's rights, parameters and owner
 * number.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { digestKey } from "../../base/short_key.ts";
import { DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { isTimeWord, type Value } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import type { LiveRequest, ResultTable, SqlParameter } from "../ports/engine.ts";
import { shortParameters, typedParameters } from "../ports/parameters.ts";
import { authorize } from "../rights/requirements.ts";
import type { ClockTerms } from "./clock_terms.ts";
import {
  callsIn,
  type FollowedText,
  type FollowedTexts,
  newFollowedText,
} from "./followed_text.ts";
import {
  type CallExpression,
  claimsKeyOf,
  FIXED_FUNCTIONS,
  fingerprintOf,
  type LiveCaller,
  type LivePlanDeps,
  unfixedFunction,
  withOwner,
} from "./live_planner.ts";
import type { MaintainedPlan } from "./maintained_plans.ts";
import { type NextChange, nextChangeOf } from "./next_change.ts";
import type { PreparedQuery } from "./prepared.ts";

/** A materialised query bound for one subscriber. */
export interface WholeQuery {
  readonly text: FollowedText;
  readonly way: LiveRequest["way"];
  /** The parameter values as the subscriber sent them. */
  readonly params: LiveRequest["params"];
  readonly slots: readonly Value[];
  /** The subscriber, with an owner number. */
  readonly principal: Principal;
  readonly tables: readonly ResultTable[];
  /** Compute the times at which the result changes without a commit. */
  readonly nextChanges: readonly NextChange[];
  /**
   * A key that identifies the result: queries with the same fingerprint have the same rows at
   * every seq.
   */
  readonly fingerprint: string;
  /**
   * A key that differs between callers with different token claims; undefined if the query reads
   * no claims.
   */
  readonly claimsKey: string | undefined;
}

export interface WholeQueryCaller extends LiveCaller {
  /** The cache of bound queries; absent if this query is not to be cached. */
  readonly texts?: FollowedTexts | undefined;
}

/**
 * Plans a query within one tick of the event loop.
 *
 * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
 */
export function planFollowedQuery(
  deps: LivePlanDeps,
  request: LiveRequest,
  { ledger, principal, texts }: WholeQueryCaller,
): WholeQuery {
  const { catalog, limits } = deps;
  const params = shortParameters(request.params);
  const { types, values } = typedParameters(params, limits);
  const namespace = request.namespace ?? DEFAULT_NAMESPACE;
  const owned = withOwner(catalog, principal);
  const place = { sql: request.sql, types, namespace };
  const known = texts?.find(place);
  // If the caller may not read every table, the query is bound again, because the binder raises
  // the error that reveals the least.
  const isKnown = known?.mayRead(owned) === true;
  const text = isKnown ? known : newFollowedText(deps, place, { ledger, principal: owned });
  if (!isKnown) texts?.remember(place, text);
  const { clockTerms, isOfCaller, prepared, select, written } = text;
  refuseUnfixed(select, { node: written, slots: values, clockTerms });
  authorize(prepared.requirements, owned, catalog);
  const tables = tablesOf(prepared, owned);
  const hasOwnRows = isOfCaller || tables.some(({ owner }) => owner !== SHARED_OWNER);
  const query: WholeQuery = {
    text,
    way: request.way,
    params,
    slots: isSame(values, params) ? params : values,
    principal: owned,
    tables,
    nextChanges: nextChangesOf(deps, clockTerms, owned),
    claimsKey: text.readsClaims ? claimsKeyOf(owned) : undefined,
    // Each subscriber may have a different fingerprint, and a digest takes less memory than SQL.
    fingerprint: digestKey(
      fingerprintOf(request, namespace, {
        caller: hasOwnRows ? owned : undefined,
        requirements: prepared.requirements,
      }),
    ),
  };
  if (request.way === "maintained") requireMaintained(maintainedPlanOf(query));
  return query;
}

/**
 * Whether the parameters are identical to the converted values, so that a single list can serve as
 * both.
 */
function isSame(
  values: readonly Value[],
  params: LiveRequest["params"],
): params is Extract<SqlParameter, Value>[] {
  return values.every((value, index) => Object.is(value, params[index]));
}

const NO_CHANGES: readonly NextChange[] = [];

function nextChangesOf(
  deps: LivePlanDeps,
  { terms }: ClockTerms,
  principal: Principal,
): readonly NextChange[] {
  if (terms.length === 0) return NO_CHANGES;
  return terms.map((term) => nextChangeOf(deps, term, principal));
}

/**
 * Plans how the result is maintained from the changes to its tables. If the result cannot be
 * maintained, returns the reason; the query then has to be evaluated again after each change.
 *
 * @throws {DatabaseError} if a definition has changed
 */
export function maintainedPlanOf({
  principal,
  slots,
  text,
  way,
}: WholeQuery): MaintainedPlan | string {
  if (way === "evaluated") return "the subscription requests it";
  return text.maintained.planFor({ principal, slots });
}

/**
 * Requires a maintenance plan, because the subscription asks for a maintained result.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function requireMaintained(plan: MaintainedPlan | string): void {
  if (typeof plan !== "string") return;
  throw new DatabaseError("UNSUPPORTED_FEATURE", `Cannot maintain the result: ${plan}`, {
    hint: 'omit the option "way"; the query is then evaluated again after each change',
  });
}

const SHARED_TABLES = new WeakMap<PreparedQuery, readonly ResultTable[]>();

/**
 * Returns the tables that a caller's query reads, each with the owner of its rows. If all tables
 * are SHARED, all callers get the same list.
 */
function tablesOf(prepared: PreparedQuery, principal: Principal): readonly ResultTable[] {
  const known = SHARED_TABLES.get(prepared);
  if (known !== undefined) return known;
  const tables = ownTablesOf(prepared, principal);
  if (tables.every(({ owner }) => owner === SHARED_OWNER)) SHARED_TABLES.set(prepared, tables);
  return tables;
}

function ownTablesOf({ requirements }: PreparedQuery, principal: Principal): ResultTable[] {
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

/**
 * Rejects functions, and special strings such as 'now', if their values may change although no row
 * changes.
 */
function refuseUnfixed(
  select: BoundSelect,
  {
    clockTerms,
    node,
    slots,
  }: { node: SelectStatement; slots: readonly Value[]; clockTerms: ClockTerms },
): void {
  const { calls, stepCalls } = callsIn(select);
  for (const call of stepCalls) {
    // The function of an aggregate that is declared IMMUTABLE promises to read no tables.
    const isFixed = FIXED_FUNCTIONS.has(call.name) || isImmutableProgram(call);
    if (call.volatility !== "immutable" && !isFixed) throw unfixedFunction(call, node, "aggregate");
  }
  for (const call of calls) {
    const { name, volatility } = call;
    const isFixed = FIXED_FUNCTIONS.has(name) || clockTerms.calls.has(call);
    if (volatility !== "immutable" && !isFixed) throw unfixedFunction(call, node);
    const word = call.readsTimeWords === true ? timeWordIn(call.args[0], slots) : undefined;
    if (word === undefined) continue;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot subscribe with '${word}' as a time: its value would change even if the row does not`,
      {
        position: node._location.start,
        hint: "write a fixed time, or pass the time as a parameter",
      },
    );
  }
}

function isImmutableProgram({ program }: CallExpression): boolean {
  return program?.entry.routine.volatility === "immutable";
}

function timeWordIn(
  operand: BoundExpression | undefined,
  slots: readonly Value[],
): string | undefined {
  if (operand?.kind !== "constant" && operand?.kind !== "slot") return undefined;
  const value = operand.kind === "constant" ? operand.value : slots[operand.slot];
  return typeof value === "string" && isTimeWord(value) ? value : undefined;
}
