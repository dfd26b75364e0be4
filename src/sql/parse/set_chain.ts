/**
 * Builds the tree of a chain of set operations, which associate to the left.
 *
 *     a UNION ALL b UNION ALL c EXCEPT d     =     ((a UNION ALL b) UNION ALL c) EXCEPT d
 *
 * UNION and INTERSECT may be grouped in any way, so long runs of one of them become balanced trees:
 * thousands of queries then nest a dozen levels deep. The order of the rows stays the same.
 */
import { assert } from "../../base/assert.ts";
import type { SelectFromUnion, SelectStatement } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";

type SetType = SelectFromUnion["type"];

/** Longer runs become balanced trees. */
const LEANING_QUERIES_MAX = 32;

/** The depth, in operations of an expression, that one level of nested queries counts for. */
const LEVEL_DEPTH = 6;

/** A query of the chain, with its range in the text. */
interface ChainedQuery {
  readonly query: SelectStatement;
  readonly start: number;
  readonly end: number;
}

export class SetChain {
  readonly #cursor: Cursor;
  /** The queries between which the same operation stands. */
  #run: ChainedQuery[];
  #type: SetType = "union all";

  /** @param token The first token of the first query, which has just been parsed. */
  constructor(cursor: Cursor, first: SelectStatement, token: number) {
    this.#cursor = cursor;
    this.#run = [this.#chained(first, token)];
  }

  /** Adds a query that has just been parsed. */
  add(type: SetType, query: SelectStatement, token: number): void {
    const groups = type === this.#type && !type.startsWith("except");
    if (!groups && this.#run.length > 1) this.#run = [this.#folded()];
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

  /** Combines the run into one query. */
  #folded(): ChainedQuery {
    const run = this.#run;
    const [first] = run;
    if (first !== undefined && run.length === 1) return first;
    const leans = run.length <= LEANING_QUERIES_MAX;
    const levels = leans ? run.length - 1 : Math.ceil(Math.log2(run.length));
    this.#cursor.setDepth(this.#cursor.depthMax + LEVEL_DEPTH * levels);
    return this.#joined(0, run.length, leans);
  }

  #joined(from: number, to: number, leans: boolean): ChainedQuery {
    const only = this.#run[from];
    assert(only !== undefined, "a chain of set operations has queries");
    if (to - from === 1) return only;
    const middle = leans ? to - 1 : (from + to) >>> 1;
    const left = this.#joined(from, middle, leans);
    const right = this.#joined(middle, to, leans);
    const query: SelectFromUnion = {
      type: this.#type,
      left: left.query,
      right: right.query,
      orderBy: undefined,
      limit: undefined,
      _location: { start: left.start, end: right.end },
    };
    return { query, start: left.start, end: right.end };
  }
}
