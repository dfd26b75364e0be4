/**
 * Reads the changes to one owner's rows of a table between two seqs, in ascending order, with the
 * values before and after each change as JSON.
 *
 * Rows that a transaction has merely staged do not count as changes. The history above the first
 * seq is complete, so the version replaced by a change can always be read.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type Seq, seqFromNumber } from "../../../base/seq.ts";
import { shownColumnsOf, type TableEntry } from "../../../catalog/mod.ts";
import type { ChangeBatch, ChangeScan } from "../../../storage/mod.ts";
import {
  type Batch,
  BIGINT,
  canonicalJson,
  DATETIME,
  type DataType,
  JSONB,
  jsonOfFields,
  TEXT,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { ChangesRead } from "../../bind/bound.ts";
import type { PlanNode } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { holdsFromStart, type Operator, type OperatorFactory } from "../context/operator.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { droppedMeanwhile, ownerOf } from "./scan.ts";

/** The number of changes in a batch. Converting one change to JSON takes several microseconds. */
const BATCH_CHANGES = 256;

const MICROS_PER_MS = 1000;

export function buildChanges(node: Extract<PlanNode, { kind: "changes" }>): OperatorFactory {
  const { changes, positions } = node;
  const upToOf = changes.upTo === undefined ? undefined : compileScalar(changes.upTo);
  return (context) => {
    const { table } = changes.past;
    const upTo =
      upToOf === undefined ? context.snapshotSeq : lastSeq(upToOf(context), context, table);
    return new ChangesScan(context, { changes, positions, upTo });
  };
}

function lastSeq(value: Value, { snapshotSeq }: ExecutionContext, table: TableEntry): Seq {
  const seq = value === null ? undefined : seqFromNumber(Number(value));
  if (seq !== undefined && seq <= snapshotSeq) return seq;
  const shown = value === null ? "NULL" : `${Number(value)}`;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read the changes to ${table.namespace}.${table.name} up to _seq ${shown}: the _seq ` +
      `must be between 0 and ${snapshotSeq}, the newest one`,
  );
}

interface ChangesScanOptions {
  readonly changes: ChangesRead;
  readonly positions: readonly number[];
  readonly upTo: Seq;
}

/** A column of the table, with its position in a batch. */
interface ReadColumn {
  readonly name: string;
  readonly type: DataType;
  readonly at: number;
}

class ChangesScan implements Operator {
  readonly #context: ExecutionContext;
  readonly #scan: ChangeScan;
  readonly #columns: readonly ReadColumn[];
  readonly #keyColumns: readonly ReadColumn[];
  readonly #positions: readonly number[];

  constructor(context: ExecutionContext, { changes, positions, upTo }: ChangesScanOptions) {
    const { past } = changes;
    const { table } = past;
    this.#context = context;
    this.#positions = positions;
    const all = table.columns.map((column, at) => ({ ...column, at }));
    this.#columns = all.slice(0, shownColumnsOf(table).length);
    this.#keyColumns = table.primaryKey.flatMap((id) =>
      all.filter(({ columnId }) => columnId === id),
    );
    try {
      this.#scan = context.store.changes(table.tableId, {
        owner: ownerOf(context.principal, table),
        after: context.pastSeq(past),
        upTo,
        columnIds: table.columns.map(({ columnId }) => columnId),
        batchRows: BATCH_CHANGES,
      });
    } catch (error) {
      throw droppedMeanwhile(error, table);
    }
    holdsFromStart(this);
  }

  next(): Batch | undefined {
    this.#context.checkTime();
    const batch = this.#scan.next();
    if (batch === undefined) return undefined;
    this.#context.noteRead(batch.rowCount);
    const columns = this.#positions.map((position) => this.#column(batch, position));
    return { rowCount: batch.rowCount, columns };
  }

  close(): void {
    this.#scan.close();
  }

  #column(batch: ChangeBatch, position: number): Vector {
    const { call } = this.#context;
    switch (position) {
      case 0:
        return made(BIGINT, batch, (row) => batch.seqs[row] ?? 0);
      case 1:
        return made(TEXT, batch, (row) => operationOf(batch, row));
      case 2:
        return made(DATETIME, batch, (row) => call.commitMs(batch.seqs[row] ?? 0) * MICROS_PER_MS);
      case 3:
        return made(JSONB, batch, (row) => jsonOf(this.#keyColumns, batch.columns, row));
      case 4:
        return made(JSONB, batch, (row) => {
          if (batch.hasOld[row] === 1) return jsonOf(this.#columns, batch.oldColumns, row);
          // A tombstone contains the last values of its row.
          return batch.deleted[row] === 1 ? jsonOf(this.#columns, batch.columns, row) : null;
        });
      default:
        return made(JSONB, batch, (row) =>
          batch.deleted[row] === 1 ? null : jsonOf(this.#columns, batch.columns, row),
        );
    }
  }
}

function made(type: DataType, { rowCount }: ChangeBatch, valueOf: (row: number) => Value): Vector {
  return vectorFromValues(
    type,
    Array.from({ length: rowCount }, (_, row) => valueOf(row)),
  );
}

function operationOf({ deleted, hasOld }: ChangeBatch, row: number): string {
  if (deleted[row] === 1) return "delete";
  return hasOld[row] === 1 ? "update" : "insert";
}

function jsonOf(columns: readonly ReadColumn[], vectors: readonly Vector[], row: number): string {
  const cells = columns.map(({ at }) => {
    const vector = vectors[at];
    return vector === undefined ? null : valueAt(vector, row);
  });
  return canonicalJson(jsonOfFields(columns, { cells }));
}
