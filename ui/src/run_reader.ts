/**
 * Reads the results of a run only as far as the user scrolls. The statements run once: the server
 * pauses the last one until the user requests more of its rows.
 */
import { type ExecutionPart, ServerError, type StatementEntry } from "../../src/client/mod.ts";

/** How many rows are read before the user asks for more. */
const FIRST_ROWS = 1000;

/** The maximum number of rows that are read at a time. Reading more would freeze the page. */
const MORE_ROWS_MAX = 100_000;

/**
 * How many rows are kept at most for a statement other than the last one, because later statements
 * wait for it to end.
 */
const KEPT_ROWS_MAX = 10_000;

export interface ReadEntry {
  readonly entry: StatementEntry;
  readonly rows: readonly (readonly unknown[])[];
  /** Whether the result has more rows to read. */
  readonly hasMore: boolean;
  /** Whether there were more rows than are kept. */
  readonly isCut: boolean;
}

interface Held {
  entry: StatementEntry;
  readonly rows: (readonly unknown[])[];
  isWhole: boolean;
  isCut: boolean;
}

export class RunReader {
  readonly #parts: AsyncIterator<ExecutionPart>;
  readonly #statements: number;
  readonly #held: Held[] = [];
  /** How many rows of the last statement to show. More rows may already have arrived. */
  #shown = 0;
  #tookMs: number | undefined;
  #isOver = false;
  #reading: Promise<void> = Promise.resolve();

  /** Creates a reader of a run's response. @param statements The number of statements. */
  constructor(parts: AsyncIterable<ExecutionPart>, statements: number) {
    this.#parts = parts[Symbol.asyncIterator]();
    this.#statements = statements;
  }

  /** The duration of the run; undefined while it continues. */
  get tookMs(): number | undefined {
    return this.#tookMs;
  }

  entries(): ReadEntry[] {
    return this.#held.map(({ entry, isCut, isWhole, rows }, index) => {
      if (index < this.#statements - 1) return { entry, rows, hasMore: false, isCut };
      const isAll = rows.length <= this.#shown;
      const shown = isAll ? [...rows] : rows.slice(0, this.#shown);
      return { entry, rows: shown, hasMore: !isAll || !(isWhole || this.#isOver), isCut };
    });
  }

  /** Reads as many additional rows as there are already. @throws The error that ended the run. */
  readMore(): Promise<void> {
    return this.#readTo(this.#shown + Math.min(Math.max(this.#shown, FIRST_ROWS), MORE_ROWS_MAX));
  }

  #readTo(rows: number): Promise<void> {
    this.#shown = Math.max(this.#shown, rows);
    // Reads run one after another, even after one has failed.
    const read = async (): Promise<void> => {
      while (!this.#isOver && !this.#hasRead(this.#shown)) await this.#readPart();
    };
    const reading = this.#reading.then(read);
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  #hasRead(rows: number): boolean {
    const last = this.#held[this.#statements - 1];
    return last !== undefined && !last.isWhole && last.rows.length >= rows;
  }

  async #readPart(): Promise<void> {
    const part = await this.#nextPart();
    if (part.kind === "end") {
      this.#tookMs = part.tookMs;
      this.#isOver = true;
    } else if (part.kind === "rows") this.#addRows(part);
    else {
      const held = this.#heldOf(part.statement, part.entry);
      // The columns remain the same object, so that the grid recognizes them.
      const { schema = part.entry.schema } = held.entry;
      held.entry = { ...part.entry, ...(schema && { schema }) };
      held.isWhole = true;
    }
  }

  async #nextPart(): Promise<ExecutionPart> {
    try {
      const { done, value } = await this.#parts.next();
      if (done !== true) return value;
      throw new Error("The response ended early");
    } catch (error) {
      this.#isOver = true;
      // A failure before any rows contains the results of earlier statements.
      const results = error instanceof ServerError ? error.results : [];
      for (const [statement, { rows = [], ...entry }] of results.entries()) {
        const isCut = rows.length > KEPT_ROWS_MAX;
        const kept = rows.slice(0, KEPT_ROWS_MAX);
        const ended = "schema" in entry ? { ...entry, rows: [] } : entry;
        this.#held[statement] = { entry: ended, rows: kept, isWhole: true, isCut };
      }
      throw error;
    }
  }

  #addRows({ rows, schema, statement }: Extract<ExecutionPart, { kind: "rows" }>): void {
    const held = this.#heldOf(statement, { schema, row_count: 0, as_user: "" });
    const isLast = statement >= this.#statements - 1;
    for (const row of rows) {
      if (isLast || held.rows.length < KEPT_ROWS_MAX) held.rows.push(row);
      else held.isCut = true;
    }
  }

  #heldOf(statement: number, entry: StatementEntry): Held {
    return (this.#held[statement] ??= { entry, rows: [], isWhole: false, isCut: false });
  }
}
