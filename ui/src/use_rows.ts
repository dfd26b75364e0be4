/**
 * Provides the rows of a query, kept up to date by following it. The page about rights thus also
 * shows changes made by other people, without a refresh button.
 */
import { useEffect, useState } from "react";
import type { CellObject, ServerError } from "../../src/client/mod.ts";
import { db } from "./database.ts";

export interface FollowedRows {
  /** The rows of the query; undefined until they are complete. */
  readonly rows: readonly CellObject[] | undefined;
  /** The error with which the live query has ended; undefined while it is running. */
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

/** Returns a cell as text. NULL becomes an empty string. */
export function textOf(row: CellObject, column: string): string {
  const cell = row[column];
  if (cell === null || cell === undefined) return "";
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}
