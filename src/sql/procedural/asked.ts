/**
 * Evaluates conditions and reads rows for several kinds of program statements, by asking the
 * driver.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BOOLEAN } from "../../types/mod.ts";
import { askRows, askValue, type ProgramSteps, type RowsAnswer, type Typed } from "./asks.ts";
import { assigned, type ProgramFrame, shownText } from "./frame.ts";
import type { ProgramRun } from "./run.ts";
import type { RowsNode, ValuePiece } from "./tree.ts";

export function* isTrue(condition: ValuePiece, frame: ProgramFrame): ProgramSteps<boolean> {
  const { type, value } = yield* askValue(condition, frame);
  return assigned({ type, value }, BOOLEAN) === true;
}

export function* askText(
  text: ValuePiece,
  using: readonly ValuePiece[],
  frame: ProgramFrame,
  isCursor = false,
): ProgramSteps<RowsAnswer> {
  const { type, value } = yield* askValue(text, frame);
  if (value === null) {
    throw new DatabaseError("INVALID_VALUE", "Cannot run EXECUTE: the given SQL is NULL", {
      sqlstate: "22004",
    });
  }
  const sql = shownText({ type, value });
  const values: Typed[] = [];
  for (const piece of using) values.push(yield* askValue(piece, frame));
  return yield* askRows({ kind: "text", sql, using: values, isCursor });
}

/**
 * Returns the rows of a query or of an EXECUTE statement.
 *
 * @param isCursor Whether a cursor reads the rows.
 */
export function* askSource(
  source: RowsNode,
  { cursors, frame }: ProgramRun,
  isCursor = false,
): ProgramSteps<RowsAnswer> {
  if (source.kind === "statement") {
    const answer = yield* askRows({ kind: "rows", piece: source.statement, frame, isCursor });
    if (answer.columns !== undefined) return answer;
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot read rows: the statement does not return rows",
      {
        sqlstate: "42601",
      },
    );
  }
  if (source.kind === "execute") {
    const answer = yield* askText(source.text, source.using, frame, isCursor);
    if (answer.columns !== undefined) return answer;
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot read rows: the SQL given to EXECUTE does not return rows",
      {
        sqlstate: "42601",
      },
    );
  }
  return yield* cursors.rowsOf(source, frame);
}
