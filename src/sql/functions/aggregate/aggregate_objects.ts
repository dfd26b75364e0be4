/**
 * Defines jsonb_object_agg, which collects the members (key-value pairs) of each group and puts
 * them into canonical order when the result is read.
 *
 * A member is converted to text when it is added, and only the keys are sorted at the end, which
 * takes half a second for 300,000 members.
 */
import { sortedNumbers } from "../../../base/watched_sort.ts";
import { compareCodePoints, type Value } from "../../../types/mod.ts";
import type { AggregateState } from "./aggregate_state.ts";

interface ObjectMembers {
  readonly keys: string[];
  /** The byte length of each key. Keys are ordered by length first. */
  readonly lengths: number[];
  /** The members of the object as JSON text, each including its key. */
  readonly texts: string[];
  /** The completed object; undefined until it is first read, and again once a member is added. */
  object: string | undefined;
}

interface MemberReader {
  /**
   * Returns the key as a canonical JSON string.
   * @throws {DatabaseError} INVALID_VALUE
   */
  readonly readKey: (key: Value) => string;
  /**
   * Returns the value as canonical JSON.
   *
   * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
   */
  readonly readValue: (value: Value) => string;
}

export class JsonbObjectState implements AggregateState {
  readonly keepsRows = true;
  readonly #groups: ObjectMembers[] = [];
  readonly #reader: MemberReader;

  constructor(reader: MemberReader) {
    this.#reader = reader;
  }

  add(group: number, key: Value = null, value: Value = null): void {
    const written = this.#reader.readKey(key);
    const text = `${written}: ${this.#reader.readValue(value)}`;
    this.#groups[group] ??= { keys: [], lengths: [], texts: [], object: undefined };
    const members = this.#groups[group];
    const name = keyOf(written);
    members.keys.push(name);
    members.lengths.push(Buffer.byteLength(name));
    members.texts.push(text);
    members.object = undefined;
  }

  finish(group: number, checkTime: () => void = () => undefined): Value {
    const members = this.#groups[group];
    if (members === undefined) return null;
    members.object ??= objectOf(members, checkTime);
    return members.object;
  }
}

function keyOf(written: string): string {
  return written.includes("\\") ? (JSON.parse(written) as string) : written.slice(1, -1);
}

/** Writes a JSON object. If a key is repeated, its last value wins. */
function objectOf({ keys, lengths, texts }: ObjectMembers, checkTime: () => void): string {
  const compare = (left: number, right: number): number => {
    const byLength = (lengths[left] ?? 0) - (lengths[right] ?? 0);
    return byLength || compareCodePoints(keys[left] ?? "", keys[right] ?? "") || left - right;
  };
  const order = sortedNumbers(keys.length, compare, checkTime);
  const written: string[] = [];
  for (const [at, member] of order.entries()) {
    const isRepeated = at + 1 < order.length && keys[order[at + 1] ?? 0] === keys[member];
    if (!isRepeated) written.push(texts[member] ?? "");
  }
  return `{${written.join(", ")}}`;
}
