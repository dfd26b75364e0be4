/**
 * Evaluates XPath 1.0 expressions in a parsed document.
 *
 * A node set is an array of node numbers in document order without duplicates. The steps of an
 * evaluation are counted, because even a short path can take time that is quadratic in the size of
 * the document.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";
import { CallEffort } from "../base/call_effort.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { XmlNode, type XmlTree } from "./xml_tree.ts";
import { callXPathFunction } from "./xpath_functions.ts";
import type { XPathAxis, XPathExpr, XPathOperator, XPathStep, XPathTest } from "./xpath_syntax.ts";
import { booleanOf, numberOf, type XPathValue } from "./xpath_values.ts";

/** The namespace URIs of the prefixes that an XPath expression may use, keyed by prefix. */
export type XPathSpaces = ReadonlyMap<string, string>;

/** The node at which an expression is evaluated, and its position among the nodes of its step. */
export interface XPathContext {
  readonly node: number;
  readonly position: number;
  readonly size: number;
}

const EFFORT = {
  stepsMax: 2 ** 23,
  message: "Cannot evaluate the XPath: evaluation requires",
  hint: "write a path that visits fewer nodes, such as one without // inside a predicate",
};

const NO_SPACES: XPathSpaces = new Map([["xml", "http://www.w3.org/XML/1998/namespace"]]);

export class XPathRun {
  readonly tree: XmlTree;
  readonly #spaces: XPathSpaces;
  readonly #effort = new CallEffort(EFFORT);

  constructor(tree: XmlTree, spaces: XPathSpaces) {
    this.tree = tree;
    this.#spaces = spaces.size === 0 ? NO_SPACES : new Map([...NO_SPACES, ...spaces]);
  }

  /**
   * Evaluates an XPath expression at a node. @throws {DatabaseError} INVALID_VALUE, LIMIT_EXCEEDED
   */
  valueAt(expression: XPathExpr, node: number): XPathValue {
    return this.value(expression, { node, position: 1, size: 1 });
  }

  value(expression: XPathExpr, context: XPathContext): XPathValue {
    this.spend(1);
    switch (expression.kind) {
      case "literal":
        return expression.value;
      case "negate":
        return -numberOf(this, this.value(expression.operand, context));
      case "call": {
        const { args, name } = expression;
        return callXPathFunction(name, this, {
          context,
          args: args.map((arg) => this.value(arg, context)),
        });
      }
      case "binary":
        return this.#binary(expression, context);
      case "filter": {
        const nodes = this.#nodes(this.value(expression.from, context), "a predicate");
        return this.#filtered(nodes, expression.predicates);
      }
      case "path":
        return this.#path(expression, context);
    }
  }

  /**
   * Adds steps to the work that the evaluation has done so far. @throws {DatabaseError}
   * LIMIT_EXCEEDED
   */
  spend(steps: number): void {
    this.#effort.spend(steps);
  }

  /** Returns the string value of a node: its own text, or the text of its descendants. */
  stringOf(node: number): string {
    const { tree } = this;
    const kind = tree.kindOf(node);
    if (kind !== XmlNode.element && kind !== XmlNode.document) return this.#ownValue(node);
    const after = tree.afterOf(node);
    this.spend(after - node);
    const texts: string[] = [];
    for (let each = node + 1; each < after; each += 1) {
      const inner = tree.kindOf(each);
      if (inner === XmlNode.text || inner === XmlNode.cdata) texts.push(this.#ownValue(each));
    }
    const text = texts.join("");
    checkMadeLength(text.length);
    return text;
  }

  #ownValue(node: number): string {
    // Decoding text costs much less than one step per character.
    this.spend(1 + (this.tree.lengthOf(node) >> 5));
    return this.tree.ownValue(node);
  }

  #nodes(value: XPathValue, what: string): readonly number[] {
    if (Array.isArray(value)) return value;
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot evaluate the XPath: ${what} applies only to a set of nodes`,
    );
  }

  #path(
    { from, steps }: Extract<XPathExpr, { kind: "path" }>,
    context: XPathContext,
  ): readonly number[] {
    let nodes: readonly number[] =
      from === "document"
        ? [0]
        : from === "current"
          ? [context.node]
          : this.#nodes(this.value(from, context), "a step");
    for (const step of steps) nodes = this.#stepped(nodes, step);
    return nodes;
  }

  #stepped(from: readonly number[], { axis, predicates, test }: XPathStep): readonly number[] {
    const matches = this.#matcher(test, axis);
    const found: number[] = [];
    for (const node of from) {
      const reached: number[] = [];
      this.#walk(axis, node, (each) => {
        if (matches(each)) reached.push(each);
      });
      for (const each of this.#filtered(reached, predicates)) found.push(each);
    }
    return from.length === 1 && !REVERSED.has(axis) ? found : inDocumentOrder(found);
  }

  /**
   * Keeps the nodes for which all predicates are true. The nodes are in the order of their axis.
   */
  #filtered(nodes: readonly number[], predicates: readonly XPathExpr[]): readonly number[] {
    let kept = nodes;
    for (const predicate of predicates) {
      const size = kept.length;
      if (predicate.kind === "literal" && typeof predicate.value === "number") {
        const only = kept[predicate.value - 1];
        kept = only === undefined ? [] : [only];
        continue;
      }
      kept = kept.filter((node, at) => {
        const position = at + 1;
        const value = this.value(predicate, { node, position, size });
        return typeof value === "number" ? value === position : booleanOf(value);
      });
    }
    return kept;
  }

  #matcher(test: XPathTest, axis: XPathAxis): (node: number) => boolean {
    const { tree } = this;
    switch (test.kind) {
      case "node":
        return () => true;
      case "text":
        return (node) => {
          const kind = tree.kindOf(node);
          return kind === XmlNode.text || kind === XmlNode.cdata;
        };
      case "comment":
        return (node) => tree.kindOf(node) === XmlNode.comment;
      case "instruction": {
        const { target } = test;
        return (node) =>
          tree.kindOf(node) === XmlNode.instruction &&
          (target === undefined || tree.nameOf(node).local === target);
      }
      case "name": {
        const kind = axis === "attribute" ? XmlNode.attribute : XmlNode.element;
        const { local, prefix } = test;
        const uri = prefix === undefined ? undefined : this.#uriOf(prefix);
        return (node) => {
          if (tree.kindOf(node) !== kind) return false;
          const name = tree.nameOf(node);
          return (
            (local === undefined || name.local === local) && (uri === undefined || name.uri === uri)
          );
        };
      }
    }
  }

  #uriOf(prefix: string): string {
    const uri = prefix === "" ? "" : this.#spaces.get(prefix);
    if (uri !== undefined) return uri;
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot evaluate the XPath: it does not know the namespace prefix ${excerpt(prefix)}`,
      {
        hint: "pass the prefix and its URI, as in xpath(path, document, ARRAY[ARRAY['p', 'uri']])",
      },
    );
  }

  /** Visits the nodes of an axis in the order of the axis. */
  #walk(axis: XPathAxis, node: number, visit: (node: number) => void): void {
    const { tree } = this;
    const seen = (each: number): void => {
      this.spend(1);
      visit(each);
    };
    switch (axis) {
      case "self":
        return seen(node);
      case "attribute": {
        const first = tree.firstInside(node);
        for (let each = node + 1; each < first; each += 1) seen(each);
        return;
      }
      case "child":
        return this.#siblings(tree.firstInside(node), tree.afterOf(node), seen);
      case "descendant-or-self":
        seen(node);
        return this.#range(node + 1, tree.afterOf(node), seen);
      case "descendant":
        return this.#range(node + 1, tree.afterOf(node), seen);
      case "following":
        return this.#range(this.#endOf(node), tree.count, seen);
      case "following-sibling":
        if (tree.kindOf(node) === XmlNode.attribute) return;
        return this.#siblings(tree.afterOf(node), tree.afterOf(tree.parentOf(node)), seen);
      case "parent": {
        const parent = tree.parentOf(node);
        if (parent >= 0) seen(parent);
        return;
      }
      case "ancestor":
        return this.#ancestors(tree.parentOf(node), seen);
      case "ancestor-or-self":
        return this.#ancestors(node, seen);
      case "preceding":
        return this.#preceding(node, seen);
      case "preceding-sibling":
        return this.#precedingSiblings(node, seen);
    }
  }

  /** Returns the first node after a node in document order that is not its descendant. */
  #endOf(node: number): number {
    const { tree } = this;
    return tree.kindOf(node) === XmlNode.attribute
      ? tree.firstInside(tree.parentOf(node))
      : tree.afterOf(node);
  }

  #siblings(first: number, after: number, visit: (node: number) => void): void {
    for (let each = first; each < after; each = this.tree.afterOf(each)) visit(each);
  }

  /** Visits all nodes of a range except attributes. */
  #range(first: number, after: number, visit: (node: number) => void): void {
    const { tree } = this;
    for (let each = first; each < after; each += 1) {
      if (tree.kindOf(each) === XmlNode.attribute) this.spend(1);
      else visit(each);
    }
  }

  #ancestors(first: number, visit: (node: number) => void): void {
    for (let each = first; each >= 0; each = this.tree.parentOf(each)) visit(each);
  }

  #preceding(node: number, visit: (node: number) => void): void {
    const { tree } = this;
    let ancestor = tree.parentOf(node);
    for (let each = node - 1; each > 0; each -= 1) {
      if (each === ancestor) ancestor = tree.parentOf(each);
      else if (tree.kindOf(each) === XmlNode.attribute) this.spend(1);
      else visit(each);
    }
  }

  #precedingSiblings(node: number, visit: (node: number) => void): void {
    const { tree } = this;
    if (tree.kindOf(node) === XmlNode.attribute || node === 0) return;
    const siblings: number[] = [];
    this.#siblings(tree.firstInside(tree.parentOf(node)), node, (each) => {
      this.spend(1);
      siblings.push(each);
    });
    for (const each of siblings.toReversed()) visit(each);
  }

  #binary(
    { left, op, right }: Extract<XPathExpr, { kind: "binary" }>,
    context: XPathContext,
  ): XPathValue {
    const first = this.value(left, context);
    if (op === "or") return booleanOf(first) || booleanOf(this.value(right, context));
    if (op === "and") return booleanOf(first) && booleanOf(this.value(right, context));
    const second = this.value(right, context);
    switch (op) {
      case "|": {
        const nodes = [...this.#nodes(first, "|"), ...this.#nodes(second, "|")];
        this.spend(nodes.length);
        return inDocumentOrder(nodes);
      }
      case "=":
      case "!=":
      case "<":
      case "<=":
      case ">":
      case ">=":
        return this.#compared(op, first, second);
      default:
        return calculated(op, numberOf(this, first), numberOf(this, second));
    }
  }

  /**
   * Compares two values. A comparison with a node set is true if it is true for one of its nodes.
   */
  #compared(op: XPathOperator, left: XPathValue, right: XPathValue): boolean {
    if (Array.isArray(left) && typeof right !== "boolean") {
      return left.some((node) => this.#compared(op, this.stringOf(node), right));
    }
    if (Array.isArray(right) && typeof left !== "boolean") {
      return right.some((node) => this.#compared(op, left, this.stringOf(node)));
    }
    this.spend(1);
    if (op !== "=" && op !== "!=") {
      return inOrder(op, numberOf(this, left), numberOf(this, right));
    }
    return (op === "=") === this.#equal(left, right);
  }

  #equal(left: XPathValue, right: XPathValue): boolean {
    if (typeof left === "boolean" || typeof right === "boolean") {
      return booleanOf(left) === booleanOf(right);
    }
    if (typeof left === "number" || typeof right === "number") {
      return numberOf(this, left) === numberOf(this, right);
    }
    return left === right;
  }
}

/** The axes that are traversed backwards. */
const REVERSED: ReadonlySet<XPathAxis> = new Set<XPathAxis>([
  "ancestor",
  "ancestor-or-self",
  "preceding",
  "preceding-sibling",
]);

function inDocumentOrder(nodes: readonly number[]): readonly number[] {
  if (nodes.length < 2) return nodes;
  const sorted = Int32Array.from(nodes).toSorted();
  return Array.from(sorted.filter((node, at) => at === 0 || node !== sorted[at - 1]));
}

function calculated(op: XPathOperator, left: number, right: number): number {
  switch (op) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "div":
      return left / right;
    default:
      return left % right;
  }
}

function inOrder(op: XPathOperator, left: number, right: number): boolean {
  switch (op) {
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    default:
      return left >= right;
  }
}
