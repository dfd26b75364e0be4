/** Executes CREATE SEQUENCE, ALTER SEQUENCE and DROP SEQUENCE. */

import { type Principal, requireAlter, requireReach, requireRun } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  checkObjectName,
  type SequenceEntry,
  type SequenceOwner,
} from "../../catalog/mod.ts";
import { columnsTakingFrom, findSequence, type NumberedColumn } from "../names/sequences.ts";
import { findTable, requireHolder } from "../names/table_names.ts";
import type {
  AlterSequenceStatement,
  CreateSequenceStatement,
  DropSequenceStatement,
  QName,
  SequenceDefinition,
  SequenceOption,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import { droppedMessage } from "./dropped_message.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { isRelation } from "./numbered_columns.ts";
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";
import { restartedMark, sequenceShape } from "./sequence_options.ts";
import { renameSequence } from "./sequence_rename.ts";

export type SequenceDefinitionDeps = BindingDeps & RedefinitionDeps & Pick<SqlEnvironment, "clock">;

/**
 * The user who runs a sequence statement, and the namespace in which unqualified names are looked
 * up.
 */
export interface SequenceCaller {
  readonly principal: Principal;
  readonly namespace: string;
}

/**
 * Checks the caller's rights for a sequence statement.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeSequence(
  node: SequenceDefinition,
  { namespace, principal }: SequenceCaller,
  catalog: Catalog,
): void {
  const names = node.type === "drop sequence" ? node.names : [node.name];
  for (const name of names) {
    const schema = name.schema ?? namespace;
    const holder = catalog.namespace(schema);
    const right = node.type === "drop sequence" ? "removeTable" : "defineTable";
    const ownedBy = catalog.sequence(schema, name.name)?.ownedBy;
    const table = ownedBy === undefined ? undefined : catalog.tableById(ownedBy.tableId);
    // If a column owns the sequence, the caller needs the rights that apply to the column's table.
    if (node.type === "alter sequence" && table !== undefined) {
      requireAlter(principal, table, { namespace: holder });
      continue;
    }
    requireRun(principal, right, {
      action: `${node.type} ${schema}.${name.name}`,
      position: node._location.start,
      ...(holder === undefined ? {} : { namespace: holder }),
    });
  }
}

/**
 * Binds CREATE SEQUENCE against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME, INVALID_DEFINITION, …
 */
export function createSequence(
  node: CreateSequenceStatement,
  caller: SequenceCaller,
  deps: SequenceDefinitionDeps,
): BoundDefinition {
  const { catalog, clock, store } = deps;
  const { name, schema = caller.namespace, _location } = node.name;
  const position = _location.start;
  requireHolder(catalog, schema, node.name);
  checkObjectName("sequence", name, { position });
  if (node.ifNotExists === true && catalog.sequence(schema, name) !== undefined) {
    return () => `Sequence ${schema}.${name} already exists`;
  }
  if (isRelation(catalog, schema, name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create sequence ${schema}.${name}: it already exists`,
      { position },
    );
  }
  refuseOption(node.options, "restart", "to set the first number, use START WITH");
  refuseOption(node.options, "sequence name", "write the name after CREATE SEQUENCE");
  const shape = sequenceShape(node.options, "bigint");
  const ownedBy = ownerIn(node.options, { ...caller, namespaceOfSequence: schema }, deps);
  return () => {
    store.requireFreeSpace();
    const nowMs = clock.nowMs();
    catalog.createSequence({
      ...shape,
      sequenceId: catalog.nextTableId(),
      namespace: schema,
      name,
      ...(ownedBy === undefined || ownedBy === "none" ? {} : { ownedBy }),
      ...(node.temporary && { isTemporary: node.temporary }),
      createdBy: caller.principal.userId,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    });
    return `Sequence ${schema}.${name} created`;
  };
}

/**
 * Binds ALTER SEQUENCE against the current catalog.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_DEFINITION, INVALID_OPERATION, …
 */
export function alterSequence(
  node: AlterSequenceStatement,
  caller: SequenceCaller,
  deps: SequenceDefinitionDeps,
): BoundDefinition {
  const { catalog, clock } = deps;
  const { renamedTo: to } = node;
  if (to !== undefined) return renameSequence({ node, to }, caller, deps);
  const { name, schema = caller.namespace } = node.name;
  if (node.ifExists === true && catalog.sequence(schema, name) === undefined) {
    return () => `Sequence ${schema}.${name} does not exist`;
  }
  refuseOption(node.options, "sequence name", "write the name after ALTER SEQUENCE");
  const altered = (): (() => void) => {
    const before = findSequence(catalog, node.name, caller.namespace);
    const shape = sequenceShape(node.options, before);
    const mark = restartedMark(node.options, shape, catalog.sequenceMark(before));
    const owner = ownerIn(node.options, { ...caller, namespaceOfSequence: schema }, deps);
    if (owner !== undefined && isIdentity(catalog, before)) throw ownedByIdentity(before, node);
    const { ownedBy, ...rest } = before;
    const kept = owner === undefined ? ownedBy : owner === "none" ? undefined : owner;
    const changed = {
      ...rest,
      ...shape,
      ...(kept === undefined ? {} : { ownedBy: kept }),
      updatedAtMs: clock.nowMs(),
    };
    return () => catalog.changeSequence(changed, mark);
  };
  altered();
  return () => {
    // The new catalog entry is computed again, because other statements may have taken numbers
    // from the sequence in the meantime.
    altered()();
    return `Sequence ${schema}.${name} altered`;
  };
}

/**
 * Binds DROP SEQUENCE against the current catalog.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, DEPENDENT_OBJECTS, INVALID_OPERATION
 */
export function dropSequences(
  node: DropSequenceStatement,
  caller: SequenceCaller,
  deps: SequenceDefinitionDeps,
): BoundDefinition {
  const { catalog } = deps;
  const missing: string[] = [];
  const sequences = node.names.flatMap((name): SequenceEntry[] => {
    const { schema = caller.namespace } = name;
    if (node.ifExists === true && catalog.sequence(schema, name.name) === undefined) {
      missing.push(`${schema}.${name.name}`);
      return [];
    }
    return [findSequence(catalog, name, caller.namespace)];
  });
  for (const sequence of sequences) {
    if (isIdentity(catalog, sequence)) throw ownedByIdentity(sequence, node);
  }
  const dropped = sequences.map((each) => `${each.namespace}.${each.name}`);
  const dependents = (): NumberedColumn[] => columnsTakingFrom(catalog, sequences);
  const action = `drop sequence ${dropped.join(", ")}`;
  const position = node._location.start;
  const reached = (): readonly NumberedColumn[] => {
    const columns = dependents();
    const tables = columns.map(({ table }) => table);
    requireReach(caller.principal, tables, { action, position });
    return columns;
  };
  const numbered = reached();
  if (node.cascade !== "cascade") refuseNumbered(action, numbered, position);
  return () => {
    dropDefaults(deps, reached());
    catalog.dropSequences(sequences);
    return droppedMessage("sequence", { dropped, missing });
  };
}

/**
 * Refuses to drop sequences that DEFAULTs use.
 * @throws {DatabaseError}
 */
export function refuseNumbered(
  action: string,
  columns: readonly NumberedColumn[],
  position: number,
): void {
  const [first] = columns;
  if (first === undefined) return;
  const name = first.table.columns.find(({ columnId }) => columnId === first.columnId)?.name;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${action}: it is used by ${counted(columns.length, "DEFAULT")}, including the ` +
      `DEFAULT of column "${name}" in ${first.table.namespace}.${first.table.name}`,
    { position, hint: "add CASCADE to drop the DEFAULTs as well" },
  );
}

/** Drops temporary sequences at the end of their transaction, and the DEFAULTs that use them. */
export function dropTemporarySequences(deps: RedefinitionDeps): void {
  const { catalog } = deps;
  const dropped = catalog.sequences().filter(({ isTemporary }) => isTemporary === true);
  dropDefaults(deps, columnsTakingFrom(catalog, dropped));
  catalog.dropSequences(dropped);
}

/** Removes the DEFAULTs of the given columns. */
export function dropDefaults(deps: RedefinitionDeps, columns: readonly NumberedColumn[]): void {
  for (const tableId of new Set(columns.map(({ table }) => table.tableId))) {
    const before = deps.catalog.tableById(tableId);
    if (before === undefined) continue;
    const ids = new Set(
      columns.flatMap((each) => (each.table.tableId === tableId ? each.columnId : [])),
    );
    const without = before.columns.map((column) => {
      if (!ids.has(column.columnId)) return column;
      const { defaultSql: _, ...rest } = column;
      return rest;
    });
    const schemaVersion = before.schemaVersion + 1;
    redefineTable(deps, { before, after: { ...before, columns: without, schemaVersion } });
  }
}

function isIdentity(catalog: Catalog, { ownedBy }: SequenceEntry): boolean {
  const table = ownedBy === undefined ? undefined : catalog.tableById(ownedBy.tableId);
  const column = table?.columns.find(({ columnId }) => columnId === ownedBy?.columnId);
  return column?.identity !== undefined;
}

function ownedByIdentity(
  { name, namespace }: SequenceEntry,
  { _location }: AlterSequenceStatement | DropSequenceStatement,
): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot detach sequence ${namespace}.${name} from its column: it belongs to an identity column`,
    {
      position: _location.start,
      hint:
        "to drop the identity together with its sequence, use ALTER TABLE t ALTER COLUMN c DROP " +
        "IDENTITY",
    },
  );
}

function refuseOption(
  options: readonly SequenceOption[],
  name: SequenceOption["type"],
  why: string,
): void {
  const option = options.find(({ type }) => type === name);
  if (option === undefined) return;
  throw new DatabaseError("INVALID_DEFINITION", `Cannot use ${name.toUpperCase()} here: ${why}`, {
    position: option._location.start,
  });
}

/**
 * Returns the column named in OWNED BY; undefined if the statement has no OWNED BY.
 *
 * @throws {DatabaseError}
 */
function ownerIn(
  options: readonly SequenceOption[],
  { namespace, namespaceOfSequence, principal }: SequenceCaller & { namespaceOfSequence: string },
  deps: SequenceDefinitionDeps,
): SequenceOwner | "none" | undefined {
  const option = options.find(({ type }) => type === "owned by");
  if (option?.type !== "owned by") return undefined;
  if (option.column === undefined) return "none";
  const { name, table: named } = option.column;
  const node: QName = named;
  const table = findTable(deps, node, { namespace, node, principal });
  requireAlter(principal, table, { namespace: deps.catalog.namespace(table.namespace) });
  const position = option._location.start;
  if (table.namespace !== namespaceOfSequence) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot make ${table.namespace}.${table.name} the owner of the sequence: both must be in ` +
        "the same namespace",
      { position },
    );
  }
  const column = table.columns.find((each) => each.name === name.name);
  if (column !== undefined) return { tableId: table.tableId, columnId: column.columnId };
  throw new DatabaseError(
    "COLUMN_NOT_FOUND",
    `Cannot find column "${name.name}" in ${table.namespace}.${table.name}`,
    { position },
  );
}
