/**
 * Manages the catalog entries of one kind that are found by the hash of a secret, such as service
 * tokens. The entries are kept in memory for reading, and in SQLite as one sealed row each, keyed
 * by name. The secrets themselves are not stored.
 *
 * Memory changes only after the transaction has become durable.
 */
import { defined } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import { allSealed, putSealed, putUnnoted, removeSealed, type SealedTable } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

interface NamedSecret {
  readonly name: string;
  /** The SHA-256 hash of the secret, in base64url. */
  readonly secretHash: string;
}

/**
 * The interface through which other layers use entries that have a secret, such as service tokens.
 */
export interface SecretEntries<Entry extends NamedSecret> {
  /** The version number of the entries. Creating or dropping an entry increments it. */
  readonly version: number;
  named(name: string): Entry | undefined;
  byHash(secretHash: string): Entry | undefined;
  /** Returns all entries, ordered by name. */
  all(): readonly Entry[];
  /** Stores a new entry. @throws {DatabaseError} ALREADY_EXISTS */
  create(entry: Entry): void;
  /** Replaces the entry with the same name. */
  change(entry: Entry): void;
  drop(name: string): void;
  /**
   * Replaces entries in which only informational times have changed, such as the last use. Skips
   * entries that have been dropped.
   */
  note(entries: readonly Entry[]): void;
}

export class NamedSecrets<Entry extends NamedSecret> implements SecretEntries<Entry> {
  version = 0;
  readonly #file: SqliteFile;
  readonly #table: SealedTable;
  readonly #what: string;
  readonly #byName = new Map<string, Entry>();
  readonly #byHash = new Map<string, Entry>();

  /**
   * Reads the entries of one kind from the catalog file.
   * @param options.what The name of this kind of entry, for messages.
   */
  constructor(file: SqliteFile, { table, what }: { table: SealedTable; what: string }) {
    this.#file = file;
    this.#table = table;
    this.#what = what;
    for (const entry of allSealed<Entry>(file, table)) this.#remember(entry);
  }

  named(name: string): Entry | undefined {
    return this.#byName.get(name);
  }

  byHash(secretHash: string): Entry | undefined {
    return this.#byHash.get(secretHash);
  }

  all(): readonly Entry[] {
    return [...this.#byName.values()].toSorted((left, right) => (left.name < right.name ? -1 : 1));
  }

  create(entry: Entry): void {
    const { name } = entry;
    if (this.#byName.has(name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create ${this.#what} ${name}: it already exists`,
      );
    }
    this.#file.transaction(() => this.#put(entry));
    this.version += 1;
    this.#remember(entry);
  }

  change(entry: Entry): void {
    defined(this.#byName.get(entry.name), "catalog: named secret not found");
    this.#file.transaction(() => this.#put(entry));
    this.#remember(entry);
  }

  drop(name: string): void {
    const remember = this.#file.transaction(() =>
      this.storeWithout((entry) => entry.name === name),
    );
    remember();
  }

  note(entries: readonly Entry[]): void {
    const known = entries.filter(
      ({ name, secretHash }) => this.#byName.get(name)?.secretHash === secretHash,
    );
    if (known.length === 0) return;
    this.#file.transaction(() => {
      for (const entry of known) {
        putUnnoted(this.#file, this.#table, { key: entry.name, value: entry });
      }
    });
    for (const entry of known) this.#remember(entry);
  }

  /**
   * Removes entries within the current transaction. The caller must call the returned function
   * once the transaction is durable, to update memory.
   */
  storeWithout(isGone: (entry: Entry) => boolean): () => void {
    const gone = this.all().filter(isGone);
    for (const { name } of gone) removeSealed(this.#file, this.#table, name);
    return () => {
      if (gone.length > 0) this.version += 1;
      for (const { name, secretHash } of gone) {
        this.#byName.delete(name);
        this.#byHash.delete(secretHash);
      }
    };
  }

  /**
   * Removes, after a restore, the entries that had been dropped since the backup: those that the
   * replaced catalog did not contain.
   */
  continueFrom(before: readonly Entry[]): void {
    const known = new Set(before.map(({ secretHash }) => secretHash));
    const remember = this.#file.transaction(() =>
      this.storeWithout(({ secretHash }) => !known.has(secretHash)),
    );
    remember();
  }

  #put(entry: Entry): void {
    putSealed(this.#file, this.#table, { key: entry.name, value: entry });
  }

  #remember(entry: Entry): void {
    this.#byName.set(entry.name, entry);
    this.#byHash.set(entry.secretHash, entry);
  }
}
