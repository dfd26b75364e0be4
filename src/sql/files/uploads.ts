/**
 * Uploads of one statement: staged before it runs, listed in the turn in which their rows commit,
 * and gone without a trace when it fails.
 *
 * In the turn of the commit they are listed in the catalog with the keys of their rows, then moved
 * to their names, then the rows commit: a crash leaves an entry without bytes, never bytes that
 * nobody knows of. A failure takes all back, unless it is unknown whether the rows are durable.
 *
 * A file may be downloaded while the row that it was written to still names it: the list holds the
 * key of that row, and nothing has to be told when the row changes.
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
import type { UploadedFile } from "../common/engine.ts";
import type { SqlLimits } from "../common/environment.ts";
import type { UploadTarget } from "../execute/run/run.ts";

/** Characters kept of a name for its URL. */
const SLUG_LENGTH_MAX = 50;

/** A row commits within this time of the listing of its files. */
const COMMIT_DELAY_MS_MAX = 60_000;

interface Upload {
  readonly blob: StagedBlob;
  readonly part: UploadedFile;
  readonly id: string;
  /** The FILE value. Its `sub` is final: folders fill in the order of uploads. */
  readonly reference: string;
  readonly sub: string;
  readonly storedName: string;
}

export class Uploads {
  static readonly none: Uploads = new Uploads([], undefined);

  readonly #uploads: readonly Upload[];
  /** Absent where there are none. */
  readonly #world: UploadPlaces | undefined;
  /** Entries of the files that rows name, and what is to be moved for each. */
  #placed: readonly { readonly entry: Omit<FileEntry, "createdAtMs">; readonly upload: Upload }[] =
    [];
  #isListed = false;

  private constructor(uploads: readonly Upload[], world: UploadPlaces | undefined) {
    this.#uploads = uploads;
    this.#world = world;
  }

  /** Writes the parts to disk, not yet under their names. In the order of `names`. */
  static async stage(
    { blobs, catalog, limits, store }: UploadWorld,
    { names, parts }: { parts: ReadonlyMap<string, UploadedFile>; names: readonly string[] },
  ): Promise<Uploads> {
    const uploads: Upload[] = [];
    let { fileCount } = catalog;
    try {
      for (const name of names) {
        const part = parts.get(name);
        assert(part !== undefined, "every placeholder has its part");
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

  /** The FILE values, in slot order. */
  get references(): readonly string[] {
    return this.#uploads.map(({ reference }) => reference);
  }

  get placedBytes(): number {
    return this.#placed.reduce((bytes, { entry }) => bytes + entry.size, 0);
  }

  /**
   * Finds out which rows name which files.
   *
   * @throws {DatabaseError} INVALID_INPUT for a file in several cells.
   */
  place(target: UploadTarget, rows: readonly Row[]): void {
    assert(!this.#isListed, "files are placed before they are listed");
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
   * Lists the files that were placed and moves them there, in the turn in which their rows commit.
   * Listed first: a crash then leaves an entry without bytes, which the sweep removes, and never
   * bytes that nobody knows of.
   */
  list(nowMs: number): void {
    if (this.#placed.length === 0) return;
    this.#isListed = true;
    this.#world?.catalog.addFiles(
      this.#placed.map(({ entry }): FileEntry => ({ ...entry, createdAtMs: nowMs })),
    );
    this.#world?.blobs.publish(
      this.#placed.map(({ entry, upload }) => ({ blob: upload.blob, path: entry })),
    );
  }

  /** Which cell each upload goes to. @throws {DatabaseError} INVALID_INPUT for several cells. */
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
            `Cannot write file "${upload.part.name}" to several cells: upload it once for each`,
          );
        }
        const columnId = table.columns[position]?.columnId ?? 0;
        placed.push({ upload, columnId, key: keyOf(row) });
      }
    }
    return placed;
  }

  /** The statement stands: what no row took is removed. */
  keep(): void {
    const used = new Set(this.#placed.map(({ upload }) => upload));
    for (const upload of this.#uploads) if (!used.has(upload)) upload.blob.discard();
  }

  /** The statement, or its transaction, failed with `error`: nothing stays. */
  fail(error: unknown): void {
    // The rows may be there after the restart, and then name the files.
    const isUnknown = error instanceof DatabaseError && error.condition === "COMMIT_UNKNOWN";
    if (isUnknown || error instanceof StateInDoubtError) this.keep();
    else this.#discard();
  }

  #discard(): void {
    if (this.#isListed) {
      this.#world?.catalog.removeFiles(this.#placed.map(({ entry }) => entry.fileId));
    }
    for (const { blob } of this.#uploads) blob.discard();
  }
}

/** Where files are looked up. */
export interface FileWorld {
  readonly catalog: Catalog;
  readonly store: Store;
}

/** Where uploads are listed, and where their bytes go. */
type UploadPlaces = Pick<UploadWorld, "blobs" | "catalog">;

/** What files are put away with. */
export interface UploadWorld extends FileWorld {
  readonly blobs: BlobStore;
  readonly limits: SqlLimits;
}

/** What a sweep needs of its surroundings. */
export interface SweepWorld extends FileWorld {
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

export interface SweepOptions {
  readonly historyMsOf: (table: TableEntry) => number;
  readonly nowMs: number;
  /** Whether the rest is left to the next sweep; asked after each pause. */
  readonly isEnded: () => boolean;
}

/** Whether the row that a file was written to still names it. */
export function isFileLive(entry: FileEntry, world: FileWorld): boolean {
  return isNamedAt(entry, world.store.visibleSeq, world);
}

/**
 * Removes files that no retained version of a row names: not live now, and not live at the start of
 * the history that is kept.
 *
 * @returns How many were removed.
 */
export async function sweepFiles(
  world: SweepWorld,
  { historyMsOf, isEnded, nowMs }: SweepOptions,
): Promise<number> {
  const { blobs, catalog, clock } = world;
  const pause = pauser(clock);
  let count = 0;
  for (const portion of catalog.filePortions()) {
    const dead = portion.filter((entry) => {
      const table = catalog.tableById(entry.tableId);
      if (table === undefined) return true;
      const historyStartMs = nowMs - historyMsOf(table);
      const isRecent = entry.createdAtMs > historyStartMs - COMMIT_DELAY_MS_MAX;
      if (isRecent) return false;
      return !mayBeNamed(entry, world.store.agedSeq(historyMsOf(table)) as Seq, world);
    });
    for (const entry of dead) blobs.remove(entry);
    if (dead.length > 0) catalog.removeFiles(dead.map(({ fileId }) => fileId));
    count += dead.length;
    await pause();
    if (isEnded()) break;
  }
  return count;
}

/**
 * Removes the files of tables that are gone: a table is dropped in one transaction, and its files
 * go behind that, once no backup holds them.
 *
 * @param isEnded Whether the rest is to be left to the next sweep.
 * @returns Of how many tables there were any.
 */
export async function sweepDroppedTables(
  world: DroppedWorld,
  isEnded: () => boolean,
): Promise<number> {
  const { blobs, catalog } = world;
  const dropped = blobs.tableIds().filter((id) => catalog.tableById(id) === undefined);
  for (const tableId of dropped) {
    await removeDroppedFiles(tableId, world, isEnded);
    if (isEnded()) break;
  }
  return dropped.length;
}

/**
 * Removes the files of a table that is gone, in slices: first what the catalog lists of them, then
 * the bytes, so that the folder is there for {@linkcode sweepDroppedTables} as long as anything is
 * left.
 *
 * @param isEnded As for that. @throws {DatabaseError} @throws {DiskError} @throws {CorruptionError}
 */
export async function removeDroppedFiles(
  tableId: number,
  { blobs, catalog, clock }: DroppedWorld,
  isEnded: () => boolean,
): Promise<void> {
  const pause = pauser(clock);
  for (const portion of catalog.filePortions({ tableId })) {
    catalog.removeFiles(portion.map(({ fileId }) => fileId));
    await pause();
    if (isEnded()) return;
  }
  await blobs.removeTable(tableId);
}

interface DroppedWorld {
  readonly blobs: BlobStore;
  readonly catalog: Catalog;
  readonly clock: Clock;
}

/** Whether a table's storage is not there. */
function isUnavailable(error: unknown): boolean {
  return error instanceof DatabaseError && error.condition === "STORAGE_UNAVAILABLE";
}

/** Whether a row names a file, now or at the start of the history, as far as rows can be read. */
function mayBeNamed(entry: FileEntry, historyStart: Seq, world: FileWorld): boolean {
  try {
    return isFileLive(entry, world) || isNamedAt(entry, historyStart, world);
  } catch (error) {
    // Safe: a file that nobody can judge is kept.
    if (isDamage(error) || isUnavailable(error)) return true;
    throw error;
  }
}

function isNamedAt(entry: FileEntry, upTo: Seq, { catalog, store }: FileWorld): boolean {
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
 * A value of a key as JSON; what JSON cannot hold exactly is tagged. No other tags than these: an
 * older server would find no row by them, and remove the file.
 */
type KeyPart =
  | null
  | boolean
  | number
  | string
  | { readonly whole: string }
  | { readonly hex: string };

function keyToJson(key: Row): string {
  return JSON.stringify(
    key.map((value): KeyPart => {
      if (typeof value === "bigint") return { whole: String(value) };
      if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString("hex") };
      assert(value === null || typeof value !== "object", "a type of a key has a form in JSON");
      return value;
    }),
  );
}

function keyFromJson(text: string): Row {
  const parts = JSON.parse(text) as readonly KeyPart[];
  return parts.map((part): Value => {
    if (typeof part !== "object" || part === null) return part;
    if ("whole" in part) return BigInt(part.whole);
    if (!("hex" in part)) {
      throw new CorruptionError(CATALOG_FILE, 0, "a listed file has a key of an unknown form");
    }
    return Uint8Array.from(Buffer.from(part.hex, "hex"));
  });
}

/** `{id}-{slug}.{ext}`: safe in a path and readable in a URL. */
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
