/**
 * Plans live queries: decides whether a query can be followed, and creates the plan that the
 * snapshot, the replay and the live delivery share.
 */

import type { Principal } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import { digestKey, shortKey } from "../../base/short_key.ts";
import { type Catalog, DEFAULT_NAMESPACE, type TableEntry } from "../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import { type Batch, type DataType, groupKeyOf } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundOutput, BoundRelation, BoundSelect, Requirement } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { TABLE_SAMPLE } from "../bind/query/sample_binder.ts";
import { bindSelect } from "../bind/query/select_binder.ts";
import {
  childrenOf,
  columnIdsIn,
  conjunctionOf,
  conjunctsOf,
  hasSubquery,
  mayTakeLong,
  sameExpression,
} from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { RowPace } from "../execute/context/pace.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { compileExpression } from "../execute/evaluate/expression.ts";
import type { BatchLayout } from "../execute/evaluate/layout.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { AstNode, SelectFromStatement, Statement } from "../parse/ast/ast.ts";
import { holdsQuery } from "../parse/ast/query_nodes.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { parseFollowed } from "../parse/errors.ts";
import { parseRequest } from "../parse/parser.ts";
import { equalityIn } from "../plan/access.ts";
import type {
  CompiledExpression,
  LiveEquality,
  LivePace,
  LivePlan,
  LiveRequest,
  NamedColumn,
  RowSearch,
} from "../ports/engine.ts";
import type { SqlLimits } from "../ports/environment.ts";
import {
  parseLimitsOf,
  requireNoGap,
  shortParameters,
  typedParameters,
} from "../ports/parameters.ts";
import { fieldsOf } from "../result/result.ts";
import { authorize, meetsAll } from "../rights/requirements.ts";
import { type BindingDeps, dmlDepsOf } from "./binding_deps.ts";
import { isClockFunction } from "./clock_terms.ts";
import { expiryOf } from "./expired_rows.ts";
import { withoutTimeWords } from "./live_moments.ts";
import type { LiveRowsQuery } from "./live_rows.ts";
import { boundFor } from "./prepared.ts";
import { type ExecutionDeps, newContext } from "./statement_context.ts";
import { watchOf } from "./statement_watch.ts";

/**
 * The functions whose values depend on the caller and are fixed when a client subscribes, such as
 * CURRENT_USER.
 */
export const FIXED_FUNCTIONS: ReadonlySet<string> = new Set([
  "current_user",
  "user",
  "current_user_id",
  "current_role",
  "claim",
]);

/**
 * The maximum number of rows to evaluate together if evaluating a row may take a long time. It is
 * low because slow rows may follow fast ones.
 */
const GROUP_ROWS_MAX = 128;

/** The dependencies needed to bind live queries and evaluate their expressions. */
export interface LivePlanDeps extends BindingDeps, ExecutionDeps {}

/** The caller of a live query, and the limits for planning it. */
export interface LiveCaller {
  readonly principal: Principal;
  readonly ledger: RequestLedger;
  /** Creates searches that run in another thread; absent if there is no such thread. */
  readonly searches?: { searchFor(query: LiveRowsQuery): RowSearch } | undefined;
}

/**
 * Plans a live query within one tick of the event loop.
 *
 * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED,
 *   STATEMENT_TIMEOUT, CANCELLED, MEMORY_EXCEEDED
 */
export function planLiveQuery(
  deps: LivePlanDeps,
  request: LiveRequest,
  { ledger, principal, searches }: LiveCaller,
): LivePlan {
  const { catalog, limits } = deps;
  const { types, values } = typedParameters(request.params, limits);
  const node = liveSelect(request.sql, { limits, parameterCount: types.length });
  const statement = new StatementBinding(types, { watch: watchOf(ledger, deps) });
  const namespace = request.namespace ?? DEFAULT_NAMESPACE;
  withTypes(node, typesIn(catalog, namespace));
  const dmlDeps = dmlDepsOf(deps, { namespace, principal, statement });
  const bound = boundFor({ catalog, principal, statement }, () => bindSelect(node, dmlDeps));
  requireNoGap(statement.usedParameters, types.length);
  const { from } = bound;
  if (bound.expansions.length > 0) throw refused("a table function", node);
  if (from?.kind === "relation" && from.relation.kind === "query") throw refused("a view", node);
  if (statement.viewCount > 0) throw refused("a function", node);
  authorize(statement.requirements, principal, catalog);
  if (from?.kind !== "relation" || from.relation.kind !== "table") {
    throw refused("a system view", node);
  }
  refuseAggregates(bound, node);
  const ruled = withRule(bound, from.relation, node);
  readLiterals(statement.literals, values);
  refuseUnfixed(ruled, node);
  const owned = withOwner(catalog, principal);
  const start = { principal: owned, namespace, slots: values, atSeq: deps.store.visibleSeq };
  // Constants are computed now, under the request's time limit, because later deliveries have no
  // time limit.
  const planning = newContext(deps, { ...start, ledger });
  const context = newContext(deps, start);
  const select = withoutTimeWords(ruled, node, planning);
  // The only volatile calls that remain depend on the caller alone.
  const callerCalls = volatileCalls(select).map(({ name }) => name);
  const { columns, table } = from.relation;
  const outputs = withIdentity(select.outputs, from.relation, node);

  const used = columnsUsed(select, outputs);
  const read = columns.filter(({ id }) => used.has(id));
  const layout: BatchLayout = new Map(read.map(({ id }, position) => [id, position]));
  const compiled = (expression: BoundExpression): CompiledExpression =>
    compiledOver(layout, { expression, context });
  const evaluated = outputs.map(({ expression }) => expression);
  if (select.where !== undefined) evaluated.push(select.where);
  const fields = fieldsOf(outputs);
  const named = read.flatMap(({ origin }) => (origin === undefined ? [] : [origin.columnId]));
  const rows = { request, namespace, principal: owned, columnNames: read.map(({ name }) => name) };
  return {
    tableId: table.tableId,
    tableName: `${table.namespace}.${table.name}`,
    owner: ownerOf(owned, table),
    schemaVersion: table.schemaVersion,
    columnIds: named,
    filter: select.where === undefined ? undefined : compiled(select.where),
    projections: outputs.map(({ expression }) => compiled(expression)),
    pace: evaluated.some(mayTakeLong) ? paceOf(context) : undefined,
    search: searches?.searchFor({ ...rows, seqName: nameOf(SEQ_COLUMN_ID, read) }),
    fields,
    fieldTypes: outputs.map(({ expression }): DataType => expression.type),
    keyFieldIndexes: table.primaryKey.map((columnId) => fieldOf(columnId, outputs)),
    seqFieldIndex: fieldOf(SEQ_COLUMN_ID, outputs),
    fingerprint: fingerprintOf(request, namespace, {
      caller: callerCalls.length > 0 ? principal : undefined,
      requirements: statement.requirements,
    }),
    equality: equalityOf(select, { context: planning, compiled }),
    isExpiry: expiryOf(table, deps),
    hasStar: (node.columns ?? []).some(({ expr }) => expr.type === "ref" && expr.star === true),
    namedColumns: namedIn(used, read),
    claimsKey: callerCalls.includes("claim") ? claimsKeyOf(principal) : undefined,
    mayRead: () => mayReadNow(catalog, principal, statement.requirements),
  };
}

/**
 * Adds the policies' rule for the table in front of the query's conditions. A row that the
 * policies hide is never in the result, whatever the conditions are.
 */
function withRule(
  select: BoundSelect,
  { rule }: Extract<BoundRelation, { kind: "table" }>,
  node: AstNode,
): BoundSelect {
  if (rule === undefined) return select;
  if (hasSubquery(rule)) throw refused("a policy that reads other tables", node);
  const { where } = select;
  return { ...select, where: conjunctionOf(where === undefined ? [rule] : [rule, where]) };
}

/** Returns the name of a column in the query, where an alias may have renamed it. */
function nameOf(columnId: number, columns: readonly BoundColumn[]): string {
  return columns.find(({ origin }) => origin?.columnId === columnId)?.name ?? "";
}

function paceOf(context: ExecutionContext): LivePace {
  return { rows: new RowPace(GROUP_ROWS_MAX), monotonicMs: () => context.monotonicMs() };
}

/**
 * Returns the index of the field that contains a column under its own name. Earlier fields may
 * contain the same column under aliases.
 */
function fieldOf(columnId: number, outputs: readonly BoundOutput[]): number {
  return outputs.findIndex(
    ({ expression, name }) =>
      expression.kind === "column" &&
      expression.column.origin?.columnId === columnId &&
      expression.column.name === name,
  );
}

function compiledOver(
  layout: BatchLayout,
  { expression, context }: { expression: BoundExpression; context: ExecutionContext },
): CompiledExpression {
  const { kind, type } = expression;
  const column = kind === "column" ? layout.get(expression.column.id) : undefined;
  const evaluate = compileExpression(expression, layout);
  return {
    type,
    ...(column === undefined ? {} : { column }),
    // The execution context lives as long as the plan, so each evaluation must release the memory
    // that it has counted.
    evaluate: (batch: Batch) => {
      context.effort.beginRows();
      return evaluate(batch, context);
    },
  };
}

/**
 * Whether the subscriber may still read the same rows of the table, according to the subscriber's
 * current role.
 */
function mayReadNow(
  catalog: Catalog,
  principal: Principal,
  requirements: readonly Requirement[],
): boolean {
  const user = catalog.accounts.user(principal.userId);
  if (user === undefined) return false;
  const reader = { ...principal, role: user.role };
  return requirements.every((each) => {
    if (!("table" in each)) return meetsAll([each], reader, catalog);
    const table = catalog.tableById(each.table.tableId);
    return table !== undefined && meetsAll([{ ...each, table }], reader, catalog);
  });
}

/** Returns the columns that the filter or the fields read, in order of first use. */
function columnsUsed({ where }: BoundSelect, outputs: readonly BoundOutput[]): Set<number> {
  const used = new Set<number>();
  for (const { expression } of outputs) columnIdsIn(expression, used);
  if (where !== undefined) columnIdsIn(where, used);
  return used;
}

/**
 * Returns the used columns that the table declares, with their positions, in order of first use.
 */
function namedIn(used: ReadonlySet<number>, columns: readonly BoundColumn[]): NamedColumn[] {
  const byId = new Map(columns.map((column) => [column.id, column]));
  return [...used].flatMap((id) => {
    const { origin, type } = byId.get(id) ?? {};
    if (origin === undefined || type === undefined || origin.columnId <= 0) return [];
    return [{ columnId: origin.columnId, type }];
  });
}

function liveSelect(
  sql: string,
  given: { limits: SqlLimits; parameterCount: number },
): SelectFromStatement {
  const node = followedNode(sql, given);
  if (node.type !== "select") throw refused(node.type.toUpperCase(), node);
  checkClauses(node);
  return node;
}

/**
 * Parses SQL that must consist of a single query, which a subscription is to follow.
 *
 * @throws {DatabaseError}
 */
export function followedNode(
  sql: string,
  { limits, parameterCount }: { limits: SqlLimits; parameterCount: number },
): Statement {
  const parsed = parseFollowed(() => parseRequest(sql, parseLimitsOf(limits)));
  const [node, second] = parsed.statements;
  if (node === undefined || second !== undefined) {
    throw new DatabaseError(
      "INVALID_SQL",
      "Cannot subscribe to several statements: a subscription takes a single SELECT",
    );
  }
  if (parsed.parameterCount !== parameterCount) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind ${counted(parameterCount, "parameter")}: the highest parameter in the SQL ` +
        `is $${parsed.parameterCount}`,
    );
  }
  return node;
}

/** Thrown for a query whose rows are not the rows of a single table. */
export class NotRowByRow extends DatabaseError {
  /** The construct that prevents the query from being followed row by row. */
  readonly part: string;

  constructor(part: string, node: AstNode) {
    super("INVALID_SQL", `Cannot subscribe to a query with ${part}`, {
      position: node._location.start,
      hint: "select rows from a single table, as in SELECT … FROM table [WHERE …]",
    });
    this.part = part;
  }
}

function refused(what: string, node: AstNode): DatabaseError {
  return new NotRowByRow(what, node);
}

/** Rejects every query except `SELECT … FROM one table [WHERE …] [ORDER BY _seq]`. */
function checkClauses(node: SelectFromStatement): void {
  const { distinct, groupBy, having, limit, orderBy, windows } = node;
  checkFrom(node);
  if (distinct !== undefined && distinct !== "all") throw refused("DISTINCT", node);
  if (groupBy !== undefined) throw refused("GROUP BY", groupBy[0] ?? node);
  if (having !== undefined) throw refused("HAVING", having);
  if (windows !== undefined) throw refused("WINDOW", node);
  if (limit !== undefined) throw refused("LIMIT or OFFSET", limit);
  for (const sort of orderBy ?? []) {
    const isSeq = sort.by.type === "ref" && sort.by.name === "_seq" && sort.order !== "DESC";
    if (!isSeq || orderBy?.length !== 1) throw refused("ORDER BY other than _seq", sort);
  }
  refuseInExpressions(node);
}

function checkFrom(node: SelectFromStatement): void {
  const [item, other] = node.from ?? [];
  if (item === undefined) throw refused("no table", node);
  if (other !== undefined) throw refused("a join", other);
  if (item.type === "statement") throw refused("a subquery", item);
  if (item.type !== "table") throw refused("a table function", item);
  if (item.systemTime !== undefined) throw refused("FOR SYSTEM_TIME", item);
  if (item.sample !== undefined) throw refused("TABLESAMPLE", item);
}

/** A node of a syntax tree, with the properties that the checks below read. */
interface SyntaxPart extends Partial<AstNode> {
  readonly type?: unknown;
  readonly over?: unknown;
  readonly keyword?: unknown;
  readonly function?: { readonly name?: unknown };
}

/** Rejects subqueries and window functions in all expressions of the query. */
function refuseInExpressions({ columns, where, _location }: SelectFromStatement): void {
  for (const part of partsOf([where, columns])) {
    const { over, type, _location: at = _location }: SyntaxPart = part;
    const node = { _location: at };
    if (holdsQuery(part)) throw refused("a subquery", node);
    if (type === "call" && over !== undefined) throw refused("a window function", node);
  }
}

function refuseAggregates(select: BoundSelect, node: AstNode): void {
  if (select.isAggregated) throw refused("an aggregate", node);
}

/** Rejects functions whose values may change although the row does not change. */
function refuseUnfixed(select: BoundSelect, node: SelectFromStatement): void {
  for (const call of volatileCalls(select)) {
    const { name } = call;
    if (FIXED_FUNCTIONS.has(name)) continue;
    const position = startOfCall(node, name);
    // A query that compares a column with the time can be materialised instead.
    if (isClockFunction(name))
      throw new NotRowByRow("the time", { _location: { start: position, end: position } });
    throw unfixedFunction(call, node);
  }
}

/** A function call. */
export type CallExpression = Extract<BoundExpression, { kind: "call" }>;

/**
 * Creates the error for a function whose value may change although no row changes.
 *
 * @param caller Whether an aggregate calls the function.
 */
export function unfixedFunction(
  { name, program }: Pick<CallExpression, "name" | "program">,
  node: AstNode,
  caller?: "aggregate",
): DatabaseError {
  const position = startOfCall(node, name);
  if (name === TABLE_SAMPLE) {
    return new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot subscribe to a query with TABLESAMPLE: another sample would have other rows",
      { position, hint: "write a condition on a column in place of TABLESAMPLE" },
    );
  }
  if (program === undefined) {
    return new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot subscribe with function ${name}: its value would change even if the row does not`,
      { position, hint: hintFor(name) },
    );
  }
  const { namespace, routine } = program.entry;
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot subscribe with function ${namespace}.${routine.name}: it runs as a program, and the ` +
      "server does not know which tables a program reads",
    {
      position,
      hint:
        caller === "aggregate"
          ? "declare the function IMMUTABLE if it reads no tables"
          : "write the function in SQL, as a single expression or query",
    },
  );
}

function hintFor(name: string): string {
  return isClockFunction(name)
    ? "compare it with a column, as in WHERE at > NOW() - INTERVAL '1 hour', or pass the value " +
        "as a parameter"
    : "pass the value as a parameter";
}

/**
 * Returns the position of a call in a query, or the position of the query if it contains no call
 * by this name.
 */
function startOfCall(node: AstNode, name: string): number {
  for (const part of partsOf([node])) {
    const { function: called, keyword, type, _location: at }: SyntaxPart = part;
    const isCall = type === "call" && called?.name === name;
    const isKeyword = type === "keyword" && keyword === name;
    if ((isCall || isKeyword) && at !== undefined) return at.start;
  }
  return node._location.start;
}

/** Returns the functions in a query whose results depend on more than their arguments. */
function volatileCalls({ outputs, where }: BoundSelect): CallExpression[] {
  const calls: CallExpression[] = [];
  const visit = (expression: BoundExpression): void => {
    const isCall = expression.kind === "call";
    if (isCall && expression.volatility !== "immutable") calls.push(expression);
    for (const child of childrenOf(expression)) visit(child);
  };
  for (const { expression } of outputs) visit(expression);
  if (where !== undefined) visit(where);
  return calls;
}

/**
 * Adds the primary key and `_seq` to the fields, because every row must contain them. Rejects
 * aliases that hide these columns.
 */
function withIdentity(
  selected: readonly BoundOutput[],
  { columns, table }: Extract<BoundRelation, { kind: "table" }>,
  node: AstNode,
): BoundOutput[] {
  const outputs = [...selected];
  for (const column of columns) {
    const columnId = column.origin?.columnId ?? 0;
    if (!table.primaryKey.includes(columnId) && columnId !== SEQ_COLUMN_ID) continue;
    const expression: BoundExpression = columnValue(column);
    const sameName = outputs.filter(({ name }) => name === column.name);
    if (sameName.some((output) => !sameExpression(output.expression, expression))) {
      throw refused(`an alias that hides column "${column.name}"`, node);
    }
    if (sameName.length === 0) outputs.push({ name: column.name, expression });
  }
  requireFreeNames(selected, table, node);
  const names = new Set<string>();
  for (const { name } of outputs) {
    if (names.has(name)) throw refused(`two columns named "${name}"`, node);
    names.add(name);
  }
  return outputs;
}

/** Rejects aliases that clash with the fields of a message about a deleted row. */
function requireFreeNames(
  selected: readonly BoundOutput[],
  { primaryKey }: TableEntry,
  node: AstNode,
): void {
  for (const { expression, name } of selected) {
    const origin = expression.kind === "column" ? expression.column.origin : undefined;
    const isOther = name === "_deleted" && origin?.columnId !== DELETED_COLUMN_ID;
    // In a table without a primary key, a deleted row is identified by the seq of its insertion.
    if (isOther || (name === "_row_seq" && primaryKey.length === 0)) {
      throw refused(`an alias that hides column "${name}"`, node);
    }
  }
}

/** Finds a condition `column = constant` that every matching row satisfies. */
function equalityOf(
  select: BoundSelect,
  {
    compiled,
    context,
  }: { compiled: (expression: BoundExpression) => CompiledExpression; context: ExecutionContext },
): LiveEquality | undefined {
  const conjuncts = conjunctsOf(select.where);
  for (const condition of conjuncts) {
    const found = equalityIn(condition);
    if (found === undefined || found.columnId < 0) continue;
    context.checkTime();
    const value = compileScalar(found.value)(context);
    if (value === null) continue;
    const key = groupKeyOf(found.value.type, value);
    if (typeof key === "string" || typeof key === "number") {
      if (key !== value) continue;
      const others = conjunctionOf(conjuncts.filter((each) => each !== condition));
      const rest = others === undefined ? undefined : compiled(others);
      return { columnId: found.columnId, value: key, rest };
    }
  }
  return undefined;
}

/**
 * Returns a string that identifies everything on which the messages of a query depend: its SQL,
 * its parameters, the policies that apply and, if the rows depend on the caller, the caller.
 */
export function fingerprintOf(
  { params, sql, way }: LiveRequest,
  namespace: string,
  {
    caller,
    requirements,
  }: { readonly caller: Principal | undefined; readonly requirements: readonly Requirement[] },
): string {
  const identity = caller === undefined ? [] : [caller.userId, caller.role, ...claimsOf(caller)];
  const policies = requirements.flatMap((each) =>
    each.action === "rows" ? [[each.table.tableId, each.policies ?? null]] : [],
  );
  const rules = policies.length === 0 ? [] : [{ policies }];
  return shortKey(
    JSON.stringify([
      namespace,
      sql.trim(),
      shortParameters(params),
      way ?? null,
      ...identity,
      ...rules,
    ]),
  );
}

/** Returns a short string that differs between callers with different token claims. */
export function claimsKeyOf({ claims = {} }: Principal): string {
  const named = Object.entries(claims).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return digestKey(JSON.stringify(named));
}

function claimsOf({ claims }: Principal): readonly unknown[] {
  return claims === undefined ? [] : [claims];
}

/**
 * Copies of principals, each with an owner number. The subscriptions of a connection have the same
 * principal, and thus share a copy.
 */
const OWNED = new WeakMap<Principal, { readonly catalog: Catalog; readonly owned: Principal }>();

/**
 * Assigns an owner number to a user who subscribes to their own rows. Without an owner number, the
 * user's first row would not be delivered.
 */
export function withOwner(catalog: Catalog, principal: Principal): Principal {
  if (principal.owner !== undefined) return principal;
  const known = OWNED.get(principal);
  if (known?.catalog === catalog) return known.owned;
  const owner = catalog.accounts.ownerNumber(principal.userId, { create: true });
  const owned = { ...principal, owner };
  OWNED.set(principal, { catalog, owned });
  return owned;
}
