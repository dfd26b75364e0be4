/**
 * Parses COPY, both in PostgreSQL's current syntax and in the syntax from before version 9.
 *
 * COPY FROM becomes an INSERT whose rows come from elsewhere, and COPY TO becomes a query with a
 * different output format, so the rest of the engine needs no additional statements.
 */
import type {
  CopyColumns,
  CopyFormat,
  CopySettings,
  CopySourceStatement,
  CopyToStatement,
  ExprRef,
  InsertStatement,
  Name,
  QName,
  SelectStatement,
} from "./ast/ast.ts";
import { changesRows } from "./ast/query_nodes.ts";
import { requireListed } from "./bounds.ts";
import { completedSettings, type WrittenSettings } from "./copy_settings.ts";
import type { Cursor } from "./cursor.ts";
import { emptySelect } from "./select_block.ts";
import { Token } from "./text/lexer.ts";

const ENDPOINT = "use POST /v1/api/copy, which transfers the rows in the request or response body";

/** Parses `COPY …`, including any data that follow the statement in the SQL. */
export function parseCopy(cursor: Cursor, start: number): InsertStatement | CopyToStatement {
  cursor.expect("copy");
  if (cursor.is("binary")) cursor.refuse("COPY BINARY", "WITH (FORMAT binary)");
  const isQuery = cursor.is("(");
  const query = isQuery ? parseCopiedQuery(cursor) : undefined;
  const table = isQuery ? undefined : cursor.qname("a table");
  const columns = table !== undefined && cursor.is("(") ? cursor.nameList("a column") : undefined;
  if (table !== undefined && cursor.accept("from")) {
    requireStream(cursor, "stdin");
    const at = cursor.token - 1;
    const options = parseCopyOptions(cursor, "from");
    if (cursor.is("where"))
      cursor.refuse("WHERE in COPY", "copy all rows, then delete the ones that you do not need");
    const data = cursor.takeCopyData();
    const insert: CopySourceStatement = {
      type: "copy source",
      options,
      data,
      _location: { start: cursor.tokens.starts[at] ?? 0, end: cursor.tokens.ends[at] ?? 0 },
    };
    return { type: "insert", into: table, columns, insert, _location: cursor.since(start) };
  }
  cursor.expect("to");
  requireStream(cursor, "stdout");
  const options = parseCopyOptions(cursor, "to");
  const statement =
    query ?? queryOfTable(table ?? { name: "", _location: cursor.since(start) }, columns);
  const named = table === undefined ? undefined : { table, columns };
  return { type: "copy to", statement, named, options, _location: cursor.since(start) };
}

function parseCopiedQuery(cursor: Cursor): SelectStatement {
  const outer = cursor.enter();
  cursor.expect("(");
  const at = cursor.start;
  const refuse = (): never =>
    cursor.refuse("COPY of a change", "run the change with RETURNING", at);
  if (cursor.beginsChange) refuse();
  const query = cursor.grammar.query(cursor);
  if (changesRows(query)) refuse();
  cursor.expect(")");
  cursor.leave(outer);
  return query;
}

/** Returns a query that reads the listed columns of a table, or all columns if none are listed. */
function queryOfTable(table: QName, columns: readonly Name[] | undefined): SelectStatement {
  const { _location } = table;
  const star: ExprRef = { type: "ref", name: "*", star: true, isDeclared: true, _location };
  const named = (columns ?? []).map(
    (column): ExprRef => ({ type: "ref", name: column.name, _location: column._location }),
  );
  const refs = columns === undefined ? [star] : named;
  return {
    ...emptySelect(),
    columns: refs.map((expr) => ({ expr, _location: expr._location })),
    from: [{ type: "table", name: { ...table }, join: undefined, _location }],
    _location,
  };
}

function requireStream(cursor: Cursor, stream: "stdin" | "stdout"): void {
  if (cursor.accept(stream)) return;
  const verb = stream === "stdin" ? "FROM" : "TO";
  if (cursor.isString()) cursor.refuse(`COPY ${verb} a file on the server`, ENDPOINT);
  if (cursor.kind === Token.word && cursor.nameText(cursor.token) === "program") {
    cursor.refuse(`COPY ${verb} PROGRAM`, ENDPOINT);
  }
  cursor.expect(stream);
}

function parseCopyOptions(cursor: Cursor, direction: "from" | "to"): CopySettings {
  const written: WrittenSettings = {};
  const at = cursor.start;
  cursor.accept("with");
  if (cursor.accept("(")) {
    let count = 0;
    do {
      parseOption(cursor, written, direction);
      count += 1;
      requireListed(cursor, count, "options");
    } while (cursor.accept(","));
    cursor.expect(")");
  } else {
    parseOldOptions(cursor, written);
  }
  return completedSettings(cursor, written, at);
}

/** Parses a COPY option within parentheses: `FORMAT csv`, `HEADER`, `DELIMITER ';'` … */
function parseOption(cursor: Cursor, written: WrittenSettings, direction: "from" | "to"): void {
  const at = cursor.start;
  const { name } = cursor.label("an option");
  const once = (key: keyof CopySettings): void => {
    if (written[key] === undefined) return;
    cursor.fail(`found a second ${name.toUpperCase()}, but each option is allowed only once`, at);
  };
  // An equals sign is allowed before the value of the option, as in the options of other
  // statements.
  const value = (): string => {
    cursor.accept("=");
    return optionWord(cursor);
  };
  switch (name) {
    case "format": {
      once("format");
      written.format = formatOf(cursor, value());
      return;
    }
    case "header":
      once("header");
      written.header = headerOf(cursor, direction);
      return;
    case "delimiter":
    case "quote":
    case "escape":
      once(name);
      written[name] = value();
      return;
    case "null":
      once("nullText");
      written.nullText = value();
      return;
    case "default":
      once("defaultText");
      written.defaultText = value();
      return;
    case "encoding":
      requireUtf8(cursor, value());
      return;
    case "force_quote":
      once("forceQuote");
      written.forceQuote = columnsOf(cursor);
      return;
    case "force_not_null":
      once("forceNotNull");
      written.forceNotNull = columnsOf(cursor);
      return;
    case "force_null":
      once("forceNull");
      written.forceNull = columnsOf(cursor);
      return;
    case "on_conflict":
      once("onConflict");
      written.onConflict = oneOf(cursor, value(), ["error", "nothing", "update"]);
      return;
    case "on_error":
      once("skipsFaulty");
      written.skipsFaulty = oneOf(cursor, value(), ["stop", "ignore"]) === "ignore";
      return;
    case "freeze":
      isTrue(cursor);
      return;
    default:
      cursor.fail(`found the option ${name.toUpperCase()}, which COPY does not support`, at);
  }
}

/**
 * Parses COPY options in the old syntax, in any order: `CSV HEADER DELIMITER AS ';' NULL AS '' …`.
 */
function parseOldOptions(cursor: Cursor, written: WrittenSettings): void {
  const value = (): string => {
    cursor.accept("as");
    return cursor.string("a string");
  };
  while (cursor.kind === Token.word) {
    const at = cursor.start;
    const name = cursor.nameText(cursor.token);
    if (name === "where") return;
    cursor.token += 1;
    switch (name) {
      case "csv":
      case "binary":
        written.format = name;
        break;
      case "header":
        written.header = "line";
        break;
      case "freeze":
        break;
      case "delimiter":
      case "quote":
      case "escape":
        written[name] = value();
        break;
      case "null":
        written.nullText = value();
        break;
      case "encoding":
        requireUtf8(cursor, value());
        break;
      case "force": {
        const isNot = cursor.accept("not");
        const what =
          isNot || cursor.is("null") ? cursor.label("NULL").name : cursor.label("QUOTE").name;
        const columns = cursor.accept("*") ? "all" : cursor.names("a column");
        if (what === "quote") written.forceQuote = columns;
        else if (isNot) written.forceNotNull = columns;
        else written.forceNull = columns;
        break;
      }
      default:
        cursor.fail(`found ${name.toUpperCase()}, expected a COPY option`, at);
    }
  }
}

function optionWord(cursor: Cursor): string {
  return cursor.isString() ? cursor.takeString() : cursor.label("a value").name;
}

function formatOf(cursor: Cursor, word: string): CopyFormat {
  return oneOf(cursor, word, ["text", "csv", "ndjson", "binary"]);
}

function oneOf<W extends string>(cursor: Cursor, word: string, words: readonly W[]): W {
  const lower = word.toLowerCase();
  const found = words.find((each) => each === lower);
  if (found !== undefined) return found;
  return cursor.fail(`found "${word}", expected ${words.join(", ")}`, cursor.end - word.length);
}

/**
 * Parses the value of a Boolean option: TRUE, ON, 1, FALSE, OFF or 0. A missing value means TRUE.
 */
function isTrue(cursor: Cursor): boolean {
  cursor.accept("=");
  if (cursor.is(",") || cursor.is(")")) return true;
  if (cursor.kind === Token.integer) return cursor.integer("a boolean") !== 0;
  return ["true", "on"].includes(oneOf(cursor, optionWord(cursor), ["true", "on", "false", "off"]));
}

function headerOf(cursor: Cursor, direction: "from" | "to"): CopySettings["header"] {
  const isMatch = cursor.kind === Token.word && cursor.nameText(cursor.token) === "match";
  if (!isMatch) return isTrue(cursor) ? "line" : "none";
  if (direction === "to")
    cursor.fail("found MATCH, which is supported only by COPY FROM", cursor.start);
  cursor.token += 1;
  return "match";
}

function requireUtf8(cursor: Cursor, name: string): void {
  if (/^utf-?8$/i.test(name) || /^(?:sql_ascii|us-?ascii)$/i.test(name)) return;
  cursor.refuse(`the encoding "${name}"`, "send and receive text as UTF-8");
}

function columnsOf(cursor: Cursor): CopyColumns {
  return cursor.accept("*") ? "all" : cursor.nameList("a column");
}
