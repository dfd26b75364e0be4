/** Plans the groups of a maintained block: GROUP BY, aggregates and HAVING. */
import { defined } from "../../base/assert.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundAggregate, BoundExpression } from "../bind/bound_expressions.ts";
import { columnIdsIn, conjunctsOf } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import type { Expr, ExprCall, SelectFromStatement } from "../parse/ast/ast.ts";
import { type CompiledGroups, compiledGroups, type GroupsOptions, talliesOf } from "./groups.ts";
import { isKeyType } from "./key_types.ts";
import { NotMaintained } from "./not_maintained.ts";
import type { PlannedJoins } from "./planned_joins.ts";
import { seedOfGroups } from "./seed_statement.ts";
import { TuplePlaces } from "./tuple_space.ts";
import { requireNoSubquery } from "./window_bounds.ts";

/**
 * A query bound with its aggregate calls as additional outputs, so that the bound form of each
 * call is known.
 */
export interface Model {
  readonly core: SelectFromStatement;
  readonly select: BoundSelect;
  /** The number of outputs of the query itself. The aggregate calls follow as further outputs. */
  readonly outputCount: number;
  readonly calls: readonly ExprCall[];
}

export interface StageParts {
  /** Whether the last item of the select list is the seq of the row that changed last. */
  readonly hasRowSeq: boolean;
  readonly joins: PlannedJoins;
  readonly context: ExecutionContext;
}

/** The stage of a maintained block that computes its groups. */
export interface GroupStages {
  readonly groups: CompiledGroups;
  /** The statement whose rows are the initial state of the groups. */
  readonly seed: SelectFromStatement;
}

/**
 * Requires that a query has only clauses that can be maintained from changes alone.
 * @throws {NotMaintained}
 */
export function requireKnownClauses({
  distinct,
  expansions,
  groupingSets,
  windows,
  withTies,
}: BoundSelect): void {
  if (windows.length > 0) throw new NotMaintained("the query has window functions");
  if (expansions.length > 0)
    throw new NotMaintained("the query has a function that returns a set of rows");
  if (groupingSets !== undefined) throw new NotMaintained("the query has grouping sets");
  if (typeof distinct === "object") throw new NotMaintained("the query has DISTINCT ON");
  if (withTies) throw new NotMaintained("the query has WITH TIES");
}

/**
 * Requires that equal keys are identical values, so that the key of a group never changes.
 *
 * @throws {NotMaintained} if a key has a type with equal but different values, such as 1.0 and
 *   1.00
 */
export function requireKeys(keys: readonly BoundExpression[]): void {
  for (const { type } of keys) {
    if (!isKeyType(type))
      throw new NotMaintained(
        "the query groups by values that may be equal without being identical",
      );
  }
}

/**
 * Plans the groups of a block, and the seed that computes their initial state. @throws
 * {NotMaintained}
 */
export function groupStages(model: Model, { context, hasRowSeq, joins }: StageParts): GroupStages {
  const { shape, space } = joins;
  const tuples = space.places;
  const { calls, core, outputCount, select } = model;
  const { aggregates, groupBy, having } = select;
  const outputs = select.outputs.slice(0, outputCount).map(({ expression }) => expression);
  requireNoSubquery([...outputs, ...conjunctsOf(having)]);
  requireKeys(groupBy.map(({ expression }) => expression));
  const columns = [...groupBy, ...aggregates].map(({ column }) => column);
  const layout = new Map(columns.map(({ id }, position) => [id, position]));
  const types = columns.map(({ type }) => type);
  const groups: GroupsOptions = {
    keys: groupBy.map(({ expression }) => shape.resolve(expression)),
    aggregates: aggregates.map((each): BoundAggregate => {
      const { argument, filter } = each;
      return {
        ...each,
        argument: argument === undefined ? undefined : shape.resolve(argument),
        filter: filter === undefined ? undefined : shape.resolve(filter),
      };
    }),
    seqAggregate: hasRowSeq ? seqAggregateOf(model) : undefined,
    having,
    outputs,
    tuples,
    grouped: new TuplePlaces(layout, types, context),
  };
  const seed = seedOfGroups(core, {
    keys: groupBy.map((_, index) => writtenKey(model, index)),
    calls: aggregates.map((aggregate) => {
      const at = calls.findIndex((_, index) => {
        const output = select.outputs[outputCount + index]?.expression;
        return output?.kind === "column" && output.column.id === aggregate.column.id;
      });
      const call = calls[at];
      if (call === undefined) throw new NotMaintained(`the query has ${aggregate.form.name}`);
      return call;
    }),
    tallies: talliesOf(groups),
  });
  return { groups: compiledGroups(groups), seed };
}

/**
 * Returns the index of the aggregate that is the last output of the query; undefined if HAVING or
 * another output also uses it.
 */
function seqAggregateOf({ outputCount, select }: Model): number | undefined {
  const outputs = select.outputs.slice(0, outputCount).map(({ expression }) => expression);
  const own = outputs.pop();
  if (own?.kind !== "column") return undefined;
  const at = select.aggregates.findIndex(({ column }) => column.id === own.column.id);
  const others = [...outputs, ...conjunctsOf(select.having)];
  const isUsed = others.some((each) => columnIdsIn(each).has(own.column.id));
  return at < 0 || isUsed ? undefined : at;
}

/**
 * Returns the syntax of a GROUP BY key, from the select list or, if the key does not occur there,
 * from GROUP BY.
 */
function writtenKey({ core, outputCount, select }: Model, index: number): Expr {
  const key = defined(
    select.groupBy[index],
    "maintained groups: no GROUP BY key at this position",
  ).column;
  const { columns = [] } = core;
  const at = select.outputs.findIndex(({ expression }) => {
    return expression.kind === "column" && expression.column.id === key.id;
  });
  const item = columns.length === outputCount ? columns[at] : undefined;
  if (item !== undefined) return item.expr;
  const written = core.groupBy?.[index];
  if (written !== undefined && "type" in written && written.type === "ref") return written;
  throw new NotMaintained("a GROUP BY key is not in the select list");
}
