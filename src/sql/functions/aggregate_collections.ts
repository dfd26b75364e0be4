/**
 * Aggregates that keep all values of a group: string_agg, array_agg and the JSON ones.
 */
import { type DataType, type Value } from "../../types/mod.ts";
import type { AggregateState } from "./aggregate_state.ts";
import { finishedJson, jsonKeyOf, jsonTextOf } from "./json_build.ts";

/** Keeps what `read` makes of each row; undefined is left out. Over no rows the result is NULL. */
class CollectState<Item> implements AggregateState {
  readonly keepsRows = true;
  readonly #items: Item[][] = [];
  readonly #read: (values: readonly Value[]) => Item | undefined;
  readonly #finish: (items: readonly Item[]) => Value;

  constructor(
    read: (values: readonly Value[]) => Item | undefined,
    finish: (items: readonly Item[]) => Value,
  ) {
    this.#read = read;
    this.#finish = finish;
  }

  add(group: number, ...values: readonly Value[]): void {
    const item = this.#read(values);
    if (item === undefined) return;
    const items = this.#items[group];
    if (items === undefined) this.#items[group] = [item];
    else items.push(item);
  }

  finish(group: number): Value {
    const items = this.#items[group];
    return items === undefined ? null : this.#finish(items);
  }
}

/**
 * Each separator stands before its own row's text; a NULL one is empty.
 *
 * Texts are kept with their separators between them, so that the result is one join.
 */
export function stringState(type: DataType): AggregateState {
  if (type.kind !== "bytes") return new JoinState<string>("", (parts) => parts.join(""));
  return new JoinState<Uint8Array>(
    new Uint8Array(0),
    (parts) => new Uint8Array(Buffer.concat(parts)),
  );
}

class JoinState<Text extends Value> implements AggregateState {
  readonly keepsRows = true;
  /** Of each group: what stands before a text, and the text, for each row. */
  readonly #parts: Text[][] = [];
  readonly #empty: Text;
  readonly #join: (parts: Text[]) => Text;

  constructor(empty: Text, join: (parts: Text[]) => Text) {
    this.#empty = empty;
    this.#join = join;
  }

  add(group: number, text: Value = null, separator: Value = null): void {
    if (text === null) return;
    const parts = this.#parts[group];
    // Both arguments were cast to the type of the texts.
    if (parts === undefined) this.#parts[group] = [this.#empty, text as Text];
    else parts.push(separator === null ? this.#empty : (separator as Text), text as Text);
  }

  finish(group: number): Value {
    const parts = this.#parts[group];
    return parts === undefined ? null : this.#join(parts);
  }
}

export function arrayState(): AggregateState {
  return new CollectState<Value>(
    ([value = null]) => value,
    (items) => [...items],
  );
}

export function jsonArrayState(type: DataType, binary: boolean): AggregateState {
  const isStructured = type.kind === "array" || (type.kind === "json" && type.isRow === true);
  const separator = isStructured ? ", \n " : ", ";
  return new CollectState<string>(
    ([value = null]) => jsonTextOf(type, value),
    (items) => finishedJson(`[${items.join(separator)}]`, binary),
  );
}

export function jsonObjectState(
  types: { key: DataType; value: DataType },
  binary: boolean,
): AggregateState {
  return new CollectState<string>(
    ([key = null, value = null]) =>
      `${jsonKeyOf(types.key, key)} : ${jsonTextOf(types.value, value)}`,
    (items) => finishedJson(`{ ${items.join(", ")} }`, binary),
  );
}
