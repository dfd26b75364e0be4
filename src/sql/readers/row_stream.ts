/**
 * Receives the rows that a reader thread reads for a change, and afterwards runs evaluations in
 * the reader. The change takes the rows batch by batch, as if they came from its own operators.
 *
 * A failure arrives after the rows that precede it, so that, as on the event loop, the first
 * invalid row determines the error.
 */
import { defined } from "../../base/assert.ts";
import { type Batch, portableBatch } from "../../types/mod.ts";
import type { Elsewhere, EvaluationName } from "../execute/change/evaluation.ts";
import type { FurtherMessage } from "./job.ts";
import type { ReadingPlace } from "./query_readers.ts";
import type { ReaderQuery, StartedRead } from "./reader.ts";

/** Thrown if the event loop has to read the rows instead of a reader. This is not a failure. */
export const READ_HERE: Error = new Error("The rows can be read only by the event loop");

export class RowStream implements Elsewhere {
  #read: StartedRead | undefined;
  /** A batch of rows that has arrived but has not been taken yet. */
  #batch: Batch | undefined;
  #end: { readonly error: unknown } | "end" | undefined;
  /** Whether the reader has sent everything that was requested, and is now waiting. */
  #isParted = false;
  readonly #taken = new Signal();
  readonly #arrived = new Signal();

  /**
   * Starts to read the rows of a change in a reader. Returns undefined if the rows have to be read
   * on the event loop.
   *
   * @throws {DatabaseError}
   */
  static begin(
    place: ReadingPlace,
    query: Omit<ReaderQuery, "onBatch" | "onParted" | "taken">,
  ): RowStream | undefined {
    const stream = new RowStream();
    const read = place.begin({
      ...query,
      onBatch: (batch) => stream.#add(batch),
      onParted: () => stream.#part(),
      taken: () => stream.#taken.next,
    });
    if (read === undefined) return undefined;
    stream.#read = read;
    void stream.#await(read);
    return stream;
  }

  /**
   * Returns the next rows, or undefined after the last row.
   * @throws READ_HERE
   * @throws {DatabaseError}
   */
  async next(): Promise<Batch | undefined> {
    while (this.#batch === undefined && this.#end === undefined && !this.#isParted) {
      await this.#arrived.next;
    }
    const batch = this.#batch;
    if (batch !== undefined) {
      this.#batch = undefined;
      this.#taken.give();
      return batch;
    }
    if (this.#end === "end" || this.#end === undefined) return undefined;
    throw this.#end.error;
  }

  /**
   * Evaluates expressions on the given rows in the reader.
   * @throws READ_HERE
   * @throws {DatabaseError}
   */
  evaluate(name: EvaluationName, given: Batch): Promise<Batch> {
    return this.#evaluate(name, given, undefined);
  }

  /**
   * Waits until the reader has accepted a statement that reads no rows.
   *
   * @throws READ_HERE @throws {DatabaseError}
   */
  async ready(): Promise<void> {
    if ((await this.next()) !== undefined) throw new Error("The statement reads rows");
  }

  part(index: number, returned: Iterable<Batch>): Elsewhere {
    if (index > 0) {
      const rows = Array.from(returned, portable);
      this.#read?.goOn({ kind: "returned", part: index - 1, rows });
    }
    let isAsked = false;
    return {
      next: async () => {
        if (!isAsked) await this.#ask({ kind: "read", part: index });
        isAsked = true;
        return await this.next();
      },
      evaluate: (name, given) => this.#evaluate(name, given, index),
      part: (next, before) => this.part(next, before),
    };
  }

  async #evaluate(name: EvaluationName, given: Batch, part: number | undefined): Promise<Batch> {
    await this.#ask({ kind: "evaluate", part, name, given: portable(given) });
    const rows = defined(await this.next(), "reader stream: evaluation returned no rows");
    this.#isParted = true;
    return rows;
  }

  /** Asks a waiting reader for rows. @throws READ_HERE @throws {DatabaseError} */
  async #ask(message: FurtherMessage): Promise<void> {
    // A change that reads no rows has not yet waited until the reader has reported the end of its
    // rows.
    if (await this.next()) throw new Error("Earlier rows have not been read yet");
    this.#isParted = false;
    this.#read?.goOn(message);
  }

  /** Waits until the reader has reported the totals of the job. */
  async finish(): Promise<void> {
    this.#leave();
    while (this.#end === undefined) await this.#arrived.next;
  }

  close(): void {
    if (this.#end === undefined) this.#read?.stop();
    this.#leave();
  }

  #add(batch: Batch): void {
    this.#batch = batch;
    this.#arrived.give();
  }

  #part(): void {
    this.#isParted = true;
    this.#arrived.give();
  }

  /**
   * Lets the reader end its job. A waiting reader ends immediately; any other reader ends once it
   * has finished its current work.
   */
  #leave(): void {
    this.#read?.goOn({ kind: "finish" });
  }

  async #await({ outcome }: StartedRead): Promise<void> {
    try {
      this.#end = (await outcome) === "read" ? "end" : { error: READ_HERE };
    } catch (error) {
      this.#end = { error };
    }
    this.#arrived.give();
  }
}

function portable(batch: Batch): Batch {
  return portableBatch(batch, batch.columns.length).batch;
}

/** An event that occurs repeatedly and can be awaited. */
class Signal {
  #waiting: PromiseWithResolvers<void> | undefined;

  /** Resolves the next time the event occurs. */
  get next(): Promise<void> {
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  give(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
