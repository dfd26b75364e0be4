/**
 * Creates the seed: an ordinary SELECT that computes the initial state of a maintained query. A
 * reader thread can run it.
 *
 * | query | seed |
 * |---|---|
 * | without grouping | the query itself |
 * | with LIMIT | the query with the limit of the kept rows and without OFFSET |
 * | with GROUP BY or DISTINCT | keys, `count(*)`, and what each aggregate needs, without HAVING |
 */

import { isAggregate } from "../functions/aggregate/aggregates.ts";
import type { Expr, ExprCall, SelectedColumn, SelectFromStatement } from "../parse/ast/ast.ts";
import { holdsQuery } from "../parse/ast/query_nodes.ts";
import { directPartsOf, partsOf } from "../parse/ast/tree_parts.ts";
import type { RowTally } from "./tallies.ts";

/** Returns the statement without OFFSET, limited to `rowsMax` rows. */
export function limitedTo(core: SelectFromStatement, rowsMax: number): SelectFromStatement {
  return { ...core, limit: { _location: core._location, limit: integerOf(rowsMax, core) } };
}

/**
 * Returns the aggregate calls of a block in the order in which they are written, except for calls
 * in subqueries.
 */
export function aggregateCallsIn({ columns, having, orderBy }: SelectFromStatement): ExprCall[] {
  const calls: ExprCall[] = [];
  for (const part of partsOf([columns, having, orderBy], insideOfBlock)) {
    if (isAggregateCall(part)) calls.push(part);
  }
  return calls;
}

/**
 * Returns the children of a syntax node. Nested queries and aggregate calls count as having none.
 */
function insideOfBlock(part: object): readonly unknown[] {
  return holdsQuery(part) || isAggregateCall(part) ? [] : directPartsOf(part);
}

function isAggregateCall(part: object): part is ExprCall {
  if (!("type" in part) || part.type !== "call") return false;
  const call = part as ExprCall;
  return call.over === undefined && isAggregate(call.function.name);
}

/** Returns a block with items appended to its select list. */
export function withItemsBehind(
  core: SelectFromStatement,
  items: readonly Expr[],
): SelectFromStatement {
  return { ...core, columns: [...(core.columns ?? []), ...items.map(itemOf)] };
}

/** Returns a grouped statement with items added before and after its select list. */
export function withItemsAround(
  seed: SelectFromStatement,
  { after, before }: { readonly before: readonly Expr[]; readonly after: readonly Expr[] },
): SelectFromStatement {
  return {
    ...seed,
    columns: [...before.map(itemOf), ...(seed.columns ?? []), ...after.map(itemOf)],
    // The seed groups by output positions, which are shifted by the items added before them.
    groupBy: seed.groupBy?.map((_, index) => integerOf(before.length + index + 1, seed)),
  };
}

export interface SeedOfGroups {
  readonly keys: readonly Expr[];
  /** The calls whose results initialise each aggregate. */
  readonly calls: readonly ExprCall[];
  readonly tallies: readonly RowTally[];
}

/**
 * Returns the seed of a block with groups. The seed groups by output positions, because DISTINCT
 * accepts constants but GROUP BY rejects them.
 */
export function seedOfGroups(
  core: SelectFromStatement,
  { tallies, calls, keys }: SeedOfGroups,
): SelectFromStatement {
  const { _location, from, where } = core;
  const star: Expr = { type: "ref", name: "*", star: true, _location };
  const rowCount: ExprCall = {
    type: "call",
    function: nameOf("count", core),
    args: [star],
    _location,
  };
  const results = calls.flatMap((call, index) =>
    (tallies[index]?.seeds ?? []).map((seed) =>
      seed === "itself" ? call : renamed(call, nameOf(seed, core)),
    ),
  );
  return {
    type: "select",
    _location,
    columns: [...keys, rowCount, ...results].map(itemOf),
    from,
    where,
    groupBy: keys.length === 0 ? undefined : keys.map((_, index) => integerOf(index + 1, core)),
  };
}

function integerOf(value: number, { _location }: SelectFromStatement): Expr {
  return { type: "integer", value, text: String(value), _location };
}

function renamed(call: ExprCall, name: ExprCall["function"]): ExprCall {
  return { ...call, function: name };
}

function nameOf(name: string, { _location }: SelectFromStatement): ExprCall["function"] {
  return { name, _location };
}

function itemOf(expr: Expr): SelectedColumn {
  return { expr, _location: expr._location };
}
