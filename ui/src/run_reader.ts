/**
 * Reads the results of a run only as far as the user scrolls. The statements run once: the server
 * pauses the last statement until the user requests more of its rows.
 */
import { type ExecutionPart, ServerError, type StatementEntry } from "../../src/client/mod.ts";

/** The number of rows that are read before the user asks for more. */
const FIRST_ROWS = 1000;

/** The maximum number of rows to read at a time. Reading more rows would freeze the page. */
const MORE_ROWS_MAX = 100_000;

/**
 * The maximum number of rows to keep of any statement but the last. Later statements wait until
 * earlier statements have ended.
 */
const KEPT_ROWS_MAX = 10_000;

export interface ReadEntry {
  readonly entry: StatementEntry;
  readonly rows: readonly (readonly unknown[])[];
  /** Whether more rows of the result can be read. */
  readonly hasMore: boolean;
  /** Whether the result had more rows than are kept. */
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
  /** The number of rows of the last statement to show. More rows may already have arrived. */
  #shown = 0;
  #tookMs: number | undefined;
  #isOver = false;
  #reading: Promise<void> = Promise.resolve();

  /** Creates a reader for the response to a run. @param statements The number of statements. */
  constructor(parts: AsyncIterable<ExecutionPart>, statements: number) {
    this.#parts = parts[Symbol.asyncIterator]();
    this.#statements = statements;
  }

  /** The duration of the run, in milliseconds; undefined while the run continues. */
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

  /** Doubles the number of rows read, within limits. @throws The error that ended the run. */
  readMore(): Promise<void> {
    return this.#readTo(this.#shown + Math.min(Math.max(this.#shown, FIRST_ROWS), MORE_ROWS_MAX));
  }

  #readTo(rows: number): Promise<void> {
    this.#shown = Math.max(this.#shown, rows);
    // Reads run one after another, even if an earlier read has failed.
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
      // The columns must stay the same object, so that the grid recognises them.
      const { schema = part.entry.schema } = held.entry;
      held.entry = { ...part.entry, ...(schema && { schema }) };
      held.isWhole = true;
    }
  }

  async #nextPart(): Promise<ExecutionPart> {
    try {
      const { done, value } = await this.#parts.next();
      if (done !== true) return value;
      throw new Error("The response ended prematurely");
    } catch (error) {
      this.#isOver = true;
      // A failure before any rows includes the results of the earlier statements.
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
