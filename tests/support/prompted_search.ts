/**
 * A search for the rows of a live query that needs no other thread. It finds all rows at once, at
 * the end of the range, and returns them in portions when the test requests them.
 */
import type { FoundRows, LivePlan, RowSearch, SearchRange } from "../../src/sql/mod.ts";
import { SEQ_COLUMN_ID, type Store } from "../../src/storage/mod.ts";
import { type Batch, type Row, valueAt } from "../../src/types/mod.ts";

export interface PromptedSearchOptions {
  readonly store: Store;
  readonly plan: LivePlan;
  readonly takesAll: boolean;
  /**
   * Returns the number of rows in the next portion, at least 1, or "refused" if the event loop has
   * to read the rows itself.
   */
  readonly nextPiece: () => number | "refused";
  /** Holds back a portion until `arrive` is called. Called once per "waiting". */
  readonly later: (arrive: () => void) => void;
}

export class PromptedSearch implements RowSearch {
  readonly takesAll: boolean;
  /** The ranges searched so far. */
  readonly ranges: SearchRange[] = [];
  readonly #options: PromptedSearchOptions;
  readonly #open = new Set<Pieces>();

  constructor(options: PromptedSearchOptions) {
    this.#options = options;
    this.takesAll = options.takesAll;
  }

  /** The number of searches that have begun but not ended. */
  get openCount(): number {
    return this.#open.size;
  }

  begin(range: SearchRange, onArrived: () => void): FoundRows | undefined {
    this.ranges.push(range);
    const found = rowsWithin(range, this.#options);
    const pieces = new Pieces(found, this.#options, {
      onArrived,
      onClose: () => this.#open.delete(pieces),
    });
    this.#open.add(pieces);
    return pieces;
  }
}

interface Found {
  readonly rows: readonly Row[];
  /** The error that the filter threw after the found rows; undefined if it did not throw. */
  readonly failure: { readonly error: unknown } | undefined;
}

class Pieces implements FoundRows {
  readonly #found: Found;
  readonly #options: PromptedSearchOptions;
  readonly #events: { readonly onArrived: () => void; readonly onClose: () => void };
  #position = 0;
  #state: "asleep" | "waiting" | "arrived" | "closed" = "asleep";

  constructor(
    found: Found,
    options: PromptedSearchOptions,
    events: { readonly onArrived: () => void; readonly onClose: () => void },
  ) {
    this.#found = found;
    this.#options = options;
    this.#events = events;
  }

  next(): Batch | "waiting" | "refused" | undefined {
    if (this.#state === "closed") throw new Error("Cannot deliver rows: the search was closed");
    if (this.#state === "asleep") {
      this.#state = "waiting";
      this.#options.later(() => this.#arrive());
    }
    if (this.#state !== "arrived") return "waiting";
    this.#state = "asleep";
    return this.#piece();
  }

  close(): void {
    this.#state = "closed";
    this.#events.onClose();
  }

  #arrive(): void {
    if (this.#state !== "waiting") return;
    this.#state = "arrived";
    this.#events.onArrived();
  }

  #piece(): Batch | "refused" | undefined {
    const { failure, rows } = this.#found;
    const count = this.#options.nextPiece();
    if (count === "refused") return count;
    const piece = rows.slice(this.#position, this.#position + count);
    this.#position += piece.length;
    if (piece.length > 0) return batchOf(piece);
    if (failure !== undefined) throw failure.error;
    return undefined;
  }
}

function rowsWithin(range: SearchRange, { plan, store }: PromptedSearchOptions): Found {
  const { columnIds, filter, owner, tableId } = plan;
  const { after, isOfSeqs, rowsMax, upTo } = range;
  const seqPosition = columnIds.indexOf(SEQ_COLUMN_ID);
  const scan = store.scan(tableId, { owner, columnIds, after, upTo });
  const rows: Row[] = [];
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      const verdict = filter?.evaluate(batch);
      for (let index = 0; index < batch.rowCount && rows.length < rowsMax; index += 1) {
        if (verdict !== undefined && valueAt(verdict, index) !== true) continue;
        const row = batch.columns.map((column) => valueAt(column, index));
        rows.push(isOfSeqs ? [row[seqPosition] ?? null] : row);
      }
      if (rows.length === rowsMax) break;
    }
    return { rows, failure: undefined };
  } catch (error) {
    return { rows, failure: { error } };
  } finally {
    scan.close();
  }
}

function batchOf(rows: readonly Row[]): Batch {
  const width = rows[0]?.length ?? 0;
  const columns = Array.from({ length: width }, (_, column) => ({
    kind: "any" as const,
    length: rows.length,
    values: rows.map((row) => row[column] ?? null),
  }));
  return { rowCount: rows.length, columns };
}
