/**
 * Restricts a WITH query to the rows that the references to it need.
 *
 *     WITH c AS (SELECT k, g, sum(v) FROM t GROUP BY k, g)
 *     SELECT … FROM c x JOIN c y ON y.k = x.k WHERE x.g = 1 AND y.g = 2
 *     computes c only for g = 1 OR g = 2
 *
 * The references are called readers. The query can be restricted if a single block contains all
 * readers and has conditions on each of them. It then computes only rows that satisfy the
 * conditions of some reader. Every reader still tests its own conditions.
 */
import type { BoundCte, BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { readsOuter } from "../bind/query/query_walk.ts";
import { conjunctionOf, conjunctsOf, hasSubquery, mapChildren, mayFail } from "../bind/walk.ts";
import { conditionOf } from "./conditions.ts";
import { withComputed } from "./folding.ts";
import { isPlainJoin } from "./inner_joins.ts";
import { isOver } from "./join_keys.ts";
import { restricted } from "./pushed_down.ts";

/**
 * The maximum number of readers whose conditions are combined. Every row of the WITH query may be
 * tested against the conditions of all readers.
 */
const READERS_MAX = 16;

type EntryRelation = Extract<BoundRelation, { kind: "cte" }>;

/**
 * A reference to a WITH query, and the conditions that every row must satisfy in the end if it is
 * read through this reference.
 */
interface Reader {
  readonly relation: EntryRelation;
  readonly conditions: readonly BoundExpression[];
}

/**
 * Restricts each WITH query to the rows that are needed, if a single block contains all references
 * to the query.
 */
export function withWantedRows(select: BoundSelect): BoundSelect {
  if (select.from?.kind !== "join" || !readsWhole(select.from)) return select;
  const readers = new Map<BoundCte, Reader[]>();
  addReaders(select.from, conjunctsOf(select.where), readers);
  const wanted = new Map<BoundCte, BoundCte>();
  for (const [cte, own] of readers) {
    const entry = wantedOf(cte, own);
    if (entry !== undefined) wanted.set(cte, entry);
  }
  return wanted.size === 0 ? select : { ...select, from: withEntries(select.from, wanted) };
}

/**
 * Whether FROM contains all references to some WITH query that has several references, but not too
 * many.
 */
function readsWhole(from: BoundFrom, counts = new Map<BoundCte, number>()): boolean {
  if (from.kind === "join") return readsWhole(from.left, counts) || readsWhole(from.right, counts);
  if (from.relation.kind !== "cte") return false;
  const { cte } = from.relation;
  const count = (counts.get(cte) ?? 0) + 1;
  counts.set(cte, count);
  return count > 1 && count === cte.references.count && count <= READERS_MAX;
}

function addReaders(
  from: BoundFrom,
  conditions: readonly BoundExpression[],
  into: Map<BoundCte, Reader[]>,
): void {
  if (from.kind === "relation") {
    const { relation } = from;
    if (relation.kind !== "cte" || relation.cte.references.count < 2) return;
    const readers = into.get(relation.cte) ?? [];
    into.set(relation.cte, readers);
    readers.push({ relation, conditions });
    return;
  }
  const { join, left, right } = from;
  const on = conjunctsOf(from.condition);
  if (isPlainJoin(from)) {
    const all = on.length === 0 ? conditions : [...conditions, ...on];
    addReaders(left, all, into);
    addReaders(right, all, into);
    return;
  }
  // Rows without a partner may be needed, so conditions above an outer join do not restrict the
  // side that may lack a partner.
  addReaders(left, join === "full" ? [] : conditions, into);
  addReaders(right, join === "left" ? on : [], into);
}

function wantedOf(cte: BoundCte, readers: readonly Reader[]): BoundCte | undefined {
  const [first] = readers;
  const isComplete = readers.length === cte.references.count && readers.length <= READERS_MAX;
  if (first === undefined || !isComplete || cte.isKept || cte.isVolatile) return undefined;
  const { columns } = first.relation;
  const operands: BoundExpression[] = [];
  for (const reader of readers) {
    const own = conjunctionOf(conditionsOf(reader, columns));
    if (own === undefined) return undefined;
    operands.push(own);
  }
  const [type] = operands.map((operand) => operand.type);
  if (type === undefined) return undefined;
  const condition = conditionOf({ kind: "or", type, operands });
  const { query } = restricted(cte.query, columns, [condition]);
  return query === cte.query ? undefined : { ...cte, query };
}

/**
 * Returns the conditions on a reference that cannot fail, with the columns of the reference
 * replaced by the given columns.
 */
function conditionsOf(
  { conditions, relation }: Reader,
  columns: readonly BoundColumn[],
): readonly BoundExpression[] {
  const places = new Map(relation.columns.map(({ id }, position) => [id, position]));
  const replaced = (expression: BoundExpression): BoundExpression => {
    if (expression.kind !== "column") return mapChildren(expression, replaced);
    const column = columns[places.get(expression.column.id) ?? -1];
    return column === undefined ? expression : columnValue(column);
  };
  return conditions
    .filter((each) => isOver(each, places) && !hasSubquery(each) && !readsOuter(each))
    .map(withComputed)
    .filter((each) => !mayFail(each))
    .map(replaced);
}

function withEntries(from: BoundFrom, wanted: ReadonlyMap<BoundCte, BoundCte>): BoundFrom {
  if (from.kind === "join") {
    return {
      ...from,
      left: withEntries(from.left, wanted),
      right: withEntries(from.right, wanted),
    };
  }
  const { relation } = from;
  const cte = relation.kind === "cte" ? wanted.get(relation.cte) : undefined;
  if (relation.kind !== "cte" || cte === undefined) return from;
  return { kind: "relation", relation: { ...relation, cte } };
}
