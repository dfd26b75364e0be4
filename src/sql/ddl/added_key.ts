/**
 * Implements ADD PRIMARY KEY for a table created without a primary key.
 *
 * The new key is a unique index on columns that become NOT NULL. The store keeps the table's
 * hidden key, so no row is rewritten, and the index is built while other statements write.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { hasHiddenKey, type TableEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { AstNode, Name } from "../parse/ast/ast.ts";
import type { Altering } from "./altering.ts";
import { firstStateOf, withIndex } from "./index_elements.ts";
import { withoutNull } from "./table_elements.ts";

interface AddedKey extends AstNode {
  readonly columns: readonly Name[];
  readonly included?: readonly Name[] | undefined;
  readonly constraintName?: Name | undefined;
}

/**
 * Requires that a primary key can be added to a table.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireNoKey(table: TableEntry, position: number): void {
  const isPrimary = table.indexes?.some((index) => index.isPrimary === true) === true;
  if (hasHiddenKey(table) && !isPrimary) return;
  const isStream = table.kind === "stream";
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot add a primary key to ${nameOf(table)}: ` +
      (isStream
        ? "the primary key of a STREAM table cannot be changed"
        : "the table already has one"),
    {
      position,
      hint: "create a new table with the primary key, and copy the rows with INSERT … SELECT",
    },
  );
}

/**
 * Returns the table with a primary key. If the table contains rows, the index for the key still
 * has to be built.
 *
 * @throws {DatabaseError} INVALID_DEFINITION if the table already has a primary key, and the
 *   errors raised when an index is added.
 */
export function withPrimaryKey(
  table: TableEntry,
  { _location, columns, constraintName, included }: AddedKey,
  altering: Altering,
): TableEntry {
  const { demands, deps } = altering;
  const position = _location.start;
  requireNoKey(table, position);
  const state = firstStateOf(deps.store, table.tableId);
  const written = {
    columns,
    included,
    name: constraintName,
    isUnique: true,
    isConstraint: true,
    isPrimary: true,
    position,
  } as const;
  const { indexes: all = [], ...next } = withIndex(table, written, {
    catalog: deps.catalog,
    state,
  });
  const index = defined(
    all.at(-1),
    "ADD PRIMARY KEY: new index is missing from the table definition",
  );
  const nullable = table.columns.filter(
    ({ columnId, notNull }) => index.columnIds.includes(columnId) && !notNull,
  );
  const madeNotNull = nullable.map(({ columnId }) => columnId);
  for (const columnId of madeNotNull) demands.push({ kind: "not null", columnId, position });
  return {
    ...next,
    columns: table.columns.map((column) =>
      madeNotNull.includes(column.columnId) ? withoutNull(column) : column,
    ),
    indexes: [...all.slice(0, -1), { ...index, madeNotNull }],
  };
}
