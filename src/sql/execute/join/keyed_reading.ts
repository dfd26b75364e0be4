/**
 * A side of a join that is read by the keys of the other side, where those turn out to be few.
 *
 *     the join reads the other side first         its keys are noted as they pass
 *     the join reads the keyed side first         rows of the other side are taken ahead, and held
 *                                                 until the join asks for them
 *     the keyed side is asked for its first row   few keys: it is read by them; else it is scanned
 *
 * The join knows nothing of it: it meets the same pairs, and tests its keys on each.
 *
 * It costs that the keys of up to 8,192 rows are computed twice, and that those of a side which
 * would have been read second are held.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { DataType, Row, Value, Vector } from "../../../types/mod.ts";
import { type Batch, valueAt } from "../../../types/mod.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { HeldColumns } from "../held/held_columns.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import { endsRequest } from "../run/request_ledger.ts";
import type { Run } from "../run/run.ts";
import { heldBatches } from "./divided_join.ts";

export interface NotedKeysOptions {
  readonly run: Run;
  /** The side that is not keyed. */
  readonly input: Operator;
  readonly types: readonly DataType[];
  readonly keys: readonly Evaluator[];
  /** Where the parts of the keyed side's key come from: a key of the join, or a value. */
  readonly parts: readonly (number | ((run: Run) => Value))[];
  readonly partTypes: readonly DataType[];
  /** Whether so many keys are few. */
  readonly areFew: (keyCount: number) => boolean;
}

/** More rows are not looked through for keys, however few of them differ. */
const NOTED_ROWS_MAX = 8192;

/** Passes rows, and notes the keys of another table that they ask for. */
export class NotedKeys implements Operator {
  readonly #options: NotedKeysOptions;
  readonly #fixed: readonly Value[];
  readonly #memory: MemoryBudget;
  /** Undefined once they are many. */
  #keys: Map<string, Row> | undefined = new Map();
  #rowCount = 0;
  #isEnded = false;
  /**
   * Rows that were taken ahead, but for the last batch, which lasts until the next is asked for.
   */
  #ahead: HeldColumns | undefined;
  #last: Batch | undefined;
  #batches: Iterator<Batch, void> | undefined;
  #fault: DatabaseError | undefined;

  constructor(options: NotedKeysOptions) {
    const { parts, run } = options;
    this.#options = options;
    this.#fixed = parts.map((part) => (typeof part === "number" ? null : part(run)));
    this.#memory = run.memory.elastic();
  }

  /**
   * The keys that all rows ask for, each once; undefined while rows are missing, or if they are
   * many.
   */
  get keys(): readonly Row[] | undefined {
    return this.#isEnded && this.#keys !== undefined ? [...this.#keys.values()] : undefined;
  }

  next(): Batch | undefined {
    if (this.#ahead !== undefined) {
      this.#batches ??= heldBatches(this.#ahead);
      const step = this.#batches.next();
      if (step.done !== true) return step.value;
      this.#ahead = undefined;
      this.#memory.close();
    }
    const last = this.#last;
    this.#last = undefined;
    if (last !== undefined) return last;
    // The other side had this read ahead: the failure is not its own.
    if (this.#fault !== undefined) throw this.#fault;
    return this.#isEnded ? undefined : this.#take();
  }

  /** Takes a batch ahead of its reader; false when there is no reason to take another. */
  takeAhead(): boolean {
    if (this.#isEnded || this.#fault !== undefined || this.#keys === undefined) return false;
    if (this.#last !== undefined) this.#hold(this.#last);
    this.#last = undefined;
    try {
      this.#last = this.#take();
    } catch (error) {
      if (!(error instanceof DatabaseError) || endsRequest(error)) throw error;
      this.#fault = error;
    }
    return true;
  }

  close(): void {
    this.#options.input.close();
    this.#letGo();
  }

  /** What takes much memory is not taken ahead any further. */
  #hold(batch: Batch): void {
    this.#ahead ??= new HeldColumns(this.#options.types, this.#memory);
    this.#ahead.append(batch.columns, batch.rowCount);
    if (this.#memory.isCrowded) this.#keys = undefined;
  }

  #letGo(): void {
    this.#ahead = undefined;
    this.#last = undefined;
    this.#memory.close();
  }

  #take(): Batch | undefined {
    const { input, run } = this.#options;
    const batch = nextRows(input, run);
    if (batch === undefined) this.#isEnded = true;
    else if (this.#keys !== undefined) this.#note(batch, this.#keys);
    return batch;
  }

  #note(batch: Batch, known: Map<string, Row>): void {
    const { areFew, partTypes } = this.#options;
    const { rowCount } = batch;
    this.#rowCount += rowCount;
    if (this.#rowCount <= NOTED_ROWS_MAX) {
      const vectors = this.#vectorsOf(batch);
      if (vectors === undefined) {
        this.#keys = undefined;
        return;
      }
      for (let row = 0; row < rowCount; row += 1) {
        const key = this.#keyAt(vectors, row);
        if (key.includes(null)) continue;
        known.set(keyTextOf(partTypes, key), key);
        if (!areFew(known.size)) break;
      }
    }
    if (this.#rowCount > NOTED_ROWS_MAX || !areFew(known.size)) this.#keys = undefined;
  }

  /** Undefined if a key cannot be computed: the join fails by itself where it needs the key. */
  #vectorsOf(batch: Batch): Vector[] | undefined {
    const { keys, run } = this.#options;
    try {
      return keys.map((key) => key(batch, run));
    } catch (error) {
      if (!(error instanceof DatabaseError) || endsRequest(error)) throw error;
      return undefined;
    }
  }

  #keyAt(vectors: readonly Vector[], row: number): Value[] {
    return this.#options.parts.map((part, i) => {
      if (typeof part !== "number") return this.#fixed[i] ?? null;
      const vector = vectors[part];
      return vector === undefined ? null : valueAt(vector, row);
    });
  }
}

export interface KeyedSideOptions {
  readonly noted: NotedKeys;
  /** The join asks for this side before it has read the other one. */
  readonly isFirst: boolean;
  readonly scan: () => Operator;
  readonly lookUp: (keys: readonly Row[]) => Operator;
}

/** The side itself: a scan, or lookups. */
export class KeyedSide implements Operator {
  readonly #options: KeyedSideOptions;
  #rows: Operator | undefined;

  constructor(options: KeyedSideOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { isFirst, lookUp, noted, scan } = this.#options;
    if (this.#rows === undefined) {
      if (isFirst) while (noted.takeAhead());
      const { keys } = noted;
      this.#rows = keys === undefined ? scan() : lookUp(keys);
    }
    return this.#rows.next();
  }

  close(): void {
    this.#rows?.close();
  }
}
