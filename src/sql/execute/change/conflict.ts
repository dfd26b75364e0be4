/**
 * Compiles ON CONFLICT, which decides which of an INSERT's proposed rows are new, and how existing
 * rows with the same key change. The rows of a step are evaluated together, because creating
 * vectors for each row would take up most of the time of an upsert.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  keepRows,
  type Row,
  UNKNOWN,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundConflict, ConflictTarget } from "../../bind/change/conflict_binder.ts";
import { hasSubquery } from "../../bind/walk.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileExpression, type Evaluator, selectRows } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { columnsFromRows } from "../operators/filter.ts";
import { type Evaluation, type EvaluationPlace, evaluated, whenThere } from "./evaluation.ts";
import type { RowChange } from "./row_changes.ts";
import type { RowGuard } from "./row_guard.ts";
import { storedRowWithSeq } from "./stored_rows.ts";
import {
  duplicateIn,
  duplicateKey,
  rowHolding,
  type UniqueIndex,
  uniqueIndexesOf,
} from "./unique_index.ts";

/**
 * Decides the outcome of proposed rows. `touched` contains the keys of all rows proposed earlier.
 */
export type ConflictProgram = (
  rows: readonly Row[],
  touched: TouchedKeys,
  place: ConflictPlace,
) => RowChange[] | Promise<RowChange[]>;

/** The context in which ON CONFLICT is evaluated. */
export interface ConflictPlace extends EvaluationPlace {
  /** Whether to leave out the generated columns and checks of updated rows. */
  readonly isUnchecked?: boolean;
}

/**
 * The number of sets over which the keys are distributed. A set that grows copies all of its
 * entries at once, so a single large set would block the thread.
 */
const TOUCHED_PARTS = 64;

/** The keys of the rows that a statement has proposed so far. */
export class TouchedKeys {
  readonly #parts: (Set<string> | undefined)[] = [];

  has(keyText: string): boolean {
    return this.#parts[partOf(keyText)]?.has(keyText) === true;
  }

  /**
   * Adds the key of a proposed row. Returns false if an earlier row was proposed with the same
   * key.
   */
  add(keyText: string): boolean {
    const part = (this.#parts[partOf(keyText)] ??= new Set());
    const { size } = part;
    return part.add(keyText).size > size;
  }
}

function partOf(keyText: string): number {
  let hash = 0;
  for (let i = 0; i < keyText.length; i += 1) hash = (hash * 31 + keyText.charCodeAt(i)) | 0;
  return (hash >>> 0) % TOUCHED_PARTS;
}

/** A proposed row, and the stored row with the same key if there is one. */
interface Proposed {
  readonly row: Row;
  readonly before: Row | undefined;
  readonly beforeSeq: Value;
}

export interface Conflict {
  readonly evaluation: Evaluation;
  readonly program: ConflictProgram;
}

export function compileConflict(
  conflict: BoundConflict,
  guard: RowGuard | undefined,
  runtime: TableRuntime,
): Conflict {
  const evaluation = compileUpdated(conflict, runtime);
  const types = conflict.columns.map(({ type }) => type);

  const program: ConflictProgram = (rows, touched, place) => {
    const { context } = place;
    const met = proposed(rows, touched, { conflict, runtime, context });
    const places: number[] = [];
    const given: Row[] = [];
    for (const [index, { before, beforeSeq, row }] of met.entries()) {
      if (before === undefined) continue;
      places.push(index);
      // The evaluated columns are the stored values, `_seq` and `_deleted` of the stored row,
      // followed by the proposed values.
      given.push([...before, beforeSeq, false, ...row]);
    }
    const updated: (Row | undefined)[] = met.map(() => undefined);
    if (given.length === 0) return changesOf(met, updated);
    const batch = { rowCount: given.length, columns: columnsFromRows(given, types) };
    // The statement's expressions must not be evaluated on a row that is hidden from the caller.
    const stored = met.flatMap(({ before }) => (before === undefined ? [] : [before]));
    const permitted = guard?.requireReplaceable(stored, place);
    const values = whenThere(permitted, () => evaluated(evaluation, batch, place));
    return whenThere(values, ({ columns, rowCount }) => {
      const [chosen, ...sets] = columns;
      if (chosen === undefined) return changesOf(met, updated);
      const rowsUpdated: Row[] = [];
      const updatedAt: number[] = [];
      for (let index = 0; index < rowCount; index += 1) {
        const at = places[Number(valueAt(chosen, index))] ?? 0;
        const after = [...(met[at]?.before ?? [])];
        for (const [i, { position }] of conflict.sets.entries()) {
          const vector = sets[i];
          if (vector !== undefined) after[position] = valueAt(vector, index);
        }
        updatedAt.push(at);
        rowsUpdated.push(after);
      }
      const isChecked = place.isUnchecked !== true;
      const whole = isChecked ? runtime.completed(rowsUpdated, context) : rowsUpdated;
      for (const [i, row] of whole.entries()) updated[updatedAt[i] ?? 0] = row;
      if (isChecked) runtime.check(whole, context);
      return changesOf(met, updated);
    });
  };
  return { evaluation, program };
}

/**
 * Returns the changes made by ON CONFLICT DO UPDATE.
 * @param updated The rows that replace stored rows, at the indexes of the proposed rows.
 */
function changesOf(met: readonly Proposed[], updated: readonly (Row | undefined)[]): RowChange[] {
  return met.flatMap(({ before, beforeSeq, row }, place): RowChange[] => {
    if (before === undefined) return [{ operation: "insert", row, before }];
    const after = updated[place];
    return after === undefined ? [] : [{ operation: "update", row: after, before, beforeSeq }];
  });
}

/**
 * Returns the proposed rows whose outcome is still undecided, each with the stored row that has
 * the same key.
 */
function proposed(
  rows: readonly Row[],
  touched: TouchedKeys,
  {
    conflict,
    context,
    runtime,
  }: { conflict: BoundConflict; runtime: TableRuntime; context: ExecutionContext },
): Proposed[] {
  const met: Proposed[] = [];
  const targets = targetsOf(conflict.target, runtime);
  for (const row of rows) {
    const keys = targets.flatMap((target) => keyFor(target, row, runtime));
    const repeated = keys.find(({ text }) => touched.has(text));
    if (repeated !== undefined) {
      if (conflict.action === "nothing") continue;
      throw new DatabaseError(
        "CARDINALITY_VIOLATION",
        `${duplicateAt(repeated, runtime).message} in the same statement`,
      );
    }
    const stored = storedAt(keys, runtime, context);
    if (stored !== undefined && conflict.action === "nothing") continue;
    for (const { text } of keys) touched.add(text);
    met.push({ row, before: stored?.slice(0, -1), beforeSeq: stored?.at(-1) ?? null });
  }
  return met;
}

/** A proposed row's key in the primary key or in a unique index. */
interface ProposedKey {
  readonly key: Row;
  /** The unique index that contains the proposed key; undefined for the primary key. */
  readonly index: UniqueIndex | undefined;
  readonly text: string;
}

/**
 * Returns the indexes on which conflicts are handled. In the returned list, undefined represents
 * the primary key.
 */
function targetsOf(
  target: ConflictTarget,
  runtime: TableRuntime,
): readonly (UniqueIndex | undefined)[] {
  const unique = uniqueIndexesOf(runtime);
  if (target === "key") return [undefined];
  if (target === "any") return [undefined, ...unique];
  return unique.filter(({ entry }) => entry.indexId === target.indexId);
}

/**
 * Returns a proposed row's key in the primary key or in a unique index. Returns an empty list if
 * an index key contains NULL and therefore does not conflict with any other key.
 */
function keyFor(index: UniqueIndex | undefined, row: Row, runtime: TableRuntime): ProposedKey[] {
  if (index === undefined) {
    const key = runtime.keyOf(row);
    return [{ key, index, text: keyTextOf(runtime.keyTypes, key) }];
  }
  const key = index.keyOf(row);
  if (key === undefined) return [];
  return [{ key, index, text: `${index.entry.indexId}/${keyTextOf(index.types, key)}` }];
}

function storedAt(
  keys: readonly ProposedKey[],
  runtime: TableRuntime,
  context: ExecutionContext,
): Row | undefined {
  for (const { index, key } of keys) {
    const stored =
      index === undefined
        ? storedRowWithSeq(runtime, key, context)
        : rowHolding(runtime, { index, key }, context);
    if (stored !== undefined) return stored;
  }
  return undefined;
}

function duplicateAt({ index, key }: ProposedKey, runtime: TableRuntime): DatabaseError {
  return index === undefined
    ? duplicateKey(runtime, key, "insert")
    : duplicateIn(runtime, { index, key }, true);
}

/**
 * Compiles the computation of new values from stored and proposed rows. For each row to be
 * replaced, it returns the row's number and the new values of the columns that are set.
 */
function compileUpdated(conflict: BoundConflict, runtime: TableRuntime): Evaluation {
  const layout = layoutOf(conflict.columns);
  const where =
    conflict.where === undefined ? undefined : compileExpression(conflict.where, layout);
  const sets = conflict.sets.map(({ position, value }): Evaluator => {
    if (value !== "default") return compileExpression(value, layout);
    return ({ rowCount }, context) => {
      const values = Array.from({ length: rowCount }, () => runtime.defaultAt(position, context));
      return vectorFromValues(runtime.types[position] ?? UNKNOWN, values);
    };
  });
  const expressions = conflict.sets.flatMap(({ value }) => (value === "default" ? [] : [value]));
  if (conflict.where !== undefined) expressions.push(conflict.where);

  return {
    name: "conflict",
    holdsQuery: expressions.some(hasSubquery),
    evaluate: (given, context) => {
      const chosen =
        where === undefined ? undefined : selectRows(where(given, context), given.rowCount);
      const batch = chosen === undefined ? given : keepRows(given, chosen);
      const { rowCount } = batch;
      if (rowCount === 0) return { rowCount, columns: [] };
      const numbers = new Int32Array(rowCount);
      for (let i = 0; i < rowCount; i += 1) numbers[i] = chosen?.rows[i] ?? i;
      const columns: Vector[] = [
        { kind: "i32", length: rowCount, values: numbers, nulls: undefined },
      ];
      for (const evaluate of sets) columns.push(evaluate(batch, context));
      return { rowCount, columns };
    },
  };
}
