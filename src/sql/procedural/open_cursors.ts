/**
 * Keeps the cursors that functions have opened. The value of a cursor variable is the name of the
 * open cursor, so a function can pass the cursor to another function called by the same statement.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { CursorRow } from "../bind/bound.ts";
import { type CursorRowKeys, currentKeyOf } from "../bind/change/cursor_rows.ts";
import {
  type AnswerColumn,
  askRows,
  askValue,
  type ProgramSteps,
  type RowsAnswer,
} from "./asks.ts";
import type { ProgramFrame } from "./frame.ts";
import type { CursorArgument, CursorDeclaration } from "./tree.ts";

interface ProgramCursor {
  readonly columns: readonly AnswerColumn[];
  readonly rows: readonly Row[];
  /** The keys of the rows, by which CURRENT OF finds the current row. */
  readonly keyed?: CursorRowKeys | undefined;
  readonly isForward: boolean;
  /**
   * The position of the cursor: 0 before the first row, and the number of rows plus one after the
   * last row.
   */
  position: number;
}

/** The maximum number of open cursors in the functions that a statement calls. */
const CURSORS_MAX = 100;

/** The open cursors of the functions that a statement calls, keyed by name. */
export class ProgramCursors {
  readonly #byName = new Map<string, ProgramCursor>();
  #count = 0;

  /** Returns a new name for a cursor whose variable does not name one. */
  newName(): string {
    this.#count += 1;
    return `<unnamed portal ${this.#count}>`;
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  open(name: string, cursor: ProgramCursor): void {
    if (this.#byName.has(name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot open cursor "${name}": it is already open`,
        {
          sqlstate: "42P03",
        },
      );
    }
    if (this.#byName.size >= CURSORS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot open cursor "${name}": ${CURSORS_MAX} cursors are already open, which is the ` +
          "maximum",
        { hint: "run CLOSE for cursors that are no longer needed" },
      );
    }
    this.#byName.set(name, cursor);
  }

  named(name: Value): ProgramCursor {
    const found = typeof name === "string" ? this.#byName.get(name) : undefined;
    if (found !== undefined) return found;
    const isNull = name === null;
    throw new DatabaseError(
      isNull ? "INVALID_VALUE" : "OBJECT_NOT_FOUND",
      isNull
        ? "Cannot use the cursor: the cursor variable is NULL"
        : `Cannot find cursor "${typeof name === "string" ? name : "?"}": it is not open`,
      { hint: "OPEN the cursor first", sqlstate: isNull ? "22004" : "34000" },
    );
  }

  /**
   * Returns the key of the current row of an open cursor; undefined if no open cursor has the
   * name.
   *
   * @throws {DatabaseError} INVALID_OPERATION
   */
  currentKey(name: string, row: CursorRow): Row | undefined {
    const cursor = this.#byName.get(name);
    if (cursor === undefined) return undefined;
    const { keyed = { tables: [], isLocking: false, rows: [] }, position } = cursor;
    return currentKeyOf(row, keyed, position);
  }

  close(name: Value): void {
    this.named(name);
    this.#byName.delete(name as string);
  }

  /** Returns the rows of a bound cursor, for a loop over these rows. */
  *rowsOf(
    { args, slot }: { readonly slot: number; readonly args: readonly CursorArgument[] },
    frame: ProgramFrame,
  ): ProgramSteps<RowsAnswer> {
    const name = frame.values[slot] ?? null;
    if (typeof name === "string" && this.#byName.has(name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot loop over cursor "${name}": it is already open`,
        {
          sqlstate: "42P03",
        },
      );
    }
    return yield* boundRows({ args, slot }, frame);
  }
}

/** Returns the rows of a bound cursor, opened with its arguments. */
export function* boundRows(
  { args, slot }: { readonly slot: number; readonly args: readonly CursorArgument[] },
  frame: ProgramFrame,
): ProgramSteps<RowsAnswer> {
  const { cursor, name } = declarationOf(slot, frame);
  yield* giveArguments(cursor, { args, name }, frame);
  return yield* askRows({ kind: "rows", piece: cursor.query, frame, isCursor: true });
}

function declarationOf(
  slot: number,
  { compiled }: ProgramFrame,
): { readonly cursor: CursorDeclaration; readonly name: string } {
  const variable = compiled.body.variables[slot];
  const cursor = variable?.declared.kind === "cursor" ? variable.declared.cursor : undefined;
  if (variable === undefined || cursor === undefined) {
    throw new TypeError("program interpreter: bound cursor has no query");
  }
  return { cursor, name: variable.name };
}

function* giveArguments(
  { parameters }: CursorDeclaration,
  { args, name }: { readonly args: readonly CursorArgument[]; readonly name: string },
  frame: ProgramFrame,
): ProgramSteps<void> {
  const given = new Map<number, CursorArgument>();
  for (const [i, argument] of args.entries()) {
    const parameter =
      argument.name === undefined
        ? parameters[i]
        : parameters.find((each) => each.name === argument.name);
    if (parameter === undefined || given.has(parameter.slot)) throw wrongArguments(name);
    given.set(parameter.slot, argument);
  }
  if (given.size !== parameters.length) throw wrongArguments(name);
  for (const [slot, { value }] of given) frame.assign(slot, yield* askValue(value, frame));
}

function wrongArguments(name: string): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot open cursor "${name}": the given arguments do not match its parameters`,
    { sqlstate: "42601" },
  );
}
