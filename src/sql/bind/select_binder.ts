/**
 * One SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY, LIMIT.
 *
 * Aggregates found in the select list, HAVING and ORDER BY become columns of the block. What stands
 * beside them may read grouping expressions and aggregates only; it is rewritten to their columns.
 */
import { DatabaseError } from "../../base/errors.ts";
import type {
  Expr,
  GroupItem,
  SelectedColumn,
  SelectFromStatement,
  SelectStatement,
  WithStatement,
} from "../parse/ast.ts";
import { type AggregateSink, type ExpansionSink, notAvailable, type Place } from "./binding.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundOutput,
  BoundSelect,
} from "./bound.ts";
import { bindCondition, bindExpression, bindValue, settled } from "./expression_binder.ts";
import { bindFrom } from "./from_binder.ts";
import { bindLimit, orderedOutput, outputByOrdinal, sortOf } from "./ordering.ts";
import { Scope } from "./scope.ts";
import { queriesAround, type SelectContext } from "./select_context.ts";
import { bindSetOperation } from "./set_binder.ts";
import { expandedFrom } from "./table_functions.ts";
import { mapChildren, sameExpression } from "./walk.ts";
import { contextWith } from "./with_binder.ts";

/** Binds a query of the forms that are available. @throws {DatabaseError} */
export function bindQuery(query: SelectStatement, context: SelectContext): BoundSelect {
  switch (query.type) {
    case "select":
      return bindSelect(query, context);
    case "values":
      return bindSelect(selectFromValues(query), { ...context, isOutermost: false });
    case "with":
    case "with recursive":
      return bindWith(query, context);
    default:
      return bindSetOperation(query, context);
  }
}

function bindWith(query: WithStatement, context: SelectContext): BoundSelect {
  const inner = contextWith(query, context);
  if (isChange(query.in)) throw notAvailable(query.in, "a change inside a query");
  return bindQuery(query.in, inner);
}

function isChange(
  node: WithStatement["in"],
): node is Exclude<WithStatement["in"], SelectStatement> {
  return node.type === "insert" || node.type === "update" || node.type === "delete";
}

/** `VALUES …` is `SELECT * FROM (VALUES …)`. */
function selectFromValues(
  query: Extract<SelectStatement, { type: "values" }>,
): SelectFromStatement {
  const { _location, limit, orderBy } = query;
  return {
    type: "select",
    _location,
    columns: [{ _location, expr: { type: "ref", name: "*", star: true, _location } }],
    from: [
      {
        type: "statement",
        statement: { type: "values", values: query.values, _location },
        _location,
      },
    ],
    orderBy,
    limit,
  };
}

interface Block {
  readonly select: SelectFromStatement;
  readonly context: SelectContext;
  readonly scope: Scope;
  readonly sink: AggregateSink;
}

export function bindSelect(select: SelectFromStatement, context: SelectContext): BoundSelect {
  if (select.windows !== undefined) throw notAvailable(select, "WINDOW");
  const { from, scope } =
    select.from === undefined
      ? { from: undefined, scope: new Scope([]) }
      : bindFrom(select.from, context);
  const sink: AggregateSink & { aggregates: BoundAggregate[] } = { aggregates: [] };
  const block: Block = { select, context, scope, sink };
  const where =
    select.where === undefined
      ? undefined
      : bindCondition(select.where, placeOf(block, "WHERE", undefined));

  const expansions: ExpansionSink = { functions: [], columns: [] };
  const outputs = bindOutputs(block, expansions);
  const groupBy = (select.groupBy ?? []).map((item) => bindGroup(item, outputs, block));
  const having =
    select.having === undefined
      ? undefined
      : bindCondition(select.having, placeOf(block, "HAVING", sink));
  const orderBy = (select.orderBy ?? []).map((sort) =>
    sortOf(sort, bindOrderTarget(sort.by, outputs, block)),
  );
  const on = typeof select.distinct === "object" ? select.distinct : undefined;
  const distinctOn = on?.map((e) => bindOrderTarget(e, outputs, block));

  const isExpanded = expansions.functions.length > 0;
  const isAggregated = groupBy.length > 0 || sink.aggregates.length > 0 || having !== undefined;
  const grouping = isAggregated ? new GroupedBlock(block, groupBy) : undefined;
  const over = (e: BoundExpression): BoundExpression => grouping?.rewrite(e) ?? e;
  const distinct =
    distinctOn !== undefined
      ? { on: distinctOn.map(over) }
      : select.distinct === "distinct"
        ? "all"
        : "none";
  if (isExpanded && isAggregated) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot use a table function in the select list beside aggregates",
      { position: select._location.start, hint: "put it into FROM" },
    );
  }
  const bound: BoundSelect = {
    from: isExpanded ? expandedFrom(from, expansions, placeOf(block, "", undefined)) : from,
    where,
    outputs: outputs.map(({ name, expression }) => ({ name, expression: over(expression) })),
    having: having === undefined ? undefined : over(having),
    orderBy: orderBy.map(({ expression, isDescending, nullsFirst }) => ({
      expression: over(expression),
      isDescending,
      nullsFirst,
    })),
    groupBy: grouping?.groupBy ?? [],
    aggregates: sink.aggregates,
    isAggregated,
    distinct,
    ...bindLimit(select.limit, orderBy, context),
  };
  checkDistinct(bound, select);
  return bound;
}

function placeOf(
  { context, scope }: Block,
  clause: string,
  sink: AggregateSink | undefined,
): Place {
  return { statement: context.statement, scope, clause, sink, ...queriesAround(context) };
}

function bindOutputs(block: Block, expansions: ExpansionSink): BoundOutput[] {
  const { columns, distinct, orderBy } = block.select;
  return bindSelectedColumns(columns ?? [], {
    place: { ...placeOf(block, "the select list", block.sink), expansions },
    withSystemColumns: showsSystemColumns(block),
    keepsUntyped:
      block.context.keepsUntyped === true && distinct === undefined && orderBy === undefined,
  });
}

/** A plain SELECT: one stored table, no DISTINCT, no grouping. */
function showsSystemColumns({ context, scope, select }: Block): boolean {
  if (!context.isOutermost || scope.relations.length !== 1) return false;
  return (
    select.distinct === undefined && select.groupBy === undefined && select.having === undefined
  );
}

/** Binds a select list or a RETURNING list; `*` is expanded. */
export function bindSelectedColumns(
  columns: readonly SelectedColumn[],
  {
    keepsUntyped = false,
    place,
    withSystemColumns,
  }: { place: Place; withSystemColumns: boolean; keepsUntyped?: boolean },
): BoundOutput[] {
  return columns.flatMap(({ alias, expr }) => {
    if (expr.type === "ref" && expr.star === true) {
      const relation =
        expr.table === undefined ? undefined : place.scope.relationOf(expr, expr.table);
      const stars = relation?.columns ?? place.scope.visible;
      if (place.scope.relations.length === 0) {
        throw new DatabaseError("INVALID_QUERY", 'Cannot expand "*": there is no FROM', {
          position: expr._location.start,
        });
      }
      const system = withSystemColumns
        ? (relation ?? place.scope.relations[0])?.systemColumns
        : undefined;
      return [...stars, ...(system ?? [])].map(outputOf);
    }
    const expression = keepsUntyped ? bindExpression(expr, place) : bindValue(expr, place);
    return [{ name: alias?.name ?? nameOf(expr), expression }];
  });
}

function outputOf(column: BoundColumn): BoundOutput {
  return { name: column.name, expression: { kind: "column", type: column.type, column } };
}

/** The name PostgreSQL gives a column without alias. */
function nameOf(expression: Expr): string {
  switch (expression.type) {
    case "ref":
      return expression.name;
    case "call":
      return expression.function.name;
    case "keyword":
      return expression.keyword;
    case "cast": {
      const inner = nameOf(expression.operand);
      if (inner !== "?column?") return inner;
      return expression.to.kind === "array" ? inner : expression.to.name;
    }
    case "case": {
      const otherwise = expression.else === undefined ? "?column?" : nameOf(expression.else);
      return otherwise === "?column?" ? "case" : otherwise;
    }
    case "extract":
      return "extract";
    case "substring":
      return "substring";
    case "overlay":
      return "overlay";
    case "trim":
      return { both: "btrim", leading: "ltrim", trailing: "rtrim" }[expression.side];
    case "array":
      return "array";
    case "array select":
      return "array";
    case "select":
      return nameOfScalar(expression);
    case "arrayIndex":
      return nameOf(expression.array);
    case "collate":
      return nameOf(expression.operand);
    default:
      return "?column?";
  }
}

/** A scalar subquery is named as its column. */
function nameOfScalar({ columns }: SelectFromStatement): string {
  const [column] = columns ?? [];
  return column === undefined ? "?column?" : (column.alias?.name ?? nameOf(column.expr));
}

interface BoundGroup {
  readonly expression: BoundExpression;
}

function bindGroup(item: GroupItem, outputs: readonly BoundOutput[], block: Block): BoundGroup {
  if ("groups" in item) {
    throw notAvailable(item, item.type.toUpperCase());
  }
  const place = placeOf(block, "GROUP BY", undefined);
  const byOrdinal = outputByOrdinal(item, outputs, "GROUP BY");
  if (byOrdinal !== undefined) return { expression: byOrdinal };
  if (item.type === "ref" && item.table === undefined && block.scope.find(item) === undefined) {
    const output = outputs.find(({ name }) => name === item.name);
    if (output !== undefined) return { expression: output.expression };
  }
  return { expression: bindValue(item, place) };
}

function bindOrderTarget(
  target: Expr,
  outputs: readonly BoundOutput[],
  block: Block,
): BoundExpression {
  const output = orderedOutput(target, outputs);
  if (output !== undefined) return output;
  return settled(bindExpression(target, placeOf(block, "ORDER BY", block.sink)));
}

/** What an aggregating block may read: its grouping expressions and its aggregates. */
class GroupedBlock {
  readonly #columns: { column: BoundColumn; expression: BoundExpression }[];
  readonly #aggregateIds: ReadonlySet<number>;
  readonly #block: Block;

  constructor(block: Block, groups: readonly BoundGroup[]) {
    this.#block = block;
    this.#aggregateIds = new Set(block.sink.aggregates.map(({ column }) => column.id));
    this.#columns = groups.map(({ expression }) => ({
      expression,
      column: block.context.statement.newColumn(columnLike(expression)),
    }));
    for (const { expression } of groups) this.#checkGroup(expression);
  }

  get groupBy(): readonly { column: BoundColumn; expression: BoundExpression }[] {
    return this.#columns;
  }

  /** The expression over the block's columns. @throws {DatabaseError} INVALID_QUERY */
  rewrite(expression: BoundExpression): BoundExpression {
    const grouped = this.#columns.find((group) => sameExpression(group.expression, expression));
    if (grouped !== undefined) {
      return { kind: "column", type: expression.type, column: grouped.column };
    }
    if (expression.kind !== "column") {
      return mapChildren(expression, (child) => this.rewrite(child));
    }
    if (this.#aggregateIds.has(expression.column.id)) return expression;
    if (this.#isDetermined(expression.column)) {
      const column = this.#block.context.statement.newColumn(columnLike(expression));
      this.#columns.push({ column, expression });
      return { kind: "column", type: expression.type, column };
    }
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot select column "${expression.column.name}": it must be in GROUP BY or in an aggregate`,
      { position: this.#block.select._location.start },
    );
  }

  /** A table's whole primary key among the groups fixes all of its columns. */
  #isDetermined({ origin, id }: BoundColumn): boolean {
    if (origin === undefined) return false;
    const relation = this.#block.scope.relations.find(({ columns, systemColumns }) =>
      [...columns, ...systemColumns].some((column) => column.id === id),
    );
    if (relation === undefined) return false;
    return origin.table.primaryKey.every((keyId) => {
      const key = relation.columns.find((column) => column.origin?.columnId === keyId);
      return this.#columns.some(
        ({ expression }) => expression.kind === "column" && expression.column.id === key?.id,
      );
    });
  }

  #checkGroup(expression: BoundExpression): void {
    if (expression.kind === "column" && this.#aggregateIds.has(expression.column.id)) {
      throw new DatabaseError("INVALID_QUERY", "Cannot use an aggregate in GROUP BY", {
        position: this.#block.select._location.start,
      });
    }
    mapChildren(expression, (child) => {
      this.#checkGroup(child);
      return child;
    });
  }
}

function columnLike(expression: BoundExpression): Omit<BoundColumn, "id"> {
  if (expression.kind !== "column") return { name: "", type: expression.type };
  const { name, origin, type } = expression.column;
  return origin === undefined ? { name, type } : { name, type, origin };
}

function checkDistinct(bound: BoundSelect, { _location }: SelectFromStatement): void {
  const position = _location.start;
  if (bound.distinct === "all") {
    for (const { expression } of bound.orderBy) {
      if (bound.outputs.some((output) => sameExpression(output.expression, expression))) continue;
      throw new DatabaseError(
        "INVALID_QUERY",
        "Cannot order by an expression that SELECT DISTINCT does not select",
        { position },
      );
    }
  }
  if (typeof bound.distinct !== "object") return;
  const { on } = bound.distinct;
  const leading = bound.orderBy.slice(0, on.length);
  for (const { expression } of leading) {
    if (on.some((other) => sameExpression(other, expression))) continue;
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot use DISTINCT ON: its expressions must be the first ones of ORDER BY",
      { position },
    );
  }
}
