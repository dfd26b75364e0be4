/**
 * Finds equal expressions among many. A query may have thousands of outputs, groups and calls, all
 * bound in one tick, so comparing each expression with all others could take seconds.
 *
 * Each item is assigned a string, its form. Equal items have equal forms, so only items with equal
 * forms need to be compared.
 */
import type { DataType, Value } from "../../types/mod.ts";
import type { BoundExpression } from "./bound_expressions.ts";
import { childrenOf, sameExpression } from "./walk.ts";

/**
 * The maximum number of leading characters that a string's hash covers, in addition to the
 * string's length.
 */
const HASHED_CHARS = 64;

export interface EquivalenceOptions<Thing> {
  readonly formOf: (thing: Thing) => string;
  readonly areEquivalent: (left: Thing, right: Thing) => boolean;
}

export class EquivalenceClasses<Thing> {
  readonly #options: EquivalenceOptions<Thing>;
  /**
   * The items, keyed by form. The map is created only when the first item is added, because most
   * query blocks have no items.
   */
  #byForm: Map<string, Thing[]> | undefined;

  constructor(options: EquivalenceOptions<Thing>) {
    this.#options = options;
  }

  add(thing: Thing): void {
    this.#byForm ??= new Map<string, Thing[]>();
    const form = this.#options.formOf(thing);
    const those = this.#byForm.get(form);
    if (those === undefined) this.#byForm.set(form, [thing]);
    else those.push(thing);
  }

  /** Returns the earliest item that equals `thing`; undefined if there is none. */
  find(thing: Thing): Thing | undefined {
    if (this.#byForm === undefined) return undefined;
    const { areEquivalent: areAlike, formOf } = this.#options;
    return this.#byForm.get(formOf(thing))?.find((other) => areAlike(other, thing));
  }
}

/**
 * The maximum number of items that are compared one by one. For so few items, this is cheaper than
 * computing forms.
 */
const COMPARED_MAX = 8;

interface Placed {
  readonly expression: BoundExpression;
  readonly place: number;
}

/** Finds equal expressions in a list, and returns the position at which each was first added. */
export class ExpressionPlaces {
  readonly #expressions: BoundExpression[] = [];
  /** An index of the expressions, created only once there are many expressions. */
  #classes: EquivalenceClasses<Placed> | undefined;

  constructor(expressions: readonly BoundExpression[] = []) {
    for (const expression of expressions) this.add(expression);
  }

  /** Adds an expression at the next free position, and returns that position. */
  add(expression: BoundExpression): number {
    const place = this.#expressions.length;
    this.#expressions.push(expression);
    if (this.#classes !== undefined) this.#classes.add({ expression, place });
    else if (place === COMPARED_MAX) this.#classes = classesOf(this.#expressions);
    return place;
  }

  find(expression: BoundExpression): number | undefined {
    if (this.#classes !== undefined) return this.#classes.find({ expression, place: 0 })?.place;
    const place = this.#expressions.findIndex((other) => isSame(other, expression));
    return place === -1 ? undefined : place;
  }
}

function classesOf(expressions: readonly BoundExpression[]): EquivalenceClasses<Placed> {
  const classes = new EquivalenceClasses<Placed>({
    formOf: ({ expression }) => String(hashOf(expression)),
    areEquivalent: (left, right) => isSame(left.expression, right.expression),
  });
  for (const [place, expression] of expressions.entries()) classes.add({ expression, place });
  return classes;
}

/**
 * Whether two expressions have the same value within a row. A node that occurs in two places has
 * one value, even if evaluating it again would return a different value.
 */
function isSame(left: BoundExpression, right: BoundExpression): boolean {
  return left === right || sameExpression(left, right);
}

/**
 * Returns a string for a list of expressions. Lists with pairwise equal expressions have equal
 * strings.
 */
export function formOfList(expressions: readonly (BoundExpression | undefined)[]): string {
  return expressions.map((each) => (each === undefined ? "" : hashOf(each))).join(",");
}

/** Expressions are immutable and shared as operands, so each hash is computed only once. */
const hashes = new WeakMap<BoundExpression, number>();

/** Returns a hash of a whole expression tree. Equal expressions have equal hashes. */
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

/** Computes the FNV-1a hash of the first characters of a string, and of its length. */
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

/**
 * The maximum number of constants that the hash of an IN list covers, in addition to the list's
 * length.
 */
const HASHED_CONSTANTS = 8;

function nameOfList({
  constants,
  operand: { type },
}: Extract<BoundExpression, { kind: "in" }>): string {
  const names = constants.slice(0, HASHED_CONSTANTS).map((value) => nameOfValue(value, type));
  return `${constants.length} ${names.join(",")}`;
}

/**
 * Returns a string that represents a value. It is empty if equal values of the type may be
 * represented by different strings.
 */
function nameOfValue(value: Value, { kind }: DataType): string {
  if (typeof value === "string") return kind === "text" || kind === "unknown" ? value : "";
  return typeof value === "number" || typeof value === "bigint" ? String(value) : "";
}
