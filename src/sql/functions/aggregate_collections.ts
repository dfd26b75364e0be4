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

interface Piece<Text> {
  readonly text: Text;
  readonly separator: Text | undefined;
}

/** Each separator stands before its own row's text; a NULL one is empty. */
export function stringState(type: DataType): AggregateState {
  if (type.kind === "bytes") return bytesState();
  return new CollectState<Piece<string>>(pieceOf, (pieces) =>
    pieces
      .map(({ text, separator }, index) => (index === 0 ? text : (separator ?? "") + text))
      .join(""),
  );
}

function bytesState(): AggregateState {
  return new CollectState<Piece<Uint8Array>>(pieceOf, (pieces) => {
    const parts: Uint8Array[] = [];
    for (const [index, { text, separator }] of pieces.entries()) {
      if (index > 0 && separator !== undefined) parts.push(separator);
      parts.push(text);
    }
    return new Uint8Array(Buffer.concat(parts));
  });
}

function pieceOf<Text>([value = null, separator = null]: readonly Value[]):
  | Piece<Text>
  | undefined {
  if (value === null) return undefined;
  return { text: value as Text, separator: separator === null ? undefined : (separator as Text) };
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
