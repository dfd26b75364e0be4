/**
 * Parses calls to functions, aggregates and window functions, including forms with keywords
 * between the arguments (EXTRACT, SUBSTRING, OVERLAY, TRIM, POSITION, NORMALIZE).
 */
import type {
  CallOver,
  Expr,
  ExprCall,
  FrameBound,
  OrderByStatement,
  QName,
  ValueKeyword,
  WindowFrame,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { parseWord } from "./options.ts";
import { Token } from "./text/lexer.ts";

/** Parses the rest of a function call after its name. */
export function parseCall(cursor: Cursor, start: number, name: QName): ExprCall {
  const outer = cursor.enter();
  const call: Mutable<ExprCall> = {
    type: "call",
    function: name,
    args: [],
    argNames: undefined,
    distinct: undefined,
    orderBy: undefined,
    filter: undefined,
    withinGroup: undefined,
    over: undefined,
    _location: name._location,
  };
  cursor.expect("(");
  if (!cursor.accept(")")) {
    parseArguments(cursor, call);
    cursor.expect(")");
  }
  if (cursor.word !== "") parseCallClauses(cursor, call);
  cursor.leave(outer);
  call._location = cursor.since(start);
  return call;
}

function parseArguments(cursor: Cursor, call: Mutable<ExprCall>): void {
  if (cursor.is("*")) {
    const start = cursor.token;
    cursor.token += 1;
    call.args = [{ type: "ref", name: "*", star: true, _location: cursor.since(start) }];
    return;
  }
  call.distinct = cursor.acceptOneOf("distinct", "all");
  const args: Expr[] = [];
  const argNames: (string | undefined)[] = [];
  do {
    if (call.isVariadic === true)
      cursor.fail(
        "found an argument after the VARIADIC argument, which must be the last",
        cursor.start,
      );
    if (cursor.accept("variadic")) call.isVariadic = true;
    // `:=` is PostgreSQL's older spelling of `=>`.
    const isNamed = cursor.isName() && (cursor.isAhead(1, "=>") || cursor.isAhead(1, ":="));
    argNames.push(isNamed ? cursor.takeName().name : undefined);
    if (isNamed) cursor.expectOneOf("=>", ":=");
    args.push(parseArgument(cursor, call.function));
    requireListed(cursor, args.length, "arguments in a single call");
  } while (cursor.accept(","));
  call.args = args;
  if (argNames.some((name) => name !== undefined)) call.argNames = argNames;
  if (cursor.is("order")) call.orderBy = parseOrderBy(cursor);
}

// Parses an argument of a call. The argument of FILE("part") names a part of the request, not a
// column.
function parseArgument(cursor: Cursor, name: QName): Expr {
  const isFile = name.name === "file" && name.schema === undefined;
  if (isFile && cursor.kind === Token.quoted && cursor.isAhead(1, ")")) {
    const part = cursor.takeName();
    return { type: "string", value: part.name, _location: part._location };
  }
  return cursor.grammar.expression(cursor);
}

function parseCallClauses(cursor: Cursor, call: Mutable<ExprCall>): void {
  if (cursor.acceptAll("within", "group")) {
    cursor.expect("(");
    const [sort, ...then] = parseOrderBy(cursor);
    call.withinGroup = sort;
    if (then.length > 0) call.withinGroupThen = then;
    cursor.expect(")");
  }
  if (cursor.is("filter") && cursor.isAhead(1, "(")) {
    cursor.expectAll("filter", "(", "where");
    call.filter = cursor.grammar.expression(cursor);
    cursor.expect(")");
  }
  if (cursor.accept("over")) call.over = parseOver(cursor);
}

function parseOver(cursor: Cursor): CallOver {
  const start = cursor.token;
  if (!cursor.is("(")) return { name: cursor.name("a window"), _location: cursor.since(start) };
  return parseWindow(cursor);
}

/** Parses a window definition: `( [base] [PARTITION BY …] [ORDER BY …] [frame] )`. */
export function parseWindow(cursor: Cursor): CallOver {
  const start = cursor.token;
  const outer = cursor.enter();
  cursor.expect("(");
  const base =
    cursor.isName() && !isWindowClause(cursor.word) ? cursor.name("a window") : undefined;
  const partitionBy = cursor.acceptAll("partition", "by") ? expressions(cursor) : undefined;
  const orderBy = cursor.is("order") ? parseOrderBy(cursor) : undefined;
  const mode = cursor.acceptOneOf("rows", "range", "groups");
  const frame = mode === undefined ? undefined : parseFrame(cursor, mode);
  cursor.expect(")");
  cursor.leave(outer);
  return { base, partitionBy, orderBy, frame, _location: cursor.since(start) };
}

function isWindowClause(word: string): boolean {
  return word === "partition" || word === "rows" || word === "range" || word === "groups";
}

function expressions(cursor: Cursor): Expr[] {
  const list = [cursor.grammar.expression(cursor)];
  while (cursor.accept(",")) {
    list.push(cursor.grammar.expression(cursor));
    requireListed(cursor, list.length, "expressions in a single PARTITION BY");
  }
  return list;
}

function parseFrame(cursor: Cursor, mode: WindowFrame["mode"]): WindowFrame {
  const token = cursor.token - 1;
  const isBetween = cursor.accept("between");
  const start = parseBound(cursor);
  if (isBetween) cursor.expect("and");
  const end: FrameBound = isBetween
    ? parseBound(cursor)
    : { type: "current row", _location: start._location };
  const at = start._location.start;
  if (start.type === "unbounded following") {
    cursor.fail("a frame cannot start at UNBOUNDED FOLLOWING", at);
  }
  if (end.type === "unbounded preceding") {
    cursor.fail("a frame cannot end at UNBOUNDED PRECEDING", at);
  }
  const exclude = parseExclude(cursor);
  return { mode, start, end, exclude, _location: cursor.since(token) };
}

function parseBound(cursor: Cursor): FrameBound {
  const token = cursor.token;
  if (cursor.acceptAll("current", "row")) {
    return { type: "current row", _location: cursor.since(token) };
  }
  const isUnbounded = cursor.accept("unbounded");
  const offset = isUnbounded ? undefined : cursor.grammar.operand(cursor);
  const direction = cursor.expectOneOf("preceding", "following");
  const type = isUnbounded ? (`unbounded ${direction}` as const) : direction;
  return { type, offset, _location: cursor.since(token) };
}

function parseExclude(cursor: Cursor): WindowFrame["exclude"] {
  if (!cursor.accept("exclude")) return undefined;
  if (cursor.acceptAll("no", "others")) return undefined;
  if (cursor.acceptAll("current", "row")) return "current row";
  return cursor.expectOneOf("group", "ties");
}

/** Parses `ORDER BY e [ASC | DESC | USING <] [NULLS FIRST | LAST], …`. */
export function parseOrderBy(cursor: Cursor): OrderByStatement[] {
  cursor.expectAll("order", "by");
  const sorts: OrderByStatement[] = [];
  do {
    const token = cursor.token;
    const by = cursor.grammar.expression(cursor);
    requireListed(cursor, sorts.length + 1, "expressions in a single ORDER BY");
    let order: OrderByStatement["order"];
    if (cursor.accept("asc")) order = "ASC";
    else if (cursor.accept("desc")) order = "DESC";
    else if (cursor.accept("using")) order = cursor.expectOneOf("<", ">") === "<" ? "ASC" : "DESC";
    let nulls: OrderByStatement["nulls"];
    if (cursor.accept("nulls")) {
      nulls = cursor.expectOneOf("first", "last") === "first" ? "FIRST" : "LAST";
    }
    sorts.push({ by, order, nulls, _location: cursor.since(token) });
  } while (cursor.accept(","));
  return sorts;
}

/**
 * Parses a value or call that begins with a keyword. Returns undefined if the next token is not
 * such a keyword.
 */
export function parseKeywordForm(cursor: Cursor): Expr | undefined {
  const start = cursor.token;
  const { word } = cursor;
  switch (word) {
    case "current_catalog":
    case "current_role":
    case "current_schema":
    case "current_user":
    case "session_user":
    case "user": {
      cursor.token += 1;
      cursor.acceptAll("(", ")");
      return keyword(cursor, start, word);
    }
    case "current_date":
      cursor.token += 1;
      return keyword(cursor, start, word);
    case "current_time":
    case "current_timestamp":
    case "localtime":
    case "localtimestamp": {
      const name = cursor.takeName();
      return cursor.is("(") ? parseCall(cursor, start, name) : keyword(cursor, start, word);
    }
    case "extract":
    case "substring":
    case "overlay":
    case "trim":
    case "position":
    case "normalize":
      if (!cursor.isAhead(1, "(")) return undefined;
      return parseArgumentWords(cursor, word);
    default:
      return undefined;
  }
}

function keyword(cursor: Cursor, start: number, word: ValueKeyword): Expr {
  cursor.setDepth(1);
  return { type: "keyword", keyword: word, _location: cursor.since(start) };
}

type WordyFunction = "extract" | "substring" | "overlay" | "trim" | "position" | "normalize";

function parseArgumentWords(cursor: Cursor, word: WordyFunction): Expr {
  const start = cursor.token;
  const name = cursor.takeName();
  // If the arguments are separated by commas, these keywords begin ordinary calls.
  const isPlain = word !== "extract" && word !== "position" && word !== "normalize";
  if (isPlain && isPlainCall(cursor)) return parseCall(cursor, start, name);
  const outer = cursor.enter();
  cursor.expect("(");
  const made = parseWordyBody(cursor, word, name);
  cursor.expect(")");
  cursor.leave(outer);
  return { ...made, _location: cursor.since(start) };
}

// Whether the parentheses that follow belong to an ordinary call. The parentheses of a special
// form directly contain FROM, FOR, PLACING, LEADING, TRAILING or BOTH.
function isPlainCall(cursor: Cursor): boolean {
  let depth = 0;
  for (let count = 0; cursor.kindAhead(count) !== Token.end; count++) {
    switch (cursor.wordAhead(count)) {
      case "(":
        depth += 1;
        break;
      case ")":
        depth -= 1;
        if (depth === 0) return true;
        break;
      case "from":
        if (depth === 1 && cursor.wordAhead(count - 1) !== "distinct") return false;
        break;
      case "for":
      case "placing":
      case "similar":
      case "both":
      case "leading":
      case "trailing":
        if (depth === 1) return false;
        break;
    }
  }
  return true;
}

function parseWordyBody(cursor: Cursor, word: WordyFunction, name: QName): Expr {
  const { _location } = name;
  switch (word) {
    case "extract": {
      const field = parseWord(cursor, "a field");
      cursor.expect("from");
      return { type: "extract", field, from: cursor.grammar.expression(cursor), _location };
    }
    case "substring": {
      const value = cursor.grammar.operand(cursor);
      if (cursor.accept("similar")) {
        const from = cursor.grammar.expression(cursor);
        cursor.expect("escape");
        return {
          type: "substring",
          value,
          from,
          for: cursor.grammar.expression(cursor),
          _location,
        };
      }
      const from = cursor.accept("from") ? cursor.grammar.expression(cursor) : undefined;
      const length = cursor.accept("for") ? cursor.grammar.expression(cursor) : undefined;
      return { type: "substring", value, from, for: length, _location };
    }
    case "overlay": {
      const value = cursor.grammar.expression(cursor);
      cursor.expect("placing");
      const placing = cursor.grammar.expression(cursor);
      cursor.expect("from");
      const from = cursor.grammar.expression(cursor);
      const length = cursor.accept("for") ? cursor.grammar.expression(cursor) : undefined;
      return { type: "overlay", value, placing, from, for: length, _location };
    }
    case "trim": {
      const side = cursor.acceptOneOf("both", "leading", "trailing") ?? "both";
      const first = cursor.is("from") ? undefined : cursor.grammar.expression(cursor);
      if (first !== undefined && !cursor.is("from")) {
        return { type: "trim", side, characters: undefined, value: first, _location };
      }
      cursor.expect("from");
      const value = cursor.grammar.expression(cursor);
      // PostgreSQL also accepts `trim(FROM text, characters)`.
      const isListed = first === undefined && cursor.accept(",");
      const characters = isListed ? cursor.grammar.expression(cursor) : first;
      return { type: "trim", side, characters, value, _location };
    }
    case "position": {
      const needle = cursor.grammar.operand(cursor);
      cursor.expect("in");
      return {
        type: "call",
        function: name,
        args: [needle, cursor.grammar.expression(cursor)],
        _location,
      };
    }
    case "normalize": {
      const args = [cursor.grammar.expression(cursor)];
      if (cursor.accept(",")) args.push(parseNormalForm(cursor));
      return { type: "call", function: name, args, _location };
    }
  }
}

function parseNormalForm(cursor: Cursor): Expr {
  const token = cursor.token;
  const form = cursor.acceptOneOf("nfc", "nfd", "nfkc", "nfkd");
  if (form === undefined) return cursor.grammar.expression(cursor);
  return { type: "string", value: form.toUpperCase(), _location: cursor.since(token) };
}
