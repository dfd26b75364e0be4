/**
 * Prints any statement as SQL. Parsing the output gives the same tree, except that secrets are
 * masked to keep them out of messages and logs.
 */
import type {
  AdminStatement,
  BeginStatement,
  CallStatement,
  CommitStatement,
  CopyToStatement,
  DeallocateStatement,
  DefinitionStatement,
  DoBlockStatement,
  ExecutePreparedStatement,
  ExplainStatement,
  PrepareStatement,
  QueryStatement,
  RestoreStatement,
  RollbackStatement,
  SavepointStatement,
  SetConstraintsStatement,
  SetStatementVariable,
  SetTransactionStatement,
  Statement,
  TruncateStatement,
  UserName,
} from "../ast/ast.ts";
import { isChangeNode, isSelectNode } from "../ast/query_nodes.ts";
import { type CursorStatement, cursorText, lockingText } from "./print_cursors.ts";
import { definitionText, tableFilledText } from "./print_definitions.ts";
import {
  dataTypeText,
  nameText,
  qnameText,
  rowsNameText,
  stringText,
} from "./print_expressions.ts";
import { functionNameText } from "./print_functions.ts";
import { optionsText } from "./print_options.ts";
import {
  columnsText,
  copyOptionsText,
  expressionToSql,
  queryStatementText,
  queryText,
} from "./print_queries.ts";
import { ackText, consumeText } from "./print_topics.ts";

export { expressionToSql } from "./print_queries.ts";

/** Prints a statement as SQL, with passwords and credentials as `'***'`. */
export function statementToSql(statement: Statement): string {
  if (isQueryStatement(statement)) return queryStatementText(statement);
  if (isDefinition(statement)) return definitionText(statement);
  if (isTransaction(statement)) return transactionText(statement);
  if (statement.type === "select for") return lockingText(statement);
  if (statement.type === "truncate") return truncateText(statement);
  if (isCursor(statement) || isPrepared(statement) || isProgram(statement)) {
    return kindText(statement);
  }
  switch (statement.type) {
    case "execute as":
      return executeAsText(statement.user, statement.statement);
    case "copy to":
      return copyToText(statement);
    case "explain":
      return explainText(statement);
    case "explain subscribe":
      return `EXPLAIN ${statementToSql(statement.subscribe)}`;
    case "set":
      return setText(statement);
    case "set timezone":
      return timeZoneText(statement);
    case "use namespace":
      return `USE NAMESPACE ${nameText(statement.name.name)}`;
    case "subscribe":
      return subscribeText(statement);
    case "consume":
      return consumeText(statement);
    case "ack":
      return ackText(statement);
    default:
      return simpleText(statement);
  }
}

function timeZoneText({ to }: Extract<Statement, { type: "set timezone" }>): string {
  return `SET TIME ZONE ${to.type === "value" ? stringText(to.value) : to.type.toUpperCase()}`;
}

function subscribeText({ options, query }: Extract<Statement, { type: "subscribe" }>): string {
  const end = options === undefined ? "" : ` OPTIONS ${optionsText(options)}`;
  return `SUBSCRIBE TO ${queryText(query)}${end}`;
}

function kindText(
  statement:
    | Parameters<typeof cursorText>[0]
    | Parameters<typeof preparedText>[0]
    | CallStatement
    | DoBlockStatement,
): string {
  if (isCursor(statement)) return cursorText(statement);
  return isPrepared(statement) ? preparedText(statement) : programText(statement);
}

function isProgram(statement: Statement): statement is CallStatement | DoBlockStatement {
  return statement.type === "call procedure" || statement.type === "do block";
}

function programText(statement: CallStatement | DoBlockStatement): string {
  return statement.type === "do block"
    ? `DO ${stringText(statement.source)}`
    : `CALL ${expressionToSql(statement.call)}`;
}

function executeAsText({ name }: UserName, statement: Statement): string {
  return `EXECUTE AS USER ${stringText(name)} (${statementToSql(statement)})`;
}

function explainText({ analyze, format, statement, user, verbose }: ExplainStatement): string {
  const head = `ANALYZE ${analyze}, VERBOSE ${verbose}, FORMAT ${format}`.toUpperCase();
  const explained = user === undefined ? statementToSql(statement) : executeAsText(user, statement);
  return `EXPLAIN (${head}) ${explained}`;
}

type SimpleStatement = Exclude<
  AdminStatement,
  {
    type:
      | "select for"
      | "truncate"
      | "execute as"
      | "copy to"
      | "explain"
      | "explain subscribe"
      | TransactionStatement["type"]
      | "set"
      | "set timezone"
      | "use namespace"
      | "subscribe"
      | CursorStatement["type"]
      | PreparedStatement["type"];
  }
>;

function copyToText({ named, options: given, statement }: CopyToStatement): string {
  const options = copyOptionsText(given);
  if (named !== undefined) {
    return `COPY ${qnameText(named.table)}${columnsText(named.columns)} TO STDOUT${options}`;
  }
  return `COPY (${queryText(statement)}) TO STDOUT${options}`;
}

type PreparedStatement = DeallocateStatement | ExecutePreparedStatement | PrepareStatement;

function isCursor(statement: Statement): statement is CursorStatement {
  return /^(?:close cursor|declare cursor|fetch|move)$/.test(statement.type);
}

function isPrepared(statement: Statement): statement is PreparedStatement {
  return /^(?:prepare|execute prepared|deallocate)$/.test(statement.type);
}

function preparedText(statement: PreparedStatement): string {
  if (statement.type === "deallocate") {
    return `DEALLOCATE ${statement.name === undefined ? "ALL" : nameText(statement.name.name)}`;
  }
  const name = nameText(statement.name.name);
  if (statement.type === "execute prepared") {
    const { args, table } = statement;
    const values = args.length === 0 ? "" : ` (${args.map(expressionToSql).join(", ")})`;
    const execute = `EXECUTE ${name}${values}`;
    return table === undefined ? execute : tableFilledText(table, execute);
  }
  const { statement: inner, types } = statement;
  const list = types.length === 0 ? "" : ` (${types.map(dataTypeText).join(", ")})`;
  return `PREPARE ${name}${list} AS ${queryStatementText(inner)}`;
}

function simpleText(statement: SimpleStatement): string {
  switch (statement.type) {
    case "show":
      return `SHOW ${variableText(statement.variable.name)}`;
    case "show tables":
    case "show topics":
    case "show policies":
    case "show columns":
    case "show stats":
      return showText(statement);
    case "describe": {
      const history = statement.history === true ? " HISTORY" : "";
      return `DESCRIBE TABLE ${qnameText(statement.table)}${history}`;
    }
    case "describe function":
      return `DESCRIBE FUNCTION ${functionNameText(statement.function)}`;
    case "describe topic":
      return `DESCRIBE TOPIC ${qnameText(statement.topic)}`;
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
      // For SHOW NAMESPACES, SHOW STORAGES and similar statements, the node type is the text of
      // the statement in lower case.
      return statement.type.toUpperCase();
  }
}

function showText(
  statement: Extract<
    SimpleStatement,
    { type: "show columns" | "show policies" | "show stats" | "show tables" | "show topics" }
  >,
): string {
  switch (statement.type) {
    case "show tables":
    case "show topics": {
      const { namespace } = statement;
      const shown = statement.type.toUpperCase();
      return namespace === undefined ? shown : `${shown} IN ${nameText(namespace.name)}`;
    }
    case "show policies":
      return `SHOW POLICIES${statement.table === undefined ? "" : ` ON ${qnameText(statement.table)}`}`;
    case "show columns":
      return `SHOW COLUMNS FROM ${qnameText(statement.table)}`;
    case "show stats":
      return `SHOW STATS FOR TABLE ${qnameText(statement.table)}`;
  }
}

function restorePoint({ to }: RestoreStatement): string {
  if (to === undefined) return "";
  return to.type === "seq" ? ` TO SEQ ${to.text}` : ` TO TIMESTAMP ${stringText(to.value)}`;
}

type TransactionStatement =
  | BeginStatement
  | CommitStatement
  | RollbackStatement
  | SavepointStatement
  | SetConstraintsStatement
  | SetTransactionStatement;

function isTransaction(statement: Statement): statement is TransactionStatement {
  return /^(?:begin|start transaction|commit|rollback|savepoint|release|set (?:constraints|transaction))\b/.test(
    statement.type,
  );
}

function truncateText({ cascade, restart, tables }: TruncateStatement): string {
  const identity = restart === true ? " RESTART IDENTITY" : "";
  const behaviour = cascade === true ? " CASCADE" : "";
  return `TRUNCATE TABLE ${tables.map(rowsNameText).join(", ")}${identity}${behaviour}`;
}

function transactionText(statement: TransactionStatement): string {
  switch (statement.type) {
    case "begin":
    case "start transaction":
      return beginText(statement);
    case "set constraints": {
      const { isDeferred, names } = statement;
      const which = names?.map(({ name }) => nameText(name)).join(", ") ?? "ALL";
      return `SET CONSTRAINTS ${which} ${isDeferred ? "DEFERRED" : "IMMEDIATE"}`;
    }
    case "commit":
    case "rollback":
      return statement.type.toUpperCase();
    case "set transaction": {
      const head = statement.isOfSession ? "SET SESSION CHARACTERISTICS AS" : "SET";
      return `${head} TRANSACTION ${modesText(statement)}`;
    }
    default:
      return `${statement.type.toUpperCase()} ${nameText(statement.name.name)}`;
  }
}

function beginText(statement: BeginStatement): string {
  return [statement.type.toUpperCase(), modesText(statement)].join(" ").trimEnd();
}

function modesText({
  isolationLevel,
  writeable,
}: Pick<BeginStatement, "isolationLevel" | "writeable">): string {
  const modes: string[] = [];
  if (isolationLevel !== undefined) modes.push(`ISOLATION LEVEL ${isolationLevel.toUpperCase()}`);
  if (writeable !== undefined) modes.push(writeable.toUpperCase());
  return modes.join(", ");
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

// Whether a statement changes definitions, judged by the first word of its type.
function isDefinition(statement: Statement): statement is DefinitionStatement {
  return /^(?:refresh|create|alter|drop|attach|detach|clear|comment) /.test(statement.type);
}
