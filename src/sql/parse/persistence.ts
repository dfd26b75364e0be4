/** Parses the keywords that make a table temporary or unlogged. */
import type { CreateTableStatement, TablePersistence } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";

/** Whether TEMPORARY TABLE or UNLOGGED TABLE comes next, as opposed to another kind of object. */
export function isPersistence(cursor: Cursor): boolean {
  return isBefore(cursor, ["temp", "temporary", "unlogged"], ["table"]);
}

/** Accepts TEMPORARY before VIEW or SEQUENCE. */
export function acceptTemporary(cursor: Cursor): true | undefined {
  if (!isBefore(cursor, ["temp", "temporary"], ["view", "recursive", "sequence"])) {
    return undefined;
  }
  cursor.acceptOneOf("global", "local");
  cursor.token += 1;
  return true;
}

function isBefore(
  cursor: Cursor,
  words: readonly ("temp" | "temporary" | "unlogged")[],
  kinds: readonly ("recursive" | "sequence" | "table" | "view")[],
): boolean {
  const at = cursor.is("global") || cursor.is("local") ? 1 : 0;
  const isWord = words.some((word) => cursor.isAhead(at, word));
  return isWord && kinds.some((kind) => cursor.isAhead(at + 1, kind));
}

/** Accepts TEMPORARY or UNLOGGED before TABLE, or before the table name in SELECT INTO. */
export function acceptPersistence(cursor: Cursor): TablePersistence {
  cursor.acceptOneOf("global", "local");
  if (cursor.accept("temporary") || cursor.accept("temp")) return { temporary: true };
  return cursor.accept("unlogged") ? { unlogged: true } : {};
}

/** Accepts the clause `ON COMMIT {DROP | DELETE ROWS}` of a temporary table. */
export function acceptOnCommit(
  cursor: Cursor,
  { temporary }: TablePersistence,
): Pick<CreateTableStatement, "onCommit"> {
  if (temporary !== true || !cursor.is("on")) return {};
  cursor.expectAll("on", "commit");
  if (cursor.accept("drop")) return { onCommit: "drop" };
  if (cursor.nameText(cursor.token) === "preserve") {
    cursor.refuse(
      "ON COMMIT PRESERVE ROWS",
      "remove it: a temporary table is dropped when its transaction ends, because requests " +
        "have no session",
    );
  }
  cursor.expectAll("delete", "rows");
  return { onCommit: "delete rows" };
}
