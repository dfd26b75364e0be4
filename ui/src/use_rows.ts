/**
 * The rows of a query, kept up to date by following it, so that the page about rights also shows
 * the changes of others without a button for it.
 */
import { useEffect, useState } from "react";
import type { CellObject, ServerError } from "../../src/client/mod.ts";
import { db } from "./database.ts";

export interface FollowedRows {
  /** Undefined until the rows are complete. */
  readonly rows: readonly CellObject[] | undefined;
  /** The reason why the live query ended. */
  readonly error: ServerError | undefined;
}

export function useRows(sql: string): FollowedRows {
  const [followed, setFollowed] = useState<FollowedRows>({ rows: undefined, error: undefined });
  useEffect(() => {
    const live = db.live(sql, {
      onRows: (rows) => setFollowed({ rows, error: undefined }),
      onError: (error) => setFollowed(({ rows }) => ({ rows, error })),
    });
    return () => live.close();
  }, [sql]);
  return followed;
}

/** Returns a cell as text, which is empty for NULL. */
export function textOf(row: CellObject, column: string): string {
  const cell = row[column];
  if (cell === null || cell === undefined) return "";
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}
