/**
 * Lists of literals so long that they are read without a tree, and who asks for their nodes.
 */
import type { Statement } from "../../src/sql/parse/ast/ast.ts";
import { partsOf } from "../../src/sql/parse/ast/tree_parts.ts";
import { parseStatements } from "../../src/sql/parse/parser.ts";

export interface CountedStatement {
  readonly statement: Statement;
  /** How often the nodes of its lists of literals were asked for. */
  readonly asked: { count: number };
}

/** At least so many characters of literals. */
export function literalsOf(chars: number): string {
  return Array.from({ length: Math.ceil(chars / 7) }, (_, i) => 100_000 + (i % 900_000)).join();
}

/** A statement with long lists of literals, which notes who asks for nodes of them. */
export function listWithLiterals(sql: string): CountedStatement {
  const [statement] = parseStatements(sql);
  if (statement === undefined) throw new Error("a text has a statement");
  const asked = { count: 0 };
  let listCount = 0;
  for (const part of partsOf(statement)) {
    if (!("literals" in part) || part.literals === undefined) continue;
    listCount += 1;
    const key = "expressions" in part ? "expressions" : "values";
    const made = Object.getOwnPropertyDescriptor(part, key);
    if (made?.get === undefined) throw new Error("a list makes its nodes for who asks");
    Object.defineProperty(part, key, {
      enumerable: true,
      get: () => {
        asked.count += 1;
        return made.get?.call(part);
      },
    });
  }
  if (listCount === 0) throw new Error("the statement has no list that is read without a tree");
  return { asked, statement };
}
