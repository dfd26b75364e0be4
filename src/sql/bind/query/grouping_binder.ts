/**
 * Binds GROUP BY: grouping expressions, grouping sets, GROUPING(…), and the columns that a
 * grouping block may read.
 *
 * ROLLUP, CUBE and GROUPING SETS are expanded into a list of sets of grouping expressions. An
 * expression that is not in a row's set is NULL in that row, so all later clauses read the same
 * columns, whichever set a row belongs to.
 */

import { DatabaseError } from "../../../base/errors.ts";
import { declaredKeyOf } from "../../../catalog/mod.ts";
import { INT } from "../../../types/mod.ts";
import { isAggregate } from "../../functions/aggregate/aggregates.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import type { Expr, ExprRef, GroupItem, SelectFromStatement } from "../../parse/ast/ast.ts";
import { directPartsOf, partsOf } from "../../parse/ast/tree_parts.ts";
import { expressionToSql } from "../../parse/print/print_queries.ts";
import type { AggregateSink, ExpansionSink, ExpressionContext, WindowSink } from "../binding.ts";
import type { BoundExpansion, BoundOutput, GroupingSets } from "../bound.ts";
import type { BoundAggregate, BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { ExpressionPlaces } from "../equivalence.ts";
import { bindValue } from "../expression/expression_binder.ts";
import type { Scope } from "../scope.ts";
import { mapChildren } from "../walk.ts";
import { GROUPING } from "./aggregate_binder.ts";
import { directArgumentOf } from "./hypothetical_sets.ts";
import { outputByOrdinal } from "./ordering.ts";
import type { QueriesAround, SelectDeps } from "./select_deps.ts";

/** A SELECT block that is being bound. */
export interface Block {
  readonly select: SelectFromStatement;
  readonly deps: SelectDeps;
  readonly scope: Scope;
  readonly sink: AggregateSink;
  readonly windows: WindowSink;
  readonly expansions: ExpansionSink;
  /** The functions that bind inner queries, created once for all clauses of the query block. */
  readonly queries: QueriesAround;
}

/** The constructs that a clause may contain besides ordinary expressions. */
type Allowed = Pick<ExpressionContext, "windows" | "expansions">;

/** Returns the context for the expressions of one of the clauses of a query block. */
export function placeOf(
  { deps, queries, scope }: Block,
  clause: string,
  { expansions, sink, windows }: Allowed & { readonly sink?: AggregateSink | undefined } = {},
): ExpressionContext {
  const { bindInner, outer, routinesNamed, rowTypeNamed } = queries;
  const { statement } = deps;
  return {
    statement,
    scope,
    clause,
    sink,
    windows,
    expansions,
    bindInner,
    routinesNamed,
    rowTypeNamed,
    outer,
  };
}

/** The maximum number of grouping sets, as in PostgreSQL. */
const SETS_MAX = 4096;

/**
 * The maximum total number of expressions in all sets. An expression counts once per set that
 * contains it: a ROLLUP of n expressions has n + 1 sets, with an average of n / 2 expressions
 * each.
 */
const SET_MEMBERS_MAX = 65_536;

export interface BoundGroups {
  readonly expressions: readonly BoundExpression[];
  /** The position of each grouping expression in the SQL. */
  readonly starts: readonly number[];
  /**
   * The indexes of the expressions in each grouping set; undefined for plain GROUP BY, where all
   * expressions form a single set.
   */
  readonly sets: readonly (readonly number[])[] | undefined;
}

export const NO_GROUPS: BoundGroups = { expressions: [], starts: [], sets: undefined };

/**
 * Binds GROUP BY in small steps. Without items, the result contains no expressions.
 * @throws {DatabaseError}
 */
export function* bindGroups(
  items: readonly GroupItem[],
  outputs: readonly BoundOutput[],
  block: Block,
): Generator<void, BoundGroups> {
  const { statement } = block.deps;
  if (items.length === 0) return NO_GROUPS;
  const expressions: BoundExpression[] = [];
  const starts: number[] = [];
  const plain = items.filter((item) => !("groups" in item) && !isEmpty(item)) as Expr[];
  const isPlain = plain.length === items.length;
  const keys = isPlain ? undefined : new OutputKeys(outputs);
  const places = new ExpressionPlaces();
  const positionOf = (node: Expr): number => {
    const bound = bindGroup(node, outputs, block);
    const output = keys?.outputOf(bound);
    const known = output === undefined ? places.find(bound) : expressions.indexOf(output);
    if (known !== undefined && known >= 0) return known;
    requireOrder(bound.type, "GROUP BY", node._location.start);
    expressions.push(output ?? bound);
    starts.push(node._location.start);
    return places.add(output ?? bound);
  };
  if (isPlain) {
    yield* statement.each(plain.flatMap(membersOf), positionOf);
    return { expressions, starts, sets: undefined };
  }
  let sets: readonly (readonly Expr[])[] = [[]];
  for (const item of items) {
    const further = setsOf(item);
    checkCount(sets.length * further.length, item);
    const both = membersIn(sets) * further.length + membersIn(further) * sets.length;
    checkMembers(both, item);
    sets = sets.flatMap((set) => further.map((more) => set.concat(more)));
  }
  // A syntax node may occur in many grouping sets but is bound only once.
  const positions = new Map<Expr, number>();
  const numberOf = (node: Expr): number => {
    const number = positions.get(node) ?? positionOf(node);
    positions.set(node, number);
    return number;
  };
  const numbered = yield* statement.each(sets, (set) => Array.from(new Set(set.map(numberOf))));
  return {
    expressions,
    starts,
    sets: block.select.groupDistinct === true ? distinctSets(numbered) : numbered,
  };
}

/**
 * Finds the output to which a grouping expression refers. With grouping sets, two outputs with the
 * same expression are separate keys, as in PostgreSQL, because a set may contain only one of them.
 */
class OutputKeys {
  readonly #own: ReadonlySet<BoundExpression>;
  readonly #places: ExpressionPlaces;
  readonly #expressions: readonly BoundExpression[];

  constructor(outputs: readonly BoundOutput[]) {
    this.#expressions = outputs.map(({ expression }) => expression);
    this.#own = new Set(this.#expressions);
    this.#places = new ExpressionPlaces(this.#expressions);
  }

  /**
   * Returns the output to which a grouping expression refers: the output that it identifies by
   * name or position or, failing that, the first equal output.
   */
  outputOf(expression: BoundExpression): BoundExpression | undefined {
    if (this.#own.has(expression)) return expression;
    const place = this.#places.find(expression);
    return place === undefined ? undefined : this.#expressions[place];
  }
}

/** Removes each grouping set that has the same expressions as an earlier set, in any order. */
function distinctSets(sets: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const firsts = new Map<string, readonly number[]>();
  for (const set of sets) {
    const key = set.toSorted((left, right) => left - right).join();
    if (!firsts.has(key)) firsts.set(key, set);
  }
  return [...firsts.values()];
}

/** Returns the grouping sets that an item of GROUP BY denotes. */
function setsOf(item: GroupItem): readonly (readonly Expr[])[] {
  if (!("groups" in item)) return [membersOf(item)];
  if (item.type === "grouping sets") return item.groups.flatMap(setsOf);
  const parts = item.groups.map((part) => {
    if (!("groups" in part)) return membersOf(part);
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use ${part.type.toUpperCase()} inside ${item.type.toUpperCase()}: only ` +
        "expressions are allowed there",
      { position: part._location.start },
    );
  });
  const members = parts.map((part) => part.length);
  if (item.type === "rollup") {
    checkCount(parts.length + 1, item);
    checkMembers(sum(members.map((count, i) => count * (parts.length - i))), item);
    return [...parts.keys(), parts.length].map((_, i) => parts.slice(0, parts.length - i).flat());
  }
  checkCount(2 ** parts.length, item);
  checkMembers((2 ** parts.length / 2) * sum(members), item);
  const all = 2 ** parts.length - 1;
  return Array.from({ length: all + 1 }, (_, i) =>
    // The highest bit represents the first expression, so that the set with all expressions comes
    // first.
    parts.filter((__, part) => ((all - i) >> (parts.length - 1 - part)) & 1).flat(),
  );
}

function checkCount(count: number, { _location }: GroupItem): void {
  if (count <= SETS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot group by ${count} grouping sets: the maximum is ${SETS_MAX}`,
    {
      position: _location.start,
      hint: "use fewer columns in CUBE and ROLLUP, or list only the grouping sets that you need",
    },
  );
}

function checkMembers(count: number, { _location }: GroupItem): void {
  if (count <= SET_MEMBERS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot use grouping sets: they contain ${count} expressions in total, but the maximum is ${SET_MEMBERS_MAX}`,
    { position: _location.start, hint: "use fewer grouping sets, or fewer expressions in each" },
  );
}

function membersIn(sets: readonly (readonly Expr[])[]): number {
  return sum(sets.map((set) => set.length));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Returns the expressions in a GROUP BY item: `(a, b)` contains two. */
function membersOf(item: Expr): readonly Expr[] {
  return item.type === "list" ? item.expressions : [item];
}

function isEmpty(item: GroupItem): boolean {
  return item.type === "list" && item.expressions.length === 0;
}

function bindGroup(item: Expr, outputs: readonly BoundOutput[], block: Block): BoundExpression {
  const byOrdinal = outputByOrdinal(item, outputs, "GROUP BY");
  if (byOrdinal !== undefined) return byOrdinal;
  if (item.type === "ref" && item.table === undefined && block.scope.find(item) === undefined) {
    const output = outputs.find(({ name }) => name === item.name);
    if (output !== undefined) return output.expression;
  }
  return bindValue(item, placeOf(block, "GROUP BY", { expansions: block.expansions }));
}

/**
 * Checks and rewrites the expressions of a grouping block. They may read its grouping expressions,
 * its aggregates and its windows.
 */
export class GroupedBlock {
  readonly #columns: { column: BoundColumn; expression: BoundExpression }[];
  /** Finds equal expressions among the grouping expressions. */
  readonly #places: ExpressionPlaces;
  /**
   * The indexes of the grouping expressions that are themselves outputs of the query. Two such
   * outputs may be equal.
   */
  readonly #placeOfOutput: ReadonlyMap<BoundExpression, number>;
  readonly #sets: readonly number[][] | undefined;
  readonly #setColumn: BoundColumn;
  /** The ids of the columns that the query block computes from its groups or in later steps. */
  readonly #ownIds: ReadonlySet<number>;
  readonly #block: Block;

  constructor(
    block: Block,
    { expressions, sets, starts }: BoundGroups,
    expansions: readonly BoundExpansion[],
  ) {
    const { statement } = block.deps;
    this.#block = block;
    const own = [...block.sink.aggregates, ...block.windows.calls];
    const later = expansions.flatMap(({ columns, stage }) => (stage === "grouping" ? [] : columns));
    this.#ownIds = new Set([...own.map(({ column }) => column), ...later].map(({ id }) => id));
    this.#columns = expressions.map((expression) => ({
      expression,
      column: statement.newColumn(columnLike(expression)),
    }));
    this.#places = new ExpressionPlaces(expressions);
    this.#placeOfOutput = new Map(expressions.map((expression, place) => [expression, place]));
    this.#sets = sets?.map((set) => Array.from(set));
    this.#setColumn = statement.newColumn({ name: "", type: INT });
    for (const [i, expression] of expressions.entries()) {
      this.#checkGroup(expression, starts[i] ?? block.select._location.start);
    }
  }

  get groupBy(): readonly { column: BoundColumn; expression: BoundExpression }[] {
    return this.#columns;
  }

  get sets(): GroupingSets | undefined {
    return this.#sets === undefined ? undefined : { sets: this.#sets, column: this.#setColumn };
  }

  /**
   * Rewrites an expression to read the columns of the grouping block.
   * @throws {DatabaseError} INVALID_QUERY
   */
  rewrite(expression: BoundExpression): BoundExpression {
    if (expression.kind === "call" && expression.name === GROUPING) {
      return this.#groupingOf(expression.args);
    }
    const place = this.#placeOfOutput.get(expression) ?? this.#places.find(expression);
    const grouped = place === undefined ? undefined : this.#columns[place];
    if (grouped !== undefined) {
      return { kind: "column", type: expression.type, column: grouped.column };
    }
    if (expression.kind !== "column") {
      return mapChildren(expression, (child) => this.rewrite(child));
    }
    if (this.#ownIds.has(expression.column.id)) return expression;
    if (this.#isDetermined(expression.column)) {
      const column = this.#block.deps.statement.newColumn(columnLike(expression));
      for (const set of this.#sets ?? []) set.push(this.#columns.length);
      this.#columns.push({ column, expression });
      this.#places.add(expression);
      return { kind: "column", type: expression.type, column };
    }
    const { name } = expression.column;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot select column "${name}": it is neither in GROUP BY nor inside an aggregate function`,
      {
        position: startOfRead(this.#block.select, expression.column, this.#block.scope),
        hint: `add "${name}" to GROUP BY, or use min("${name}")`,
      },
    );
  }

  /**
   * Returns the aggregate calls of the block. Their direct arguments, such as the fraction of a
   * percentile, may read only grouping expressions. With grouping sets, they read the keys of the
   * group, some of which may be NULL.
   *
   * @throws {DatabaseError} INVALID_QUERY if a direct argument reads rows.
   */
  aggregates(): readonly BoundAggregate[] {
    return this.#block.sink.aggregates.map((aggregate): BoundAggregate => {
      const { argument, extra, filter, form } = aggregate;
      if (form.isOrderedSet === true) {
        const last = extra.at(-1);
        if (argument === undefined || last === undefined) return aggregate;
        const further = extra.slice(0, -1).map((each) => this.#ofGroup(each));
        return { ...aggregate, argument: this.#ofGroup(argument), extra: [...further, last] };
      }
      return {
        ...aggregate,
        argument: argument === undefined ? undefined : this.#withDirectArguments(argument),
        filter: filter === undefined ? undefined : this.#withDirectArguments(filter),
      };
    });
  }

  #withDirectArguments(expression: BoundExpression): BoundExpression {
    const direct = directArgumentOf(expression);
    if (direct !== undefined) return this.#ofGroup(direct);
    return mapChildren(expression, (child) => this.#withDirectArguments(child));
  }

  /**
   * Returns the expression for a direct argument of an aggregate. Without grouping sets, the
   * argument has the same value in every row of a group, so it can be computed from any row.
   */
  #ofGroup(expression: BoundExpression): BoundExpression {
    const rewritten = this.rewrite(expression);
    return this.#sets === undefined ? expression : rewritten;
  }

  /**
   * Returns an expression for a bit mask with one bit per argument of GROUPING; the lowest bit
   * represents the last argument. A bit is 1 if the argument is not in the row's grouping set.
   */
  #groupingOf(args: readonly BoundExpression[]): BoundExpression {
    const positions = args.map((argument) => {
      const position = this.#places.find(argument);
      if (position !== undefined) return position;
      const { sink, select } = this.#block;
      const call = sink.groupings.find((each) => each.args === args) ?? select._location;
      throw misuse(
        "Cannot call GROUPING with this argument: it is not a GROUP BY expression",
        call.start,
        "add the argument to GROUP BY",
      );
    });
    const masks = (this.#sets ?? []).map((set) =>
      positions.reduce((mask, position) => 2 * mask + (set.includes(position) ? 0 : 1), 0),
    );
    const column = this.#setColumn;
    if (masks.length === 0) return { kind: "constant", type: INT, value: 0 };
    return {
      kind: "call",
      type: INT,
      // The name of the call contains the bit masks, so that only calls with the same masks count
      // as equal.
      name: `grouping ${masks.join(",")}`,
      args: [{ kind: "column", type: INT, column }],
      evaluate: ([set = null]) => masks[Number(set)] ?? null,
      seesNull: false,
      volatility: "immutable",
    };
  }

  /**
   * Whether the grouping determines a column. If every grouping set contains a table's whole
   * primary key, the key determines all of the table's columns.
   */
  #isDetermined({ origin, id }: BoundColumn): boolean {
    if (origin === undefined) return false;
    const relation = this.#block.scope.relations.find(({ columns, systemColumns }) =>
      [...columns, ...systemColumns].some((column) => column.id === id),
    );
    if (relation === undefined) return false;
    const key = declaredKeyOf(origin.table);
    if (key === undefined) return false;
    return key.columnIds.every((keyId) => {
      const part = relation.columns.find((column) => column.origin?.columnId === keyId);
      const position = this.#columns.findIndex(
        ({ expression }) => expression.kind === "column" && expression.column.id === part?.id,
      );
      if (position === -1) return false;
      return this.#sets === undefined || this.#sets.every((set) => set.includes(position));
    });
  }

  #checkGroup(expression: BoundExpression, position: number): void {
    if (expression.kind === "column" && this.#ownIds.has(expression.column.id)) {
      throw misuse(
        "Cannot use an aggregate or a window function in GROUP BY",
        position,
        "compute the value in a subquery in FROM, and group by the subquery's column",
      );
    }
    if (expression.kind === "call" && expression.name === GROUPING) {
      throw misuse(
        "Cannot use GROUPING in GROUP BY",
        position,
        "call GROUPING in the select list, HAVING or ORDER BY",
      );
    }
    mapChildren(expression, (child) => {
      this.#checkGroup(child, position);
      return child;
    });
  }
}

function misuse(message: string, position: number, hint: string): DatabaseError {
  return new DatabaseError("INVALID_QUERY", message, { position, hint });
}

function columnLike(expression: BoundExpression): Omit<BoundColumn, "id"> {
  if (expression.kind !== "column") return { name: "", type: expression.type };
  const { name, origin, type } = expression.column;
  return origin === undefined ? { name, type } : { name, type, origin };
}

/**
 * Returns the position for the error about a column that a grouping block may not read: its first
 * mention outside aggregates and grouping expressions or, failing that, its first mention
 * anywhere. A bound expression has no position, so the clauses have to be searched. This happens
 * only after a failure.
 */
function startOfRead(select: SelectFromStatement, column: BoundColumn, scope: Scope): number {
  const { _location, columns, having, orderBy, windows } = select;
  const alias = scope.relations.find((relation) =>
    [...relation.columns, ...relation.systemColumns].some(({ id }) => id === column.id),
  )?.alias;
  const isOf = ({ name, star, table }: ExprRef): boolean =>
    (star === true || name === column.name) && (table === undefined || table.name === alias);
  const grouped = (select.groupBy ?? [])
    .flatMap(expressionsIn)
    .map((node) => outputOf(node, select));
  const types = new Set(grouped.map(({ type }) => type));
  const texts = new Set(grouped.map(expressionToSql));
  const isSkipped = (node: Expr): boolean =>
    isAggregateCall(node) || (types.has(node.type) && texts.has(expressionToSql(node)));
  const clauses = [columns, having, orderBy, windows];
  return (
    startIn(clauses, { isOf, isSkipped }) ??
    startIn(clauses, { isOf, isSkipped: () => false }) ??
    _location.start
  );
}

interface ReferenceSearch {
  readonly isOf: (ref: ExprRef) => boolean;
  readonly isSkipped: (node: Expr) => boolean;
}

function startIn(
  clauses: readonly unknown[],
  { isOf, isSkipped }: ReferenceSearch,
): number | undefined {
  const insideOf = (part: object): readonly unknown[] =>
    isSkipped(part as Expr) ? [] : readPartsOf(part as Expr);
  for (const part of partsOf(clauses, insideOf)) {
    const node = part as Expr;
    if (node.type === "ref" && isOf(node)) return node._location.start;
  }
  return undefined;
}

/**
 * Returns the parts of a syntax node that may read columns. The star in `count(*)` does not
 * represent a column.
 */
function readPartsOf(node: Expr): readonly unknown[] {
  const isOverRows =
    node.type === "call" && node.args.some((arg) => arg.type === "ref" && arg.star === true);
  return isOverRows ? [node.filter, node.over] : directPartsOf(node);
}

function isAggregateCall(node: Expr): boolean {
  return node.type === "call" && node.over === undefined && isAggregate(node.function.name);
}

/** Returns the grouping expressions in an item of GROUP BY. */
function expressionsIn(item: GroupItem): readonly Expr[] {
  if ("groups" in item) return item.groups.flatMap(expressionsIn);
  return item.type === "list" ? item.expressions.flatMap(expressionsIn) : [item];
}

/**
 * Returns the output to which a position in GROUP BY refers; any other expression is returned
 * unchanged.
 */
function outputOf(node: Expr, { columns = [] }: SelectFromStatement): Expr {
  return node.type === "integer" ? (columns[node.value - 1]?.expr ?? node) : node;
}
