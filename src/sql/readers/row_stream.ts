/**
 * Rows that a reader in another thread reads for a change, which takes them batch by batch as it
 * would take them from an operator of its own.
 *
 * A failure comes behind the rows before it, so that the first faulty row decides, as it does on
 * the event loop.
 */
import type { Batch } from "../../types/mod.ts";
import type { ReadRows } from "../execute/change/change_writer.ts";
import type { ReadingPlace } from "./query_readers.ts";
import type { ReaderQuery, StartedRead } from "./reader.ts";

/** Thrown where the rows have to be read on the event loop after all; no failure. */
export const READ_HERE: Error = new Error("Only the event loop can read the rows");

export class RowStream implements ReadRows {
  #read: StartedRead | undefined;
  /** The batch that has arrived and was not taken yet. */
  #batch: Batch | undefined;
  #end: { readonly error: unknown } | "end" | undefined;
  readonly #taken = new Signal();
  readonly #arrived = new Signal();

  /** Returns undefined if the place is the event loop. @throws {DatabaseError} */
  static begin(
    place: ReadingPlace,
    query: Omit<ReaderQuery, "onBatch" | "taken">,
  ): RowStream | undefined {
    const stream = new RowStream();
    const read = place.begin({
      ...query,
      onBatch: (batch) => stream.#add(batch),
      taken: () => stream.#taken.next,
    });
    if (read === undefined) return undefined;
    stream.#read = read;
    void stream.#await(read);
    return stream;
  }

  /** @throws READ_HERE @throws {DatabaseError} */
  async next(): Promise<Batch | undefined> {
    while (this.#batch === undefined && this.#end === undefined) await this.#arrived.next;
    const batch = this.#batch;
    if (batch !== undefined) {
      this.#batch = undefined;
      this.#taken.give();
      return batch;
    }
    if (this.#end === "end") return undefined;
    throw this.#end?.error;
  }

  close(): void {
    if (this.#end === undefined) this.#read?.stop();
  }

  #add(batch: Batch): void {
    this.#batch = batch;
    this.#arrived.give();
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

/** Something that happens again and again, and can be waited for. */
class Signal {
  #waiting: PromiseWithResolvers<void> | undefined;

  /** Resolves when it happens next. */
  get next(): Promise<void> {
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  give(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
