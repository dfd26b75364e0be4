/**
 * Implements TRUNCATE, which deletes all rows of the named tables in a single commit, as DELETE
 * does. RESTART IDENTITY also restarts the sequences of their columns.
 *
 * TRUNCATE performs no foreign key actions. It is refused if a table outside its list refers to a
 * table in the list; with CASCADE, the referring table is emptied as well. Referring tables are
 * emptied first, so no row ever refers to a missing row.
 *
 * Subscribers and topics receive the deleted rows, so every row costs a version. In a USER table,
 * TRUNCATE deletes only the caller's own rows.
 */
import { mayRead, type Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { findTable } from "../names/table_names.ts";
import type { DeleteStatement, QName, TruncateStatement } from "../parse/ast/ast.ts";
import { relocated } from "../parse/ast/tree_parts.ts";
import { parseStatements } from "../parse/parser.ts";
import { qnameText, rowsNameText } from "../parse/print/print_expressions.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";
import { type DefiningStatement, isDefining } from "../rights/statement_kinds.ts";

/**
 * Returns a DELETE statement for each table of a TRUNCATE. Its position is that of the table's
 * name.
 */
export function deletesOf({ tables }: TruncateStatement): readonly DeleteStatement[] {
  return tables.map((table) => {
    const [parsed] = parseStatements(`DELETE FROM ${rowsNameText(table)} WHERE TRUE`);
    const node = relocated(
      defined(parsed, "TRUNCATE: SQL text contains no statement"),
      table._location,
    );
    if (node.type !== "delete") throw new Error("TRUNCATE: SQL text is not a DELETE");
    return { ...node, isTruncation: true };
  });
}

/**
 * Returns a TRUNCATE statement extended to every table that it affects, in the order in which the
 * tables are emptied.
 */
export function wholeTruncation(
  node: TruncateStatement,
  { deps, namespace, principal }: { deps: NameDeps; namespace: string; principal: Principal },
): TruncateStatement {
  const found = new Set<TableEntry>();
  const entries = deps.catalog.tables();
  const addReferring = (table: TableEntry, shown: NamedObject): void => {
    for (const each of entries) {
      if (found.has(each) || !refersTo(each, table)) continue;
      if (node.cascade !== true) throw referred(node, shown);
      if (!mayRead(principal, each, deps.catalog.namespace(each.namespace))) {
        throw hiddenReference(node, shown);
      }
      found.add(each);
    }
  };
  const partitions: QName[] = [];
  const named = node.tables.map((each) => {
    const partition = partitionNamed(each, { namespace, principal }, deps);
    if (partition !== undefined) {
      partitions.push({ ...each, schema: partition.entry.namespace });
      return { table: partition.table, shown: partition.entry };
    }
    const table = findTable(deps, each, { namespace, node: each, principal });
    found.add(table);
    return { table, shown: table };
  });
  for (const { shown, table } of named) addReferring(table, shown);
  for (const table of found) addReferring(table, table);
  const tables = childrenFirst([...found]).map(({ name, namespace: schema }) => {
    return { name, schema, _location: node._location };
  });
  return { ...node, tables: [...tables, ...partitions] };
}

/** Orders tables so that, where possible, each table precedes those to which it refers. */
function childrenFirst(tables: readonly TableEntry[]): readonly TableEntry[] {
  const rest = new Set(tables);
  const ordered: TableEntry[] = [];
  while (rest.size > 0) {
    const isFree = (table: TableEntry): boolean =>
      [...rest].every((other) => other === table || !refersTo(other, table));
    // Tables that refer to each other in a cycle have no such order. Their foreign key checks then
    // decide whether the TRUNCATE succeeds.
    const next =
      [...rest].find(isFree) ?? defined([...rest][0], "TRUNCATE: no table is left to order");
    ordered.push(next);
    rest.delete(next);
  }
  return ordered;
}

function refersTo({ foreignKeys = [] }: TableEntry, { tableId }: TableEntry): boolean {
  return foreignKeys.some((key) => key.tableId === tableId);
}

type NamedObject = Pick<TableEntry, "name" | "namespace">;

function referred(
  { _location }: TruncateStatement,
  { name, namespace }: NamedObject,
): DatabaseError {
  return new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot truncate ${namespace}.${name}: a foreign key of a different table references it`,
    {
      position: _location.start,
      hint: "truncate both tables in the same statement, or add CASCADE",
    },
  );
}

/** Returns the error for a table that CASCADE would empty but that the caller may not see. */
function hiddenReference(
  { _location }: TruncateStatement,
  { name, namespace }: NamedObject,
): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot truncate ${namespace}.${name}: a table that you may not read references it`,
    { position: _location.start },
  );
}

/** Returns the statements that restart the sequences of the tables' columns. */
export function restartsOf(
  { tables }: TruncateStatement,
  { deps, namespace, principal }: { deps: NameDeps; namespace: string; principal: Principal },
): readonly DefiningStatement[] {
  return tables.flatMap((name) => {
    if (partitionNamed(name, { namespace, principal }, deps) !== undefined) return [];
    const { tableId } = findTable(deps, name, { namespace, node: name, principal });
    const owned = deps.catalog.sequences().filter(({ ownedBy }) => ownedBy?.tableId === tableId);
    return owned.flatMap((sequence) => {
      const path = qnameText({ ...name, schema: sequence.namespace, name: sequence.name });
      return parseStatements(`ALTER SEQUENCE ${path} RESTART`)
        .map((node) => relocated(node, name._location))
        .filter(isDefining);
    });
  });
}
