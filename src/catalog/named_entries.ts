/**
 * Manages the catalog entries of one kind whose names are in namespaces, such as views: in memory
 * for reading, and in SQLite as one sealed row each.
 *
 * `put` and `remove` must be called within the transaction that changes a definition, and
 * `remember` and `forget` after it.
 */
import { allSealed, putSealed, removeSealed, type SealedTable } from "./records.ts";
import type { SealedFile } from "./sqlite_file.ts";

interface NamedEntry {
  readonly namespace: string;
  readonly name: string;
}

export class NamedEntries<Entry extends NamedEntry> {
  readonly #file: SealedFile;
  readonly #table: SealedTable;
  readonly #idOf: (entry: Entry) => number;
  readonly #byId: Map<number, Entry> = new Map();
  /** The catalog entries of this kind, keyed by "namespace.name". */
  readonly #byName: Map<string, Entry> = new Map();
  #sorted: readonly Entry[] | undefined;

  /**
   * Reads or copies the catalog entries of one kind.
   * @param options.table The SQLite table, whose key is the id of an entry.
   * @param options.from The entries to copy; absent to read them from the file.
   * @param options.read Completes an entry that has been read from the file.
   */
  constructor(
    file: SealedFile,
    {
      from,
      idOf,
      read = (entry) => entry,
      table,
    }: {
      table: SealedTable;
      idOf: (entry: Entry) => number;
      from?: NamedEntries<Entry> | undefined;
      read?: (entry: Entry) => Entry;
    },
  ) {
    this.#file = file;
    this.#table = table;
    this.#idOf = idOf;
    if (from === undefined) {
      for (const entry of allSealed<Entry>(file, table)) this.remember(read(entry));
      return;
    }
    this.#byId = new Map(from.#byId);
    this.#byName = new Map(from.#byName);
    this.#sorted = from.#sorted;
  }

  byId(id: number): Entry | undefined {
    return this.#byId.get(id);
  }

  named(namespace: string, name: string): Entry | undefined {
    return this.#byName.get(keyOf(namespace, name));
  }

  /** Returns all entries, ordered by namespace and name. */
  all(): readonly Entry[] {
    this.#sorted ??= [...this.#byId.values()].toSorted((left, right) => {
      if (left.namespace !== right.namespace) return left.namespace < right.namespace ? -1 : 1;
      return left.name < right.name ? -1 : 1;
    });
    return this.#sorted;
  }

  put(entry: Entry): void {
    putSealed(this.#file, this.#table, { key: this.#idOf(entry), value: entry });
  }

  remove(entries: readonly Entry[]): void {
    for (const entry of entries) removeSealed(this.#file, this.#table, this.#idOf(entry));
  }

  remember(entry: Entry): void {
    const before = this.#byId.get(this.#idOf(entry));
    if (before !== undefined) this.#byName.delete(keyOf(before.namespace, before.name));
    this.#byId.set(this.#idOf(entry), entry);
    this.#byName.set(keyOf(entry.namespace, entry.name), entry);
    this.#sorted = undefined;
  }

  forget(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#byId.delete(this.#idOf(entry));
      this.#byName.delete(keyOf(entry.namespace, entry.name));
    }
    this.#sorted = undefined;
  }
}

/** The key is unambiguous, because namespace names contain no dots. */
function keyOf(namespace: string, name: string): string {
  return `${namespace}.${name}`;
}
