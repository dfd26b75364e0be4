/**
 * Recognises the joins of a query that can be maintained.
 *
 *     core: inner joins          FROM a JOIN b ON …, c  WHERE conditions on a, b, c
 *     parts, one after another   LEFT JOIN d ON …          a row without a match gets NULLs
 *                                EXISTS, IN, NOT EXISTS    a row is kept or dropped
 *     last conditions            WHERE conditions that read a column of a left join
 *     partition                  conditions `expression of the core = value of the subscriber`
 *
 * Derived tables and views without grouping, order or limit become part of the joins around them.
 * Invariants: a source is one mention of a table, and its columns have ids that no other source
 * has. The sources of the core come first, followed by the sources of the parts, in the order of
 * the parts.
 */
import { defined } from "../../base/assert.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { BOOLEAN, sameType, type Value } from "../../types/mod.ts";
import type { BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type {
  BoundColumn,
  BoundExpression,
  ExpressionOf,
  RowFunction,
} from "../bind/bound_expressions.ts";
import { isPlainSelect, readsOuter } from "../bind/query/query_walk.ts";
import { columnIdsIn, conjunctsOf, hasSubquery, mapChildren, readsColumn } from "../bind/walk.ts";
import { isKeyType } from "./key_types.ts";
import { NotMaintained } from "./not_maintained.ts";

/** One mention of a table. */
export interface Source {
  readonly table: TableEntry;
  readonly columns: readonly BoundColumn[];
}

/** A join or an existence test that follows the inner joins of a query. */
export interface JoinPart {
  readonly kind: "left" | "semi" | "anti";
  /** The indexes of the sources that the part joins with each other. */
  readonly sources: readonly number[];
  readonly conditions: readonly BoundExpression[];
}

/**
 * A condition of the core that picks the rows of one subscriber, such as `o.user_id = $1`. Results
 * that differ only in these values follow the same changes.
 */
export interface PartitionTerm {
  readonly value: BoundExpression;
  /** The value of the subscriber: a parameter or CURRENT_USER. */
  readonly own: BoundExpression;
}

export interface JoinShape {
  readonly sources: readonly Source[];
  /** The number of sources that belong to the core. These come first. */
  readonly coreCount: number;
  readonly coreConditions: readonly BoundExpression[];
  readonly parts: readonly JoinPart[];
  readonly lastConditions: readonly BoundExpression[];
  readonly partition: readonly PartitionTerm[];
  /** Returns an expression of the query over columns of the sources. */
  resolve(expression: BoundExpression): BoundExpression;
}

/** A group of sources that are joined with each other, as it is collected. */
interface SourceGroup {
  readonly sources: Source[];
  readonly conditions: BoundExpression[];
}

interface OpenPart extends SourceGroup {
  readonly kind: JoinPart["kind"];
}

/**
 * Reads the joins of a query.
 *
 * @param isOwn Whether an expression has a value of the subscriber. If absent, no condition becomes
 * a term of a partition.
 * @throws {NotMaintained}
 */
export function joinShapeOf(
  { from, where }: BoundSelect,
  isOwn?: (expression: BoundExpression) => boolean,
): JoinShape {
  if (from === undefined) throw new NotMaintained("it reads no table");
  const reader = new ShapeReader(isOwn ?? (() => false));
  reader.read(from, reader.core);
  for (const condition of conjunctsOf(where)) reader.addCondition(condition);
  return reader.shape();
}

class ShapeReader {
  readonly #isOwn: (expression: BoundExpression) => boolean;
  readonly core: SourceGroup = { sources: [], conditions: [] };
  readonly #parts: OpenPart[] = [];
  /** The expressions behind the columns of derived tables. */
  readonly #values = new Map<number, BoundExpression>();
  readonly #queries = new Set<BoundSelect>();

  constructor(isOwn: (expression: BoundExpression) => boolean) {
    this.#isOwn = isOwn;
  }

  /** Reads a part of FROM into a block. Left joins within the core become parts. */
  read(from: BoundFrom, into: SourceGroup): void {
    if (from.kind === "relation") return this.#readRelation(from.relation, into);
    if (from.outerReferences !== undefined) throw new NotMaintained("it has LATERAL");
    switch (from.join) {
      case "full":
        throw new NotMaintained("it has a full join");
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
    if (into !== this.core) throw new NotMaintained("it has a left join within another");
    this.read(left, into);
    const part: OpenPart = { kind: "left", sources: [], conditions: [] };
    const known = new Set(this.#values.keys());
    this.read(right, part);
    for (const [id, value] of this.#values) {
      // A row without a match has NULL in every column, even if the column is the value of an
      // expression.
      if (!known.has(id) && value.kind !== "column") {
        throw new NotMaintained("it has a left join with a computed column");
      }
    }
    for (const each of conjunctsOf(condition)) {
      part.conditions.push(this.#plain(each, "a condition of a join"));
    }
    this.#parts.push(part);
  }

  #readRelation(relation: BoundRelation, into: SourceGroup): void {
    switch (relation.kind) {
      case "table":
        if (relation.past !== undefined) throw new NotMaintained("it reads an earlier state");
        into.sources.push({ table: relation.table, columns: relation.columns });
        // A policy on a table is a condition of the joins around the table.
        this.#addConditions(relation.rule, into, "a policy");
        return;
      case "query":
        return this.#readQuery(relation.query, relation.columns, into);
      case "cte":
        return this.#readQuery(relation.cte.query, relation.columns, into);
      default:
        throw new NotMaintained(`it reads ${NAMES[relation.kind]}`);
    }
  }

  #readQuery(query: BoundSelect, columns: readonly BoundColumn[], into: SourceGroup): void {
    if (!isPlainSelect(query) || query.from === undefined) {
      throw new NotMaintained("it reads a derived table with grouping, order or limit");
    }
    if (this.#queries.has(query)) throw new NotMaintained("it reads an entry of WITH twice");
    this.#queries.add(query);
    this.read(query.from, into);
    this.#addConditions(query.where, into, "a condition of a derived table");
    for (const [index, { id }] of columns.entries()) {
      const output = query.outputs[index];
      if (output !== undefined) {
        this.#values.set(id, this.#plain(output.expression, "a column of a derived table"));
      }
    }
  }

  /** Adds a condition that the rows of the whole query have to meet. */
  addCondition(condition: BoundExpression): void {
    const existence = existenceIn(condition);
    if (existence === undefined) {
      this.core.conditions.push(this.#plain(condition, "a condition"));
      return;
    }
    const { equalities, kind, outer, query } = existence;
    if (!isPlainSelect(query) || query.from === undefined) {
      throw new NotMaintained("it has a subquery with grouping, order or limit");
    }
    const part: OpenPart = { kind, sources: [], conditions: [] };
    this.read(query.from, part);
    for (const each of conjunctsOf(query.where)) {
      part.conditions.push(this.#plain(withValues(each, outer), "a condition of a subquery"));
    }
    for (const { left, right, ...equality } of equalities) {
      const sides = {
        left: this.#plain(left, "the left side of IN"),
        right: this.#plain(withValues(right, outer), "a column of a subquery"),
      };
      // If one of the rows has NULL, NOT IN is unknown, whatever the other rows contain.
      if (kind === "anti" && !(this.#isPresent(sides.left) && this.#isPresent(sides.right))) {
        throw new NotMaintained("it has NOT IN with values that may be NULL");
      }
      part.conditions.push({ ...equality, ...sides });
    }
    this.#parts.push(part);
  }

  #plain(expression: BoundExpression, what: string): BoundExpression {
    if (hasSubquery(expression)) throw new NotMaintained(`${what} has a subquery`);
    const resolved = this.#resolved(expression);
    if (readsOuter(resolved)) throw new NotMaintained(`${what} reads the query around it`);
    return resolved;
  }

  /** Whether an expression is a column that is never NULL. */
  #isPresent(expression: BoundExpression): boolean {
    if (expression.kind !== "column" || !isNeverNull(expression.column)) return false;
    return !this.#nullableIds().has(expression.column.id);
  }

  /** Returns the columns of left joins, which are NULL in rows without a match. */
  #nullableIds(): ReadonlySet<number> {
    const lefts = this.#parts.filter(({ kind }) => kind === "left");
    const sources = lefts.flatMap((part) => part.sources);
    return new Set(sources.flatMap(({ columns }) => columns.map(({ id }) => id)));
  }

  readonly #resolved = (expression: BoundExpression): BoundExpression => {
    if (expression.kind !== "column") return mapChildren(expression, this.#resolved);
    return this.#values.get(expression.column.id) ?? expression;
  };

  #termOf(condition: BoundExpression): PartitionTerm | undefined {
    if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
    const { left, right } = condition;
    if (!isKeyType(left.type)) return undefined;
    for (const [value, own] of [
      [left, right],
      [right, left],
    ] as const) {
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
    const parts = this.#parts.map(({ conditions, kind, sources }): JoinPart => {
      const first = next;
      next += sources.length;
      return { kind, conditions, sources: sources.map((_, index) => first + index) };
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
      resolve: (expression) => this.#plain(expression, "an expression"),
    };
  }
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

/** A condition on the existence of rows of another query. */
interface SubqueryTest {
  readonly kind: "semi" | "anti";
  readonly query: BoundSelect;
  /** For IN and NOT IN: the operands, each equal to its column of the query. */
  readonly equalities: readonly ExpressionOf<"compare">[];
  /** The values of the surrounding row that the query reads, by the ids of their references. */
  readonly outer: ReadonlyMap<number, BoundExpression>;
}

/**
 * Returns the existence test of a condition; undefined if the condition has no subquery. @throws
 * {NotMaintained}
 */
function existenceIn(condition: BoundExpression): SubqueryTest | undefined {
  if (!hasSubquery(condition)) return undefined;
  const isNegated = condition.kind === "not";
  const inner = isNegated ? condition.operand : condition;
  if (inner.kind !== "subquery") throw new NotMaintained("a condition has a subquery");
  const { outerReferences, subquery } = inner;
  const { form, outerIds, query } = subquery;
  const outer = new Map(
    outerIds.map((id, index) => [id, defined(outerReferences[index], "a reference has a value")]),
  );
  if (form.kind === "exists") {
    return { kind: isNegated ? "anti" : "semi", query, equalities: [], outer };
  }
  const isMember = form.kind === "any" && form.operator === "=";
  const isNoMember = form.kind === "all" && form.operator === "<>" && !isNegated;
  if (!isMember && !isNoMember) throw new NotMaintained("a condition has a subquery");
  const kind = isMember && !isNegated ? "semi" : "anti";
  return { kind, query, equalities: equalitiesOf(inner), outer };
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
      throw new NotMaintained("it has IN with values of several types");
    }
    // For NOT IN, the function of the binder tests the opposite.
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

/** Whether a column has a value in every row of its table. */
function isNeverNull({ origin }: BoundColumn): boolean {
  if (origin === undefined) return false;
  const { columnId, table } = origin;
  if (table.primaryKey.includes(columnId)) return true;
  return table.columns.find((column) => column.columnId === columnId)?.notNull === true;
}

/** Replaces the references of an inner query with values of the surrounding row. */
function withValues(
  expression: BoundExpression,
  values: ReadonlyMap<number, BoundExpression>,
): BoundExpression {
  if (expression.kind === "outer") return values.get(expression.id) ?? expression;
  return mapChildren(expression, (child) => withValues(child, values));
}
