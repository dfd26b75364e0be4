/**
 * Parses a function body that consists of several SQL statements. Columns of a statement hide
 * function parameters with the same name, as in a function with a single query.
 */

import { isSelectNode } from "../parse/ast/query_nodes.ts";
import { parseStatements } from "../parse/parser.ts";
import type { BodyContext } from "./body_parser.ts";
import { typeIn } from "./body_tokens.ts";
import type { ProcedureBody, StatementNode, VariableNode, VisibleName } from "./tree.ts";

/** @throws {DatabaseError} INVALID_SQL, BATCH_PARSE_ERROR, UNSUPPORTED_FEATURE */
export function parseSqlBody(source: string, { given, label }: BodyContext): ProcedureBody {
  const found = { kind: "type", dataType: typeIn("boolean") } as const;
  const limits = { isConstant: false, isNotNull: false };
  const variables: VariableNode[] = [{ name: "", slot: 0, declared: found, ...limits }];
  let names: VisibleName | undefined;
  for (const [i, { name }] of given.entries()) {
    const slot = i + 1;
    const shown = name ?? `$${slot}`;
    variables.push({ name: shown, slot, declared: { kind: "given" }, ...limits });
    names = { name: `$${slot}`, slot, label, outer: names };
    if (name !== undefined) names = { name, slot, label, outer: names };
  }
  const statements = parseStatements(source).map((node): StatementNode => {
    const line = source.slice(0, node._location.start).split("\n").length;
    const text = source.slice(node._location.start, node._location.end);
    if (isSelectNode(node)) {
      return { kind: "perform", line, query: { kind: "query", text, names, node } };
    }
    const statement = { kind: "statement", text, names, node } as const;
    if (node.type === "call procedure") return { kind: "call", line, statement };
    return { kind: "sql", line, statement, into: undefined };
  });
  return {
    conflict: "column",
    variables,
    found: 0,
    block: {
      kind: "block",
      line: 1,
      label: undefined,
      declarations: [],
      statements,
      handlers: undefined,
      caught: undefined,
    },
  };
}
