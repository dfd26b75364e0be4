/**
 * Stores the seqs of definitions that never took effect, although rows with these seqs may be in
 * the log. A commit of rows and definitions writes its rows to the log first:
 *
 *     seq listed here ──► rows durable in the log ──► definitions durable, seq no longer listed
 *
 * If the last step fails, or the process is killed before it, the seq stays listed and recovery
 * ignores the rows. The last step is a single transaction, so that either both the rows and the
 * definitions take effect, or neither does.
 */
import { DatabaseError } from "../base/errors.ts";
import { oneSealed, putSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

const SETTING = "undone_definitions";

/**
 * The maximum number of listed seqs. At most one seq is added each time the process is killed or a
 * publication is refused. No seq is ever removed to make room, because an archive of the log may
 * keep its rows for any length of time.
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
    // The cast is safe, because only `#store` writes the row.
    const listed = oneSealed(file, "settings", SETTING) as ListedSeqs | undefined;
    this.#seqs = new Set(listed === undefined ? [] : (JSON.parse(listed.value) as number[]));
  }

  get seqs(): ReadonlySet<number> {
    return this.#seqs;
  }

  /** Durably lists a seq. @throws {DatabaseError} LIMIT_EXCEEDED */
  add(seq: number): void {
    if (this.#seqs.size >= LISTED_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot commit definitions together with rows: ${LISTED_MAX} such commits have ` +
          "failed after their rows were written to the log, and the catalog cannot record any " +
          "more",
        { hint: "commit the definitions and the rows in separate transactions" },
      );
    }
    const seqs = new Set([...this.#seqs, seq]);
    this.#file.transaction(() => this.#store(seqs));
    this.#seqs = seqs;
  }

  remove(seq: number): void {
    this.#file.transaction(() => this.storeWithout(seq));
    this.forget(seq);
  }

  /** Removes a seq from the list on disk, within the current transaction. */
  storeWithout(seq: number): void {
    if (this.#seqs.has(seq)) this.#store(this.#without(seq));
  }

  /**
   * Removes a seq from the list in memory. Must be called once the transaction of {@linkcode
   * storeWithout} is durable.
   */
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
