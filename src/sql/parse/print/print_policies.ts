/**
 * Prints definitions of policies as SQL.
 */
import type { PolicyClauses, PolicyDefinition, Statement } from "../ast/ast.ts";
import { nameText, qnameText } from "./print_expressions.ts";
import { expressionToSql } from "./print_queries.ts";

export function isPolicyNode<Node extends Pick<Statement, "type">>(
  node: Node,
): node is Extract<Node, PolicyDefinition> {
  const { type } = node;
  return type === "create policy" || type === "alter policy" || type === "drop policy";
}

export function policyText(statement: PolicyDefinition): string {
  const place = `${nameText(statement.name.name)} ON ${qnameText(statement.table)}`;
  switch (statement.type) {
    case "create policy": {
      const { command } = statement;
      const words = command === undefined ? "" : ` FOR ${command.toUpperCase()}`;
      return `CREATE POLICY ${place}${words}${clausesText(statement)}`;
    }
    case "alter policy": {
      const { to } = statement;
      if (to !== undefined) return `ALTER POLICY ${place} RENAME TO ${nameText(to.name)}`;
      return `ALTER POLICY ${place}${clausesText(statement)}`;
    }
    case "drop policy":
      return `DROP POLICY ${statement.ifExists === true ? "IF EXISTS " : ""}${place}`;
  }
}

function clausesText({ check, roles, using }: PolicyClauses): string {
  const to = roles?.map(({ name }) => (name === "user" ? name : nameText(name))).join(", ");
  return [
    to === undefined ? "" : ` TO ${to}`,
    using === undefined ? "" : ` USING (${expressionToSql(using)})`,
    check === undefined ? "" : ` WITH CHECK (${expressionToSql(check)})`,
  ].join("");
}
