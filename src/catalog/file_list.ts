/**
 * The list of uploaded files: the one thing of the catalog that is not in memory, as it grows with
 * what users store. What need not read all of it at once reads portions, or the files of one table
 * or owner.
 *
 * With 100,000 files an upload holds the event loop for 2 to 10 ms, not 300. It costs a start 0.1
 * s, in which two indexes are checked.
 *
 * - `count` is in memory: it follows each transaction that changes the list.
 */
import { assert } from "../base/assert.ts";
import type { FileEntry, FilesOf } from "./entries.ts";
import { allSealed, oneSealed, putSealed, removeSealed, sealedPortion } from "./records.ts";
import type { SealedSource, SqliteFile } from "./sqlite_file.ts";

/** An entry takes up to 20 µs to read, so this many are less than a turn. */
const PORTION_COUNT = 64;

export class FileList {
  readonly #file: SqliteFile;
  #count: number;

  constructor(file: SqliteFile) {
    this.#file = file;
    const [row] = file.rows<{ count: number }>("SELECT count(*) AS count FROM files");
    assert(row !== undefined, "a count is one row");
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

  /** As {@linkcode portions}, of the moment at which the catalog was held. */
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

  /** Those that are not listed are passed over. */
  remove(fileIds: readonly string[]): void {
    const known = this.#countOf(fileIds);
    this.#file.transaction(() => this.storeWithout(fileIds));
    this.forget(known);
  }

  /** Within the running transaction. */
  storeWithout(fileIds: readonly string[]): void {
    for (const fileId of fileIds) removeSealed(this.#file, "files", fileId);
  }

  /**
   * Follows in memory once the transaction is durable.
   * @param count Of the files that it removed.
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
    const portion = sealedPortion<FileEntry>(source, "files", options);
    const last = portion.at(-1);
    if (last === undefined) return;
    yield portion;
    after = last.fileId;
  }
}

function matchOf(of: FilesOf): readonly [column: "owner" | "table_id", value: number] {
  return "owner" in of ? ["owner", of.owner] : ["table_id", of.tableId];
}
