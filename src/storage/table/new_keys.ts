/**
 * Finds the new rows that may have the same key as another row, without looking up each key. The
 * prefixes of the new keys are sorted, and then merged with the sorted prefixes of each segment.
 * In a bulk load, hardly any new row shares a prefix with an older row.
 */

import type { MemIndex } from "../memtable/mem_index.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { sortByKey } from "../segment/index_sort.ts";
import type { StoredTable } from "./table.ts";
import { memIndexOf, type TableIndex } from "./table_index.ts";

/**
 * The minimum number of new rows for which sorting pays off. Fewer rows are looked up one by one.
 */
const ROWS_MIN = 64;

/** New rows, sorted by the prefixes of their keys. */
interface SortedPrefixes {
  readonly prefixes: Float64Array;
  readonly rows: Uint32Array;
}

/**
 * Returns, in ascending order, the rows from `firstRow` on that may have the same key as another
 * row of their table. The memtable's index must cover all of its rows.
 */
export function rowsToCompare(
  table: StoredTable,
  index: TableIndex,
  { firstRow, memtable }: { readonly memtable: Memtable; readonly firstRow: number },
): Iterable<number> {
  const count = memtable.rowCount - firstRow;
  if (count === 1) return [firstRow];
  const all = new Uint32Array(count);
  for (let at = 0; at < count; at += 1) all[at] = firstRow + at;
  const owner = memtable.owners[firstRow] ?? 0;
  const isOfOne = memtable.owners.subarray(firstRow, memtable.rowCount).every((of) => of === owner);
  if (count < ROWS_MIN || !isOfOne) return all;
  const own = memIndexOf(memtable, index);
  const marks = new Uint8Array(count);
  markInMemory(table, index, { own, memtable, firstRow, owner, marks });
  const sorted = new Map<number, SortedPrefixes>();
  for (const segment of table.segments) {
    const span = segment.rowsOf(owner);
    if (span === undefined) continue;
    const keys = segment.index(index);
    let ofForm = sorted.get(keys.commonBytes);
    if (ofForm === undefined) {
      ofForm = sortedPrefixes(own, all, keys.commonBytes);
      sorted.set(keys.commonBytes, ofForm);
    }
    const { prefixes, rows } = ofForm;
    keys.visitEqual(span, prefixes, (at) => {
      marks[(rows[at] ?? 0) - firstRow] = 1;
    });
  }
  return all.filter((row) => marks[row - firstRow] === 1);
}

/** Marks the new rows whose keys are already in a memtable. */
function markInMemory(
  table: StoredTable,
  index: TableIndex,
  {
    firstRow,
    marks,
    memtable,
    own,
    owner,
  }: {
    readonly own: MemIndex;
    readonly memtable: Memtable;
    readonly firstRow: number;
    readonly owner: number;
    readonly marks: Uint8Array;
  },
): void {
  const others = table
    .memtables()
    .filter((other) => other !== memtable && other.partitions.has(owner))
    .map((other) => {
      const keys = memIndexOf(other, index);
      keys.catchUp();
      return keys;
    });
  const newKeys = others.length === 0 ? [] : own.keysWithin(firstRow, firstRow + marks.length);
  for (let at = 0; at < marks.length; at += 1) {
    const key = newKeys[at];
    const isKnown =
      own.olderOf(firstRow + at) !== -1 ||
      (key !== undefined && others.some((keys) => keys.newestOf(owner, key) !== -1));
    if (isKnown) marks[at] = 1;
  }
}

function sortedPrefixes(own: MemIndex, all: Uint32Array, commonBytes: number): SortedPrefixes {
  const rows = all.slice();
  const prefixes = own.prefixesOf(rows, commonBytes);
  for (const _ of sortByKey(prefixes, rows));
  return { prefixes, rows };
}
