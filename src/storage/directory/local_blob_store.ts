/**
 * Blobs as files of the data directory:
 *
 *     tmp/<32 hex>.blob                                   staged
 *     files/<table id>/<owner>/<sub>/<stored name>        published
 *
 * - A published blob was synced under its staged name, moved, and its directory synced, and those
 *   above it, before `publish` returns. No name is ever used twice.
 * - A directory of which it is known that its name is durable is not synced for it again. What is
 *   known ends when it is found to be gone: it is made by `publish` alone.
 * - Every part of a path is checked to be a plain name, though the server made it: one slip here
 *   would be a way out of the data directory.
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

/** The folder of a table. */
const TABLE_NAME = /^[1-9][0-9]{0,14}$/;

const SUB = /^f[0-9]{4,9}$/;

/** Starts with a letter or digit, so it is neither hidden nor "." or "..". */
const STORED_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/** Directories of which it is known that their names are durable; more are forgotten. */
const NAMED_MAX = 10_000;

/** Random bytes of a staged name: nobody meets one twice. */
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
  /** How the blobs that were staged here are moved. */
  readonly #moves = new WeakMap<StagedBlob, (target: string) => void>();
  /** Directories whose names were made durable, as long as they are there. */
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
      assert(!disk.exists(target), "no stored name is used twice");
      defined(this.#moves.get(blob), "a blob is published by who staged it")(target);
    }
    // Those above first: what is there by then leads to what is synced behind it.
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

  /** Now, or when nobody holds any more; then nobody is left who could be told that it failed. */
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
    // One after the other, so that of two who remove the same the second finds nothing.
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
      assert(current === stagedPath, "a blob is published once and not after it was discarded");
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
   * Makes a directory below the data directory, and those above it.
   * @param names.made Gets those whose names are not known to be durable.
   * @param names.toSync Gets what has to be synced for that.
   */
  #makeDirectories(
    directory: string,
    { made, toSync }: { made: Set<string>; toSync: Set<string> },
  ): void {
    let path = this.#dataPath;
    for (const part of directory.slice(path.length + 1).split("/")) {
      const parent = path;
      path = `${parent}/${part}`;
      // Also when it is there: a process that was killed may have made it and not synced it.
      if (this.#named.has(path) && this.#disk.exists(path)) continue;
      this.#named.delete(path);
      made.add(path);
      toSync.add(parent);
    }
    this.#disk.makeDirectory(directory);
  }
}

function requireTableId(tableId: number): void {
  assert(Number.isSafeInteger(tableId) && tableId > 0, "a table id is a number above 0");
}

function requireOwner(owner: number): void {
  assert(Number.isSafeInteger(owner) && owner >= 0, "an owner is a number");
}

function plainPath(path: BlobPath): string {
  assert(SUB.test(path.sub), "a sub is f and its number");
  assert(STORED_NAME.test(path.storedName), "a stored name is a plain name");
  requireTableId(path.tableId);
  requireOwner(path.owner);
  return blobPath(path);
}
