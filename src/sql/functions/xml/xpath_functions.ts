/** Defines the functions of the XPath 1.0 core library. */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { writtenName } from "./xml_dump.ts";
import { XmlNode, type XmlNodeName, type XmlTree } from "./xml_tree.ts";
import {
  booleanOf,
  type NodeStrings,
  numberOf,
  numberOfText,
  textOf,
  type XPathValue,
} from "./xpath_values.ts";

/** The evaluation of an XPath expression in which a function is called. */
export interface XPathEvaluation extends NodeStrings {
  readonly tree: XmlTree;
  spend(steps: number): void;
}

export interface XPathCall {
  readonly args: readonly XPathValue[];
  readonly context: { readonly node: number; readonly position: number; readonly size: number };
}

interface XPathFunction {
  readonly argsMin: number;
  readonly argsMax: number;
  readonly evaluate: (run: XPathEvaluation, call: XPathCall) => XPathValue;
}

/** Calls an XPath function. @throws {DatabaseError} INVALID_VALUE, LIMIT_EXCEEDED */
export function callXPathFunction(name: string, run: XPathEvaluation, call: XPathCall): XPathValue {
  const found = FUNCTIONS.get(name);
  if (found === undefined) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot evaluate the XPath: there is no function ${excerpt(name)}`,
    );
  }
  const { length } = call.args;
  if (length < found.argsMin || length > found.argsMax) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot evaluate the XPath: ${name} cannot have ${length} arguments`,
    );
  }
  const value = found.evaluate(run, call);
  if (typeof value === "string") checkMadeLength(value.length);
  return value;
}

function define(
  name: string,
  [argsMin, argsMax]: readonly [number, number],
  evaluate: XPathFunction["evaluate"],
): readonly [string, XPathFunction] {
  return [name, { argsMin, argsMax, evaluate }];
}

/**
 * Defines an XPath function that returns a part of a node's name. The node is the first of a node
 * set, or the context node if the argument is omitted.
 */
function naming(
  name: string,
  read: (found: XmlNodeName) => string,
): readonly [string, XPathFunction] {
  return define(name, [0, 1], ({ tree }, { args: [nodes], context }) => {
    const node = nodes === undefined ? context.node : nodeSet(nodes, name)[0];
    return node === undefined ? "" : read(tree.nameOf(node));
  });
}

/**
 * Defines an XPath function of strings. Without arguments, it is applied to the string value of
 * the context node.
 */
function ofTexts(
  name: string,
  counts: readonly [number, number],
  evaluate: (...texts: string[]) => XPathValue,
): readonly [string, XPathFunction] {
  return define(name, counts, (run, { args, context }) => {
    const texts = args.length === 0 ? [run.stringOf(context.node)] : textsOf(run, args);
    return evaluate(...texts);
  });
}

function textsOf(run: XPathEvaluation, args: readonly XPathValue[]): string[] {
  const texts = args.map((arg) => textOf(run, arg));
  // A function that processes a string character by character costs about one step per four
  // characters.
  for (const text of texts) run.spend(text.length >> 2);
  return texts;
}

/** Defines an XPath function of a number. */
function ofNumber(
  name: string,
  evaluate: (number: number) => number,
): readonly [string, XPathFunction] {
  return define(name, [1, 1], (run, { args: [value = Number.NaN] }) =>
    evaluate(numberOf(run, value)),
  );
}

function nodeSet(value: XPathValue, name: string): readonly number[] {
  if (Array.isArray(value)) return value;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot evaluate the XPath: the argument of ${name} must be a set of nodes`,
  );
}

const FUNCTIONS: ReadonlyMap<string, XPathFunction> = new Map([
  define("last", [0, 0], (_, { context }) => context.size),
  define("position", [0, 0], (_, { context }) => context.position),
  define("count", [1, 1], (_, { args: [nodes = ""] }) => nodeSet(nodes, "count").length),
  // Only a DOCTYPE can declare which attributes are ids. Its declarations are not read, so no node
  // has an id.
  define("id", [1, 1], () => []),
  naming("local-name", ({ local }) => local),
  naming("namespace-uri", ({ uri }) => uri),
  naming("name", writtenName),
  ofTexts("string", [0, 1], (text = "") => text),
  ofTexts("concat", [2, 1000], (...texts) => texts.join("")),
  ofTexts("starts-with", [2, 2], (text = "", start = "") => text.startsWith(start)),
  ofTexts("contains", [2, 2], (text = "", part = "") => text.includes(part)),
  ofTexts("substring-before", [2, 2], (text = "", part = "") => {
    const at = text.indexOf(part);
    return at < 0 ? "" : text.slice(0, at);
  }),
  ofTexts("substring-after", [2, 2], (text = "", part = "") => {
    const at = text.indexOf(part);
    return at < 0 ? "" : text.slice(at + part.length);
  }),
  define("substring", [2, 3], substring),
  ofTexts("string-length", [0, 1], (text = "") => Array.from(text).length),
  ofTexts("normalize-space", [0, 1], (text = "") =>
    text
      .split(/[ \t\r\n]+/)
      .filter((word) => word !== "")
      .join(" "),
  ),
  ofTexts("translate", [3, 3], translated),
  define("boolean", [1, 1], (_, { args: [value = false] }) => booleanOf(value)),
  define("not", [1, 1], (_, { args: [value = false] }) => !booleanOf(value)),
  define("true", [0, 0], () => true),
  define("false", [0, 0], () => false),
  define("lang", [1, 1], isInLanguage),
  define("number", [0, 1], (run, { args: [value], context }) =>
    value === undefined ? numberOfText(run.stringOf(context.node)) : numberOf(run, value),
  ),
  define("sum", [1, 1], (run, { args: [nodes = ""] }) =>
    nodeSet(nodes, "sum").reduce((sum, node) => sum + numberOfText(run.stringOf(node)), 0),
  ),
  ofNumber("floor", Math.floor),
  ofNumber("ceiling", Math.ceil),
  ofNumber("round", Math.round),
]);

/**
 * Returns the characters of a string whose positions, counted from 1, lie in the rounded range.
 */
function substring(run: XPathEvaluation, { args }: XPathCall): string {
  const [value = "", from = Number.NaN, length] = args;
  const [text = ""] = textsOf(run, [value]);
  const start = Math.round(numberOf(run, from));
  const end =
    length === undefined ? Number.POSITIVE_INFINITY : start + Math.round(numberOf(run, length));
  if (Number.isNaN(start) || Number.isNaN(end)) return "";
  return Array.from(text)
    .slice(Math.max(0, start - 1), Math.max(0, end - 1))
    .join("");
}

/**
 * Replaces each character in `from` with the character at the same position in `to`, or removes it
 * if `to` has no such position.
 */
function translated(text = "", from = "", to = ""): string {
  const replacements = new Map<string, string>();
  const targets = Array.from(to);
  for (const [at, character] of Array.from(from).entries()) {
    if (!replacements.has(character)) replacements.set(character, targets[at] ?? "");
  }
  return Array.from(text, (character) => replacements.get(character) ?? character).join("");
}

/**
 * Whether the language of the current node, from xml:lang, is the given language or a variant of
 * it.
 */
function isInLanguage(
  run: XPathEvaluation,
  { args: [language = ""], context }: XPathCall,
): boolean {
  const { tree } = run;
  const wanted = textOf(run, language).toLowerCase();
  for (let node = context.node; node >= 0; node = tree.parentOf(node)) {
    const first = tree.firstInside(node);
    for (let each = node + 1; each < first; each += 1) {
      const { local, prefix } = tree.nameOf(each);
      if (tree.kindOf(each) !== XmlNode.attribute || local !== "lang" || prefix !== "xml") continue;
      const found = tree.ownValue(each).toLowerCase();
      return found === wanted || found.startsWith(`${wanted}-`);
    }
  }
  return false;
}
