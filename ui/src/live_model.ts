/**
 * Keeps the current rows of a live query, and checks that no change was missed.
 *
 * Rows stay in place in a Map, in the order in which they first arrived: a change replaces its row
 * in place, and a new row is added at the end. A deleted row stays for a moment, marked as
 * deleted, and is then removed. The screen shows a copy, which is rarely updated under load, so a
 * burst of changes costs only a burst of writes to the Map.
 *
 * A change is correct if it matches the rows kept here: an update names the version that it
 * replaces, an insert finds no row, and a delete finds its row. Any other change means that a
 * change was missed, unless it concerns rows beyond those kept here.
 */
import {
  type CellObject,
  type Change,
  type CompareRows,
  columnOf,
  comparerOf,
  type LiveEvent,
  type OrderTerm,
  type SchemaField,
} from "../../src/client/mod.ts";

/** A row as the page's client delivers it, with cells in their wire form. */
type SentRow = Parameters<CompareRows>[0];

export interface LiveMark {
  readonly kind: "insert" | "update" | "delete";
  readonly atMs: number;
}

export interface LiveRow {
  readonly key: string;
  readonly seq: number;
  readonly cells: readonly unknown[];
  /** The row as it arrived, used for sorting. */
  readonly sent: SentRow;
  readonly mark: LiveMark | undefined;
}

export interface LiveCounts {
  readonly rows: number;
  readonly changes: number;
  readonly missed: number;
  readonly resumes: number;
  /** The number of rows and changes that arrived in the last resume. */
  readonly replayed: number;
  /** The seq from which the query last resumed. */
  readonly resumedFrom: number | undefined;
  /**
   * Whether the rows had to be read again, because the table was altered or its history is
   * incomplete.
   */
  readonly isRestarted: boolean;
  /** Whether the query has more rows than are kept here. */
  readonly isPartial: boolean;
  /**
   * The median time from commit to screen, in milliseconds; undefined before the first delivery.
   */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

/** The time for which a deleted row remains visible, in milliseconds. */
const GONE_MS = 1200;
const LATENCIES_MAX = 1000;

export class LiveModel {
  readonly #rowsMax: number;
  #order: readonly OrderTerm[] | undefined;
  #compare: CompareRows | undefined;
  #schema: readonly SchemaField[] = [];
  #keyColumns: readonly string[] = [];
  readonly #rows = new Map<string, LiveRow>();
  readonly #gone = new Map<string, number>();
  #waitingCommits: number[] = [];
  readonly #latencies: number[] = [];
  #latencyCount = 0;
  #changes = 0;
  #missed = 0;
  #resumes = 0;
  #replayed = 0;
  #resumedFrom: number | undefined;
  #isReplaying = false;
  #isStarted = false;
  #isRestarted = false;
  #isPartial = false;

  /**
   * Keeps the newest `rowsMax` rows.
   *
   * @param order The columns to sort by; if omitted, the newest rows come first.
   */
  constructor(rowsMax: number, order?: readonly OrderTerm[]) {
    this.#rowsMax = rowsMax;
    this.#order = order;
  }

  /**
   * Whether the rows are in the requested order, which is possible only if they have all columns
   * that the order names.
   */
  get isSorted(): boolean {
    return this.#compare !== undefined;
  }

  get schema(): readonly SchemaField[] {
    return this.#schema;
  }

  /** Applies an event from the client. `nowMs` is the time according to `performance.now()`. */
  apply(event: LiveEvent, nowMs: number): void {
    if (event.type === "start") this.#start(event);
    else if (event.type === "rows") this.#addRows(event.rows, event.isReplay, nowMs);
    else if (event.type === "change") this.#addChange(event.change, event.isReplay, nowMs);
    else if (event.status === "ready") this.#isReplaying = false;
  }

  /** Returns the current rows in the requested order; by default, newest first. */
  rows(): LiveRow[] {
    const rows = [...this.#rows.values()].toReversed();
    const compare = this.#compare;
    if (compare === undefined) return rows;
    return rows.toSorted((left, right) => compare(left.sent, right.sent));
  }

  /**
   * Removes rows that were deleted long enough ago.
   *
   * @returns The number of milliseconds to wait until the next call; undefined if no call is
   *   needed.
   */
  sweep(nowMs: number): number | undefined {
    for (const [key, goneMs] of this.#gone) {
      if (nowMs - goneMs < GONE_MS) return goneMs + GONE_MS - nowMs;
      this.#gone.delete(key);
      this.#rows.delete(key);
    }
    return undefined;
  }

  /**
   * Called when everything received so far is on screen, or when its delay will not be measured.
   * `unixMs` is the wall-clock time.
   *
   * @returns Whether the counts have changed.
   */
  painted(unixMs: number, { isMeasured }: { isMeasured: boolean }): boolean {
    const commits = this.#waitingCommits;
    if (commits.length === 0) return false;
    this.#waitingCommits = [];
    if (!isMeasured) return false;
    for (const committedMs of commits) {
      // The delay is at least 0, because it would be negative if the clocks differ slightly.
      this.#latencies[this.#latencyCount % LATENCIES_MAX] = Math.max(0, unixMs - committedMs);
      this.#latencyCount += 1;
    }
    return true;
  }

  counts(): LiveCounts {
    const sorted = this.#latencies.toSorted((left, right) => left - right);
    return {
      rows: this.#rows.size - this.#gone.size,
      changes: this.#changes,
      missed: this.#missed,
      resumes: this.#resumes,
      replayed: this.#replayed,
      resumedFrom: this.#resumedFrom,
      isRestarted: this.#isRestarted,
      isPartial: this.#isPartial,
      p50: sorted[Math.floor(sorted.length * 0.5)],
      p99: sorted[Math.floor(sorted.length * 0.99)],
    };
  }

  #start({ resumedFrom, schema, sort }: Extract<LiveEvent, { type: "start" }>): void {
    this.#schema = schema;
    if (sort !== undefined) {
      this.#order = sort.map(({ column: name, direction, nulls }) => {
        return { name, isDescending: direction === "desc", areNullsFirst: nulls === "first" };
      });
    }
    const keys = schema.filter(({ flags }) => flags?.includes("pk") === true);
    this.#keyColumns = keys.map(({ name }) => name);
    this.#compare = this.#comparer();
    this.#resumedFrom = resumedFrom;
    this.#replayed = 0;
    this.#isReplaying = resumedFrom !== undefined;
    this.#isRestarted = this.#isStarted && resumedFrom === undefined;
    this.#isStarted = true;
    if (resumedFrom !== undefined) {
      this.#resumes += 1;
      return;
    }
    this.#rows.clear();
    this.#gone.clear();
    this.#isPartial = false;
  }

  /** Returns the comparison function; undefined if the rows lack a column to sort by. */
  #comparer(): CompareRows | undefined {
    if (this.#order === undefined) return undefined;
    const terms = this.#order.flatMap((term) => {
      const name = this.#sortedBy(term);
      return name === undefined ? [] : [{ ...term, name }];
    });
    return terms.length === this.#order.length ? comparerOf(terms, this.#schema) : undefined;
  }

  /**
   * Returns the column that an ORDER BY term names, by position, by name, or by table and name.
   */
  #sortedBy(term: OrderTerm): string | undefined {
    const { name } = term;
    if (/^\d+$/.test(name)) return this.#schema[Number(name) - 1]?.name;
    const bare = name.slice(name.lastIndexOf(".") + 1);
    const field = columnOf(term, this.#schema) ?? columnOf({ ...term, name: bare }, this.#schema);
    // Every row has the column `_seq`, whether it is shown or not.
    return field?.name ?? (bare === "_seq" ? bare : undefined);
  }

  #addRows(rows: readonly CellObject[], isReplay: boolean, nowMs: number): void {
    for (const row of rows) {
      const key = this.#keyOf(row);
      const kind = this.#held(key) === undefined ? "insert" : "update";
      this.#put(key, row, isReplay ? { kind, atMs: nowMs } : undefined);
    }
    if (isReplay) this.#countReplayed(rows.length);
    else if (this.#rows.size >= this.#rowsMax) this.#isPartial = true;
  }

  #addChange(change: Change, isReplay: boolean, nowMs: number): void {
    const { change_type: kind, old_values: olds = [], rows } = change;
    const mark: LiveMark = { kind, atMs: nowMs };
    const moved = kind === "delete" ? olds : rows;
    for (const [index, row] of moved.entries()) {
      if (kind === "delete") this.#remove(row, mark);
      else this.#replace(row, olds[index], mark);
    }
    if (isReplay || this.#isReplaying) return this.#countReplayed(moved.length);
    this.#changes += moved.length;
    // A message is a single delivery, even if it contains a thousand rows.
    if (change.ts !== undefined) this.#waitingCommits.push(change.ts);
  }

  #countReplayed(count: number): void {
    this.#replayed += count;
    this.#changes += count;
  }

  #replace(row: CellObject, old: CellObject | undefined, mark: LiveMark): void {
    const key = this.#keyOf(row);
    const held = this.#held(key);
    const fits = mark.kind === "insert" ? held === undefined : held?.seq === old?.["_seq"];
    if (!fits && !(held === undefined && this.#isPartial)) this.#missed += 1;
    this.#put(key, row, mark);
  }

  #remove(row: CellObject, mark: LiveMark): void {
    const key = this.#keyColumns.length === 0 ? this.#keyByContent(row) : this.#keyOf(row);
    const held = key === undefined ? undefined : this.#held(key);
    if (key === undefined || held === undefined) {
      if (!this.#isPartial) this.#missed += 1;
      return;
    }
    this.#rows.set(key, { ...held, mark });
    this.#gone.set(key, mark.atMs);
  }

  #put(key: string, row: CellObject, mark: LiveMark | undefined): void {
    this.#gone.delete(key);
    const cells = this.#schema.map(({ name }) => row[name] ?? null);
    this.#rows.set(key, { key, seq: Number(row["_seq"]), cells, sent: row as SentRow, mark });
    while (this.#rows.size > this.#rowsMax) {
      const [oldest] = this.#rows.keys();
      if (oldest === undefined) return;
      this.#rows.delete(oldest);
      this.#gone.delete(oldest);
      this.#isPartial = true;
    }
  }

  /**
   * Returns the row with a key; undefined if there is none, or if the row has been deleted and is
   * only still displayed.
   */
  #held(key: string): LiveRow | undefined {
    return this.#gone.has(key) ? undefined : this.#rows.get(key);
  }

  /**
   * Returns the key of a row. A stream table may have no key, in which case each row is distinct.
   */
  #keyOf(row: CellObject): string {
    if (this.#keyColumns.length === 0) return String(row["_seq"]);
    return this.#keyColumns.map((name) => JSON.stringify(row[name])).join();
  }

  /**
   * Returns the key of the oldest row with the same content. Without a primary key, a deletion
   * identifies its row by content.
   */
  #keyByContent(row: CellObject): string | undefined {
    const names = this.#schema.map(({ name }) => name).filter((name) => !name.startsWith("_"));
    const wanted = JSON.stringify(names.map((name) => row[name] ?? null));
    const indexes = this.#schema.flatMap(({ name }, at) => (name.startsWith("_") ? [] : [at]));
    for (const { cells, key } of this.#rows.values()) {
      const isSame = JSON.stringify(indexes.map((at) => cells[at])) === wanted;
      if (isSame && !this.#gone.has(key)) return key;
    }
    return undefined;
  }
}
