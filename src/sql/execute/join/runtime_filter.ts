/**
 * Reads one side of a join by the keys of the other side if there turn out to be few keys.
 *
 *     the join reads the other side first         its keys are noted as they pass
 *     the join reads the keyed side first         rows of the other side are taken ahead, and held
 *                                                 until the join asks for them
 *     the keyed side is asked for its first row   few keys: it is read by them; else it is scanned
 *
 * The join itself is not affected: it forms the same pairs, and still compares the keys of each
 * pair.
 *
 * The cost is that the keys of up to 8,192 rows are computed twice, and that a side that would
 * have been read second is partly kept in memory.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { DataType, Row, Value, Vector } from "../../../types/mod.ts";
import { type Batch, valueAt } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { endsRequest } from "../context/request_ledger.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { Grouping } from "../keys/grouping.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { BuildColumns } from "../materialised/build_columns.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import { buildBatches } from "./grace_hash_join.ts";
import type { LookupPart } from "./lookup_join.ts";

export interface RuntimeFilterKeysOptions {
  readonly context: ExecutionContext;
  /** The side of the join that supplies the keys. */
  readonly input: Operator;
  readonly types: readonly DataType[];
  readonly keys: readonly Evaluator[];
  readonly parts: readonly LookupPart[];
  readonly partTypes: readonly DataType[];
  /** Returns whether the given number of keys is small enough for lookups. */
  readonly areFew: (keyCount: number) => boolean;
}

interface CollectedKeys {
  readonly keys: Map<string, Row>;
  /** Finds the rows of a batch whose key may be new. */
  readonly grouping: Grouping;
}

/** The maximum number of rows whose keys are collected, however few distinct keys they have. */
const NOTED_ROWS_MAX = 8192;

/** Passes rows on, and collects the keys by which the other side is read. */
export class RuntimeFilterKeys implements Operator {
  readonly #options: RuntimeFilterKeysOptions;
  readonly #fixed: readonly Value[];
  /** The join keys that are parts, by index. Their values tell keys apart. */
  readonly #variable: readonly number[];
  readonly #memory: MemoryBudget;
  readonly #keyMemory: MemoryBudget;
  /** The distinct keys so far; undefined once there are too many keys. */
  #known: CollectedKeys | undefined;
  #rowCount = 0;
  #isEnded = false;
  /**
   * The rows that were read ahead. The last batch is kept separately, because it stays valid until
   * the next batch is read.
   */
  #ahead: BuildColumns | undefined;
  #last: Batch | undefined;
  #batches: Iterator<Batch, void> | undefined;
  #fault: DatabaseError | undefined;

  constructor(options: RuntimeFilterKeysOptions) {
    const { parts, partTypes, context } = options;
    this.#options = options;
    this.#variable = parts.filter((part) => typeof part === "number");
    this.#fixed = parts.map((part) => (typeof part === "number" ? null : part(context)));
    this.#memory = context.memory.elastic();
    this.#keyMemory = context.memory.elastic();
    const types = partTypes.filter((_, i) => typeof parts[i] === "number");
    const grouping = new Grouping(types, this.#keyMemory, { keepsKeys: false });
    this.#known = { keys: new Map(), grouping };
  }

  /**
   * The distinct keys of all rows; undefined while rows are missing, or if there are too many
   * keys.
   */
  get keys(): readonly Row[] | undefined {
    if (!this.#isEnded || this.#known === undefined) return undefined;
    return [...this.#known.keys.values()];
  }

  next(): Batch | undefined {
    if (this.#ahead !== undefined) {
      this.#batches ??= buildBatches(this.#ahead);
      const step = this.#batches.next();
      if (step.done !== true) return step.value;
      this.#ahead = undefined;
      this.#memory.close();
    }
    const last = this.#last;
    this.#last = undefined;
    if (last !== undefined) return last;
    // If reading ahead has failed, the error is raised here, where the join reads the rows that
    // failed.
    if (this.#fault !== undefined) throw this.#fault;
    return this.#isEnded ? undefined : this.#take();
  }

  /** Reads a batch ahead. Returns false if no further batch should be read ahead. */
  takeAhead(): boolean {
    if (this.#isEnded || this.#fault !== undefined || this.#known === undefined) return false;
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

  /**
   * Holds a batch that was read ahead. Stops reading ahead once the rows take up a lot of memory.
   */
  #hold(batch: Batch): void {
    this.#ahead ??= new BuildColumns(this.#options.types, this.#memory);
    this.#ahead.append(batch.columns, batch.rowCount);
    if (this.#memory.isCrowded) this.#forget();
  }

  #letGo(): void {
    this.#ahead = undefined;
    this.#last = undefined;
    this.#memory.close();
    this.#forget();
  }

  /** Gives up collecting keys. */
  #forget(): void {
    this.#known = undefined;
    this.#keyMemory.close();
  }

  #take(): Batch | undefined {
    const { input, context } = this.#options;
    const batch = nextRows(input, context);
    if (batch === undefined) {
      this.#isEnded = true;
      this.#keyMemory.close();
    } else if (this.#known !== undefined) {
      this.#note(batch, this.#known);
    }
    return batch;
  }

  #note(batch: Batch, { grouping, keys }: CollectedKeys): void {
    const { areFew, partTypes } = this.#options;
    const { rowCount } = batch;
    this.#rowCount += rowCount;
    const vectors = this.#rowCount <= NOTED_ROWS_MAX ? this.#vectorsOf(batch) : undefined;
    if (vectors === undefined) {
      this.#forget();
      return;
    }
    const variable = this.#variable.flatMap((part) => vectors[part] ?? []);
    const { count, rows } = grouping.newRowsOf(variable, rowCount);
    for (let i = 0; i < count && areFew(keys.size); i += 1) {
      const key = this.#keyAt(vectors, rows[i] ?? 0);
      if (!key.includes(null)) keys.set(keyTextOf(partTypes, key), key);
    }
    if (!areFew(keys.size)) this.#forget();
  }

  /**
   * Computes the keys of a batch. Returns undefined if a key cannot be computed. If the join needs
   * the key, the join itself raises the error.
   */
  #vectorsOf(batch: Batch): Vector[] | undefined {
    const { keys, context } = this.#options;
    try {
      return keys.map((key) => key(batch, context));
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

export interface RuntimeFilteredSideOptions {
  readonly noted: RuntimeFilterKeys;
  /** Whether the join reads the keyed side before the other side. */
  readonly isFirst: boolean;
  readonly scan: () => Operator;
  /** Reads the keyed side by keys. Returns undefined if a scan is faster. */
  readonly lookUp: (keys: readonly Row[]) => Operator | undefined;
}

/** The keyed side of the join, which is either scanned or looked up by key. */
export class RuntimeFilteredSide implements Operator {
  readonly #options: RuntimeFilteredSideOptions;
  #rows: Operator | undefined;

  constructor(options: RuntimeFilteredSideOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { isFirst, lookUp, noted, scan } = this.#options;
    if (this.#rows === undefined) {
      if (isFirst) while (noted.takeAhead());
      const { keys } = noted;
      this.#rows = (keys === undefined ? undefined : lookUp(keys)) ?? scan();
    }
    return this.#rows.next();
  }

  close(): void {
    this.#rows?.close();
  }
}
