/**
 * Manages storages: directories outside the data directory in which tables may keep their
 * segments. Storages are kept in memory for reading, and in SQLite as one sealed row each.
 * `local`, the data directory itself, is not among them.
 *
 * Memory changes only after the transaction has become durable.
 */
import { defined } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import type { CatalogStorages } from "./catalog.ts";
import type { StorageEntry } from "./entries.ts";
import { allSealed, putSealed, removeSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

export class StorageEntries implements CatalogStorages {
  readonly #file: SqliteFile;
  readonly #byId = new Map<string, StorageEntry>();

  constructor(file: SqliteFile) {
    this.#file = file;
    for (const entry of allSealed<StorageEntry>(file, "storages")) {
      this.#byId.set(entry.storageId, entry);
    }
  }

  named(storageId: string): StorageEntry | undefined {
    return this.#byId.get(storageId);
  }

  /** All storages, ordered by id. */
  all(): readonly StorageEntry[] {
    return [...this.#byId.values()].toSorted((left, right) =>
      left.storageId < right.storageId ? -1 : 1,
    );
  }

  /** Stores a new storage. @throws {DatabaseError} ALREADY_EXISTS */
  create(entry: StorageEntry): void {
    if (this.#byId.has(entry.storageId)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create storage ${entry.storageId}: it already exists`,
      );
    }
    this.#put([entry]);
  }

  change(entry: StorageEntry): void {
    defined(this.#byId.get(entry.storageId), "catalog: storage not found");
    this.#put([entry]);
  }

  drop(storageId: string): void {
    defined(this.#byId.get(storageId), "catalog: storage not found");
    this.#file.transaction(() => removeSealed(this.#file, "storages", storageId));
    this.#byId.delete(storageId);
  }

  /**
   * After a restore, detaches the storages that the restored catalog contains but the catalog
   * before the restore did not, because another database may be using their directories by now.
   */
  continueFrom(before: readonly StorageEntry[]): void {
    const known = new Set(before.map(({ key, storageId }) => `${storageId} ${key}`));
    const others: StorageEntry[] = [];
    for (const entry of this.all()) {
      if (!known.has(`${entry.storageId} ${entry.key}`)) others.push({ ...entry, key: "" });
    }
    this.#put(others);
  }

  /** Writes storage entries in a single transaction. */
  #put(entries: readonly StorageEntry[]): void {
    if (entries.length === 0) return;
    this.#file.transaction(() => {
      for (const entry of entries) {
        putSealed(this.#file, "storages", { key: entry.storageId, value: entry });
      }
    });
    for (const entry of entries) this.#byId.set(entry.storageId, entry);
  }
}
