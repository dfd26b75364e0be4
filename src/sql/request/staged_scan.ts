/**
 * Scans the rows of a table as a definition within a transaction sees them: the stored rows that
 * the transaction has not changed, followed by the staged rows, which have seqs after the
 * snapshot. Also reads the values of such rows by the ids of their columns.
 */
import type { Seq } from "../../base/seq.ts";
import {
  type Scan,
  type ScanBatch,
  type ScanOptions,
  SEQ_COLUMN_ID,
  type TableDefinition,
} from "../../storage/mod.ts";
import {
  BIGINT,
  type DataType,
  keepRows,
  type Row,
  type Value,
  valueAt,
  vectorFromValues,
} from "../../types/mod.ts";
import type { StagedRow } from "../execute/context/transaction.ts";
import { keyTextOf } from "../execute/keys/key_text.ts";

const ROWS_PER_BATCH = 2048;

/** Returns the types of the primary key columns, in key order. */
export function keyTypesOf({ columns, keyColumnIds }: TableDefinition): readonly DataType[] {
  return keyColumnIds.map((id) => typeIn(columns, id));
}

function typeIn(columns: TableDefinition["columns"], id: number): DataType {
  if (id === SEQ_COLUMN_ID) return BIGINT;
  return columns.find(({ columnId }) => columnId === id)?.type ?? BIGINT;
}

/** Returns the values of columns of a row, which has the order of the definition. */
export function valuesIn({ columns }: TableDefinition, row: Row, ids: readonly number[]): Row {
  return ids.map((id) => row[columns.findIndex(({ columnId }) => columnId === id)] ?? null);
}

/** Returns the primary key of a row as text. */
export function keyTextIn(definition: TableDefinition, row: Row): string {
  return keyTextOf(keyTypesOf(definition), valuesIn(definition, row, definition.keyColumnIds));
}

interface SeenRows {
  readonly definition: TableDefinition;
  readonly options: ScanOptions;
  readonly staged: ReadonlyMap<string, StagedRow>;
  readonly snapshotSeq: Seq;
}

/**
 * Scans stored rows that the transaction has not changed, and then the staged rows.
 *
 * @param scan Reads the requested columns, followed by those of the primary key.
 */
export function seenScan(scan: Scan, seen: SeenRows): Scan {
  const staged = stagedBatches(seen);
  return {
    next() {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        const kept = unstaged(batch, seen);
        if (kept.rowCount > 0 || seen.options.mayBeEmpty === true) return kept;
      }
      return staged.next().value ?? undefined;
    },
    close: () => scan.close(),
    get groupsRead() {
      return scan.groupsRead;
    },
    get groupsPruned() {
      return scan.groupsPruned;
    },
  };
}

function unstaged(batch: ScanBatch, { definition, options, staged }: SeenRows): ScanBatch {
  const types = keyTypesOf(definition);
  const keys = batch.columns.slice(options.columnIds.length);
  const rows = new Uint32Array(batch.rowCount);
  let count = 0;
  for (let row = 0; row < batch.rowCount; row += 1) {
    const key = keys.map((column) => valueAt(column, row));
    if (staged.has(keyTextOf(types, key))) continue;
    rows[count] = row;
    count += 1;
  }
  const columns = batch.columns.slice(0, options.columnIds.length);
  return keepRows({ rowCount: batch.rowCount, columns }, { rows, count });
}

function* stagedBatches({
  definition,
  options,
  snapshotSeq,
  staged,
}: SeenRows): Generator<ScanBatch, void> {
  const { after = 0, batchRows = ROWS_PER_BATCH, columnIds, seqMax, upTo } = options;
  let rows: Value[][] = [];
  let place = -1;
  const batch = (): ScanBatch => ({
    rowCount: rows.length,
    columns: columnIds.map((id, at) =>
      vectorFromValues(
        typeIn(definition.columns, id),
        rows.map((row) => row[at] ?? null),
      ),
    ),
  });
  for (const { isDeleted, row } of staged.values()) {
    place += 1;
    const seq = snapshotSeq + 1 + place;
    if (isDeleted || seq <= after || seq > Math.min(upTo, seqMax ?? upTo)) continue;
    const values = [...valuesIn(definition, row, columnIds)];
    for (const [at, id] of columnIds.entries()) if (id === SEQ_COLUMN_ID) values[at] = seq;
    rows.push(values);
    if (rows.length < batchRows) continue;
    yield batch();
    rows = [];
  }
  if (rows.length > 0) yield batch();
}
