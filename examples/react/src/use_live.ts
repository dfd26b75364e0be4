/** A hook for a live query. All components share the socket of a single client. */
import { useEffect, useState } from "react";
import type { Client, Parameter, ServerError } from "./client.js";

export interface LiveState<Row> {
  readonly rows: readonly Row[];
  readonly error?: ServerError;
}

export function useLive<Row extends object>(
  db: Client,
  sql: string,
  params: readonly Parameter[] = [],
): LiveState<Row> {
  const [state, setState] = useState<LiveState<Row>>({ rows: [] });
  useEffect(() => {
    const live = db.live<Row>(sql, {
      params,
      onRows: (rows) => setState({ rows }),
      onError: (error) => setState({ rows: [], error }),
    });
    return () => live.close();
  }, [db, sql, JSON.stringify(params)]);
  return state;
}
