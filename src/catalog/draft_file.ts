/**
 * Records the entries that a copy of the definitions would write, instead of writing them. Once
 * these changes are durable, the copy replaces the original. From then on, this object passes all
 * changes on to the catalog's file.
 */
import type { SealedChange, SealedFile, SqliteValue } from "./sqlite_file.ts";

export class DraftFile implements SealedFile {
  readonly path: string;
  readonly #target: SealedFile;
  #changes: SealedChange[] = [];
  #isSettled = false;

  constructor(target: SealedFile) {
    this.path = target.path;
    this.#target = target;
  }

  /** The changes recorded so far, in order. */
  get changes(): readonly SealedChange[] {
    return this.#changes;
  }

  /** Makes this object pass all further changes on to the catalog's file. */
  settle(): void {
    this.#isSettled = true;
    this.#changes = [];
  }

  /** The file to which a copy of these definitions will finally write. */
  get target(): SealedFile {
    return this.#target;
  }

  rows<Row>(sql: string, ...parameters: SqliteValue[]): Row[] {
    return this.#target.rows(sql, ...parameters);
  }

  run(sql: string, ...parameters: SqliteValue[]): void {
    if (this.#isSettled) this.#target.run(sql, ...parameters);
  }

  transaction<T>(work: () => T): T {
    return this.#isSettled ? this.#target.transaction(work) : work();
  }

  noteChange(change: SealedChange): void {
    if (this.#isSettled) this.#target.noteChange(change);
    else this.#changes.push(change);
  }
}
