/**
 * Parses the statements of a PL/pgSQL body. A statement that does not begin with a PL/pgSQL
 * keyword is an assignment if it begins with a variable, and SQL otherwise.
 */
import { isSelectNode } from "../parse/ast/query_nodes.ts";
import type { BodyParser } from "./body_parser.ts";
import { queryPiece, statementPiece } from "./body_tokens.ts";
import { findName } from "./names.ts";
import { parseFor, parseForeach, parseLoop, parseWhile } from "./parse_loops.ts";
import {
  cursorVariable,
  parseCursorArguments,
  parseInto,
  parseSource,
  parseTarget,
  parseUsing,
} from "./parse_parts.ts";
import { parseRaise } from "./parse_raise.ts";
import type {
  AssignNode,
  CaseNode,
  DiagnosticsNode,
  ExecuteNode,
  ExitNode,
  FetchKind,
  FetchNode,
  IfNode,
  IntoNode,
  OpenNode,
  SqlNode,
  StatementNode,
  ValuePiece,
} from "./tree.ts";

/** @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE */
export function parseStatement(parser: BodyParser): StatementNode {
  const { tokens } = parser;
  const { line } = tokens;
  const label = parser.label();
  const assigned = label === undefined ? acceptAssignment(parser, line) : undefined;
  if (assigned !== undefined) return assigned;
  switch (tokens.word()) {
    case "declare":
    case "begin": {
      const block = parser.block(label);
      tokens.expect(";");
      return block;
    }
    case "loop":
      return parseLoop(parser, label);
    case "while":
      return parseWhile(parser, label);
    case "for":
      return parseFor(parser, label);
    case "foreach":
      return parseForeach(parser, label);
    default:
      if (label !== undefined) throw tokens.unexpected("a block or a loop after a label");
      return parsePlain(parser, line);
  }
}

function parsePlain(parser: BodyParser, line: number): StatementNode {
  const { tokens } = parser;
  switch (tokens.word()) {
    case "if":
      return parseIf(parser, line);
    case "case":
      return parseCase(parser, line);
    case "exit":
    case "continue":
      return parseExit(parser, line);
    case "return":
      return parseReturn(parser, line);
    case "raise":
      return parseRaise(parser, line);
    case "assert":
      return parseAssert(parser, line);
    case "null":
      tokens.token += 1;
      tokens.expect(";");
      return { kind: "null", line };
    case "perform":
      return parsePerform(parser, line);
    case "execute":
      return parseExecute(parser, line);
    case "get":
      return parseDiagnostics(parser, line);
    case "open":
      return parseOpen(parser, line);
    case "fetch":
      return parseFetch(parser, line);
    case "move":
      return parseFetch(parser, line);
    case "close": {
      tokens.token += 1;
      const slot = cursorVariable(parser);
      tokens.expect(";");
      return { kind: "close", line, slot };
    }
    case "call":
      return { kind: "call", line, statement: restOfStatement(parser, line) };
    case "commit":
    case "rollback":
      throw tokens.refused(
        tokens.word().toUpperCase(),
        "a function always runs in its caller's transaction; to be able to undo a part of the " +
          "work, use BEGIN … EXCEPTION",
      );
    case ";":
      throw tokens.unexpected("a statement");
    default:
      return parseSql(parser, line);
  }
}

function restOfStatement(parser: BodyParser, line: number): ReturnType<typeof statementPiece> {
  const { tokens } = parser;
  const text = tokens.textUntil([";"], "a statement");
  tokens.expect(";");
  return tokens.within(line, () => statementPiece(text, parser.names));
}

/** Reads an assignment, if one comes next. */
function acceptAssignment(parser: BodyParser, line: number): AssignNode | undefined {
  const { tokens } = parser;
  const name = tokens.writtenName();
  if (name === undefined) return undefined;
  const next = tokens.word(name.parts.length * 2 - 1);
  const isAssignment = next === ":=" || next === "=" || next === "[";
  if (!isAssignment) return undefined;
  const target = parseTarget(parser, true);
  if (!tokens.accept(":=")) tokens.expect("=");
  const value = parser.value(";");
  tokens.expect(";");
  return { kind: "assign", line, target, value };
}

function parseIf(parser: BodyParser, line: number): IfNode {
  const { tokens } = parser;
  const branches: IfNode["branches"][number][] = [];
  do {
    tokens.token += 1;
    const condition = parser.value("then");
    tokens.expect("then");
    const statements = parser.statements("elsif", "elseif", "else", "end");
    branches.push({ condition, statements });
  } while (tokens.isAny("elsif", "elseif"));
  const otherwise = tokens.accept("else") ? parser.statements("end") : [];
  tokens.expect("end", "if", ";");
  return { kind: "if", line, branches, otherwise };
}

function parseCase(parser: BodyParser, line: number): CaseNode {
  const { tokens } = parser;
  tokens.expect("case");
  const value = tokens.is("when") ? undefined : parser.value("when");
  const operand = value && { value, slot: parser.hidden() };
  const branches: CaseNode["branches"][number][] = [];
  while (tokens.accept("when")) {
    const conditions = operand === undefined ? [parser.value("then")] : parseCompared(parser);
    tokens.expect("then");
    branches.push({
      conditions: conditions.map((each) =>
        operand === undefined ? each : comparison(operand.slot, each),
      ),
      statements: parser.statements("when", "else", "end"),
    });
  }
  if (branches.length === 0) throw tokens.unexpected("WHEN");
  const otherwise = tokens.accept("else") ? parser.statements("end") : undefined;
  tokens.expect("end", "case", ";");
  return { kind: "case", line, operand, branches, otherwise };
}

/** Reads the values after WHEN that are compared with the operand of CASE. */
function parseCompared(parser: BodyParser): ValuePiece[] {
  const values = [parser.value(",", "then")];
  while (parser.tokens.accept(",")) values.push(parser.value(",", "then"));
  return values;
}

/** Creates the condition that a hidden variable equals a value. */
function comparison(slot: number, piece: ValuePiece): ValuePiece {
  const { names, node, text } = piece;
  const { _location } = node;
  const name = `\0${slot}`;
  return {
    kind: "expression",
    text,
    names: { name, slot, label: undefined, outer: names },
    node: {
      type: "binary",
      op: "=",
      left: { type: "ref", name, _location },
      right: node,
      _location,
    },
  };
}

function parseExit(parser: BodyParser, line: number): ExitNode {
  const { tokens } = parser;
  const isContinue = tokens.is("continue");
  const verb = tokens.word().toUpperCase();
  tokens.token += 1;
  const label = tokens.isName() && !tokens.is("when") ? tokens.name("a label") : undefined;
  if (!parser.hasTarget(label, isContinue)) {
    const why =
      label === undefined
        ? `${verb} is allowed only inside a loop${isContinue ? "" : ", unless it names a block"}`
        : `no enclosing ${isContinue ? "loop" : "block or loop"} has the label "${label}", which ` +
          `${verb} names`;
    throw tokens.wrong(why, line);
  }
  const condition = tokens.accept("when") ? parser.value(";") : undefined;
  tokens.expect(";");
  return { kind: "exit", line, isContinue, label, condition };
}

function parseReturn(parser: BodyParser, line: number): StatementNode {
  const { returns, tokens } = parser;
  tokens.expect("return");
  if (tokens.is("next") || tokens.is("query")) {
    if (!returns.isSet) {
      const form = tokens.word().toUpperCase();
      throw tokens.wrong(`RETURN ${form} is allowed only in a function that RETURNS SETOF`, line);
    }
  }
  if (tokens.accept("next")) {
    const value = optionalValue(parser);
    if ((value !== undefined) !== (returns.kind === "value")) throw wrongReturn(parser, line);
    return { kind: "return next", line, value };
  }
  if (tokens.accept("query")) {
    const source = parseSource(parser, [";"]);
    tokens.expect(";");
    return { kind: "return query", line, source };
  }
  const value = optionalValue(parser);
  const takesValue = returns.kind === "value" && !returns.isSet;
  if ((value !== undefined) !== takesValue) throw wrongReturn(parser, line);
  return { kind: "return", line, value };
}

function wrongReturn({ returns, tokens }: BodyParser, line: number): Error {
  const { isSet, kind } = returns;
  if (kind === "value" && !isSet) return tokens.wrong("RETURN needs a value", line);
  if (kind === "value")
    return tokens.wrong("a function that returns a set must return a value with RETURN NEXT", line);
  const why =
    kind === "outputs" ? "the function has output parameters" : "the function returns no value";
  return tokens.wrong(`RETURN must have no value, because ${why}`, line);
}

function optionalValue(parser: BodyParser): ValuePiece | undefined {
  const { tokens } = parser;
  if (tokens.accept(";")) return undefined;
  const value = parser.value(";");
  tokens.expect(";");
  return value;
}

function parseAssert(parser: BodyParser, line: number): StatementNode {
  const { tokens } = parser;
  tokens.expect("assert");
  const condition = parser.value(",", ";");
  const message = tokens.accept(",") ? parser.value(";") : undefined;
  tokens.expect(";");
  return { kind: "assert", line, condition, message };
}

function parsePerform(parser: BodyParser, line: number): StatementNode {
  const { tokens } = parser;
  tokens.expect("perform");
  const text = `SELECT ${tokens.textUntil([";"], "a query")}`;
  tokens.expect(";");
  const query = tokens.within(line, () => queryPiece(text, parser.names));
  return { kind: "perform", line, query };
}

/** Reads EXECUTE. INTO and USING may follow it in either order. */
function parseExecute(parser: BodyParser, line: number): ExecuteNode {
  const { tokens } = parser;
  tokens.expect("execute");
  const text = parser.value("into", "using", ";");
  let into: IntoNode | undefined;
  let using: readonly ValuePiece[] = [];
  for (;;) {
    if (tokens.is("into") && into === undefined) {
      tokens.token += 1;
      into = parseInto(parser);
    } else if (tokens.is("using") && using.length === 0) {
      using = parseUsing(parser, ["into", ";"]);
    } else break;
  }
  tokens.expect(";");
  return { kind: "execute", line, text, using, into };
}

/** Reads an SQL statement, and removes the INTO clause that it may contain. */
function parseSql(parser: BodyParser, line: number): SqlNode {
  const { tokens } = parser;
  const parts: string[] = [];
  let into: IntoNode | undefined;
  for (;;) {
    const end = tokens.distanceTo([";"]);
    if (end === undefined) throw tokens.missing(";", "a statement");
    const at = into === undefined ? intoAt(tokens, end) : undefined;
    if (at === undefined) {
      if (end > 0) parts.push(tokens.take(end));
      break;
    }
    parts.push(tokens.take(at));
    tokens.expect("into");
    into = parseInto(parser);
  }
  tokens.expect(";");
  const statement = tokens.within(line, () => statementPiece(parts.join(" "), parser.names));
  if (into === undefined && isSelectNode(statement.node)) {
    throw tokens.wrong(
      "the query has no destination for its rows: store them with INTO, or discard them with " +
        "PERFORM",
      line,
    );
  }
  return { kind: "sql", line, statement, into };
}

type StatementTokens = BodyParser["tokens"];

/**
 * Returns the number of tokens before the INTO that names variables; undefined if there is no such
 * INTO. The INTO of INSERT and MERGE does not count.
 */
function intoAt(tokens: StatementTokens, end: number): number | undefined {
  if (tokens.isAny("create", "import")) return undefined;
  for (let ahead = 0; ahead < end; ahead += 1) {
    if (tokens.word(ahead) !== "into") continue;
    const before = ahead === 0 ? "" : tokens.word(ahead - 1);
    if (before !== "insert" && before !== "merge") return ahead;
  }
  return undefined;
}

function parseDiagnostics(parser: BodyParser, line: number): DiagnosticsNode {
  const { tokens } = parser;
  tokens.expect("get");
  const isStacked = tokens.accept("stacked");
  if (!isStacked) tokens.accept("current");
  tokens.expect("diagnostics");
  const items: DiagnosticsNode["items"][number][] = [];
  do {
    const target = parseTarget(parser, true);
    if (!tokens.accept(":=")) tokens.expect("=");
    const at = tokens.line;
    const name = tokens.name("an item");
    const known = isStacked ? STACKED_ITEMS : CURRENT_ITEMS;
    if (!known.has(name)) {
      throw tokens.wrong(`GET ${isStacked ? "STACKED " : ""}DIAGNOSTICS has no item ${name}`, at);
    }
    items.push({ target, name });
  } while (tokens.accept(","));
  tokens.expect(";");
  return { kind: "diagnostics", line, isStacked, items };
}

const CURRENT_ITEMS: ReadonlySet<string> = new Set(["row_count", "pg_context"]);

const STACKED_ITEMS: ReadonlySet<string> = new Set([
  "returned_sqlstate",
  "column_name",
  "constraint_name",
  "pg_datatype_name",
  "message_text",
  "table_name",
  "schema_name",
  "pg_exception_detail",
  "pg_exception_hint",
  "pg_exception_context",
]);

function parseOpen(parser: BodyParser, line: number): OpenNode {
  const { tokens } = parser;
  tokens.expect("open");
  const slot = cursorVariable(parser);
  const { declared, name } = parser.variable(slot);
  if (declared.kind === "cursor" && declared.cursor !== undefined) {
    const args = parseCursorArguments(parser);
    tokens.expect(";");
    return { kind: "open", line, slot, args, source: undefined, isScroll: undefined };
  }
  const isScroll = tokens.accept("no", "scroll") ? false : tokens.accept("scroll") || undefined;
  if (!tokens.accept("for")) throw tokens.unexpected(`FOR, because "${name}" has no query`);
  const source = parseSource(parser, [";"]);
  tokens.expect(";");
  return { kind: "open", line, slot, args: [], source, isScroll };
}

function parseFetch(parser: BodyParser, line: number): FetchNode {
  const { tokens } = parser;
  const isMove = tokens.is("move");
  tokens.token += 1;
  const { count, direction } = parseDirection(parser);
  if (!tokens.accept("from")) tokens.accept("in");
  const slot = cursorVariable(parser);
  if (isMove) {
    tokens.expect(";");
    return { kind: "fetch", line, slot, direction, count, into: undefined };
  }
  tokens.expect("into");
  const into = parseInto(parser);
  tokens.expect(";");
  return { kind: "fetch", line, slot, direction, count, into };
}

interface Direction {
  readonly direction: FetchKind;
  readonly count: ValuePiece | number;
}

/** Reads the direction of FETCH, which is either left out or followed by FROM or IN. */
function parseDirection(parser: BodyParser): Direction {
  const { tokens } = parser;
  const isNamed = findName([tokens.nameAt(0) ?? ""], parser.names) !== undefined;
  if (isNamed && !["from", "in"].includes(tokens.word(1))) return ONE_FORWARD;
  if (tokens.accept("next")) return ONE_FORWARD;
  if (tokens.accept("prior")) return { direction: "backward", count: 1 };
  if (tokens.accept("first")) return { direction: "absolute", count: 1 };
  if (tokens.accept("last")) return { direction: "absolute", count: -1 };
  if (tokens.accept("all")) return { direction: "forward", count: Number.POSITIVE_INFINITY };
  const direction = (["absolute", "relative", "forward", "backward"] as const).find((word) =>
    tokens.accept(word),
  );
  if (tokens.isAny("from", "in")) return { direction: direction ?? "forward", count: 1 };
  if (tokens.accept("all")) {
    return { direction: direction ?? "forward", count: Number.POSITIVE_INFINITY };
  }
  return { direction: direction ?? "forward", count: parser.value("from", "in") };
}

const ONE_FORWARD: Direction = { direction: "forward", count: 1 };
