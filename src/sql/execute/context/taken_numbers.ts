/**
 * Stores the numbers that a request or transaction has taken from sequences, which currval and
 * lastval return.
 */
import type { Whole } from "../../../types/mod.ts";

export class TakenNumbers {
  #bySequence = new Map<number, Whole>();
  #lastSequence: number | undefined;

  note(sequenceId: number, value: Whole): void {
    this.#bySequence.set(sequenceId, value);
    this.#lastSequence = sequenceId;
  }

  /** Replaces the stored number of a sequence with the number set by setval. */
  correct(sequenceId: number, value: Whole): void {
    this.#bySequence.set(sequenceId, value);
  }

  /** Returns a function that restores the numbers stored at the time of this call. */
  saved(): () => void {
    const numbers = new Map(this.#bySequence);
    const last = this.#lastSequence;
    return () => {
      this.#bySequence = new Map(numbers);
      this.#lastSequence = last;
    };
  }

  of(sequenceId: number): Whole | undefined {
    return this.#bySequence.get(sequenceId);
  }

  get last(): Whole | undefined {
    return this.#lastSequence === undefined ? undefined : this.#bySequence.get(this.#lastSequence);
  }
}
