/**
 * Reads the key values of an index from a segment: stored columns in their current form, and
 * computed expressions.
 */
import {
  hasKeyForm,
  keyFormOf,
  slice,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";
import {
  computedKey,
  computedKeys,
  type IndexColumn,
  type KeyExpression,
} from "../contract/key_expressions.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import { converted, convertVector, formOf } from "../memtable/convert.ts";
import type { SegmentReader } from "../segment/reader.ts";

/** The number of rows for which an expression is computed at a time. */
const COMPUTED_ROWS = 2048;

/** Returns the value of a row in a segment, converted to the column's current form. */
function storedValue(
  reader: Pick<SegmentReader, "columnType" | "valueAt">,
  { columnId, missing, type }: StoredColumn,
  row: number,
): Value {
  const value = reader.valueAt(columnId, row);
  const storedType = reader.columnType(columnId);
  if (value === undefined || storedType === undefined) return missing;
  return converted(value, formOf(storedType), type);
}

/** Returns a row's value for one key part of an index. */
export function keyValueOf(
  reader: Pick<SegmentReader, "columnType" | "valueAt">,
  column: IndexColumn,
  row: number,
): Value {
  const { expression, type } = column;
  if (expression === undefined) return keyFormOf(type, storedValue(reader, column, row));
  const read = expression.reads.map((each) => storedValue(reader, each, row));
  return keyFormOf(type, computedKey(expression, read));
}

/** Returns the values for one key part of an index in a row group. */
export function groupVector(reader: SegmentReader, column: IndexColumn, group: number): Vector {
  const { expression, type } = column;
  const vector =
    expression === undefined
      ? storedVector(reader, column, group)
      : computedKeys(
          expression,
          expression.reads.map((each) => storedVector(reader, each, group)),
          reader.groupRows(group),
        );
  if (!hasKeyForm(type)) return vector;
  return vectorFromValues(
    type,
    valuesOf(vector).map((value) => keyFormOf(type, value)),
  );
}

/** Returns the values of a column in a row group, converted to the column's current form. */
function storedVector(
  reader: SegmentReader,
  { columnId, missing, type }: StoredColumn,
  group: number,
): Vector {
  const vector = reader.column(columnId, group);
  const storedType = reader.columnType(columnId);
  if (vector === undefined || storedType === undefined) {
    return { kind: "const", length: reader.groupRows(group), value: missing };
  }
  return convertVector(vector, storedType, type);
}

/** Yields the values of some expressions in a row group, a few rows at a time. */
export function* groupVectors(
  reader: SegmentReader,
  expressions: readonly KeyExpression[],
  group: number,
): Generator<{ readonly rowCount: number; readonly vectors: readonly Vector[] }, void> {
  const reads = expressions.map((expression) =>
    expression.reads.map((each) => storedVector(reader, each, group)),
  );
  const count = reader.groupRows(group);
  for (let start = 0; start < count; start += COMPUTED_ROWS) {
    const end = Math.min(start + COMPUTED_ROWS, count);
    const vectors = expressions.map((expression, at) => {
      const columns = reads[at]?.map((vector) => slice(vector, start, end)) ?? [];
      return computedKeys(expression, columns, end - start);
    });
    yield { rowCount: end - start, vectors };
  }
}
