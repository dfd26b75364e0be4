/**
 * Manages the uploads of a statement. They are staged before the statement runs, listed in the
 * catalog in the tick in which their rows are committed, and removed completely if the statement
 * fails.
 *
 * In the tick of the commit, the uploads are first listed in the catalog with the keys of their
 * rows and then renamed to their final names; finally, the rows are committed. A crash can
 * therefore leave an entry without bytes, but never bytes without an entry. A failure undoes
 * everything, unless it is unknown whether the rows are durable.
 *
 * A file may be downloaded as long as the row for which it was uploaded still refers to it. The
 * list contains the key of that row, so nothing has to be updated when the row changes.
 */
import { assert } from "../../base/assert.ts";
import { StateInDoubtError } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { CorruptionError, DatabaseError, isDamage } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq } from "../../base/seq.ts";
import { CATALOG_FILE, type Catalog, type FileEntry, type TableEntry } from "../../catalog/mod.ts";
import type { BlobStore, StagedBlob, Store } from "../../storage/mod.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { UploadTarget } from "../execute/context/execution_context.ts";
import type { UploadedFile } from "../ports/engine.ts";
import type { SqlLimits } from "../ports/environment.ts";

/** The maximum number of characters of a file's name that are kept in its URL. */
const SLUG_LENGTH_MAX = 50;

/** The maximum time between listing the files and committing their rows, in milliseconds. */
const COMMIT_DELAY_MS_MAX = 60_000;

interface Upload {
  readonly blob: StagedBlob;
  readonly part: UploadedFile;
  readonly id: string;
  /**
   * The FILE value. Its folder `sub` is already final, because folders are filled in upload order.
   */
  readonly reference: string;
  readonly sub: string;
  readonly storedName: string;
}

export class Uploads {
  static readonly none: Uploads = new Uploads([], undefined);

  readonly #uploads: readonly Upload[];
  /** The catalog and the storage of uploads; undefined if the statement has no uploads. */
  readonly #deps: UploadPlaces | undefined;
  /**
   * The catalog entries of the files to which rows refer, each with the upload that will become
   * the file.
   */
  #placed: readonly { readonly entry: Omit<FileEntry, "createdAtMs">; readonly upload: Upload }[] =
    [];
  #isListed = false;

  private constructor(uploads: readonly Upload[], deps: UploadPlaces | undefined) {
    this.#uploads = uploads;
    this.#deps = deps;
  }

  /** Writes the uploaded files to disk under temporary names, in the order of `names`. */
  static async stage(
    { blobs, catalog, limits, store }: UploadDeps,
    { names, parts }: { parts: ReadonlyMap<string, UploadedFile>; names: readonly string[] },
  ): Promise<Uploads> {
    const uploads: Upload[] = [];
    let fileCount = catalog.files.count;
    try {
      for (const name of names) {
        const part = parts.get(name);
        assert(part !== undefined, "file upload: placeholder has no uploaded part");
        const blob = await blobs.stage(part.bytes);
        const id = String(store.snowflakeId());
        const folder = Math.floor(fileCount / limits.filesPerFolderMax) + 1;
        const sub = `f${String(folder).padStart(4, "0")}`;
        fileCount += 1;
        const { mime, name: fileName } = part;
        const { sha256, size } = blob;
        const reference = JSON.stringify({ id, sub, name: fileName, mime, size, sha256 });
        uploads.push({ blob, part, id, reference, sub, storedName: storedNameOf(id, fileName) });
      }
    } catch (error) {
      for (const { blob } of uploads) blob.discard();
      throw error;
    }
    return new Uploads(uploads, { blobs, catalog });
  }

  /** The statement's FILE values, in slot order. */
  get references(): readonly string[] {
    return this.#uploads.map(({ reference }) => reference);
  }

  get placedBytes(): number {
    return this.#placed.reduce((bytes, { entry }) => bytes + entry.size, 0);
  }

  /**
   * Assigns each upload to the row that refers to it.
   *
   * @throws {DatabaseError} INVALID_INPUT if several cells refer to the same upload.
   */
  place(target: UploadTarget, rows: readonly Row[]): void {
    assert(!this.#isListed, "file upload: file assigned to a row after it was listed");
    const { owner, table } = target;
    this.#placed = this.#cellsOf(target, rows).map(({ columnId, key, upload }) => ({
      upload,
      entry: {
        fileId: upload.id,
        tableId: table.tableId,
        owner,
        columnId,
        keyJson: keyToJson(key),
        sub: upload.sub,
        storedName: upload.storedName,
        name: upload.part.name,
        mime: upload.part.mime,
        size: upload.blob.size,
        sha256: upload.blob.sha256,
      },
    }));
  }

  /**
   * Lists the placed files and renames them, in the tick in which their rows are committed. Files
   * are listed before they are renamed: a crash may then leave an entry without bytes, which the
   * sweep removes, but never bytes without an entry.
   */
  list(nowMs: number): void {
    if (this.#placed.length === 0) return;
    this.#isListed = true;
    this.#deps?.catalog.files.add(
      this.#placed.map(({ entry }): FileEntry => ({ ...entry, createdAtMs: nowMs })),
    );
    this.#deps?.blobs.publish(
      this.#placed.map(({ entry, upload }) => ({ blob: upload.blob, path: entry })),
    );
  }

  /**
   * Returns, for each upload, the cell that refers to it.
   *
   * @throws {DatabaseError} INVALID_INPUT if several cells refer to the same upload.
   */
  #cellsOf(
    { filePositions, keyOf, table }: UploadTarget,
    rows: readonly Row[],
  ): { upload: Upload; columnId: number; key: Row }[] {
    const placed: { upload: Upload; columnId: number; key: Row }[] = [];
    for (const row of rows) {
      for (const position of filePositions) {
        const upload = this.#uploads.find(({ reference }) => reference === row[position]);
        if (upload === undefined) continue;
        if (placed.some((other) => other.upload === upload)) {
          throw new DatabaseError(
            "INVALID_INPUT",
            `Cannot write file "${upload.part.name}" to several cells: upload it once for each ` +
              "cell",
          );
        }
        const columnId = table.columns[position]?.columnId ?? 0;
        placed.push({ upload, columnId, key: keyOf(row) });
      }
    }
    return placed;
  }

  /**
   * Removes the statement's files to which no row refers. Called once the statement has succeeded.
   */
  keep(): void {
    const used = new Set(this.#placed.map(({ upload }) => upload));
    for (const upload of this.#uploads) if (!used.has(upload)) upload.blob.discard();
  }

  /**
   * Removes all files of the statement. Called once the statement or its transaction has failed
   * with `error`.
   */
  fail(error: unknown): void {
    // If the outcome of the commit is unknown, the rows may exist after a restart and refer to the
    // files, so the files are kept.
    const isUnknown = error instanceof DatabaseError && error.code === "COMMIT_UNKNOWN";
    if (isUnknown || error instanceof StateInDoubtError) this.keep();
    else this.#discard();
  }

  #discard(): void {
    if (this.#isListed) {
      this.#deps?.catalog.files.remove(this.#placed.map(({ entry }) => entry.fileId));
    }
    for (const { blob } of this.#uploads) blob.discard();
  }
}

/** The parts of the database needed to look up files. */
export interface FileDeps {
  readonly catalog: Catalog;
  readonly store: Store;
}

/** The catalog in which uploads are listed, and the storage that contains them. */
type UploadPlaces = Pick<UploadDeps, "blobs" | "catalog">;

/** The parts of the database needed to store files. */
export interface UploadDeps extends FileDeps {
  readonly blobs: BlobStore;
  readonly limits: SqlLimits;
}

/** The parts of the database needed to find unused files. */
export interface SweepDeps extends FileDeps {
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

export interface SweepOptions {
  readonly historyMsOf: (table: TableEntry) => number;
  readonly nowMs: number;
  /**
   * Returns whether the sweep should stop and leave the remaining files to the next sweep. Called
   * after each pause.
   */
  readonly isEnded: () => boolean;
}

/** Whether the row for which a file was uploaded still refers to it. */
export function isFileLive(entry: FileEntry, deps: FileDeps): boolean {
  return isNamedAt(entry, deps.store.visibleSeq, deps);
}

/**
 * Removes files to which no row refers, either now or at the start of the retained history.
 *
 * @returns The number of removed files.
 */
export async function sweepFiles(
  deps: SweepDeps,
  { historyMsOf, isEnded, nowMs }: SweepOptions,
): Promise<number> {
  const { blobs, catalog, clock } = deps;
  const pause = pauser(clock);
  let count = 0;
  for (const portion of catalog.files.portions()) {
    const dead = portion.filter((entry) => {
      const table = catalog.tableById(entry.tableId);
      if (table === undefined) return true;
      const historyStartMs = nowMs - historyMsOf(table);
      const isRecent = entry.createdAtMs > historyStartMs - COMMIT_DELAY_MS_MAX;
      if (isRecent) return false;
      return !mayBeNamed(entry, deps.store.agedSeq(historyMsOf(table)) as Seq, deps);
    });
    for (const entry of dead) blobs.remove(entry);
    if (dead.length > 0) catalog.files.remove(dead.map(({ fileId }) => fileId));
    count += dead.length;
    await pause();
    if (isEnded()) break;
  }
  return count;
}

/**
 * Removes the files of dropped tables. DROP TABLE changes only the catalog. The files are removed
 * afterwards, once no backup needs them.
 *
 * @param isEnded Returns whether to leave the remaining files to the next sweep.
 * @returns The number of dropped tables that had any files.
 */
export async function sweepDroppedTables(
  deps: DroppedDeps,
  isEnded: () => boolean,
): Promise<number> {
  const { blobs, catalog } = deps;
  const dropped = blobs.tableIds().filter((id) => catalog.tableById(id) === undefined);
  for (const tableId of dropped) {
    await removeDroppedFiles(tableId, deps, isEnded);
    if (isEnded()) break;
  }
  return dropped.length;
}

/**
 * Removes the files of a dropped table in short steps: first their entries in the catalog, then
 * the bytes. {@linkcode sweepDroppedTables} therefore finds the folder for as long as any file is
 * left.
 *
 * @param isEnded Returns whether to leave the remaining files to the next sweep.
 *
 * @throws {DatabaseError}
 * @throws {DiskError}
 * @throws {CorruptionError}
 */
export async function removeDroppedFiles(
  tableId: number,
  { blobs, catalog, clock }: DroppedDeps,
  isEnded: () => boolean,
): Promise<void> {
  const pause = pauser(clock);
  for (const portion of catalog.files.portions({ tableId })) {
    catalog.files.remove(portion.map(({ fileId }) => fileId));
    await pause();
    if (isEnded()) return;
  }
  await blobs.removeTable(tableId);
}

interface DroppedDeps {
  readonly blobs: BlobStore;
  readonly catalog: Catalog;
  readonly clock: Clock;
}

/** Whether an error means that the storage of a table is unavailable. */
function isUnavailable(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "STORAGE_UNAVAILABLE";
}

/**
 * Whether a row refers to a file, either now or at the start of the history. A row that cannot be
 * read counts as referring to it.
 */
function mayBeNamed(entry: FileEntry, historyStart: Seq, deps: FileDeps): boolean {
  try {
    return isFileLive(entry, deps) || isNamedAt(entry, historyStart, deps);
  } catch (error) {
    // Ignoring the error is safe: a file whose rows cannot be read is kept.
    if (isDamage(error) || isUnavailable(error)) return true;
    throw error;
  }
}

/** Whether the row for which a file was uploaded referred to the file as of a seq. */
export function isNamedAt(entry: FileEntry, upTo: Seq, { catalog, store }: FileDeps): boolean {
  const table = catalog.tableById(entry.tableId);
  if (table === undefined) return false;
  if (!table.columns.some(({ columnId }) => columnId === entry.columnId)) return false;
  const row = store.lookup(entry.tableId, {
    owner: entry.owner,
    key: keyFromJson(entry.keyJson),
    upTo,
    columnIds: [entry.columnId],
  });
  const cell = row?.[0];
  return typeof cell === "string" && cell.includes(`"id":"${entry.fileId}"`);
}

/**
 * A key value as JSON, tagged if JSON cannot represent it exactly. Do not add tags: an older
 * server would find no row for a key with an unknown tag, and would remove the file.
 */
type UploadKeyPart =
  | null
  | boolean
  | number
  | string
  | { readonly whole: string }
  | { readonly hex: string };

function keyToJson(key: Row): string {
  return JSON.stringify(
    key.map((value): UploadKeyPart => {
      if (typeof value === "bigint") return { whole: String(value) };
      if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString("hex") };
      assert(
        value === null || typeof value !== "object",
        "file upload: key value cannot be represented in JSON",
      );
      return value;
    }),
  );
}

export function keyFromJson(text: string): Row {
  const parts = JSON.parse(text) as readonly UploadKeyPart[];
  return parts.map((part): Value => {
    if (typeof part !== "object" || part === null) return part;
    if ("whole" in part) return BigInt(part.whole);
    if (!("hex" in part)) {
      throw new CorruptionError(
        CATALOG_FILE,
        0,
        "the row key of a listed file has an unknown form",
      );
    }
    return Uint8Array.from(Buffer.from(part.hex, "hex"));
  });
}

/**
 * Returns the stored name of a file, `{id}-{slug}.{ext}`, which is safe in paths and readable in
 * URLs.
 */
function storedNameOf(id: string, fileName: string): string {
  const dot = fileName.lastIndexOf(".");
  const stem = dot === -1 ? fileName : fileName.slice(0, dot);
  const ending = dot === -1 ? "" : fileName.slice(dot + 1).toLowerCase();
  const extension = /^[a-z0-9]{1,10}$/.test(ending) ? ending : "bin";
  const slug = stem
    .toLowerCase()
    .replaceAll(/[ _-]/g, "-")
    .replaceAll(/[^a-z0-9-]/g, "")
    .slice(0, SLUG_LENGTH_MAX)
    .replaceAll(/-+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return slug === "" ? `${id}.${extension}` : `${id}-${slug}.${extension}`;
}
