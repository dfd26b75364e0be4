/** Resolves names in a function body to variables. */
import type { Expr, ExprRef } from "../parse/ast/ast.ts";
import type { TargetNode, VisibleName } from "./tree.ts";

/** The variable to which a name refers. The rest of the name refers to fields of the variable. */
export interface FoundName {
  readonly slot: number;
  readonly fields: readonly string[];
}

/**
 * Returns the variable to which `a`, `a.b` or `a.b.c` refers. The first part may be the label of
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

/** Returns the parts of a qualified name in SQL. */
export function partsOfRef({ name, star, table }: ExprRef): string[] {
  const before =
    table === undefined ? [] : [...(table.schema === undefined ? [] : [table.schema]), table.name];
  return star === true ? before : [...before, name];
}

/**
 * Returns the variable to which an argument of CALL refers; undefined for any other expression.
 */
export function targetOf(node: Expr, names: VisibleName | undefined): TargetNode | undefined {
  if (node.type !== "ref" || node.star === true) return undefined;
  const found = findName(partsOfRef(node), names);
  if (found === undefined) return undefined;
  return { slot: found.slot, steps: found.fields.map((name) => ({ kind: "field", name })) };
}
