/**
 * Computes GROUP BY and aggregates: every row is added to the states of its group, and the groups
 * are yielded at the end, in order of first appearance.
 *
 * With grouping sets, every row is added once per set. The number of the set is the first part of
 * the key, so equal values in different sets form different groups.
 *
 * If memory runs out, the groups already in memory stay there, and the rows of all other groups
 * are partitioned by key on disk, together with the arguments of all calls:
 *
 *     adding ──crowded──► dividing ──end──► groups are yielded ──► each partition is aggregated
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  type Batch,
  constVector,
  type DataType,
  INT,
  keepRows,
  type Selection,
  take,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type {
  AggregateForm,
  AggregateState,
  BatchGroups,
} from "../../functions/aggregate/aggregates.ts";
import type { Partitions } from "../../spill/mod.ts";
import { type ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import {
  columnReader,
  PartitionWork,
  rowsWhere,
  type SpillOptions,
  SpillSite,
} from "../context/spilling.ts";
import { type Evaluator, selectRows } from "../evaluate/expression.ts";
import { Grouping } from "../keys/grouping.ts";
import { NO_KEY } from "../keys/key_hash_table.ts";
import { bytesOf, type MemoryBudget } from "../materialised/memory_budget.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { AggregateRows, type GroupedRows } from "./aggregate_rows.ts";
import type { StateFactory } from "./stepped_state.ts";

export interface AggregateColumn {
  readonly form: AggregateForm;
  /** Creates the states of the call. */
  readonly create: StateFactory;
  /** The arguments of an aggregate call; empty for count(*). */
  readonly args: readonly Evaluator[];
  readonly argumentTypes: readonly DataType[];
  readonly isDistinct: boolean;
  readonly filter: Evaluator | undefined;
  readonly orderBy: readonly SortKey[];
}

export interface AggregateOptions extends SpillOptions {
  readonly input: Operator;
  readonly keys: readonly Evaluator[];
  readonly keyTypes: readonly DataType[];
  readonly aggregates: readonly AggregateColumn[];
  /**
   * The positions in `keys` of the keys of each grouping set. If undefined, all keys form one set.
   * If there are grouping sets, the calls read rows that end with the keys of the set, in the
   * order of `keys`.
   */
  readonly sets?: readonly (readonly number[])[] | undefined;
}

/** The states of an aggregate call, one per group. */
interface Accumulator {
  readonly column: AggregateColumn;
  readonly state: AggregateState;
  /**
   * Applies DISTINCT and ORDER BY of an aggregate call to rows before they are added to a state.
   */
  readonly rows: AggregateRows | undefined;
}

export class Aggregate implements Operator {
  readonly #options: AggregateOptions;
  readonly #keyTypes: readonly DataType[];
  readonly #site: SpillSite;
  readonly #groups: Grouping;
  readonly #accumulators: readonly Accumulator[];
  /** The memory budget for aggregate states that grow with each row. */
  readonly #growing: MemoryBudget;
  /** The number of rows that the aggregate states keep. */
  #keptCount = 0;
  /** The number of groups yielded so far; undefined until the input has ended. */
  #position: number | undefined;
  /** The rows on disk, partitioned by key; undefined until memory runs out. */
  #partitions: Partitions | undefined;
  #later: Operator | undefined;

  constructor(options: AggregateOptions) {
    const { level = 0, node, context } = options;
    this.#options = options;
    this.#keyTypes = options.sets === undefined ? options.keyTypes : [INT, ...options.keyTypes];
    this.#site = new SpillSite(options);
    this.#growing = context.memory.nested();
    this.#groups = new Grouping(this.#keyTypes, this.#site.memory);
    this.#accumulators = options.aggregates.map((column) => {
      const { isDistinct, orderBy } = column;
      const isPlain = !isDistinct && orderBy.length === 0;
      const rows = isPlain
        ? undefined
        : new AggregateRows({
            ...column,
            context,
            node,
            level,
            isGrouped: this.#keyTypes.length > 0,
          });
      return { column, state: column.create(context), rows };
    });
  }

  next(): Batch | undefined {
    if (this.#later !== undefined) return this.#later.next();
    this.#position ??= this.#read();
    const groupCount = this.#groupCount();
    if (this.#position >= groupCount) return this.#workLater();
    this.#options.context.checkTime();
    const start = this.#position;
    const end = Math.min(groupCount, start + this.#groupsTogether(groupCount));
    this.#position = end;
    return { rowCount: end - start, columns: this.#columnsOf(start, end) };
  }

  close(): void {
    this.#options.input.close();
    this.#later?.close();
    this.#partitions?.close();
    this.#giveBack();
  }

  /** Releases the memory of the groups. */
  #giveBack(): void {
    for (const { rows } of this.#accumulators) rows?.close();
    this.#site.close();
    this.#growing.close();
  }

  /** Adds all rows from the input. Returns the number of the first group to yield. */
  #read(): number {
    const { input, context } = this.#options;
    for (
      let batch = nextRows(input, context);
      batch !== undefined;
      batch = nextRows(input, context)
    ) {
      this.#add(batch);
    }
    this.#makeGroupsOfEmptySets();
    for (const accumulator of this.#accumulators) {
      for (const rows of accumulator.rows?.rest() ?? []) {
        context.checkTime();
        this.#addRows(accumulator, rows);
      }
    }
    return 0;
  }

  /**
   * Returns the number of groups. Without GROUP BY, there is one group even if the input is empty.
   */
  #groupCount(): number {
    return this.#keyTypes.length === 0 ? 1 : this.#groups.groupCount;
  }

  #add(batch: Batch): void {
    const { keys, context, sets } = this.#options;
    const vectors = keys.map((key) => key(batch, context));
    if (sets === undefined) {
      if (keys.length === 0) this.#addTo(batch, undefined);
      else this.#addKeyed(batch, vectors);
      this.#divideIfDue();
      return;
    }
    for (let number = 0; number < sets.length; number += 1) {
      context.checkTime();
      const keysOfSet = this.#keysOfSet(number, vectors, batch.rowCount);
      const columns = [...batch.columns, ...keysOfSet.slice(1)];
      this.#addKeyed({ rowCount: batch.rowCount, columns }, keysOfSet);
      this.#divideIfDue();
    }
  }

  #divideIfDue(): void {
    if (this.#partitions === undefined && this.#options.keys.length > 0 && this.#site.isDue) {
      // The groups of grouping sets without keys always stay in memory, even before they have
      // rows.
      this.#makeGroupsOfEmptySets();
      this.#partitions = divisionFor(this.#options.aggregates, this.#keyTypes, this.#site);
    }
  }

  #addKeyed(batch: Batch, keys: readonly Vector[]): void {
    const { rowCount } = batch;
    if (this.#partitions === undefined) {
      this.#addTo(batch, this.#groups.groupsOf(keys, rowCount));
      return;
    }
    const ids = this.#groups.knownGroupIdsOf(keys, rowCount);
    const known = rowsWhere(rowCount, (row) => ids[row] !== NO_KEY);
    if (known.count > 0) {
      const { groupCount } = this.#groups;
      const found = { ids: new Uint32Array(ids.buffer), groupCount, rowCounts: undefined };
      this.#addTo(keepRows(batch, known), keptGroups(found, known));
    }
    const others = rowsWhere(rowCount, (row) => ids[row] === NO_KEY);
    if (others.count === 0) return;
    const { aggregates, context } = this.#options;
    const otherKeys = keys.map((key) => take(key, others));
    const args = spilledArguments(aggregates, keepRows(batch, others), context);
    this.#partitions.add({ rowCount: others.count, columns: [...otherKeys, ...args] }, otherKeys);
  }

  #workLater(): Batch | undefined {
    const partitions = this.#partitions;
    if (partitions === undefined) return undefined;
    this.#giveBack();
    const aggregates = spilledAggregates(this.#options.aggregates, this.#keyTypes.length);
    const keyTypes = this.#keyTypes;
    const keys = keyTypes.map((_, position) => columnReader(position));
    this.#later = new PartitionWork((partition) => {
      if (partitions.rowCountOf(partition) === 0) return undefined;
      const input = partitions.reader(partition);
      return new Aggregate({ ...this.#site.deeper, input, keys, keyTypes, aggregates });
    });
    return this.#later.next();
  }

  #addTo(batch: Batch, groups: BatchGroups | undefined): void {
    for (const accumulator of this.#accumulators) this.#accumulate(accumulator, batch, groups);
  }

  /** Returns the key columns for a grouping set, beginning with the number of the set. */
  #keysOfSet(number: number, vectors: readonly Vector[], rowCount: number): Vector[] {
    const set = this.#options.sets?.[number] ?? [];
    const keys = this.#options.keyTypes.map((_, position) => {
      const vector = vectors[position];
      return vector !== undefined && set.includes(position) ? vector : constVector(null, rowCount);
    });
    return [constVector(number, rowCount), ...keys];
  }

  #accumulate(accumulator: Accumulator, batch: Batch, all: BatchGroups | undefined): void {
    const { column } = accumulator;
    const { context } = this.#options;
    let input = batch;
    let groups = all;
    if (column.filter !== undefined) {
      const kept = selectRows(column.filter(batch, context), batch.rowCount);
      input = keepRows(input, kept);
      groups = keptGroups(groups, kept);
    }
    const { rowCount } = input;
    if (rowCount === 0) return;
    const args = column.args.map((argument) => argument(input, context));
    if (accumulator.rows === undefined) {
      this.#addRows(accumulator, { args, groups, rowCount });
      return;
    }
    const keys = column.orderBy.map((key) => key.evaluate(input, context));
    const passed = accumulator.rows.pass({ args, groups, rowCount }, keys);
    if (passed !== undefined) this.#addRows(accumulator, passed);
  }

  #addRows({ state }: Accumulator, { args, groups, rowCount }: GroupedRows): void {
    const { effort } = this.#options.context;
    if (state.keepsRows === true) this.#keptCount += rowCount;
    if (args.length <= 1 && state.addVector?.(groups, args[0], rowCount) === true) return;
    for (let row = 0; row < rowCount; row += 1) {
      const group = groups?.ids[row] ?? 0;
      const values = args.map((vector) => valueAt(vector, row));
      for (const value of values) effort.noteRead(value);
      effort.noteRows(1);
      if (state.keepsRows === true) {
        let bytes = 16;
        for (const value of values) bytes += bytesOf(value);
        this.#growing.take(bytes);
      }
      state.add(group, ...values);
    }
  }

  /**
   * Returns the number of groups whose results are computed together, so that the states of these
   * groups contain about one batch of rows.
   */
  #groupsTogether(groupCount: number): number {
    const rowsEach = Math.ceil(this.#keptCount / groupCount);
    return Math.max(1, Math.floor(BATCH_ROWS_MAX / Math.max(1, rowsEach)));
  }

  /** Creates the group of each empty grouping set. It exists even if there are no input rows. */
  #makeGroupsOfEmptySets(): void {
    for (const [number, set] of (this.#options.sets ?? []).entries()) {
      if (set.length === 0) this.#groups.groupIdsOf(this.#keysOfSet(number, [], 1), 1);
    }
  }

  #columnsOf(start: number, end: number): Vector[] {
    const checkTime = (): void => this.#options.context.checkTime();
    const columns = this.#keyTypes.map((_, position) => this.#groups.keysOf(position, start, end));
    for (const { column, state } of this.#accumulators) {
      const finished = state.finishRange?.(start, end);
      if (finished !== undefined) {
        columns.push(finished);
        continue;
      }
      const values: Value[] = [];
      for (let group = start; group < end; group += 1) values.push(state.finish(group, checkTime));
      columns.push(vectorFromValues(column.form.result, values));
    }
    return columns;
  }
}

/**
 * Returns the number of columns that an aggregate call has in a spilled row: its arguments, its
 * filter result and its sort keys.
 */
function widthOf({ args, filter, orderBy }: AggregateColumn): number {
  return args.length + (filter === undefined ? 0 : 1) + orderBy.length;
}

function divisionFor(
  aggregates: readonly AggregateColumn[],
  keyTypes: readonly DataType[],
  site: SpillSite,
): Partitions {
  let width = keyTypes.length;
  for (const column of aggregates) width += widthOf(column);
  return site.partitions(width, keyTypes);
}

/**
 * Returns the columns of a spilled row that the aggregate calls need. For rows that the filter of
 * a call excludes, the columns of that call are not evaluated.
 */
function spilledArguments(
  aggregates: readonly AggregateColumn[],
  batch: Batch,
  context: ExecutionContext,
): Vector[] {
  const { rowCount } = batch;
  return aggregates.flatMap(({ args, filter, orderBy }) => {
    const evaluators = [...args, ...orderBy.map(({ evaluate }) => evaluate)];
    if (filter === undefined) return evaluators.map((evaluate) => evaluate(batch, context));
    const seen = filter(batch, context);
    const kept = selectRows(seen, rowCount);
    const input = keepRows(batch, kept);
    const spread = evaluators.map((evaluate): Vector => {
      if (kept.count === 0) return constVector(null, rowCount);
      const vector = evaluate(input, context);
      const values: Value[] = Array.from({ length: rowCount }, () => null);
      for (let i = 0; i < kept.count; i += 1) values[kept.rows[i] ?? 0] = valueAt(vector, i);
      return { kind: "any", length: rowCount, values };
    });
    return [...spread, seen];
  });
}

/**
 * Returns the aggregate calls rewritten to read spilled rows, in which their columns follow the
 * keys.
 */
function spilledAggregates(
  aggregates: readonly AggregateColumn[],
  keyCount: number,
): AggregateColumn[] {
  let start = keyCount;
  return aggregates.map((column) => {
    const first = start;
    start += widthOf(column);
    const { args, filter, orderBy } = column;
    return {
      ...column,
      args: args.map((_, i) => columnReader(first + i)),
      orderBy: orderBy.map(({ isDescending, nullsFirst, type }, i): SortKey => {
        const evaluate = columnReader(first + args.length + i);
        return { evaluate, type, isDescending, nullsFirst };
      }),
      filter: filter === undefined ? undefined : columnReader(start - 1),
    };
  });
}

function keptGroups(
  groups: BatchGroups | undefined,
  { rows, count }: Selection,
): BatchGroups | undefined {
  if (groups === undefined) return undefined;
  const ids = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) ids[i] = groups.ids[rows[i] ?? 0] ?? 0;
  return { ids, groupCount: groups.groupCount, rowCounts: undefined };
}
