/**
 * Keeps the cursors of a request, or of a transaction that spans requests.
 *
 * A cursor contains the rows that its query returned when the cursor was declared, in the snapshot
 * of its transaction. It is a list of rows, and a position in the list:
 *
 *     0            1    2    …    n            n + 1
 *     before the   rows                        after the last row
 *     first row
 *
 * - The memory for the rows of all cursors is limited.
 * - A cursor ends with its transaction, or when the transaction returns to a savepoint created
 *   before the cursor. A cursor declared WITH HOLD lasts until the end of the request, or of the
 *   transaction if that spans several requests.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Row } from "../../types/mod.ts";
import type { CursorRow } from "../bind/bound.ts";
import { type CursorRowKeys, currentKeyOf, dividedRows } from "../bind/change/cursor_rows.ts";
import type { DeclareCursorStatement, FetchDirection, Name } from "../parse/ast/ast.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { Prepared } from "../prepare/prepared.ts";

/** The maximum number of cursors that may be open at the same time. */
const CURSORS_MAX = 1000;

interface OpenCursor {
  readonly name: string;
  /** The keys of the rows, by which CURRENT OF finds the current row. */
  readonly keyed: CursorRowKeys;
  readonly answer: StatementResult;
  readonly rows: readonly (readonly unknown[])[];
  readonly bytes: number;
  readonly isHeld: boolean;
  /** Whether the cursor can move only forward. */
  readonly isForward: boolean;
  /**
   * The position of the cursor: 0 before the first row, and the number of rows plus one after the
   * last row.
   */
  position: number;
  /** Whether the cursor was declared in a transaction that has ended. */
  isFromBefore: boolean;
}

/** The cursors that were open when a savepoint was created. */
export type CursorsMark = ReadonlySet<object>;

export class Cursors {
  readonly #bytesMax: number;
  readonly #byName = new Map<string, OpenCursor>();

  /**
   * Creates an empty set of cursors for a transaction.
   * @param bytesMax The maximum total size of the rows of all cursors.
   */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Requires that a cursor may be opened under a name: no open cursor has this name, and there are
   * not too many open cursors.
   * @throws {DatabaseError} ALREADY_EXISTS, TRANSACTION_LIMIT
   */
  requireFree({ name, _location }: Name): void {
    const position = _location.start;
    if (this.#byName.has(name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot declare cursor "${name}": an open cursor already has this name`,
        { position, hint: `CLOSE ${name} first` },
      );
    }
    if (this.#byName.size < CURSORS_MAX) return;
    throw new DatabaseError(
      "TRANSACTION_LIMIT",
      `Cannot declare cursor "${name}": ${CURSORS_MAX} cursors are already open, which is the maximum`,
      { position, hint: "run CLOSE for cursors that are no longer needed" },
    );
  }

  /**
   * Opens a cursor on the rows of its query.
   * @param answer The complete result of the query.
   * @param keyed The keys of its rows.
   * @throws {DatabaseError} TRANSACTION_LIMIT
   */
  open(
    { isHeld, isScroll, name: node }: DeclareCursorStatement,
    answer: StatementResult,
    keyed: CursorRowKeys,
  ): void {
    const { name, _location } = node;
    const { rows = [] } = answer;
    const bytes = [...rows, ...keyed.rows].reduce((sum, row) => sum + bytesOf(row), 0);
    let heldBytes = bytes;
    for (const each of this.#byName.values()) heldBytes += each.bytes;
    if (heldBytes > this.#bytesMax) {
      throw new DatabaseError(
        "TRANSACTION_LIMIT",
        `Cannot open cursor "${name}": the rows of all open cursors would take ${heldBytes} ` +
          `bytes, but the maximum is ${this.#bytesMax}`,
        {
          position: _location.start,
          hint: "to read the rows in pages, use a key: WHERE id > $1 ORDER BY id LIMIT n",
        },
      );
    }
    this.#byName.set(name, {
      name,
      answer,
      rows,
      keyed,
      bytes,
      isHeld: isHeld === true,
      isForward: isScroll === false || keyed.isLocking,
      position: 0,
      isFromBefore: false,
    });
  }

  /**
   * Moves a cursor.
   *
   * @param isMove Whether the rows are only counted.
   * @returns The rows that the cursor has passed, in the direction of the movement.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_OPERATION
   */
  fetch(name: Name, direction: FetchDirection, isMove = false): StatementResult {
    const cursor = this.#named(name);
    const { answer, isForward, keyed, rows } = cursor;
    const before = cursor.position;
    const { after, read } = moved(direction, { position: before, rowCount: rows.length });
    const isAgain = !isMove && after === before && read.includes(after);
    if (isForward && (after < before || isAgain || isBackward(direction))) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot move cursor "${name.name}" ${isAgain ? "to the same row again" : "backward"}: it ` +
          (keyed.isLocking ? "locks rows" : "was declared NO SCROLL"),
        {
          position: name._location.start,
          hint: keyed.isLocking
            ? "read each row once, or omit FOR UPDATE"
            : "declare the cursor with SCROLL",
          sqlstate: "55000",
        },
      );
    }
    cursor.position = after;
    const found = read.map((position) => rows[position - 1] ?? []);
    return { ...answer, rows: found, rowCount: found.length };
  }

  /**
   * Closes a cursor, or all cursors if `name` is undefined. @throws {DatabaseError}
   * OBJECT_NOT_FOUND
   */
  close(name: Name | undefined): void {
    if (name === undefined) this.#byName.clear();
    else this.#byName.delete(this.#named(name).name);
  }

  /**
   * Returns the key of a cursor's current row. @throws {DatabaseError} OBJECT_NOT_FOUND,
   * INVALID_OPERATION
   */
  currentKey(row: CursorRow): Row {
    const { isFromBefore, keyed, name, position } = this.#named(row.cursor);
    if (!isFromBefore) return currentKeyOf(row, keyed, position);
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot use cursor "${name}" in CURRENT OF: it was declared in an earlier transaction`,
      {
        position: row.cursor._location.start,
        hint: "declare the cursor in the same transaction",
        sqlstate: "24000",
      },
    );
  }

  /** Closes the cursors of a transaction that has ended. */
  endTransaction({ isCommitted }: { isCommitted: boolean }): void {
    for (const cursor of this.#byName.values()) {
      cursor.isFromBefore = true;
      if (!cursor.isHeld || !isCommitted) this.#byName.delete(cursor.name);
    }
  }

  mark(): CursorsMark {
    return new Set(this.#byName.values());
  }

  /** Closes the cursors that were opened since a savepoint was created. */
  returnTo(mark: CursorsMark): void {
    for (const cursor of this.#byName.values()) {
      if (!mark.has(cursor)) this.#byName.delete(cursor.name);
    }
  }

  #named({ name, _location }: Name): OpenCursor {
    const cursor = this.#byName.get(name);
    if (cursor !== undefined) return cursor;
    throw cursorNotFound({ name, _location });
  }
}

/** The result of a cursor's query, and the keys of its rows. */
export interface KeyedResult {
  readonly result: StatementResult;
  readonly keyed: CursorRowKeys;
}

export function keyedResult(result: StatementResult, prepared: Prepared): KeyedResult {
  const keys = prepared.kind === "query" ? prepared.cursorKeys : undefined;
  const { rows = [], schema = [] } = result;
  const { keyed, shown } = dividedRows(rows, keys, schema.length);
  return { keyed, result: { ...result, rows: shown } };
}

export function cursorNotFound({ name, _location }: Name): DatabaseError {
  return new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find cursor "${name}": no open cursor has this name`,
    {
      position: _location.start,
      hint: "in the same transaction, open the cursor with DECLARE … CURSOR FOR",
    },
  );
}

/** Whether a direction of FETCH is backward, even if there are no rows to read. */
function isBackward({ count, kind }: FetchDirection): boolean {
  return kind === "backward" ? count > 0 : kind !== "absolute" && count < 0;
}

interface Move {
  /** The position of the cursor after the move. */
  readonly after: number;
  /** The positions of the rows to return, in the order in which they are returned. */
  readonly read: readonly number[];
}

function moved(
  { count, kind }: FetchDirection,
  place: { readonly position: number; readonly rowCount: number },
): Move {
  const { position, rowCount } = place;
  switch (kind) {
    case "forward":
      return count < 0 ? backward(-count, place) : forward(count, place);
    case "backward":
      return count < 0 ? forward(-count, place) : backward(count, place);
    case "absolute":
      return at(count < 0 ? rowCount + 1 + count : count, rowCount);
    case "relative":
      return at(position + count, rowCount);
  }
}

function forward(
  count: number,
  { position, rowCount }: { readonly position: number; readonly rowCount: number },
): Move {
  if (count === 0) return at(position, rowCount);
  const last = Math.min(position + count, rowCount);
  const read = Array.from({ length: Math.max(0, last - position) }, (_, i) => position + 1 + i);
  return { after: position + count > rowCount ? rowCount + 1 : last, read };
}

function backward(
  count: number,
  { position, rowCount }: { readonly position: number; readonly rowCount: number },
): Move {
  if (count === 0) return at(position, rowCount);
  const last = Math.max(position - count, 1);
  const read = Array.from({ length: Math.max(0, position - last) }, (_, i) => position - 1 - i);
  return { after: Math.max(position - count, 0), read };
}

/** Creates a move to a position. The move returns the row at this position, if there is one. */
function at(position: number, rowCount: number): Move {
  const after = Math.max(0, Math.min(position, rowCount + 1));
  return { after, read: after >= 1 && after <= rowCount ? [after] : [] };
}

/** The memory of a cell in bytes, not counting its value. */
const CELL_BYTES = 16;

function bytesOf(cells: readonly unknown[]): number {
  let bytes = CELL_BYTES;
  for (const cell of cells) {
    bytes += CELL_BYTES;
    if (typeof cell === "string") bytes += cell.length;
    else if (Array.isArray(cell)) bytes += bytesOf(cell);
  }
  return bytes;
}
