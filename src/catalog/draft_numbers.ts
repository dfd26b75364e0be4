/**
 * Issues sequence numbers within a transaction that has changed definitions. The numbers of a
 * sequence that the transaction has created or restarted exist only in memory until the commit.
 * All other sequences behave as they do outside the transaction, so their numbers are not rolled
 * back. These sequences keep the options that they have outside the transaction, because other
 * transactions use the same blocks of numbers.
 */
import type { Clock } from "../base/clock.ts";
import type { Whole } from "../types/mod.ts";
import type { IssuedNumbers } from "./definitions.ts";
import { type CountedSequence, type SequenceMark, SequenceNumbers } from "./sequence_numbers.ts";

/** Access to the sequence numbers outside the transaction. */
export interface OutsideNumbers {
  readonly clock: Clock;
  readonly numbers: IssuedNumbers;
  /** Returns a sequence with the options that it has outside the transaction. */
  readonly sequenceById: (sequenceId: number) => CountedSequence | undefined;
}

export class DraftNumbers implements IssuedNumbers {
  readonly #outside: OutsideNumbers;
  readonly #inside: SequenceNumbers;
  /** The sequences whose numbers exist only in memory until the commit, keyed by id. */
  readonly #own: Map<number, CountedSequence>;

  /**
   * Creates the source of sequence numbers for a transaction that changes definitions.
   * @param from The numbers of an earlier state of the transaction, to be copied.
   */
  constructor(outside: OutsideNumbers, from?: DraftNumbers) {
    this.#outside = outside;
    this.#own = new Map(from?.marked());
    const known = from?.ownMarks() ?? [];
    this.#inside = new SequenceNumbers({ clock: outside.clock, known, marks: { store() {} } });
  }

  /** Returns a copy. Numbers that the copy issues do not affect the original. */
  copy(): DraftNumbers {
    return new DraftNumbers(this.#outside, this);
  }

  /** From now on, keeps the numbers of a sequence in memory only, until the commit. */
  adopt(sequence: CountedSequence): void {
    this.#own.set(sequence.sequenceId, sequence);
  }

  marked(): ReadonlyMap<number, CountedSequence> {
    return this.#own;
  }

  /** Returns the current numbers of the sequences that are kept only in memory. */
  ownMarks(): SequenceMark[] {
    return [...this.#own.values()].map((sequence) => this.#inside.mark(sequence));
  }

  next(given: CountedSequence): Whole {
    const { numbers, sequence } = this.#counting(given);
    return numbers.next(sequence);
  }

  mark(given: CountedSequence): SequenceMark {
    const { numbers, sequence } = this.#counting(given);
    return numbers.mark(sequence);
  }

  set(given: CountedSequence, value: Whole, isCalled: boolean): void {
    const { numbers, sequence } = this.#counting(given);
    numbers.set(sequence, value, isCalled);
  }

  takeBack(given: CountedSequence, now: SequenceMark, before: SequenceMark): void {
    const { numbers, sequence } = this.#counting(given);
    numbers.takeBack(sequence, now, before);
  }

  giveBack(sequences: Iterable<CountedSequence>): void {
    const own = [...sequences].filter(({ sequenceId }) => this.#own.has(sequenceId));
    this.#inside.giveBack(own);
    // A sequence with changed options continues with its new options.
    for (const sequence of own) this.adopt(sequence);
  }

  marks(): readonly SequenceMark[] {
    return this.#outside.numbers.marks();
  }

  remember(mark: SequenceMark): void {
    this.#inside.remember(mark);
  }

  forget(sequenceId: number): void {
    this.#own.delete(sequenceId);
    this.#inside.forget(sequenceId);
  }

  /**
   * Returns the object that issues the numbers of a sequence, and the sequence with the options
   * that apply.
   */
  #counting(sequence: CountedSequence): { numbers: IssuedNumbers; sequence: CountedSequence } {
    const { sequenceId } = sequence;
    if (this.#own.has(sequenceId)) return { numbers: this.#inside, sequence };
    const { numbers, sequenceById } = this.#outside;
    return { numbers, sequence: sequenceById(sequenceId) ?? sequence };
  }
}

/** Collects changes to sequence numbers, to apply them once the definitions are durable. */
export class LaterNumbers implements IssuedNumbers {
  readonly #numbers: IssuedNumbers;
  readonly #later: (() => void)[] = [];

  constructor(numbers: IssuedNumbers) {
    this.#numbers = numbers;
  }

  /** Applies the collected changes to sequence numbers. */
  settle(): void {
    for (const change of this.#later.splice(0)) change();
  }

  next(sequence: CountedSequence): Whole {
    return this.#numbers.next(sequence);
  }

  mark(sequence: CountedSequence): SequenceMark {
    return this.#numbers.mark(sequence);
  }

  set(sequence: CountedSequence, value: Whole, isCalled: boolean): void {
    this.#numbers.set(sequence, value, isCalled);
  }

  takeBack(sequence: CountedSequence, now: SequenceMark, before: SequenceMark): void {
    this.#numbers.takeBack(sequence, now, before);
  }

  giveBack(sequences: Iterable<CountedSequence>): void {
    this.#numbers.giveBack(sequences);
  }

  marks(): readonly SequenceMark[] {
    return this.#numbers.marks();
  }

  remember(mark: SequenceMark): void {
    this.#later.push(() => this.#numbers.remember(mark));
  }

  forget(sequenceId: number): void {
    this.#later.push(() => this.#numbers.forget(sequenceId));
  }
}
