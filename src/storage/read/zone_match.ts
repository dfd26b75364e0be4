/** Uses zone maps to decide whether a row group may contain a row within given ranges. */
import type { Value } from "../../types/mod.ts";
import type { ColumnRange } from "../contract/scans.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { formOf } from "../memtable/convert.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";

/** Returns false only if no row of the row group can lie within all of the ranges. */
export function mayMatch(
  { segment, table }: { readonly segment: OpenSegment; readonly table: StoredTable },
  ranges: readonly ColumnRange[],
  group: number,
): boolean {
  for (const { columnId, min, max } of ranges) {
    const column = table.column(columnId);
    const stored = segment.columnType(columnId);
    if (columnId !== SEQ_COLUMN_ID && stored === undefined) {
      if (!isWithin(column?.missing ?? null, min, max)) return false;
      continue;
    }
    // A DECIMAL cannot be compared if its column now has more decimal places than in the file.
    const isSameForm =
      column === undefined || stored === undefined || formOf(column.type) === formOf(stored);
    if (!isSameForm) continue;
    const zone = segment.reader.zone(columnId, group);
    if (zone !== undefined && (zone.max < min || zone.min > max)) return false;
  }
  return true;
}

function isWithin(value: Value, min: number, max: number): boolean {
  if (value === null) return false;
  if (typeof value !== "number") return true;
  return value >= min && value <= max;
}
