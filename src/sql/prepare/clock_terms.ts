/**
 * Finds comparisons in a followed query whose results change with time: a column on one side and
 * the clock on the other, as in `at > NOW() - INTERVAL '1 hour'`.
 *
 *     column ──► 09:10  09:25  09:40 ┆        10:02
 *                                    ┆ clock = NOW() - INTERVAL '1 hour', which only moves forward
 *                                    └──► the comparison of a row changes when the clock reaches or
 *                                         passes the row's value, so the next row is the smallest
 *                                         value ahead
 *
 * Invariant: the clock side of a comparison never moves backwards. It reads only the time, and
 * values that are fixed when a client subscribes. The caller rejects every other use of the time.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import type { BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundComparison, BoundExpression, ExpressionOf } from "../bind/bound_expressions.ts";
import { expressionsIn } from "../bind/query/query_walk.ts";
import { childrenOf, readsColumn } from "../bind/walk.ts";

/** A comparison between a stored column and the current time. */
export interface ClockTerm {
  readonly table: TableEntry;
  readonly columnId: number;
  /** The casts applied to the column, innermost first. */
  readonly casts: readonly DataType[];
  /** The type in which both sides are compared. */
  readonly type: DataType;
  readonly clock: BoundExpression;
  /**
   * Whether the comparison changes when the clock passes a value, rather than when the clock
   * reaches the value.
   */
  readonly isPassed: boolean;
}

export interface ClockTerms {
  readonly terms: readonly ClockTerm[];
  /** The calls that read the time as part of a comparison with a column. */
  readonly calls: ReadonlySet<BoundExpression>;
}

/**
 * Functions that return the time of the statement, or a value that never decreases as time passes.
 */
const CLOCK_FUNCTIONS: ReadonlySet<string> = new Set([
  "now",
  "transaction_timestamp",
  "statement_timestamp",
  "current_timestamp",
  "localtimestamp",
  "current_date",
]);

/**
 * For each function, the index of an argument that may be the clock. The result of the function
 * never decreases as long as this argument does not.
 */
const RISING: Readonly<Record<string, number>> = {
  "+": 0,
  "-": 0,
  date_trunc: 1,
  "cast to the next day": 0,
  "cast to its day": 0,
};

const MOMENT_KINDS: ReadonlySet<DataType["kind"]> = new Set(["date", "timestamp", "datetime"]);

export function isClockFunction(name: string): boolean {
  return CLOCK_FUNCTIONS.has(name);
}

/** Returns the comparisons with the clock in a query, its WITH entries and its subqueries. */
export function clockTermsOf(select: BoundSelect): ClockTerms {
  const sources = new ColumnSources();
  sources.addQuery(select);
  const terms: ClockTerm[] = [];
  const calls = new Set<BoundExpression>();
  const others = new Set<BoundExpression>();
  const seen = new Set<BoundExpression>();
  // BETWEEN compares the same expression twice, so a call may occur both inside and outside a
  // comparison with the clock.
  const visit = (expression: BoundExpression): void => {
    if (seen.has(expression)) return;
    seen.add(expression);
    const found = expression.kind === "compare" ? termsOf(expression, sources) : undefined;
    if (found === undefined) {
      if (isClockCall(expression)) others.add(expression);
      for (const child of childrenOf(expression)) visit(child);
      return;
    }
    terms.push(...found.terms);
    for (const call of clockCallsIn(found.clock)) calls.add(call);
  };
  for (const query of sources.queries) for (const each of expressionsIn(query)) visit(each);
  return { terms, calls: calls.difference(others) };
}

interface FoundTerms {
  readonly terms: readonly ClockTerm[];
  readonly clock: BoundExpression;
}

/**
 * Returns one term for each stored column from which the compared value may come; undefined if the
 * comparison does not compare a column with the clock.
 */
function termsOf(comparison: BoundComparison, sources: ColumnSources): FoundTerms | undefined {
  const { left, operator, right } = comparison;
  const isLeft = isClock(left);
  const [clock, value] = isLeft ? [left, right] : [right, left];
  if (!isClock(clock)) return undefined;
  const columns = sources.columnsOf(value);
  if (columns === undefined) return undefined;
  // `at > clock` becomes false when the clock reaches `at`, and `at >= clock` when the clock
  // passes it.
  const passes: Readonly<Record<string, readonly boolean[]>> = {
    "=": [true, false],
    "<>": [true, false],
    [isLeft ? "<" : ">"]: [false],
    [isLeft ? ">=" : "<="]: [false],
    [isLeft ? "<=" : ">="]: [true],
    [isLeft ? ">" : "<"]: [true],
  };
  const terms = (passes[operator] ?? []).flatMap((isPassed) =>
    columns.map(({ casts, columnId, table }): ClockTerm => {
      return { table, columnId, casts, type: value.type, clock, isPassed };
    }),
  );
  return { terms, clock };
}

/** Whether an expression reads the time and never decreases as time passes. */
function isClock(expression: BoundExpression): boolean {
  if (expression.kind === "cast") {
    return isMoment(expression) && isMoment(expression.operand) && isClock(expression.operand);
  }
  if (expression.kind === "arithmetic") {
    const { left, operator, right } = expression;
    return operator !== "*" && isClock(left) && isFixed(right);
  }
  if (expression.kind !== "call") return false;
  if (CLOCK_FUNCTIONS.has(expression.name)) return expression.args.every(isFixed);
  return isRisingCall(expression);
}

function isRisingCall({ args, name }: ExpressionOf<"call">): boolean {
  const position = RISING[name];
  if (position === undefined) return false;
  const [first, second] = args;
  // Either operand of a sum may be the clock.
  const isSum = name === "+" && second !== undefined && isClock(second);
  const moving = isSum ? second : args[position];
  const others = args.filter((argument) => argument !== moving);
  return first !== undefined && moving !== undefined && isClock(moving) && others.every(isFixed);
}

function isMoment({ type }: BoundExpression): boolean {
  return MOMENT_KINDS.has(type.kind);
}

/** Whether the value of an expression is fixed when a client subscribes. */
function isFixed(expression: BoundExpression): boolean {
  const isCall = expression.kind === "call" && expression.volatility !== "immutable";
  const isRead = expression.kind === "subquery" || expression.kind === "outer";
  return !isCall && !isRead && !readsColumn(expression) && childrenOf(expression).every(isFixed);
}

function clockCallsIn(expression: BoundExpression): BoundExpression[] {
  const own = isClockCall(expression) ? [expression] : [];
  return [...own, ...childrenOf(expression).flatMap(clockCallsIn)];
}

function isClockCall(expression: BoundExpression): boolean {
  return expression.kind === "call" && CLOCK_FUNCTIONS.has(expression.name);
}

type ComparedColumn = Pick<ClockTerm, "casts" | "columnId" | "table">;

/** Traces columns of derived tables and groups, and outer references, back to stored columns. */
class ColumnSources {
  /** The expressions from which a column may take its value, keyed by column id. */
  readonly #columns = new Map<number, BoundExpression[]>();
  /** The expressions from which an outer reference may take its value, keyed by reference id. */
  readonly #outer = new Map<number, BoundExpression[]>();
  /** All queries whose columns have been recorded so far. */
  readonly queries = new Set<BoundSelect>();

  /** Records the columns of a query and of all queries in it. */
  addQuery(select: BoundSelect): void {
    if (this.queries.has(select)) return;
    this.queries.add(select);
    for (const { argument, column, form } of select.aggregates) {
      // The minimum and the maximum of a column are values of that column.
      if (argument !== undefined && (form.name === "min" || form.name === "max")) {
        add(this.#columns, column.id, argument);
      }
    }
    for (const { column, expression } of select.groupBy) add(this.#columns, column.id, expression);
    this.#addFrom(select.from);
    for (const expression of expressionsIn(select)) this.#addExpression(expression);
  }

  /**
   * Returns the stored columns from which a value may come; undefined if it may come from anything
   * else.
   */
  columnsOf(
    value: BoundExpression,
    casts: readonly DataType[] = [],
    above: ReadonlySet<BoundExpression> = new Set(),
  ): readonly ComparedColumn[] | undefined {
    // A recursive query reads its own rows, which come from no further stored columns.
    if (above.has(value)) return [];
    const seen = new Set([...above, value]);
    switch (value.kind) {
      case "cast":
        if (!isMoment(value) || !isMoment(value.operand)) return undefined;
        return this.columnsOf(value.operand, [value.type, ...casts], seen);
      case "outer":
        return this.#columnsOfAll(this.#outer.get(value.id), casts, seen);
      case "column": {
        const { id, origin } = value.column;
        if (origin === undefined) return this.#columnsOfAll(this.#columns.get(id), casts, seen);
        const { columnId, table } = origin;
        return columnId > 0 && isMoment(value) ? [{ casts, columnId, table }] : undefined;
      }
      default:
        return undefined;
    }
  }

  #columnsOfAll(
    values: readonly BoundExpression[] | undefined,
    casts: readonly DataType[],
    seen: ReadonlySet<BoundExpression>,
  ): readonly ComparedColumn[] | undefined {
    const all: ComparedColumn[] = [];
    for (const value of values ?? []) {
      const columns = this.columnsOf(value, casts, seen);
      if (columns === undefined) return undefined;
      all.push(...columns);
    }
    return values === undefined ? undefined : all;
  }

  #addFrom(from: BoundFrom | undefined): void {
    if (from === undefined) return;
    if (from.kind === "join") {
      for (const { id, value } of from.outerReferences ?? []) add(this.#outer, id, value);
      this.#addFrom(from.left);
      this.#addFrom(from.right);
      return;
    }
    const { relation } = from;
    for (const query of queriesOf(relation)) {
      for (const [index, { id }] of relation.columns.entries()) {
        const expression = query.outputs[index]?.expression;
        if (expression !== undefined) add(this.#columns, id, expression);
      }
      this.addQuery(query);
    }
  }

  #addExpression(expression: BoundExpression): void {
    if (expression.kind === "subquery") {
      const { outerReferences, subquery } = expression;
      for (const [index, value] of outerReferences.entries()) {
        const id = subquery.outerIds[index];
        if (id !== undefined) add(this.#outer, id, value);
      }
      this.addQuery(subquery.query);
    }
    for (const child of childrenOf(expression)) this.#addExpression(child);
  }
}

/** Returns the queries whose outputs are the columns of a relation. */
function queriesOf(relation: BoundRelation): readonly BoundSelect[] {
  switch (relation.kind) {
    case "query":
      return [relation.query];
    case "cte":
      return [relation.cte.query];
    case "set":
      return [relation.left, relation.right];
    case "recursive":
      return [relation.first, relation.next];
    default:
      return [];
  }
}

function add<Value>(map: Map<number, Value[]>, id: number, value: Value): void {
  const known = map.get(id);
  if (known === undefined) map.set(id, [value]);
  else known.push(value);
}
