/**
 * Defines what the interpreter of bodies asks of its driver. The interpreter is a generator: it
 * yields what it needs, and the driver answers, at once or later. One interpreter therefore serves
 * statements that wait and expressions that do not.
 */
import type { DataType, Row, Value } from "../../types/mod.ts";
import type { ProgramFrame } from "./frame.ts";
import type { QueryPiece, RaiseLevel, StatementPiece, ValuePiece } from "./tree.ts";

/** A value with its type. */
export interface Typed {
  readonly type: DataType;
  readonly value: Value;
}

/** A column of the rows of a statement. */
export interface AnswerColumn {
  readonly name: string;
  readonly type: DataType;
}

/** The result of a statement. */
export interface RowsAnswer {
  readonly kind: "rows";
  /** The columns; undefined for a statement that returns no rows. */
  readonly columns: readonly AnswerColumn[] | undefined;
  readonly rows: readonly Row[];
  /** The number of rows that the statement returned or changed. */
  readonly rowCount: number;
  /** For CALL: the index of the argument for each column. */
  readonly outputArguments?: readonly number[];
  /** Whether the statement changes neither FOUND nor the row count, such as a definition. */
  readonly isUtility?: true;
}

export interface ValueAnswer extends Typed {
  readonly kind: "value";
}

export interface NoAnswer {
  readonly kind: "done";
}

export type Ask =
  /** Evaluates an expression, or a query that returns one value. */
  | { readonly kind: "value"; readonly piece: ValuePiece; readonly frame: ProgramFrame }
  | {
      readonly kind: "rows";
      readonly piece: QueryPiece | StatementPiece;
      readonly frame: ProgramFrame;
    }
  /** Runs the text of EXECUTE. */
  | { readonly kind: "text"; readonly sql: string; readonly using: readonly Typed[] }
  /** Begins a part of the transaction that can be undone. */
  | { readonly kind: "begin" }
  /** Ends the innermost such part, and keeps or undoes its changes. */
  | { readonly kind: "end"; readonly isKept: boolean }
  /** Lets other work run. */
  | { readonly kind: "pause" }
  | { readonly kind: "notice"; readonly level: RaiseLevel; readonly message: string };

export type DriverAnswer = NoAnswer | RowsAnswer | ValueAnswer;

/** A computation that needs answers from a driver. */
export type ProgramSteps<Result> = Generator<Ask, Result, DriverAnswer>;

export function* askValue(piece: ValuePiece, frame: ProgramFrame): ProgramSteps<Typed> {
  const answer = yield { kind: "value", piece, frame };
  if (answer.kind !== "value") throw new TypeError("the driver must answer with a value");
  return answer;
}

export function* askRows(ask: Extract<Ask, { kind: "rows" | "text" }>): ProgramSteps<RowsAnswer> {
  const answer = yield ask;
  if (answer.kind !== "rows") throw new TypeError("the driver must answer with rows");
  return answer;
}
