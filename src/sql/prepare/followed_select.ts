/**
 * Completes the SELECT of a followed query: adds the columns that identify and sort its rows,
 * gives its fields distinct names, and makes the order of a query with LIMIT unambiguous.
 *
 * The additions are made in the syntax tree, so that the result is an ordinary statement, which a
 * reader thread can run.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import { collationOf, type DataType, hasSortKey, isOrderedByClients } from "../../types/mod.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { isPlainSelect } from "../bind/query/query_walk.ts";
import { hasSubquery } from "../bind/walk.ts";
import type { WindowTerm } from "../maintain/row_window.ts";
import type {
  Expr,
  OrderByStatement,
  SelectFromStatement,
  SelectStatement,
} from "../parse/ast/ast.ts";
import { coreOf, isSelectNode, mapCore } from "../parse/ast/query_nodes.ts";
import type { ResultPlan, ResultSort } from "../ports/engine.ts";
import { rowIdentifiersOf } from "./row_identity.ts";
import { keyedOutputOf, outputOf, sortKeyCall, sortKeyOutputOf } from "./sort_keys.ts";

/** Names that every row of a followed result uses for purposes other than result fields. */
const RESERVED_NAMES: readonly string[] = ["_key", "_seq", "_deleted"];

/** A query with an unambiguous order, and the number of ORDER BY terms that it had originally. */
export interface OrderedSelect extends WrittenSelect {
  readonly sortCount: number;
}

/**
 * Makes the order of a query with LIMIT unambiguous by adding ORDER BY terms that identify a row.
 * Every evaluation then selects the same rows, even if some of them tie in the original order.
 */
export function withTotalOrder(
  given: WrittenSelect,
  bound: (node: SelectStatement) => BoundSelect,
): OrderedSelect {
  const { node, select } = given;
  const sortCount = select.orderBy.length;
  const core = coreOf(node);
  const isWindow = select.limit !== undefined || select.offset !== undefined;
  const keyFields = keyFieldsOf(select);
  if (
    core === undefined ||
    !isWindow ||
    sortCount === 0 ||
    select.withTies ||
    keyFields === undefined
  )
    return { ...given, sortCount };
  const { _location } = core;
  const terms = keyFields
    .filter((field) => !select.orderBy.some((sort) => outputOf(select, sort.expression) === field))
    .map((field): OrderByStatement => {
      const value = field + 1;
      return { _location, by: { type: "integer", value, text: String(value), _location } };
    });
  const longer = mapCore(node, (each) => ({
    ...each,
    orderBy: [...(each.orderBy ?? []), ...terms],
  }));
  try {
    return { node: longer, select: bound(longer), sortCount };
  } catch (error) {
    // Some types cannot be sorted. If rows tie, it is then undefined which of them are in the
    // result.
    if (error instanceof DatabaseError) return { ...given, sortCount };
    throw error;
  }
}

/**
 * Returns the terms of ORDER BY as fields. Returns undefined if some term is not a field, or if
 * two rows may tie in all terms.
 */
export function windowTermsOf(select: BoundSelect): WindowTerm[] | undefined {
  const sorts = sortOf(select);
  const keyFields = keyFieldsOf(select);
  const isComplete = keyFields?.every((field) => sorts.some((sort) => sort.field === field));
  if (isComplete !== true || sorts.length < select.orderBy.length || sorts.length === 0) {
    return undefined;
  }
  return sorts.flatMap(({ areNullsFirst, field, isDescending }): WindowTerm[] => {
    const type = select.outputs[field]?.expression.type;
    return type === undefined ? [] : [{ field, type, isDescending, nullsFirst: areNullsFirst }];
  });
}

/** A query in two forms: as a syntax tree, and as a bound query. */
interface WrittenSelect {
  readonly node: SelectStatement;
  readonly select: BoundSelect;
}

/**
 * Adds the columns that identify a row and the ORDER BY terms to the select list, unless it
 * already contains them.
 */
export function withHiddenColumns(
  node: SelectStatement,
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect {
  const given = { node, select: bound(node) };
  const core = coreOf(node);
  if (core === undefined) return withKeysOfSet(given, bound);
  if (core.columns === undefined) return given;
  const sorts = core.orderBy ?? [];
  const terms = given.select.orderBy.flatMap(({ expression }, index) =>
    outputOf(given.select, expression) < 0 ? [sorts[index]?.by] : [],
  );
  const keys = given.select.orderBy.flatMap(({ expression: { type } }, index) => {
    const by = sorts[index]?.by;
    return by !== undefined && isSortedByKey(type) ? [sortKeyCall(core, by)] : [];
  });
  const ordered = withItems(withItems(given, terms, bound), keys, bound);
  const { select } = ordered;
  const identifiers = (rowIdentifiersOf(select) ?? []).flatMap(({ value, written }) =>
    outputOf(select, value) < 0 ? [written(core)] : [],
  );
  return withItems(ordered, identifiers, bound);
}

/**
 * Adds the sort keys of ORDER BY terms to each block of a set operation. Returns the query
 * unchanged if a block cannot compute the key that the value has in the result.
 */
function withKeysOfSet(
  given: WrittenSelect,
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect {
  const fields = given.select.orderBy.flatMap(({ expression }) =>
    isSortedByKey(expression.type) ? [outputOf(given.select, expression)] : [],
  );
  const node = fields.length === 0 ? undefined : withKeysInBlocks(given.node, fields);
  const longer = node === undefined ? given : boundOr(given, node, bound);
  const { orderBy, outputs } = longer.select;
  const found = outputs.filter((_, index) => keyedOutputOf(longer.select, index) >= 0);
  return orderBy.length > 0 && found.length >= fields.length ? longer : given;
}

function withKeysInBlocks(
  node: SelectStatement,
  fields: readonly number[],
): SelectStatement | undefined {
  if (node.type === "select") {
    const { _location } = node;
    const keys = fields.map((field) => {
      const value = field + 1;
      return sortKeyCall(node, { type: "integer", value, text: String(value), _location });
    });
    const written = keys.filter((key) => key !== undefined);
    return written.length < fields.length ? undefined : withHiddenItems(node, written);
  }
  if (node.type === "with" || node.type === "with recursive") {
    const inner = isSelectNode(node.in) ? withKeysInBlocks(node.in, fields) : undefined;
    return inner && { ...node, in: inner };
  }
  if (!("left" in node)) return undefined;
  const left = withKeysInBlocks(node.left, fields);
  const right = withKeysInBlocks(node.right, fields);
  return left && right && { ...node, left, right };
}

/** Whether clients sort the values of a type by their sort keys. */
function isSortedByKey(type: DataType): boolean {
  return !isOrderedByClients(type) && hasSortKey(type);
}

/**
 * Adds an item to the end of the select list: the seq of the newest table row from which a row is
 * derived. In a query of inner joins, this is the seq at which the row last changed. If the absence
 * of a table row affects the result, as in a group or a left join, the removal of a table row is
 * also a change, but leaves no seq.
 */
export function withRowSeq(
  given: WrittenSelect,
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect & { readonly rowSeq: ResultPlan["rowSeq"] } {
  const { select } = given;
  const core = coreOf(given.node);
  const aliases = core === undefined ? undefined : joinedAliases(select.from);
  const isPlain = isPlainSelect({ ...select, limit: undefined, offset: undefined });
  const isGrouped =
    select.isAggregated && select.distinct === "none" && select.windows.length === 0;
  const hasQuery = select.outputs.some(({ expression }) => hasSubquery(expression));
  if (core === undefined || aliases === undefined || hasQuery || !(isPlain || isGrouped)) {
    return { ...given, rowSeq: undefined };
  }
  const { _location } = core;
  const call = (name: string, args: Expr[]): Expr => {
    return { type: "call", function: { name, _location }, args, _location };
  };
  const seqs = aliases.map((name): Expr => {
    return { type: "ref", table: { name, _location }, name: "_seq", _location };
  });
  const newest = call("greatest", seqs);
  const longer = withItems(given, [isGrouped ? call("max", [newest]) : newest], bound);
  if (longer === given) return { ...given, rowSeq: undefined };
  const isExact = isPlain && !showsAbsence(select);
  return { ...longer, rowSeq: isExact ? "last change" : "newest part" };
}

/**
 * Returns the aliases of the tables in FROM; undefined if FROM contains anything other than
 * tables.
 */
function joinedAliases(from: BoundFrom | undefined): readonly string[] | undefined {
  if (from === undefined) return undefined;
  if (from.kind === "relation") {
    return from.relation.kind === "table" ? [from.relation.alias] : undefined;
  }
  const [left, right] = [joinedAliases(from.left), joinedAliases(from.right)];
  return left === undefined || right === undefined ? undefined : [...left, ...right];
}

/**
 * Whether a result row may appear without a change to one of its own table rows, for example
 * because a table row was removed.
 */
function showsAbsence({ from, where }: BoundSelect): boolean {
  const hasOuterJoin = (part: BoundFrom | undefined): boolean =>
    part?.kind === "join" &&
    (part.join === "left" ||
      part.join === "full" ||
      hasOuterJoin(part.left) ||
      hasOuterJoin(part.right));
  return hasOuterJoin(from) || (where !== undefined && hasSubquery(where));
}

/**
 * Adds items to the select list. Returns the query unchanged if an item cannot be written in SQL
 * or cannot be bound in the select list.
 */
function withItems(
  given: WrittenSelect,
  items: readonly (Expr | undefined)[],
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect {
  const written = items.filter((item) => item !== undefined);
  if (written.length === 0 || written.length < items.length) return given;
  return boundOr(
    given,
    mapCore(given.node, (core) => withHiddenItems(core, written)),
    bound,
  );
}

/** Returns a longer form of a query, or the given query if the longer one cannot be bound. */
function boundOr(
  given: WrittenSelect,
  longer: SelectStatement,
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect {
  try {
    return { node: longer, select: bound(longer) };
  } catch (error) {
    // In the select list, the added item would have a different meaning, so the query is followed
    // without the item.
    if (error instanceof DatabaseError) return given;
    throw error;
  }
}

function withHiddenItems(core: SelectFromStatement, items: readonly Expr[]): SelectFromStatement {
  const added = items.map((expr, index) => {
    const { _location } = expr;
    const name = expr.type === "ref" ? expr.name : `_order_${index + 1}`;
    return { _location, expr, alias: { _location, name: `${HIDDEN_PREFIX}${name}` } };
  });
  return { ...core, columns: [...(core.columns ?? []), ...added] };
}

/**
 * The prefix of the names of added columns. It distinguishes them from names to which ORDER BY and
 * GROUP BY may refer.
 */
const HIDDEN_PREFIX = "?hidden ";

export function keyFieldsOf(select: BoundSelect): readonly number[] | undefined {
  const fields = rowIdentifiersOf(select)?.map(({ value }) => outputOf(select, value));
  return fields?.every((field) => field >= 0) === true ? fields : undefined;
}

/**
 * Returns the leading terms of ORDER BY by which a client can order the rows. If a client cannot
 * compare the cells of a term, the field with the term's sort key represents the term.
 */
export function sortForClients(select: BoundSelect): readonly ResultSort[] {
  return leadingSorts(select, (expression) =>
    isOrderedByClients(expression.type)
      ? outputOf(select, expression)
      : sortKeyOutputOf(select, expression),
  );
}

/** Returns the leading terms of ORDER BY that are also fields of the result. */
function sortOf(select: BoundSelect): readonly ResultSort[] {
  return leadingSorts(select, (expression) => outputOf(select, expression));
}

/** @param fieldOf Returns the field of an ORDER BY term, or a negative number if it has none. */
function leadingSorts(
  select: BoundSelect,
  fieldOf: (expression: BoundExpression) => number,
): readonly ResultSort[] {
  const sorts = select.orderBy.map(({ expression, isDescending, nullsFirst }): ResultSort => {
    const collation = collationOf(expression.type);
    return {
      field: fieldOf(expression),
      isDescending,
      areNullsFirst: nullsFirst,
      ...(collation?.kind === "icu" ? { collation } : {}),
    };
  });
  const end = sorts.findIndex(({ field }) => field < 0);
  return end < 0 ? sorts : sorts.slice(0, end);
}

/**
 * Gives each field a unique name. Column flags are removed, because they describe table rows and
 * may be wrong for rows of an outer join.
 */
export function fieldsWithNames(fields: readonly SchemaField[]): SchemaField[] {
  const taken = new Set(RESERVED_NAMES);
  for (const { name } of fields) if (!RESERVED_NAMES.includes(name)) taken.add(name);
  const used = new Set(RESERVED_NAMES);
  return fields.map(({ name: given, data_type, index }) => {
    const name = given.startsWith(HIDDEN_PREFIX) ? given.slice(HIDDEN_PREFIX.length) : given;
    let own = name;
    for (let count = 2; used.has(own) || (own !== given && taken.has(own)); count += 1) {
      own = `${name}_${count}`;
    }
    used.add(own);
    return { name: own, data_type, index };
  });
}
