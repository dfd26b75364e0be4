/**
 * jsonb_object_agg: the members of each group, in canonical order when they are asked for.
 *
 * A member is written when it is added. What is left for the end is the order of the keys, and of a
 * large object that takes many turns: 300,000 members would hold up everybody for half a second.
 */
import { inOneTurn } from "../../../base/steps.ts";
import { sortSteps } from "../../../base/stepwise_sort.ts";
import { compareCodePoints, type Value } from "../../../types/mod.ts";
import type { AggregateState } from "./aggregate_state.ts";

/** Members of an object that is made in one step. */
const MEMBERS_AT_ONCE_MAX = 512;

/** Members that are written at a step. */
const MEMBERS_PER_STEP = 4096;

interface Members {
  readonly keys: string[];
  /** The bytes of each key, by which keys are ordered first. */
  readonly lengths: number[];
  /** Each with its key, as the object has it. */
  readonly texts: string[];
  /** The object; undefined until it is asked for, and when a member has come since. */
  object: string | undefined;
}

interface MemberReader {
  /** A string of canonical JSON. @throws {DatabaseError} INVALID_VALUE */
  readonly readKey: (key: Value) => string;
  /** Canonical JSON. @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE */
  readonly readValue: (value: Value) => string;
}

export class JsonbObjectState implements AggregateState {
  readonly keepsRows = true;
  readonly #groups: Members[] = [];
  /** Groups whose object takes more than a step. */
  readonly #long = new Set<number>();
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
    if (members.keys.length > MEMBERS_AT_ONCE_MAX) this.#long.add(group);
  }

  *settle(): Generator<undefined, void> {
    for (const group of this.#long) {
      const members = this.#groups[group];
      if (members !== undefined) members.object ??= yield* objectSteps(members);
      yield undefined;
    }
    this.#long.clear();
  }

  finish(group: number): Value {
    const members = this.#groups[group];
    if (members === undefined) return null;
    members.object ??= inOneTurn(objectSteps(members));
    return members.object;
  }
}

function keyOf(written: string): string {
  return written.includes("\\") ? (JSON.parse(written) as string) : written.slice(1, -1);
}

/** Writes an object; of repeated keys the last wins. */
function* objectSteps({ keys, lengths, texts }: Members): Generator<undefined, string> {
  const order = yield* sortSteps(keys.length, (left, right) => {
    const byLength = (lengths[left] ?? 0) - (lengths[right] ?? 0);
    return byLength || compareCodePoints(keys[left] ?? "", keys[right] ?? "") || left - right;
  });
  const pieces: string[] = [];
  for (let start = 0; start < order.length; start += MEMBERS_PER_STEP) {
    const written: string[] = [];
    const end = Math.min(order.length, start + MEMBERS_PER_STEP);
    for (let at = start; at < end; at += 1) {
      const member = order[at] ?? 0;
      const isRepeated = at + 1 < order.length && keys[order[at + 1] ?? 0] === keys[member];
      if (!isRepeated) written.push(texts[member] ?? "");
    }
    if (written.length > 0) pieces.push(written.join(", "));
    if (end < order.length) yield undefined;
  }
  return `{${pieces.join(", ")}}`;
}
