/**
 * Joins two parts of FROM: determines which rows match and how the resulting columns are named.
 *
 * A column named in USING or merged by NATURAL appears once in the result. Its value comes from
 * the side that always has a row or, in a full join, from whichever side has one.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN } from "../../../types/mod.ts";
import type { ExprRef, JoinClause, Name } from "../../parse/ast/ast.ts";
import type { BoundFrom } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { binaryOf } from "../expression/binary_forms.ts";
import { castToCommonType } from "../expression/casts.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { Scope, type ScopeRelation } from "../scope.ts";
import { queriesAround, type SelectDeps } from "./select_deps.ts";

/** A bound part of FROM, and the names that it introduces. */
export interface FromResult {
  readonly from: BoundFrom;
  readonly scope: Scope;
}

const JOIN_KINDS: Readonly<Partial<Record<JoinClause["type"], "left" | "right" | "full">>> = {
  "LEFT JOIN": "left",
  "RIGHT JOIN": "right",
  "FULL JOIN": "full",
};

/**
 * Returns the Cartesian product of two parts of FROM, neither of which reads columns of the other.
 */
export function product(left: FromResult, right: FromResult): FromResult {
  checkAliases(left.scope, right.scope);
  return {
    from: { kind: "join", join: "cross", left: left.from, right: right.from, condition: undefined },
    scope: new Scope(
      [...left.scope.relations, ...right.scope.relations],
      [...left.scope.visible, ...right.scope.visible],
    ),
  };
}

/**
 * Joins two parts of FROM as the join clause specifies: with ON, with USING or NATURAL, or as a
 * product.
 */
export function joined(
  left: FromResult,
  right: FromResult,
  { clause, deps }: { clause: JoinClause; deps: SelectDeps },
): FromResult {
  const kind = JOIN_KINDS[clause.type] ?? (clause.on === undefined ? "cross" : "inner");
  const both = product(
    kind === "right" || kind === "full" ? { ...left, scope: left.scope.opened() } : left,
    kind === "left" || kind === "full" ? { ...right, scope: right.scope.opened() } : right,
  );
  const names = clause.natural === true ? commonNames(left.scope, right.scope) : clause.using;
  let condition: BoundExpression | undefined;
  let scope = both.scope;
  let merged: readonly MergedColumn[] | undefined;
  if (names !== undefined) {
    const pairs = mergedPairs(names, left.scope, right.scope);
    merged = kind === "full" ? pairs.map((pair) => mergedColumn(pair, deps)) : undefined;
    const columns =
      merged?.map(({ column }) => column) ??
      pairs.map((pair) => (kind === "right" ? pair.right : pair.left));
    const mergedNames = new Set(names.map(({ name }) => name));
    const rest = both.scope.visible.filter(({ name }) => !mergedNames.has(name));
    scope = new Scope(withAlias(both.scope.relations, columns, clause), [...columns, ...rest]);
    condition =
      pairs.length === 0
        ? undefined
        : { kind: "and", type: BOOLEAN, operands: pairs.map((pair) => pair.condition) };
  } else if (clause.on !== undefined) {
    condition = bindCondition(clause.on, {
      statement: deps.statement,
      scope,
      clause: "ON",
      sink: undefined,
      ...queriesAround(deps),
    });
  }
  // Columns are found by name rather than by position, so a right join is bound as a left join
  // with the sides exchanged.
  const sides =
    kind === "right"
      ? { left: right.from, right: left.from }
      : { left: left.from, right: right.from };
  const isFiltered = kind === "cross" && condition !== undefined;
  const form = kind === "right" ? "left" : isFiltered ? "inner" : kind;
  return { from: { kind: "join", join: form, ...sides, condition, merged }, scope };
}

/** Adds the relation for the alias of a USING clause. Its columns are the merged columns. */
function withAlias(
  relations: readonly ScopeRelation[],
  columns: readonly BoundColumn[],
  { usingAlias }: JoinClause,
): readonly ScopeRelation[] {
  if (usingAlias === undefined) return relations;
  const { name: alias } = usingAlias;
  if (relations.some((relation) => relation.alias === alias)) throw usedTwice(alias);
  return [...relations, { alias, namespace: undefined, columns, systemColumns: [] }];
}

function commonNames(left: Scope, right: Scope): Name[] {
  const rightNames = new Set(right.visible.map(({ name }) => name));
  return left.visible
    .filter(({ name }) => rightNames.has(name))
    .map(({ name }) => ({ name, _location: { start: 0, end: 0 } }));
}

/**
 * A pair of columns, one from each side of a join, that USING or NATURAL merges into one column.
 */
interface MergedPair {
  readonly left: BoundColumn;
  readonly right: BoundColumn;
  readonly condition: BoundExpression;
  readonly node: ExprRef;
}

/**
 * @throws {DatabaseError} TYPE_MISMATCH if the columns of a pair have no common type, even if
 *   their values can be compared, as with TIME and INTERVAL.
 */
function mergedPairs(names: readonly Name[], left: Scope, right: Scope): MergedPair[] {
  return names.map(({ name, _location }) => {
    const node = { type: "ref", name, _location } as const;
    const l = left.resolve(node);
    const r = right.resolve(node);
    const operands = { op: "=", left: columnValue(l), right: columnValue(r) };
    castToCommonType([operands.left, operands.right], [node, node], "USING");
    return { left: l, right: r, condition: binaryOf(operands, node), node };
  });
}

interface MergedColumn {
  readonly column: BoundColumn;
  readonly expression: BoundExpression;
}

/**
 * Returns the column into which a full join merges a pair of columns. Its value comes from
 * whichever side has a row.
 */
function mergedColumn({ left, node, right }: MergedPair, { statement }: SelectDeps): MergedColumn {
  const sides = [columnValue(left), columnValue(right)];
  const { expressions, type } = castToCommonType(sides, [node, node], "USING");
  const column = statement.newColumn({ name: left.name, type });
  return { column, expression: { kind: "coalesce", type, operands: expressions } };
}

function checkAliases(left: Scope, right: Scope): void {
  for (const { alias } of right.relations) {
    if (alias === "" || !left.relations.some((relation) => relation.alias === alias)) continue;
    throw usedTwice(alias);
  }
}

function usedTwice(alias: string): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot use the name "${alias}" for two items in FROM`,
    {
      hint: "give one of the two items a different alias",
    },
  );
}
