/** Computes the rows of XMLTABLE. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  castValue,
  type DataType,
  escapedXmlText,
  excerpt,
  isNumeric,
  type Row,
  typeName,
  UNKNOWN,
  type Value,
} from "../../../types/mod.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { xmlOfNode } from "./xml_dump.ts";
import { xpathOf } from "./xml_paths.ts";
import { XmlTree } from "./xml_tree.ts";
import { XPathRun, type XPathSpaces } from "./xpath_run.ts";
import type { XPathExpr } from "./xpath_syntax.ts";
import { textOf, type XPathValue } from "./xpath_values.ts";

/** A column. The indexes are positions in the arguments of the call. */
export interface XmlColumn {
  readonly name: string;
  /** The type; undefined for the number of the row. */
  readonly type: DataType | undefined;
  /** The path; undefined if it is the name of the column. */
  readonly path: number | undefined;
  readonly default: number | undefined;
  readonly isNotNull: boolean;
  /**
   * Whether nodes are written as XML, as in a column of type XML. As in PostgreSQL, a domain over
   * XML reads their text instead.
   */
  readonly isMarkup: boolean;
}

export interface XmlTableShape {
  /** The prefixes of namespaces. Their URIs are the first arguments. */
  readonly prefixes: readonly string[];
  /** The row path. The document follows it. */
  readonly path: number;
  readonly columns: readonly XmlColumn[];
}

/**
 * Yields a row for each node that the row path selects.
 *
 * @throws {DatabaseError} INVALID_VALUE, CARDINALITY_VIOLATION, LIMIT_EXCEEDED, and the errors of
 *   the casts to the types of the columns
 */
export function* xmlTableRows(
  { columns, path, prefixes }: XmlTableShape,
  args: readonly Value[],
): Generator<Row> {
  const document = args[path + 1] ?? null;
  if (document === null) return;
  const spaces: XPathSpaces = new Map(
    prefixes.map((prefix, at) => [prefix, given(args[at], "the URI of a namespace")]),
  );
  const rowPath = xpathOf(given(args[path], "the row path"));
  const paths = columns.map((column) => columnPath(column, args));
  const tree = new XmlTree(document as string);
  const nodes = new XPathRun(tree, spaces).valueAt(rowPath, 0);
  if (!Array.isArray(nodes)) return;
  for (const [at, node] of nodes.entries()) {
    // Each row may take as many steps as a path by itself.
    const run = new XPathRun(tree, spaces);
    yield columns.map((column, index) => {
      const { isMarkup, isNotNull, name, type } = column;
      if (type === undefined) return at + 1;
      const expression = paths[index];
      const found =
        expression === undefined ? null : columnValue(expression, { isMarkup, type, run, node });
      const value = found ?? (column.default === undefined ? null : (args[column.default] ?? null));
      if (value === null && isNotNull) throw missing(name);
      return value;
    });
  }
}

function given(value: Value | undefined, what: string): string {
  if (value !== null && value !== undefined) return value as string;
  throw new DatabaseError("INVALID_VALUE", `Cannot compute XMLTABLE: ${what} must not be NULL`);
}

function missing(name: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot compute XMLTABLE: column "${name}" must not be NULL`,
    { hint: "give the column a DEFAULT, or omit NOT NULL" },
  );
}

function columnPath(
  { name, path, type }: XmlColumn,
  args: readonly Value[],
): XPathExpr | undefined {
  if (type === undefined) return undefined;
  return xpathOf(path === undefined ? name : given(args[path], "the path of a column"));
}

/** A column's value is computed at a node. */
interface ColumnPlace extends Pick<XmlColumn, "isMarkup"> {
  readonly type: DataType;
  readonly run: XPathRun;
  readonly node: number;
}

function columnValue(expression: XPathExpr, place: ColumnPlace): Value {
  const { isMarkup, node, run, type } = place;
  const found = run.valueAt(expression, node);
  const text = Array.isArray(found)
    ? textOfNodes(found, place)
    : textOf(run, scalarOf(found, type));
  if (text === undefined) return null;
  return castValue(isMarkup && typeof found === "string" ? escapedXmlText(text) : text, {
    from: UNKNOWN,
    to: type,
    mode: "assignment",
  });
}

/** A boolean becomes 1 or 0 in a column of numbers. */
function scalarOf(value: XPathValue, type: DataType): XPathValue {
  return typeof value === "boolean" && isNumeric(type) ? Number(value) : value;
}

function textOfNodes(
  nodes: readonly number[],
  { isMarkup, run, type }: ColumnPlace,
): string | undefined {
  const [first, second] = nodes;
  if (first === undefined) return undefined;
  if (isMarkup) {
    const text = nodes.map((node) => xmlOfNode(run.tree, node)).join("");
    checkMadeLength(text.length);
    return text;
  }
  if (second === undefined) return run.stringOf(first);
  throw new DatabaseError(
    "CARDINALITY_VIOLATION",
    `Cannot compute XMLTABLE: the path of a column of type ${typeName(type)} selects ${nodes.length} nodes, the first of them ${excerpt(run.stringOf(first))}`,
    { hint: "select one node, as in item[1], or give the column the type XML" },
  );
}
