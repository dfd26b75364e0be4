/**
 * Implements ALTER TABLE: computes the new catalog entry of a table and the conditions that
 * existing rows must meet. All actions of a statement apply together.
 *
 * Existing rows are rewritten only if a column gets values that differ from row to row
 * (`row_rewrite.ts`). In all other cases, the change takes effect when rows are read: the values
 * of a new column come from its definition, a dropped column is no longer read, a renamed column
 * keeps its id, and older values are converted to a wider type.
 */

import { requireReach } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type ColumnEntry,
  changedTableOptions,
  checkColumnName,
  type ForeignKeyEntry,
  keyNameOf,
  resetTableOptions,
  shownColumnsOf,
  type TableEntry,
  type TriggerEntry,
} from "../../catalog/mod.ts";
import { domainsIn, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { errorInCell } from "../bind/cell_error.ts";
import { columnNamed, isSystemColumn, nameOf } from "../bind/change/dml_target.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import { Scope } from "../bind/scope.ts";
import { isVolatile } from "../bind/walk.ts";
import { compileDefaultSql } from "../execute/build/table_runtime.ts";
import type { ExecutionContext, IncomingReference } from "../execute/context/execution_context.ts";
import { refuseMaterialized } from "../names/materialized_views.ts";
import { withRenamedColumn } from "../names/renamed_columns.ts";
import { columnsTakingFrom } from "../names/sequences.ts";
import { refuseTriggers, triggersNaming, withoutTriggers } from "../names/triggers.ts";
import { requireKnownTypes } from "../names/types.ts";
import type {
  AlterTableStatement,
  ConstraintForeignKey,
  CreateColumnDef,
  DropBehaviour,
  TableAlteration,
  TableAlterationAddColumn,
  TableAlterationAddConstraint,
  TableAlterationDropColumn,
  TableAlterationDropConstraint,
  TableAlterationPopulate,
  TableAlterationRenameColumn,
} from "../parse/ast/ast.ts";
import { type ExecutionDeps, NO_PRINCIPAL, newContext } from "../prepare/statement_context.ts";
import { requireNoKey, withPrimaryKey } from "./added_key.ts";
import { alterColumn, modifyColumn, withQualifiedDefault } from "./alter_column.ts";
import { type Alterer, Altering, type ChangedSequences, type RetypedColumn } from "./altering.ts";
import { requireRewritable } from "./column_type.ts";
import { checksWithout } from "./dropped_checks.ts";
import {
  foreignKeyNamed,
  referencesLosing,
  refuseReferring,
  withForeignKeys,
  withoutForeignKeys,
  withTiming,
} from "./foreign_keys.ts";
import { checkGenerated, generatedFrom } from "./generated_columns.ts";
import {
  firstStateOf,
  uniqueOfColumn,
  uniqueOfTable,
  type WrittenIndex,
  withIndex,
  withoutIndexesOf,
} from "./index_elements.ts";
import { numberingOf } from "./numbered_columns.ts";
import { renamedInIndexes, withoutTableIndex } from "./partition_indexes.ts";
import {
  partitioningsOf,
  requireInherited,
  requireKeysInUnique,
  requireNoPartitionKey,
} from "./partition_keys.ts";
import { holdsRows, type RowDemand } from "./row_inspection.ts";
import type { ColumnRewrite } from "./row_rewrite.ts";
import { requireSameStorage } from "./storage_definitions.ts";
import {
  checkConstraintNames,
  checksOf,
  hasColumn,
  newCheck,
  newColumn,
  optionSettings,
  resetNames,
} from "./table_elements.ts";
import { constraintNotFound, renamedConstraint, renamedTable } from "./table_rename.ts";
import { triggersRenamed, withTriggerSwitch } from "./trigger_definitions.ts";

export interface Alteration extends ChangedSequences {
  /**
   * The names of new foreign keys that are in force, but against which existing rows have not been
   * checked yet.
   */
  readonly validations: readonly string[];
  /** Foreign keys of other tables that the ALTER TABLE also drops. */
  readonly referring: readonly IncomingReference[];
  /** The definition of the altered table; undefined if nothing changes. */
  readonly next: TableEntry | undefined;
  /** Conditions that existing rows must meet. If any row violates them, the ALTER TABLE fails. */
  readonly demands: readonly RowDemand[];
  /** The columns for which the ALTER TABLE rewrites existing rows. */
  readonly rewrites: readonly ColumnRewrite[];
  /** The columns that get a new type and, with it, a new id. */
  readonly retyped: readonly RetypedColumn[];
}

/**
 * Returns the definition of a table after an ALTER TABLE.
 * @throws {DatabaseError}
 */
export function alteredTable(
  table: TableEntry,
  node: AlterTableStatement,
  alterer: Alterer,
): Alteration {
  requireMaterializedChanges(table, node);
  let next = table;
  const altering = new Altering(table, alterer);
  let additions: TableAlterationAddColumn[] = [];
  for (const change of node.changes) {
    if (change.type === "add column") {
      additions.push(change);
      continue;
    }
    next = apply(addColumns(next, additions, altering), change, altering);
    additions = [];
  }
  next = addColumns(next, additions, altering);
  const { changesSequences, demands, droppedSequences, marks, sequences } = altering;
  const { referring, retyped, rewrites, validations } = altering;
  const others = {
    droppedSequences,
    marks,
    referring,
    retyped,
    rewrites,
    sequences,
    validations,
  };
  if (next === table && !changesSequences) return { next: undefined, demands: [], ...others };
  const { catalog } = alterer.deps;
  requireKnownTypes(next, { catalog, position: node._location.start });
  const partitionings = partitioningsOf(next, catalog);
  requireKeysInUnique(next, partitionings, node._location.start);
  // Columns and constraints are part of the schema of a table, whereas options are not.
  const changesSchema =
    next.name !== table.name ||
    next.columns !== table.columns ||
    next.checks !== table.checks ||
    next.foreignKeys !== table.foreignKeys ||
    next.triggers !== table.triggers;
  return {
    next: {
      ...next,
      schemaVersion: table.schemaVersion + (changesSchema ? 1 : 0),
      updatedAtMs: alterer.deps.clock.nowMs(),
    },
    demands,
    ...others,
  };
}

type OtherAlteration = Exclude<TableAlteration, TableAlterationAddColumn>;

function apply(table: TableEntry, change: OtherAlteration, altering: Altering): TableEntry {
  switch (change.type) {
    case "populate":
      return populated(table, change);
    case "drop column":
      return dropColumn(table, change, altering);
    case "rename table":
      return renamedTable(table, change, altering.deps.catalog);
    case "rename constraint":
      return renamedConstraint(table, change, altering.deps.catalog);
    case "alter constraint":
      return withTiming(table, change);
    case "rename column":
      return renameColumn(table, change);
    case "set options": {
      const settings = optionSettings(change.options);
      const options = changedTableOptions(table, settings);
      const position = change._location.start;
      requireSameStorage(altering.deps.catalog, table, { options, position });
      return { ...table, options };
    }
    case "reset options": {
      const options = resetTableOptions(table, resetNames(change));
      const position = change._location.start;
      requireSameStorage(altering.deps.catalog, table, { options, position });
      return { ...table, options };
    }
    case "alter column":
      return alterColumn(table, change, altering);
    case "modify column":
      return modifyColumn(table, change, altering);
    case "add constraint":
      return addConstraint(table, change, altering);
    case "validate constraint": {
      const { isValidated, name } = foreignKeyNamed(table, change.constraint);
      // A copy is a different object, so the table counts as altered although its entry has not
      // changed yet.
      if (!isValidated) altering.validations.push(name);
      return isValidated ? table : { ...table };
    }
    case "drop constraint":
      return dropConstraint(table, change, altering);
    case "enable trigger":
    case "disable trigger":
      return withTriggerSwitch(table, change);
  }
}

/** The changes that ALTER MATERIALIZED VIEW accepts. */
const MATERIALIZED_CHANGES: ReadonlySet<TableAlteration["type"]> = new Set<TableAlteration["type"]>(
  ["populate", "rename column", "rename table", "reset options", "set options"],
);

/**
 * Refuses changes that a materialized view does not support.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
function requireMaterializedChanges(table: TableEntry, { changes }: AlterTableStatement): void {
  const refused = changes.find(({ type }) => !MATERIALIZED_CHANGES.has(type));
  if (refused === undefined) return;
  refuseMaterialized(`run ${refused.type.toUpperCase()} on`, table, refused);
}

function populated(table: TableEntry, { isPopulated }: TableAlterationPopulate): TableEntry {
  const { materialized } = table;
  if (materialized === undefined || materialized.isPopulated === isPopulated) return table;
  return { ...table, materialized: { ...materialized, isPopulated } };
}

/** Adds several columns to a table together, so that existing rows are checked only once. */
function addColumns(
  table: TableEntry,
  additions: readonly TableAlterationAddColumn[],
  altering: Altering,
): TableEntry {
  if (additions.length === 0) return table;
  const { demands } = altering;
  const columns = [...shownColumnsOf(table)];
  const hidden = table.columns.slice(columns.length);
  const checks = [...table.checks];
  const names = new Set(columns.map(({ name }) => name.toLowerCase()));
  const added = new Map<number, CreateColumnDef>();
  let { nextColumnId } = table;
  for (const { column, ifNotExists } of additions) {
    const position = column._location.start;
    const { name } = column.name;
    if (names.has(name.toLowerCase())) {
      if (ifNotExists === true) continue;
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot add column "${name}": the table already has a column with this name`,
        {
          position,
        },
      );
    }
    const isKey = column.constraints?.some(({ type }) => type === "primary key") === true;
    if (isKey) requireNoKey(table, position);
    const made = newColumn(column, { columnId: nextColumnId, kind: table.kind });
    columns.push(withQualifiedDefault(made, altering, position));
    if (made.domain !== undefined || domainsIn(made.type).length > 0) {
      demands.push({ kind: "domain", columnId: nextColumnId, position });
    }
    added.set(nextColumnId, column);
    names.add(name.toLowerCase());
    nextColumnId += 1;
    for (const check of checksOf(column.constraints)) {
      const entry = newCheck(check, { ...table, checks, columns }, name);
      demands.push({ kind: "check", name: entry.name, position });
      checks.push(entry);
    }
  }
  if (nextColumnId === table.nextColumnId) return table;
  const kept = checks.length === table.checks.length ? table.checks : checks;
  const all = [...columns, ...hidden];
  return completed({ ...table, columns: all, checks: kept, nextColumnId }, added, altering);
}

/**
 * Completes added columns with their sequences, the values for existing rows, and their foreign
 * keys.
 */
function completed(
  table: TableEntry,
  added: ReadonlyMap<number, CreateColumnDef>,
  altering: Altering,
): TableEntry {
  const hasRows = holdsRows(altering.deps.store, table.tableId);
  const numberings = [...added].flatMap(([columnId, node]) => numberingOf(node, columnId) ?? []);
  const numbered = altering.numbered(table, numberings);
  const columns = numbered.columns.map((column) => {
    const node = added.get(column.columnId);
    if (node === undefined) return column;
    checkGenerated(numbered, column, node);
    const position = node._location.start;
    if (!hasRows) return column;
    const isNumbered = numberings.some(({ columnId }) => columnId === column.columnId);
    if (column.generatedSql !== undefined || isNumbered) {
      return rewrittenWith(column, { position, altering });
    }
    return withMissing(column, { position, altering });
  });
  const keys = [...added.values()].flatMap(({ constraints = [] }) =>
    constraints.flatMap((each) => (each.type === "foreign key" ? [each] : [])),
  );
  const unique = [...added.values()].flatMap(uniqueOfColumn);
  const indexed = withUnique({ ...numbered, columns }, unique, altering.deps);
  const keyed = [...added.values()].reduce((next, column) => {
    const key = column.constraints?.find(({ type }) => type === "primary key");
    return key === undefined
      ? next
      : withPrimaryKey(next, { ...key, columns: [column.name] }, altering);
  }, indexed);
  return addForeignKeys(keyed, keys, altering);
}

/**
 * Sets the value of a new column in existing rows. The column's default is evaluated only once for
 * all of these rows.
 */
function withMissing(
  column: ColumnEntry,
  { altering, position }: { position: number; altering: Altering },
): ColumnEntry {
  const { domain, name, notNull } = column;
  const defaultSql = column.defaultSql ?? domain?.defaultSql;
  if (defaultSql === undefined) {
    if (!notNull) return column;
    throw new DatabaseError(
      "NOT_NULL_VIOLATION",
      `Cannot add column "${name}": the column is NOT NULL and has no DEFAULT, but the table ` +
        "already contains rows",
      { position, hint: "define a DEFAULT for the column" },
    );
  }
  const context = {
    statement: new StatementBinding([]),
    scope: new Scope([]),
    clause: "DEFAULT",
    sink: undefined,
  };
  if (isVolatile(bindExpression(parseStored(defaultSql, [column]), context))) {
    return rewrittenWith(column, { position, altering });
  }
  const missing = defaultNow(column, compileDefaultSql(defaultSql, column), { altering, position });
  if (missing === null && notNull) {
    throw new DatabaseError(
      "NOT_NULL_VIOLATION",
      `Cannot add column "${name}": the column is NOT NULL, but its DEFAULT is NULL`,
      {
        position,
      },
    );
  }
  return { ...column, missing };
}

/** Marks existing rows for a rewrite that computes a new column from its definition. */
function rewrittenWith(
  column: ColumnEntry,
  { altering, position }: { position: number; altering: Altering },
): ColumnEntry {
  requireRewritable(altering.before, position);
  const { columnId } = column;
  const sequence = altering.sequenceOf(altering.before, columnId);
  altering.rewrites.push({ columnId, compute: undefined, position, sequence });
  return column;
}

function defaultNow(
  { name }: ColumnEntry,
  evaluate: (context: ExecutionContext) => Value,
  { altering, position }: { position: number; altering: Alterer },
): Value {
  const { namespace, principal, deps } = altering;
  const atSeq = deps.store.visibleSeq;
  try {
    return evaluate(newContext(deps, { principal, namespace, slots: [], atSeq }));
  } catch (error) {
    throw errorInCell(error, () => ({ column: name, source: "query" }), position);
  }
}

function dropColumn(
  table: TableEntry,
  change: TableAlterationDropColumn,
  altering: Altering,
): TableEntry {
  const { behaviour, column: named, ifExists } = change;
  const { name, _location } = named;
  const position = _location.start;
  const isMissing = table.columns.every((entry) => entry.name !== name) && !isSystemColumn(name);
  if (ifExists === true && isMissing) return table;
  const column = columnNamed(table, named, "alter");
  requireNoPartitionKey(table, column, { ...altering.deps, action: "drop", position });
  if (table.primaryKey.includes(column.columnId)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot drop column "${name}": it is part of the primary key`,
      {
        position,
      },
    );
  }
  if (shownColumnsOf(table).length === 1) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot drop column "${name}": it is the only column of the table`,
    );
  }
  const generated = generatedFrom(table, name);
  if (generated.length > 0 && behaviour !== "cascade") {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop column "${name}": it is read by ${counted(generated.length, "generated column")}`,
      { position, hint: "add CASCADE to drop the generated columns as well" },
    );
  }
  if (generated.length > 0) {
    // The generated columns may be dropped in any order, because none is computed from another.
    const without = generated.reduce((next, { name: each }) => {
      const dropped = {
        type: "drop column",
        behaviour,
        column: { name: each, _location },
      } as const;
      return dropColumn(next, { ...dropped, _location }, altering);
    }, table);
    return dropColumn(without, change, altering);
  }
  const { checks, partitionChecks } = checksWithout(table, name, change);
  const { columnId } = column;
  const dropped = droppedTriggers(table, column, change);
  const unreferring = withoutForeignKeys(withoutIndexesOf(table, columnId), ({ columnIds }) =>
    columnIds.includes(columnId),
  );
  const action = `drop column "${name}"`;
  const kept = withoutReferring(unreferring, { action, altering, behaviour, position });
  dropOwnSequence(table, column, { altering, position });
  return {
    ...withoutTriggers(kept, dropped),
    columns: table.columns.filter((entry) => entry !== column),
    checks,
    ...(partitionChecks && { partitionChecks }),
  };
}

/**
 * Returns the triggers that are dropped with a column.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
function droppedTriggers(
  table: TableEntry,
  { columnId, name }: ColumnEntry,
  { behaviour, column }: TableAlterationDropColumn,
): readonly TriggerEntry[] {
  const dropped = triggersNaming(table, columnId);
  if (behaviour === "cascade") return dropped;
  const placed = dropped.map((trigger) => ({ table, trigger }));
  refuseTriggers(`drop column "${name}"`, placed, { position: column._location.start });
  return dropped;
}

/**
 * Removes foreign keys that need a dropped index, both from the table itself and from other
 * tables.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS without CASCADE; PERMISSION_DENIED if the caller's
 *   token excludes a table with such a key.
 */
function withoutReferring(
  next: TableEntry,
  {
    action,
    altering,
    behaviour,
    position,
  }: {
    action: string;
    altering: Altering;
    behaviour: DropBehaviour | undefined;
    position: number;
  },
): TableEntry {
  const dropped = new Set(altering.referring.map(({ key }) => key));
  const losing = referencesLosing(next, altering.deps.catalog).filter(
    ({ key }) => !dropped.has(key),
  );
  const children = losing.map(({ child }) => child);
  const altered = `alter table ${next.namespace}.${next.name}`;
  requireReach(altering.principal, children, { action: altered, position });
  if (behaviour !== "cascade") refuseReferring(action, losing, position);
  const isOwn = ({ child }: IncomingReference): boolean => child.tableId === next.tableId;
  altering.referring.push(...losing.filter((each) => !isOwn(each)));
  const own = new Set(losing.filter(isOwn).map(({ key }) => key));
  return withoutForeignKeys(next, (key) => own.has(key));
}

/**
 * Drops the sequence that a column owns.
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
function dropOwnSequence(
  table: TableEntry,
  { columnId, name }: ColumnEntry,
  { altering, position }: { altering: Altering; position: number },
): void {
  const sequence = altering.sequenceOf(table, columnId);
  if (sequence === undefined) return;
  const others = columnsTakingFrom(altering.deps.catalog, [sequence]).filter(
    (each) => each.table.tableId !== table.tableId || each.columnId !== columnId,
  );
  if (others.length > 0) {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop column "${name}": the DEFAULT of ${counted(others.length, "other column")} ` +
        "uses its sequence",
      { position, hint: "drop these DEFAULTs first, with ALTER COLUMN … DROP DEFAULT" },
    );
  }
  altering.dropSequence(sequence);
}

function renameColumn(
  table: TableEntry,
  { column: from, to }: TableAlterationRenameColumn,
): TableEntry {
  const column = columnNamed(table, from, "alter");
  if (from.name === to.name) return table;
  checkColumnName(to.name, {
    position: to._location.start,
    isQuoted: !/^[a-z_][a-z0-9_$]*$/.test(to.name),
  });
  if (
    hasColumn(
      table.columns.filter((entry) => entry !== column),
      to.name,
    )
  ) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot rename the column to "${to.name}": the table already has a column with this name`,
      {
        position: to._location.start,
      },
    );
  }
  return {
    ...table,
    columns: table.columns.map((entry) => {
      const renamed = entry === column ? { ...entry, name: to.name } : entry;
      const { generatedSql } = renamed;
      if (generatedSql === undefined) return renamed;
      return { ...renamed, generatedSql: withRenamedColumn(generatedSql, from.name, to.name) };
    }),
    checks: table.checks.map((check) => ({
      ...check,
      sql: withRenamedColumn(check.sql, from.name, to.name),
    })),
    ...renamedInIndexes(table, from.name, to.name),
    ...(table.triggers && {
      triggers: triggersRenamed(table.triggers, from.name, to.name),
    }),
  };
}

/** Adds foreign keys. Existing rows are checked later, once the keys are in force. */
function addForeignKeys(
  table: TableEntry,
  nodes: readonly ConstraintForeignKey[],
  altering: Altering,
): TableEntry {
  if (nodes.length === 0) return table;
  const known = table.foreignKeys ?? [];
  const next = withForeignKeys(table, nodes, altering);
  if (!holdsRows(altering.deps.store, table.tableId)) return next;
  const added = (next.foreignKeys ?? []).slice(known.length);
  for (const { isValidated, name } of added) if (isValidated) altering.validations.push(name);
  return { ...next, foreignKeys: [...known, ...added.map(unvalidated)] };
}

function unvalidated(key: ForeignKeyEntry): ForeignKeyEntry {
  return { ...key, isValidated: false };
}

function addConstraint(
  table: TableEntry,
  { constraint, _location }: TableAlterationAddConstraint,
  altering: Altering,
): TableEntry {
  const { demands } = altering;
  const position = _location.start;
  if (constraint.type === "foreign key") return addForeignKeys(table, [constraint], altering);
  checkConstraintNames([constraint]);
  if (constraint.type === "primary key") return withPrimaryKey(table, constraint, altering);
  if (constraint.type !== "check") {
    return withUnique(table, uniqueOfTable(constraint), altering.deps);
  }
  if (table.partitioned !== undefined) requireInherited(table, constraint);
  const check = newCheck(constraint, table);
  demands.push({ kind: "check", name: check.name, position });
  return { ...table, checks: [...table.checks, check] };
}

/** Adds UNIQUE constraints. Their indexes are built once the table has been altered. */
function withUnique(
  table: TableEntry,
  constraints: readonly WrittenIndex[],
  { catalog, store }: ExecutionDeps,
): TableEntry {
  const state = firstStateOf(store, table.tableId);
  return constraints.reduce((next, each) => withIndex(next, each, { catalog, state }), table);
}

function dropConstraint(
  table: TableEntry,
  { behaviour, constraint: { name, _location }, ifExists }: TableAlterationDropConstraint,
  altering: Altering,
): TableEntry {
  const position = _location.start;
  if (name === keyNameOf(table)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot drop constraint "${name}": table ${nameOf(table)} was created with this ` +
        "primary key",
      {
        position,
        hint: "create a new table without the primary key, and copy the rows with INSERT … SELECT",
      },
    );
  }
  const without = withoutForeignKeys(table, (key) => key.name === name);
  if (without !== table) return without;
  const checks = table.checks.filter((check) => check.name !== name);
  if (checks.length < table.checks.length) return { ...table, checks };
  const { indexes = [] } = table;
  const dropped = indexes.find((index) => index.isConstraint && index.name === name);
  if (dropped !== undefined) {
    const { catalog } = altering.deps;
    const next = withoutTableIndex(table, dropped, { catalog, position });
    const action = `drop constraint "${name}"`;
    return withoutReferring(next, { action, altering, behaviour, position });
  }
  if (ifExists === true) return table;
  throw constraintNotFound(table, { name, _location });
}

/** Returns a context for evaluating expressions that depend neither on a row nor on the caller. */
export function definitionContext(deps: ExecutionDeps): ExecutionContext {
  return newContext(deps, {
    principal: NO_PRINCIPAL,
    namespace: "default",
    slots: [],
    atSeq: deps.store.visibleSeq,
  });
}
