/** Defines the functions that evaluate XPath expressions: xpath, xpath_exists and xmlexists. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  BOOLEAN,
  type DataType,
  dimensionsOf,
  elementsOf,
  escapedXmlText,
  TEXT,
  textFromValue,
  type Value,
  XML,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { ScalarFunction } from "../base/function.ts";
import { remembering } from "../base/remembering.ts";
import { xmlOfNode } from "./xml_dump.ts";
import { XmlTree } from "./xml_tree.ts";
import { parseXPath } from "./xpath_parser.ts";
import { XPathRun, type XPathSpaces } from "./xpath_run.ts";
import type { XPathValue } from "./xpath_values.ts";

const TEXTS: DataType = { kind: "array", element: TEXT };
const XMLS: DataType = { kind: "array", element: XML };
const NO_SPACES: XPathSpaces = new Map();

/**
 * Parses an XPath expression. Recently parsed expressions are cached, because later rows often use
 * the same expression.
 */
export const xpathOf = remembering(parseXPath);

function valueOf([path = null, document = null, spaces = null]: readonly Value[]): {
  tree: XmlTree;
  value: XPathValue;
} {
  const expression = xpathOf(path as string);
  const known = spaces === null ? NO_SPACES : spacesOf(spaces as ArrayValue);
  const tree = new XmlTree(document as string);
  return { tree, value: new XPathRun(tree, known).valueAt(expression, 0) };
}

/**
 * Reads an array of namespace declarations, each a pair of a prefix and a URI. @throws
 * {DatabaseError} INVALID_VALUE
 */
function spacesOf(array: ArrayValue): XPathSpaces {
  const dimensions = dimensionsOf(array);
  const items = elementsOf(array);
  if (items.length === 0) return NO_SPACES;
  if (dimensions.length !== 2 || dimensions[1] !== 2) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot evaluate the XPath: the namespaces must be an array of pairs",
      { hint: "write ARRAY[ARRAY['prefix', 'uri']]" },
    );
  }
  if (items.includes(null)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot evaluate the XPath: neither a namespace prefix nor a URI may be NULL",
    );
  }
  const pairs = items as string[];
  return new Map(
    Array.from({ length: pairs.length / 2 }, (_, at) => [
      pairs[2 * at] ?? "",
      pairs[2 * at + 1] ?? "",
    ]),
  );
}

function xpath(values: readonly Value[]): Value {
  const { tree, value } = valueOf(values);
  if (typeof value === "string") return [escapedXmlText(value)];
  if (typeof value === "number") return [textFromValue({ kind: "double" }, value)];
  if (typeof value === "boolean") return [value ? "true" : "false"];
  return value.map((node) => xmlOfNode(tree, node));
}

/** Whether an XPath expression selects a node. A value that is not a node set counts as found. */
function exists(values: readonly Value[]): Value {
  const { value } = valueOf(values);
  return !Array.isArray(value) || value.length > 0;
}

export const XML_PATH_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["xpath"], overload([TEXT, XML, TEXTS], XMLS, xpath, { optionalCount: 1 })),
  ...functionsNamed(
    ["xpath_exists"],
    overload([TEXT, XML, TEXTS], BOOLEAN, exists, { optionalCount: 1 }),
  ),
  ...functionsNamed(["xmlexists"], overload([TEXT, XML], BOOLEAN, exists)),
];
