/**
 * Keeps the seqs of definitions that never took effect, although rows written under them may be in
 * the log. A commit of rows and definitions writes its rows to the log first:
 *
 *     seq listed here ──► rows durable in the log ──► definitions durable, seq no longer listed
 *
 * If the last step fails, or the process is killed before it, the seq stays listed and recovery
 * ignores the rows. The last step is one transaction, so that it decides about both.
 */
import { oneSealed, putSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

const SETTING = "undone_definitions";

/**
 * The maximum number of listed seqs. Each kill of the process and each refused publication adds at
 * most one, and the log has lost the rows of all but the newest ones.
 */
const LISTED_MAX = 1000;

interface ListedSeqs {
  readonly name: string;
  readonly value: string;
}

export class UndoneDefinitions {
  readonly #file: SqliteFile;
  #seqs: ReadonlySet<number>;

  constructor(file: SqliteFile) {
    this.#file = file;
    // The row is written by `#store` only.
    const listed = oneSealed(file, "settings", SETTING) as ListedSeqs | undefined;
    this.#seqs = new Set(listed === undefined ? [] : (JSON.parse(listed.value) as number[]));
  }

  get seqs(): ReadonlySet<number> {
    return this.#seqs;
  }

  /** Lists a seq durably. */
  add(seq: number): void {
    const seqs = new Set([...this.#seqs, seq].slice(-LISTED_MAX));
    this.#file.transaction(() => this.#store(seqs));
    this.#seqs = seqs;
  }

  remove(seq: number): void {
    this.#file.transaction(() => this.storeWithout(seq));
    this.forget(seq);
  }

  /** Removes a seq within the current transaction. */
  storeWithout(seq: number): void {
    if (this.#seqs.has(seq)) this.#store(this.#without(seq));
  }

  /** Updates memory once the transaction is durable. */
  forget(seq: number): void {
    this.#seqs = this.#without(seq);
  }

  #without(seq: number): ReadonlySet<number> {
    return new Set([...this.#seqs].filter((each) => each !== seq));
  }

  #store(seqs: ReadonlySet<number>): void {
    const value = { name: SETTING, value: JSON.stringify([...seqs]) };
    putSealed(this.#file, "settings", { key: SETTING, value });
  }
}
