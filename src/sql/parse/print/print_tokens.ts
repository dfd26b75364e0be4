/**
 * Prints statements about service tokens and invitations as SQL. The statements contain no secret.
 */
import type { Expiry, SecretDefinition, TokenScopeNode } from "../ast/ast.ts";
import { nameText, stringText } from "./print_expressions.ts";

export function secretText(statement: SecretDefinition): string {
  const name = nameText(statement.name.name);
  switch (statement.type) {
    case "create token": {
      const { expires, scopes, user } = statement;
      const userText = user.currentUser === true ? "CURRENT_USER" : stringText(user.name);
      const list = scopes === undefined ? "" : ` SCOPES (${scopes.map(scopeText).join(", ")})`;
      return `CREATE TOKEN ${name} FOR USER ${userText}${expiryText(expires)}${list}`;
    }
    case "drop token":
      return `DROP TOKEN ${statement.ifExists === true ? "IF EXISTS " : ""}${name}`;
    case "create invitation": {
      const { expires, uses } = statement;
      const usesText = uses === undefined ? "" : ` USES ${uses}`;
      return `CREATE INVITATION ${name}${usesText}${expiryText(expires)}`;
    }
    case "drop invitation":
      return `DROP INVITATION ${statement.ifExists === true ? "IF EXISTS " : ""}${name}`;
  }
}

function expiryText(expires: Expiry | undefined): string {
  if (expires === undefined) return "";
  return ` EXPIRES ${expires.kind === "in" ? "IN " : ""}${stringText(expires.text)}`;
}

function scopeText({ namespace, word }: TokenScopeNode): string {
  if (namespace !== undefined) return `NAMESPACE ${nameText(namespace.name)}`;
  return /^[a-z]+$/.test(word) ? word.toUpperCase() : stringText(word);
}
