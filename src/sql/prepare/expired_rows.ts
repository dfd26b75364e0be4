/**
 * Determines which deletions are due to the expiry of rows, so that subscribers learn why a row
 * was deleted.
 *
 * A deleted row counts as expired if it had reached the age limit of its table when it was
 * deleted. The log therefore need not store the reason, and a client that resumes gets the same
 * answer. If a user deletes such a row just before `sql/utility/expiry.ts` does, that deletion
 * also counts as expiry.
 */
import { SEQ_ZERO, type Seq, seqFromNumber } from "../../base/seq.ts";
import { type Catalog, deletedAfterMs, type TableEntry } from "../../catalog/mod.ts";
import type { SchemaField, WireRow } from "../../protocol/mod.ts";
import { type ReadStore, SHARED_OWNER } from "../../storage/mod.ts";
import { type DataType, exactCellMakerFor, valueAt } from "../../types/mod.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { outputOf } from "./sort_keys.ts";

/**
 * The maximum number of versions that one step of a followed query reads to find the reasons for
 * deletions.
 */
const VERSIONS_MAX = 10_000;

/**
 * Returns whether a deletion is an expiry.
 *
 * @param prev The seq of the deleted version.
 * @param seq The seq of the deletion.
 */
export type IsExpiry = (prev: number, seq: number) => boolean;

/**
 * Returns a function that recognises expiries; undefined if the table has no age limit for its
 * rows.
 */
export function expiryOf(table: TableEntry, { catalog, store }: ReasonDeps): IsExpiry | undefined {
  if (deletedAfterMs(table) === undefined) return undefined;
  return (prev, seq) => {
    const ageMs = catalog.deletionAgeMs(table.tableId, seqFromNumber(seq) ?? SEQ_ZERO);
    return ageMs !== undefined && store.commitMs(seq) - store.commitMs(prev) >= ageMs;
  };
}

interface ReasonDeps {
  readonly catalog: Pick<Catalog, "deletionAgeMs">;
  readonly store: Pick<ReadStore, "changes" | "commitMs">;
}

/**
 * A table in a query whose rows may expire, and the result fields that contain the primary key of
 * its rows.
 */
export interface ExpiringSource {
  readonly table: TableEntry;
  readonly keys: readonly ExpiringKey[];
}

interface ExpiringKey {
  readonly columnId: number;
  readonly type: DataType;
  /** The index of the key column among the fields of the query. */
  readonly field: number;
}

/**
 * Returns the tables in FROM whose rows may expire and can be identified in the rows of the query.
 */
export function expiringSourcesOf(select: BoundSelect): readonly ExpiringSource[] {
  return select.from === undefined ? [] : sourcesIn(select.from, select);
}

function sourcesIn(from: BoundFrom, select: BoundSelect): readonly ExpiringSource[] {
  if (from.kind !== "relation") {
    return [...sourcesIn(from.left, select), ...sourcesIn(from.right, select)];
  }
  const { relation } = from;
  if (relation.kind !== "table" || deletedAfterMs(relation.table) === undefined) return [];
  const { columns, table } = relation;
  const keys = table.primaryKey.flatMap((columnId): ExpiringKey[] => {
    const column = columns.find(({ origin }) => origin?.columnId === columnId);
    const field = column === undefined ? -1 : outputOf(select, columnValue(column));
    return column === undefined || field < 0 ? [] : [{ columnId, type: column.type, field }];
  });
  return keys.length === table.primaryKey.length ? [{ table, keys }] : [];
}

/**
 * The range of seqs between two states of a result: after the earlier state, up to the later
 * state.
 */
export interface StepRange {
  readonly after: Seq;
  readonly upTo: Seq;
}

/**
 * Returns a function that tells whether a row left a result because a row of one of its tables
 * expired. Returns undefined if no row expired.
 */
export function expiredIn(
  sources: readonly ExpiringSource[],
  deps: ReasonDeps,
  { fields, range }: { fields: readonly SchemaField[]; range: StepRange },
): ((row: WireRow) => boolean) | undefined {
  const found = sources.flatMap((source) => {
    const texts = expiredKeys(source, deps, range);
    const names = source.keys.map(({ field }) => fields[field]?.name ?? "");
    return texts.size === 0 ? [] : [{ names, texts }];
  });
  if (found.length === 0) return undefined;
  return (row) =>
    found.some(({ names, texts }) => texts.has(textOf(names.map((name) => row[name]))));
}

function expiredKeys(
  { keys, table }: ExpiringSource,
  deps: ReasonDeps,
  range: StepRange,
): ReadonlySet<string> {
  const texts = new Set<string>();
  const isExpiry = expiryOf(table, deps);
  const makers = keys.map(({ type }) => exactCellMakerFor(type));
  const columnIds = keys.map(({ columnId }) => columnId);
  const scan = deps.store.changes(table.tableId, { ...range, owner: SHARED_OWNER, columnIds });
  let count = 0;
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      const { columns, deleted, prevs, rowCount, seqs } = batch;
      for (let row = 0; row < rowCount; row += 1) {
        if (deleted[row] !== 1 || isExpiry?.(prevs[row] ?? 0, seqs[row] ?? 0) !== true) continue;
        texts.add(textOf(columns.map((column, index) => makers[index]?.(valueAt(column, row)))));
      }
      count += rowCount;
      // If there are too many deletions, the subscriber receives them without reasons.
      if (count > VERSIONS_MAX) break;
    }
  } finally {
    scan.close();
  }
  return texts;
}

/**
 * Returns the key of a row as a string. All cells of a column have the same type, so equal strings
 * mean equal keys.
 */
function textOf(cells: readonly unknown[]): string {
  return JSON.stringify(cells, (_, cell: unknown) =>
    typeof cell === "bigint" ? String(cell) : cell,
  );
}
