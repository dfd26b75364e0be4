/**
 * Records the numbers that an attempt to run a statement takes from sequences. Before the
 * statement is restarted, for example in a reader thread, the sequences are reset, so that the new
 * attempt gets the same numbers. A sequence from which another statement has taken numbers in the
 * meantime is left alone.
 */
import type { Catalog, SequenceEntry, SequenceMark } from "../../catalog/mod.ts";
import type { Whole } from "../../types/mod.ts";
import type { TakenNumbers } from "../execute/context/taken_numbers.ts";

type MarkCatalog = Pick<Catalog, "sequence" | "sequenceMark" | "takeBackNumbers">;

interface TouchedSequence {
  readonly sequence: SequenceEntry;
  readonly before: SequenceMark;
  value: Whole;
  isCalled: boolean;
}

export class AttemptNumbers {
  readonly #touched = new Map<number, TouchedSequence>();
  readonly #restores: (() => void)[] = [];

  /**
   * Records the state of a sequence. Must be called before a number is taken from the sequence or
   * the sequence is set.
   */
  touch(
    sequence: SequenceEntry,
    { catalog, taken }: { catalog: MarkCatalog; taken: readonly TakenNumbers[] },
  ): void {
    if (this.#touched.has(sequence.sequenceId)) return;
    if (this.#touched.size === 0) for (const each of taken) this.#restores.push(each.saved());
    const before = catalog.sequenceMark(sequence);
    const { isCalled } = before;
    this.#touched.set(sequence.sequenceId, { sequence, before, value: 0, isCalled });
  }

  /** Records the current number of a sequence from which this attempt takes numbers. */
  note({ sequenceId }: SequenceEntry, value: Whole, isCalled: boolean): void {
    const touched = this.#touched.get(sequenceId);
    if (touched === undefined) return;
    touched.value = value;
    touched.isCalled = isCalled;
  }

  /**
   * Begins a new attempt, returning the numbers of the previous attempt to their sequences.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  begin(catalog: MarkCatalog): void {
    if (this.#touched.size === 0) return;
    for (const { before, isCalled, sequence, value } of this.#touched.values()) {
      const { name, namespace, sequenceId } = sequence;
      // The sequence may have been dropped or altered since the previous attempt.
      if (catalog.sequence(namespace, name) !== sequence) continue;
      catalog.takeBackNumbers(sequence, { sequenceId, value: String(value), isCalled }, before);
    }
    for (const restore of this.#restores) restore();
    this.end();
  }

  /**
   * Discards the recorded states at the end of the statement, so that its numbers remain taken.
   */
  end(): void {
    this.#touched.clear();
    this.#restores.length = 0;
  }
}
