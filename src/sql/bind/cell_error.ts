/**
 * Adds the column and the row of a rejected value to the error that its cast raised.
 *
 * A cast knows neither the column nor the row, because one plan serves all literals. Both are
 * added when the error is caught, so that nothing has to be stored in advance.
 * `sql/request/faulty_cell.ts` likewise finds the position of the value in the SQL only after an
 * error.
 */
import { DatabaseError, detailsOf, type ErrorCode } from "../../base/errors.ts";

/** The column to which a value is written, for error messages. */
export interface CellPlace {
  readonly column: string;
  readonly source: ValuesCell | "set" | "query";
}

/** A cell of a VALUES list. Row and column numbers start at 0. */
interface ValuesCell {
  readonly rowIndex: number;
  readonly columnIndex: number;
  readonly rowCount: number;
}

export class CellError extends DatabaseError {
  readonly place: CellPlace;
  /** The error that the cast of the cell raised. */
  readonly reason: DatabaseError;

  constructor(reason: DatabaseError, place: CellPlace, position?: number) {
    const { code, message } = reason;
    const details = { ...detailsOf(reason), position, cause: reason };
    super(code, `${message} (${shownPlace(place)})`, details);
    this.place = place;
    this.reason = reason;
  }
}

/**
 * The codes of errors that a cell's value can cause. An error with any other code has a different
 * cause.
 */
const FAULTS_OF_VALUES: ReadonlySet<ErrorCode> = new Set([
  "INVALID_VALUE",
  "VALUE_TOO_LONG",
  "VALUE_OUT_OF_RANGE",
  "DIVISION_BY_ZERO",
  "DIMENSION_MISMATCH",
  "TYPE_MISMATCH",
]);

/** Whether the error was caused by a value but does not yet name a column. */
export function isFaultOfValue(error: unknown): error is DatabaseError {
  if (!(error instanceof DatabaseError) || error instanceof CellError) return false;
  return error.position === undefined && FAULTS_OF_VALUES.has(error.code);
}

/**
 * Returns the error to throw in place of `error`, which was caught while a cell was being
 * computed.
 */
export function errorInCell(error: unknown, place: () => CellPlace, position?: number): unknown {
  return isFaultOfValue(error) ? new CellError(error, place(), position) : error;
}

/**
 * Describes a cell, as in 'column "a", row 2'. The row number is omitted if there is only one row.
 */
function shownPlace({ column, source }: CellPlace): string {
  const isOneOfMany = typeof source === "object" && source.rowCount > 1;
  return `column "${column}"${isOneOfMany ? `, row ${source.rowIndex + 1}` : ""}`;
}
