/**
 * Implements ALTER TABLE of a single partition: the constraints and DEFAULTs that the partition has
 * in addition to those of its table.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type ColumnEntry,
  keyNameOf,
  type PartitionCheck,
  type PartitionDefault,
  type PartitionViewEntry,
  type TableEntry,
} from "../../catalog/mod.ts";
import { columnNamed, nameOf } from "../bind/change/dml_target.ts";
import { partitionsOf, withinPartitions } from "../names/partitions.ts";
import type {
  AlterColumn,
  AlterTableStatement,
  ColumnConstraint,
  ConstraintCheck,
  Name,
  PartitionColumn,
  TableAlteration,
  TableAlterationAddConstraint,
  TableAlterationAlterColumn,
  TableAlterationDropConstraint,
  TableConstraint,
} from "../parse/ast/ast.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { withQualifiedDefault } from "./alter_column.ts";
import type { Alteration } from "./alter_table.ts";
import { type Alterer, Altering } from "./altering.ts";
import { firstStateOf, uniqueOfTable, type WrittenIndex } from "./index_elements.ts";
import {
  withNewestAttached,
  withoutPartitionIndex,
  withPartitionIndex,
} from "./partition_indexes.ts";
import { checkConstraintNames, checkDefault, newCheck } from "./table_elements.ts";
import { constraintNotFound } from "./table_rename.ts";

/** An action of ALTER TABLE that a single partition accepts. */
type PartitionAlteration =
  | (TableAlterationAddConstraint & { readonly constraint: OwnConstraint })
  | TableAlterationAlterColumn
  | TableAlterationDropConstraint;

/** A constraint that a single partition can have. */
type OwnConstraint = Exclude<TableConstraint, { readonly type: "foreign key" }>;

const COLUMN_CHANGES: ReadonlySet<AlterColumn["type"]> = new Set<AlterColumn["type"]>([
  "drop default",
  "drop not null",
  "set default",
  "set not null",
  "set tuning",
]);

/** Whether an action of ALTER TABLE can apply to a single partition. */
function isOfPartition(change: TableAlteration): change is PartitionAlteration {
  switch (change.type) {
    case "add constraint":
      return change.constraint.type !== "foreign key";
    case "alter column":
      return COLUMN_CHANGES.has(change.alter.type);
    default:
      return change.type === "drop constraint";
  }
}

/** Whether all actions of an ALTER TABLE can apply to a single partition. */
export function altersPartition({ changes }: AlterTableStatement): boolean {
  return changes.every(isOfPartition);
}

/**
 * Returns the definition of a table after an ALTER TABLE of one of its partitions.
 * @throws {DatabaseError}
 */
export function alteredPartition(
  { entry, table }: { readonly entry: PartitionViewEntry; readonly table: TableEntry },
  { changes }: AlterTableStatement,
  alterer: Alterer,
): Alteration {
  const { catalog, clock } = alterer.deps;
  const altering = new Altering(table, alterer);
  const partitions = partitionsOf(catalog, table.tableId);
  const change = new PartitionChange(entry, partitions, altering);
  const changed = changes
    .filter(isOfPartition)
    .reduce((next, each) => change.applied(next, each), table);
  const next = changed === table ? undefined : withinPartitions(changed, partitions);
  const schemaVersion = table.schemaVersion + 1;
  const { demands, droppedSequences, marks, referring } = altering;
  const { retyped, rewrites, sequences, validations } = altering;
  const others = { droppedSequences, marks, referring, retyped, rewrites, sequences, validations };
  return {
    next: next && { ...next, schemaVersion, updatedAtMs: clock.nowMs() },
    demands,
    ...others,
  };
}

/** Adds to a table what a single partition has in addition to it. */
export class PartitionChange {
  readonly #entry: PartitionViewEntry;
  /** All partitions of the table, including the changed one. */
  readonly partitions: readonly PartitionViewEntry[];
  readonly #altering: Altering;

  constructor(
    entry: PartitionViewEntry,
    partitions: readonly PartitionViewEntry[],
    altering: Altering,
  ) {
    this.#entry = entry;
    this.partitions = partitions;
    this.#altering = altering;
  }

  /** @throws {DatabaseError} */
  applied(table: TableEntry, change: PartitionAlteration): TableEntry {
    switch (change.type) {
      case "add constraint":
        return this.withConstraint(table, change.constraint);
      case "drop constraint":
        return this.#withoutConstraint(table, change);
      case "alter column":
        return this.#withColumn(table, change);
    }
  }

  /**
   * Returns the table with the constraints and DEFAULTs that CREATE TABLE … PARTITION OF gives to
   * the partition.
   *
   * @throws {DatabaseError}
   */
  withElements(
    table: TableEntry,
    columns: readonly PartitionColumn[],
    constraints: readonly TableConstraint[],
  ): TableEntry {
    const withColumns = columns.reduce((next, { constraints: own, name }) => {
      columnNamed(table, name, "alter");
      return own.reduce((each, constraint) => this.#withElement(each, constraint, name), next);
    }, table);
    return constraints.reduce((next, each) => this.#withElement(next, each), withColumns);
  }

  #withElement(
    table: TableEntry,
    constraint: ColumnConstraint | TableConstraint,
    column?: Name,
  ): TableEntry {
    const columns = column === undefined ? [] : [column];
    switch (constraint.type) {
      case "null":
        return table;
      case "not null":
        return column === undefined ? table : this.withNotNull(table, column);
      case "default": {
        if (column === undefined) return table;
        const { _location, default: expr, source } = constraint;
        const alter = { type: "set default", default: expr, source, _location } as const;
        return this.#withColumn(table, { type: "alter column", column, alter, _location });
      }
      case "check": {
        const { constraintName, source } = constraint;
        const isInherited = table.checks.some(
          ({ name, sql }) => name === constraintName?.name && sql === source,
        );
        return isInherited ? table : this.withCheck(table, constraint, column?.name);
      }
      case "primary key":
      case "unique": {
        const key = "columns" in constraint ? constraint : { ...constraint, columns };
        const type = constraint.type;
        return withNewestAttached(this.withConstraint(table, { ...key, type }), this.partitions);
      }
      case "exclude":
        return withNewestAttached(this.withConstraint(table, constraint), this.partitions);
      default:
        throw new DatabaseError(
          "UNSUPPORTED_FEATURE",
          `Cannot define ${constraint.type} for a single partition: it is not available yet`,
          { position: constraint._location.start, hint: "define it on the partitioned table" },
        );
    }
  }

  /** Returns the table with a constraint of the partition. @throws {DatabaseError} */
  withConstraint(table: TableEntry, constraint: OwnConstraint): TableEntry {
    checkConstraintNames([constraint]);
    if (constraint.type === "check") return this.withCheck(table, constraint);
    if (constraint.type !== "primary key") {
      return uniqueOfTable(constraint).reduce((next, each) => this.withIndex(next, each), table);
    }
    const { _location, columns, constraintName: name, included } = constraint;
    const position = _location.start;
    const key = { columns, included, name, isUnique: true, isConstraint: true } as const;
    const keyed = this.withIndex(table, { ...key, isPrimary: true, position });
    return columns.reduce((next, column) => this.withNotNull(next, column), keyed);
  }

  withCheck(table: TableEntry, check: ConstraintCheck, columnName?: string): TableEntry {
    const { name, viewId } = this.#entry;
    const own = this.#checksIn(table).map((each) => ({ name: each.name, sql: each.own }));
    const checks = [...table.checks, ...own];
    const made = newCheck(check, { ...table, name, checks }, columnName);
    const position = check._location.start;
    this.#altering.demands.push({ kind: "check", name: made.name, viewId, position });
    return this.#withOwnCheck(table, { name: made.name, viewId, own: made.sql, sql: "" });
  }

  withIndex(table: TableEntry, written: WrittenIndex): TableEntry {
    const { catalog, store } = this.#altering.deps;
    const state = firstStateOf(store, table.tableId);
    const about = { catalog, partition: this.#entry, partitions: this.partitions, state };
    return withPartitionIndex(table, written, about);
  }

  withNotNull(table: TableEntry, named: Name): TableEntry {
    const { columnId, name: column, notNull } = columnNamed(table, named, "alter");
    const isKnown = this.#checksIn(table).some((each) => each.notNull === columnId);
    if (notNull || isKnown) return table;
    const { viewId } = this.#entry;
    const name = `${this.#entry.name}_${column}_not_null`;
    const position = named._location.start;
    this.#altering.demands.push({ kind: "check", name, viewId, position });
    const own = `${nameText(column)} IS NOT NULL`;
    return this.#withOwnCheck(table, { name, viewId, own, sql: "", notNull: columnId });
  }

  /** Returns the table with a DEFAULT of the partition; `sql` is undefined for none. */
  withDefault(table: TableEntry, { columnId }: ColumnEntry, sql: string | undefined): TableEntry {
    const { viewId } = this.#entry;
    const { partitionDefaults = [] } = table;
    const others = partitionDefaults.filter(
      (each) => each.viewId !== viewId || each.columnId !== columnId,
    );
    const own: PartitionDefault = { viewId, columnId, ...(sql === undefined ? {} : { sql }) };
    return { ...table, partitionDefaults: [...others, own] };
  }

  /** Returns the checks that the partition has in addition to those of the table. */
  #checksIn({ partitionChecks = [] }: TableEntry): readonly PartitionCheck[] {
    return partitionChecks.filter(({ viewId }) => viewId === this.#entry.viewId);
  }

  #withOwnCheck(table: TableEntry, check: PartitionCheck): TableEntry {
    const partitionChecks = [...(table.partitionChecks ?? []), check];
    return withinPartitions({ ...table, partitionChecks }, this.partitions);
  }

  #withColumn(table: TableEntry, { alter, column: named }: TableAlterationAlterColumn): TableEntry {
    const column = columnNamed(table, named, "alter");
    switch (alter.type) {
      case "set not null":
        return this.withNotNull(table, named);
      case "drop not null":
        return this.#withNull(table, column, named);
      case "set default": {
        const { _location } = alter.default;
        checkDefault(alter.default, column);
        const written = { ...column, defaultSql: alter.source };
        const { defaultSql } = withQualifiedDefault(written, this.#altering, _location.start);
        return this.withDefault(table, column, defaultSql);
      }
      case "drop default":
        return this.withDefault(table, column, undefined);
      default:
        return table;
    }
  }

  #withNull(table: TableEntry, column: ColumnEntry, { _location }: Name): TableEntry {
    const { columnId, name, notNull } = column;
    const own = this.#checksIn(table).find((each) => each.notNull === columnId);
    const key = table.partitionIndexes?.find(
      (each) => each.viewId === this.#entry.viewId && each.isPrimary === true,
    );
    const ids = table.indexes?.find(({ indexId }) => indexId === key?.indexId)?.columnIds ?? [];
    if (ids.includes(columnId)) {
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot allow NULL in column "${name}" of ${this.#entry.namespace}.${this.#entry.name}: ` +
          "it is part of the primary key",
        { position: _location.start },
      );
    }
    if (own !== undefined) return this.#withoutCheck(table, own);
    if (!notNull) return table;
    throw this.#inherited(`allow NULL in column "${name}"`, table, _location.start);
  }

  #withoutCheck(table: TableEntry, check: PartitionCheck): TableEntry {
    return {
      ...table,
      partitionChecks: (table.partitionChecks ?? []).filter((each) => each !== check),
    };
  }

  #withoutConstraint(
    table: TableEntry,
    { constraint, ifExists }: TableAlterationDropConstraint,
  ): TableEntry {
    const { name } = constraint;
    const position = constraint._location.start;
    const { checks, foreignKeys = [], indexes = [], partitionIndexes = [] } = table;
    const check = this.#checksIn(table).find((each) => each.name === name);
    if (check !== undefined) return this.#withoutCheck(table, check);
    const action = `drop constraint "${name}"`;
    const index = partitionIndexes.find(
      (each) => each.viewId === this.#entry.viewId && each.name === name && each.isConstraint,
    );
    if (index?.isAttached === true) throw this.#inherited(action, table, position);
    if (index !== undefined) {
      const { catalog } = this.#altering.deps;
      return withoutPartitionIndex(table, index, { action, catalog, position });
    }
    const unique = indexes.filter(({ isConstraint }) => isConstraint);
    const isInherited =
      keyNameOf(table) === name ||
      [...checks, ...foreignKeys, ...unique].some((each) => each.name === name);
    if (isInherited) throw this.#inherited(action, table, position);
    if (ifExists === true) return table;
    const { name: own, namespace } = this.#entry;
    throw constraintNotFound({ ...table, name: own, namespace }, constraint);
  }

  /** Returns the error for a part of the table that a partition cannot change. */
  #inherited(action: string, table: TableEntry, position: number): DatabaseError {
    const { name, namespace } = this.#entry;
    return new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot ${action} of ${namespace}.${name}: it belongs to ${nameOf(table)}`,
      { position, hint: `run the statement on ${nameOf(table)}` },
    );
  }
}
