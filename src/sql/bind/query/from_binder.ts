/**
 * Binds FROM: tables, system views, derived tables and literal rows. `join_binder.ts` joins the
 * bound items.
 *
 * All tables of a query are bound here, so this file records the right to read each table, and
 * adds the conditions of the table's policies.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type ColumnEntry, shownColumnsOf, type TableEntry } from "../../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import { BIGINT, BOOLEAN, type DataType, domainsIn } from "../../../types/mod.ts";
import type {
  AstNode,
  From,
  FromCall,
  FromGroup,
  FromRows,
  FromStatement,
  FromTable,
  Name,
  QName,
} from "../../parse/ast/ast.ts";
import { relocated } from "../../parse/ast/tree_parts.ts";
import {
  type CallableRoutine,
  type ExpressionContext,
  notAvailable,
  type StatementBinding,
} from "../binding.ts";
import type { BoundRelation, BoundSelect, PastRead } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue, selectFrom } from "../bound_nodes.ts";
import { castTo } from "../expression/casts.ts";
import { checkedWhole } from "../expression/domains.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { refuseOnly } from "../only_tables.ts";
import { noteRight } from "../row_rights.ts";
import { type RelationNode, Scope, type ScopeRelation } from "../scope.ts";
import { conjunctionOf } from "../walk.ts";
import { bindChanges, isChangesCall } from "./changes_binder.ts";
import { OuterReferences } from "./correlation.ts";
import { type FromResult, joined, product } from "./join_binder.ts";
import { groupsBeside } from "./lateral_groups.ts";
import { bindPast, requireNow } from "./past_binder.ts";
import { withRecordColumns } from "./record_columns.ts";
import { routineRelation } from "./routine_calls.ts";
import {
  proceduresOf,
  type RoutineCall,
  resolveRoutine,
  routinesOf,
  withoutOutputs,
} from "./routine_resolution.ts";
import { noteRows, storedRule } from "./row_rules.ts";
import { boundSample, refuseSample } from "./sample_binder.ts";
import {
  boundNow,
  type CteEntry,
  enterStored,
  queriesAround,
  type RelationSource,
  type SelectDeps,
  type ViewRelation,
} from "./select_deps.ts";
import { bindCallItem, type CallColumn, definedColumn } from "./table_function_binder.ts";
import { constantTableOid, partitionOid } from "./table_oid.ts";
import { bindValues } from "./values_binder.ts";
import { findEntry, relationOfEntry } from "./with_binder.ts";

/**
 * Binds a flat list of FROM items in small steps. An item with `join` is joined with everything
 * since the last comma.
 */
export function* bindFrom(items: readonly From[], deps: SelectDeps): Generator<void, FromResult> {
  const [first] = items;
  if (first !== undefined) deps.statement.noteSources(items.length, first);
  let whole: FromResult | undefined;
  let around: OuterReferences | undefined;
  let current: FromResult | undefined;
  for (const item of items) {
    if (item.join !== undefined && current !== undefined) {
      const outerReferences = isLateral(item)
        ? outerReferencesOf(current.scope, withOuter(deps, around))
        : undefined;
      const inner = outerReferences === undefined ? deps : withOuter(deps, outerReferences);
      const right = holdsQuery(item) ? yield* bindNested(item, inner) : bindSource(item, inner);
      current = joinedItem(current, right, { item, outerReferences, deps });
      continue;
    }
    if (item.join !== undefined) throw notAvailable(item, "a join without a left side");
    if (current !== undefined) {
      whole = beside(whole, current, { around, statement: deps.statement });
      around = outerReferencesOf(whole.scope, deps);
    }
    const inner = isLateral(item) ? withOuter(deps, around) : deps;
    current = holdsQuery(item) ? yield* bindNested(item, inner) : bindSource(item, inner);
  }
  if (current === undefined)
    throw new DatabaseError("INVALID_QUERY", "Cannot read from an empty FROM clause");
  return beside(whole, current, { around, statement: deps.statement });
}

/**
 * Adds a FROM item that follows a comma. A LATERAL item may read the columns of the items before
 * it.
 */
function beside(
  whole: FromResult | undefined,
  current: FromResult,
  { around, statement }: { around: OuterReferences | undefined; statement: StatementBinding },
): FromResult {
  return whole === undefined
    ? current
    : withOuterReferences(product(whole, current), around, statement);
}

/** Joins a FROM item to the items before it, as far back as the last comma. */
function joinedItem(
  left: FromResult,
  right: FromResult,
  {
    outerReferences,
    item,
    deps,
  }: { item: From; outerReferences: OuterReferences | undefined; deps: SelectDeps },
): FromResult {
  const { join: clause } = item;
  if (clause === undefined) throw notAvailable(item, "a join of unknown type");
  if (outerReferences === undefined) return joined(left, right, { clause, deps });
  const isOpen = clause.type === "RIGHT JOIN" || clause.type === "FULL JOIN";
  if (isOpen && outerReferences.list.length > 0) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use LATERAL in a ${clause.type}: the right-hand side may have to return rows for ` +
        "which the left-hand side has none",
      { position: item._location.start, hint: "write LEFT JOIN LATERAL or CROSS JOIN LATERAL" },
    );
  }
  return withOuterReferences(
    joined(left, right, { clause, deps }),
    outerReferences,
    deps.statement,
  );
}

/** Whether a FROM item may read the items before it. A function may do so even without LATERAL. */
function isLateral(item: From): boolean {
  switch (item.type) {
    case "call":
    case "rows from":
      return true;
    case "statement":
      return item.lateral === true;
    default:
      return false;
  }
}

function outerReferencesOf(scope: Scope, deps: SelectDeps): OuterReferences {
  const { statement } = deps;
  const queries = queriesAround(deps);
  return new OuterReferences({ statement, scope, clause: "LATERAL", sink: undefined, ...queries });
}

function withOuter(deps: SelectDeps, outer: OuterReferences | undefined): SelectDeps {
  return outer === undefined ? deps : { ...deps, outer };
}

function withOuterReferences(
  result: FromResult,
  outerReferences: OuterReferences | undefined,
  statement: StatementBinding,
): FromResult {
  const { from } = result;
  if (outerReferences === undefined || outerReferences.list.length === 0 || from.kind !== "join")
    return result;
  const lateral = { ...from, outerReferences: outerReferences.list };
  return { ...result, from: { ...lateral, asGroups: groupsBeside(lateral, statement) } };
}

type Nested = FromStatement | FromGroup;

function holdsQuery(item: From): item is Nested {
  return item.type === "statement" || item.type === "from group";
}

function bindNested(item: Nested, deps: SelectDeps): Generator<void, FromResult> {
  return item.type === "statement" ? bindDerived(item, deps) : bindGroup(item, deps);
}

/**
 * Binds a FROM item that contains no query. It does not yield, because yielding costs more than
 * binding a table.
 */
function bindSource(item: Exclude<From, Nested>, deps: SelectDeps): FromResult {
  return item.type === "table" ? bindTable(item, deps) : bindFunction(item, deps);
}

/**
 * Binds a join in parentheses. If it has an alias, its columns are visible outside, but its tables
 * are not.
 */
function* bindGroup(item: FromGroup, deps: SelectDeps): Generator<void, FromResult> {
  const { from, scope } = yield* bindFrom(item.from, deps);
  const { alias, columnNames } = item;
  if (alias === undefined) return { from, scope };
  const names = renamed(scope.visible, columnNames, item);
  const columns = scope.visible.map((column, i) => renamedColumn(column, names[i]?.name));
  return { from, scope: new Scope([{ alias, namespace: undefined, columns, systemColumns: [] }]) };
}

function bindFunction(item: FromCall | FromRows, deps: SelectDeps): FromResult {
  if (item.type === "call" && isChangesCall(item)) {
    const relation = bindChanges(item, deps);
    const { alias, columns } = relation;
    return relationResult(relation, { alias, namespace: undefined, columns, systemColumns: [] });
  }
  const name = item.type === "call" ? item.function.name : "ROWS FROM";
  const context = barePlace(deps, `the arguments of ${name}`);
  if (item.type === "call" && item.withOrdinality !== true) {
    const routines =
      item.isProcedure === true ? proceduresOf(item, context) : routinesOf(item, context);
    if (routines !== undefined) return bindRoutine(item, routines, { context, deps });
  }
  const tableNamed = (node: QName): TableEntry => {
    const table = deps.source.table(node, node);
    noteRead(table, deps);
    return table;
  };
  const call = item.type === "call" ? withRecordColumns(item, tableNamed) : item;
  const bound = bindCallItem(call, { context, bind: bindExpression });
  const first = item.type === "call" ? item : item.calls[0];
  const alias = item.alias?.name ?? first?.function.name ?? name;
  const columns = renamed(bound.columns, item.alias?.columns, item).map((column) =>
    deps.statement.newColumn(column),
  );
  const { functions, isValue } = bound;
  const hasOrdinality = item.withOrdinality === true;
  return relationResult(
    checkedCall(
      { kind: "function", functions, hasOrdinality, alias, columns },
      bound.columns,
      deps.statement,
    ),
    {
      alias,
      namespace: undefined,
      columns,
      systemColumns: [],
      value: isValue ? columns[0] : undefined,
    },
  );
}

/** Binds a call to a user-defined function. */
function bindRoutine(
  item: FromCall,
  routines: readonly CallableRoutine[],
  { context, deps }: { readonly context: ExpressionContext; readonly deps: SelectDeps },
): FromResult {
  const { statement } = deps;
  const made = item.isProcedure === true ? withoutOutputs(item, routines) : item;
  const resolved = resolveRoutine(made, routines, { bind: bindExpression, context });
  const call = withDefinition(resolved, item);
  const mark = (): (() => void) => deps.outer?.mark() ?? (() => undefined);
  const { isRow, query } = routineRelation(call, { context, mark });
  const alias = item.alias?.name ?? item.function.name;
  const given = query.outputs.map(({ expression, name }, i) => ({
    name: (call.columns === undefined ? name : call.columns[i]?.name) ?? alias,
    type: expression.type,
  }));
  const defined = definedColumns(item, resolved, given);
  const columns = renamed(defined, item.alias?.columns, item).map((column) =>
    statement.newColumn(column),
  );
  return relationResult(
    { kind: "query", query: castColumns(query, defined, item), alias, columns },
    {
      alias,
      namespace: undefined,
      columns,
      systemColumns: [],
      value: isRow ? undefined : columns[0],
    },
  );
}

/** Adds the column definitions to a call to a program that returns records. */
function withDefinition(call: RoutineCall, { columnDefinitions }: FromCall): RoutineCall {
  const isOpen = call.callable.program !== undefined && call.columns === undefined;
  if (!isOpen || columnDefinitions === undefined) return call;
  const columns = columnDefinitions.map(definedColumn);
  return { ...call, columns, type: { kind: "row", fields: columns } };
}

/**
 * Returns the columns of a function call in FROM. The call must define them if the function
 * returns records.
 */
function definedColumns(
  { columnDefinitions, _location }: FromCall,
  { callable: { name }, columns }: RoutineCall,
  given: readonly CallColumn[],
): readonly CallColumn[] {
  const details = { position: _location.start };
  if (columns !== undefined) {
    if (columnDefinitions === undefined) return given;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot define the columns of ${name} here: the function itself determines its columns`,
      details,
    );
  }
  if (columnDefinitions === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} without a column definition list: it returns records without fixed ` +
        "columns",
      {
        ...details,
        hint: `add a column definition list, as in ${name}(…) AS x (id INT, name TEXT)`,
      },
    );
  }
  if (columnDefinitions.length === given.length) {
    return columnDefinitions.map(definedColumn);
  }
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot define ${columnDefinitions.length} columns for ${name}: its query returns ` +
      given.length,
    details,
  );
}

/** Casts a query's outputs to the types of the columns through which they are read. */
function castColumns(
  query: BoundSelect,
  columns: readonly CallColumn[],
  node: AstNode,
): BoundSelect {
  const outputs = query.outputs.map(({ expression, name }, i) => {
    const column = columns[i] ?? { type: expression.type };
    const cast = castTo(expression, { to: column.type, mode: "assignment", node });
    return { name, expression: checkedWhole(cast, column) };
  });
  return { ...query, outputs };
}

/** Wraps a function call in a query that checks the values against the domains of the columns. */
function checkedCall(
  call: BoundRelation,
  given: readonly CallColumn[],
  statement: StatementBinding,
): BoundRelation {
  const isChecked = given.some(({ domain, type }) => domain ?? domainsIn(type)[0]);
  if (!isChecked) return call;
  const inner = call.columns.map(({ name, type }) => statement.newColumn({ name, type }));
  const outputs = inner.map((column, at) => {
    const expression = checkedWhole(columnValue(column), given[at] ?? column);
    return { name: column.name, expression };
  });
  const { alias, columns } = call;
  return { kind: "query", alias, columns, query: selectFrom({ ...call, columns: inner }, outputs) };
}

/** Returns a context in which only the columns of enclosing queries are visible. */
function barePlace(deps: SelectDeps, clause: string): ExpressionContext {
  const { statement } = deps;
  return { statement, scope: new Scope([]), clause, sink: undefined, ...queriesAround(deps) };
}

function bindTable(item: FromTable, deps: SelectDeps): FromResult {
  const { source, statement } = deps;
  const entry = findEntry(item, deps);
  if (entry !== undefined) {
    requireNow(item, "a WITH entry");
    refuseSample(item, "a WITH entry");
    return bindEntry(entry, item, deps);
  }
  const { name } = item;
  const namespace = name.schema ?? source.namespace;
  const alias = name.alias ?? name.name;
  const view = source.systemView(namespace, name.name);
  if (view !== undefined) {
    requireNow(item, "a system view");
    refuseSample(item, "a system view");
    const columns = renamed(view.columns, name.columnNames, item).map((column) =>
      statement.newColumn(column),
    );
    const shown = `${namespace}.${name.name}`;
    statement.requirements.push({ action: "read-system", name: shown, view });
    return relationResult(
      { kind: "system", source: view.rows, name: shown, alias, columns },
      {
        alias,
        namespace: name.alias === undefined ? namespace : undefined,
        columns,
        systemColumns: [],
      },
    );
  }
  const stored = source.view(name);
  if (stored !== undefined) {
    requireNow(item, "a view");
    refuseSample(item, stored.partition === undefined ? "a view" : "a partition");
    refuseOnly(name, stored.entry.partition?.partitioned);
    return bindStoredView(stored, item, deps);
  }
  const table = source.table(name, item);
  refuseOnly(name, table.partitioned);
  noteRead(table, deps);
  return tableResult(table, {
    alias,
    isAliased: name.alias !== undefined,
    names: name.columnNames,
    past: bindPast(item, table, deps),
    partsOf: (tableId) => source.partsOf(tableId),
    ruleOf: (columns) => {
      const rule = storedRule({ table, columns, node: item }, ["select"], deps);
      const { sample } = item;
      if (sample === undefined) return rule;
      const context = barePlace(deps, "TABLESAMPLE");
      return conjunctionOf([
        ...(rule === undefined ? [] : [rule]),
        boundSample(sample, { table, columns, context }),
      ]);
    },
    statement,
    node: item,
  });
}

function noteRead(table: TableEntry, deps: SelectDeps): void {
  noteRight(table, deps);
  if (deps.rights.needsRight) noteRows(table, deps);
}

/** Binds a view in FROM. */
export function bindStoredView(view: ViewRelation, item: FromTable, deps: SelectDeps): FromResult {
  const { name } = item;
  const { columns: all, query, shown } = bindView(view, item, deps);
  const names = renamed(shown, name.columnNames, item);
  const alias = name.alias ?? name.name;
  const columns = shown.map((column, i) => renamedColumn(column, names[i]?.name));
  const namespace =
    name.alias === undefined ? view.name.slice(0, view.name.indexOf(".")) : undefined;
  return relationResult(
    { kind: "query", query, alias, columns: all },
    {
      alias,
      namespace,
      columns,
      systemColumns: [],
      fieldNames: name.columnNames && shown.map((column) => column.name),
      tableOid: partitionOidOf(view, shown, { item, deps }),
    },
  );
}

/** Returns a function that binds `tableoid` of a partition; undefined for any other view. */
function partitionOidOf(
  { partition }: ViewRelation,
  shown: readonly BoundColumn[],
  { deps: { source, statement }, item: node }: { item: FromTable; deps: SelectDeps },
): ScopeRelation["tableOid"] {
  if (partition === undefined) return undefined;
  return () => {
    const parts = source.partsOf(partition.tableId, partition.id);
    return partitionOid({ statement, node, parts, columnOf: (column) => named(shown, column) });
  };
}

function named(columns: readonly BoundColumn[], { name }: ColumnEntry): BoundColumn | undefined {
  return columns.find((column) => column.name === name);
}

/** Returns the column of a relation that shows the given stored column. */
function storedIn(
  columns: readonly BoundColumn[],
  { columnId }: ColumnEntry,
): BoundColumn | undefined {
  return columns.find(({ origin }) => origin?.columnId === columnId);
}

function bindEntry(entry: CteEntry, item: FromTable, deps: SelectDeps): FromResult {
  const relation = relationOfEntry(entry, item, deps);
  const names = renamed(relation.columns, item.name.columnNames, item);
  const columns = relation.columns.map((column, i) => renamedColumn(column, names[i]?.name));
  const { alias } = relation;
  return relationResult(relation, { alias, namespace: undefined, columns, systemColumns: [] });
}

function renamedColumn(column: BoundColumn, name: string | undefined): BoundColumn {
  return name === undefined ? column : { ...column, name };
}

export interface TableInScope {
  readonly alias: string;
  readonly isAliased: boolean;
  readonly names?: readonly Name[] | undefined;
  readonly past?: PastRead | undefined;
  readonly partsOf: RelationSource["partsOf"];
  /**
   * Returns the condition that policies impose on the rows of a relation, over the relation's
   * columns; undefined if every row is permitted.
   */
  readonly ruleOf: (columns: readonly BoundColumn[]) => BoundExpression | undefined;
  readonly statement: StatementBinding;
  readonly node: AstNode;
}

/** Returns a stored table as a relation. The required right must already have been recorded. */
export function tableResult(table: TableEntry, options: TableInScope): FromResult {
  const { alias, isAliased, names, node, partsOf, past, ruleOf, statement } = options;
  const shown = shownColumnsOf(table);
  checkNames(names, shown.length, node);
  const columns = shown.map(({ columnId, name, type }, i) =>
    statement.newColumn({ name: names?.[i]?.name ?? name, type, origin: { table, columnId } }),
  );
  const hidden = table.columns.slice(shown.length);
  const allSystemColumns = [
    ...hidden.map(({ columnId, name, type }) =>
      statement.newColumn({ name, type, origin: { table, columnId } }),
    ),
    statement.newColumn({
      name: "_seq",
      type: BIGINT,
      origin: { table, columnId: SEQ_COLUMN_ID },
    }),
    statement.newColumn({
      name: "_deleted",
      type: BOOLEAN,
      origin: { table, columnId: DELETED_COLUMN_ID },
    }),
  ];
  // Tombstones of STREAM tables cannot be read, so these tables have no `_deleted` column.
  const systemColumns = table.kind === "stream" ? allSystemColumns.slice(0, 1) : allSystemColumns;
  return relationResult(
    {
      kind: "table",
      table,
      rowCount: () => statement.statistics.rowsOf(table),
      distinctOf: (columnId) => statement.statistics.distinctOf(table, columnId),
      past,
      rule: ruleOf([...columns, ...systemColumns]),
      alias,
      columns: [...columns, ...systemColumns],
    },
    {
      alias,
      namespace: isAliased ? undefined : table.namespace,
      columns,
      systemColumns,
      fieldNames: names && shown.map(({ name }) => name),
      tableOid: () => {
        if (table.partitioned === undefined) return constantTableOid(table.tableId);
        const parts = partsOf(table.tableId);
        const all = [...columns, ...systemColumns];
        const columnOf = (column: ColumnEntry): BoundColumn | undefined => storedIn(all, column);
        return partitionOid({ statement, node, parts, columnOf });
      },
    },
  );
}

function renamed(
  columns: readonly { readonly name: string; readonly type: DataType }[],
  names: readonly Name[] | undefined,
  node: AstNode,
): { name: string; type: DataType }[] {
  checkNames(names, columns.length, node);
  return columns.map(({ name, type }, i) => ({ name: names?.[i]?.name ?? name, type }));
}

function checkNames(names: readonly Name[] | undefined, count: number, node: AstNode): void {
  if (names === undefined || names.length <= count) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot name ${names.length} columns: the item in FROM has only ${count}`,
    { position: node._location.start, hint: "write at most one name per column" },
  );
}

function relationResult(
  relation: BoundRelation,
  names: Omit<ScopeRelation, "node" | "isOpen">,
): FromResult {
  const node: RelationNode = { kind: "relation", relation };
  return { from: node, scope: new Scope([{ ...names, node }]) };
}

function* bindDerived(item: FromStatement, deps: SelectDeps): Generator<void, FromResult> {
  const alias = item.alias ?? "";
  const { statement } = deps;
  const inScope = (columns: readonly BoundColumn[]): ScopeRelation => ({
    alias,
    namespace: undefined,
    columns,
    systemColumns: [],
  });
  const inner = item.statement;
  if (inner.type === "values" && inner.orderBy === undefined && inner.limit === undefined) {
    const { constants, rows, types } = bindValues(inner, deps);
    const unnamed = types.map((type, i) => ({ name: `column${i + 1}`, type }));
    const columns = renamed(unnamed, item.columnNames, item).map((c) => statement.newColumn(c));
    return relationResult({ kind: "values", rows, constants, alias, columns }, inScope(columns));
  }
  const query = yield* deps.bindInSteps(inner, {
    ...deps,
    isOutermost: false,
    keepsUntyped: false,
  });
  const unnamed = query.outputs.map(({ name, expression }) => ({ name, type: expression.type }));
  const columns = renamed(unnamed, item.columnNames, item).map((c) => statement.newColumn(c));
  return relationResult({ kind: "query", query, alias, columns }, inScope(columns));
}

interface BoundView {
  readonly query: BoundSelect;
  /** The columns of the relation, one per output of the view's query. */
  readonly columns: readonly BoundColumn[];
  /** The columns of the view that are visible to its reader. */
  readonly shown: readonly BoundColumn[];
}

/**
 * Binds the query of a view in FROM as if it were a subquery in parentheses.
 *
 * The query is bound again for each statement that reads the view. It requires the rights of the
 * caller or of the view's owner, and always reads the caller's rows of USER tables.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED, and the errors of its query.
 */
function bindView(view: ViewRelation, item: FromTable, deps: SelectDeps): BoundView {
  const { rights, statement } = deps;
  const { name: viewName, ownRights } = view;
  const viewDepth = enterStored(view, { node: item, kind: "view" }, deps);
  // The view's SQL is not part of the request, so errors in it are reported at the position of the
  // view's name.
  const bind = (): BoundSelect =>
    boundNow(relocated(view.query, item._location), {
      statement,
      source: view.source,
      rights: rights.within(ownRights && { userId: ownRights.owner, view: viewName }),
      bindInSteps: deps.bindInSteps,
      isOutermost: false,
      keepsUntyped: false,
      viewDepth,
    });
  const place = { name: viewName, position: item._location.start };
  const { height, query } = statement.named(bind, place);
  statement.readTower(height);
  const columns = query.outputs.map(({ expression, name }, i) =>
    statement.newColumn({ name: view.columnNames[i] ?? name, type: expression.type }),
  );
  const { shown } = view;
  return {
    query,
    columns,
    shown:
      shown === undefined
        ? columns
        : shown.flatMap((each) => columns.find(({ name }) => name === each) ?? []),
  };
}
