/**
 * Runs OPEN, FETCH, MOVE and CLOSE. A cursor contains the rows that its query returned when the
 * cursor was opened. The value of a cursor variable is the name of the open cursor, so a function
 * can pass the cursor to another function called by the same statement.
 */
import { DatabaseError } from "../../base/errors.ts";
import { INT } from "../../types/mod.ts";
import { askSource } from "./asked.ts";
import { askValue, type ProgramSteps } from "./asks.ts";
import { storeRow } from "./assignments.ts";
import { assigned, type ProgramFrame } from "./frame.ts";
import { boundRows } from "./open_cursors.ts";
import type { ProgramRun } from "./run.ts";
import type { CloseNode, FetchNode, OpenNode } from "./tree.ts";

export function* runOpen(
  { args, isScroll, slot, source }: OpenNode,
  run: ProgramRun,
): ProgramSteps<void> {
  const { cursors, frame } = run;
  const given = frame.values[slot] ?? null;
  const name = typeof given === "string" ? given : cursors.newName();
  if (cursors.has(name))
    cursors.open(name, { columns: [], rows: [], isForward: false, position: 0 });
  const answer =
    source === undefined
      ? yield* boundRows({ args, slot }, frame)
      : yield* askSource(source, run, true);
  const declared = frame.compiled.body.variables[slot]?.declared;
  const isBoundScroll = declared?.kind === "cursor" ? declared.cursor?.isScroll : undefined;
  cursors.open(name, {
    columns: answer.columns ?? [],
    rows: answer.rows,
    keyed: answer.keyed,
    isForward: (isScroll ?? isBoundScroll) === false || answer.keyed?.isLocking === true,
    position: 0,
  });
  frame.values[slot] = name;
}

export function* runFetch(node: FetchNode, { cursors, frame }: ProgramRun): ProgramSteps<void> {
  const cursor = cursors.named(frame.values[node.slot] ?? null);
  const { columns, rows } = cursor;
  const count = typeof node.count === "number" ? node.count : yield* countOf(node.count, frame);
  const before = cursor.position;
  const after = placeAfter(node.direction, { count, position: before, rowCount: rows.length });
  if (cursor.isForward && (after < before || node.direction === "backward")) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      "Cannot move the cursor backward: it was declared NO SCROLL or locks rows",
      {
        hint: "declare the cursor with SCROLL, for a query that locks no rows",
        sqlstate: "55000",
      },
    );
  }
  cursor.position = after;
  const row = rows[after - 1];
  if (node.into !== undefined) {
    yield* storeRow(node.into.targets, { columns, row }, frame);
    frame.found = row !== undefined;
    frame.rowCount = row === undefined ? 0 : 1;
    return;
  }
  const moved = movedCount(node.direction, { before, after, rowCount: rows.length });
  frame.found = moved > 0;
  frame.rowCount = moved;
}

function* countOf(
  piece: Exclude<FetchNode["count"], number>,
  frame: ProgramFrame,
): ProgramSteps<number> {
  const value = assigned(yield* askValue(piece, frame), INT);
  if (value !== null) return Number(value);
  throw new DatabaseError("INVALID_VALUE", "Cannot move the cursor: the count is NULL", {
    sqlstate: "22004",
  });
}

/** Returns the position of a cursor after a move. */
function placeAfter(
  direction: FetchNode["direction"],
  { count, position, rowCount }: { count: number; position: number; rowCount: number },
): number {
  const target = (): number => {
    switch (direction) {
      case "forward":
      case "relative":
        return position + count;
      case "backward":
        return position - count;
      case "absolute":
        return count < 0 ? rowCount + 1 + count : count;
    }
  };
  return Math.max(0, Math.min(target(), rowCount + 1));
}

/** Returns the number of rows that MOVE has skipped. */
function movedCount(
  direction: FetchNode["direction"],
  { after, before, rowCount }: { before: number; after: number; rowCount: number },
): number {
  const isOnRow = after >= 1 && after <= rowCount;
  if (direction === "absolute" || direction === "relative") return isOnRow ? 1 : 0;
  const distance = Math.abs(after - before);
  return isOnRow ? distance : Math.max(0, distance - 1);
}

export function runClose({ slot }: CloseNode, { cursors, frame }: ProgramRun): void {
  cursors.close(frame.values[slot] ?? null);
}
