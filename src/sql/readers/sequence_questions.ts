/**
 * Implements nextval, currval, lastval and setval for a statement in a reader. The reader asks the
 * event loop, which advances sequences and reserves their numbers durably. Numbers are requested
 * in blocks, and unused numbers of a block are given back.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Value, Whole } from "../../types/mod.ts";
import type { NextNumberRight, SequenceCalls } from "../functions/base/function.ts";

/**
 * The maximum number of sequence numbers in one request. The first request asks for one number,
 * and each further request for twice as many as the last.
 */
const NUMBERS_MAX = 1024;

/** A call of a sequence function, as a reader sends it to the event loop. */
export type SequenceCall =
  | {
      readonly op: "next";
      readonly name: string;
      readonly right: NextNumberRight;
      readonly count: number;
    }
  | { readonly op: "current"; readonly name: string }
  | { readonly op: "last" }
  | {
      readonly op: "set";
      readonly name: string;
      readonly value: Whole;
      readonly isCalled: boolean;
    }
  | { readonly op: "owned"; readonly table: string; readonly column: string }
  | {
      readonly op: "giveBack";
      readonly name: string;
      readonly used: Whole;
      readonly last: Whole;
    };

/**
 * Runs a call of a sequence function on the event loop to answer a reader. @throws {DatabaseError}
 */
export function answeredCall(call: SequenceCall, sequences: SequenceCalls): readonly Value[] {
  switch (call.op) {
    case "next":
      return numbersFor(call, sequences);
    case "current":
      return [sequences.current(call.name)];
    case "last":
      return [sequences.last()];
    case "set":
      return [sequences.set(call.name, call.value, call.isCalled)];
    case "owned":
      return [sequences.ownedBy(call.table, call.column)];
    case "giveBack":
      sequences.giveBack(call.name, call);
      return [];
  }
}

/**
 * Takes the requested numbers from a sequence, or fewer if the sequence ends. @throws
 * {DatabaseError}
 */
function numbersFor(
  { count, name, right }: Extract<SequenceCall, { op: "next" }>,
  sequences: SequenceCalls,
): readonly Whole[] {
  const numbers = [sequences.next(name, right)];
  try {
    while (numbers.length < count) numbers.push(sequences.next(name, right));
  } catch (error) {
    // The error is not lost: if the statement needs more numbers, it asks again and receives the
    // error.
    if (!(error instanceof DatabaseError)) throw error;
  }
  return numbers;
}

interface AskedNumbers {
  readonly values: readonly Value[];
  taken: number;
}

export class AskedSequenceCalls implements SequenceCalls {
  readonly #ask: (call: SequenceCall) => readonly Value[];
  readonly #blocks = new Map<string, AskedNumbers>();

  /**
   * Gives a reader access to sequences.
   * @param ask Sends a question to the event loop and waits for the answer.
   * @throws {DatabaseError}
   */
  constructor(ask: (call: SequenceCall) => readonly Value[]) {
    this.#ask = ask;
  }

  next(name: string, right: NextNumberRight): Whole {
    let block = this.#blocks.get(name);
    if (block === undefined || block.taken === block.values.length) {
      const count = Math.min(NUMBERS_MAX, 2 * (block?.values.length ?? 0.5));
      block = { values: this.#ask({ op: "next", name, right, count }), taken: 0 };
      this.#blocks.set(name, block);
    }
    block.taken += 1;
    return lastIn(block);
  }

  current(name: string): Whole {
    const block = this.#blocks.get(name);
    return block === undefined ? this.#whole({ op: "current", name }) : lastIn(block);
  }

  last(): Whole {
    this.finish();
    return this.#whole({ op: "last" });
  }

  set(name: string, value: Whole, isCalled: boolean): Whole {
    this.#blocks.delete(name);
    return this.#whole({ op: "set", name, value, isCalled });
  }

  ownedBy(table: string, column: string): string | null {
    const [name = null] = this.#ask({ op: "owned", table, column });
    return name as string | null;
  }

  giveBack(name: string, numbers: { readonly used: Whole; readonly last: Whole }): void {
    this.#ask({ op: "giveBack", name, ...numbers });
  }

  /** Gives the unused numbers of all blocks back to the event loop. */
  finish(): void {
    for (const [name, block] of this.#blocks) {
      const last = block.values.at(-1) as Whole;
      if (block.taken < block.values.length) this.giveBack(name, { used: lastIn(block), last });
    }
    this.#blocks.clear();
  }

  #whole(call: SequenceCall): Whole {
    const [value] = this.#ask(call);
    return value as Whole;
  }
}

function lastIn({ taken, values }: AskedNumbers): Whole {
  return defined(
    values[taken - 1],
    "reader thread: sequence number is missing from the answer",
  ) as Whole;
}
