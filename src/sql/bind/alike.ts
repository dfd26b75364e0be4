/**
 * Finds what computes the same among many. A query may have thousands of outputs, groups and calls,
 * which are bound in one turn: comparing each with all others took 1.5 s for 4,000 groups and 6 s
 * for as many aggregates.
 *
 * Invariant: things that are alike have the same form, so that only those are compared.
 */
import type { DataType, Value } from "../../types/mod.ts";
import type { BoundExpression } from "./bound_expressions.ts";
import { childrenOf, sameExpression } from "./walk.ts";

/** The number of leading characters of a text that its hash covers, besides its length. */
const HASHED_CHARS = 64;

export interface AlikeOptions<Thing> {
  readonly formOf: (thing: Thing) => string;
  readonly areAlike: (left: Thing, right: Thing) => boolean;
}

export class Alike<Thing> {
  readonly #options: AlikeOptions<Thing>;
  /** Made for the first thing: most blocks have none. */
  #byForm: Map<string, Thing[]> | undefined;

  constructor(options: AlikeOptions<Thing>) {
    this.#options = options;
  }

  add(thing: Thing): void {
    this.#byForm ??= new Map<string, Thing[]>();
    const form = this.#options.formOf(thing);
    const those = this.#byForm.get(form);
    if (those === undefined) this.#byForm.set(form, [thing]);
    else those.push(thing);
  }

  /** The first that was added. */
  find(thing: Thing): Thing | undefined {
    if (this.#byForm === undefined) return undefined;
    const { areAlike, formOf } = this.#options;
    return this.#byForm.get(formOf(thing))?.find((other) => areAlike(other, thing));
  }
}

/** So many are compared one by one, which is cheaper than telling their forms. */
const COMPARED_MAX = 8;

interface Placed {
  readonly expression: BoundExpression;
  readonly place: number;
}

/** Expressions by what they compute, with the places where they were first added. */
export class ExpressionPlaces {
  readonly #expressions: BoundExpression[] = [];
  /** Once they are many. */
  #alike: Alike<Placed> | undefined;

  constructor(expressions: readonly BoundExpression[] = []) {
    for (const expression of expressions) this.add(expression);
  }

  /** Returns its place, the next one. */
  add(expression: BoundExpression): number {
    const place = this.#expressions.length;
    this.#expressions.push(expression);
    if (this.#alike !== undefined) this.#alike.add({ expression, place });
    else if (place === COMPARED_MAX) this.#alike = alikeOf(this.#expressions);
    return place;
  }

  find(expression: BoundExpression): number | undefined {
    if (this.#alike !== undefined) return this.#alike.find({ expression, place: 0 })?.place;
    const place = this.#expressions.findIndex((other) => isSame(other, expression));
    return place === -1 ? undefined : place;
  }
}

function alikeOf(expressions: readonly BoundExpression[]): Alike<Placed> {
  const alike = new Alike<Placed>({
    formOf: ({ expression }) => String(hashOf(expression)),
    areAlike: (left, right) => isSame(left.expression, right.expression),
  });
  for (const [place, expression] of expressions.entries()) alike.add({ expression, place });
  return alike;
}

/**
 * The same node has the same value within a row, even if a second call would return another one.
 */
function isSame(left: BoundExpression, right: BoundExpression): boolean {
  return left === right || sameExpression(left, right);
}

/** Equal for lists whose expressions are the same, one by one. */
export function formOfList(expressions: readonly (BoundExpression | undefined)[]): string {
  return expressions.map((each) => (each === undefined ? "" : hashOf(each))).join(",");
}

/** Expressions are immutable and are shared as operands, so each hash is computed once. */
const hashes = new WeakMap<BoundExpression, number>();

/** Returns equal hashes for equal expressions; the hash covers the whole tree. */
function hashOf(expression: BoundExpression): number {
  const known = hashes.get(expression);
  if (known !== undefined) return known;
  let hash = mixed(hashOfText(expression.kind), hashOfText(nameOf(expression)));
  for (const child of childrenOf(expression)) hash = mixed(hash, hashOf(child));
  hashes.set(expression, hash);
  return hash;
}

function mixed(left: number, right: number): number {
  return Math.imul(left ^ right, 0x01000193) ^ (left >>> 13);
}

/** FNV-1a over the beginning of a text. */
function hashOfText(text: string): number {
  let hash = 0x811c9dc5 ^ text.length;
  const end = Math.min(text.length, HASHED_CHARS);
  for (let at = 0; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

function nameOf(expression: BoundExpression): string {
  switch (expression.kind) {
    case "column":
      return String(expression.column.id);
    case "constant":
      return nameOfValue(expression.value, expression.type);
    case "slot":
      return String(expression.slot);
    case "outer":
      return String(expression.id);
    case "call":
      return expression.name;
    case "compare":
    case "arithmetic":
      return expression.operator;
    case "in":
      return nameOfList(expression);
    default:
      return "";
  }
}

/** The number of constants of an IN list that its hash covers, besides their count. */
const HASHED_CONSTANTS = 8;

function nameOfList({
  constants,
  operand: { type },
}: Extract<BoundExpression, { kind: "in" }>): string {
  const names = constants.slice(0, HASHED_CONSTANTS).map((value) => nameOfValue(value, type));
  return `${constants.length} ${names.join(",")}`;
}

/** Only of values that are written alike where they are equal. */
function nameOfValue(value: Value, { kind }: DataType): string {
  if (typeof value === "string") return kind === "text" || kind === "unknown" ? value : "";
  return typeof value === "number" || typeof value === "bigint" ? String(value) : "";
}
