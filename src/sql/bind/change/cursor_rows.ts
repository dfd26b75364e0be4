/**
 * Binds `WHERE CURRENT OF cursor` of UPDATE and DELETE, and the queries of cursors.
 *
 * The current row is found by its primary key. A cursor's query therefore returns, after its own
 * columns, the key of each row that may become the current row. The UPDATE or DELETE compares the
 * key of its table with slots, which the runner fills with the key of the cursor's current row.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import type { Row } from "../../../types/mod.ts";
import type { Name } from "../../parse/ast/ast.ts";
import type { StatementBinding } from "../binding.ts";
import type { BoundFrom, BoundRelation, BoundSelect, CursorRow } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { binaryOf } from "../expression/binary_forms.ts";
import { conjunctionOf } from "../walk.ts";
import type { Target } from "./dml_target.ts";

/** A table of a cursor's query whose keys follow the columns of the query. */
interface CursorTable {
  readonly tableId: number;
  /** The position of the table's first key column among all key columns. */
  readonly start: number;
  readonly keyLength: number;
}

/** Which rows of a cursor can be changed with CURRENT OF. */
export interface CursorKeys {
  readonly tables: readonly CursorTable[];
  /** Whether the query of the cursor locks rows, as FOR UPDATE does. */
  readonly isLocking: boolean;
}

/** How a query reads the rows of a cursor. */
export interface CursorReading {
  /**
   * The names of the tables whose rows a locking query locks; undefined if the query does not lock
   * rows.
   */
  readonly locked: readonly string[] | undefined;
}

/** The keys of the rows of a cursor. */
export interface CursorRowKeys extends CursorKeys {
  /** The key columns of each row. */
  readonly rows: readonly Row[];
}

/** Binds the condition of WHERE CURRENT OF. @throws {DatabaseError} UNSUPPORTED_FEATURE */
export function bindCurrentRow(
  cursor: Name,
  { columns, table, view }: Target,
  statement: StatementBinding,
): BoundExpression {
  const position = cursor._location.start;
  if (view !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot use WHERE CURRENT OF with a view: it is not available yet",
      { position, hint: "change the table that the view reads" },
    );
  }
  const key = keyColumnsOf(table, columns);
  if (key === undefined) throw notUpdatable(cursor, table);
  const slot = statement.parameterTypes.length;
  statement.currentRow = { cursor, table, slot };
  const conditions = key.map((column, i): BoundExpression => {
    const right: BoundExpression = { kind: "slot", type: column.type, slot: slot + i };
    const node = { type: "ref", name: column.name, _location: cursor._location } as const;
    return binaryOf({ op: "=", left: columnValue(column), right }, node);
  });
  return defined(conjunctionOf(conditions), "CURRENT OF: key has no columns");
}

/** Adds the keys of the rows that can be changed to the query of a cursor. */
export function withCursorKeys(
  select: BoundSelect,
  { locked }: CursorReading,
): { readonly select: BoundSelect; readonly keys: CursorKeys } {
  const tables: CursorTable[] = [];
  const outputs = [...select.outputs];
  for (const { columns, table } of changeableTables(select, locked)) {
    const key = keyColumnsOf(table, columns);
    if (key === undefined) continue;
    const start = outputs.length - select.outputs.length;
    tables.push({ tableId: table.tableId, start, keyLength: key.length });
    for (const column of key) outputs.push({ name: "", expression: columnValue(column) });
  }
  const keys = { tables, isLocking: locked !== undefined };
  return { select: { ...select, outputs }, keys };
}

type CursorRelation = Extract<BoundRelation, { kind: "table" }>;

/**
 * Returns the tables whose rows can be changed: those that the query locks or, if it locks none,
 * its only table. A row of a grouped query has no current row.
 */
function changeableTables(
  { distinct, expansions, from, isAggregated, windows }: BoundSelect,
  locked: readonly string[] | undefined,
): readonly CursorRelation[] {
  const isPlain = !isAggregated && windows.length === 0 && expansions.length === 0;
  if (from === undefined || !isPlain || distinct !== "none") return [];
  if (locked !== undefined) return tablesIn(from).filter(({ alias }) => locked.includes(alias));
  return from.kind === "relation" ? tablesIn(from) : [];
}

function tablesIn(from: BoundFrom): CursorRelation[] {
  if (from.kind !== "relation") return [...tablesIn(from.left), ...tablesIn(from.right)];
  const { relation } = from;
  return relation.kind === "table" && relation.past === undefined ? [relation] : [];
}

function keyColumnsOf(
  { primaryKey }: TableEntry,
  columns: readonly BoundColumn[],
): readonly BoundColumn[] | undefined {
  const key = primaryKey.flatMap((columnId) => {
    return columns.find(({ origin }) => origin?.columnId === columnId) ?? [];
  });
  return key.length > 0 && key.length === primaryKey.length ? key : undefined;
}

/**
 * Divides the rows of a query into the columns that a cursor returns, and the keys after them.
 *
 * @param width The number of columns that the cursor returns.
 */
export function dividedRows<Cell>(
  rows: readonly (readonly Cell[])[],
  keys: CursorKeys | undefined,
  width: number,
): { readonly shown: readonly (readonly Cell[])[]; readonly keyed: CursorRowKeys } {
  if (keys === undefined || keys.tables.length === 0) {
    return { shown: rows, keyed: { tables: [], isLocking: keys?.isLocking === true, rows: [] } };
  }
  return {
    shown: rows.map((row) => row.slice(0, width)),
    // The query returns keys as values.
    keyed: { ...keys, rows: rows.map((row) => row.slice(width) as Row) },
  };
}

/**
 * Returns the key of a cursor's current row in the table of a statement.
 *
 * @param position The position of the current row, counted from 1.
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function currentKeyOf(
  { cursor, table }: CursorRow,
  { isLocking, rows, tables }: CursorRowKeys,
  position: number,
): Row {
  const [found, ...others] = tables.filter(({ tableId }) => tableId === table.tableId);
  if (found === undefined || others.length > 0) {
    throw notUpdatable(cursor, table, isLocking ? others.length : undefined);
  }
  const row = rows[position - 1];
  if (row === undefined) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot use cursor "${cursor.name}": it is not positioned on a row`,
      { position: cursor._location.start, hint: "run FETCH first", sqlstate: "24000" },
    );
  }
  return row.slice(found.start, found.start + found.keyLength);
}

/** @param lockedCount How often the query locks the table; undefined if it locks no rows. */
function notUpdatable(cursor: Name, table: TableEntry, lockedCount?: number): DatabaseError {
  const reason =
    lockedCount === undefined
      ? "its query is not a simple query of this table"
      : lockedCount === 0
        ? "its query does not lock rows of this table"
        : "its query locks rows of this table under several names";
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change ${table.namespace}.${table.name} at cursor "${cursor.name}": ${reason}`,
    {
      position: cursor._location.start,
      hint: "declare the cursor FOR SELECT … FROM the table, or name it in FOR UPDATE OF",
      sqlstate: "24000",
    },
  );
}
