/** Parses the keywords that make a table temporary or unlogged. */
import type { CreateTableStatement, TablePersistence } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";

/** Whether TEMPORARY TABLE or UNLOGGED TABLE comes next, as opposed to another kind of object. */
export function isPersistence(cursor: Cursor): boolean {
  const at = cursor.is("global") || cursor.is("local") ? 1 : 0;
  const isWord = (["temp", "temporary", "unlogged"] as const).some((word) =>
    cursor.isAhead(at, word),
  );
  return isWord && cursor.isAhead(at + 1, "table");
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
