/**
 * The views of the catalog: in memory for reading, one sealed row each in SQLite.
 *
 * `put` and `remove` belong into the transaction of a definition, `remember` and `forget` behind
 * it.
 */
import type { ViewEntry } from "./entries.ts";
import { allSealed, putSealed, removeSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

export class Views {
  readonly #file: SqliteFile;
  readonly #byId = new Map<number, ViewEntry>();
  /** By "namespace.name". */
  readonly #byName = new Map<string, ViewEntry>();
  #sorted: readonly ViewEntry[] | undefined;

  constructor(file: SqliteFile) {
    this.#file = file;
    for (const entry of allSealed<ViewEntry>(file, "views")) this.remember(entry);
  }

  has(viewId: number): boolean {
    return this.#byId.has(viewId);
  }

  named(namespace: string, name: string): ViewEntry | undefined {
    return this.#byName.get(keyOf(namespace, name));
  }

  /** Ordered by namespace and name. */
  all(): readonly ViewEntry[] {
    this.#sorted ??= [...this.#byId.values()].toSorted((left, right) => {
      if (left.namespace !== right.namespace) return left.namespace < right.namespace ? -1 : 1;
      return left.name < right.name ? -1 : 1;
    });
    return this.#sorted;
  }

  put(entry: ViewEntry): void {
    putSealed(this.#file, "views", { key: entry.viewId, value: entry });
  }

  remove(entries: readonly ViewEntry[]): void {
    for (const { viewId } of entries) removeSealed(this.#file, "views", viewId);
  }

  remember(entry: ViewEntry): void {
    this.#byId.set(entry.viewId, entry);
    this.#byName.set(keyOf(entry.namespace, entry.name), entry);
    this.#sorted = undefined;
  }

  forget(entries: readonly ViewEntry[]): void {
    for (const { name, namespace, viewId } of entries) {
      this.#byId.delete(viewId);
      this.#byName.delete(keyOf(namespace, name));
    }
    this.#sorted = undefined;
  }
}

/** A name holds no dot. */
function keyOf(namespace: string, name: string): string {
  return `${namespace}.${name}`;
}
