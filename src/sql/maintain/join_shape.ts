/**
 * Recognises the joins of a query that can be maintained, and divides them into stages.
 *
 *     core: inner joins          FROM a JOIN b ON …, c  WHERE conditions on a, b, c
 *                                EXISTS, IN of one row by the value of a subscriber
 *     parts, one after another   LEFT JOIN d ON …          a row without a match gets NULLs
 *                                EXISTS, IN, NOT EXISTS    a row is kept or dropped
 *                                LATERAL, (SELECT …)       a query is run for each row
 *     last conditions            WHERE conditions that read a column of a left join or of a query
 *     partition                  conditions `expression of the core = value of the subscriber`
 *
 * Derived tables and views without grouping, order or limit become part of the surrounding joins.
 * A join with a grouped query becomes a LATERAL join (`grouped_joins.ts`).
 *
 * Invariants: a source is one mention of a table, and its columns have ids that no other source
 * has. The core's sources come first, followed by the sources of the parts, in the order of the
 * parts.
 */
import { defined } from "../../base/assert.ts";
import { readIndexesOf, type TableEntry } from "../../catalog/mod.ts";
import { DELETED_COLUMN_ID } from "../../storage/mod.ts";
import { BOOLEAN, sameType, type Value } from "../../types/mod.ts";
import type { BoundFrom, BoundJoin, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type {
  BoundColumn,
  BoundExpression,
  ExpressionOf,
  OuterReference,
  RowFunction,
} from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { expressionsIn, isPlainSelect, readsOuter, relationsIn } from "../bind/query/query_walk.ts";
import {
  childrenOf,
  columnIdsIn,
  conjunctsOf,
  hasSubquery,
  mapChildren,
  readsColumn,
  withoutIdleCast,
} from "../bind/walk.ts";
import { isReadable } from "../plan/index_access.ts";
import { equalitySides } from "./equality_sides.ts";
import { isExactQuery } from "./exactness.ts";
import { groupsAsLateral } from "./grouped_joins.ts";
import { isKeyType } from "./key_types.ts";
import { NotMaintained } from "./not_maintained.ts";

/** A source of a join: one mention of a table in the query. */
export interface Source {
  readonly table: TableEntry;
  readonly columns: readonly BoundColumn[];
  /** Whether the source is read only by existence tests such as EXISTS and IN. */
  readonly isTested?: true;
}

/** The sources of a part of a join, and the conditions that connect them with earlier sources. */
export interface PartSources {
  /** The indexes of the sources that this part joins. */
  readonly sources: readonly number[];
  readonly conditions: readonly BoundExpression[];
}

/** A join or an existence test that follows the inner joins of a query. */
export interface MatchPart extends PartSources {
  readonly kind: "left" | "semi" | "anti";
}

interface ComputedColumns extends PartSources {
  readonly query: BoundSelect;
  /** The columns that a part of the join adds to each row. */
  readonly columns: readonly BoundColumn[];
}

/** A LATERAL query in FROM, which reads columns of the preceding items. */
export interface LateralPart extends ComputedColumns {
  readonly kind: "lateral";
  /** Whether a row for which the LATERAL query returns nothing is kept, with NULLs. */
  readonly isOuter: boolean;
  readonly outer: readonly OuterReference[];
  /** The join condition that rows of the LATERAL query must satisfy. */
  readonly on: readonly BoundExpression[];
}

/** A subquery in an expression of the maintained query. */
export interface ValuePart extends ComputedColumns {
  readonly kind: "value";
  readonly value: BoundExpression;
}

/** A part of a join that runs a query for each row (`computed_parts.ts`). */
export type ComputedPart = LateralPart | ValuePart;

export type JoinPart = MatchPart | ComputedPart;

/**
 * A core condition that selects the rows of one subscriber, such as `o.user_id = $1`. Results
 * whose subscribers differ only in these values share the plan and the changes of the joins.
 */
export interface PartitionTerm {
  readonly value: BoundExpression;
  /** The value that depends on the subscriber: a parameter or CURRENT_USER. */
  readonly own: BoundExpression;
}

export interface JoinShape {
  readonly sources: readonly Source[];
  /** The number of sources in the core. They come before all other sources. */
  readonly coreCount: number;
  readonly coreConditions: readonly BoundExpression[];
  readonly parts: readonly JoinPart[];
  readonly lastConditions: readonly BoundExpression[];
  readonly partition: readonly PartitionTerm[];
  /**
   * Whether a query that is run for each row may return different results at the same seq, for
   * example because it takes the first of several rows that tie in its order.
   */
  readonly isInexact: boolean;
  /** The columns that are computed by running a query for each row. */
  readonly computed: readonly BoundColumn[];
  /** Rewrites an expression of the query to read columns of the sources. */
  resolve(expression: BoundExpression): BoundExpression;
}

/** Sources that are joined with each other. Used while FROM is analysed. */
interface SourceGroup {
  readonly sources: Source[];
  readonly conditions: BoundExpression[];
}

interface OpenPart extends SourceGroup {
  /** Creates the part of the join once the indexes of its sources are known. */
  readonly made: (place: PartSources) => JoinPart;
}

/**
 * Analyses the joins of a query.
 *
 * @param isOwn Whether an expression is a value of the subscriber. If this function is absent, no
 *   condition becomes a partition term.
 * @throws {NotMaintained}
 */
export function joinShapeOf(
  select: BoundSelect,
  isOwn?: (expression: BoundExpression) => boolean,
): JoinShape {
  const { aggregates, from, groupBy, isAggregated, outputs, where } = select;
  if (from === undefined) throw new NotMaintained("the query reads no table");
  const reader = new ShapeReader(isOwn ?? (() => false));
  reader.read(from, reader.core);
  for (const condition of conjunctsOf(where)) reader.addCondition(condition);
  for (const { expression } of groupBy) reader.addValues(expression);
  for (const { argument, filter } of aggregates) {
    for (const each of [argument, filter]) if (each !== undefined) reader.addValues(each);
  }
  if (!isAggregated) for (const { expression } of outputs) reader.addValues(expression);
  return reader.shape();
}

const NOT_DELETED: BoundExpression = { kind: "constant", type: BOOLEAN, value: false };

class ShapeReader {
  readonly #isOwn: (expression: BoundExpression) => boolean;
  readonly core: SourceGroup = { sources: [], conditions: [] };
  readonly #parts: OpenPart[] = [];
  /** The expressions that compute the columns of derived tables, keyed by column id. */
  readonly #values = new Map<number, BoundExpression>();
  /** The parts of FROM read so far. All references to a WITH entry share one part. */
  readonly #read = new Set<BoundFrom>();
  /** The columns that are computed by running a query for each row. */
  readonly #computed: BoundColumn[] = [];
  /** The computed column that replaces each subquery in an expression. */
  readonly #columnOf = new Map<BoundExpression, BoundColumn>();

  constructor(isOwn: (expression: BoundExpression) => boolean) {
    this.#isOwn = isOwn;
  }

  /** Reads a part of FROM into a group of sources. Left joins become parts. */
  read(from: BoundFrom, into: SourceGroup): void {
    if (from.kind === "relation") return this.#readRelation(from.relation, into);
    if (from.outerReferences !== undefined) return this.#readLateral(from, into);
    const lateral = into === this.core ? groupsAsLateral(from) : undefined;
    if (lateral !== undefined) return this.#readLateral(lateral, into);
    switch (from.join) {
      case "full":
        throw new NotMaintained("the query has a full join");
      case "left":
        return this.#readLeft(from, into);
      case "inner":
      case "cross":
        this.read(from.left, into);
        this.read(from.right, into);
        this.#addConditions(from.condition, into, "a condition of a join");
    }
  }

  #addConditions(condition: BoundExpression | undefined, into: SourceGroup, what: string): void {
    for (const each of conjunctsOf(condition)) {
      if (into === this.core) this.addCondition(each);
      else into.conditions.push(this.#plain(each, what));
    }
  }

  #readLeft(
    { condition, left, right }: Extract<BoundFrom, { kind: "join" }>,
    into: SourceGroup,
  ): void {
    if (into !== this.core)
      throw new NotMaintained("the query has a left join inside another left join");
    this.read(left, into);
    const part = newPart((place) => ({ kind: "left", ...place }));
    const known = new Set(this.#values.keys());
    this.read(right, part);
    for (const [id, value] of this.#values) {
      // In a left join, a row without a match must have NULL in every column of the right side,
      // but an expression might yield another value.
      if (!known.has(id) && value.kind !== "column") {
        throw new NotMaintained("the query has a left join with a computed column");
      }
    }
    for (const each of conjunctsOf(condition)) {
      part.conditions.push(this.#plain(each, "a condition of a join"));
    }
    this.#parts.push(part);
  }

  #readLateral(
    { condition, join, left, outerReferences = [], right }: BoundJoin,
    into: SourceGroup,
  ): void {
    const relation = right.kind === "relation" ? right.relation : undefined;
    if (into !== this.core || relation?.kind !== "query") {
      throw new NotMaintained("the query has LATERAL with a join or a function");
    }
    this.read(left, into);
    const { columns, query } = relation;
    const outer = outerReferences.map(({ id, value }): OuterReference => {
      return { id, value: this.#plain(value, "a value that LATERAL reads") };
    });
    const on = conjunctsOf(condition).map((each) => this.#plain(each, "a condition of a join"));
    const isOuter = join === "left";
    this.#addComputed(query, outer, columns, (place) => {
      return { kind: "lateral", ...place, isOuter, columns, query, outer, on };
    });
  }

  /**
   * Adds a query that is run for each row. Changes to the sources of the query are traced back to
   * these rows.
   */
  #addComputed(
    query: BoundSelect,
    outer: readonly OuterReference[],
    columns: readonly BoundColumn[],
    made: (place: PartSources) => ComputedPart,
  ): void {
    const isNested = relationsIn(query).some(({ kind }) => kind === "cte");
    if (query.from === undefined || isNested || expressionsIn(query).some(hasSubquery)) {
      throw new NotMaintained("the query has a subquery inside another subquery");
    }
    this.#noteRead(query.from);
    const part = newPart(made);
    const values = new Map(outer.map(({ id, value }) => [id, value]));
    this.read(query.from, part);
    for (const each of conjunctsOf(query.where)) {
      part.conditions.push(this.#plain(withValues(each, values), "a condition of a subquery"));
    }
    this.#computed.push(...columns);
    this.#parts.push(part);
  }

  /** Adds a part for each query that an expression contains. */
  addValues(expression: BoundExpression): void {
    if (expression.kind !== "subquery") {
      for (const child of childrenOf(expression)) this.addValues(child);
      return;
    }
    if (this.#columnOf.has(expression)) return;
    const { operands, outerReferences, subquery, type } = expression;
    if (subquery.outerIds.length === 0) {
      throw new NotMaintained("the query has a subquery that does not depend on the outer query");
    }
    const plain = (each: BoundExpression): BoundExpression =>
      this.#plain(each, "a value that a subquery reads");
    const outer = outerReferences.map(plain);
    const ids = subquery.outerIds;
    const references = ids.map((id, index): OuterReference => {
      return { id, value: defined(outer[index], "maintained join: outer reference has no value") };
    });
    // Evaluating the query once for all rows would take longer than running it for the few rows of
    // a change.
    const value: BoundExpression = {
      ...expression,
      operands: operands.map(plain),
      outerReferences: outer,
      subquery: { ...subquery, keyed: undefined },
    };
    const column = { id: -1 - this.#computed.length, name: "", type };
    this.#columnOf.set(expression, column);
    this.#addComputed(subquery.query, references, [column], (place) => {
      return { kind: "value", ...place, columns: [column], query: subquery.query, value };
    });
  }

  readonly #withColumns = (expression: BoundExpression): BoundExpression => {
    const column = this.#columnOf.get(expression);
    return column === undefined ? mapChildren(expression, this.#withColumns) : columnValue(column);
  };

  #readRelation(relation: BoundRelation, into: SourceGroup): void {
    switch (relation.kind) {
      case "table":
        if (relation.past !== undefined)
          throw new NotMaintained("the query reads an earlier state of a table");
        into.sources.push({ table: relation.table, columns: relation.columns });
        // The condition of a policy is added to the conditions on its table.
        this.#addConditions(relation.rule, into, "a policy");
        return;
      case "query":
        return this.#readQuery(relation.query, relation.columns, into);
      case "cte":
        return this.#readQuery(relation.cte.query, relation.columns, into);
      default:
        throw new NotMaintained(`the query reads ${NAMES[relation.kind]}`);
    }
  }

  #noteRead(from: BoundFrom): void {
    if (this.#read.has(from)) throw new NotMaintained("the query reads a WITH entry twice");
    this.#read.add(from);
  }

  #readQuery(query: BoundSelect, columns: readonly BoundColumn[], into: SourceGroup): void {
    if (!isPlainSelect(query) || query.from === undefined) {
      throw new NotMaintained("the query reads a subquery in FROM with grouping, order or a limit");
    }
    this.#noteRead(query.from);
    this.read(query.from, into);
    this.#addConditions(query.where, into, "a condition of a derived table");
    for (const [index, { id }] of columns.entries()) {
      const output = query.outputs[index];
      if (output !== undefined) {
        this.#values.set(id, this.#plain(output.expression, "a column of a derived table"));
      }
    }
  }

  /** Adds a condition that all rows of the query must satisfy. */
  addCondition(condition: BoundExpression): void {
    const existence = existenceIn(condition);
    if (existence === undefined) {
      this.addValues(condition);
      this.core.conditions.push(this.#plain(this.#withColumns(condition), "a condition"));
      return;
    }
    const { equalities, from, kind, outer, query } = existence;
    const part = newPart((place) => ({ kind, ...place }));
    this.read(from, part);
    for (const each of conjunctsOf(query.where)) {
      part.conditions.push(this.#plain(withValues(each, outer), "a condition of a subquery"));
    }
    for (const { left, right, ...equality } of equalities) {
      const sides = {
        left: this.#plain(left, "the left side of IN"),
        right: this.#plain(withValues(right, outer), "a column of a subquery"),
      };
      // NOT IN is never true if the inner query returns a NULL, so a single row would affect all
      // other rows.
      if (kind === "anti" && !(this.#isPresent(sides.left) && this.#isPresent(sides.right))) {
        throw new NotMaintained("the query has NOT IN with values that may be NULL");
      }
      part.conditions.push({ ...equality, ...sides });
    }
    const tested = part.sources.map((source) => ({ ...source, isTested: true as const }));
    part.sources.splice(0, Infinity, ...tested);
    if (kind === "semi" && this.#dividesRows(part)) {
      this.core.sources.push(...part.sources);
      this.core.conditions.push(...part.conditions);
    } else {
      this.#parts.push(part);
    }
  }

  /**
   * Whether an existence test assigns rows to subscribers, as a test of memberships does. It can
   * be treated as an inner join if each subscriber has at most one row that satisfies it.
   */
  #dividesRows({ conditions, sources }: SourceGroup): boolean {
    const [source, ...others] = sources;
    if (source === undefined || others.length > 0) return false;
    return (
      conditions.some((condition) => this.#termOf(condition) !== undefined) &&
      findsOneRow(source, conditions)
    );
  }

  #plain(expression: BoundExpression, what: string): BoundExpression {
    if (hasSubquery(expression)) throw new NotMaintained(`${what} has a subquery`);
    const resolved = this.#resolved(expression);
    if (readsOuter(resolved)) throw new NotMaintained(`${what} reads the outer query`);
    return resolved;
  }

  /** Whether an expression is a column that is never NULL. */
  #isPresent(expression: BoundExpression): boolean {
    if (expression.kind !== "column" || !isNeverNull(expression.column)) return false;
    return !this.#nullableIds().has(expression.column.id);
  }

  /**
   * Returns the columns of left joins, which are NULL in rows without a match, and the computed
   * columns.
   */
  #nullableIds(): ReadonlySet<number> {
    const sources = this.#parts.flatMap((part) => part.sources);
    const columns = [...sources.flatMap((source) => source.columns), ...this.#computed];
    return new Set(columns.map(({ id }) => id));
  }

  readonly #resolved = (expression: BoundExpression): BoundExpression => {
    if (expression.kind !== "column") return mapChildren(expression, this.#resolved);
    // A maintained query reads only rows that have not been deleted.
    if (expression.column.origin?.columnId === DELETED_COLUMN_ID) return NOT_DELETED;
    return this.#values.get(expression.column.id) ?? expression;
  };

  #termOf(condition: BoundExpression): PartitionTerm | undefined {
    if (condition.kind !== "compare" || !isKeyType(condition.left.type)) return undefined;
    for (const [value, own] of equalitySides(condition)) {
      const isTerm = this.#isOwn(own) && !readsColumn(own) && !this.#isOwn(value);
      if (isTerm && readsColumn(value)) return { value, own };
    }
    return undefined;
  }

  shape(): JoinShape {
    const { core } = this;
    const nullable = this.#nullableIds();
    const isLast = (condition: BoundExpression): boolean =>
      [...columnIdsIn(condition)].some((id) => nullable.has(id));
    let next = core.sources.length;
    const parts = this.#parts.map(({ conditions, made, sources }): JoinPart => {
      const first = next;
      next += sources.length;
      return made({ conditions, sources: sources.map((_, index) => first + index) });
    });
    const last = core.conditions.filter(isLast);
    const partition: PartitionTerm[] = [];
    const coreConditions: BoundExpression[] = [];
    for (const condition of core.conditions) {
      if (last.includes(condition)) continue;
      const term = this.#termOf(condition);
      if (term === undefined) coreConditions.push(condition);
      else partition.push(term);
    }
    return {
      sources: [core, ...this.#parts].flatMap(({ sources }) => sources),
      coreCount: core.sources.length,
      coreConditions,
      parts,
      lastConditions: last,
      partition,
      isInexact: this.#isInexact(parts, last),
      computed: this.#computed,
      resolve: (expression) => this.#plain(this.#withColumns(expression), "an expression"),
    };
  }

  /**
   * Whether any part of the join may return different results at the same seq.
   * @throws {NotMaintained} if a condition reads such a result
   */
  #isInexact(parts: readonly JoinPart[], last: readonly BoundExpression[]): boolean {
    const inexact = parts.filter((part) => "query" in part && !isExactQuery(part.query));
    const ids = new Set(
      inexact.flatMap((part) => ("query" in part ? part.columns : [])).map(({ id }) => id),
    );
    const conditions = parts.flatMap((part) => {
      return part.kind === "lateral" ? [...part.conditions, ...part.on] : part.conditions;
    });
    const reads = (condition: BoundExpression): boolean =>
      [...columnIdsIn(condition)].some((id) => ids.has(id));
    if ([...last, ...conditions].some(reads)) {
      throw new NotMaintained("a condition reads a subquery that may return several rows");
    }
    return inexact.length > 0;
  }
}

function newPart(made: OpenPart["made"]): OpenPart {
  return { sources: [], conditions: [], made };
}

const NAMES: Record<Exclude<BoundRelation["kind"], "cte" | "query" | "table">, string> = {
  system: "a system view",
  values: "VALUES",
  function: "a table function",
  recursive: "a recursive query",
  working: "a recursive query",
  changes: "changes()",
  set: "a set operation",
};

/** A condition that tests whether a subquery returns rows. */
interface SubqueryTest {
  readonly kind: "semi" | "anti";
  readonly query: BoundSelect;
  readonly from: BoundFrom;
  /**
   * The equalities of IN or NOT IN. Each compares an operand with the corresponding column of the
   * query.
   */
  readonly equalities: readonly ExpressionOf<"compare">[];
  /** The values of the surrounding row that the query reads, keyed by reference id. */
  readonly outer: ReadonlyMap<number, BoundExpression>;
}

/**
 * Interprets a condition as an existence test. Returns undefined for any other condition, and if
 * the tested query has grouping, ORDER BY or LIMIT.
 *
 * @throws {NotMaintained}
 */
function existenceIn(condition: BoundExpression): SubqueryTest | undefined {
  const isNegated = condition.kind === "not";
  const inner = isNegated ? condition.operand : condition;
  if (inner.kind !== "subquery") return undefined;
  const { outerReferences, subquery } = inner;
  const { form, outerIds, query } = subquery;
  const { from } = query;
  if (!isPlainSelect(query) || from === undefined) return undefined;
  const outer = new Map(
    outerIds.map((id, index) => [
      id,
      defined(outerReferences[index], "maintained join: outer reference has no value"),
    ]),
  );
  if (form.kind === "exists") {
    return { kind: isNegated ? "anti" : "semi", query, from, equalities: [], outer };
  }
  const isMember = form.kind === "any" && form.operator === "=";
  const isNoMember = form.kind === "all" && form.operator === "<>" && !isNegated;
  if (!isMember && !isNoMember) return undefined;
  const kind = isMember && !isNegated ? "semi" : "anti";
  return { kind, query, from, equalities: equalitiesOf(inner), outer };
}

function equalitiesOf({
  operands,
  subquery: { form, query },
}: ExpressionOf<"subquery">): ExpressionOf<"compare">[] {
  const evaluates = "evaluates" in form ? form.evaluates : [];
  return operands.map((left, index) => {
    const right = query.outputs[index]?.expression;
    const compare = evaluates[index];
    if (right === undefined || compare === undefined || !sameType(left.type, right.type)) {
      throw new NotMaintained("the query has IN with values of different types");
    }
    // For NOT IN, the bound comparison tests for inequality, so it is negated.
    const isOpposite = form.kind === "all";
    const evaluate: RowFunction = isOpposite
      ? (values, call) => negated(compare(values, call))
      : compare;
    return { kind: "compare", type: BOOLEAN, operator: "=", left, right, evaluate };
  });
}

function negated(truth: Value): Value {
  return truth === null ? null : truth !== true;
}

/** Whether the primary key or a unique index allows at most one row to satisfy the conditions. */
function findsOneRow({ columns, table }: Source, conditions: readonly BoundExpression[]): boolean {
  const own = new Set(columns.map(({ id }) => id));
  const isOwn = (expression: BoundExpression): boolean =>
    [...columnIdsIn(expression)].some((id) => own.has(id));
  const fixed = new Set<number>();
  for (const condition of conditions) {
    for (const [side, value] of equalitySides(condition)) {
      const column = withoutIdleCast(side);
      if (column.kind !== "column" || !isOwn(column) || isOwn(value)) continue;
      if (isKeyType(column.type)) fixed.add(column.column.origin?.columnId ?? 0);
    }
  }
  const unique = readIndexesOf(table).filter((index) => index.isUnique && isReadable(index));
  return [table.primaryKey, ...unique.map(({ columnIds }) => columnIds)].some(
    (key) => key.length > 0 && key.every((columnId) => fixed.has(columnId)),
  );
}

/** Whether a column is NOT NULL in its table. */
function isNeverNull({ origin }: BoundColumn): boolean {
  if (origin === undefined) return false;
  const { columnId, table } = origin;
  if (table.primaryKey.includes(columnId)) return true;
  return table.columns.find((column) => column.columnId === columnId)?.notNull === true;
}

/** Replaces the outer references of an inner query with values of the surrounding row. */
function withValues(
  expression: BoundExpression,
  values: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (expression.kind === "outer") return values.get(expression.id) ?? expression;
  return mapChildren(expression, (child) => withValues(child, values));
}
