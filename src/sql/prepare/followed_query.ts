/**
 * Plans queries that are followed as a whole, each for one subscriber: with the rights of the
 * caller, the values of the parameters, and the owner of the rows.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { isTimeWord, type Value } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import type { LiveRequest, ResultTable } from "../ports/engine.ts";
import { typedParameters } from "../ports/parameters.ts";
import { authorize } from "../rights/requirements.ts";
import type { ClockTerms } from "./clock_terms.ts";
import {
  callsIn,
  type FollowedText,
  type FollowedTexts,
  newFollowedText,
} from "./followed_text.ts";
import {
  FIXED_FUNCTIONS,
  fingerprintOf,
  type LiveCaller,
  type LivePlanDeps,
  startOfCall,
  unfixedFunction,
  withOwner,
} from "./live_planner.ts";
import type { MaintainedPlan } from "./maintained_plans.ts";
import { type NextChange, nextChangeOf } from "./next_change.ts";
import type { PreparedQuery } from "./prepared.ts";

/** A bound query that is followed as a whole, for one subscriber. */
export interface WholeQuery
  extends Omit<FollowedText, "clockTerms" | "isOfCaller" | "maintained" | "written"> {
  readonly slots: readonly Value[];
  /** The caller, with an owner number. */
  readonly principal: Principal;
  readonly tables: readonly ResultTable[];
  /** Finds the moments at which the result changes without a commit. */
  readonly nextChanges: readonly NextChange[];
  /** Queries with the same fingerprint have the same rows at every seq. */
  readonly fingerprint: string;
  /**
   * Plans how the result is kept up to date from the changes of its tables. Returns the reason if
   * it has to be evaluated again after each change.
   *
   * @throws {DatabaseError} If a definition has changed.
   */
  maintained(): MaintainedPlan | string;
}

export interface WholeQueryCaller extends LiveCaller {
  /** The texts that were planned earlier; absent if the plan is not kept. */
  readonly texts?: FollowedTexts | undefined;
}

/**
 * Plans a query in one tick of the event loop.
 *
 * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
 */
export function planFollowedQuery(
  deps: LivePlanDeps,
  request: LiveRequest,
  { ledger, principal, texts }: WholeQueryCaller,
): WholeQuery {
  const { catalog, limits } = deps;
  const { types, values } = typedParameters(request.params, limits);
  const namespace = request.namespace ?? DEFAULT_NAMESPACE;
  const owned = withOwner(catalog, principal);
  const place = { sql: request.sql, types, namespace };
  const known = texts?.find(place);
  // If the caller may not read everything, the binder finds the error that reveals the least.
  const isKnown = known?.mayRead(owned) === true;
  const text = isKnown ? known : newFollowedText(deps, place, { ledger, principal: owned });
  if (!isKnown) texts?.remember(place, text);
  const { clockTerms, isOfCaller, maintained, written, ...shared } = text;
  refuseUnfixed(text.select, { node: written, slots: values, clockTerms });
  authorize(text.prepared.requirements, owned, catalog);
  const tables = tablesOf(text.prepared, owned);
  const hasOwnRows = isOfCaller || tables.some(({ owner }) => owner !== SHARED_OWNER);
  const plan = (): MaintainedPlan | string =>
    request.way === "evaluated"
      ? "the subscription requests it"
      : maintained.planFor({ principal: owned, slots: values });
  if (request.way === "maintained") requireMaintained(plan());
  return {
    ...shared,
    slots: values,
    principal: owned,
    tables,
    nextChanges: clockTerms.terms.map((term) => nextChangeOf(deps, term, owned)),
    fingerprint: fingerprintOf(request, namespace, {
      caller: hasOwnRows ? owned : undefined,
      requirements: text.prepared.requirements,
    }),
    maintained: plan,
  };
}

/** @throws {DatabaseError} UNSUPPORTED_FEATURE */
function requireMaintained(plan: MaintainedPlan | string): void {
  if (typeof plan !== "string") return;
  throw new DatabaseError("UNSUPPORTED_FEATURE", `Cannot maintain the result: ${plan}`, {
    hint: "leave out the option way: the query is then evaluated again after each change",
  });
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
