/**
 * A value that a column does not take: the error of its cast, and which column and row it was for.
 *
 * Casts know neither, and a plan serves ever-new literals, so both are added when an error is
 * caught, and nothing is kept for them while all is well. Where the value stands in the text is
 * found there, too (`sql/request/faulty_cell.ts`).
 */
import { type Condition, DatabaseError, detailsOf } from "../../base/errors.ts";

/** Whose value it was. */
export interface CellPlace {
  readonly column: string;
  readonly source: RowPlace | "set" | "query";
}

/** A cell of VALUES; indices from 0. */
interface RowPlace {
  readonly rowIndex: number;
  readonly columnIndex: number;
  readonly rowCount: number;
}

export class CellError extends DatabaseError {
  readonly place: CellPlace;
  /** What the cast said. */
  readonly reason: DatabaseError;

  constructor(reason: DatabaseError, place: CellPlace, position?: number) {
    const { condition, message } = reason;
    const details = { ...detailsOf(reason), position, cause: reason };
    super(condition, `${message} (${shownPlace(place)})`, details);
    this.place = place;
    this.reason = reason;
  }
}

/** What a value can be at fault for; any other error is not about the cell that met it. */
const FAULTS_OF_VALUES: ReadonlySet<Condition> = new Set([
  "INVALID_VALUE",
  "VALUE_TOO_LONG",
  "VALUE_OUT_OF_RANGE",
  "DIVISION_BY_ZERO",
  "DIMENSION_MISMATCH",
  "TYPE_MISMATCH",
]);

/** Whether a value is at fault, and nothing says yet whose it was. */
export function isFaultOfValue(error: unknown): error is DatabaseError {
  if (!(error instanceof DatabaseError) || error instanceof CellError) return false;
  return error.position === undefined && FAULTS_OF_VALUES.has(error.condition);
}

/** The error to throw in place of one that was caught while a cell was computed. */
export function errorInCell(error: unknown, place: () => CellPlace, position?: number): unknown {
  return isFaultOfValue(error) ? new CellError(error, place(), position) : error;
}

/** "column "a", row 2": the row where there are several. */
function shownPlace({ column, source }: CellPlace): string {
  const isOneOfMany = typeof source === "object" && source.rowCount > 1;
  return `column "${column}"${isOneOfMany ? `, row ${source.rowIndex + 1}` : ""}`;
}
