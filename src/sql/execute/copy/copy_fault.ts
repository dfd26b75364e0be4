/**
 * Creates errors about the data of COPY FROM. Each error names the line, and the column if the
 * fault is in a cell.
 */
import { DatabaseError } from "../../../base/errors.ts";

/** A position in the data of a COPY. */
export interface CopyPlace {
  readonly line: number;
  readonly column?: string | undefined;
  /** Whether messages count rows instead of lines, because binary data has no lines. */
  readonly isBinary?: boolean | undefined;
}

/** Returns the error for data that violates the COPY format. */
export function copyFault(what: string, place: CopyPlace): DatabaseError {
  return new DatabaseError("INVALID_VALUE", `Cannot read ${placeText(place)}: ${what}`);
}

/** Returns a copy of an error with its location in the COPY data added. */
export function atPlace(error: unknown, place: CopyPlace): unknown {
  if (!(error instanceof DatabaseError)) return error;
  const { code, hint, message } = error;
  return new DatabaseError(code, `${message} (${placeText(place)})`, {
    cause: error,
    ...(hint === undefined ? {} : { hint }),
  });
}

function placeText({ column, isBinary, line }: CopyPlace): string {
  const place = `${isBinary === true ? "row" : "line"} ${line}`;
  return column === undefined ? place : `${place}, column "${column}"`;
}
