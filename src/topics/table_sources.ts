/**
 * Decides which changes to a table are messages of a topic, and assigns each message to a
 * partition.
 *
 * - A version without a predecessor, or with a tombstone as its predecessor, is an insert. A
 *   tombstone is a delete. Any other version is an update.
 * - An update that changes no column is not a message.
 * - If evaluating a source's condition raises an error for a row, the change is not a message, and
 *   the topic reports the error.
 */
import { type DatabaseError, isExpected } from "../base/errors.ts";
import type { Catalog, TableEntry, TopicEntry, TopicSource } from "../catalog/mod.ts";
import type { CompiledExpression, SqlEngine } from "../sql/mod.ts";
import type { OwnedChangeBatch } from "../storage/mod.ts";
import { type Batch, slice, type Value, type Vector, valueAt } from "../types/mod.ts";
import { deadLetterCondition, isDeadLetterSource } from "./dead_letter_source.ts";
import { hashOfNumber, hashOfValue, partitionOf } from "./partition_hash.ts";

/** Receives the messages of a batch in order. */
export type OnMessage = (message: CountedMessage) => void;

/** A counted message. The object is reused from call to call. */
export interface CountedMessage {
  seq: number;
  owner: number;
  sourceId: number;
  partition: number;
}

/** The dependencies for compiling the conditions of sources. */
export interface SourceDeps {
  readonly catalog: Pick<Catalog, "tableById">;
  readonly sql: Pick<SqlEngine, "planLive">;
}

interface Rule {
  readonly source: TopicSource;
  readonly condition:
    | { readonly filter: CompiledExpression; readonly columnIds: readonly number[] }
    | undefined;
}

/** Conditions are compiled with the rights of the system itself, which may read every table. */
const CALLER = {
  userId: "root",
  role: "system",
  owner: undefined,
  actorId: "root",
  actorRole: "system",
  isImpersonated: false,
  sessionId: "",
} as const;

const OPERATIONS = ["insert", "update", "delete"] as const;

export class TableSources {
  readonly table: TableEntry;
  /** The columns read for each change. */
  readonly columnIds: readonly number[];
  /** Sentences that explain why changes are missing from the topic. */
  readonly faults: readonly string[];
  /** Called with a sentence that describes what is wrong with a row. */
  onFault: (fault: string) => void = () => {};
  /** The rules by operation: index 0 is for inserts, 1 for updates and 2 for deletes. */
  readonly #rules: readonly (readonly Rule[])[];
  readonly #partitions: number;
  /** Indexes into `columnIds`: the key columns, and all declared columns. */
  readonly #keyPlaces: readonly number[];
  readonly #comparedPlaces: readonly number[];
  readonly #message: CountedMessage = { seq: 0, owner: 0, sourceId: 0, partition: 0 };

  /**
   * Compiles the conditions of a topic's sources that concern one table.
   * @returns undefined if the table has been dropped.
   */
  static of(topic: TopicEntry, tableId: number, deps: SourceDeps): TableSources | undefined {
    const table = deps.catalog.tableById(tableId);
    return table === undefined ? undefined : new TableSources(topic, table, deps);
  }

  private constructor(
    { partitions, sources, topicId }: TopicEntry,
    table: TableEntry,
    deps: SourceDeps,
  ) {
    this.table = table;
    this.#partitions = partitions;
    const faults: string[] = [];
    const rules: Rule[] = [];
    for (const source of sources) {
      if (source.tableId !== table.tableId) continue;
      try {
        const condition = isDeadLetterSource(source)
          ? deadLetterCondition(topicId)
          : conditionOf(source, table, deps);
        rules.push({ source, condition });
      } catch (error) {
        if (!isExpected(error)) throw error;
        const { name, namespace } = table;
        const { message } = error as DatabaseError;
        faults.push(
          `a change (${source.operation}) to ${namespace}.${name} is omitted, because the ` +
            `source's condition cannot be evaluated: ${message}`,
        );
      }
    }
    this.faults = faults;
    this.#rules = OPERATIONS.map((each) => rules.filter(({ source }) => source.operation === each));
    const read = new Set<number>();
    for (const { condition } of rules) for (const id of condition?.columnIds ?? []) read.add(id);
    if (partitions > 1) for (const id of table.primaryKey) read.add(id);
    const declared = table.columns.map(({ columnId }) => columnId);
    const compares = this.#rules[1]?.length !== 0;
    if (compares) for (const id of declared) read.add(id);
    this.columnIds = [...read];
    this.#keyPlaces = table.primaryKey.map((id) => this.columnIds.indexOf(id));
    this.#comparedPlaces = compares ? declared.map((id) => this.columnIds.indexOf(id)) : [];
  }

  /**
   * Calls `onMessage` for each change from row `start` to row `end` (exclusive) that is a message.
   */
  visit(batch: OwnedChangeBatch, { start, end }: RowRange, onMessage: OnMessage): void {
    const masks = new Map<Rule, Uint8Array>();
    const message = this.#message;
    for (let row = start; row < end; row += 1) {
      const seq = batch.seqs[row] ?? 0;
      const operation = operationAt(batch, row);
      const rule = ruleAt(this.#rules[operation] ?? [], seq);
      if (rule === undefined) continue;
      if (operation === 1 && this.#isUnchanged(batch, row)) continue;
      if (rule.condition !== undefined) {
        let mask = masks.get(rule);
        if (mask === undefined) {
          mask = this.#maskOf(rule, batch, operation);
          masks.set(rule, mask);
        }
        if (mask[row] !== 1) continue;
      }
      message.seq = seq;
      message.owner = batch.owners[row] ?? 0;
      message.sourceId = rule.source.sourceId;
      message.partition = this.#partitions === 1 ? 0 : this.#partitionOf(batch, row);
      onMessage(message);
    }
  }

  #partitionOf({ columns, owners, seqs }: OwnedChangeBatch, row: number): number {
    let hash = hashOfNumber(hashOfNumber(0, this.table.tableId), owners[row] ?? 0);
    if (this.#keyPlaces.length === 0) hash = hashOfNumber(hash, seqs[row] ?? 0);
    for (const place of this.#keyPlaces) {
      const column = columns[place];
      hash = hashOfValue(hash, column === undefined ? null : valueAt(column, row));
    }
    return partitionOf(hash, this.#partitions);
  }

  #isUnchanged({ columns, oldColumns }: OwnedChangeBatch, row: number): boolean {
    for (const place of this.#comparedPlaces) {
      const now = columns[place];
      const old = oldColumns[place];
      if (now === undefined || old === undefined) continue;
      if (!isSame(valueAt(now, row), valueAt(old, row))) return false;
    }
    return true;
  }

  /** Returns a mask with a 1 for each row that satisfies the condition. */
  #maskOf({ condition }: Rule, batch: OwnedChangeBatch, operation: number): Uint8Array {
    const { rowCount } = batch;
    const mask = new Uint8Array(rowCount);
    if (condition === undefined) return mask.fill(1);
    const columns = condition.columnIds.map((id): Vector => {
      const column = batch.columns[this.columnIds.indexOf(id)];
      if (column === undefined)
        throw new Error("topic source: batch lacks a column that the condition reads");
      return column;
    });
    const { filter } = condition;
    try {
      markTrue(filter.evaluate({ rowCount, columns }), mask, 0);
      return mask;
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
    mask.fill(0);
    for (let row = 0; row < rowCount; row += 1) {
      if (operationAt(batch, row) !== operation) continue;
      this.#markRow(filter, rowOf(columns, row), { mask, row });
    }
    return mask;
  }

  #markRow(
    filter: CompiledExpression,
    batch: Batch,
    { mask, row }: { mask: Uint8Array; row: number },
  ): void {
    try {
      markTrue(filter.evaluate(batch), mask, row);
    } catch (error) {
      // The error is reported in the state of the topic, and the change is not a message.
      if (!isExpected(error)) throw error;
      const { name, namespace } = this.table;
      this.onFault(
        `changes to ${namespace}.${name} are omitted, because the source's condition fails: ` +
          error.message,
      );
    }
  }
}

/** A range of rows from `start` (inclusive) to `end` (exclusive). */
interface RowRange {
  readonly start: number;
  readonly end: number;
}

function conditionOf(
  source: TopicSource,
  table: TableEntry,
  { sql }: SourceDeps,
): Rule["condition"] {
  if (source.where === undefined) return undefined;
  const from = `"${table.namespace}"."${table.name}"`;
  const { columnIds, filter } = sql.planLive(CALLER, {
    sql: `SELECT * FROM ${from} WHERE ${source.where}`,
    params: [],
  });
  return filter === undefined ? undefined : { filter, columnIds };
}

function operationAt({ deleted, hasOld }: OwnedChangeBatch, row: number): 0 | 1 | 2 {
  if (deleted[row] === 1) return 2;
  return hasOld[row] === 1 ? 1 : 0;
}

/** Returns the rule that applies to changes at a seq. */
function ruleAt(rules: readonly Rule[], seq: number): Rule | undefined {
  for (let index = 0; index < rules.length; index += 1) {
    const { source } = rules[index] as Rule;
    if (seq > source.fromSeq && seq <= (source.toSeq ?? Infinity)) return rules[index];
  }
  return undefined;
}

function rowOf(columns: readonly Vector[], row: number): Batch {
  return { rowCount: 1, columns: columns.map((column) => slice(column, row, row + 1)) };
}

function markTrue(verdict: Vector, mask: Uint8Array, start: number): void {
  for (let row = 0; row < verdict.length; row += 1) {
    if (valueAt(verdict, row) === true) mask[start + row] = 1;
  }
}

function isSame(left: Value, right: Value): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object") return left === right;
  if (left === null || right === null) return false;
  return Bun.deepEquals(left, right, true);
}
