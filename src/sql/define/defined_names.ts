/**
 * Which objects a definition creates, changes or drops, and whether a statement behind it in the same
 * text names one of them: then it is bound at its turn, and else before anything of the text runs.
 */
import type { Statement } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";

/** Names of the objects that a statement defines, without their namespace; none of other statements. */
export function definedNames(node: Statement): readonly string[] {
  switch (node.type) {
    case "create namespace":
    case "alter namespace":
    case "drop namespace":
    case "create table":
    case "create view":
    case "create user":
    case "alter user":
    case "drop user":
      return [node.name.name];
    case "alter table":
      return [node.table.name];
    case "drop table":
    case "drop view":
      return node.names.map(({ name }) => name);
    default:
      return [];
  }
}

/**
 * Whether one of the names stands anywhere in a statement: as that of a table, a namespace or a user.
 * A column of the name counts too, which only binds the statement later.
 */
export function usesAny(node: Statement, names: ReadonlySet<string>): boolean {
  for (const part of partsOf(node)) {
    const { name, schema }: { name?: unknown; schema?: unknown } = part;
    if (typeof name === "string" && names.has(name)) return true;
    if (typeof schema === "string" && names.has(schema)) return true;
  }
  return false;
}
