/**
 * Reads the rows of a long VALUES list of plain literals column by column, without building a
 * syntax tree.
 *
 * Most rows of a bulk load take this path, so whole columns of common types (integers, doubles,
 * strings) are read from the statement's bytes into typed arrays. All other cells are cast one by
 * one, row after row, so that the first faulty cell determines the error.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type Batch,
  BOOLEAN,
  castValue,
  UNKNOWN,
  type Value,
  type Vector,
  valueFromNumberText,
  vectorFromValues,
} from "../../../types/mod.ts";
import { type CellPlace, errorInCell } from "../../bind/cell_error.ts";
import { LiteralCell, type LiteralValuesStatement } from "../../parse/ast/ast.ts";
import { literalPosition, literalText } from "../../parse/text/literal_list.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { readLiteralColumn } from "./literal_columns.ts";

export interface LiteralTarget {
  readonly runtime: TableRuntime;
  /** The table position of each column in the VALUES list. */
  readonly targets: readonly number[];
}

/** A column whose cells are cast one by one. */
interface SlowColumn {
  /** The position of the column in the table. */
  readonly position: number;
  /**
   * The position of the column in the VALUES list; undefined if the list does not fill the column.
   */
  readonly listed: number | undefined;
  readonly values: Value[];
}

/**
 * Reads rows `from` (inclusive) to `end` (exclusive) of a VALUES list as whole columns in table
 * order, with defaults for columns that are not in the list.
 *
 * @throws {DatabaseError} If the cast of a cell or a default fails.
 */
export function literalColumns(
  list: LiteralValuesStatement,
  { runtime, targets }: LiteralTarget,
): (context: ExecutionContext, from: number, end: number) => Batch {
  return (context, from, end) => {
    const literals = partOf(list, from, end);
    const { rowCount } = literals;
    const columns: (Vector | undefined)[] = runtime.types.map(() => undefined);
    const slow: SlowColumn[] = [];
    for (const [listed, position] of targets.entries()) {
      const type = runtime.types[position] ?? UNKNOWN;
      const vector = readLiteralColumn(literals, listed, type);
      if (vector === undefined) slow.push({ position, listed, values: [] });
      else columns[position] = vector;
    }
    for (const position of runtime.types.keys()) {
      if (targets.includes(position)) continue;
      if (runtime.hasDefault(position)) slow.push({ position, listed: undefined, values: [] });
      else columns[position] = { kind: "const", length: rowCount, value: null };
    }
    for (let row = 0; slow.length > 0 && row < rowCount; row += 1) {
      for (const { listed, position, values } of slow) {
        values.push(
          listed === undefined
            ? runtime.defaultAt(position, context)
            : cellValue(list, (from + row) * list.columnCount + listed, {
                runtime,
                position,
                context,
              }),
        );
      }
    }
    for (const { position, values } of slow) {
      columns[position] = vectorFromValues(runtime.types[position] ?? UNKNOWN, values);
    }
    return { rowCount, columns: columns.filter((column) => column !== undefined) };
  };
}

/**
 * Returns a range of the rows of a VALUES list as a list that shares the bytes of the original.
 */
function partOf(list: LiteralValuesStatement, from: number, end: number): LiteralValuesStatement {
  const { columnCount, ends, kinds, starts } = list;
  const first = from * columnCount;
  const last = end * columnCount;
  return {
    ...list,
    rowCount: end - from,
    kinds: kinds.subarray(first, last),
    starts: starts.subarray(first, last),
    ends: ends.subarray(first, last),
  };
}

function cellValue(
  literals: LiteralValuesStatement,
  cell: number,
  {
    position,
    context,
    runtime,
  }: { runtime: TableRuntime; position: number; context: ExecutionContext },
): Value {
  const kind = literals.kinds[cell];
  if (kind === LiteralCell.null) return null;
  if (kind === LiteralCell.default) return runtime.defaultAt(position, context);
  const to = runtime.types[position] ?? UNKNOWN;
  const { nowMicros } = context.call;
  try {
    if (kind === LiteralCell.string || kind === LiteralCell.encodedString) {
      const text = literalText(literals, cell);
      return castValue(text, { from: UNKNOWN, to, mode: "assignment", nowMicros });
    }
    if (kind === LiteralCell.true || kind === LiteralCell.false) {
      return castValue(kind === LiteralCell.true, { from: BOOLEAN, to, mode: "assignment" });
    }
    const { type, value } = numberOf(literalText(literals, cell));
    return castValue(value, { from: type, to, mode: "assignment" });
  } catch (error) {
    const { columnCount, rowCount } = literals;
    const columnIndex = cell % columnCount;
    const rowIndex = Math.floor(cell / columnCount);
    const column = runtime.table.columns[position]?.name ?? "";
    const place: CellPlace = { column, source: { rowIndex, columnIndex, rowCount } };
    throw errorInCell(error, () => place, literalPosition(literals, cell));
  }
}

/**
 * Converts a number literal.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function numberOf(text: string): NonNullable<ReturnType<typeof valueFromNumberText>> {
  const typed = valueFromNumberText(text);
  if (typed !== undefined) return typed;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read the number ${text}: it is out of range`,
  );
}
