/**
 * Stores the rows of a result by key, as an immutable value. A small result is stored as a list,
 * because there may be thousands of results, most of them small, and a Map takes up 400 bytes. A
 * new version of a large result takes up memory only for its changes:
 *
 *     oldest ──old rows──► older ──old rows──► newest: a Map
 *
 * The newest version contains the Map. An older version contains only the rows that differ from
 * the next version, and creates its own Map when it is first read (Baker, Shallow binding makes
 * functional arrays fast, 1991). Invariants: newer versions never refer to older ones, so an
 * unreferenced version takes up no memory. A Map is never changed while it is being iterated over.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireCell } from "../../protocol/mod.ts";

/** A row of a materialised result. */
export interface KeptRow {
  readonly key: string;
  readonly cells: readonly WireCell[];
  /** The seq of the first state in which the row had these values. */
  readonly seq: Seq;
}

/** A version of the rows of a materialised result. */
export interface StateRows {
  readonly size: number;
  /** The approximate memory of all rows of the result, in bytes. */
  readonly bytes: number;
  get(key: string): KeptRow | undefined;
  has(key: string): boolean;
  values(): IterableIterator<KeptRow>;
  /** Returns the rows after a change. An undefined row removes its key. */
  with(changed: OldRows, bytes: number): StateRows;
  /**
   * Returns the rows of this version that differ in a later version. Returns undefined if the two
   * versions have to be compared row by row.
   */
  changedUntil(other: StateRows): OldRows | undefined;
}

/**
 * The maximum number of rows stored as a list. Searching a list of this length takes no longer
 * than a lookup in a Map.
 */
const FEW_ROWS_MAX = 8;

/**
 * Returns the rows of a result in the representation that suits their number.
 * @param bytes The approximate memory of all rows.
 */
export function stateRows(rows: Map<string, KeptRow>, bytes: number): StateRows {
  if (rows.size > FEW_ROWS_MAX) return new ManyRows(rows, bytes);
  return rows.size === 0 ? NO_ROWS : new FewRows([...rows.values()], bytes);
}

/** The previous rows of changed keys, keyed by row key; undefined for a key that did not exist. */
type OldRows = ReadonlyMap<string, KeptRow | undefined>;

class FewRows implements StateRows {
  readonly #rows: readonly KeptRow[];
  readonly bytes: number;

  constructor(rows: readonly KeptRow[], bytes: number) {
    this.#rows = rows;
    this.bytes = bytes;
  }

  get size(): number {
    return this.#rows.length;
  }

  get(key: string): KeptRow | undefined {
    return this.#rows.find((row) => row.key === key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  values(): IterableIterator<KeptRow> {
    return this.#rows.values();
  }

  with(changed: OldRows, bytes: number): StateRows {
    const rows = this.#rows.flatMap((row) => {
      return changed.has(row.key) ? (changed.get(row.key) ?? []) : row;
    });
    for (const [key, row] of changed) {
      if (row !== undefined && !this.has(key)) rows.push(row);
    }
    if (rows.length === 0) return NO_ROWS;
    if (rows.length <= FEW_ROWS_MAX) return new FewRows(rows, bytes);
    return new ManyRows(new Map(rows.map((row) => [row.key, row])), bytes);
  }

  changedUntil(other: StateRows): OldRows | undefined {
    return other === this ? new Map() : undefined;
  }
}

/**
 * All results without rows share one object, because thousands of results with followers may be
 * empty.
 */
const NO_ROWS: StateRows = new FewRows([], 0);

/** Replaces rows by key. An undefined row removes its key. */
function change(rows: Map<string, KeptRow>, changed: OldRows): void {
  for (const [key, row] of changed) {
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
  }
}

interface Later {
  readonly rows: ManyRows;
  readonly old: OldRows;
}

class ManyRows implements StateRows {
  readonly bytes: number;
  #rows: Map<string, KeptRow> | undefined;
  #later: Later | undefined;
  #isIterated = false;

  constructor(rows: Map<string, KeptRow>, bytes: number) {
    this.#rows = rows;
    this.bytes = bytes;
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

  with(changed: OldRows, bytes: number): StateRows {
    const own = this.#own();
    const isKept = this.#isIterated || this.#later !== undefined;
    const rows = isKept ? new Map(own) : own;
    const old = new Map<string, KeptRow | undefined>();
    for (const key of changed.keys()) old.set(key, own.get(key));
    change(rows, changed);
    const next = new ManyRows(rows, bytes);
    this.#later ??= { rows: next, old };
    if (!isKept) this.#rows = undefined;
    return next;
  }

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
    assert(base !== undefined, "live result: no later version holds the rows of this version");
    const rows = new Map(base);
    for (const { old } of steps.toReversed()) change(rows, old);
    this.#rows = rows;
    return rows;
  }
}
