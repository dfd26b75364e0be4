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

/** A column of XMLTABLE. Its indexes refer to the arguments of the call. */
export interface XmlColumn {
  readonly name: string;
  /** The type of the column; undefined for a row number (FOR ORDINALITY). */
  readonly type: DataType | undefined;
  /** The index of the column's path; undefined if the name of the column is the path. */
  readonly path: number | undefined;
  readonly default: number | undefined;
  readonly isNotNull: boolean;
  /**
   * Whether nodes are returned as XML, as in a column of type XML. As in PostgreSQL, a column
   * whose type is a domain over XML contains their text instead.
   */
  readonly isMarkup: boolean;
}

export interface XmlTableShape {
  /** The namespace prefixes. Their URIs are the first arguments. */
  readonly prefixes: readonly string[];
  /** The index of the row path. The document is the next argument. */
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
    // Each row may take as many steps as the evaluation of a single path.
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

/** The node at which the value of a column is computed, and the type of the column. */
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

/** Converts a boolean to 1 or 0 for a column of numbers. */
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
