/**
 * FROM: tables, system views, derived tables and literal rows; how two are joined:
 * `join_binder.ts`.
 *
 * A table enters a query here and nowhere else: its right to be read is asked for here.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import { BIGINT, BOOLEAN, type DataType } from "../../../types/mod.ts";
import type {
  AstNode,
  From,
  FromCall,
  FromGroup,
  FromRows,
  FromStatement,
  FromTable,
  Name,
} from "../../parse/ast/ast.ts";
import { notAvailable, type Place, type StatementBinding } from "../binding.ts";
import type { BoundRelation } from "../bound.ts";
import type { BoundColumn } from "../bound_expressions.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { type RelationNode, Scope, type ScopeRelation } from "../scope.ts";
import { Captures } from "./correlation.ts";
import { type FromResult, joined, product } from "./join_binder.ts";
import {
  type CteEntry,
  queriesAround,
  type SelectWorld,
  type ViewRelation,
} from "./select_world.ts";
import { bindCallItem } from "./table_function_binder.ts";
import { bindValues } from "./values_binder.ts";
import { bindView } from "./view_binder.ts";
import { findEntry, relationOfEntry } from "./with_binder.ts";

/**
 * Binds a flat list of FROM items, in small steps: an item with `join` joins everything of its
 * comma item so far.
 */
export function* bindFrom(items: readonly From[], world: SelectWorld): Generator<void, FromResult> {
  const [first] = items;
  if (first !== undefined) world.statement.noteSources(items.length, first);
  let whole: FromResult | undefined;
  let around: Captures | undefined;
  let current: FromResult | undefined;
  for (const item of items) {
    if (item.join !== undefined && current !== undefined) {
      const captures = isLateral(item)
        ? capturesOf(current.scope, withOuter(world, around))
        : undefined;
      const inner = captures === undefined ? world : withOuter(world, captures);
      const right = holdsQuery(item) ? yield* bindNested(item, inner) : bindSource(item, inner);
      current = joinedItem(current, right, { item, captures, world });
      continue;
    }
    if (item.join !== undefined) throw notAvailable(item, "a join without a left side");
    if (current !== undefined) {
      whole = beside(whole, current, around);
      around = capturesOf(whole.scope, world);
    }
    const inner = isLateral(item) ? withOuter(world, around) : world;
    current = holdsQuery(item) ? yield* bindNested(item, inner) : bindSource(item, inner);
  }
  if (current === undefined) throw new DatabaseError("INVALID_QUERY", "Cannot read an empty FROM");
  return beside(whole, current, around);
}

/** A comma item behind those before it, of which LATERAL in it may read. */
function beside(
  whole: FromResult | undefined,
  current: FromResult,
  around: Captures | undefined,
): FromResult {
  return whole === undefined ? current : withCaptures(product(whole, current), around);
}

/** A comma item joined with its next part. */
function joinedItem(
  left: FromResult,
  right: FromResult,
  { captures, item, world }: { item: From; captures: Captures | undefined; world: SelectWorld },
): FromResult {
  const { join: clause } = item;
  if (clause === undefined) throw notAvailable(item, "a join without its kind");
  if (captures === undefined) return joined(left, right, { clause, world });
  const isOpen = clause.type === "RIGHT JOIN" || clause.type === "FULL JOIN";
  if (isOpen && captures.list.length > 0) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot read columns of the left side in LATERAL of a ${clause.type}`,
      { position: item._location.start, hint: "write LEFT JOIN LATERAL or CROSS JOIN LATERAL" },
    );
  }
  return withCaptures(joined(left, right, { clause, world }), captures);
}

/** A function may read the items before it without LATERAL. */
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

function capturesOf(scope: Scope, world: SelectWorld): Captures {
  const { statement } = world;
  const queries = queriesAround(world);
  return new Captures({ statement, scope, clause: "LATERAL", sink: undefined, ...queries });
}

function withOuter(world: SelectWorld, outer: Captures | undefined): SelectWorld {
  return outer === undefined ? world : { ...world, outer };
}

function withCaptures(result: FromResult, captures: Captures | undefined): FromResult {
  const { from } = result;
  if (captures === undefined || captures.list.length === 0 || from.kind !== "join") return result;
  return { ...result, from: { ...from, captures: captures.list } };
}

type Nested = FromStatement | FromGroup;

function holdsQuery(item: From): item is Nested {
  return item.type === "statement" || item.type === "from group";
}

function bindNested(item: Nested, world: SelectWorld): Generator<void, FromResult> {
  return item.type === "statement" ? bindDerived(item, world) : bindGroup(item, world);
}

/** Items without a query inside are bound at once: steps cost more than binding a table. */
function bindSource(item: Exclude<From, Nested>, world: SelectWorld): FromResult {
  return item.type === "table" ? bindTable(item, world) : bindFunction(item, world);
}

/**
 * A join in parentheses: under an alias its tables have no names outside, only its columns have.
 */
function* bindGroup(item: FromGroup, world: SelectWorld): Generator<void, FromResult> {
  const { from, scope } = yield* bindFrom(item.from, world);
  const { alias, columnNames } = item;
  if (alias === undefined) return { from, scope };
  const names = renamed(scope.visible, columnNames, item);
  const columns = scope.visible.map((column, i) => renamedColumn(column, names[i]?.name));
  return { from, scope: new Scope([{ alias, namespace: undefined, columns, systemColumns: [] }]) };
}

function bindFunction(item: FromCall | FromRows, world: SelectWorld): FromResult {
  const name = item.type === "call" ? item.function.name : "ROWS FROM";
  const place = barePlace(world, `the arguments of ${name}`);
  const bound = bindCallItem(item, { place, bind: bindExpression });
  const first = item.type === "call" ? item : item.calls[0];
  const alias = item.alias?.name ?? first?.function.name ?? name;
  const columns = renamed(bound.columns, item.alias?.columns, item).map((column) =>
    world.statement.newColumn(column),
  );
  const { functions, isValue } = bound;
  const hasOrdinality = item.withOrdinality === true;
  return relationResult(
    { kind: "function", functions, hasOrdinality, alias, columns },
    {
      alias,
      namespace: undefined,
      columns,
      systemColumns: [],
      value: isValue ? columns[0] : undefined,
    },
  );
}

/** A place that sees no columns but those around the query. */
function barePlace(world: SelectWorld, clause: string): Place {
  const { statement } = world;
  return { statement, scope: new Scope([]), clause, sink: undefined, ...queriesAround(world) };
}

function bindTable(item: FromTable, world: SelectWorld): FromResult {
  const { source, statement } = world;
  if (item.systemTime !== undefined) throw notAvailable(item, "FOR SYSTEM_TIME");
  const entry = findEntry(item, world);
  if (entry !== undefined) return bindEntry(entry, item, world);
  const { name } = item;
  const namespace = name.schema ?? source.namespace;
  const alias = name.alias ?? name.name;
  const view = source.systemView(namespace, name.name);
  if (view !== undefined) {
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
  if (stored !== undefined) return bindStoredView(stored, item, world);
  const table = source.table(name, item);
  statement.requirements.push({ action: "read", table });
  return tableResult(table, {
    alias,
    isAliased: name.alias !== undefined,
    names: name.columnNames,
    statement,
    node: item,
  });
}

function bindStoredView(view: ViewRelation, item: FromTable, world: SelectWorld): FromResult {
  const { name } = item;
  const { columns: all, query, shown } = bindView(view, item, world);
  const names = renamed(shown, name.columnNames, item);
  const alias = name.alias ?? name.name;
  const columns = shown.map((column, i) => renamedColumn(column, names[i]?.name));
  const namespace =
    name.alias === undefined ? view.name.slice(0, view.name.indexOf(".")) : undefined;
  return relationResult(
    { kind: "query", query, alias, columns: all },
    { alias, namespace, columns, systemColumns: [] },
  );
}

function bindEntry(entry: CteEntry, item: FromTable, world: SelectWorld): FromResult {
  const relation = relationOfEntry(entry, item, world);
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
  readonly statement: StatementBinding;
  readonly node: AstNode;
}

/** A stored table as a relation; the caller has asked for the right it needs. */
export function tableResult(table: TableEntry, options: TableInScope): FromResult {
  const { alias, isAliased, names, node, statement } = options;
  checkNames(names, table.columns.length, node);
  const columns = table.columns.map(({ columnId, name, type }, i) =>
    statement.newColumn({ name: names?.[i]?.name ?? name, type, origin: { table, columnId } }),
  );
  const allSystemColumns = [
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
  // Rows of a STREAM table leave no tombstones that anybody may read.
  const systemColumns = table.kind === "stream" ? allSystemColumns.slice(0, 1) : allSystemColumns;
  return relationResult(
    {
      kind: "table",
      table,
      rowCount: () => statement.statistics.rowsOf(table),
      spanOf: (columnId) => statement.statistics.spanOf(table, columnId),
      alias,
      columns: [...columns, ...systemColumns],
    },
    { alias, namespace: isAliased ? undefined : table.namespace, columns, systemColumns },
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
    `Cannot name ${names.length} columns: there are ${count}`,
    { position: node._location.start },
  );
}

function relationResult(
  relation: BoundRelation,
  { alias, columns, namespace, systemColumns, value }: Omit<ScopeRelation, "node" | "isOpen">,
): FromResult {
  const node: RelationNode = { kind: "relation", relation };
  return {
    from: node,
    scope: new Scope([{ alias, namespace, columns, systemColumns, value, node }]),
  };
}

function* bindDerived(item: FromStatement, world: SelectWorld): Generator<void, FromResult> {
  const alias = item.alias ?? "";
  const { statement } = world;
  const inScope = (columns: readonly BoundColumn[]): ScopeRelation => ({
    alias,
    namespace: undefined,
    columns,
    systemColumns: [],
  });
  const inner = item.statement;
  if (inner.type === "values" && inner.orderBy === undefined && inner.limit === undefined) {
    const { constants, rows, types } = bindValues(inner, world);
    const unnamed = types.map((type, i) => ({ name: `column${i + 1}`, type }));
    const columns = renamed(unnamed, item.columnNames, item).map((c) => statement.newColumn(c));
    return relationResult({ kind: "values", rows, constants, alias, columns }, inScope(columns));
  }
  const query = yield* world.bindInSteps(inner, {
    ...world,
    isOutermost: false,
    keepsUntyped: false,
  });
  const unnamed = query.outputs.map(({ name, expression }) => ({ name, type: expression.type }));
  const columns = renamed(unnamed, item.columnNames, item).map((c) => statement.newColumn(c));
  return relationResult({ kind: "query", query, alias, columns }, inScope(columns));
}
