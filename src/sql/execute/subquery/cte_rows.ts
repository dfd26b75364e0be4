/** Stores the rows of a WITH entry during an execution. */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, slice } from "../../../types/mod.ts";
import type { BoundCte } from "../../bind/bound.ts";
import { planOfCte } from "../../plan/planner.ts";
import { type BlockRef, piecesOf, type SpillFile } from "../../spill/mod.ts";
import { buildPlan } from "../build/build.ts";
import { type ExecutionContext, type SharedRows } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import { made, type Operator, type OperatorFactory } from "../context/operator.ts";
import { SpillSite } from "../context/spilling.ts";
import { MaterialisedRows } from "../materialised/materialised_rows.ts";
import { batchBytes } from "../materialised/memory_budget.ts";

/** The approximate size of a block of rows on disk. */
const BLOCK_BYTES = 256 * 1024;

const FACTORIES = new WeakMap<BoundCte, OperatorFactory>();
function factoryOf(cte: BoundCte): OperatorFactory {
  const known = FACTORIES.get(cte);
  if (known !== undefined) return known;
  const factory = buildPlan(planOfCte(cte));
  FACTORIES.set(cte, factory);
  return factory;
}

/** Rows on disk, and the number of the first row in each block. */
interface SpilledRows {
  readonly file: SpillFile;
  readonly blocks: BlockRef[];
  readonly starts: number[];
}

/**
 * Keeps rows in memory as long as there is enough memory, and then on disk. The file is removed at
 * the end of the statement.
 */
export class CteRows implements SharedRows {
  readerCount = 0;
  readonly #onUnused: () => void;
  readonly #input: Operator;
  readonly #site: SpillSite;
  readonly #rows: MaterialisedRows;
  readonly #columnCount: number;
  readonly #context: ExecutionContext;
  #rowCount = 0;
  #spilled: SpilledRows | undefined;
  #isOver = false;

  /**
   * Creates the rows of a WITH entry for several consumers.
   * @param onUnused Called when the last consumer stops before all rows have been computed.
   */
  constructor(
    cte: BoundCte,
    { onUnused, context }: { context: ExecutionContext; onUnused: () => void },
  ) {
    const types = cte.query.outputs.map(({ expression }) => expression.type);
    this.#site = new SpillSite({ context, node: planOfCte(cte) });
    this.#rows = new MaterialisedRows(types, this.#site.memory);
    this.#columnCount = types.length;
    this.#context = context;
    this.#input = made(factoryOf(cte), context);
    this.#onUnused = onUnused;
  }

  read(position: number): Batch | undefined {
    if (position >= this.#rowCount) return undefined;
    if (this.#spilled === undefined) return this.#rows.batchFrom(position);
    const { blocks, file, starts } = this.#spilled;
    const index = lastAtMost(starts, position);
    const batch = file.read(defined(blocks[index], "WITH rows: spilled row has no block"));
    const skipped = position - (starts[index] ?? 0);
    if (skipped === 0) return batch;
    const columns = batch.columns.map((column) => slice(column, skipped, batch.rowCount));
    return { rowCount: batch.rowCount - skipped, columns };
  }

  advance(): boolean {
    if (this.#isOver) return false;
    const batch = nextRows(this.#input, this.#context);
    if (batch === undefined) {
      this.#isOver = true;
      this.#input.close();
      return false;
    }
    if (this.#spilled !== undefined) {
      const columns = batch.columns.slice(0, this.#columnCount);
      append(this.#spilled, this.#rowCount, { rowCount: batch.rowCount, columns });
      this.#rowCount += batch.rowCount;
      return true;
    }
    this.#rows.append(batch.columns, batch.rowCount);
    this.#rowCount = this.#rows.rowCount;
    if (this.#site.isDue) this.#spill();
    return true;
  }

  giveBack(): void {
    this.readerCount -= 1;
    if (this.readerCount > 0 || this.#isOver) return;
    this.close();
    this.#onUnused();
  }

  /** Releases all rows. They will not be read again. */
  close(): void {
    if (!this.#isOver) this.#input.close();
    this.#spilled?.file.close();
    this.#site.close();
  }

  #spill(): void {
    const spilled = { file: this.#site.file(this.#columnCount), blocks: [], starts: [] };
    for (let start = 0; start < this.#rowCount; start += BATCH_ROWS_MAX) {
      this.#context.checkTime();
      append(spilled, start, this.#rows.batchFrom(start));
    }
    this.#spilled = spilled;
    this.#rows.clear();
  }
}

/**
 * Appends rows to the file on disk.
 * @param start The number of the first row.
 */
function append({ blocks, file, starts }: SpilledRows, start: number, batch: Batch): void {
  let row = start;
  for (const piece of piecesOf(batch, { bytes: batchBytes(batch), bytesMax: BLOCK_BYTES })) {
    starts.push(row);
    blocks.push(file.append(piece));
    row += piece.rowCount;
  }
}

/**
 * Returns the index of the last number in an ascending list that is at most `number`. The first
 * number in the list must satisfy this condition.
 */
function lastAtMost(numbers: readonly number[], number: number): number {
  let low = 0;
  let high = numbers.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) <= number) low = middle;
    else high = middle;
  }
  return low;
}
