/**
 * Blobs as files of the data directory:
 *
 *     tmp/<32 hex>.blob                                   staged
 *     files/<table id>/<owner>/<sub>/<stored name>        published
 *
 * - A published blob was synced under its staged name, moved, and its directory synced, before
 *   `publish` returns. No name is ever used twice.
 * - Every part of a path is checked to be a plain name, though the server made it: one slip here
 *   would be a way out of the data directory.
 */
import { dirname } from "node:path";
import { assert } from "../../base/assert.ts";
import { removeTreeSoon } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { WorkLine } from "../../base/work_line.ts";
import type { BlobPath, BlobStore, StagedBlob } from "../contract/blob_store.ts";
import { blobPath, FILES_DIRECTORY } from "./file_names.ts";
import { Holds } from "./holds.ts";

/** The folder of a table. */
const TABLE_NAME = /^[1-9][0-9]{0,14}$/;

const SUB = /^f[0-9]{4,9}$/;

/** Starts with a letter or digit, so it is neither hidden nor "." or "..". */
const STORED_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

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
    return {
      size,
      sha256,
      publish: (path) => {
        assert(current === stagedPath, "a blob is published once and not after it was discarded");
        const directory = this.#makeDirectories(dirname(plainPath(path)));
        const target = this.#pathOf(path);
        assert(!disk.exists(target), "no stored name is used twice");
        disk.rename(stagedPath, target);
        current = target;
        disk.syncDirectory(directory);
      },
      discard: () => {
        if (current === undefined) return;
        const path = current;
        current = undefined;
        disk.remove(path);
      },
    };
  }

  #tableDirectory(tableId: number): string {
    requireTableId(tableId);
    return `${this.#dataPath}/${FILES_DIRECTORY}/${tableId}`;
  }

  #pathOf(path: BlobPath): string {
    return `${this.#dataPath}/${plainPath(path)}`;
  }

  /** Makes directories below the data directory; their names are durable when this returns. */
  #makeDirectories(directory: string): string {
    const path = `${this.#dataPath}/${directory}`;
    this.#disk.makeDirectory(path);
    let parent = this.#dataPath;
    for (const part of directory.split("/")) {
      // Also when it was there: a process that was killed may have made it and not synced it.
      this.#disk.syncDirectory(parent);
      parent = `${parent}/${part}`;
    }
    return path;
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
