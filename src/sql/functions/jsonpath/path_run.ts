/**
 * Applies a JSON path to a document.
 *
 * Each part of a path receives one item and passes any number of items to the next part. The last
 * part passes them to the receiver of the run, which can end the run. In lax mode, an array is
 * replaced by its elements wherever a part does not accept arrays, and missing parts of the
 * document yield nothing. In strict mode, both cases are errors. An error within a condition makes
 * the condition unknown.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  isCondition,
  isJsonObject,
  type JsonNode,
  type JsonPath,
  jsonObject,
  type PathPart,
  type PathPredicate,
} from "../../../types/mod.ts";
import { compareItems, matchesPattern, startsWith } from "./path_conditions.ts";
import {
  isArrayItem,
  isObjectItem,
  itemType,
  numberOf,
  offsetWithin,
  PathFault,
  type PathItem,
  partsOf,
} from "./path_items.ts";
import { datetimeOf, doubleOf, numericMethod } from "./path_methods.ts";
import { calculated, negated, wholeNumber } from "./path_numbers.ts";

/** Receives an item that a JSON path selects. Returns true to end the run. */
export type Receiver = (item: PathItem) => boolean;

/** The result of a path predicate: true, false, or undefined for unknown. */
type Truth = boolean | undefined;

/** The values that depend on the position of an expression in the path, such as `@` and `last`. */
interface PathScope {
  /** The item to which the filter is applied, which `@` represents. */
  readonly current: PathItem;
  /** The length of the array to which the subscripts apply, for `last`. */
  readonly length: number;
  /** Whether a missing part of a document yields nothing instead of an error. */
  readonly isForgiving: boolean;
  /** The document that contains the item, and the number of that document, for `.keyvalue()`. */
  readonly base: { readonly document: JsonNode; readonly id: number };
}

export interface PathRunOptions {
  /** The object with the values of the variables. If undefined, every variable is null. */
  readonly variables: JsonNode | undefined;
  /** Whether timestamps without a time zone may be compared with timestamps that have one. */
  readonly usesZone: boolean;
}

type Part<Kind extends PathPart["kind"]> = PathPart & { readonly kind: Kind };

/**
 * The maximum number of items that a single run may visit. Visiting this many items takes about a
 * second.
 */
const ITEMS_MAX = 2 ** 22;
const OBJECT_ID_STEP = 10_000_000_000;

export class PathRun {
  readonly #path: JsonPath;
  readonly #document: JsonNode;
  readonly #options: PathRunOptions;
  readonly #isLax: boolean;
  #itemsLeft = ITEMS_MAX;
  /**
   * Whether the run tests only for the existence of an item. If so, a unary sign accepts items
   * that are not numbers, as in PostgreSQL.
   */
  #seeksAny = false;
  /**
   * The number of the last object that the path has created. The object of variables, if any, is
   * number 1.
   */
  #objects: number;

  constructor(path: JsonPath, document: JsonNode, options: PathRunOptions) {
    this.#path = path;
    this.#document = document;
    this.#options = options;
    this.#isLax = !path.isStrict;
    this.#objects = options.variables === undefined ? 0 : 1;
  }

  /**
   * Passes all items that the path selects to the receiver.
   *
   * @throws {DatabaseError} A PathFault, or an error that is always reported.
   */
  items(receive: Receiver): void {
    this.#follow(this.#path.root, this.#document, this.#scope(), receive);
  }

  /**
   * Whether the path selects any item. In strict mode, an error after the first item is also
   * thrown.
   */
  exists(): boolean {
    return this.#hasItem(this.#path.root, this.#document, this.#scope());
  }

  #scope(): PathScope {
    const base = { document: this.#document, id: 0 };
    return { current: this.#document, length: -1, isForgiving: this.#isLax, base };
  }

  #hasItem(part: PathPart, item: PathItem, scope: PathScope): boolean {
    let found = false;
    this.#seeking(this.#isLax, () =>
      this.#follow(part, item, scope, () => {
        found = true;
        return this.#isLax;
      }),
    );
    return found;
  }

  /** Passes an item to the next part of the path. */
  #next(part: PathPart, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    if (part.next === undefined) return receive(item);
    return this.#follow(part.next, item, scope, receive);
  }

  /**
   * Applies a part of the path to an item. In lax mode, an array that the part does not accept is
   * replaced by its elements.
   */
  #follow(part: PathPart, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    if (this.#isLax && isArrayItem(item) && takesNoArray(part)) {
      return item.some((element) => this.#apply(part, element, scope, receive));
    }
    return this.#apply(part, item, scope, receive);
  }

  #apply(part: PathPart, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    this.#itemsLeft -= 1;
    if (this.#itemsLeft < 0) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot evaluate the JSON path: it visits more than ${ITEMS_MAX} items`,
        { hint: "use fewer ** and filters, or search a smaller document" },
      );
    }
    switch (part.kind) {
      case "key":
      case "everyMember":
      case "everyElement":
      case "subscripts":
      case "levels":
        return this.#access(part, item, scope, receive);
      case "filter": {
        const isTrue = this.#test(part.condition, item, { ...scope, current: item }) === true;
        return isTrue && this.#next(part, item, scope, receive);
      }
      case "arithmetic":
        return this.#arithmetic(part, item, scope, receive);
      case "sign":
        return this.#sign(part, item, scope, receive);
      case "method":
        return this.#method(part, item, scope, receive);
      case "variable":
        return this.#variable(part, scope, receive);
      default: {
        const made = isCondition(part)
          ? (this.#test(part, item, scope) ?? null)
          : this.#simple(part, scope);
        return this.#next(part, made, scope, receive);
      }
    }
  }

  #simple(
    part: Part<"null" | "root" | "current" | "last" | "boolean" | "number" | "string">,
    scope: PathScope,
  ): PathItem {
    switch (part.kind) {
      case "null":
        return null;
      case "root":
        return this.#document;
      case "current":
        return scope.current;
      case "last":
        return { number: String(scope.length - 1) };
      case "boolean":
        return part.value;
      case "number":
        return { number: part.text };
      case "string":
        return part.text;
    }
  }

  #variable(part: Part<"variable">, scope: PathScope, receive: Receiver): boolean {
    const { variables } = this.#options;
    if (variables === undefined) return this.#next(part, null, scope, receive);
    const value = isJsonObject(variables) ? variables.get(part.text) : undefined;
    if (value === undefined) {
      throw new DatabaseError(
        "OBJECT_NOT_FOUND",
        `Cannot evaluate the JSON path: the variable "${part.text}" is not defined`,
        { hint: "pass the variable's value in the third argument, a JSON object" },
      );
    }
    return this.#next(part, value, { ...scope, base: { document: variables, id: 1 } }, receive);
  }

  #access(
    part: Part<"key" | "everyMember" | "everyElement" | "subscripts" | "levels">,
    item: PathItem,
    scope: PathScope,
    receive: Receiver,
  ): boolean {
    switch (part.kind) {
      case "key": {
        const value = isObjectItem(item) ? item.get(part.text) : undefined;
        if (value !== undefined) return this.#next(part, value, scope, receive);
        const why = isObjectItem(item)
          ? `the object has no key "${part.text}"`
          : `the ${itemType(item)} has no key "${part.text}"`;
        return this.#missing(scope, why);
      }
      case "everyMember":
        if (!isObjectItem(item))
          return this.#missing(scope, `the ${itemType(item)} has no members`);
        return this.#passAll(part, item.values(), scope, receive);
      case "everyElement":
        if (isArrayItem(item)) return this.#passAll(part, item, scope, receive);
        if (this.#isLax) return this.#next(part, item, scope, receive);
        return this.#missing(scope, `the ${itemType(item)} has no elements`);
      case "subscripts":
        return this.#subscripts(part, item, scope, receive);
      case "levels":
        return this.#levels(part, item, scope, receive);
    }
  }

  #passAll(
    part: PathPart,
    items: Iterable<JsonNode>,
    scope: PathScope,
    receive: Receiver,
  ): boolean {
    for (const each of items) if (this.#next(part, each, scope, receive)) return true;
    return false;
  }

  /**
   * Handles a missing part of the document. In a scope where parts may be missing, returns false,
   * so that the path yields nothing; otherwise throws.
   * @throws {PathFault}
   */
  #missing(scope: PathScope, why: string): false {
    if (scope.isForgiving) return false;
    throw new PathFault(why);
  }

  #subscripts(
    part: Part<"subscripts">,
    item: PathItem,
    scope: PathScope,
    receive: Receiver,
  ): boolean {
    if (!isArrayItem(item) && !this.#isLax) {
      return this.#missing(scope, `the ${itemType(item)} has no elements`);
    }
    const elements: readonly PathItem[] = isArrayItem(item) ? item : [item];
    const inside = { ...scope, length: elements.length };
    for (const { from, to } of part.subscripts) {
      const first = this.#index(from, item, inside);
      const last = to === undefined ? first : this.#index(to, item, inside);
      if (!scope.isForgiving && (first < 0 || first > last || last >= elements.length)) {
        throw new PathFault("an index is beyond the end of the array");
      }
      for (const each of elements.slice(Math.max(first, 0), Math.max(last + 1, 0))) {
        if (this.#next(part, each, inside, receive)) return true;
      }
    }
    return false;
  }

  #index(part: PathPart, item: PathItem, scope: PathScope): number {
    const items: PathItem[] = [];
    this.#follow(part, item, scope, (each) => {
      items.push(each);
      return false;
    });
    const number = items.length === 1 ? numberOf(items[0] ?? null) : undefined;
    if (number === undefined) throw new PathFault("an index must be a single number");
    const index = Number(wholeNumber(number, "toZero"));
    if (index >= -(2 ** 31) && index < 2 ** 31) return index + 0;
    throw new PathFault(`the index ${number} is out of range`);
  }

  #levels(part: Part<"levels">, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    const inside = { ...scope, isForgiving: true };
    if (part.first === 0 && this.#next(part, item, inside, receive)) return true;
    return this.#deeper(part, item, { level: 1, scope: inside }, receive);
  }

  #deeper(
    part: Part<"levels">,
    item: PathItem,
    { level, scope }: { level: number; scope: PathScope },
    receive: Receiver,
  ): boolean {
    if (level > part.last) return false;
    const areLeaves = part.first === Number.POSITIVE_INFINITY;
    for (const each of partsOf(item) ?? []) {
      const parts = partsOf(each);
      const isMeant = level >= part.first || (areLeaves && parts === undefined);
      if (isMeant && this.#next(part, each, scope, receive)) return true;
      if (parts === undefined) continue;
      if (this.#deeper(part, each, { level: level + 1, scope }, receive)) return true;
    }
    return false;
  }

  /**
   * Returns all items of an operand in a JSON path. In lax mode, arrays are replaced by their
   * elements.
   */
  #operand(part: PathPart, item: PathItem, scope: PathScope, unwraps = true): PathItem[] {
    const items: PathItem[] = [];
    this.#seeking(false, () =>
      this.#follow(part, item, scope, (each) => {
        if (unwraps && this.#isLax && isArrayItem(each)) {
          for (const element of each) items.push(element);
        } else items.push(each);
        return false;
      }),
    );
    return items;
  }

  /**
   * Runs `follow` with a temporary value of #seeksAny, and restores the previous value afterwards.
   *
   * @param seeksAny Whether `follow` tests only for the existence of an item.
   */
  #seeking(seeksAny: boolean, follow: () => void): void {
    const before = this.#seeksAny;
    this.#seeksAny = seeksAny;
    try {
      follow();
    } finally {
      this.#seeksAny = before;
    }
  }

  #arithmetic(
    part: Part<"arithmetic">,
    item: PathItem,
    scope: PathScope,
    receive: Receiver,
  ): boolean {
    const left = this.#operand(part.left, item, scope);
    const right = this.#operand(part.right, item, scope);
    const number = withFaults(() =>
      calculated(
        part.op,
        singleNumber(left, `the left operand of ${part.op}`),
        singleNumber(right, `the right operand of ${part.op}`),
      ),
    );
    return this.#next(part, { number }, scope, receive);
  }

  #sign(part: Part<"sign">, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    for (const each of this.#operand(part.operand, item, scope)) {
      const number = numberOf(each);
      if (number === undefined && this.#seeksAny && part.next === undefined) continue;
      if (number === undefined) throw new PathFault(`the operand of ${part.op} is not a number`);
      const signed = { number: part.op === "-" ? negated(number) : number };
      if (this.#next(part, signed, scope, receive)) return true;
    }
    return false;
  }

  #method(part: Part<"method">, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    switch (part.name) {
      case "type":
        return this.#next(part, itemType(item), scope, receive);
      case "size": {
        if (!isArrayItem(item) && !this.#isLax) {
          return this.#missing(scope, ".size() requires an array");
        }
        const number = String(isArrayItem(item) ? item.length : 1);
        return this.#next(part, { number }, scope, receive);
      }
      case "double":
        return this.#next(part, doubleOf(item), scope, receive);
      case "datetime":
        return this.#next(part, datetimeOf(item, part.template), scope, receive);
      case "keyvalue":
        return this.#keyValues(part, item, scope, receive);
      default:
        return this.#next(part, numericMethod(part.name, item), scope, receive);
    }
  }

  #keyValues(part: PathPart, item: PathItem, scope: PathScope, receive: Receiver): boolean {
    if (!isObjectItem(item)) throw new PathFault(".keyvalue() requires an object");
    const { base } = scope;
    const offset = offsetWithin(base.document, item) ?? 0;
    const id = { number: String(base.id * OBJECT_ID_STEP + offset) };
    for (const [key, value] of item) {
      const made = jsonObject([
        ["key", key],
        ["value", value],
        ["id", id],
      ]);
      this.#objects += 1;
      const inside = { ...scope, base: { document: made, id: this.#objects } };
      if (this.#next(part, made, inside, receive)) return true;
    }
    return false;
  }

  #test(condition: PathPredicate, item: PathItem, scope: PathScope): Truth {
    switch (condition.kind) {
      case "and": {
        const left = this.#test(condition.left, item, scope);
        if (left === false) return false;
        const right = this.#test(condition.right, item, scope);
        return right === true ? left : right;
      }
      case "or": {
        const left = this.#test(condition.left, item, scope);
        if (left === true) return true;
        const right = this.#test(condition.right, item, scope);
        return right === false ? left : right;
      }
      case "not": {
        const operand = this.#test(condition.operand, item, scope);
        return operand === undefined ? undefined : !operand;
      }
      case "isUnknown":
        return this.#test(condition.operand, item, scope) === undefined;
      case "exists":
        return orUnknown(() => this.#hasItem(condition.operand, item, scope));
      default:
        return this.#compare(condition, item, scope);
    }
  }

  /** Compares every item of the left operand with every item of the right operand. */
  #compare(
    condition: PathPredicate & { kind: "comparison" | "startsWith" | "likeRegex" },
    item: PathItem,
    scope: PathScope,
  ): Truth {
    const sides = orUnknown(() => this.#comparedItems(condition, item, scope));
    if (sides === undefined) return undefined;
    let isUnknown = false;
    let isFound = false;
    for (const left of sides.left) {
      for (const right of sides.right) {
        const truth = sides.test(left, right);
        if (truth === undefined && !this.#isLax) return undefined;
        if (truth === true && this.#isLax) return true;
        isUnknown ||= truth === undefined;
        isFound ||= truth === true;
      }
    }
    if (isFound) return true;
    return isUnknown ? undefined : false;
  }

  #comparedItems(
    condition: PathPredicate & { kind: "comparison" | "startsWith" | "likeRegex" },
    item: PathItem,
    scope: PathScope,
  ): ComparedItems {
    if (condition.kind === "likeRegex") {
      const { flags, pattern } = condition;
      const left = this.#operand(condition.operand, item, scope);
      return { left, right: [null], test: (text) => matchesPattern(text, pattern, flags) };
    }
    const left = this.#operand(condition.left, item, scope);
    const isComparison = condition.kind === "comparison";
    const right = this.#operand(condition.right, item, scope, isComparison);
    if (!isComparison) return { left, right, test: startsWith };
    const { op } = condition;
    const { usesZone } = this.#options;
    return { left, right, test: (l, r) => compareItems(op, [l, r], usesZone) };
  }
}

interface ComparedItems {
  readonly left: readonly PathItem[];
  readonly right: readonly PathItem[];
  readonly test: (left: PathItem, right: PathItem) => Truth;
}

function takesNoArray(part: PathPart): boolean {
  if (part.kind === "method") return part.name !== "type" && part.name !== "size";
  return part.kind === "key" || part.kind === "everyMember" || part.kind === "filter";
}

/**
 * Evaluates a condition. Returns undefined, which means unknown, if the evaluation throws a
 * PathFault.
 */
function orUnknown<T>(compute: () => T): T | undefined {
  try {
    return compute();
  } catch (error) {
    // A condition is unknown if parts of the document are missing or have the wrong type.
    if (error instanceof PathFault) return undefined;
    throw error;
  }
}

/** Converts arithmetic errors to a PathFault. */
function withFaults<T>(compute: () => T): T {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error instanceof PathFault) throw error;
    throw new PathFault(error.message, error.code);
  }
}

function singleNumber(items: readonly PathItem[], side: string): string {
  const number = items.length === 1 ? numberOf(items[0] ?? null) : undefined;
  if (number !== undefined) return number;
  throw new PathFault(`${side} must be a single number`);
}
