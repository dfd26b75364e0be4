/**
 * Manages the list of uploaded files. It is the only part of the catalog that is not kept in
 * memory, because it grows with users' data. Callers that do not need the entire list read it in
 * portions, or read only the files of one table or owner.
 *
 * Uploads therefore never require a read of the entire list, which would block the event loop. In
 * return, two indexes have to be checked at startup.
 *
 * - The number of files is kept in memory (`count`), and each transaction that changes the list
 *   updates it.
 */
import { assert } from "../base/assert.ts";
import type { CatalogFiles } from "./catalog.ts";
import type { FileEntry, FilesOf } from "./entries.ts";
import { allSealed, oneSealed, putSealed, removeSealed, sealedPortion } from "./records.ts";
import type { SealedSource, SqliteFile } from "./sqlite_file.ts";

/**
 * The number of entries in a portion of the list. Reading an entry takes up to 20 µs, so reading a
 * portion takes less than a time slice.
 */
const PORTION_COUNT = 64;

export class FileList implements CatalogFiles {
  readonly #file: SqliteFile;
  #count: number;

  constructor(file: SqliteFile) {
    this.#file = file;
    const [row] = file.rows<{ count: number }>("SELECT count(*) AS count FROM files");
    assert(row !== undefined, "catalog: SELECT count(*) on the file list returned no row");
    this.#count = row.count;
  }

  get count(): number {
    return this.#count;
  }

  entry(fileId: string): FileEntry | undefined {
    return oneSealed(this.#file, "files", fileId) as FileEntry | undefined;
  }

  all(): readonly FileEntry[] {
    return allSealed<FileEntry>(this.#file, "files");
  }

  portions(of?: FilesOf): Generator<readonly FileEntry[]> {
    return portionsIn(this.#file, of);
  }

  /**
   * Yields the same {@linkcode portions}, but as of the moment when the catalog's file was frozen.
   */
  *heldPortions(): Generator<readonly FileEntry[]> {
    const held = this.#file.openHeld();
    try {
      yield* portionsIn(held);
    } finally {
      held.close();
    }
  }

  add(entries: readonly FileEntry[]): void {
    const fileIds = entries.map(({ fileId }) => fileId);
    const known = this.#countOf(fileIds);
    this.#file.transaction(() => {
      for (const entry of entries) {
        putSealed(this.#file, "files", { key: entry.fileId, value: entry });
      }
    });
    this.#count += fileIds.length - known;
  }

  /** Removes files from the list. Files that are not listed are ignored. */
  remove(fileIds: readonly string[]): void {
    const known = this.#countOf(fileIds);
    this.#file.transaction(() => this.storeWithout(fileIds));
    this.forget(known);
  }

  /** Removes files from the list within the current transaction. */
  storeWithout(fileIds: readonly string[]): void {
    for (const fileId of fileIds) removeSealed(this.#file, "files", fileId);
  }

  /**
   * Updates the number of files in memory. Must be called once the transaction is durable.
   * @param count The number of files that the transaction removed.
   */
  forget(count: number): void {
    this.#count -= count;
  }

  #countOf(fileIds: readonly string[]): number {
    return fileIds.filter((fileId) => this.#isListed(fileId)).length;
  }

  #isListed(fileId: string): boolean {
    return this.#file.rows("SELECT 1 FROM files WHERE file_id = ?1", fileId).length > 0;
  }
}

function* portionsIn(source: SealedSource, of?: FilesOf): Generator<readonly FileEntry[]> {
  const match = of === undefined ? undefined : matchOf(of);
  let after = "";
  for (;;) {
    const options = { after, match, countMax: PORTION_COUNT };
    const portion = sealedPortion(source, "files", options) as FileEntry[];
    const last = portion.at(-1);
    if (last === undefined) return;
    yield portion;
    after = last.fileId;
  }
}

function matchOf(of: FilesOf): readonly [column: "owner" | "table_id", value: number] {
  return "owner" in of ? ["owner", of.owner] : ["table_id", of.tableId];
}
