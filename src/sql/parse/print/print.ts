/**
 * Any statement back to text. What is printed parses to the same tree, but for secrets, which are
 * masked: a text that is shown or logged holds none.
 */
import type {
  AdminStatement,
  BeginStatement,
  DefinitionStatement,
  QueryStatement,
  RestoreStatement,
  SetStatementVariable,
  Statement,
} from "../ast/ast.ts";
import { isChangeNode, isSelectNode } from "../ast/query_nodes.ts";
import { definitionText, optionsText } from "./print_definitions.ts";
import { nameText, qnameText, stringText } from "./print_expressions.ts";
import { expressionToSql, queryStatementText, queryText } from "./print_queries.ts";

export { expressionToSql } from "./print_queries.ts";

/** A statement as SQL, with passwords and credentials as `'***'`. */
export function statementToSql(statement: Statement): string {
  if (isQueryStatement(statement)) return queryStatementText(statement);
  if (isDefinition(statement)) return definitionText(statement);
  switch (statement.type) {
    case "execute as": {
      const inner = statementToSql(statement.statement);
      return `EXECUTE AS USER ${stringText(statement.user.name)} (${inner})`;
    }
    case "explain": {
      const parts = [`ANALYZE ${statement.analyze}`, `VERBOSE ${statement.verbose}`];
      const head = `${parts.join(", ")}, FORMAT ${statement.format}`.toUpperCase();
      return `EXPLAIN (${head}) ${statementToSql(statement.statement)}`;
    }
    case "explain subscribe":
      return `EXPLAIN ${statementToSql(statement.subscribe)}`;
    case "begin":
    case "start transaction":
      return beginText(statement);
    case "commit":
    case "rollback":
      return statement.type.toUpperCase();
    case "set":
      return setText(statement);
    case "set timezone": {
      const { to } = statement;
      return `SET TIME ZONE ${to.type === "value" ? stringText(to.value) : to.type.toUpperCase()}`;
    }
    case "use namespace":
      return `USE NAMESPACE ${nameText(statement.name.name)}`;
    case "subscribe": {
      const { options } = statement;
      const end = options === undefined ? "" : ` OPTIONS ${optionsText(options)}`;
      return `SUBSCRIBE TO ${queryText(statement.query)}${end}`;
    }
    default:
      return simpleText(statement);
  }
}

type SimpleStatement = Exclude<
  AdminStatement,
  {
    type:
      | "execute as"
      | "explain"
      | "explain subscribe"
      | "begin"
      | "start transaction"
      | "commit"
      | "rollback"
      | "set"
      | "set timezone"
      | "use namespace"
      | "subscribe";
  }
>;

function simpleText(statement: SimpleStatement): string {
  switch (statement.type) {
    case "show":
      return `SHOW ${variableText(statement.variable.name)}`;
    case "show tables": {
      const { namespace } = statement;
      return namespace === undefined ? "SHOW TABLES" : `SHOW TABLES IN ${nameText(namespace.name)}`;
    }
    case "show columns":
      return `SHOW COLUMNS FROM ${qnameText(statement.table)}`;
    case "show stats":
      return `SHOW STATS FOR TABLE ${qnameText(statement.table)}`;
    case "describe": {
      const history = statement.history === true ? " HISTORY" : "";
      return `DESCRIBE TABLE ${qnameText(statement.table)}${history}`;
    }
    case "storage flush":
    case "storage compact": {
      const { table, namespace } = statement;
      const all = namespace === undefined ? "ALL" : `ALL IN ${nameText(namespace.name)}`;
      const target = table === undefined ? all : `TABLE ${qnameText(table)}`;
      return `${statement.type.toUpperCase()} ${target}`;
    }
    case "storage check": {
      const extended = statement.extended === true ? " EXTENDED" : "";
      return `STORAGE CHECK ${nameText(statement.name.name)}${extended}`;
    }
    case "kill":
      return `KILL ${statement.target.toUpperCase()} ${stringText(statement.id)}`;
    case "backup":
      return `BACKUP DATABASE TO ${stringText(statement.target)}`;
    case "restore":
      return `RESTORE DATABASE FROM ${stringText(statement.source)}${restorePoint(statement)}`;
    default:
      // SHOW NAMESPACES, SHOW STORAGES and others: the type is the text.
      return statement.type.toUpperCase();
  }
}

function restorePoint({ to }: RestoreStatement): string {
  if (to === undefined) return "";
  return to.type === "seq" ? ` TO SEQ ${to.text}` : ` TO TIMESTAMP ${stringText(to.value)}`;
}

function beginText({ type, isolationLevel, writeable }: BeginStatement): string {
  const modes: string[] = [];
  if (isolationLevel !== undefined) modes.push(`ISOLATION LEVEL ${isolationLevel.toUpperCase()}`);
  if (writeable !== undefined) modes.push(writeable.toUpperCase());
  return [type.toUpperCase(), modes.join(", ")].filter((part) => part !== "").join(" ");
}

function variableText(name: string): string {
  return name.split(".").map(nameText).join(".");
}

function setText({ variable, scope, set }: SetStatementVariable): string {
  const value =
    set.type === "default"
      ? "DEFAULT"
      : set.type === "value"
        ? expressionToSql(set.value)
        : nameText(set.name);
  const head = scope === undefined ? "SET" : `SET ${scope.toUpperCase()}`;
  return `${head} ${variableText(variable.name)} = ${value}`;
}

// Whether a statement reads or writes rows.
function isQueryStatement(statement: Statement): statement is QueryStatement {
  return isSelectNode(statement) || isChangeNode(statement);
}

// Whether a statement changes definitions: its type begins with what it does.
function isDefinition(statement: Statement): statement is DefinitionStatement {
  return /^(?:create|alter|drop) /.test(statement.type);
}
