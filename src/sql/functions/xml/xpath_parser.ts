/**
 * Parses XPath 1.0 expressions.
 *
 * The meaning of `*`, `and`, `or`, `div` and `mod` depends on their position: after an operand
 * they are operators, and otherwise they are names.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";
import type { XPathAxis, XPathExpr, XPathOperator, XPathStep, XPathTest } from "./xpath_syntax.ts";

/**
 * The maximum number of parts of an XPath expression. It also limits the recursion depth of the
 * parser and the evaluation.
 */
const PARTS_MAX = 1000;

const NAME = /[\p{L}_][\p{L}\p{N}\p{M}_.\u00b7-]*/uy;
const NUMBER = /\d+(?:\.\d*)?|\.\d+/y;
const SPACE = /[ \t\r\n]*/y;

const AXES: ReadonlySet<string> = new Set<XPathAxis>([
  "ancestor",
  "ancestor-or-self",
  "attribute",
  "child",
  "descendant",
  "descendant-or-self",
  "following",
  "following-sibling",
  "parent",
  "preceding",
  "preceding-sibling",
  "self",
]);

const NODE_TYPES: ReadonlySet<string> = new Set([
  "comment",
  "node",
  "processing-instruction",
  "text",
]);

/**
 * The binary operators in ascending order of precedence. A longer symbol is listed before its
 * prefixes.
 */
const LEVELS: readonly (readonly XPathOperator[])[] = [
  ["or"],
  ["and"],
  ["!=", "="],
  ["<=", ">=", "<", ">"],
  ["+", "-"],
  ["*", "div", "mod"],
];

const ANY_NODE: XPathStep = {
  axis: "descendant-or-self",
  test: { kind: "node" },
  predicates: [],
};

/**
 * Parses an XPath expression.
 * @throws {DatabaseError} INVALID_VALUE, LIMIT_EXCEEDED, UNSUPPORTED_FEATURE
 */
export function parseXPath(text: string): XPathExpr {
  return new XPathParser(text).parse();
}

class XPathParser {
  readonly #text: string;
  #at = 0;
  #parts = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): XPathExpr {
    if (this.#text.trim() === "") this.#fail("it is empty");
    const found = this.#expression();
    this.#space();
    if (this.#at < this.#text.length) this.#fail("something follows the expression");
    return found;
  }

  #expression(): XPathExpr {
    return this.#binary(0);
  }

  #binary(level: number): XPathExpr {
    this.#count();
    const operators = LEVELS[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const op = operators.find((each) => this.#acceptOperator(each));
      if (op === undefined) return left;
      this.#count();
      left = { kind: "binary", op, left, right: this.#binary(level + 1) };
    }
  }

  #acceptOperator(op: XPathOperator): boolean {
    this.#space();
    if (!this.#text.startsWith(op, this.#at)) return false;
    if (/^[a-z]/.test(op) && /^[\p{L}\p{N}_.-]/u.test(this.#text.slice(this.#at + op.length))) {
      return false;
    }
    this.#at += op.length;
    return true;
  }

  #unary(): XPathExpr {
    this.#count();
    if (this.#accept("-")) return { kind: "negate", operand: this.#unary() };
    let left = this.#path();
    while (this.#accept("|")) {
      this.#count();
      left = { kind: "binary", op: "|", left, right: this.#path() };
    }
    return left;
  }

  #path(): XPathExpr {
    const primary = this.#primary();
    if (primary === undefined) return this.#locationPath();
    const predicates = this.#predicates();
    const from: XPathExpr =
      predicates.length === 0 ? primary : { kind: "filter", from: primary, predicates };
    if (!this.#is("/")) return from;
    return { kind: "path", from, steps: this.#furtherSteps() };
  }

  #locationPath(): XPathExpr {
    if (!this.#is("/")) {
      return { kind: "path", from: "current", steps: [this.#step(), ...this.#furtherSteps()] };
    }
    if (this.#is("//")) return { kind: "path", from: "document", steps: this.#furtherSteps() };
    this.#accept("/");
    if (!this.#beginsStep()) return { kind: "path", from: "document", steps: [] };
    return { kind: "path", from: "document", steps: [this.#step(), ...this.#furtherSteps()] };
  }

  #furtherSteps(): XPathStep[] {
    const steps: XPathStep[] = [];
    for (;;) {
      if (this.#accept("//")) {
        const step = this.#step();
        // A predicate may count positions among siblings. Without a predicate, `//` followed by a
        // child step is equivalent to the descendant axis.
        if (step.axis === "child" && step.predicates.length === 0) {
          steps.push({ ...step, axis: "descendant" });
        } else steps.push(ANY_NODE, step);
      } else if (this.#accept("/")) steps.push(this.#step());
      else return steps;
    }
  }

  #beginsStep(): boolean {
    this.#space();
    return /^[@.*\p{L}_]/u.test(this.#text.slice(this.#at, this.#at + 2));
  }

  #step(): XPathStep {
    this.#count();
    if (this.#accept("..")) return { axis: "parent", test: { kind: "node" }, predicates: [] };
    if (this.#accept(".")) return { axis: "self", test: { kind: "node" }, predicates: [] };
    const axis = this.#axis();
    const test = this.#test();
    return { axis, test, predicates: this.#predicates() };
  }

  #axis(): XPathAxis {
    if (this.#accept("@")) return "attribute";
    const start = this.#at;
    const name = this.#name();
    if (name === undefined || !this.#accept("::")) {
      this.#at = start;
      return "child";
    }
    if (name === "namespace") {
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot evaluate the XPath ${excerpt(this.#text)}: the namespace axis is not supported`,
        { hint: "call namespace-uri()" },
      );
    }
    if (!AXES.has(name)) this.#fail(`there is no axis ${excerpt(name)}`);
    return name as XPathAxis;
  }

  #test(): XPathTest {
    if (this.#accept("*")) return { kind: "name" };
    const name = this.#name();
    if (name === undefined) this.#fail("a step is missing");
    if (NODE_TYPES.has(name) && this.#accept("(")) return this.#typeTest(name);
    // Whitespace is not allowed around the colon of a qualified name.
    if (this.#text[this.#at] !== ":" || this.#text[this.#at + 1] === ":") {
      return { kind: "name", prefix: "", local: name };
    }
    this.#at += 1;
    if (this.#accept("*")) return { kind: "name", prefix: name };
    const local = this.#name();
    if (local === undefined) this.#fail("a name is missing after its prefix");
    return { kind: "name", prefix: name, local };
  }

  #typeTest(name: string): XPathTest {
    if (name !== "processing-instruction") {
      this.#expect(")");
      return { kind: name as "node" | "text" | "comment" };
    }
    const target = this.#literal();
    this.#expect(")");
    return target === undefined ? { kind: "instruction" } : { kind: "instruction", target };
  }

  #predicates(): XPathExpr[] {
    const predicates: XPathExpr[] = [];
    while (this.#accept("[")) {
      predicates.push(this.#expression());
      this.#expect("]");
    }
    return predicates;
  }

  /**
   * Parses a literal, a function call or an expression in parentheses; returns undefined for a
   * step.
   */
  #primary(): XPathExpr | undefined {
    if (this.#accept("(")) {
      const inner = this.#expression();
      this.#expect(")");
      return inner;
    }
    if (this.#is("$")) this.#fail("there are no variables");
    const text = this.#literal();
    if (text !== undefined) return { kind: "literal", value: text };
    const number = this.#match(NUMBER);
    if (number !== undefined) return { kind: "literal", value: Number(number) };
    return this.#call();
  }

  #call(): XPathExpr | undefined {
    const start = this.#at;
    const name = this.#name();
    if (name === undefined || NODE_TYPES.has(name) || !this.#accept("(")) {
      this.#at = start;
      return undefined;
    }
    const args: XPathExpr[] = [];
    if (!this.#accept(")")) {
      do args.push(this.#expression());
      while (this.#accept(","));
      this.#expect(")");
    }
    return { kind: "call", name, args };
  }

  #literal(): string | undefined {
    this.#space();
    const quote = this.#text[this.#at];
    if (quote !== '"' && quote !== "'") return undefined;
    const end = this.#text.indexOf(quote, this.#at + 1);
    if (end < 0) this.#fail("a string is not closed");
    const value = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    return value;
  }

  #name(): string | undefined {
    return this.#match(NAME);
  }

  #match(pattern: RegExp): string | undefined {
    this.#space();
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #is(symbol: string): boolean {
    this.#space();
    return this.#text.startsWith(symbol, this.#at);
  }

  #accept(symbol: string): boolean {
    if (!this.#is(symbol)) return false;
    this.#at += symbol.length;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#accept(symbol)) this.#fail(`${symbol} is missing`);
  }

  #space(): void {
    SPACE.lastIndex = this.#at;
    this.#at += SPACE.exec(this.#text)?.[0].length ?? 0;
  }

  #count(): void {
    this.#parts += 1;
    // Parts are counted once per precedence level, because each operand passes through all levels.
    if (this.#parts <= PARTS_MAX * LEVELS.length) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot evaluate the XPath ${excerpt(this.#text)}: it has more than ${PARTS_MAX} parts`,
      { hint: "write a shorter path" },
    );
  }

  #fail(why: string): never {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot evaluate the XPath ${excerpt(this.#text)}: ${why} (at character ${this.#at + 1})`,
    );
  }
}
