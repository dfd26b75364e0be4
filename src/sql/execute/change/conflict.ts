/**
 * Compiles ON CONFLICT: which of the rows that an INSERT proposes are new, and what becomes of
 * those whose key is there. The rows of a step are evaluated together: one by one each made vectors
 * of its own for a single row, which took most of the time of an upsert.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { keepRows, type Row, type Value, valueAt } from "../../../types/mod.ts";
import type { BoundConflict } from "../../bind/change/conflict_binder.ts";

import type { TableRuntime } from "../build/table_runtime.ts";
import { compileExpression, selectRows } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { columnsFromRows } from "../operators/filter.ts";
import type { Run } from "../run/run.ts";
import { duplicateKey, type RowChange, storedRowWithSeq } from "./row_changes.ts";

/** `touched` has the keys of the rows before. */
export type ConflictProgram = (rows: readonly Row[], touched: TouchedKeys, run: Run) => RowChange[];

/**
 * A set that grows copies all it has in one go, for 80 ms with a million keys: so there are parts.
 */
const TOUCHED_PARTS = 64;

/** The keys that a statement has met. */
export class TouchedKeys {
  readonly #parts: (Set<string> | undefined)[] = [];

  /** Returns false when it is there. */
  add(keyText: string): boolean {
    let hash = 0;
    for (let i = 0; i < keyText.length; i += 1) hash = (hash * 31 + keyText.charCodeAt(i)) | 0;
    const index = (hash >>> 0) % TOUCHED_PARTS;
    const part = (this.#parts[index] ??= new Set());
    const { size } = part;
    return part.add(keyText).size > size;
  }
}

/** A row that is proposed, and the one that is stored under its key, if there is one. */
interface Proposed {
  readonly row: Row;
  readonly before: Row | undefined;
  readonly beforeSeq: Value;
}

export function compileConflict(conflict: BoundConflict, runtime: TableRuntime): ConflictProgram {
  const updatedRows = compileUpdated(conflict, runtime);

  return (rows, touched, run) => {
    const met: Proposed[] = [];
    for (const row of rows) {
      const key = runtime.keyOf(row);
      const isRepeated = !touched.add(keyTextOf(runtime.keyTypes, key));
      if (isRepeated) {
        if (conflict.action === "nothing") continue;
        throw new DatabaseError(
          "CARDINALITY_VIOLATION",
          `${duplicateKey(runtime, key).message} in the same statement`,
        );
      }
      const stored = storedRowWithSeq(runtime, key, run);
      if (stored !== undefined && conflict.action === "nothing") continue;
      met.push({ row, before: stored?.slice(0, -1), beforeSeq: stored?.at(-1) ?? null });
    }
    const updated = updatedRows(met, run);
    runtime.check(
      updated.filter((row) => row !== undefined),
      run,
    );
    return met.flatMap(({ before, beforeSeq, row }, index): RowChange[] => {
      if (before === undefined) return [{ operation: "insert", row, before }];
      const after = updated[index];
      return after === undefined ? [] : [{ operation: "update", row: after, before, beforeSeq }];
    });
  };
}

/** What becomes of the stored rows, each at the place of its proposal; undefined for what stays. */
function compileUpdated(
  conflict: BoundConflict,
  runtime: TableRuntime,
): (met: readonly Proposed[], run: Run) => (Row | undefined)[] {
  const layout = layoutOf(conflict.columns);
  const where =
    conflict.where === undefined ? undefined : compileExpression(conflict.where, layout);
  const sets = conflict.sets.map(({ position, value }) => ({
    position,
    evaluate: value === "default" ? undefined : compileExpression(value, layout),
  }));
  const types = conflict.columns.map(({ type }) => type);

  return (met, run) => {
    const updated: (Row | undefined)[] = met.map(() => undefined);
    const places: number[] = [];
    const rows: Row[] = [];
    for (const [place, { before, beforeSeq, row }] of met.entries()) {
      if (before === undefined) continue;
      places.push(place);
      // Stored values, `_seq` and `_deleted` of the stored row, proposed values.
      rows.push([...before, beforeSeq, false, ...row]);
    }
    if (rows.length === 0) return updated;
    const all = { rowCount: rows.length, columns: columnsFromRows(rows, types) };
    const chosen = where === undefined ? undefined : selectRows(where(all, run), all.rowCount);
    const batch = chosen === undefined ? all : keepRows(all, chosen);
    if (batch.rowCount === 0) return updated;
    const values = sets.map(({ evaluate }) => evaluate?.(batch, run));
    for (let index = 0; index < batch.rowCount; index += 1) {
      const place = places[chosen?.rows[index] ?? index] ?? 0;
      const after = [...(met[place]?.before ?? [])];
      for (const [i, { position }] of sets.entries()) {
        const vector = values[i];
        after[position] =
          vector === undefined ? runtime.defaultAt(position, run) : valueAt(vector, index);
      }
      updated[place] = after;
    }
    return updated;
  };
}
