/**
 * Defines the requests of the interpreter of program bodies to its driver. The interpreter is a
 * generator: it yields a request, and the driver answers, immediately or later. The same
 * interpreter therefore serves statements that wait and expressions that do not.
 */
import type { DataType, Row, Value } from "../../types/mod.ts";
import type { CursorRowKeys } from "../bind/change/cursor_rows.ts";
import type { ProgramFrame } from "./frame.ts";
import type { QueryPiece, RaiseLevel, StatementPiece, ValuePiece } from "./tree.ts";

/** A value with its type. */
export interface Typed {
  readonly type: DataType;
  readonly value: Value;
}

/** A column of the rows that a statement returned. */
export interface AnswerColumn {
  readonly name: string;
  readonly type: DataType;
}

/** The result of an SQL statement in a program. */
export interface RowsAnswer {
  readonly kind: "rows";
  /** The columns of the returned rows; undefined if the statement returns no rows. */
  readonly columns: readonly AnswerColumn[] | undefined;
  readonly rows: readonly Row[];
  /** The number of rows that the statement returned or changed. */
  readonly rowCount: number;
  /** For CALL: the index of the argument to which each column is assigned. */
  readonly outputArguments?: readonly number[];
  /** Whether the statement leaves FOUND and the row count unchanged, as a DDL statement does. */
  readonly isUtility?: true;
  /** The keys of the rows, if a cursor reads them. */
  readonly keyed?: CursorRowKeys;
}

export interface ValueAnswer extends Typed {
  readonly kind: "value";
}

export interface NoAnswer {
  readonly kind: "done";
}

export type Ask =
  /** Evaluates an expression, or a query that returns a single value. */
  | { readonly kind: "value"; readonly piece: ValuePiece; readonly frame: ProgramFrame }
  | {
      readonly kind: "rows";
      readonly piece: QueryPiece | StatementPiece;
      readonly frame: ProgramFrame;
      /** Whether a cursor reads the rows, and therefore needs their keys. */
      readonly isCursor?: boolean;
    }
  /** Runs the SQL passed to EXECUTE. */
  | {
      readonly kind: "text";
      readonly sql: string;
      readonly using: readonly Typed[];
      readonly isCursor?: boolean;
    }
  /** Begins a subtransaction, which can be undone separately. */
  | { readonly kind: "begin" }
  /** Ends the innermost subtransaction, keeping or undoing its changes. */
  | { readonly kind: "end"; readonly isKept: boolean }
  /** Lets other work of the event loop run. */
  | { readonly kind: "pause" }
  | { readonly kind: "notice"; readonly level: RaiseLevel; readonly message: string };

export type DriverAnswer = NoAnswer | RowsAnswer | ValueAnswer;

/** A computation that yields requests to a driver and receives the answers. */
export type ProgramSteps<Result> = Generator<Ask, Result, DriverAnswer>;

export function* askValue(piece: ValuePiece, frame: ProgramFrame): ProgramSteps<Typed> {
  const answer = yield { kind: "value", piece, frame };
  if (answer.kind !== "value")
    throw new TypeError("program interpreter: driver did not return a value");
  return answer;
}

export function* askRows(ask: Extract<Ask, { kind: "rows" | "text" }>): ProgramSteps<RowsAnswer> {
  const answer = yield ask;
  if (answer.kind !== "rows")
    throw new TypeError("program interpreter: driver did not return rows");
  return answer;
}
