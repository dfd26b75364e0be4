/** Reads and writes the blocks of a set operation, both as syntax trees and in bound form. */
import { type DataType, typeName } from "../../types/mod.ts";
import type { BoundRelation, BoundSelect } from "../bind/bound.ts";
import type {
  Expr,
  SelectFromStatement,
  SelectFromUnion,
  SelectStatement,
} from "../parse/ast/ast.ts";
import { isSelectNode } from "../parse/ast/query_nodes.ts";
import { parseExpression } from "../parse/parser.ts";
import { isKeyType } from "./key_types.ts";
import { NotMaintained } from "./not_maintained.ts";
import { withItemsBehind } from "./seed_statement.ts";
import type { SetTree } from "./set_rows.ts";

type CoreChange = (core: SelectFromStatement, block: number) => SelectFromStatement;

/**
 * Returns a UNION ALL of all blocks, each modified by the same function. @throws {NotMaintained}
 */
export function unionOf(
  node: SelectStatement,
  change: CoreChange,
  blocks: { next: number } = { next: 0 },
): SelectStatement {
  if (node.type === "with" || node.type === "with recursive") {
    if (!isSelectNode(node.in)) throw new NotMaintained("the query is not a single SELECT");
    return { ...node, in: unionOf(node.in, change, blocks) };
  }
  if (node.type === "select") {
    const block = blocks.next;
    blocks.next += 1;
    return change(node, block);
  }
  if (!isSetNode(node)) throw new NotMaintained("a branch of the set operation reads no table");
  const left = unionOf(node.left, change, blocks);
  const right = unionOf(node.right, change, blocks);
  return { type: "union all", _location: node._location, left, right };
}

/** Returns a block with its index as an additional last column. */
export function withTag(core: SelectFromStatement, block: number): SelectFromStatement {
  return withItemsBehind(core, [tagOf(core, block)]);
}

export function tagOf({ _location }: SelectFromStatement, value: number): Expr {
  return { type: "integer", value, text: String(value), _location };
}

export function nulls(types: readonly DataType[]): Expr[] {
  return types.map((type) => {
    // The column of a set operation would become TEXT if both sides were an untyped NULL.
    if (type.kind === "unknown" || type.kind === "row") {
      throw new NotMaintained(
        "a query in the set operation returns a value whose type has no name",
      );
    }
    return parseExpression(`CAST(NULL AS ${typeName(type)})`);
  });
}

/** Returns a statement in which a single block replaces the set operation. */
export function alone(node: SelectStatement, core: SelectFromStatement): SelectStatement {
  const isNested = node.type === "with" || node.type === "with recursive";
  return isNested ? { ...node, in: core } : core;
}

function isSetNode(node: SelectStatement): node is SelectFromUnion {
  return "left" in node && "right" in node;
}

/** Returns the blocks of a bound UNION ALL. @throws {NotMaintained} */
export function blocksIn(select: BoundSelect): readonly BoundSelect[] {
  const set = setIn(select);
  if (set === undefined) {
    const { from, limit, offset } = select;
    if (from === undefined) throw new NotMaintained("a branch of the set operation reads no table");
    const isLimited = limit !== undefined || offset !== undefined;
    if (isLimited) throw new NotMaintained("a branch of the set operation has LIMIT");
    return [select];
  }
  return [...blocksIn(set.left), ...blocksIn(set.right)];
}

/** Returns the tree of a query's set operations and blocks. @throws {NotMaintained} */
export function treeOf(select: BoundSelect, blocks: { next: number }): SetTree {
  const set = setIn(select);
  if (set === undefined) {
    blocks.next += 1;
    return blocks.next - 1;
  }
  const { isAll, operator } = set;
  const isCounted = isAll && operator === "union";
  // Values that are equal but not identical would be counted separately.
  if (!isCounted && !set.columns.every(({ type }) => isKeyType(type))) {
    throw new NotMaintained(
      "the set operation compares values that may be equal without being identical",
    );
  }
  for (const side of [set.left, set.right]) {
    if (side.limit !== undefined || side.offset !== undefined) {
      throw new NotMaintained("a branch of the set operation has LIMIT");
    }
  }
  return { operator, isAll, left: treeOf(set.left, blocks), right: treeOf(set.right, blocks) };
}

/**
 * Returns the set operation of a SELECT that only returns the columns of the set operation in
 * order; undefined for any other query.
 */
function setIn({
  from,
  outputs,
  ...select
}: BoundSelect): Extract<BoundRelation, { kind: "set" }> | undefined {
  if (from?.kind !== "relation" || from.relation.kind !== "set") return undefined;
  const { relation } = from;
  const isWhole =
    outputs.length === relation.columns.length &&
    outputs.every(({ expression }, index) => {
      return expression.kind === "column" && expression.column === relation.columns[index];
    });
  if (!isWhole || select.where !== undefined || select.isAggregated) {
    throw new NotMaintained(
      "the query has a set operation whose columns are converted or filtered",
    );
  }
  return relation;
}
