/**
 * Rows of a long VALUES list of plain literals: read column by column type, without a tree.
 *
 * Most of a bulk load passes here, so the common cells (small integers, doubles, text) are read
 * without a cast being looked up; all others go the way of every cast.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  BOOLEAN,
  castValue,
  type DataType,
  type Row,
  UNKNOWN,
  type Value,
  valueFromNumberText,
} from "../../types/mod.ts";
import { LiteralCell, type LiteralValuesStatement } from "../parse/ast.ts";
import type { Run } from "./run.ts";
import type { TableRuntime } from "./table_runtime.ts";

/** Digits of an integer that fits INT whatever they are, with a sign. */
const INT_LENGTH_MAX = 9;

/** Digits of an integer that a double holds exactly whatever they are, with a sign. */
const WHOLE_LENGTH_MAX = 15;

export interface LiteralTarget {
  readonly runtime: TableRuntime;
  /** Table position of each column of the list. */
  readonly targets: readonly number[];
  /** Makes a whole row of the listed cells; takes the array over. */
  readonly rowOf: (cells: Value[], run: Run) => Row;
}

/** Reads one cell that is no NULL and no DEFAULT; undefined leaves it to the general way. */
type FastCell = (kind: number, text: string) => Value | undefined;

/**
 * Reads rows `from` (inclusive) to `end` (exclusive).
 *
 * @throws {DatabaseError} What a cast raises, at the cell.
 */
export function literalRows(
  { columnCount, kinds, starts, texts }: LiteralValuesStatement,
  { rowOf, runtime, targets }: LiteralTarget,
): (run: Run, from: number, end: number) => Row[] {
  const types = targets.map((position) => runtime.types[position] ?? UNKNOWN);
  const fastCells = types.map(fastCellFor);
  return (run, from, end) => {
    const rows: Row[] = [];
    for (let row = from; row < end; row += 1) {
      const cells: Value[] = [];
      for (let column = 0; column < columnCount; column += 1) {
        const cell = row * columnCount + column;
        const kind = kinds[cell] ?? LiteralCell.null;
        const text = texts[cell] ?? "";
        if (kind === LiteralCell.null) cells.push(null);
        else if (kind === LiteralCell.default) {
          cells.push(runtime.defaultAt(targets[column] ?? 0, run));
        } else {
          const to = types[column] ?? UNKNOWN;
          const position = starts[cell] ?? 0;
          cells.push(
            fastCells[column]?.(kind, text) ?? castCell(kind, text, { to, position, run }),
          );
        }
      }
      rows.push(rowOf(cells, run));
    }
    return rows;
  };
}

function fastCellFor(type: DataType): FastCell {
  switch (type.kind) {
    case "int":
      return (kind, text) =>
        kind === LiteralCell.integer && text.length <= INT_LENGTH_MAX ? wholeFrom(text) : undefined;
    case "bigint":
      return (kind, text) =>
        kind === LiteralCell.integer && text.length <= WHOLE_LENGTH_MAX
          ? wholeFrom(text)
          : undefined;
    case "double":
      return (kind, text) => {
        if (kind !== LiteralCell.integer && kind !== LiteralCell.numeric) return undefined;
        const value = Number(text) + 0;
        return Number.isFinite(value) ? value : undefined;
      };
    case "text":
      if (type.lengthMax !== undefined) return () => undefined;
      return (kind, text) => (kind === LiteralCell.string ? text : undefined);
    default:
      return () => undefined;
  }
}

/** The sum turns -0 into 0. */
function wholeFrom(text: string): number {
  return Number(text) + 0;
}

function castCell(
  kind: number,
  text: string,
  { position, run, to }: { to: DataType; position: number; run: Run },
): Value {
  const { nowMicros } = run.call;
  try {
    if (kind === LiteralCell.string) {
      return castValue(text, { from: UNKNOWN, to, mode: "assignment", nowMicros });
    }
    if (kind === LiteralCell.true || kind === LiteralCell.false) {
      const value = kind === LiteralCell.true;
      return castValue(value, { from: BOOLEAN, to, mode: "assignment" });
    }
    const typed = valueFromNumberText(text.startsWith("-") ? text.slice(1) : text);
    if (typed === undefined) {
      throw new DatabaseError(
        "VALUE_OUT_OF_RANGE",
        `Cannot read number ${text}: it is out of range`,
      );
    }
    const value = text.startsWith("-") ? negated(typed.value) : typed.value;
    return castValue(value, { from: typed.type, to, mode: "assignment" });
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.position !== undefined) throw error;
    throw new DatabaseError(error.condition, error.message, { position });
  }
}

function negated(value: Value): Value {
  if (typeof value === "bigint") return -value;
  return typeof value === "number" ? 0 - value : value;
}
