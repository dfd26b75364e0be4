/**
 * Parses JSON paths, in the language of PostgreSQL 15.
 *
 *     path        = [strict | lax] condition-or-value
 *     condition   = and { || and }           and = negation { && negation }
 *     negation    = ! delimited | value compared with value | value starts with … | …
 *     delimited   = ( condition ) | exists ( value )
 *     value       = product { + product }    product = signed { * signed }
 *     signed      = (+ | -) signed | chain
 *     chain       = (scalar | $ | @ | last | ( … )) { accessor }
 *
 * A condition is a value only if it is in parentheses and an accessor follows.
 */
import { DatabaseError } from "../base/errors.ts";
import { digitsFromText } from "./decimal.ts";
import { excerpt } from "./excerpt.ts";
import { canonicalNumber } from "./json_tree.ts";
import { malformedPath, type PathToken, pathTokens } from "./jsonpath_lexer.ts";
import {
  isPredicate,
  type JsonPath,
  type PathArithmetic,
  type PathComparison,
  type PathMethod,
  type PathPart,
  type PathPredicate,
  type PathSubscript,
} from "./jsonpath_syntax.ts";

/** The maximum nesting depth of a JSON path, and the maximum number of its parts. */
const DEPTH_MAX = 100;
const PARTS_MAX = 1000;

const COMPARISONS: ReadonlyMap<string, PathComparison> = new Map<string, PathComparison>([
  ["==", "=="],
  ["!=", "!="],
  ["<>", "!="],
  ["<", "<"],
  ["<=", "<="],
  [">", ">"],
  [">=", ">="],
]);

const METHODS: ReadonlySet<string> = new Set<PathMethod>([
  "type",
  "size",
  "double",
  "ceiling",
  "floor",
  "abs",
  "keyvalue",
]);

/** The flags of like_regex, in the order in which a path shows them. */
const REGEX_FLAGS = "ismxq";

/**
 * Parses a JSON path.
 *
 * @throws {DatabaseError} INVALID_SQL, INVALID_VALUE, UNSUPPORTED_FEATURE, VALUE_OUT_OF_RANGE
 */
export function parseJsonPath(text: string): JsonPath {
  return new PathParser(text).parse();
}

/** Appends a part to the end of a chain of path parts. */
function linked(part: PathPart, next: PathPart): PathPart {
  return { ...part, next: part.next === undefined ? next : linked(part.next, next) };
}

class PathParser {
  readonly #text: string;
  readonly #tokens: readonly PathToken[];
  #at = 0;
  #depth = 0;
  #parts = 0;
  /**
   * The numbers of open filters and of open subscripts. `@` has a value only inside a filter, and
   * `last` only inside a subscript.
   */
  #filters = 0;
  #subscripts = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = pathTokens(text);
  }

  parse(): JsonPath {
    if (this.#tokens.length === 1) {
      throw new DatabaseError("INVALID_VALUE", "Cannot read an empty string as jsonpath");
    }
    const isStrict = this.#acceptWord("strict");
    if (!isStrict) this.#acceptWord("lax");
    const root = this.#conditionOrValue();
    if (this.#peek().kind !== "end") throw this.#unexpected();
    return { isStrict, root };
  }

  #peek(ahead = 0): PathToken {
    return this.#tokens[this.#at + ahead] ?? { kind: "end", text: "" };
  }

  #take(): PathToken {
    const token = this.#peek();
    this.#at += 1;
    this.#parts += 1;
    if (this.#parts > PARTS_MAX * 4) {
      throw malformedPath(this.#text, `the path has more than ${PARTS_MAX} parts`);
    }
    return token;
  }

  #unexpected(): Error {
    const { kind, text } = this.#peek();
    return malformedPath(this.#text, kind === "end" ? "it ends too early" : `unexpected "${text}"`);
  }

  #isSymbol(symbol: string): boolean {
    const { kind, text } = this.#peek();
    return kind === "symbol" && text === symbol;
  }

  #acceptSymbol(symbol: string): boolean {
    const found = this.#isSymbol(symbol);
    if (found) this.#take();
    return found;
  }

  #expectSymbol(symbol: string): void {
    if (!this.#acceptSymbol(symbol)) throw this.#unexpected();
  }

  /**
   * Whether the next token is a keyword. Keywords may be in any case, except `null`, `true` and
   * `false`, which must be in lower case.
   */
  #isWord(word: string, ahead = 0): boolean {
    const { kind, text } = this.#peek(ahead);
    return kind === "word" && text.toLowerCase() === word;
  }

  #acceptWord(word: string): boolean {
    const found = this.#isWord(word);
    if (found) this.#take();
    return found;
  }

  #expectWord(word: string): void {
    if (!this.#acceptWord(word)) throw this.#unexpected();
  }

  #conditionOrValue(): PathPart {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX)
      throw malformedPath(this.#text, `the path is nested more than ${DEPTH_MAX} levels deep`);
    let part = this.#conjunction();
    while (this.#isSymbol("||")) {
      const left = this.#asPredicate(part);
      this.#take();
      part = { kind: "or", left, right: this.#asPredicate(this.#conjunction()) };
    }
    this.#depth -= 1;
    return part;
  }

  #conjunction(): PathPart {
    let part = this.#negation();
    while (this.#isSymbol("&&")) {
      const left = this.#asPredicate(part);
      this.#take();
      part = { kind: "and", left, right: this.#asPredicate(this.#negation()) };
    }
    return part;
  }

  #asPredicate(part: PathPart): PathPredicate {
    if (isPredicate(part)) return part;
    throw this.#unexpected();
  }

  #asValue(part: PathPart): PathPart {
    if (!isPredicate(part)) return part;
    throw this.#unexpected();
  }

  #negation(): PathPart {
    if (!this.#acceptSymbol("!")) return this.#comparison();
    if (this.#isSymbol("(")) return { kind: "not", operand: this.#bracketedPredicate() };
    if (this.#isWord("exists")) return { kind: "not", operand: this.#exists() };
    throw this.#unexpected();
  }

  #bracketedPredicate(): PathPredicate {
    this.#expectSymbol("(");
    const condition = this.#asPredicate(this.#conditionOrValue());
    this.#expectSymbol(")");
    return condition;
  }

  #exists(): PathPredicate {
    this.#take();
    this.#expectSymbol("(");
    const operand = this.#asValue(this.#conditionOrValue());
    this.#expectSymbol(")");
    return { kind: "exists", operand };
  }

  #comparison(): PathPart {
    if (this.#isWord("exists") && this.#peek(1).text === "(") return this.#exists();
    const left = this.#sum();
    const { kind, text } = this.#peek();
    const op = kind === "symbol" ? COMPARISONS.get(text) : undefined;
    if (op !== undefined) {
      const value = this.#asValue(left);
      this.#take();
      return { kind: "comparison", op, left: value, right: this.#asValue(this.#sum()) };
    }
    if (this.#isWord("starts")) return this.#startsWith(this.#asValue(left));
    return this.#isWord("like_regex") ? this.#likeRegex(this.#asValue(left)) : left;
  }

  #startsWith(left: PathPart): PathPredicate {
    this.#take();
    this.#expectWord("with");
    const { kind, text } = this.#peek();
    if (kind !== "string" && kind !== "variable") throw this.#unexpected();
    this.#take();
    return { kind: "startsWith", left, right: { kind, text } };
  }

  #likeRegex(operand: PathPart): PathPredicate {
    this.#take();
    const pattern = this.#string();
    const written = this.#acceptWord("flag") ? this.#string() : "";
    const unknown = Array.from(written).find((flag) => !REGEX_FLAGS.includes(flag));
    if (unknown !== undefined) {
      throw malformedPath(
        this.#text,
        `like_regex has no flag "${unknown}"`,
        "the flags are i, s, m, x and q",
      );
    }
    const flags = Array.from(REGEX_FLAGS)
      .filter((flag) => written.includes(flag))
      .join("");
    if (flags.includes("x") && !flags.includes("q")) {
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot read ${excerpt(this.#text)} as jsonpath: the flag x, which ignores whitespace ` +
          "and comments in the pattern, is not supported",
      );
    }
    return { kind: "likeRegex", operand, pattern, flags };
  }

  #string(): string {
    if (this.#peek().kind !== "string") throw this.#unexpected();
    return this.#take().text;
  }

  #sum(): PathPart {
    let part = this.#product();
    while (this.#isSymbol("+") || this.#isSymbol("-")) {
      const left = this.#asValue(part);
      const op = this.#take().text as PathArithmetic;
      part = { kind: "arithmetic", op, left, right: this.#asValue(this.#product()) };
    }
    return part;
  }

  #product(): PathPart {
    let part = this.#signed();
    while (this.#isSymbol("*") || this.#isSymbol("/") || this.#isSymbol("%")) {
      const left = this.#asValue(part);
      const op = this.#take().text as PathArithmetic;
      part = { kind: "arithmetic", op, left, right: this.#asValue(this.#signed()) };
    }
    return part;
  }

  #signed(): PathPart {
    if (!this.#isSymbol("+") && !this.#isSymbol("-")) return this.#chain();
    const op = this.#take().text === "+" ? "+" : "-";
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX)
      throw malformedPath(this.#text, `the path is nested more than ${DEPTH_MAX} levels deep`);
    const operand = this.#asValue(this.#signed());
    this.#depth -= 1;
    if (operand.kind === "number" && operand.next === undefined) {
      return op === "+" ? operand : { kind: "number", text: negatedNumber(operand.text) };
    }
    return { kind: "sign", op, operand };
  }

  #chain(): PathPart {
    const first = this.#primary();
    const accessors: PathPart[] = [];
    for (let part = this.#accessor(); part !== undefined; part = this.#accessor()) {
      accessors.push(part);
      if (accessors.length > PARTS_MAX) {
        throw malformedPath(this.#text, `the path has more than ${PARTS_MAX} parts`);
      }
    }
    const chain = accessors.reduceRight<PathPart | undefined>(
      (next, part) => (next === undefined ? part : { ...part, next }),
      undefined,
    );
    if (chain !== undefined) return linked(first, chain);
    if (isPredicate(first) && this.#isWord("is") && this.#isWord("unknown", 1)) {
      this.#at += 2;
      return { kind: "isUnknown", operand: first };
    }
    return first;
  }

  #primary(): PathPart {
    if (this.#acceptSymbol("(")) {
      const part = this.#conditionOrValue();
      this.#expectSymbol(")");
      return part;
    }
    const { kind, text } = this.#peek();
    const part = this.#scalar(kind, text);
    if (part === undefined) throw this.#unexpected();
    this.#take();
    return part;
  }

  #scalar(kind: PathToken["kind"], text: string): PathPart | undefined {
    if (kind === "string" || kind === "variable") return { kind, text };
    if (kind === "number") return { kind, text: canonicalNumber(text) };
    if (kind === "symbol" && text === "$") return { kind: "root" };
    if (kind === "symbol" && text === "@") {
      if (this.#filters > 0) return { kind: "current" };
      throw malformedPath(
        this.#text,
        "@ stands for the current item, and can be used only in a filter",
      );
    }
    if (kind !== "word") return undefined;
    if (text === "null") return { kind: "null" };
    if (text === "true" || text === "false") return { kind: "boolean", value: text === "true" };
    if (text.toLowerCase() !== "last") return undefined;
    if (this.#subscripts > 0) return { kind: "last" };
    throw malformedPath(
      this.#text,
      "last stands for the last index of an array, and can be used only in a subscript",
    );
  }

  #accessor(): PathPart | undefined {
    if (this.#acceptSymbol(".")) return this.#member();
    if (this.#acceptSymbol("[")) return this.#brackets();
    if (!this.#acceptSymbol("?")) return undefined;
    this.#filters += 1;
    const condition = this.#bracketedPredicate();
    this.#filters -= 1;
    return { kind: "filter", condition };
  }

  #member(): PathPart {
    if (this.#acceptSymbol("*")) return { kind: "everyMember" };
    if (this.#acceptSymbol("**")) return this.#levels();
    const { kind, text } = this.#peek();
    if (kind === "string") return { kind: "key", text: this.#take().text };
    if (kind !== "word") throw this.#unexpected();
    this.#take();
    if (!this.#isSymbol("(")) return { kind: "key", text };
    const name = text.toLowerCase();
    if (name !== "datetime" && !METHODS.has(name)) throw this.#unexpected();
    this.#take();
    const template = name === "datetime" && !this.#isSymbol(")") ? this.#string() : undefined;
    this.#expectSymbol(")");
    const method = { kind: "method", name: name as PathMethod } as const;
    return template === undefined ? method : { ...method, template };
  }

  #levels(): PathPart {
    if (!this.#acceptSymbol("{")) {
      return { kind: "levels", first: 0, last: Number.POSITIVE_INFINITY };
    }
    const first = this.#level();
    const last = this.#acceptWord("to") ? this.#level() : first;
    this.#expectSymbol("}");
    return { kind: "levels", first, last };
  }

  #level(): number {
    if (this.#acceptWord("last")) return Number.POSITIVE_INFINITY;
    const { kind, text } = this.#peek();
    if (kind !== "number" || !/^\d+$/.test(text)) throw this.#unexpected();
    this.#take();
    const level = Number(text);
    if (level < 2 ** 31) return level;
    throw malformedPath(this.#text, `the level ${text} must be less than ${2 ** 31}`);
  }

  #brackets(): PathPart {
    if (this.#isSymbol("*") && this.#peek(1).text === "]") {
      this.#at += 2;
      return { kind: "everyElement" };
    }
    this.#subscripts += 1;
    const subscripts: PathSubscript[] = [];
    do {
      const from = this.#asValue(this.#sum());
      subscripts.push(this.#acceptWord("to") ? { from, to: this.#asValue(this.#sum()) } : { from });
    } while (this.#acceptSymbol(","));
    this.#subscripts -= 1;
    this.#expectSymbol("]");
    return { kind: "subscripts", subscripts };
  }
}

function negatedNumber(text: string): string {
  const isZero = digitsFromText(text)?.unscaled === 0n;
  if (isZero) return text;
  return text.startsWith("-") ? text.slice(1) : `-${text}`;
}
