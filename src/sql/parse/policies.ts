/**
 * Parses CREATE, ALTER and DROP POLICY.
 */
import type {
  AlterPolicyStatement,
  CreatePolicyStatement,
  DropPolicyStatement,
  Expr,
  Name,
  PolicyClauses,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { acceptBehaviour, acceptIfExists } from "./ddl.ts";

/** Parses the rest of a statement after `CREATE POLICY`. */
export function parseCreatePolicy(cursor: Cursor, start: number): CreatePolicyStatement {
  const name = cursor.name("a policy");
  cursor.expect("on");
  const table = cursor.qname("a table");
  if (cursor.accept("as")) {
    if (cursor.is("restrictive")) {
      cursor.refuse("AS RESTRICTIVE", "add the condition to each policy, with AND");
    }
    cursor.expect("permissive");
  }
  const command = cursor.accept("for")
    ? cursor.expectOneOf("all", "select", "insert", "update", "delete")
    : undefined;
  const clauses = parseClauses(cursor);
  return {
    type: "create policy",
    name,
    table,
    command,
    ...clauses,
    _location: cursor.since(start),
  };
}

/** Parses the rest of a statement after `ALTER POLICY`. */
export function parseAlterPolicy(cursor: Cursor, start: number): AlterPolicyStatement {
  const name = cursor.name("a policy");
  cursor.expect("on");
  const table = cursor.qname("a table");
  if (cursor.accept("rename")) {
    cursor.expect("to");
    const to = cursor.name("a policy");
    return { type: "alter policy", name, table, to, _location: cursor.since(start) };
  }
  const clauses = parseClauses(cursor);
  const isEmpty = Object.values(clauses).every((clause) => clause === undefined);
  if (isEmpty) cursor.unexpected("RENAME TO, TO, USING or WITH CHECK");
  return { type: "alter policy", name, table, ...clauses, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP POLICY`. */
export function parseDropPolicy(cursor: Cursor, start: number): DropPolicyStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.name("a policy");
  cursor.expect("on");
  const table = cursor.qname("a table");
  // Nothing depends on a policy, so CASCADE and RESTRICT have no effect.
  acceptBehaviour(cursor);
  return { type: "drop policy", name, table, ifExists, _location: cursor.since(start) };
}

function parseClauses(cursor: Cursor): PolicyClauses {
  const roles = cursor.accept("to") ? parseRoles(cursor) : undefined;
  const using = cursor.accept("using") ? parseCondition(cursor) : undefined;
  const check = cursor.acceptAll("with", "check") ? parseCondition(cursor) : undefined;
  return { roles, using, check };
}

function parseRoles(cursor: Cursor): readonly Name[] {
  const roles: Name[] = [];
  // The role `user` has the name of a reserved word, which is not accepted as an ordinary name.
  do roles.push(cursor.is("user") ? cursor.takeName() : cursor.name("a role"));
  while (cursor.accept(","));
  return roles;
}

function parseCondition(cursor: Cursor): Expr {
  cursor.expect("(");
  const condition = cursor.grammar.expression(cursor);
  cursor.expect(")");
  return condition;
}
