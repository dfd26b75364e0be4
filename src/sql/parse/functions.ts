/**
 * Parses CREATE FUNCTION, and ALTER and DROP of functions and aggregates. It also parses the body
 * of a function, so that the statement that creates the function reports every error in it.
 */
import { DatabaseError, withDetails } from "../../base/errors.ts";
import type {
  AlterFunctionStatement,
  AlterOwnerStatement,
  CallStatement,
  CreateFunctionStatement,
  DropFunctionStatement,
  FunctionChange,
  FunctionClauses,
  FunctionName,
  FunctionParameterNode,
  ParameterMode,
  SelectStatement,
  Statement,
} from "./ast/ast.ts";
import { changesRows, isSelectNode } from "./ast/query_nodes.ts";
import { relocated } from "./ast/tree_parts.ts";
import { requireListed } from "./bounds.ts";
import { parseCall } from "./calls.ts";
import { Cursor, type Mutable } from "./cursor.ts";
import { acceptBehaviour, acceptIfExists } from "./ddl.ts";
import { parseSourced } from "./indexed_parts.ts";
import { acceptOwner } from "./ownership.ts";
import { Token, tokenize } from "./text/lexer.ts";

const FUNCTION = "a function";
export const AGGREGATE = "an aggregate";
const ONE_QUERY =
  "the body of a function in LANGUAGE sql must be a single query; run changes and further " +
  "statements from the client";

type Body = Pick<CreateFunctionStatement, "program" | "query" | "source">;

/** The clauses of CREATE FUNCTION after the parameters, which may come in any order. */
interface Clauses extends Mutable<FunctionClauses> {
  language: "plpgsql" | "sql";
  /**
   * The function's body. A body written as a string is parsed only after all clauses, because the
   * LANGUAGE clause may follow it.
   */
  body: Body | BodyText | undefined;
}

/** A function body written as a string. */
interface BodyText {
  readonly text: string;
  readonly token: number;
}

/**
 * Parses the rest of a statement after `CREATE [OR REPLACE] FUNCTION` or `CREATE [OR REPLACE]
 * PROCEDURE`.
 */
export function parseCreateFunction(
  cursor: Cursor,
  start: number,
  { isProcedure, orReplace }: Pick<CreateFunctionStatement, "isProcedure" | "orReplace">,
): CreateFunctionStatement {
  const name = cursor.qname(FUNCTION);
  const given = parseParameters(cursor);
  const { columns, ...result } =
    isProcedure === true ? { isSet: false, columns: [] } : parseResult(cursor);
  const clauses = parseClauses(cursor);
  const { body: written, isStrict = false, language, volatility = "volatile" } = clauses;
  if (written === undefined) return cursor.unexpected("AS 'a query'");
  const body = bodyIn(cursor, written, { isProcedure, language });
  return {
    type: "create function",
    orReplace,
    isProcedure,
    name,
    parameters: [...given, ...columns],
    ...result,
    isStrict,
    volatility,
    ...body,
    _location: cursor.since(start),
  };
}

function parseParameters(cursor: Cursor): FunctionParameterNode[] {
  cursor.expect("(");
  const parameters: FunctionParameterNode[] = [];
  if (cursor.accept(")")) return parameters;
  do {
    parameters.push(parseParameter(cursor));
    requireListed(cursor, parameters.length, "parameters of a single function");
  } while (cursor.accept(","));
  cursor.expect(")");
  return parameters;
}

/** Parses `(*)` or the parameters of an aggregate. */
export function parseAggregateParameters(cursor: Cursor): FunctionParameterNode[] {
  cursor.expect("(");
  const parameters: FunctionParameterNode[] = [];
  if (cursor.accept("*")) {
    cursor.expect(")");
    return parameters;
  }
  do {
    refuseOrderedSet(cursor);
    const { start } = cursor;
    const parameter = parseParameter(cursor);
    if (parameter.mode !== "in" && parameter.mode !== "variadic") {
      throw invalidAggregate("a parameter cannot be an output parameter", start);
    }
    if (parameter.default !== undefined) {
      throw invalidAggregate("a parameter cannot have a default", start);
    }
    parameters.push(parameter);
    requireListed(cursor, parameters.length, "parameters of a single aggregate");
  } while (cursor.accept(","));
  refuseOrderedSet(cursor);
  cursor.expect(")");
  return parameters;
}

/** Returns the error for a definition of an aggregate that lacks a part or has one too many. */
export function invalidAggregate(why: string, position: number, hint?: string): DatabaseError {
  const details = hint === undefined ? { position } : { position, hint };
  return new DatabaseError("INVALID_DEFINITION", `Cannot create the aggregate: ${why}`, details);
}

function refuseOrderedSet(cursor: Cursor): void {
  if (!cursor.is("order")) return;
  cursor.refuse(
    "a user-defined ordered-set aggregate",
    "define an aggregate over an array, and call it with ORDER BY",
  );
}

const MODES = ["in", "out", "inout", "variadic"] as const;

/**
 * Parses a function parameter, `[mode] [name] type [DEFAULT e]`. The mode may also follow the
 * name.
 */
function parseParameter(cursor: Cursor): FunctionParameterNode {
  const start = cursor.token;
  let mode: ParameterMode | undefined = acceptMode(cursor);
  const name = isNamed(cursor) ? cursor.label("a parameter") : undefined;
  mode ??= acceptMode(cursor);
  const dataType = parseType(cursor);
  const parameter: Mutable<FunctionParameterNode> = {
    mode: mode ?? "in",
    ...(mode === undefined ? {} : { hasMode: true }),
    name,
    dataType,
    _location: cursor.since(start),
  };
  if (cursor.accept("default") || cursor.accept("=") || cursor.accept(":=")) {
    const { expr, source } = parseSourced(cursor);
    parameter.default = expr;
    parameter.source = source;
    parameter._location = cursor.since(start);
  }
  return parameter;
}

function acceptMode(cursor: Cursor): (typeof MODES)[number] | undefined {
  const mode = cursor.acceptOneOf(...MODES);
  return mode === "in" && cursor.accept("out") ? "inout" : mode;
}

/**
 * Whether the next word is a parameter name. If it were a type, the word after it would have to
 * continue that type.
 */
function isNamed(cursor: Cursor): boolean {
  const next = cursor.kindAhead(1);
  if (next !== Token.word && next !== Token.quoted) return false;
  const continuing = CONTINUED_TYPES.get(cursor.word) ?? [];
  return !continuing.includes(cursor.wordAhead(1)) && !cursor.isAhead(1, "default");
}

/** The types whose names have several words: for each first word, the words that may follow it. */
const CONTINUED_TYPES: ReadonlyMap<string, readonly string[]> = new Map([
  ["bit", ["varying"]],
  ["char", ["varying"]],
  ["character", ["varying"]],
  ["double", ["precision"]],
  ["interval", ["day", "hour", "minute", "month", "second", "year"]],
  ["national", ["char", "character"]],
  ["nchar", ["varying"]],
  ["time", ["with", "without"]],
  ["timestamp", ["with", "without"]],
]);

function parseType(cursor: Cursor): FunctionParameterNode["dataType"] {
  if (cursor.is("setof")) cursor.unexpected("a type");
  return cursor.grammar.dataType(cursor);
}

/** Parses `RETURNS [SETOF] type` or `RETURNS TABLE (…)`. */
function parseResult(cursor: Cursor): Pick<CreateFunctionStatement, "dataType" | "isSet"> & {
  readonly columns: FunctionParameterNode[];
} {
  if (!cursor.is("returns") || cursor.isAhead(1, "null")) return { isSet: false, columns: [] };
  cursor.expect("returns");
  if (cursor.is("table") && cursor.isAhead(1, "(")) {
    cursor.token += 1;
    return { isSet: true, columns: parseColumns(cursor) };
  }
  const isSet = cursor.accept("setof");
  return { isSet, dataType: cursor.grammar.dataType(cursor), columns: [] };
}

function parseColumns(cursor: Cursor): FunctionParameterNode[] {
  cursor.expect("(");
  const columns: FunctionParameterNode[] = [];
  do {
    const start = cursor.token;
    const name = cursor.label("a column");
    const dataType = parseType(cursor);
    columns.push({ mode: "table", name, dataType, _location: cursor.since(start) });
    requireListed(cursor, columns.length, "columns of a single function");
  } while (cursor.accept(","));
  cursor.expect(")");
  return columns;
}

function parseClauses(cursor: Cursor): Clauses {
  const clauses: Clauses = { language: "sql", body: undefined };
  while (cursor.kind !== Token.end && !cursor.is(";")) {
    if (!acceptBody(cursor, clauses) && !acceptClause(cursor, clauses)) {
      cursor.unexpected("AS 'a query'");
    }
  }
  return clauses;
}

function acceptBody(cursor: Cursor, clauses: Clauses): boolean {
  const isText = cursor.accept("as");
  if (!isText && !cursor.is("return") && !cursor.is("begin")) return false;
  if (clauses.body !== undefined) cursor.unexpectedEnd("function");
  clauses.body = isText ? acceptText(cursor) : parseStandardBody(cursor);
  return true;
}

function acceptClause(cursor: Cursor, clauses: Clauses): boolean {
  if (cursor.accept("language")) {
    clauses.language = parseLanguage(cursor);
    return true;
  }
  return acceptChangeable(cursor, clauses);
}

/**
 * Reads a clause that ALTER FUNCTION can also change. Clauses that only advise PostgreSQL's
 * planner have no effect.
 */
function acceptChangeable(cursor: Cursor, clauses: Mutable<FunctionClauses>): boolean {
  const { start } = cursor;
  const volatility = cursor.acceptOneOf("immutable", "stable", "volatile");
  if (volatility !== undefined) {
    requireFirst(cursor, clauses.volatility, start);
    clauses.volatility = volatility;
    return true;
  }
  const isStrict = acceptStrictness(cursor);
  if (isStrict === undefined) return acceptAdvice(cursor);
  requireFirst(cursor, clauses.isStrict, start);
  clauses.isStrict = isStrict;
  return true;
}

/**
 * Returns whether the next clause makes a function strict; undefined if it does not concern
 * strictness.
 */
function acceptStrictness(cursor: Cursor): boolean | undefined {
  if (cursor.accept("strict") || cursor.acceptAll("returns", "null", "on", "null", "input"))
    return true;
  return cursor.acceptAll("called", "on", "null", "input") ? false : undefined;
}

/** Refuses a clause that contradicts or repeats an earlier one. */
function requireFirst(cursor: Cursor, earlier: unknown, start: number): void {
  if (earlier !== undefined) cursor.fail("a clause contradicts or repeats an earlier one", start);
}

function parseLanguage(cursor: Cursor): Clauses["language"] {
  const { start } = cursor;
  const written = cursor.isString() ? cursor.takeString() : cursor.label("a language").name;
  const language = written.toLowerCase();
  if (language === "sql" || language === "plpgsql") return language;
  return cursor.refuse(
    `CREATE FUNCTION with LANGUAGE ${language}`,
    "the available languages are sql and plpgsql",
    start,
  );
}

/** Returns the body of a function or procedure. A procedure's body is always a program. */
function bodyIn(
  cursor: Cursor,
  written: Body | BodyText,
  {
    isProcedure,
    language,
  }: Pick<CreateFunctionStatement, "isProcedure"> & Pick<Clauses, "language">,
): Body {
  const isProgram = isProcedure === true || language === "plpgsql";
  if (!("text" in written)) {
    if (isProgram)
      cursor.refuse(
        "a function body without AS in this language",
        "write the body as a string after AS",
      );
    return written;
  }
  return isProgram ? { program: language, source: written.text } : parseText(cursor, written);
}

function acceptAdvice(cursor: Cursor): boolean {
  if (cursor.accept("external") || cursor.is("security")) {
    cursor.expect("security");
    if (cursor.is("definer")) {
      cursor.refuse(
        "SECURITY DEFINER",
        "a function runs with its caller's rights; to give it more, let it read a view WITH " +
          "(security_invoker = false)",
      );
    }
    cursor.expect("invoker");
    return true;
  }
  if (cursor.accept("not")) {
    cursor.expect("leakproof");
    return true;
  }
  if (cursor.is("leakproof"))
    cursor.refuse(
      "LEAKPROOF",
      "remove it: the server never evaluates conditions in an order that could leak rows",
    );
  if (cursor.is("window")) cursor.refuse("a user-defined window function", "omit WINDOW");
  if (cursor.is("support")) cursor.refuse("SUPPORT of a function", "omit it");
  if (cursor.is("set"))
    cursor.refuse("SET of a function", "set the value before the function is called");
  if (cursor.accept("parallel")) {
    cursor.label("SAFE, RESTRICTED or UNSAFE");
    return true;
  }
  if (cursor.accept("cost") || cursor.accept("rows")) {
    if (cursor.kind !== Token.integer && cursor.kind !== Token.numeric)
      cursor.unexpected("a number");
    cursor.token += 1;
    return true;
  }
  return false;
}

function acceptText(cursor: Cursor): BodyText {
  const { token } = cursor;
  const text = cursor.string("a query in quotes");
  if (cursor.is(",")) cursor.refuse("a function in an object file", ONE_QUERY);
  return { text, token };
}

/**
 * Parses a function body written as a string. All errors in it are reported at the position of the
 * string.
 */
function parseText(cursor: Cursor, { text: source, token: at }: BodyText): Body {
  const { grammar, limits, tokens } = cursor;
  const start = tokens.starts[at];
  const body = new Cursor({
    tokens: tokenize(source),
    grammar,
    limits,
    slots: undefined,
    expectations: undefined,
  });
  if (body.kind === Token.end) cursor.refuse("a function without a body", ONE_QUERY, start);
  const statement = parsedBody(body, cursor, at);
  const end = body.end;
  while (body.accept(";")) continue;
  if (body.kind !== Token.end) {
    cursor.refuse("a function with several statements", ONE_QUERY, start);
  }
  const query = relocated(queryOf(cursor, statement), {
    start: start ?? 0,
    end: tokens.ends[at] ?? 0,
  });
  return { query, source: source.slice(0, end).trim() };
}

/**
 * Parses the statement of a function body. Its errors are reported at the position of the whole
 * body.
 */
function parsedBody(
  body: Cursor,
  { grammar, statementIndex, tokens }: Cursor,
  at: number,
): Statement {
  try {
    return grammar.statement(body);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw withDetails(error, { position: tokens.starts[at], statementIndex });
  }
}

/**
 * Parses a function body in the form of the SQL standard: `RETURN e` or `BEGIN ATOMIC query; END`.
 */
function parseStandardBody(cursor: Cursor): Body {
  const { parameterCount } = cursor;
  const body = cursor.accept("return") ? parseReturn(cursor) : parseAtomic(cursor);
  // In a function body, `$1` is a parameter of the function, not of the request.
  cursor.parameterCount = parameterCount;
  return body;
}

function parseReturn(cursor: Cursor): Body {
  const start = cursor.token;
  const { expr, source } = parseSourced(cursor);
  const _location = cursor.since(start);
  const query: SelectStatement = { type: "select", columns: [{ expr, _location }], _location };
  return { query, source: `SELECT ${source}` };
}

function parseAtomic(cursor: Cursor): Body {
  cursor.expectAll("begin", "atomic");
  while (cursor.accept(";")) continue;
  const { start } = cursor;
  if (cursor.is("end")) cursor.refuse("a function without a body", ONE_QUERY);
  const body = parseAtomicStatement(cursor, start);
  cursor.expect(";");
  while (cursor.accept(";")) continue;
  if (!cursor.is("end")) cursor.refuse("a function with several statements", ONE_QUERY);
  cursor.expect("end");
  return body;
}

/** Parses `RETURN e`, or a query, which begins at an offset of the SQL. */
function parseAtomicStatement(cursor: Cursor, start: number): Body {
  if (cursor.accept("return")) return parseReturn(cursor);
  const statement = cursor.grammar.statement(cursor);
  const source = cursor.text.slice(start, cursor.end);
  return { query: queryOf(cursor, statement), source };
}

function queryOf(cursor: Cursor, statement: Statement): SelectStatement {
  if (isSelectNode(statement) && !changesRows(statement)) return statement;
  return cursor.refuse("a function whose body is not a query", ONE_QUERY, cursor.start);
}

type FunctionKind = FunctionName["kind"];

/** Reads AGGREGATE, FUNCTION, PROCEDURE or ROUTINE. Returns undefined for any other word. */
export function acceptFunctionKind(cursor: Cursor): { readonly kind: FunctionKind } | undefined {
  if (cursor.accept("aggregate")) return { kind: "aggregate" };
  if (cursor.accept("function")) return { kind: "function" };
  if (cursor.accept("procedure")) return { kind: "procedure" };
  return cursor.accept("routine") ? { kind: undefined } : undefined;
}

/** Parses the rest of a statement after `ALTER FUNCTION`, `ALTER PROCEDURE` or `ALTER ROUTINE`. */
export function parseAlterFunction(
  cursor: Cursor,
  start: number,
  kind: FunctionKind,
): AlterFunctionStatement | AlterOwnerStatement {
  const name = { ...parseFunctionNamed(cursor, kind), kind };
  const owned = acceptOwner(cursor, start, { kind: "function", name });
  if (owned !== undefined) return owned;
  if (kind === "aggregate" && !cursor.is("rename") && !cursor.is("set")) {
    cursor.unexpected("RENAME TO or OWNER TO");
  }
  const change = parseFunctionChange(cursor);
  return { type: "alter function", name, change, _location: cursor.since(start) };
}

function parseFunctionChange(cursor: Cursor): FunctionChange {
  if (cursor.acceptAll("rename", "to")) return { type: "rename", to: cursor.label(FUNCTION) };
  if (cursor.is("set") && cursor.isAhead(1, "schema")) {
    cursor.refuse(
      "SET SCHEMA of a function",
      "create the function in the other namespace, and drop this one",
    );
  }
  const clauses: Mutable<FunctionClauses> = {};
  do {
    if (cursor.is("reset")) cursor.refuse("RESET of a function", "set the value before the call");
    if (!acceptChangeable(cursor, clauses)) {
      cursor.unexpected("RENAME TO, OWNER TO or a clause such as IMMUTABLE or STRICT");
    }
  } while (cursor.kind !== Token.end && !cursor.is(";") && !cursor.accept("restrict"));
  return { type: "set clauses", ...clauses };
}

/** Parses the rest of a statement after `DROP FUNCTION`, `DROP PROCEDURE` or `DROP ROUTINE`. */
export function parseDropFunction(
  cursor: Cursor,
  start: number,
  kind: FunctionKind,
): DropFunctionStatement {
  const ifExists = acceptIfExists(cursor);
  const names: FunctionName[] = [];
  do names.push({ ...parseFunctionNamed(cursor, kind), kind });
  while (cursor.accept(","));
  const cascade = acceptBehaviour(cursor);
  return { type: "drop function", names, ifExists, cascade, _location: cursor.since(start) };
}

/** Parses CALL. */
export function parseCallStatement(cursor: Cursor, start: number): CallStatement {
  cursor.expect("call");
  const at = cursor.token;
  const name = cursor.qname("a procedure");
  const call = parseCall(cursor, at, name);
  return { type: "call procedure", call, _location: cursor.since(start) };
}

/** Parses `name` or `name(types)`. The types of an aggregate must be written. */
export function parseFunctionNamed(cursor: Cursor, kind?: FunctionKind): FunctionName {
  const start = cursor.token;
  const isAggregate = kind === "aggregate";
  const name = cursor.qname(isAggregate ? AGGREGATE : FUNCTION);
  if (!isAggregate && !cursor.is("(")) return name;
  const parameters = isAggregate ? parseAggregateParameters(cursor) : parseParameters(cursor);
  return { ...name, parameters, _location: cursor.since(start) };
}
