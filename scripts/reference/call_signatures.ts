/**
 * Finds the signatures of aggregates and window functions for the reference page on functions.
 *
 * The signatures of an aggregate are found by resolving it for every type, or pair of types: the
 * code of an aggregate accepts or refuses types, so there is no list that could be read instead.
 */
import {
  isOrderedSetAggregate,
  resolveAggregate,
} from "../../src/sql/functions/aggregate/aggregates.ts";
import { windowFunctionShape } from "../../src/sql/functions/window_functions.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  decimalType,
  FILE,
  FLOAT,
  GEOMETRIC_KINDS,
  INT,
  INTERVAL,
  isInteger,
  isNumeric,
  JSON_TEXT,
  JSONB,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  UUID,
  XML,
} from "../../src/types/mod.ts";

/** A type of each kind that an argument can have. */
const TYPES: readonly DataType[] = [
  SMALLINT,
  INT,
  BIGINT,
  decimalType(10, 2),
  FLOAT,
  DOUBLE,
  BOOLEAN,
  TEXT,
  BYTES,
  UUID,
  DATE,
  TIME,
  TIMESTAMP,
  DATETIME,
  INTERVAL,
  JSON_TEXT,
  JSONB,
  FILE,
  { kind: "embedding", dimensions: 3 },
  { kind: "array", element: TEXT },
  { kind: "range", bound: INT },
  { kind: "multirange", bound: INT },
  XML,
  ...GEOMETRIC_KINDS.map((kind): DataType => ({ kind })),
];

/**
 * The maximum number of types that a signature lists. If more types are accepted, it lists those
 * that are refused instead.
 */
const LISTED_MAX = 6;

const ARGUMENTS_MAX = 2;

/** A form of an aggregate: the types of its arguments after casting, and of its result. */
interface Accepted {
  readonly types: readonly DataType[];
  readonly result: DataType;
}

type Naming = (type: DataType) => string;

/** Returns the signatures of an aggregate, in order of the number of arguments. */
export function aggregateSignatures(name: string, typeName: Naming): string[] {
  const nameOf: Naming = (type) =>
    type.kind === "array" && type.element.kind === "text" ? "array" : typeName(type);
  const lists: (readonly DataType[])[] = [[]];
  const found: string[] = [];
  for (let count = 0; count <= ARGUMENTS_MAX; count += 1) {
    const accepted = lists.flatMap((types): Accepted[] => {
      const form = resolveAggregate(name, types);
      return form === undefined ? [] : [{ types: form.argumentTypes, result: form.result }];
    });
    found.push(...signaturesOf(name, accepted, nameOf));
    const longer = lists.flatMap((types) => TYPES.map((type) => [...types, type]));
    lists.splice(0, lists.length, ...longer);
  }
  return found;
}

/**
 * Describes the accepted forms of an aggregate. A single rule that covers all forms gives one
 * signature. Otherwise, the forms are grouped by the types of their first arguments.
 */
function signaturesOf(name: string, accepted: readonly Accepted[], nameOf: Naming): string[] {
  const rule = ruleOf(accepted, nameOf);
  if (rule !== undefined) return [signature(name, accepted, { nameOf, result: rule })];
  const byFirst = Map.groupBy(accepted, ({ types }) => types.slice(0, -1).map(nameOf).join());
  if (byFirst.size > 1) {
    return [...byFirst.values()].flatMap((forms) => signaturesOf(name, forms, nameOf));
  }
  const byResult = Map.groupBy(accepted, ({ result }) => nameOf(result));
  return [...byResult].map(([result, forms]) => signature(name, forms, { nameOf, result }));
}

/**
 * Returns a rule that gives the result type of every accepted form; undefined if there is none.
 */
function ruleOf(accepted: readonly Accepted[], nameOf: Naming): string | undefined {
  const [first] = accepted;
  if (first === undefined || !areIndependent(accepted, nameOf)) return undefined;
  const all = (result: (form: Accepted) => string | undefined): boolean =>
    accepted.every((form) => result(form) === nameOf(form.types.at(-1) ?? form.result));
  if (accepted.every(({ result }) => nameOf(result) === nameOf(first.result))) {
    return nameOf(first.result);
  }
  if (all(({ result }) => nameOf(result))) return "the same type";
  const isList = all(({ result }) => {
    return result.kind === "array" ? nameOf(result.element) : undefined;
  });
  return isList ? "array of that type" : undefined;
}

/**
 * Returns whether the types that each argument accepts are independent of the other arguments'
 * types.
 */
function areIndependent(accepted: readonly Accepted[], nameOf: Naming): boolean {
  const forms = new Set(accepted.map(({ types }) => types.map(nameOf).join()));
  const width = accepted[0]?.types.length ?? 0;
  let product = 1;
  for (let at = 0; at < width; at += 1) {
    product *= new Set(accepted.map(({ types }) => nameOf(types[at] ?? TEXT))).size;
  }
  return forms.size === product;
}

function signature(
  name: string,
  accepted: readonly Accepted[],
  { nameOf, result }: { nameOf: Naming; result: string },
): string {
  const width = accepted[0]?.types.length ?? 0;
  const positions = Array.from({ length: width }, (_, position) => {
    return typesText(new Set(accepted.map(({ types }) => nameOf(types[position] ?? TEXT))), nameOf);
  });
  if (isOrderedSetAggregate(name)) {
    const ordered = positions.pop() ?? "";
    return `${name}(${positions.join(", ")}) WITHIN GROUP (ORDER BY ${ordered}) → ${result}`;
  }
  return `${name}(${width === 0 ? "*" : positions.join(", ")}) → ${result}`;
}

/**
 * Describes a set of types by a single word, as a list, or as all types except those in a list.
 */
function typesText(accepted: ReadonlySet<string>, nameOf: Naming): string {
  const isOf = (types: readonly DataType[]): boolean =>
    accepted.size === new Set(types.map(nameOf)).size &&
    types.every((type) => accepted.has(nameOf(type)));
  if (isOf(TYPES)) return "any";
  if (isOf(TYPES.filter(isNumeric))) return "number";
  if (isOf(TYPES.filter(isInteger))) return "whole number";
  if (accepted.size <= LISTED_MAX) return [...accepted].join(" or ");
  const lacking = TYPES.map(nameOf).filter((type) => !accepted.has(type));
  return `any but ${lacking.join(", ")}`;
}

/** Returns the signature of a window function that is not an aggregate. */
export function windowSignature(name: string, nameOf: Naming): string {
  const counts = Array.from({ length: 4 }, (_, count) => count);
  const shapes = counts.map((count) => windowFunctionShape(name, count));
  const shape = shapes.find((each) => each !== undefined);
  if (shape === undefined) throw new Error(`Cannot describe ${name}: it accepts no arguments`);
  const [least, most] = shape.arity;
  const parameters = counts.slice(0, most).map((at) => {
    const type = shape.counts.includes(at) ? "whole number" : "any";
    const text = at === shape.alike ? "the same type" : type;
    const separated = at === 0 ? text : `, ${text}`;
    return at < least ? separated : `[${separated}]`;
  });
  const result = shape.result === undefined ? "the same type" : nameOf(shape.result);
  return `${name}(${parameters.join("")}) OVER (…) → ${result}`;
}
