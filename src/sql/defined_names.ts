/**
 * Which objects a definition creates, changes or drops, and whether a statement behind it in the same
 * text names one of them: then it is bound at its turn, and else before anything of the text runs.
 */
import type { Statement } from "./parse/ast.ts";

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
  const rest: unknown[] = [node];
  while (rest.length > 0) {
    const part = rest.pop();
    if (typeof part !== "object" || part === null || ArrayBuffer.isView(part)) continue;
    if (Array.isArray(part)) {
      for (const each of part) rest.push(each);
      continue;
    }
    const isLiterals = "literals" in part && part.literals !== undefined;
    for (const key of Object.keys(part)) {
      // A long list of literals holds no name, and makes its nodes only for who asks.
      if (isLiterals && (key === "expressions" || key === "values")) continue;
      const value = (part as Readonly<Record<string, unknown>>)[key];
      const isName = key === "name" || key === "schema";
      if (isName && typeof value === "string" && names.has(value)) return true;
      rest.push(value);
    }
  }
  return false;
}
