/**
 * Builds the tree of a chain of set operations, which are left-associative.
 *
 *     a UNION ALL b UNION ALL c EXCEPT d     =     ((a UNION ALL b) UNION ALL c) EXCEPT d
 *
 * UNION and INTERSECT are associative, so a long run of the same operation becomes a balanced
 * tree, in which thousands of queries nest only a dozen levels deep. The order of the rows stays
 * the same. A long run of EXCEPT removes the rows of all queries after the first at once:
 *
 *     a EXCEPT b EXCEPT c     =     a EXCEPT (b UNION ALL c)
 */
import { assert } from "../../base/assert.ts";
import type { SelectFromUnion, SelectStatement } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";

type SetType = SelectFromUnion["type"];

/**
 * The maximum number of queries that form a left-leaning tree. A longer run becomes a balanced
 * tree.
 */
const LEANING_QUERIES_MAX = 32;

/** The number of levels of nested operations for which one level of nested queries counts. */
const LEVEL_DEPTH = 6;

/** A query of the chain, with its range in the SQL. */
interface ChainedQuery {
  readonly query: SelectStatement;
  readonly start: number;
  readonly end: number;
}

export class SetChain {
  readonly #cursor: Cursor;
  /** The current run: consecutive queries that are combined by the same operation. */
  #run: ChainedQuery[];
  #type: SetType = "union all";

  /**
   * Begins a chain with its first query.
   *
   * @param token The first token of the first query, which has just been parsed.
   */
  constructor(cursor: Cursor, first: SelectStatement, token: number) {
    this.#cursor = cursor;
    this.#run = [this.#chained(first, token)];
  }

  /** Adds a query that has just been parsed. */
  add(type: SetType, query: SelectStatement, token: number): void {
    if (type !== this.#type && this.#run.length > 1) this.#run = [this.#folded()];
    this.#type = type;
    this.#run.push(this.#chained(query, token));
  }

  query(): SelectStatement {
    return this.#folded().query;
  }

  #chained(query: SelectStatement, token: number): ChainedQuery {
    const { end, start } = this.#cursor.since(token);
    return { query, start, end };
  }

  /** Combines the queries of the current run into one query. */
  #folded(): ChainedQuery {
    const run = this.#run;
    const [first] = run;
    if (first !== undefined && run.length === 1) return first;
    const leans = run.length <= LEANING_QUERIES_MAX;
    const levels = leans ? run.length - 1 : 1 + Math.ceil(Math.log2(run.length));
    this.#cursor.setDepth(this.#cursor.depthMax + LEVEL_DEPTH * levels);
    const range = { from: 0, to: run.length };
    if (leans || !this.#type.startsWith("except")) return this.#joined(range, this.#type, leans);
    const taken = this.#joined({ from: 1, to: run.length }, "union all", leans);
    return combined(this.#type, this.#joined({ from: 0, to: 1 }, this.#type, leans), taken);
  }

  #joined(
    { from, to }: { readonly from: number; readonly to: number },
    type: SetType,
    leans: boolean,
  ): ChainedQuery {
    const only = this.#run[from];
    assert(only !== undefined, "parser: chain of set operations has no queries");
    if (to - from === 1) return only;
    const middle = leans ? to - 1 : (from + to) >>> 1;
    const left = this.#joined({ from, to: middle }, type, leans);
    const right = this.#joined({ from: middle, to }, type, leans);
    return combined(type, left, right);
  }
}

function combined(type: SetType, left: ChainedQuery, right: ChainedQuery): ChainedQuery {
  const query: SelectFromUnion = {
    type,
    left: left.query,
    right: right.query,
    orderBy: undefined,
    limit: undefined,
    _location: { start: left.start, end: right.end },
  };
  return { query, start: left.start, end: right.end };
}
