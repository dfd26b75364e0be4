/**
 * The rows of a result by key, as an immutable value. A later version takes memory only for its
 * changes.
 *
 *     oldest ──old rows──► older ──old rows──► newest: a Map
 *
 * The newest version contains the Map. An older version contains only the rows that differ from the
 * next version, and creates its own Map when it is first read (Baker, Shallow binding makes
 * functional arrays fast, 1991). Invariants: newer versions never refer to older ones, so an
 * unreferenced version takes no memory. A Map is never changed while it is iterated over.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireCell } from "../../protocol/mod.ts";

/** A row of a result in memory. */
export interface KeptRow {
  readonly key: string;
  readonly cells: readonly WireCell[];
  /** The seq of the first state in which the row had these values. */
  readonly seq: Seq;
}

/** Rows by key, as they were before a change; undefined for a key that did not exist. */
type OldRows = ReadonlyMap<string, KeptRow | undefined>;

interface Later {
  readonly rows: StateRows;
  readonly old: OldRows;
}

export class StateRows {
  #rows: Map<string, KeptRow> | undefined;
  #later: Later | undefined;
  #isIterated = false;

  constructor(rows: Map<string, KeptRow>) {
    this.#rows = rows;
  }

  get size(): number {
    return this.#own().size;
  }

  get(key: string): KeptRow | undefined {
    return this.#own().get(key);
  }

  has(key: string): boolean {
    return this.#own().has(key);
  }

  values(): IterableIterator<KeptRow> {
    this.#isIterated = true;
    return this.#own().values();
  }

  /** Returns the rows after a change. An undefined row removes its key. */
  with(changed: ReadonlyMap<string, KeptRow | undefined>): StateRows {
    const own = this.#own();
    const isKept = this.#isIterated || this.#later !== undefined;
    const rows = isKept ? new Map(own) : own;
    const old = new Map<string, KeptRow | undefined>();
    for (const [key, row] of changed) {
      old.set(key, own.get(key));
      if (row === undefined) rows.delete(key);
      else rows.set(key, row);
    }
    const next = new StateRows(rows);
    this.#later ??= { rows: next, old };
    if (!isKept) this.#rows = undefined;
    return next;
  }

  /**
   * Returns the rows that differ in a later version, as they are in this version. Returns undefined
   * if the other version was not derived from this one.
   */
  changedUntil(other: StateRows): OldRows | undefined {
    const changed = new Map<string, KeptRow | undefined>();
    if (other === this) return changed;
    for (let later = this.#later; later !== undefined; later = later.rows.#later) {
      for (const [key, row] of later.old) if (!changed.has(key)) changed.set(key, row);
      if (later.rows === other) return changed;
    }
    return undefined;
  }

  #own(): Map<string, KeptRow> {
    if (this.#rows !== undefined) return this.#rows;
    const steps: Later[] = [];
    let later: Later | undefined = this.#later;
    while (later !== undefined) {
      steps.push(later);
      if (later.rows.#rows !== undefined) break;
      later = later.rows.#later;
    }
    const base = later === undefined ? undefined : later.rows.#rows;
    assert(base !== undefined, "a version without rows has a later one with rows");
    const rows = new Map(base);
    for (const { old } of steps.toReversed()) {
      for (const [key, row] of old) {
        if (row === undefined) rows.delete(key);
        else rows.set(key, row);
      }
    }
    this.#rows = rows;
    return rows;
  }
}
