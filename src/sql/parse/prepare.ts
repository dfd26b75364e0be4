/**
 * Parses PREPARE, EXECUTE and DEALLOCATE. The parameters of a prepared statement are separate from
 * the parameters of the request.
 */
import type {
  DataTypeDef,
  DeallocateStatement,
  ExecutePreparedStatement,
  Expr,
  PrepareStatement,
} from "./ast/ast.ts";
import { isQueryNode } from "./ast/query_nodes.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";

const STATEMENT = "a prepared statement";

export function parsePrepare(cursor: Cursor, start: number): PrepareStatement {
  cursor.expect("prepare");
  const name = cursor.name(STATEMENT);
  const types: DataTypeDef[] = [];
  if (cursor.accept("(")) {
    do {
      types.push(cursor.grammar.dataType(cursor));
      requireListed(cursor, types.length, "parameters");
    } while (cursor.accept(","));
    cursor.expect(")");
  }
  cursor.expect("as");
  const at = cursor.start;
  const ofRequest = cursor.parameterCount;
  cursor.parameterCount = 0;
  const statement = cursor.grammar.statement(cursor);
  const parameterCount = Math.max(types.length, cursor.parameterCount);
  cursor.parameterCount = ofRequest;
  if (!isQueryNode(statement)) {
    cursor.refuse(
      `PREPARE of ${statement.type.toUpperCase()}`,
      "only queries, INSERT, UPDATE, DELETE and MERGE can be prepared",
      at,
    );
  }
  return {
    type: "prepare",
    name,
    types,
    statement,
    parameterCount,
    _location: cursor.since(start),
  };
}

/** Parses `EXECUTE name`, as opposed to EXECUTE AS. */
export function parseExecute(cursor: Cursor, start: number): ExecutePreparedStatement {
  cursor.expect("execute");
  const name = cursor.name(STATEMENT);
  const args: Expr[] = [];
  if (cursor.accept("(")) {
    do {
      args.push(parseConstant(cursor));
      requireListed(cursor, args.length, "parameters");
    } while (cursor.accept(","));
    cursor.expect(")");
  }
  return { type: "execute prepared", name, args, _location: cursor.since(start) };
}

function parseConstant(cursor: Cursor): Expr {
  const at = cursor.start;
  const value = cursor.grammar.expression(cursor);
  if (isConstant(value)) return value;
  return cursor.refuse(
    "an expression as an argument of EXECUTE",
    "use a constant, or move the expression into the prepared statement",
    at,
  );
}

const LITERALS: ReadonlySet<Expr["type"]> = new Set<Expr["type"]>([
  "bits",
  "boolean",
  "bytes",
  "integer",
  "null",
  "numeric",
  "string",
]);

function isConstant(node: Expr): boolean {
  if (node.type === "cast" || node.type === "unary") return isConstant(node.operand);
  return LITERALS.has(node.type);
}

export function parseDeallocate(cursor: Cursor, start: number): DeallocateStatement {
  cursor.expect("deallocate");
  cursor.accept("prepare");
  const name = cursor.accept("all") ? undefined : cursor.name(STATEMENT);
  return { type: "deallocate", name, _location: cursor.since(start) };
}
