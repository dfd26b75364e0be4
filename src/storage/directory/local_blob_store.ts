/**
 * Stores blobs as files in the data directory:
 *
 *     tmp/<32 hex>.blob                                   staged
 *     files/<table id>/<owner>/<sub>/<stored name>        published
 *
 * - Before `publish` returns, each blob has been synced under its staged name and moved into
 *   place, and its directory and all parent directories have been synced. File names are never
 *   reused.
 * - Once a directory's name is known to be durable, it is not synced for that purpose again. A
 *   directory that turns out to be missing no longer counts as durable. Only `publish` creates
 *   directories below the data directory.
 * - Every part of a path is checked to be a plain name, although the server itself created it.
 *   Otherwise a single mistake elsewhere could allow access outside the data directory.
 */
import { dirname } from "node:path";
import { assert, defined } from "../../base/assert.ts";
import { removeTreeSoon } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { WorkLine } from "../../base/work_line.ts";
import type { BlobPath, BlobStore, PlacedBlob, StagedBlob } from "../contract/blob_store.ts";
import { blobPath, FILES_DIRECTORY } from "./file_names.ts";
import { Holds } from "./holds.ts";

/** Matches the name of the directory for a table's files. */
const TABLE_NAME = /^[1-9][0-9]{0,14}$/;

const SUB = /^f[0-9]{4,9}$/;

/**
 * Matches the name of a stored file. The name starts with a letter or digit, so it is never
 * hidden, "." or "..".
 */
const STORED_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/**
 * The maximum number of directories remembered as having durable names. When it is reached, all of
 * them are forgotten.
 */
const NAMED_MAX = 10_000;

/** The number of random bytes in a staged name, enough to never repeat a name. */
const NAME_BYTES = 16;

export interface LocalBlobStoreOptions {
  readonly disk: Disk;
  readonly dataPath: string;
  readonly log: Log;
  readonly random: Pick<Random, "bytes">;
}

export class LocalBlobStore implements BlobStore {
  readonly #disk: Disk;
  readonly #dataPath: string;
  readonly #random: LocalBlobStoreOptions["random"];
  readonly #log: Log;
  readonly #holds = new Holds();
  readonly #removals = new WorkLine();
  /** For each blob staged by this store, the function that moves it into place. */
  readonly #moves = new WeakMap<StagedBlob, (target: string) => void>();
  /** Existing directories that are known to have durable names. */
  readonly #named = new Set<string>();

  constructor({ disk, dataPath, log, random }: LocalBlobStoreOptions) {
    this.#log = log;
    this.#disk = disk;
    this.#dataPath = dataPath;
    this.#random = random;
  }

  async stage(bytes: Uint8Array): Promise<StagedBlob> {
    const disk = this.#disk;
    const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    const directory = `${this.#dataPath}/tmp`;
    disk.makeDirectory(directory);
    const path = `${directory}/${Buffer.from(this.#random.bytes(NAME_BYTES)).toString("hex")}.blob`;
    const file = disk.open(path, { create: true, exclusive: true });
    try {
      file.write(bytes, 0);
      await file.sync();
    } catch (error) {
      file.close();
      disk.remove(path);
      throw error;
    }
    file.close();
    return this.#staged(path, { size: bytes.length, sha256 });
  }

  publish(placed: readonly PlacedBlob[]): void {
    const disk = this.#disk;
    const made = new Set<string>();
    const toSync = new Set<string>();
    for (const { path } of placed) {
      const directory = dirname(this.#pathOf(path));
      if (toSync.has(directory)) continue;
      this.#makeDirectories(directory, { made, toSync });
      toSync.add(directory);
    }
    for (const { blob, path } of placed) {
      const target = this.#pathOf(path);
      assert(!disk.exists(target), "blob store: a file with the stored name already exists");
      defined(this.#moves.get(blob), "blob store: blob was not staged by this store")(target);
    }
    // Parent directories come first, so that once a directory has been synced, it is durably
    // reachable.
    const inOrder = [...toSync].toSorted((left, right) => left.length - right.length);
    for (const directory of inOrder) disk.syncDirectory(directory);
    if (this.#named.size + made.size > NAMED_MAX) this.#named.clear();
    for (const directory of made) this.#named.add(directory);
  }

  read(path: BlobPath): Blob | undefined {
    const target = this.#pathOf(path);
    return this.#disk.exists(target) ? this.#disk.blob(target) : undefined;
  }

  remove(path: BlobPath): void {
    const target = this.#pathOf(path);
    this.#removeWhenFree(target, () => {
      if (this.#disk.exists(target)) this.#disk.remove(target);
    });
  }

  removeTable(tableId: number): Promise<void> {
    return this.#removeTreeWhenFree(this.#tableDirectory(tableId));
  }

  async removeOwner(owner: number): Promise<void> {
    requireOwner(owner);
    for (const tableId of this.tableIds()) {
      await this.#removeTreeWhenFree(`${this.#tableDirectory(tableId)}/${owner}`);
    }
  }

  /**
   * Runs a removal immediately or, if there are holds, when the last hold is released. By then, a
   * failure can no longer be reported to the caller.
   */
  #removeWhenFree(path: string, remove: () => void): void {
    if (!this.#holds.isHeld) {
      remove();
      return;
    }
    this.#holds.whenFree(() => {
      try {
        remove();
      } catch (error) {
        this.#noteKept(path, error);
      }
    });
  }

  async #removeTreeWhenFree(path: string): Promise<void> {
    // Removals run one after another, so a second removal of the same blob finds nothing left to
    // remove.
    const remove = (): Promise<void> => this.#removals.run(() => removeTreeSoon(this.#disk, path));
    if (!this.#holds.isHeld) return await remove();
    this.#holds.whenFree(() => {
      void remove().catch((error: unknown) => this.#noteKept(path, error));
    });
  }

  #noteKept(path: string, error: unknown): void {
    if (!(error instanceof DiskError)) throw error;
    this.#log.warn("cannot remove an uploaded file", { path, code: error.code });
  }

  tableIds(): readonly number[] {
    const path = `${this.#dataPath}/${FILES_DIRECTORY}`;
    if (!this.#disk.exists(path)) return [];
    const names = this.#disk.list(path).map(({ name }) => name);
    return names.filter((name) => TABLE_NAME.test(name)).map(Number);
  }

  hold(): () => void {
    return this.#holds.hold();
  }

  #staged(
    stagedPath: string,
    { size, sha256 }: { readonly size: number; readonly sha256: string },
  ): StagedBlob {
    const disk = this.#disk;
    let current: string | undefined = stagedPath;
    const blob: StagedBlob = {
      size,
      sha256,
      discard: () => {
        if (current === undefined) return;
        const path = current;
        current = undefined;
        disk.remove(path);
      },
    };
    this.#moves.set(blob, (target) => {
      assert(current === stagedPath, "blob store: blob was already published or discarded");
      disk.rename(stagedPath, target);
      current = target;
    });
    return blob;
  }

  #tableDirectory(tableId: number): string {
    requireTableId(tableId);
    return `${this.#dataPath}/${FILES_DIRECTORY}/${tableId}`;
  }

  #pathOf(path: BlobPath): string {
    return `${this.#dataPath}/${plainPath(path)}`;
  }

  /**
   * Creates a directory below the data directory, including its parents.
   * @param names.made Receives directories whose names may not be durable.
   * @param names.toSync Receives the directories to sync in order to make these names durable.
   */
  #makeDirectories(
    directory: string,
    { made, toSync }: { made: Set<string>; toSync: Set<string> },
  ): void {
    let path = this.#dataPath;
    for (const part of directory.slice(path.length + 1).split("/")) {
      const parent = path;
      path = `${parent}/${part}`;
      // Existing directories are included, because an earlier process may have been killed after
      // it created them and before the sync.
      if (this.#named.has(path) && this.#disk.exists(path)) continue;
      this.#named.delete(path);
      made.add(path);
      toSync.add(parent);
    }
    this.#disk.makeDirectory(directory);
  }
}

function requireTableId(tableId: number): void {
  assert(
    Number.isSafeInteger(tableId) && tableId > 0,
    "blob store: table id is not a positive integer",
  );
}

function requireOwner(owner: number): void {
  assert(
    Number.isSafeInteger(owner) && owner >= 0,
    "blob store: owner is not a non-negative integer",
  );
}

function plainPath(path: BlobPath): string {
  assert(SUB.test(path.sub), "blob store: invalid subfolder name");
  assert(STORED_NAME.test(path.storedName), "blob store: invalid stored name");
  requireTableId(path.tableId);
  requireOwner(path.owner);
  return blobPath(path);
}
