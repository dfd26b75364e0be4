/**
 * Records what an attempt of a statement has taken from sequences. If the statement begins again,
 * for example because it leaves for a reader, the sequences are set back first, so that the new
 * attempt receives the same numbers. A sequence from which another statement has taken numbers in
 * the meantime stays as it is.
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

  /** Records a sequence before a number is taken from it or set. */
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

  /** Records the number at which a touched sequence stands now. */
  note({ sequenceId }: SequenceEntry, value: Whole, isCalled: boolean): void {
    const touched = this.#touched.get(sequenceId);
    if (touched === undefined) return;
    touched.value = value;
    touched.isCalled = isCalled;
  }

  /** Undoes the previous attempt. @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE */
  begin(catalog: MarkCatalog): void {
    if (this.#touched.size === 0) return;
    for (const { before, isCalled, sequence, value } of this.#touched.values()) {
      const { name, namespace, sequenceId } = sequence;
      // The sequence may have been dropped or altered in the meantime.
      if (catalog.sequence(namespace, name) !== sequence) continue;
      catalog.takeBackNumbers(sequence, { sequenceId, value: String(value), isCalled }, before);
    }
    for (const restore of this.#restores) restore();
    this.end();
  }

  /** Keeps what has been taken, because the statement has ended. */
  end(): void {
    this.#touched.clear();
    this.#restores.length = 0;
  }
}
