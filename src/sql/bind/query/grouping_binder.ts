/**
 * GROUP BY: grouping expressions, grouping sets, GROUPING(…), and what a grouping block may read.
 *
 * ROLLUP, CUBE and GROUPING SETS are written out as a list of sets of grouping expressions. An
 * expression that is not in the set of a row is NULL there, so all later clauses read the same
 * columns whatever the set.
 */

import { DatabaseError } from "../../../base/errors.ts";
import { INT } from "../../../types/mod.ts";
import type { Expr, GroupItem, SelectFromStatement } from "../../parse/ast/ast.ts";
import { ExpressionPlaces } from "../alike.ts";
import type { AggregateSink, ExpansionSink, Place, WindowSink } from "../binding.ts";
import type { BoundExpansion, BoundOutput, GroupingSets } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindValue } from "../expression/expression_binder.ts";
import { startOfRead } from "../expression/read_position.ts";
import type { Scope } from "../scope.ts";
import { mapChildren } from "../walk.ts";
import { GROUPING } from "./aggregate_binder.ts";
import { outputByOrdinal } from "./ordering.ts";
import type { queriesAround, SelectWorld } from "./select_world.ts";

/** A SELECT block while it is bound. */
export interface Block {
  readonly select: SelectFromStatement;
  readonly world: SelectWorld;
  readonly scope: Scope;
  readonly sink: AggregateSink;
  readonly windows: WindowSink;
  readonly expansions: ExpansionSink;
  /** Of the world, made once for all places of the block. */
  readonly queries: ReturnType<typeof queriesAround>;
}

/** What an expression of a clause may hold besides. */
type Allowed = Pick<Place, "windows" | "expansions">;

/** Where an expression of a clause of the block stands. */
export function placeOf(
  { world, queries, scope }: Block,
  clause: string,
  { expansions, sink, windows }: Allowed & { readonly sink?: AggregateSink | undefined } = {},
): Place {
  const { bindInner, outer } = queries;
  const { statement } = world;
  return { statement, scope, clause, sink, windows, expansions, bindInner, outer };
}

/** As many as PostgreSQL writes out. */
const SETS_MAX = 4096;

/**
 * Expressions in all sets together, each counted in every set that holds it: a ROLLUP of n
 * expressions has n sets with n / 2 of them on average.
 */
const SET_MEMBERS_MAX = 65_536;

export interface BoundGroups {
  readonly expressions: readonly BoundExpression[];
  /** Where each of them stands in the text. */
  readonly starts: readonly number[];
  /** Positions of the expressions; undefined: all in one set, which GROUP BY without words is. */
  readonly sets: readonly (readonly number[])[] | undefined;
}

export const NO_GROUPS: BoundGroups = { expressions: [], starts: [], sets: undefined };

/** Binds GROUP BY in small steps; no items stand for none. @throws {DatabaseError} */
export function* bindGroups(
  items: readonly GroupItem[],
  outputs: readonly BoundOutput[],
  block: Block,
): Generator<void, BoundGroups> {
  const { statement } = block.world;
  if (items.length === 0) return NO_GROUPS;
  const expressions: BoundExpression[] = [];
  const starts: number[] = [];
  const places = new ExpressionPlaces();
  const positionOf = (node: Expr): number => {
    const bound = bindGroup(node, outputs, block);
    const known = places.find(bound);
    if (known !== undefined) return known;
    expressions.push(bound);
    starts.push(node._location.start);
    return places.add(bound);
  };
  const plain = items.filter((item) => !("groups" in item) && !isEmpty(item)) as Expr[];
  if (plain.length === items.length) {
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
  // One node may stand in many sets, and is bound once.
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

/** The first of those that hold the same expressions, in whatever order. */
function distinctSets(sets: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const firsts = new Map<string, readonly number[]>();
  for (const set of sets) {
    const key = set.toSorted((left, right) => left - right).join();
    if (!firsts.has(key)) firsts.set(key, set);
  }
  return [...firsts.values()];
}

/** The sets that an item of GROUP BY stands for. */
function setsOf(item: GroupItem): readonly (readonly Expr[])[] {
  if (!("groups" in item)) return [membersOf(item)];
  if (item.type === "grouping sets") return item.groups.flatMap(setsOf);
  const parts = item.groups.map((part) => {
    if (!("groups" in part)) return membersOf(part);
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use ${part.type.toUpperCase()} in ${item.type.toUpperCase()}: it takes expressions`,
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
    // The first part is the highest bit, and all of them come first.
    parts.filter((__, part) => ((all - i) >> (parts.length - 1 - part)) & 1).flat(),
  );
}

function checkCount(count: number, { _location }: GroupItem): void {
  if (count <= SETS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot group by ${count} grouping sets: the most is ${SETS_MAX}`,
    { position: _location.start },
  );
}

function checkMembers(count: number, { _location }: GroupItem): void {
  if (count <= SET_MEMBERS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot group by grouping sets of ${count} expressions in total: the most is ${SET_MEMBERS_MAX}`,
    { position: _location.start, hint: "group by fewer sets, or by fewer expressions in each" },
  );
}

function membersIn(sets: readonly (readonly Expr[])[]): number {
  return sum(sets.map((set) => set.length));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** `(a, b)` in GROUP BY are two expressions. */
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

/** What a grouping block may read: its grouping expressions, its aggregates, its windows. */
export class GroupedBlock {
  readonly #columns: { column: BoundColumn; expression: BoundExpression }[];
  /** Where an expression is among them. */
  readonly #places: ExpressionPlaces;
  readonly #sets: readonly number[][] | undefined;
  readonly #setColumn: BoundColumn;
  /** Columns that are computed from the groups or above them. */
  readonly #ownIds: ReadonlySet<number>;
  readonly #block: Block;

  constructor(
    block: Block,
    { expressions, sets, starts }: BoundGroups,
    expansions: readonly BoundExpansion[],
  ) {
    const { statement } = block.world;
    this.#block = block;
    const own = [...block.sink.aggregates, ...block.windows.calls];
    const later = expansions.flatMap(({ columns, stage }) => (stage === "grouping" ? [] : columns));
    this.#ownIds = new Set([...own.map(({ column }) => column), ...later].map(({ id }) => id));
    this.#columns = expressions.map((expression) => ({
      expression,
      column: statement.newColumn(columnLike(expression)),
    }));
    this.#places = new ExpressionPlaces(expressions);
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

  /** The expression over the block's columns. @throws {DatabaseError} INVALID_QUERY */
  rewrite(expression: BoundExpression): BoundExpression {
    if (expression.kind === "call" && expression.name === GROUPING) {
      return this.#groupingOf(expression.args);
    }
    const place = this.#places.find(expression);
    const grouped = place === undefined ? undefined : this.#columns[place];
    if (grouped !== undefined) {
      return { kind: "column", type: expression.type, column: grouped.column };
    }
    if (expression.kind !== "column") {
      return mapChildren(expression, (child) => this.rewrite(child));
    }
    if (this.#ownIds.has(expression.column.id)) return expression;
    if (this.#isDetermined(expression.column)) {
      const column = this.#block.world.statement.newColumn(columnLike(expression));
      for (const set of this.#sets ?? []) set.push(this.#columns.length);
      this.#columns.push({ column, expression });
      this.#places.add(expression);
      return { kind: "column", type: expression.type, column };
    }
    const { name } = expression.column;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot select column "${name}": it must be in GROUP BY or in an aggregate`,
      { position: startOfRead(this.#block.select, expression.column, this.#block.scope) },
    );
  }

  /** The fraction of a percentile is one for the whole group. @throws {DatabaseError} */
  checkDirectArguments(): void {
    for (const { argument, extra, form } of this.#block.sink.aggregates) {
      if (form.isOrderedSet !== true || argument === undefined || extra.length === 0) continue;
      this.rewrite(argument);
    }
  }

  /** One bit for each argument, the last one lowest: 1 where it is not in the set of the row. */
  #groupingOf(args: readonly BoundExpression[]): BoundExpression {
    const positions = args.map((argument) => {
      const position = this.#places.find(argument);
      if (position !== undefined) return position;
      const { sink, select } = this.#block;
      const call = sink.groupings.find((each) => each.args === args) ?? select._location;
      throw misuse("Cannot call GROUPING with what is no expression of GROUP BY", call.start);
    });
    const masks = (this.#sets ?? []).map((set) =>
      positions.reduce((mask, position) => 2 * mask + (set.includes(position) ? 0 : 1), 0),
    );
    const column = this.#setColumn;
    if (masks.length === 0) return { kind: "constant", type: INT, value: 0 };
    return {
      kind: "call",
      type: INT,
      // Masks differ where arguments do, so that two such calls are the same only if they are.
      name: `grouping ${masks.join(",")}`,
      args: [{ kind: "column", type: INT, column }],
      evaluate: ([set = null]) => masks[Number(set)] ?? null,
      seesNull: false,
      volatility: "immutable",
    };
  }

  /** A table's whole primary key among the groups of every set fixes all of its columns. */
  #isDetermined({ origin, id }: BoundColumn): boolean {
    if (origin === undefined) return false;
    const relation = this.#block.scope.relations.find(({ columns, systemColumns }) =>
      [...columns, ...systemColumns].some((column) => column.id === id),
    );
    if (relation === undefined) return false;
    const { primaryKey } = origin.table;
    if (primaryKey.length === 0) return false;
    return primaryKey.every((keyId) => {
      const key = relation.columns.find((column) => column.origin?.columnId === keyId);
      const position = this.#columns.findIndex(
        ({ expression }) => expression.kind === "column" && expression.column.id === key?.id,
      );
      if (position === -1) return false;
      return this.#sets === undefined || this.#sets.every((set) => set.includes(position));
    });
  }

  #checkGroup(expression: BoundExpression, position: number): void {
    if (expression.kind === "column" && this.#ownIds.has(expression.column.id)) {
      throw misuse("Cannot use an aggregate or a window function in GROUP BY", position);
    }
    if (expression.kind === "call" && expression.name === GROUPING) {
      throw misuse("Cannot use GROUPING in GROUP BY", position);
    }
    mapChildren(expression, (child) => {
      this.#checkGroup(child, position);
      return child;
    });
  }
}

function misuse(message: string, position: number): DatabaseError {
  return new DatabaseError("INVALID_QUERY", message, { position });
}

function columnLike(expression: BoundExpression): Omit<BoundColumn, "id"> {
  if (expression.kind !== "column") return { name: "", type: expression.type };
  const { name, origin, type } = expression.column;
  return origin === undefined ? { name, type } : { name, type, origin };
}
