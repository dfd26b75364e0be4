/**
 * Controls, on the event loop, a query divided among several readers.
 *
 *     parts ──all have ended──► whole ──► ended
 *       └──one failed or refused, or too many rows came──► ending ──all have ended──► ended
 *
 * Each reader runs the same part of the plan on its share of one table. The rows of all parts,
 * which are usually few, are gathered on the event loop and sent to the first reader. That reader
 * runs the rest of the plan, because it still has the tables open at the snapshot of the
 * statement.
 */
import type { Batch } from "../../types/mod.ts";
import { batchBytes } from "../execute/materialised/memory_budget.ts";
import { type PlanDivision, shapeOf } from "../plan/divided.ts";
import type { ClaimWords, JobPart, PartClaims } from "./job.ts";
import type { Dividing } from "./query_readers.ts";
import type { QueryLedger, ReaderQuery, ReaderRead, ReaderThread, ReadOutcome } from "./reader.ts";

export interface DividedQueryOptions {
  /** The readers that run the query: two or more, none of which runs another statement. */
  readonly readers: readonly ReaderThread[];
  /** The number by which every reader identifies the plan. */
  readonly plan: number;
  readonly division: PlanDivision;
  readonly dividing: Pick<Dividing, "gatheredBytesMax" | "isInTurn">;
}

export class DividedQuery {
  readonly #query: ReaderQuery;
  readonly #options: DividedQueryOptions;
  readonly #shape: string;
  readonly #claims: ClaimWords;
  readonly #ledgers: PartLedger[] = [];
  readonly #reads: ReaderRead[] = [];
  /** The numbers of the readers that may leave their remaining row groups to the other readers. */
  readonly #sparable = new Set<number>();
  readonly #gathered: Batch[] = [];
  #gatheredBytes = 0;
  #partsLeft: number;
  #isFirstWaiting = false;
  #isWhole = false;
  #isEnding = false;
  #failure: Error | undefined;

  constructor(query: ReaderQuery, options: DividedQueryOptions) {
    this.#query = query;
    this.#options = options;
    this.#shape = shapeOf(options.division.root);
    this.#partsLeft = options.readers.length;
    const bytes = (1 + options.readers.length) * Int32Array.BYTES_PER_ELEMENT;
    this.#claims = new Int32Array(new SharedArrayBuffer(bytes));
  }

  stop(): void {
    this.#failure ??= new Error("The rows are no longer needed");
    this.#end(this.#failure);
  }

  /**
   * Runs the parts of the divided query in all readers.
   * @returns "refused" if a single reader should run the query instead.
   * @throws {DatabaseError}
   * @throws {CorruptionError}
   */
  async run(): Promise<ReadOutcome> {
    const { ledger } = this.#query;
    const { rowsRead } = ledger;
    ledger.wake = () => this.#wake();
    await Promise.all(this.#options.readers.map((reader, number) => this.#runPart(reader, number)));
    ledger.wake = undefined;
    ledger.bytesElsewhere -= this.#gatheredBytes;
    if (this.#failure === undefined && this.#isEnding) {
      ledger.rowsRead = rowsRead;
      await Promise.all(this.#reads.map(({ done }) => done));
    }
    if (this.#failure !== undefined) throw this.#failure;
    return this.#isEnding ? "refused" : "read";
  }

  /**
   * Makes one reader leave its remaining row groups to the other readers, so that it can run a
   * different statement. Returns false if no reader can do so.
   */
  sparesOne(): boolean {
    for (const number of this.#sparable) {
      this.#sparable.delete(number);
      Atomics.store(this.#claims, 1 + number, 1);
      return true;
    }
    return false;
  }

  #partOf(number: number): JobPart {
    const { dividing, division, readers } = this.#options;
    const claims: PartClaims = dividing.isInTurn
      ? { kind: "turn", number, of: readers.length }
      : { kind: "counter", words: this.#claims, number };
    return { at: division.at, shape: this.#shape, isFirst: number === 0, claims };
  }

  /** Runs one part of the divided query. The promise never rejects. */
  async #runPart(reader: ReaderThread, number: number): Promise<void> {
    if (this.#isEnding) return;
    const part = this.#partOf(number);
    const ledger = new PartLedger(this.#query.ledger);
    this.#ledgers.push(ledger);
    try {
      const read = reader.run(this.#partQuery(part, ledger), this.#options.plan, part);
      this.#reads.push(read);
      if (!part.isFirst) this.#sparable.add(number);
      const outcome = await read.outcome;
      this.#sparable.delete(number);
      if (outcome !== "read") this.#end();
      else if (!part.isFirst) this.#notePartEnded();
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #partQuery({ isFirst }: JobPart, ledger: QueryLedger): ReaderQuery {
    const query = this.#query;
    return {
      ...query,
      source: () => query.source(),
      ledger,
      onBatch: (batch) => {
        if (this.#isWhole) query.onBatch(batch);
        else this.#gather(batch);
      },
      taken: () => (this.#isWhole ? query.taken?.() : undefined),
      ...(isFirst && { onParted: () => this.#noteFirstParted() }),
    };
  }

  #gather(batch: Batch): void {
    if (this.#isEnding) return;
    this.#gathered.push(batch);
    const bytes = batchBytes(batch);
    this.#gatheredBytes += bytes;
    this.#query.ledger.bytesElsewhere += bytes;
    if (this.#gatheredBytes > this.#options.dividing.gatheredBytesMax) this.#end();
  }

  #noteFirstParted(): void {
    this.#isFirstWaiting = true;
    if (this.#isEnding) this.#runWhole([]);
    else this.#notePartEnded();
  }

  #notePartEnded(): void {
    this.#partsLeft -= 1;
    if (this.#partsLeft > 0 || this.#isEnding) return;
    this.#isWhole = true;
    this.#runWhole(this.#gathered.splice(0));
  }

  #runWhole(gathered: readonly Batch[]): void {
    this.#isFirstWaiting = false;
    this.#reads[0]?.goOn({ kind: "whole", gathered });
  }

  /**
   * Makes all readers stop working on the statement.
   *
   * @param failure The error of the statement; absent if the statement will be restarted.
   */
  #end(failure?: Error): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#sparable.clear();
    this.#failure = failure;
    this.#gathered.length = 0;
    for (const ledger of this.#ledgers) ledger.isEnded = true;
    this.#wake();
    // The message to continue may contain no rows, because the reader checks for cancellation
    // first.
    if (this.#isFirstWaiting) this.#runWhole([]);
  }

  #wake(): void {
    for (const { wake } of this.#ledgers) wake?.();
  }
}

/**
 * The ledger for one part of a divided query. It delegates to the ledger of the statement, except
 * for the figures that concern only the part.
 */
class PartLedger implements QueryLedger {
  readonly #whole: QueryLedger;
  /** Whether the divided statement no longer needs this part. */
  isEnded = false;
  wake: (() => void) | undefined;
  #rowsRead = 0;
  #bytesElsewhere = 0;

  constructor(whole: QueryLedger) {
    this.#whole = whole;
  }

  get cancelledBy(): QueryLedger["cancelledBy"] {
    return this.isEnded ? "kill" : this.#whole.cancelledBy;
  }

  get deadlineMs(): number {
    return this.#whole.deadlineMs;
  }

  get rowsRead(): number {
    return this.#rowsRead;
  }

  set rowsRead(count: number) {
    this.#whole.rowsRead += count - this.#rowsRead;
    this.#rowsRead = count;
  }

  get bytesElsewhere(): number {
    return this.#bytesElsewhere;
  }

  set bytesElsewhere(bytes: number) {
    this.#whole.bytesElsewhere += bytes - this.#bytesElsewhere;
    this.#bytesElsewhere = bytes;
  }
}
