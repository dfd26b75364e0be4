/**
 * Computes the keys that a plan looks up: all combinations of the possible values of each key
 * column.
 */
import {
  type DataType,
  elementsOf,
  isArrayValue,
  type Row,
  type Value,
} from "../../../types/mod.ts";
import type { KeyPart, SoughtKeys } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { keyTextOf } from "../keys/key_text.ts";

/** The keys to look up, and an upper bound on their number. */
export interface LookedUp {
  readonly keys: Iterable<Row>;
  readonly count: number;
}

const ONLY_NULL: readonly Value[] = [null];

/**
 * Compiles the lists of keys that an access to a table looks up.
 *
 * @param keyTypes The types of the columns.
 * @returns A function that returns the distinct keys for a run. Keys that contain NULL are left
 *   out, because NULL equals nothing, unless rows with NULL are wanted.
 */
export function compileSought(
  sought: SoughtKeys,
  keyTypes: readonly DataType[],
): (context: ExecutionContext) => LookedUp {
  const alternatives = sought.map((parts) =>
    parts.map((part) => ({ isNull: part.isNull === true, valuesOf: compilePart(part) })),
  );
  return (context) => {
    let count = 0;
    const lists = alternatives.map((parts) => {
      const own = parts.map(({ isNull, valuesOf }, i) =>
        isNull ? ONLY_NULL : distinct(valuesOf(context), keyTypes.slice(i, i + 1)),
      );
      count += own.reduce((product, { length }) => product * length, 1);
      return own;
    });
    return { keys: combinations(lists, keyTypes), count };
  };
}

/** Compiles the possible values of a single key column. They may include NULL and duplicates. */
export function compilePart({
  constants,
  items,
  lists,
}: KeyPart): (context: ExecutionContext) => readonly Value[] {
  if (items.length === 0 && lists.length === 0) return () => constants;
  const scalars = items.map((item) => compileScalar(item));
  const arrays = lists.map((list) => compileScalar(list));
  return (context) => {
    const values = scalars.map((scalar) => scalar(context)).concat(constants);
    for (const array of arrays) {
      const elements = array(context);
      if (!isArrayValue(elements)) continue;
      for (const each of elementsOf(elements)) values.push(each);
    }
    return values;
  };
}

/** Returns the distinct values of a list, without NULL. */
export function distinct(values: readonly Value[], types: readonly DataType[]): readonly Value[] {
  const [only] = values;
  if (values.length === 1 && only !== undefined) return only === null ? [] : values;
  const found = new Map<string, Value>();
  for (const value of values) if (value !== null) found.set(keyTextOf(types, [value]), value);
  return [...found.values()];
}

/**
 * Yields every distinct key that consists of one value from each list of an alternative. The keys
 * are created on demand, because even short lists have many combinations.
 */
function* combinations(
  alternatives: readonly (readonly (readonly Value[])[])[],
  types: readonly DataType[],
): Generator<Row, void> {
  const isOne = alternatives.length === 1;
  const seen = new Set<string>();
  for (const lists of alternatives) {
    const count = lists.reduce((product, { length }) => product * length, 1);
    for (let number = 0; number < count; number += 1) {
      const row = rowOf(lists, number);
      if (!isOne) {
        const text = keyTextOf(types, row);
        if (seen.has(text)) continue;
        seen.add(text);
      }
      yield row;
    }
  }
}

/** Returns the combination with the given number. The value from the last list varies fastest. */
function rowOf(lists: readonly (readonly Value[])[], number: number): Row {
  const row: Value[] = Array.from({ length: lists.length });
  let rest = number;
  for (let i = lists.length - 1; i >= 0; i -= 1) {
    const list = lists[i] ?? [];
    row[i] = list[rest % list.length] ?? null;
    rest = Math.floor(rest / list.length);
  }
  return row;
}
