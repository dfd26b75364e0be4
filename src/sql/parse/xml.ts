/**
 * Parses the forms of the SQL/XML standard, which have keywords between their arguments:
 * XMLELEMENT, XMLFOREST, XMLPI, XMLPARSE, XMLSERIALIZE, XMLROOT, XMLEXISTS and XMLTABLE.
 *
 * Each form becomes a call with a list of plain arguments, so that everything that walks over
 * calls also reaches the arguments of these forms.
 */
import type {
  Expr,
  ExprCall,
  QName,
  XmlName,
  XmlStandalone,
  XmlSyntax,
  XmlTableColumn,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";

interface XmlParts {
  readonly xml: XmlSyntax;
  readonly args: readonly Expr[];
}

/** Parses an XML form; undefined if no such form begins here. */
export function parseXmlForm(cursor: Cursor): ExprCall | undefined {
  const parse = partsParser(cursor.word);
  if (parse === undefined || !cursor.isAhead(1, "(")) return undefined;
  return parsedForm(cursor, parse);
}

/** Parses XMLTABLE in FROM; undefined if it does not begin here. */
export function parseXmlTable(cursor: Cursor): ExprCall | undefined {
  if (!cursor.is("xmltable") || !cursor.isAhead(1, "(")) return undefined;
  return parsedForm(cursor, parseTableParts);
}

function parsedForm(cursor: Cursor, parse: (cursor: Cursor) => XmlParts): ExprCall {
  const start = cursor.token;
  const outer = cursor.enter();
  const name: QName = cursor.takeName();
  cursor.expect("(");
  const { args, xml } = parse(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return { type: "call", function: name, args, xml, _location: cursor.since(start) };
}

function partsParser(word: string): ((cursor: Cursor) => XmlParts) | undefined {
  switch (word) {
    case "xmlelement":
      return parseElement;
    case "xmlforest":
      return parseForest;
    case "xmlpi":
      return parseInstruction;
    case "xmlparse":
      return parseParse;
    case "xmlserialize":
      return parseSerialize;
    case "xmlroot":
      return parseRoot;
    case "xmlexists":
      return parseExists;
    default:
      return undefined;
  }
}

function parseElement(cursor: Cursor): XmlParts {
  cursor.expect("name");
  const { name } = cursor.label("a name");
  const args: Expr[] = [];
  let attributes: readonly XmlName[] = [];
  while (cursor.accept(",")) {
    if (args.length === 0 && cursor.is("xmlattributes") && cursor.isAhead(1, "(")) {
      cursor.token += 2;
      const named = parseNamed(cursor);
      args.push(...named.args);
      attributes = named.names;
      cursor.expect(")");
    } else {
      args.push(cursor.grammar.expression(cursor));
    }
    requireListed(cursor, args.length, "arguments in one call");
  }
  return { xml: { kind: "element", name, attributes }, args };
}

function parseForest(cursor: Cursor): XmlParts {
  const { args, names } = parseNamed(cursor);
  return { xml: { kind: "forest", names }, args };
}

/** Parses `value [AS name], …`. Only a column can be without a name. */
function parseNamed(cursor: Cursor): { args: Expr[]; names: XmlName[] } {
  const args: Expr[] = [];
  const names: XmlName[] = [];
  do {
    const position = cursor.start;
    const value = cursor.grammar.expression(cursor);
    args.push(value);
    if (cursor.accept("as")) names.push({ name: cursor.label("a name").name });
    else if (value.type === "ref" && value.star !== true) {
      names.push({ name: value.name, isOfColumn: true });
    } else cursor.fail("a value that is not a column needs a name, as in 1 AS one", position);
    requireListed(cursor, args.length, "arguments in one call");
  } while (cursor.accept(","));
  return { args, names };
}

function parseInstruction(cursor: Cursor): XmlParts {
  cursor.expect("name");
  const { name } = cursor.label("a name");
  const args = cursor.accept(",") ? [cursor.grammar.expression(cursor)] : [];
  return { xml: { kind: "instruction", name }, args };
}

function parseParse(cursor: Cursor): XmlParts {
  const form = cursor.expectOneOf("document", "content");
  const args = [cursor.grammar.expression(cursor)];
  // As in PostgreSQL, both words are accepted and have no effect.
  if (cursor.acceptOneOf("preserve", "strip") !== undefined) cursor.expect("whitespace");
  return { xml: { kind: "parse", form }, args };
}

function parseSerialize(cursor: Cursor): XmlParts {
  const form = cursor.expectOneOf("document", "content");
  const args = [cursor.grammar.expression(cursor)];
  cursor.expect("as");
  return { xml: { kind: "serialize", form, dataType: cursor.grammar.dataType(cursor) }, args };
}

function parseRoot(cursor: Cursor): XmlParts {
  const args = [cursor.grammar.expression(cursor)];
  cursor.expectAll(",", "version");
  if (!cursor.acceptAll("no", "value")) args.push(cursor.grammar.expression(cursor));
  const standalone = cursor.acceptAll(",", "standalone") ? parseStandalone(cursor) : undefined;
  return { xml: { kind: "root", standalone }, args };
}

function parseStandalone(cursor: Cursor): XmlStandalone {
  const word = cursor.expectOneOf("yes", "no");
  return word === "no" && cursor.accept("value") ? "no value" : word;
}

function parseExists(cursor: Cursor): XmlParts {
  const path = cursor.grammar.operand(cursor);
  return { xml: { kind: "exists" }, args: [path, parsePassing(cursor)] };
}

/**
 * Parses `PASSING [BY REF | BY VALUE] document [BY REF | BY VALUE]`. As in PostgreSQL, BY has no
 * effect.
 */
function parsePassing(cursor: Cursor): Expr {
  cursor.expect("passing");
  acceptMechanism(cursor);
  const document = cursor.grammar.operand(cursor);
  acceptMechanism(cursor);
  return document;
}

function acceptMechanism(cursor: Cursor): void {
  if (cursor.accept("by")) cursor.expectOneOf("ref", "value");
}

function parseTableParts(cursor: Cursor): XmlParts {
  const args: Expr[] = [];
  const prefixes: string[] = [];
  if (cursor.is("xmlnamespaces") && cursor.isAhead(1, "(")) {
    cursor.token += 2;
    do {
      if (cursor.is("default")) {
        cursor.refuse(
          "DEFAULT in XMLNAMESPACES",
          "give the namespace a prefix, and write it in the paths",
        );
      }
      args.push(cursor.grammar.operand(cursor));
      cursor.expect("as");
      prefixes.push(cursor.label("a prefix").name);
      requireListed(cursor, args.length, "arguments in one call");
    } while (cursor.accept(","));
    cursor.expectAll(")", ",");
  }
  const path = args.length;
  args.push(cursor.grammar.operand(cursor));
  args.push(parsePassing(cursor));
  cursor.expect("columns");
  const columns: XmlTableColumn[] = [];
  do {
    columns.push(parseTableColumn(cursor, args));
    requireListed(cursor, columns.length, "columns of one function");
  } while (cursor.accept(","));
  return { xml: { kind: "table", prefixes, path, columns }, args };
}

function parseTableColumn(cursor: Cursor, args: Expr[]): XmlTableColumn {
  const { name } = cursor.name("a column");
  if (cursor.acceptAll("for", "ordinality")) return { name };
  const dataType = cursor.grammar.dataType(cursor);
  let path: number | undefined;
  let otherwise: number | undefined;
  let isNotNull: true | undefined;
  for (;;) {
    if (path === undefined && cursor.accept("path")) {
      path = args.push(cursor.grammar.operand(cursor)) - 1;
    } else if (otherwise === undefined && cursor.accept("default")) {
      otherwise = args.push(cursor.grammar.operand(cursor)) - 1;
    } else if (isNotNull === undefined && cursor.acceptAll("not", "null")) isNotNull = true;
    else if (!cursor.accept("null")) return { name, dataType, path, default: otherwise, isNotNull };
  }
}
