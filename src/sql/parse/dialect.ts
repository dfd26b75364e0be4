/**
 * Parses statements that PostgreSQL lacks or that have a different syntax there: USE, SET, SHOW,
 * DESCRIBE, SUBSCRIBE TO, EXECUTE AS, EXPLAIN.
 */
import { DatabaseError } from "../../base/errors.ts";
import type {
  DescribeFunctionStatement,
  DescribeStatement,
  DescribeTopicStatement,
  ExecuteAsStatement,
  ExplainStatement,
  ExplainSubscribeStatement,
  Name,
  SetValue,
  ShowSimpleStatement,
  Statement,
  SubscribeStatement,
  UseNamespaceStatement,
} from "./ast/ast.ts";
import { copySourceNode, isQueryNode } from "./ast/query_nodes.ts";
import type { Cursor } from "./cursor.ts";
import { parseFollowed } from "./errors.ts";
import { parseFunctionNamed } from "./functions.ts";
import { parseNamespaceName, parseNamespaceOf } from "./namespaces.ts";
import {
  parseFormat,
  parseNameOrString,
  parseOptions,
  parsePlainLiteral,
  parseUserName,
} from "./options.ts";
import { refuseShown } from "./refused.ts";
import { beginsQuery, parseQuery } from "./select.ts";
import { emptySelect } from "./select_block.ts";
import { Token } from "./text/lexer.ts";
import { parseSetTransaction } from "./transactions.ts";

/** Parses `USE [NAMESPACE] n`. */
export function parseUse(cursor: Cursor, start: number): Statement {
  cursor.expect("use");
  const name = parseNamespaceOf(cursor);
  return { type: "use namespace", name, _location: cursor.since(start) };
}

export function parseSet(cursor: Cursor, start: number): Statement {
  cursor.expect("set");
  const isNamespace = cursor.is("namespace") || cursor.is("schema");
  if (isNamespace && !cursor.isAhead(1, "=") && !cursor.isAhead(1, "to")) {
    cursor.token += 1;
    return useNamespace(cursor, start);
  }
  if (cursor.accept("constraints")) return parseSetConstraints(cursor, start);
  if (cursor.is("transaction")) return parseSetTransaction(cursor, start, { isOfSession: false });
  const scope = cursor.acceptOneOf("session", "local");
  if (scope === "session" && cursor.is("characteristics")) {
    return parseSetTransaction(cursor, start, { isOfSession: true });
  }
  const isSetting = cursor.isAhead(1, "=") || cursor.isAhead(1, "to");
  const isOwnRole = cursor.is("role") && cursor.isAhead(1, "none");
  if (cursor.is("transaction") || (cursor.is("role") && !isOwnRole && !isSetting)) {
    cursor.refuse(`SET ${cursor.word.toUpperCase()}`, INSTEAD_OF_SET.get(cursor.word));
  }
  if (cursor.acceptAll("time", "zone")) return parseSetTimezone(cursor, start);
  if (cursor.acceptAll("xml", "option")) return parseSetXmlOption(cursor, start);
  const variable = parseVariable(cursor);
  if (!isOwnRole) cursor.expectOneOf("=", "to");
  if (variable.name === "search_path") return useNamespace(cursor, start);
  const set = parseSetValue(cursor);
  return { type: "set", variable, scope, set, _location: cursor.since(start) };
}

/** Parses the rest of SET XML OPTION, which the SQL standard writes with neither `=` nor TO. */
function parseSetXmlOption(cursor: Cursor, start: number): Statement {
  const variable = { name: "xmloption", _location: cursor.since(start) };
  const set = parseSetValue(cursor);
  return { type: "set", variable, scope: undefined, set, _location: cursor.since(start) };
}

/**
 * Parses `RESET name` and `RESET ALL`. `RESET search_path` switches back to the namespace
 * `default`.
 */
export function parseReset(cursor: Cursor, start: number): Statement {
  cursor.expect("reset");
  if (cursor.accept("all")) return { type: "reset all", _location: cursor.since(start) };
  const variable = cursor.acceptAll("time", "zone")
    ? { name: "timezone", _location: cursor.since(start) }
    : parseVariable(cursor);
  if (variable.name === "search_path") {
    const name = { ...variable, name: "default" };
    return { type: "use namespace", name, _location: cursor.since(start) };
  }
  const set = { type: "default" } as const;
  return { type: "set", variable, scope: undefined, set, _location: cursor.since(start) };
}

/** Parses `DISCARD ALL`, which resets all settings. */
export function parseDiscard(cursor: Cursor, start: number): Statement {
  cursor.expectAll("discard", "all");
  return { type: "reset all", _location: cursor.since(start) };
}

/**
 * Recognises the exact form `SELECT [pg_catalog.]set_config('search_path', 'namespace', false)`.
 * Later statements of the request are bound in this namespace, so its name must be a literal
 * rather than a computed value.
 */
export function acceptSetPath(cursor: Cursor, start: number): UseNamespaceStatement | undefined {
  const at = openingOf(cursor, "set_config");
  if (at === undefined) return undefined;
  const before = cursor.token;
  cursor.token += at + 1;
  const name = parsePathCall(cursor);
  const isWhole = cursor.kind === Token.end || cursor.is(";");
  if (name !== undefined && isWhole) {
    return { type: "use namespace", name, _location: cursor.since(start) };
  }
  cursor.token = before;
  return undefined;
}

function parsePathCall(cursor: Cursor): Name | undefined {
  if (!cursor.isString() || cursor.takeString().toLowerCase() !== "search_path") return undefined;
  if (!cursor.accept(",") || !cursor.isString()) return undefined;
  const token = cursor.token;
  const name = cursor.takeString();
  const _location = cursor.since(token);
  const isOfSession = cursor.accept(",") && cursor.accept("false") && cursor.accept(")");
  return isOfSession && name !== "" ? { name, _location } : undefined;
}

/**
 * Returns the number of tokens before the opening parenthesis of `SELECT [pg_catalog.]name (`, or
 * undefined if the next tokens do not form this call.
 */
function openingOf(cursor: Cursor, name: string): number | undefined {
  const isQualified = cursor.isAhead(2, ".");
  const at = isQualified ? 3 : 1;
  if (!cursor.isAhead(at + 1, "(") || cursor.kindAhead(at) !== Token.word) return undefined;
  if (cursor.nameText(cursor.token + at) !== name) return undefined;
  if (isQualified && cursor.nameText(cursor.token + 1) !== "pg_catalog") return undefined;
  return at + 1;
}

const INSTEAD_OF_SET: ReadonlyMap<string, string> = new Map([
  ["role", "to run a statement as a different user, write EXECUTE AS USER 'name' (…)"],
  [
    "transaction",
    "write BEGIN ISOLATION LEVEL SNAPSHOT; transactions always have snapshot isolation",
  ],
]);

/** Parses `SET CONSTRAINTS ALL | k, … DEFERRED | IMMEDIATE`. */
function parseSetConstraints(cursor: Cursor, start: number): Statement {
  const names = cursor.accept("all") ? undefined : cursor.names("a constraint");
  const isDeferred = cursor.expectOneOf("deferred", "immediate") === "deferred";
  return { type: "set constraints", names, isDeferred, _location: cursor.since(start) };
}

function useNamespace(cursor: Cursor, start: number): Statement {
  const name = parseNamespaceName(cursor);
  return { type: "use namespace", name, _location: cursor.since(start) };
}

function parseSetTimezone(cursor: Cursor, start: number): Statement {
  const word = cursor.acceptOneOf("default", "local");
  if (word !== undefined) {
    return { type: "set timezone", to: { type: word }, _location: cursor.since(start) };
  }
  // A time zone may be written as an interval, such as INTERVAL '+00:00' HOUR TO MINUTE. Sequelize
  // does so.
  const isInterval = cursor.accept("interval");
  const value = parseNameOrString(cursor, "a time zone").name;
  if (isInterval) cursor.acceptAll("hour", "to", "minute");
  return { type: "set timezone", to: { type: "value", value }, _location: cursor.since(start) };
}

function parseSetValue(cursor: Cursor): SetValue {
  if (cursor.accept("default")) return { type: "default" };
  const isWord = cursor.kind === Token.word || cursor.kind === Token.quoted;
  if (isWord && cursor.word !== "true" && cursor.word !== "false") {
    return { type: "identifier", name: cursor.label("a value").name };
  }
  return { type: "value", value: parsePlainLiteral(cursor) };
}

// Parses the name of a setting, which may contain dots: `limits.max_sql_bytes`.
function parseVariable(cursor: Cursor): Name {
  const start = cursor.token;
  let { name } = cursor.name("a setting");
  while (cursor.accept(".")) name += `.${cursor.label("a setting").name}`;
  return { name, _location: cursor.since(start) };
}

const SHOW_SIMPLE = new Map<string, ShowSimpleStatement["type"]>([
  ["namespaces", "show namespaces"],
  ["schemas", "show namespaces"],
  ["storages", "show storages"],
  ["functions", "show functions"],
  ["webhooks", "show webhooks"],
  ["tokens", "show tokens"],
  ["invitations", "show invitations"],
  ["manifest", "show manifest"],
  ["export", "show export"],
  ["all", "show all"],
]);

export function parseShow(cursor: Cursor, start: number): Statement {
  cursor.expect("show");
  refuseShown(cursor);
  const named = (name: string): Name => ({ name, _location: cursor.since(start) });
  const simple = SHOW_SIMPLE.get(cursor.word);
  if (simple !== undefined) {
    cursor.token += 1;
    return { type: simple, _location: cursor.since(start) };
  }
  if (cursor.accept("tables")) {
    const hasNamespace = cursor.acceptOneOf("in", "from") !== undefined;
    const namespace = hasNamespace ? parseNamespaceOf(cursor) : undefined;
    return { type: "show tables", namespace, _location: cursor.since(start) };
  }
  if (cursor.accept("topics")) {
    const hasNamespace = cursor.acceptOneOf("in", "from") !== undefined;
    const namespace = hasNamespace ? parseNamespaceOf(cursor) : undefined;
    return { type: "show topics", namespace, _location: cursor.since(start) };
  }
  if (cursor.accept("policies")) {
    const hasTable = cursor.acceptOneOf("on", "from", "in") !== undefined;
    const table = hasTable ? cursor.qname("a table") : undefined;
    return { type: "show policies", table, _location: cursor.since(start) };
  }
  if (cursor.is("columns") && (cursor.isAhead(1, "from") || cursor.isAhead(1, "in"))) {
    cursor.token += 2;
    const table = cursor.qname("a table");
    return { type: "show columns", table, _location: cursor.since(start) };
  }
  if (cursor.is("stats") && cursor.isAhead(1, "for")) {
    cursor.token += 1;
    cursor.expectAll("for", "table");
    const table = cursor.qname("a table");
    return { type: "show stats", table, _location: cursor.since(start) };
  }
  if (cursor.is("transaction") && cursor.isAhead(1, "isolation") && cursor.isAhead(2, "level")) {
    cursor.token += 3;
    return {
      type: "show",
      variable: named("transaction_isolation"),
      _location: cursor.since(start),
    };
  }
  if (cursor.is("time") && cursor.isAhead(1, "zone")) {
    cursor.token += 2;
    return { type: "show", variable: named("timezone"), _location: cursor.since(start) };
  }
  cursor.couldBe("namespaces", "schemas", "storages", "manifest", "columns", "stats", "all");
  cursor.couldBe("policies");
  return { type: "show", variable: parseVariable(cursor), _location: cursor.since(start) };
}

/** Parses `DESCRIBE | DESC [TABLE] t [HISTORY]` and `DESCRIBE | DESC TOPIC t`. */
export function parseDescribe(
  cursor: Cursor,
  start: number,
): DescribeStatement | DescribeFunctionStatement | DescribeTopicStatement {
  cursor.token += 1;
  // A table may itself be called function.
  if (cursor.is("function") && cursor.isNameAhead(1) && !cursor.isAhead(1, "history")) {
    cursor.token += 1;
    const called = parseFunctionNamed(cursor);
    return { type: "describe function", function: called, _location: cursor.since(start) };
  }
  // A table may itself be called topic.
  if (cursor.is("topic") && cursor.isNameAhead(1) && !cursor.isAhead(1, "history")) {
    cursor.token += 1;
    return {
      type: "describe topic",
      topic: cursor.qname("a topic"),
      _location: cursor.since(start),
    };
  }
  cursor.accept("table");
  const table = cursor.qname("a table");
  const history = cursor.accept("history") ? true : undefined;
  return { type: "describe", table, history, _location: cursor.since(start) };
}

export function parseSubscribe(cursor: Cursor, start: number): SubscribeStatement {
  cursor.expectAll("subscribe", "to");
  const token = cursor.token;
  cursor.optionsEndQuery = true;
  const isQuery = beginsQuery(cursor);
  const query = parseFollowed(() => (isQuery ? parseQuery(cursor) : parseSubscribedTable(cursor)));
  cursor.optionsEndQuery = false;
  const range = cursor.since(token);
  const text = cursor.text.slice(range.start, range.end);
  const options = cursor.accept("options") ? parseOptions(cursor) : undefined;
  const before = isQuery ? "" : "SELECT * FROM ";
  const source = before + text;
  const sourceStart = range.start - before.length;
  const _location = cursor.since(start);
  return { type: "subscribe", query, source, sourceStart, options, _location };
}

function parseSubscribedTable(cursor: Cursor): ReturnType<typeof parseQuery> {
  const start = cursor.token;
  const { name, schema, _location } = cursor.qname("a table");
  const node = emptySelect();
  node.columns = [{ expr: { type: "ref", name: "*", star: true, _location }, _location }];
  node.from = [{ type: "table", name: { name, schema, _location }, _location }];
  if (cursor.accept("where")) node.where = cursor.grammar.expression(cursor);
  node._location = cursor.since(start);
  return node;
}

/** Parses `EXECUTE AS [USER] u ( stmt )`. */
export function parseExecuteAs(cursor: Cursor, start: number): ExecuteAsStatement {
  cursor.expectAll("execute", "as");
  cursor.accept("user");
  if (!cursor.isString() && !cursor.isName()) malformed(cursor, "the user id is missing");
  const user = parseUserName(cursor);
  if (!cursor.is("(")) malformed(cursor, "the parenthesis after the user id is missing");
  const outer = cursor.enter();
  cursor.expect("(");
  if (cursor.is(")") || cursor.is(";"))
    malformed(cursor, "there is no statement in the parentheses");
  if (cursor.is("execute") && cursor.isAhead(1, "as")) malformed(cursor, "found EXECUTE AS inside");
  const statement = cursor.grammar.statement(cursor);
  if (cursor.is(";")) malformed(cursor, 'there is a ";" in the parentheses');
  if (cursor.kind === Token.end) malformed(cursor, "the parenthesis is not closed");
  cursor.expect(")");
  cursor.leave(outer);
  if (cursor.kind !== Token.end && !cursor.is(";")) {
    malformed(cursor, "there is more text after the closing parenthesis");
  }
  return { type: "execute as", user, statement, _location: cursor.since(start) };
}

function malformed(cursor: Cursor, what: string): never {
  throw new DatabaseError(
    "INVALID_INPUT",
    `Cannot parse the statement: ${what}, expected EXECUTE AS USER 'id' (a single statement)`,
    { position: cursor.start, statementIndex: cursor.statementIndex },
  );
}

export function parseExplain(
  cursor: Cursor,
  start: number,
): ExplainStatement | ExplainSubscribeStatement {
  cursor.expect("explain");
  if (cursor.is("subscribe")) {
    const subscribe = parseSubscribe(cursor, cursor.token);
    return { type: "explain subscribe", subscribe, _location: cursor.since(start) };
  }
  const made = { analyze: false, verbose: false, format: "text" as "text" | "json" };
  if (cursor.is("(") && !beginsQuery(cursor)) {
    parseExplainOptions(cursor, made);
  } else {
    made.analyze = cursor.accept("analyze");
    made.verbose = cursor.accept("verbose");
  }
  if (cursor.is("execute") && cursor.isAhead(1, "as")) {
    const { statement, user } = parseExecuteAs(cursor, cursor.token);
    requireExplained(cursor, statement);
    return { type: "explain", ...made, user, statement, _location: cursor.since(start) };
  }
  if (!cursor.beginsChange && !beginsQuery(cursor)) {
    cursor.couldBe("select", "insert", "update", "delete", "merge", "with", "values");
    cursor.couldBe("subscribe", "execute");
    cursor.unexpected("a query, INSERT, UPDATE, DELETE or MERGE");
  }
  const statement = cursor.grammar.statement(cursor);
  requireExplained(cursor, statement);
  return { type: "explain", ...made, statement, _location: cursor.since(start) };
}

/**
 * Rejects EXPLAIN of a statement that is neither a query nor a change. @throws {DatabaseError}
 * UNSUPPORTED_FEATURE
 */
function requireExplained(cursor: Cursor, statement: Statement): void {
  if (statement.type === "select for") {
    cursor.refuse("EXPLAIN of a locking SELECT", "explain the SELECT without the locking clause");
  }
  if (statement.type === "create table as") {
    cursor.refuse("EXPLAIN of SELECT INTO", "explain the SELECT without INTO");
  }
  if (!isQueryNode(statement) || copySourceNode(statement) !== undefined) {
    cursor.refuse(
      "EXPLAIN with this statement",
      "only queries and changes to rows can be explained",
    );
  }
}

function parseExplainOptions(
  cursor: Cursor,
  made: { analyze: boolean; verbose: boolean; format: "text" | "json" },
): void {
  cursor.expect("(");
  do {
    const word = cursor.expectOneOf("analyze", "verbose", "format");
    if (word === "format") made.format = parseFormat(cursor);
    else made[word] = parseSwitch(cursor);
  } while (cursor.accept(","));
  cursor.expect(")");
}

// Parses the optional value of a boolean option: true, on or 1, or false, off or 0. An option
// without a value is true.
function parseSwitch(cursor: Cursor): boolean {
  if (cursor.is(",") || cursor.is(")")) return true;
  const { start } = cursor;
  const token = cursor.token;
  cursor.token += 1;
  const text = cursor.text.slice(start, cursor.since(token).end).toLowerCase();
  if (/^'?(?:true|on|1)'?$/.test(text)) return true;
  if (/^'?(?:false|off|0)'?$/.test(text)) return false;
  cursor.token = token;
  return cursor.unexpected("TRUE or FALSE");
}
