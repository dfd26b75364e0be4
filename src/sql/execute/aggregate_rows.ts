/**
 * Which rows an aggregate sees, and in which order, where that is not all of them as they come:
 * DISTINCT and ORDER BY of a call.
 *
 * The rows of a call, with the numbers of their groups, pass the operators that do the same for
 * queries, and so go to disk like theirs when they are too many.
 */
import { type Batch, constVector, type DataType, INT, type Vector } from "../../types/mod.ts";
import { Distinct } from "./distinct.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import { Sort, type SortKey } from "./sort.ts";
import { columnReader, type SpillOptions } from "./spilling.ts";

/** Gives an operator what another one is handed. */
class PushedRows implements Operator {
  readonly #batches: Batch[] = [];
  #isOver = false;

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }

  push(batch: Batch): void {
    this.#batches.push(batch);
  }

  end(): void {
    this.#isOver = true;
  }

  next(): Batch | undefined {
    return this.#batches.shift() ?? (this.#isOver ? undefined : NOTHING_YET);
  }

  close(): void {
    this.#isOver = true;
  }
}

export interface AggregateRowsOptions extends SpillOptions {
  readonly argumentTypes: readonly DataType[];
  readonly isDistinct: boolean;
  readonly orderBy: readonly SortKey[];
}

/** Rows with the numbers of their groups. */
export interface GroupedRows {
  readonly groups: Uint32Array;
  readonly args: readonly Vector[];
  readonly rowCount: number;
}

export class AggregateRows {
  readonly #options: AggregateRowsOptions;
  readonly #pushed = new PushedRows();
  readonly #rows: Operator;

  constructor(options: AggregateRowsOptions) {
    const { argumentTypes, isDistinct, level = 0, node, orderBy, run } = options;
    this.#options = options;
    const site = { run, node, level };
    const types = [INT, ...argumentTypes, ...orderBy.map(({ type }) => type)];
    let rows: Operator = this.#pushed;
    if (orderBy.length > 0) {
      const keys = orderBy.map((key, i): SortKey => {
        return { ...key, evaluate: columnReader(1 + argumentTypes.length + i) };
      });
      // Group by group, so that rows of one group are together when they are added.
      const byGroup = {
        evaluate: columnReader(0),
        type: INT,
        isDescending: false,
        nullsFirst: false,
      };
      rows = new Sort({
        ...site,
        input: rows,
        inputTypes: types,
        keys: [byGroup, ...keys],
        rowsMax: Number.POSITIVE_INFINITY,
      });
    }
    if (isDistinct) {
      const on = [INT, ...argumentTypes].map((_, position) => columnReader(position));
      const ordered = orderBy.length > 0 ? types : undefined;
      rows = new Distinct(rows, { ...site, on, types: [INT, ...argumentTypes], ordered });
    }
    this.#rows = rows;
  }

  /** Whether rows that were handed in wait: their vectors must stay valid until then. */
  get isBusy(): boolean {
    return !this.#pushed.isEmpty;
  }

  /** Goes on with what waits. */
  step(): GroupedRows | undefined {
    return this.#grouped(this.#rows.next());
  }

  /**
   * Hands in rows of a batch. Returns such that can be added now.
   *
   * @param groups Undefined: all are of group 0.
   * @param keys Values of ORDER BY.
   */
  pass(
    args: readonly Vector[],
    {
      groups,
      keys,
      rowCount,
    }: { groups: Uint32Array | undefined; keys: readonly Vector[]; rowCount: number },
  ): GroupedRows | undefined {
    this.#pushed.push({ rowCount, columns: [vectorOf(groups, rowCount), ...args, ...keys] });
    return this.step();
  }

  /** What could not be added before all rows were there, a batch at a time; some may be empty. */
  *rest(): Generator<GroupedRows | undefined, void> {
    this.#pushed.end();
    for (let batch = this.#rows.next(); batch !== undefined; batch = this.#rows.next()) {
      yield this.#grouped(batch);
    }
  }

  close(): void {
    this.#rows.close();
  }

  #grouped(batch: Batch | undefined): GroupedRows | undefined {
    if (batch === undefined || batch.rowCount === 0) return undefined;
    const { columns, rowCount } = batch;
    const args = columns.slice(1, 1 + this.#options.argumentTypes.length);
    return { groups: numbersOf(columns[0] ?? constVector(0, rowCount), rowCount), args, rowCount };
  }
}

function vectorOf(groups: Uint32Array | undefined, length: number): Vector {
  if (groups === undefined) return constVector(0, length);
  const values = new Int32Array(groups.buffer, groups.byteOffset, length);
  return { kind: "i32", length, values, nulls: undefined };
}

function numbersOf(vector: Vector, rowCount: number): Uint32Array {
  if (vector.kind === "i32") {
    return new Uint32Array(vector.values.buffer, vector.values.byteOffset, rowCount);
  }
  const group = vector.kind === "const" ? Number(vector.value) : 0;
  return new Uint32Array(rowCount).fill(group);
}
