/** Writes the canonical text of a JSON path, the form in which a JSONPATH value is stored. */
import { parseJsonPath } from "./jsonpath_parser.ts";
import type { PathPart, PathSubscript } from "./jsonpath_syntax.ts";

/**
 * Returns the canonical text of a JSON path.
 * @throws {DatabaseError} INVALID_SQL, INVALID_VALUE, UNSUPPORTED_FEATURE, VALUE_OUT_OF_RANGE
 */
export function canonicalPath(text: string): string {
  const { isStrict, root } = parseJsonPath(text);
  return `${isStrict ? "strict " : ""}${written(root, { hasBrackets: true })}`;
}

interface PathTextPlace {
  /** Whether the part follows another part in a chain. */
  readonly isAccessor?: boolean;
  /** Whether an operation is written in parentheses. */
  readonly hasBrackets: boolean;
}

function written(part: PathPart, place: PathTextPlace): string {
  const { next } = part;
  const text = ownText(part, place);
  return next === undefined ? text : text + written(next, { isAccessor: true, hasBrackets: true });
}

function ownText(part: PathPart, { isAccessor = false, hasBrackets }: PathTextPlace): string {
  switch (part.kind) {
    case "null":
      return "null";
    case "boolean":
      return String(part.value);
    case "string":
      return JSON.stringify(part.text);
    case "number":
      return part.next === undefined ? part.text : `(${part.text})`;
    case "variable":
      return `$${JSON.stringify(part.text)}`;
    case "key":
      return `${isAccessor ? "." : ""}${JSON.stringify(part.text)}`;
    case "root":
      return "$";
    case "current":
      return "@";
    case "last":
      return "last";
    case "everyMember":
    case "everyElement":
    case "subscripts":
    case "levels":
    case "filter":
    case "method":
      return accessorText(part);
    default:
      return conditionText(part) ?? operation(part, hasBrackets);
  }
}

function accessorText(part: PathAccessor): string {
  switch (part.kind) {
    case "everyMember":
      return ".*";
    case "everyElement":
      return "[*]";
    case "subscripts":
      return `[${part.subscripts.map(subscriptText).join(",")}]`;
    case "levels":
      return `.**${levelsText(part.first, part.last)}`;
    case "filter":
      return `?(${written(part.condition, { hasBrackets: false })})`;
    case "method": {
      const template = part.template === undefined ? "" : JSON.stringify(part.template);
      return `.${part.name}(${template})`;
    }
  }
}

/**
 * Returns the text of a condition that supplies its own parentheses; undefined for any other part.
 */
function conditionText(part: PathPart): string | undefined {
  switch (part.kind) {
    case "not":
      return `!(${written(part.operand, { hasBrackets: false })})`;
    case "isUnknown":
      return `(${written(part.operand, { hasBrackets: false })}) is unknown`;
    case "exists":
      return `exists (${written(part.operand, { hasBrackets: false })})`;
    default:
      return undefined;
  }
}

function operation(part: PathPart, hasBrackets: boolean): string {
  const text = operationText(part as PathOperation);
  return hasBrackets || part.next !== undefined ? `(${text})` : text;
}

type PathAccessor = PathPart & {
  kind: "everyMember" | "everyElement" | "subscripts" | "levels" | "filter" | "method";
};

type PathOperation = PathPart & {
  kind: "and" | "or" | "comparison" | "startsWith" | "likeRegex" | "arithmetic" | "sign";
};

function operationText(part: PathOperation): string {
  const inside = (operand: PathPart): string =>
    written(operand, { hasBrackets: priorityOf(operand) <= priorityOf(part) });
  switch (part.kind) {
    case "sign":
      return part.op + inside(part.operand);
    case "likeRegex": {
      const flags = part.flags === "" ? "" : ` flag "${part.flags}"`;
      return `${inside(part.operand)} like_regex ${JSON.stringify(part.pattern)}${flags}`;
    }
    case "and":
      return `${inside(part.left)} && ${inside(part.right)}`;
    case "or":
      return `${inside(part.left)} || ${inside(part.right)}`;
    case "startsWith":
      return `${inside(part.left)} starts with ${inside(part.right)}`;
    default:
      return `${inside(part.left)} ${part.op} ${inside(part.right)}`;
  }
}

/** Returns the operator precedence of a part of a path. */
function priorityOf(part: PathPart): number {
  switch (part.kind) {
    case "or":
      return 0;
    case "and":
      return 1;
    case "comparison":
    case "startsWith":
      return 2;
    case "arithmetic":
      return part.op === "+" || part.op === "-" ? 3 : 4;
    case "sign":
      return 5;
    default:
      return 6;
  }
}

function subscriptText({ from, to }: PathSubscript): string {
  const first = written(from, { hasBrackets: false });
  return to === undefined ? first : `${first} to ${written(to, { hasBrackets: false })}`;
}

function levelsText(first: number, last: number): string {
  if (first === 0 && last === Number.POSITIVE_INFINITY) return "";
  return first === last ? `{${levelText(first)}}` : `{${levelText(first)} to ${levelText(last)}}`;
}

function levelText(level: number): string {
  return Number.isFinite(level) ? String(level) : "last";
}
