/**
 * Moves what may take long out of operators that cannot evaluate a batch again, into a projection
 * or a filter below or above them, which can: see `sql/execute/run/pausing.ts`.
 *
 * What comes out is a plan as the planner might have made it. It is made only where operators are,
 * so that EXPLAIN shows what was asked for and rules of the planner see expressions in their place.
 */
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundSort,
  BoundWindowCall,
} from "../../bind/bound_expressions.ts";
import { columnIdsIn, mayTakeLong, readsForEachRow } from "../../bind/walk.ts";
import type { AggregateNode, ExpandNode, JoinNode, PlanNode, WindowNode } from "../../plan/plan.ts";

/**
 * These name columns within one operator only. Ids of bound columns ascend from 0; those of a query
 * that is planned by itself, as the right side of a semi join is, descend from -1, too.
 */
const FIRST_ID = -1;

/**
 * Whether a batch of it may take more than a turn: by itself, or as each row may cost a reading.
 */
function isLong(expression: BoundExpression): boolean {
  return mayTakeLong(expression) || readsForEachRow(expression);
}

/** Collects what is computed below one operator. */
class Below {
  readonly #columns: BoundColumn[] = [];
  readonly #expressions: BoundExpression[] = [];
  #nextId: number;

  constructor(firstId: number) {
    this.#nextId = firstId;
  }

  get nextId(): number {
    return this.#nextId;
  }

  /** The column that holds an expression, or the expression itself where it takes no time. */
  instead(expression: BoundExpression): BoundExpression {
    if (!isLong(expression)) return expression;
    const { type } = expression;
    const known = this.#columns[this.#expressions.indexOf(expression)];
    const column = known ?? { id: this.#nextId, name: "", type };
    if (known === undefined) {
      this.#nextId -= 1;
      this.#columns.push(column);
      this.#expressions.push(expression);
    }
    return { kind: "column", type, column };
  }

  over(input: PlanNode): PlanNode {
    if (this.#columns.length === 0) return input;
    const passed = input.columns.map((column): BoundExpression => {
      return { kind: "column", type: column.type, column };
    });
    return {
      kind: "project",
      input,
      expressions: [...passed, ...this.#expressions],
      columns: [...input.columns, ...this.#columns],
    };
  }
}

export function aggregateOverComputed(node: AggregateNode): AggregateNode {
  const below = new Below(FIRST_ID);
  const groupBy = node.groupBy.map(({ column, expression }) => {
    return { column, expression: below.instead(expression) };
  });
  const aggregates = node.aggregates.map((aggregate): BoundAggregate => {
    const { argument, extra, filter, orderBy } = aggregate;
    // What the filter leaves out is not evaluated, as it may fail.
    const guarded = (expression: BoundExpression): BoundExpression =>
      filter === undefined || !isLong(expression)
        ? below.instead(expression)
        : below.instead(seenOnly(expression, filter));
    return {
      ...aggregate,
      argument: argument === undefined ? undefined : guarded(argument),
      extra: extra.map(guarded),
      orderBy: orderBy.map((key) => sortedBy(key, guarded(key.expression))),
      filter: filter === undefined ? undefined : below.instead(filter),
    };
  });
  return { ...node, groupBy, aggregates, input: below.over(node.input) };
}

function sortedBy({ isDescending, nullsFirst }: BoundSort, expression: BoundExpression): BoundSort {
  return { expression, isDescending, nullsFirst };
}

function seenOnly(expression: BoundExpression, filter: BoundExpression): BoundExpression {
  const branches = [{ when: filter, value: expression }];
  return { kind: "case", type: expression.type, branches, otherwise: undefined };
}

export function sortOverComputed<Node extends Extract<PlanNode, { kind: "sort" }>>(
  node: Node,
): Node {
  const below = new Below(FIRST_ID);
  const keys = node.keys.map((key) => sortedBy(key, below.instead(key.expression)));
  return { ...node, keys, input: below.over(node.input) };
}

export function distinctOverComputed<Node extends Extract<PlanNode, { kind: "distinct" }>>(
  node: Node,
): Node {
  const below = new Below(FIRST_ID);
  const on = node.on.map((expression) => below.instead(expression));
  return { ...node, on, input: below.over(node.input) };
}

export function windowOverComputed(node: WindowNode): WindowNode {
  const below = new Below(FIRST_ID);
  const sorts = (keys: readonly BoundSort[]): BoundSort[] =>
    keys.map((key) => sortedBy(key, below.instead(key.expression)));
  const calls = node.calls.map((call): BoundWindowCall => {
    const { args, filter, window } = call;
    return {
      ...call,
      args: args.map((argument) => below.instead(argument)),
      filter: filter === undefined ? undefined : below.instead(filter),
      window: {
        ...window,
        partitionBy: window.partitionBy.map((expression) => below.instead(expression)),
        orderBy: sorts(window.orderBy),
      },
    };
  });
  return { ...node, calls, input: below.over(node.input) };
}

export function expandOverComputed(node: ExpandNode): ExpandNode {
  const below = new Below(FIRST_ID);
  const functions = node.functions.map((made) => ({
    ...made,
    args: made.args.map((argument) => below.instead(argument)),
  }));
  return { ...node, functions, input: below.over(node.input) };
}

/** Of an inner join, what pairs must satisfy besides is asked above it, too. */
export function joinOverComputed(node: JoinNode): PlanNode {
  const ids = [...node.left.columns, ...node.right.columns].map(({ id }) => id);
  const left = new Below(Math.min(FIRST_ID, ...ids.map((id) => id - 1)));
  const leftKeys = node.leftKeys.map((key) => left.instead(key));
  const right = new Below(left.nextId);
  const rightKeys = node.rightKeys.map((key) => right.instead(key));
  const sides = { left: left.over(node.left), right: right.over(node.right), leftKeys, rightKeys };
  const { columns, join, residual } = node;
  if (join !== "inner" || residual === undefined || !isLong(residual)) {
    return { ...node, ...sides };
  }
  const asked = columnIdsIn(residual);
  for (const { id } of columns) asked.add(id);
  const kept = [...node.left.columns, ...node.right.columns].filter(({ id }) => asked.has(id));
  const input: JoinNode = { ...node, ...sides, residual: undefined, columns: kept };
  return { kind: "filter", input, condition: residual, columns };
}
