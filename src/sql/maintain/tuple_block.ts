/**
 * Runs the part of a block above its joins, such as its groups or windows, over given tuples. The
 * tuples replace FROM and WHERE.
 *
 *     SELECT k, sum(d) FROM a JOIN b ON … WHERE … GROUP BY k
 *     SELECT k, sum(d) FROM tuples                GROUP BY k
 */
import { defined } from "../../base/assert.ts";
import type { Row } from "../../types/mod.ts";
import type {
  BoundExpansion,
  BoundRecursion,
  BoundSelect,
  BoundTableFunction,
} from "../bind/bound.ts";
import type { BoundAggregate, BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { mapCall } from "../bind/query/window_walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import type { JoinShape } from "./join_shape.ts";
import { QueryAt } from "./query_at.ts";
import type { TupleSpace } from "./tuple_space.ts";

/** The block reads the tuples like the working table of a recursive query. */
const TUPLES: BoundRecursion = { name: "tuples" };

export class TupleBlock {
  readonly #program: QueryAt;
  readonly #columns: readonly BoundColumn[];
  readonly #positions: readonly number[];
  readonly #seqPositions: readonly number[];

  /**
   * Compiles a block to run over tuples.
   * @param select A block without LIMIT. Its FROM and WHERE have the given shape.
   */
  constructor(select: BoundSelect, { shape, space }: { shape: JoinShape; space: TupleSpace }) {
    const { layout } = space.places;
    const all = [...shape.sources.flatMap(({ columns }) => columns), ...shape.computed];
    this.#columns = all.filter(({ id }) => layout.has(id));
    this.#positions = this.#columns.map(({ id }) => {
      return defined(layout.get(id), "maintained query: column has no place in the tuple");
    });
    this.#seqPositions = space.sources.map(({ seqPosition }) => seqPosition);
    this.#program = new QueryAt(overTuples(select, { shape, columns: this.#columns }));
  }

  /** Runs the block over tuples. @throws {CannotFollow} @throws {DatabaseError} */
  rows(tuples: readonly Row[], context: ExecutionContext): readonly Row[] {
    // A SELECT reads rows in ascending seq order, and the rounding of a sum depends on the order
    // of the rows.
    const sorted = tuples.toSorted((left, right) => this.#compareSeqs(left, right));
    const rows = sorted.map((tuple) => this.#positions.map((at) => tuple[at] ?? null));
    const types = this.#columns.map(({ type }) => type);
    return this.#program.rowsOver({ table: TUPLES, types, rows }, context);
  }

  #compareSeqs(left: Row, right: Row): number {
    for (const at of this.#seqPositions) {
      const order = Number(left[at] ?? 0) - Number(right[at] ?? 0);
      if (order !== 0) return order;
    }
    return 0;
  }
}

function overTuples(
  select: BoundSelect,
  { columns, shape }: { shape: JoinShape; columns: readonly BoundColumn[] },
): BoundSelect {
  const resolve = (expression: BoundExpression): BoundExpression => shape.resolve(expression);
  const resolved = <Each extends { readonly expression: BoundExpression }>(
    list: readonly Each[],
  ): Each[] => list.map((each) => withExpression(each, resolve(each.expression)));
  const optional = (expression: BoundExpression | undefined): BoundExpression | undefined =>
    expression === undefined ? undefined : resolve(expression);
  const aggregateOver = (aggregate: BoundAggregate): BoundAggregate => {
    return {
      ...aggregate,
      argument: optional(aggregate.argument),
      extra: aggregate.extra.map(resolve),
      filter: optional(aggregate.filter),
      orderBy: resolved(aggregate.orderBy),
    };
  };
  const { aggregates, distinct, expansions, groupBy, having, orderBy, outputs, windows } = select;
  return {
    ...select,
    from: {
      kind: "relation",
      relation: { kind: "working", recursion: TUPLES, alias: "", columns },
    },
    where: undefined,
    groupBy: resolved(groupBy),
    aggregates: aggregates.map(aggregateOver),
    having: optional(having),
    windows: windows.map((call) => mapCall(call, resolve)),
    expansions: expansions.map((expansion) => expansionWith(expansion, resolve)),
    outputs: resolved(outputs),
    distinct: typeof distinct === "object" ? { on: distinct.on.map(resolve) } : distinct,
    orderBy: resolved(orderBy),
  };
}

type Rewrite = (expression: BoundExpression) => BoundExpression;

function expansionWith(expansion: BoundExpansion, rewrite: Rewrite): BoundExpansion {
  const called = (each: BoundTableFunction): BoundTableFunction => {
    return { ...each, args: each.args.map(rewrite) };
  };
  return { ...expansion, functions: expansion.functions.map(called) };
}

function withExpression<Each>(each: Each, expression: BoundExpression): Each {
  return { ...each, expression };
}
