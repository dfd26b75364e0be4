/**
 * Creates lists of literals that are long enough to be read without a syntax tree, and counts the
 * accesses to their nodes.
 */
import type { Statement } from "../../src/sql/parse/ast/ast.ts";
import { partsOf } from "../../src/sql/parse/ast/tree_parts.ts";
import { parseStatements } from "../../src/sql/parse/parser.ts";

export interface CountedStatement {
  readonly statement: Statement;
  /** The number of times that nodes of the statement's literal lists have been accessed. */
  readonly asked: { count: number };
}

/** Returns a list of literals with a total length of at least `chars` characters. */
export function literalsOf(chars: number): string {
  return Array.from({ length: Math.ceil(chars / 7) }, (_, i) => 100_000 + (i % 900_000)).join();
}

/**
 * Parses a statement with long literal lists, and counts the accesses to the nodes of these lists.
 */
export function listWithLiterals(sql: string): CountedStatement {
  const [statement] = parseStatements(sql);
  if (statement === undefined) throw new Error("the text must contain a statement");
  const asked = { count: 0 };
  let listCount = 0;
  for (const part of partsOf(statement)) {
    if (!("literals" in part) || part.literals === undefined) continue;
    listCount += 1;
    const key = "expressions" in part ? "expressions" : "values";
    const made = Object.getOwnPropertyDescriptor(part, key);
    if (made?.get === undefined) throw new Error("a list makes its nodes when asked");
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
