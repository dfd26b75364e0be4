/** Resolves names in a body to variables. */
import type { Expr, ExprRef } from "../parse/ast/ast.ts";
import type { TargetNode, VisibleName } from "./tree.ts";

/** A variable, and the rest of the name, which refers to its fields. */
export interface FoundName {
  readonly slot: number;
  readonly fields: readonly string[];
}

/**
 * Returns the variable that `a`, `a.b` or `a.b.c` refers to. The first part may be the label of
 * the block that declares the variable, or the name of the function.
 */
export function findName(
  parts: readonly string[],
  names: VisibleName | undefined,
): FoundName | undefined {
  const [first, second, ...others] = parts;
  const fields = parts.slice(1);
  for (let each = names; each !== undefined; each = each.outer) {
    if (each.name === first) return { slot: each.slot, fields };
    const isLabelled = second !== undefined && each.label === first && each.name === second;
    if (isLabelled) return { slot: each.slot, fields: others };
  }
  return undefined;
}

/** Returns the parts of a qualified reference in SQL. */
export function partsOfRef({ name, star, table }: ExprRef): string[] {
  const before =
    table === undefined ? [] : [...(table.schema === undefined ? [] : [table.schema]), table.name];
  return star === true ? before : [...before, name];
}

/** Returns the variable that an argument of CALL refers to; undefined for any other expression. */
export function targetOf(node: Expr, names: VisibleName | undefined): TargetNode | undefined {
  if (node.type !== "ref" || node.star === true) return undefined;
  const found = findName(partsOfRef(node), names);
  if (found === undefined) return undefined;
  return { slot: found.slot, steps: found.fields.map((name) => ({ kind: "field", name })) };
}
