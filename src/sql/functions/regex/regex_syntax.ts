/**
 * Parses regular expressions into trees. The syntax is the linear-time subset of PostgreSQL's
 * advanced regular expressions.
 *
 *     expression   branch { "|" branch }
 *     branch       { atom [ quantifier ] }
 *     atom         character | "." | "[…]" | "^" | "$" | "\" escape | "(" [ "?:" ] expression ")"
 *     quantifier   ( "*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}" ) [ "?" ]
 */
import { DatabaseError } from "../../../base/errors.ts";
import { NESTING_MAX } from "../../../base/limits.ts";
import { excerpt } from "../../../types/mod.ts";
import { classOfEscape, readBracket, readCharacterEscape } from "./regex_brackets.ts";
import {
  type CharacterSet,
  EVERY_CHARACTER,
  invertedSet,
  NEWLINE_SET,
  setOfCharacter,
  sizeOfSet,
  unionOfSets,
  withBothCases,
} from "./regex_sets.ts";

export type Assertion =
  | "start"
  | "end"
  | "lineStart"
  | "lineEnd"
  | "boundary"
  | "notBoundary"
  | "wordStart"
  | "wordEnd";

export type RegexNode =
  | { readonly kind: "empty" }
  | { readonly kind: "set"; readonly set: CharacterSet }
  | { readonly kind: "assert"; readonly assertion: Assertion }
  | { readonly kind: "sequence"; readonly items: readonly RegexNode[] }
  | { readonly kind: "choice"; readonly items: readonly RegexNode[] }
  | {
      readonly kind: "repeat";
      readonly item: RegexNode;
      readonly min: number;
      /** The maximum number of repetitions; undefined means unbounded. */
      readonly max: number | undefined;
      readonly isLazy: boolean;
      /**
       * Whether the repetition was written as `{m}`, which prefers neither long nor short matches.
       */
      readonly isFixed: boolean;
    }
  | { readonly kind: "group"; readonly item: RegexNode; readonly index: number };

export interface RegexSyntax {
  readonly root: RegexNode;
  /** The number of capturing groups, excluding the whole match. */
  readonly groupCount: number;
}

/**
 * The maximum length of a pattern; parsing a pattern of this length takes a few milliseconds. The
 * limit on instructions is not enough, because a long bracket expression becomes a single
 * instruction.
 */
const PATTERN_LENGTH_MAX = 65_536;

/**
 * The maximum total work for the distinct bracket expressions of a pattern, counted in range
 * bounds. A class of letters has about a thousand bounds.
 */
const BRACKETS_COST_MAX = 2 ** 18;

/**
 * The cost of finding the case variants of a bracket expression: about the number of characters
 * that have case.
 */
const CASES_COST = 3000;

/** The largest number allowed in a quantifier `{m,n}`, as in PostgreSQL. */
const REPEAT_MAX = 255;

interface RegexFlags {
  readonly ignoreCase: boolean;
  /** Whether `.` and complemented bracket expressions exclude newlines. */
  readonly stopsAtNewlines: boolean;
  /** Whether `^` and `$` match at line boundaries. */
  readonly findsLines: boolean;
  /** Whether whitespace and comments, which begin with `#`, are ignored. */
  readonly isExpanded: boolean;
}

/**
 * Parses the flags of a regular expression. `i` ignores case, and `c` does not. `n` and `m` set
 * both `stopsAtNewlines` and `findsLines`, `p` sets only the former, `w` only the latter, and `s`
 * clears both. `x` sets `isExpanded`, and `t` clears it. The caller handles `g`.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
function flagsFromText(text: string, given: RegexFlags): RegexFlags {
  let { ignoreCase, stopsAtNewlines, findsLines, isExpanded } = given;
  for (const flag of text) {
    if (flag === "i" || flag === "c") ignoreCase = flag === "i";
    else if (flag === "x" || flag === "t") isExpanded = flag === "x";
    else if ("nmpws".includes(flag)) {
      stopsAtNewlines = "nmp".includes(flag);
      findsLines = "nmw".includes(flag);
    } else if (flag !== "g") {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot use ${excerpt(flag)} as a regular expression flag: the flags are i, c, n, m, ` +
          "p, w, s, x, t and g",
      );
    }
  }
  return { ignoreCase, stopsAtNewlines, findsLines, isExpanded };
}

const NO_FLAGS: RegexFlags = {
  ignoreCase: false,
  stopsAtNewlines: false,
  findsLines: false,
  isExpanded: false,
};

/**
 * Matches an escape, a bracket expression, or whitespace or a comment in an expanded pattern. Only
 * whitespace and comments are captured, because they are removed.
 */
const EXPANDED_PART = /\\[\s\S]|\[\^?\]?(?:\[[:.=][^\]]*\]|\\[\s\S]|[^\]])*\]|(\s|#[^\n]*)/g;

/** Returns an expanded pattern without its whitespace and comments. */
function withoutBlanks(pattern: string): string {
  return pattern.replaceAll(EXPANDED_PART, (part, dropped) => (dropped === undefined ? part : ""));
}

/** Parses a regular expression. @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE */
export function parseRegex(pattern: string, flags: string): RegexSyntax {
  return new RegexParser(pattern, flags).parse();
}

class RegexParser {
  readonly pattern: string;
  readonly #flags: RegexFlags;
  /**
   * The character sets of bracket expressions, keyed by source text, because a pattern may repeat
   * a bracket expression many times.
   */
  readonly #brackets = new Map<string, CharacterSet>();
  #bracketsCost = 0;
  #at = 0;
  #groupCount = 0;
  #depth = 0;

  constructor(pattern: string, flags: string) {
    if (pattern.length > PATTERN_LENGTH_MAX) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot use the regular expression: it has ${pattern.length} characters, but the ` +
          `maximum is ${PATTERN_LENGTH_MAX}`,
      );
    }
    let read = flagsFromText(flags, NO_FLAGS);
    const embedded = /^\(\?([a-z]+)\)/.exec(pattern);
    if (embedded !== null) {
      read = flagsFromText(embedded[1] ?? "", read);
      this.#at = embedded[0].length;
    }
    this.#flags = read;
    this.pattern = read.isExpanded ? withoutBlanks(pattern) : pattern;
  }

  parse(): RegexSyntax {
    const root = this.#expression();
    if (this.#at < this.pattern.length) throw this.#malformed("the parentheses are not balanced");
    return { root, groupCount: this.#groupCount };
  }

  #expression(): RegexNode {
    this.#depth += 1;
    if (this.#depth > NESTING_MAX) throw this.#malformed("groups are nested too deeply");
    const items = [this.#branch()];
    while (this.pattern[this.#at] === "|") {
      this.#at += 1;
      items.push(this.#branch());
    }
    this.#depth -= 1;
    const [first] = items;
    return items.length === 1 && first !== undefined ? first : { kind: "choice", items };
  }

  #branch(): RegexNode {
    const items: RegexNode[] = [];
    for (;;) {
      const next = this.pattern[this.#at];
      if (next === undefined || next === "|" || next === ")") break;
      items.push(this.#quantified(this.#atom()));
    }
    if (items.length === 0) return { kind: "empty" };
    return { kind: "sequence", items };
  }

  #quantified(item: RegexNode): RegexNode {
    const bounds = this.#quantifier();
    if (bounds === undefined) return item;
    if (item.kind === "assert") throw this.#malformed("a quantifier has nothing to repeat");
    const isLazy = this.pattern[this.#at] === "?";
    if (isLazy) this.#at += 1;
    const next = this.pattern[this.#at] ?? "";
    if (next !== "" && "*+?".includes(next))
      throw this.#malformed("a quantifier follows another quantifier");
    if (bounds.min === 1 && bounds.max === 1) return bounds.isFixed ? item : forced(item, isLazy);
    return { kind: "repeat", item, ...bounds, isLazy };
  }

  #quantifier(): { min: number; max: number | undefined; isFixed: boolean } | undefined {
    const next = this.pattern[this.#at];
    if (next === "*" || next === "+" || next === "?") {
      this.#at += 1;
      const max = next === "?" ? 1 : undefined;
      return { min: next === "+" ? 1 : 0, max, isFixed: false };
    }
    if (next !== "{") return undefined;
    const match = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.pattern.slice(this.#at, this.#at + 24));
    if (match === null) {
      // A brace that is not followed by a digit is an ordinary character.
      if (!/^\{\d/.test(this.pattern.slice(this.#at))) return undefined;
      throw this.#malformed("a quantifier {m,n} is incomplete");
    }
    this.#at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === "" ? undefined : Number(match[3]);
    if (min > REPEAT_MAX || (max !== undefined && (max > REPEAT_MAX || max < min))) {
      throw this.#malformed(
        `in a quantifier {m,n}, m must not be greater than n, and n must be at most ${REPEAT_MAX}`,
      );
    }
    return { min, max, isFixed: match[2] === undefined };
  }

  #atom(): RegexNode {
    const character = String.fromCodePoint(this.pattern.codePointAt(this.#at) ?? 0);
    const { findsLines, stopsAtNewlines } = this.#flags;
    switch (character) {
      case "(":
        return this.#group();
      case "[":
        return this.#bracket();
      case "\\":
        return this.#escape();
      case "*":
      case "+":
      case "?":
        throw this.#malformed("a quantifier has nothing to repeat");
      case ".":
        this.#at += 1;
        return { kind: "set", set: stopsAtNewlines ? invertedSet(NEWLINE_SET) : EVERY_CHARACTER };
      case "^":
        this.#at += 1;
        return { kind: "assert", assertion: findsLines ? "lineStart" : "start" };
      case "$":
        this.#at += 1;
        return { kind: "assert", assertion: findsLines ? "lineEnd" : "end" };
      default:
        this.#at += character.length;
        return this.#literal(character.codePointAt(0) ?? 0);
    }
  }

  #literal(code: number): RegexNode {
    const set = setOfCharacter(code);
    return { kind: "set", set: this.#flags.ignoreCase ? withBothCases(set) : set };
  }

  #group(): RegexNode {
    this.#at += 1;
    let index = 0;
    if (this.pattern[this.#at] === "?") {
      const rest = this.pattern.slice(this.#at, this.#at + 3);
      if (/^\?(?:=|!|<=|<!)/.test(rest)) {
        throw new DatabaseError(
          "UNSUPPORTED_FEATURE",
          `Cannot match ${excerpt(this.pattern)}: look-ahead and look-behind are not ` +
            "supported, because they cannot be matched in linear time",
        );
      }
      if (!rest.startsWith("?:"))
        throw this.#malformed("a group starts with (? and an unknown character");
      this.#at += 2;
    } else {
      this.#groupCount += 1;
      index = this.#groupCount;
    }
    const item = this.#expression();
    if (this.pattern[this.#at] !== ")") throw this.#malformed("the parentheses are not balanced");
    this.#at += 1;
    return index === 0 ? item : { kind: "group", item, index };
  }

  #bracket(): RegexNode {
    const start = this.#at;
    const { end, isInverted, sets } = readBracket(this.pattern, start, (what) =>
      this.#malformed(what),
    );
    this.#at = end;
    const text = this.pattern.slice(start, end);
    const known = this.#brackets.get(text);
    if (known !== undefined) return { kind: "set", set: known };
    this.#spend(sets.reduce((sum, { length }) => sum + length, 0));
    const made = this.#setOf(unionOfSets(sets), isInverted);
    this.#brackets.set(text, made);
    return { kind: "set", set: made };
  }

  #setOf(set: CharacterSet, isInverted: boolean): CharacterSet {
    const { ignoreCase, stopsAtNewlines } = this.#flags;
    if (ignoreCase) this.#spend(Math.min(CASES_COST, sizeOfSet(set)));
    const cased = ignoreCase ? withBothCases(set) : set;
    if (!isInverted) return cased;
    const excluded = stopsAtNewlines ? unionOfSets([cased, NEWLINE_SET]) : cased;
    return invertedSet(excluded);
  }

  #spend(cost: number): void {
    this.#bracketsCost += cost;
    if (this.#bracketsCost <= BRACKETS_COST_MAX) return;
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot use the regular expression: its bracket expressions contain too many character " +
        "ranges",
      { hint: "use fewer different bracket expressions" },
    );
  }

  #escape(): RegexNode {
    const letter = this.pattern[this.#at + 1];
    if (letter === undefined) throw this.#malformed("the pattern ends with a backslash");
    const assertion = ASSERTION_ESCAPES.get(letter);
    if (assertion !== undefined) {
      this.#at += 2;
      return { kind: "assert", assertion };
    }
    const set = classOfEscape(letter);
    if (set !== undefined) {
      this.#at += 2;
      return { kind: "set", set };
    }
    if (/[1-9]/.test(letter)) {
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot match ${excerpt(this.pattern)}: back references are not supported, because ` +
          "they cannot be matched in linear time",
      );
    }
    const { code, end } = readCharacterEscape(this.pattern, this.#at, (what) =>
      this.#malformed(what),
    );
    this.#at = end;
    return this.#literal(code);
  }

  #malformed(what: string): DatabaseError {
    return new DatabaseError(
      "INVALID_VALUE",
      `Cannot use ${excerpt(this.pattern)} as a regular expression: ${what}`,
    );
  }
}

/**
 * Forces an item to match lazily or greedily, regardless of its own preference: `(l*){1,1}?`
 * matches as little as `l*?`.
 */
function forced(item: RegexNode, isLazy: boolean): RegexNode {
  switch (item.kind) {
    case "group":
      return { ...item, item: forced(item.item, isLazy) };
    case "sequence": {
      const [only] = item.items;
      if (only === undefined || item.items.length > 1) break;
      return { ...item, items: [forced(only, isLazy)] };
    }
    case "repeat":
      return { ...item, isLazy, isFixed: false };
    default:
      break;
  }
  return { kind: "repeat", item, min: 1, max: 1, isLazy, isFixed: false };
}

/**
 * Whether the whole match should be as short as possible. As in PostgreSQL, a sequence has the
 * preference of its first part that has a preference, and a choice between branches always prefers
 * the longest match. `{m}` has the preference of the item that it repeats.
 */
export function prefersShort(node: RegexNode): boolean {
  return preferenceOf(node) === "short";
}

function preferenceOf(node: RegexNode): "long" | "short" | undefined {
  switch (node.kind) {
    case "choice":
      return "long";
    case "group":
      return preferenceOf(node.item);
    case "repeat":
      if (node.isFixed) return preferenceOf(node.item);
      return node.isLazy ? "short" : "long";
    case "sequence":
      for (const item of node.items) {
        const preference = preferenceOf(item);
        if (preference !== undefined) return preference;
      }
      return undefined;
    default:
      return undefined;
  }
}

const ASSERTION_ESCAPES: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ["A", "start"],
  ["Z", "end"],
  ["y", "boundary"],
  ["Y", "notBoundary"],
  ["m", "wordStart"],
  ["M", "wordEnd"],
]);
