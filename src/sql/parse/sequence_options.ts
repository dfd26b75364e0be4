/**
 * Parses the options of sequences and of identity columns.
 */
import type { Name, QName, SequenceNumber, SequenceOption, SequenceOwned } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

/** Parses options in any order. Each option may occur only once. */
export function parseSequenceOptions(cursor: Cursor): SequenceOption[] {
  const options: SequenceOption[] = [];
  for (;;) {
    const at = cursor.start;
    const option = parseOption(cursor);
    if (option === undefined) return options;
    if (options.some(({ type }) => type === option.type)) {
      cursor.fail(
        `found a second ${option.type.toUpperCase()}, but each option is allowed only once`,
        at,
      );
    }
    options.push(option);
  }
}

function parseOption(cursor: Cursor): SequenceOption | undefined {
  const start = cursor.token;
  if (cursor.accept("as")) {
    const dataType = cursor.grammar.dataType(cursor);
    return { type: "as", dataType, _location: cursor.since(start) };
  }
  const word = cursor.acceptOneOf("cache", "increment", "maxvalue", "minvalue", "restart", "start");
  if (word !== undefined) return parseNumber(cursor, start, word);
  if (cursor.accept("cycle")) {
    return { type: "cycle", cycles: true, _location: cursor.since(start) };
  }
  if (cursor.accept("no")) {
    const without = cursor.expectOneOf("maxvalue", "minvalue", "cycle");
    const _location = cursor.since(start);
    return without === "cycle"
      ? { type: "cycle", cycles: false, _location }
      : { type: without, _location };
  }
  if (cursor.accept("owned")) return parseOwned(cursor, start);
  if (cursor.acceptAll("sequence", "name")) {
    const name = cursor.qname("a sequence");
    return { type: "sequence name", name, _location: cursor.since(start) };
  }
  return undefined;
}

function parseNumber(cursor: Cursor, start: number, type: SequenceNumber["type"]): SequenceNumber {
  const connected =
    type === "increment"
      ? cursor.accept("by")
      : (type === "start" || type === "restart") && cursor.accept("with");
  const isBare = type === "restart" && !connected && !isNumber(cursor);
  const value = isBare ? undefined : signed(cursor, `a number for ${type.toUpperCase()}`);
  return { type, value, _location: cursor.since(start) };
}

function isNumber(cursor: Cursor): boolean {
  return cursor.is("-") || cursor.is("+") || cursor.kind === Token.integer;
}

function signed(cursor: Cursor, what: string): string {
  const isNegative = cursor.accept("-");
  if (!isNegative) cursor.accept("+");
  const digits = cursor.digits(what);
  return isNegative ? `-${digits}` : digits;
}

/** Parses `OWNED BY NONE` or `OWNED BY [namespace.]table.column`. */
function parseOwned(cursor: Cursor, start: number): SequenceOwned {
  cursor.expect("by");
  if (cursor.accept("none")) return { type: "owned by", _location: cursor.since(start) };
  const { column: name, table } = parseTableColumn(cursor);
  return { type: "owned by", column: { table, name }, _location: cursor.since(start) };
}

/** Parses `[namespace.]table.column`. */
export function parseTableColumn(cursor: Cursor): { readonly table: QName; readonly column: Name } {
  const first = cursor.qname("a table");
  if (cursor.accept(".")) return { table: first, column: cursor.label("a column") };
  if (first.schema === undefined) cursor.unexpected("a column of the table");
  const { _location } = first;
  return {
    table: { name: first.schema ?? "", _location },
    column: { name: first.name, _location },
  };
}
