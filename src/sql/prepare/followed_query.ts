/**
 * Plans queries that are followed as a whole: a query is evaluated again after a change of one of
 * its tables, and the rows are compared with those that were delivered before.
 *
 * A plan is an ordinary statement. Columns that identify or order the rows are added to the select
 * list if they are not in it. Invariant: two evaluations of a plan at the same seq give the same
 * rows. Functions whose values change by themselves are therefore refused.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { type DataType, exactCellMakerFor, isTimeWord, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundSelect, Requirement } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { expressionsIn, relationsIn } from "../bind/query/query_walk.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { childrenOf } from "../bind/walk.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type {
  AstNode,
  Expr,
  SelectFromStatement,
  SelectStatement,
  Statement,
} from "../parse/ast/ast.ts";
import { changesRows, isSelectNode } from "../parse/ast/query_nodes.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import type { LiveRequest, ResultSort, ResultTable } from "../ports/engine.ts";
import { requireNoGap, typedParameters } from "../ports/parameters.ts";
import { CellRows } from "../result/result.ts";
import { authorize, meetsAll } from "../rights/requirements.ts";
import { dmlDepsOf } from "./binding_deps.ts";
import {
  FIXED_FUNCTIONS,
  fingerprintOf,
  followedNode,
  type LiveCaller,
  type LivePlanDeps,
  startOfCall,
  unfixedFunction,
  withOwner,
} from "./live_planner.ts";
import { boundFor, type PreparedQuery, prepare } from "./prepared.ts";
import { outputOf, rowIdentifiersOf } from "./row_identity.ts";
import { watchOf } from "./statement_watch.ts";
import { mayReadTombstones } from "./tombstone_reads.ts";

/** A bound query that is followed as a whole. */
export interface WholeQuery {
  readonly node: SelectStatement;
  readonly types: readonly DataType[];
  readonly slots: readonly Value[];
  readonly namespace: string;
  /** The caller, with an owner number. */
  readonly principal: Principal;
  readonly prepared: PreparedQuery;
  readonly tables: readonly ResultTable[];
  readonly changesByTime: boolean;
  /** The fields of a row. Their names are unique. */
  readonly fields: readonly SchemaField[];
  /** The fields that identify a row; undefined if a row is identified only by its values. */
  readonly keyFields: readonly number[] | undefined;
  readonly sort: readonly ResultSort[];
  /** Queries with the same fingerprint have the same rows at every seq. */
  readonly fingerprint: string;
  /**
   * The time of the newest change of a view, in Unix milliseconds, if the query reads a view;
   * otherwise 0.
   */
  readonly viewsChangedMs: number;
  /** Whether a user may read the rows now. */
  mayRead(principal: Principal): boolean;
}

/** Names that every row of a followed result uses in addition to those of its fields. */
const RESERVED_NAMES: readonly string[] = ["_key", "_seq", "_deleted"];

/**
 * Plans a query in one tick of the event loop.
 *
 * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
 */
export function planFollowedQuery(
  deps: LivePlanDeps,
  request: LiveRequest,
  { ledger, principal }: LiveCaller,
): WholeQuery {
  const { catalog, limits } = deps;
  const { types, values } = typedParameters(request.params, limits);
  const written = followedNode(request.sql, { limits, parameterCount: types.length });
  if (!isSelectNode(written)) throw notFollowed(written, written.type.toUpperCase());
  if (changesRows(written)) throw notFollowed(written, "a statement that changes rows");
  refuseHistory(written);
  const namespace = request.namespace ?? DEFAULT_NAMESPACE;
  const owned = withOwner(catalog, principal);
  const newStatement = (): StatementBinding =>
    new StatementBinding(types, { watch: watchOf(ledger, deps) });
  const bound = (node: SelectStatement): BoundSelect => {
    const statement = newStatement();
    const dmlDeps = dmlDepsOf(deps, { namespace, principal: owned, statement });
    return boundFor({ catalog, principal: owned, statement }, () => bindQuery(node, dmlDeps));
  };
  const { node, select } = withHiddenColumns(written, bound);
  refuseUnfixed(select, { node: written, slots: values });
  const statement = newStatement();
  const dmlDeps = dmlDepsOf(deps, { namespace, principal: owned, statement });
  const prepared = prepare(node, { deps: dmlDeps, statement });
  if (prepared.kind !== "query") throw notFollowed(written, "a statement that changes rows");
  requireNoGap(statement.usedParameters, types.length);
  const { requirements } = prepared;
  authorize(requirements, owned, catalog);
  readLiterals(prepared.literals);
  const tables = tablesOf(prepared, owned);
  const readsSystemViews = requirements.some(({ action }) => action === "read-system");
  const isOfCaller =
    readsSystemViews ||
    mayReadTombstones(prepared) ||
    tables.some(({ owner }) => owner !== SHARED_OWNER) ||
    [...callsIn(select)].some(({ name }) => FIXED_FUNCTIONS.has(name));
  return {
    node,
    types,
    slots: values,
    namespace,
    principal: owned,
    prepared: { ...prepared, cells: new CellRows(prepared.cells.types, exactCellMakerFor) },
    viewsChangedMs: statement.viewCount === 0 ? 0 : newestChangeOf(catalog.views()),
    tables,
    changesByTime: readsSystemViews || requirements.some(mayExpire),
    fields: fieldsWithNames(prepared.fields ?? []),
    keyFields: keyFieldsOf(select),
    sort: sortOf(select),
    fingerprint: fingerprintOf(request, namespace, isOfCaller ? owned : undefined),
    mayRead: (reader) => {
      const user = catalog.user(reader.userId);
      return user !== undefined && meetsAll(requirements, { ...reader, role: user.role }, catalog);
    },
  };
}

function notFollowed(node: Statement, what: string): DatabaseError {
  return new DatabaseError("INVALID_SQL", `Cannot subscribe to ${what}`, {
    position: node._location.start,
    hint: "a live query is one SELECT, which may begin with WITH",
  });
}

function refuseHistory(node: AstNode): void {
  for (const part of partsOf([node])) {
    const { systemTime }: { readonly systemTime?: AstNode } = part;
    if (systemTime === undefined) continue;
    throw new DatabaseError("INVALID_SQL", "Cannot subscribe to a query with FOR SYSTEM_TIME", {
      position: systemTime._location.start,
      hint: "the rows of a past moment do not change: run the query once",
    });
  }
}

function newestChangeOf(views: readonly { readonly updatedAtMs: number }[]): number {
  return Math.max(0, ...views.map(({ updatedAtMs }) => updatedAtMs));
}

/** Whether the rows of a table may disappear without a commit. */
function mayExpire(requirement: Requirement): boolean {
  return "table" in requirement && requirement.table.options.ttlSeconds !== undefined;
}

function tablesOf({ requirements }: PreparedQuery, principal: Principal): ResultTable[] {
  const byId = new Map<number, ResultTable>();
  for (const requirement of requirements) {
    if (!("table" in requirement)) continue;
    const { table } = requirement;
    const { name, namespace, tableId } = table;
    const owner = ownerOf(principal, table);
    byId.set(tableId, { tableId, owner, name: `${namespace}.${name}` });
  }
  return [...byId.values()];
}

interface WrittenSelect {
  readonly node: SelectStatement;
  readonly select: BoundSelect;
}

/**
 * Adds the identifiers of rows, and the terms of ORDER BY, to the select list if they are not in
 * it.
 */
function withHiddenColumns(
  node: SelectStatement,
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect {
  const given = { node, select: bound(node) };
  const core = coreOf(node);
  const isFixed = given.select.distinct === "all";
  if (core === undefined || core.columns === undefined || isFixed) return given;
  const sorts = core.orderBy ?? [];
  const terms = given.select.orderBy.flatMap(({ expression }, index) =>
    outputOf(given.select, expression) < 0 ? [sorts[index]?.by] : [],
  );
  const ordered = withItems(given, terms, bound);
  const { select } = ordered;
  const identifiers = (rowIdentifiersOf(select) ?? []).flatMap(({ value, written }) =>
    outputOf(select, value) < 0 ? [written(core)] : [],
  );
  return withItems(ordered, identifiers, bound);
}

/**
 * Adds items to the select list. Returns the original query if an item has no source text or cannot
 * be bound in the select list.
 */
function withItems(
  given: WrittenSelect,
  items: readonly (Expr | undefined)[],
  bound: (node: SelectStatement) => BoundSelect,
): WrittenSelect {
  const written = items.filter((item) => item !== undefined);
  if (written.length === 0 || written.length < items.length) return given;
  const longer = mapCore(given.node, (core) => ({
    ...core,
    columns: [
      ...(core.columns ?? []),
      ...written.map((expr, index) => {
        const { _location } = expr;
        const name = expr.type === "ref" ? expr.name : `_order_${index + 1}`;
        return { _location, expr, alias: { _location, name: `${HIDDEN_PREFIX}${name}` } };
      }),
    ],
  }));
  try {
    return { node: longer, select: bound(longer) };
  } catch (error) {
    // In the select list, the item would have a different meaning. The query is followed without
    // it.
    if (error instanceof DatabaseError) return given;
    throw error;
  }
}

/**
 * A prefix that distinguishes the names of added columns from names to which ORDER BY and GROUP BY
 * may refer.
 */
const HIDDEN_PREFIX = "?hidden ";

/** Returns the block that determines the rows of a query, if there is exactly one. */
function coreOf(node: SelectStatement): SelectFromStatement | undefined {
  if (node.type === "select") return node;
  const isWith = node.type === "with" || node.type === "with recursive";
  return isWith && isSelectNode(node.in) ? coreOf(node.in) : undefined;
}

function mapCore(
  node: SelectStatement,
  change: (core: SelectFromStatement) => SelectFromStatement,
): SelectStatement {
  if (node.type === "select") return change(node);
  const isWith = node.type === "with" || node.type === "with recursive";
  if (!isWith || !isSelectNode(node.in)) return node;
  return { ...node, in: mapCore(node.in, change) };
}

function keyFieldsOf(select: BoundSelect): readonly number[] | undefined {
  const fields = rowIdentifiersOf(select)?.map(({ value }) => outputOf(select, value));
  return fields?.every((field) => field >= 0) === true ? fields : undefined;
}

/** Returns the leading terms of ORDER BY that are also fields of the result. */
function sortOf(select: BoundSelect): readonly ResultSort[] {
  const sorts = select.orderBy.map(({ expression, isDescending, nullsFirst }): ResultSort => {
    return { field: outputOf(select, expression), isDescending, areNullsFirst: nullsFirst };
  });
  const end = sorts.findIndex(({ field }) => field < 0);
  return end < 0 ? sorts : sorts.slice(0, end);
}

/**
 * Gives each field a unique name. Flags of columns are left out: they describe rows of a table, and
 * may be wrong for rows that an outer join produces.
 */
function fieldsWithNames(fields: readonly SchemaField[]): SchemaField[] {
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

/** Refuses functions, and words such as 'now', whose values change without a change of a row. */
function refuseUnfixed(
  select: BoundSelect,
  { node, slots }: { node: SelectStatement; slots: readonly Value[] },
): void {
  for (const call of callsIn(select)) {
    const { name, volatility } = call;
    if (volatility !== "immutable" && !FIXED_FUNCTIONS.has(name)) {
      throw unfixedFunction(name, startOfCall(node, name));
    }
    const word = call.readsTimeWords === true ? timeWordIn(call.args[0], slots) : undefined;
    if (word === undefined) continue;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot subscribe with '${word}' as a time: its value changes even if the row does not`,
      {
        position: node._location.start,
        hint: "write the time itself, or pass it as a parameter",
      },
    );
  }
}

function timeWordIn(
  operand: BoundExpression | undefined,
  slots: readonly Value[],
): string | undefined {
  if (operand?.kind !== "constant" && operand?.kind !== "slot") return undefined;
  const value = operand.kind === "constant" ? operand.value : slots[operand.slot];
  return typeof value === "string" && isTimeWord(value) ? value : undefined;
}

type CallExpression = Extract<BoundExpression, { kind: "call" }>;

/** Returns every call in a query, its WITH entries, and the queries in its expressions. */
function callsIn(select: BoundSelect): Set<CallExpression> {
  const calls = new Set<CallExpression>();
  const seen = new Set<BoundSelect>();
  const visit = (query: BoundSelect): void => {
    if (seen.has(query)) return;
    seen.add(query);
    for (const expression of expressionsIn(query)) visitExpression(expression);
    for (const relation of relationsIn(query))
      if (relation.kind === "cte") visit(relation.cte.query);
  };
  const visitExpression = (expression: BoundExpression): void => {
    if (expression.kind === "call") calls.add(expression);
    if (expression.kind === "subquery") visit(expression.subquery.query);
    for (const child of childrenOf(expression)) visitExpression(child);
  };
  visit(select);
  return calls;
}
