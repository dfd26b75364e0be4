/**
 * Divides the stored queries of a catalog into views and functions, which are stored in the same
 * way.
 */
import type { FunctionEntry, ViewEntry } from "./entries.ts";
import { pathOf } from "./table_history.ts";

/** The stored queries of one version of the catalog. */
export interface StoredQueries {
  readonly all: readonly ViewEntry[];
  /** The views, without the queries of materialized views. */
  readonly views: readonly ViewEntry[];
  readonly functions: readonly FunctionEntry[];
  /** The functions that share a namespace and a name, keyed by {@linkcode pathOf}. */
  readonly named: ReadonlyMap<string, readonly FunctionEntry[]>;
}

export function storedQueriesOf(all: readonly ViewEntry[]): StoredQueries {
  const functions = all.filter(isFunction);
  return {
    all,
    views: all.filter((entry) => !isFunction(entry) && entry.resultId === undefined),
    functions,
    named: Map.groupBy(functions, ({ namespace, routine: { name } }) =>
      pathOf({ namespace, name }),
    ),
  };
}

function isFunction(entry: ViewEntry): entry is FunctionEntry {
  return entry.routine !== undefined;
}
