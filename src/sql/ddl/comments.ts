/**
 * Executes COMMENT ON, which stores a comment in the catalog entry of an object. A comment is not
 * part of a table's schema, so it neither raises the schema version nor ends any live query.
 */

import { type Principal, requireAlter, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import { type Catalog, keyNameOf, shownColumnsOf, type TableEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { findFunction } from "../names/functions.ts";
import { requireMaterialized } from "../names/materialized_views.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { findSequence } from "../names/sequences.ts";
import {
  findNamespace,
  findTable,
  requireHolder,
  visibleTable,
  visibleView,
} from "../names/table_names.ts";
import { findType } from "../names/types.ts";
import type { CommentStatement, Name } from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import { functionPlace } from "./function_definitions.ts";
import { indexNamed, partitionIndexNamed } from "./index_elements.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";

/**
 * The maximum length of a comment, in UTF-16 code units. It is limited because every change to a
 * table stores all of the table's comments again.
 */
const COMMENT_LENGTH_MAX = 10_000;

interface CommentCaller {
  readonly principal: Principal;
  /** The namespace in which COMMENT ON looks up unqualified names. */
  readonly namespace: string;
}

type CommentDeps = BindingDeps & Pick<SqlEnvironment, "catalog" | "clock" | "store">;

type AlteredObject = Pick<CommentStatement, "_location" | "kind" | "name">;

/**
 * Requires that the caller may comment on an object. Every user who may alter an object may
 * comment on it.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeComment(
  node: AlteredObject & { readonly type: string },
  { namespace, principal }: CommentCaller,
  catalog: Catalog,
): void {
  const { kind, name } = node;
  const schema = kind === "namespace" ? name.name : (name.schema ?? namespace);
  const holder = catalog.namespace(schema);
  const table = tableOf(node, { namespace: schema, principal }, catalog);
  if (table !== undefined) {
    requireAlter(principal, table, { namespace: holder });
    return;
  }
  const isWhole = kind === "namespace" || kind === "view" || kind === "function";
  requireRun(principal, isWhole ? "removeTable" : "defineTable", {
    action: `run ${node.type.toUpperCase()}`,
    position: node._location.start,
    ...(holder === undefined ? {} : { namespace: holder }),
  });
}

/**
 * Returns the table whose rights apply to a comment. Returns undefined if the comment does not
 * concern a table, or if the table does not exist yet.
 */
function tableOf(
  { kind, name: { name } }: AlteredObject,
  { namespace, principal }: CommentCaller,
  catalog: Catalog,
): TableEntry | undefined {
  switch (kind) {
    case "namespace":
    case "function":
    case "type":
    case "view":
      return undefined;
    case "index":
      return (
        indexNamed(catalog, { namespace, name })?.table ??
        partitionIndexNamed(catalog, { namespace, name })?.table
      );
    case "sequence": {
      const ownedBy = catalog.sequence(namespace, name)?.ownedBy;
      return ownedBy === undefined ? undefined : catalog.tableById(ownedBy.tableId);
    }
    default:
      return visibleTable(catalog, { namespace, name }, principal);
  }
}

/**
 * Binds COMMENT ON against the current catalog.
 * @throws {DatabaseError}
 */
export function commentOn(
  node: CommentStatement,
  caller: CommentCaller,
  deps: CommentDeps,
): BoundDefinition {
  const length = node.comment?.length ?? 0;
  if (length > COMMENT_LENGTH_MAX) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot store the comment: it has ${length} characters, but the maximum is ` +
        COMMENT_LENGTH_MAX,
      { position: node._location.start },
    );
  }
  const change = changeOf(node, caller, deps);
  const { kind, name, part } = node;
  const path = kind === "namespace" ? name.name : `${name.schema ?? caller.namespace}.${name.name}`;
  const what = part === undefined ? `${kind} ${path}` : `${kind} ${part.name} of ${path}`;
  return () => {
    deps.store.requireFreeSpace();
    change();
    return `Comment on ${what} ${textOf(node) === undefined ? "removed" : "set"}`;
  };
}

/**
 * Returns the new comment; undefined if the comment is to be removed. An empty string removes the
 * comment, as in PostgreSQL.
 */
function textOf({ comment }: CommentStatement): string | undefined {
  return comment === "" ? undefined : comment;
}

function changeOf(node: CommentStatement, caller: CommentCaller, deps: CommentDeps): () => void {
  const { catalog } = deps;
  const { kind, name } = node;
  const schema = name.schema ?? caller.namespace;
  const comment = textOf(node);
  switch (kind) {
    case "namespace": {
      const entry = findNamespace(catalog, name.name, name);
      return () => catalog.changeNamespace({ ...entry, comment });
    }
    case "sequence": {
      const entry = findSequence(catalog, name, caller.namespace);
      return () => catalog.changeSequence({ ...entry, comment });
    }
    case "type": {
      const entry = findType(catalog, name, caller.namespace);
      return () => catalog.changeType({ ...entry, comment });
    }
    case "function": {
      const entry = findFunction(name, functionPlace(caller, deps));
      return () => catalog.changeView({ ...entry, comment });
    }
    case "view": {
      deps.systemViews.refuse(name, { ...caller, action: "comment on", ifExists: undefined });
      const entry = visibleView(deps, { namespace: schema, name: name.name }, caller.principal);
      if (entry !== undefined) return () => catalog.changeView({ ...entry, comment });
      return refuseAsView(node, caller, deps);
    }
    case "index": {
      const table = commentedIndex(node, { namespace: schema, name: name.name }, catalog);
      return () => changeTable(table, deps);
    }
    default: {
      const part = kind === "table" ? partitionNamed(name, caller, deps)?.entry : undefined;
      if (part !== undefined) return () => catalog.changeView({ ...part, comment });
      const changed = commentedTable(node, caller, deps);
      return () => changeTable(changed, deps);
    }
  }
}

/**
 * Refuses COMMENT ON VIEW for a table.
 * @throws {DatabaseError} Always.
 */
function refuseAsView(
  { name }: CommentStatement,
  { namespace, principal }: CommentCaller,
  deps: CommentDeps,
): never {
  const table = findTable(deps, name, { namespace, node: name, principal });
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot comment on view ${nameOf(table)}: it is a table; use COMMENT ON TABLE`,
    { position: name._location.start, hint: "use COMMENT ON TABLE" },
  );
}

function commentedIndex(
  node: CommentStatement,
  place: { readonly namespace: string; readonly name: string },
  catalog: Catalog,
): TableEntry {
  const comment = textOf(node);
  const ofPartition = partitionIndexNamed(catalog, place);
  if (ofPartition !== undefined) {
    const { partIndex, table } = ofPartition;
    const { partitionIndexes = [] } = table;
    const at = partitionIndexes.indexOf(partIndex);
    return { ...table, partitionIndexes: partitionIndexes.with(at, { ...partIndex, comment }) };
  }
  const found = indexNamed(catalog, place);
  if (found === undefined) {
    requireHolder(catalog, place.namespace, node.name);
    throw new DatabaseError(
      "OBJECT_NOT_FOUND",
      `Cannot find index ${place.namespace}.${place.name}`,
      {
        position: node.name._location.start,
        hint: "to list the indexes, run SELECT * FROM system.indexes",
      },
    );
  }
  const { index, table } = found;
  return { ...table, indexes: withComment(table.indexes, index.name, comment) ?? [] };
}

/**
 * Returns a copy of the table with a comment on the table itself, on a column or on a constraint.
 *
 * @throws {DatabaseError}
 */
function commentedTable(
  node: CommentStatement,
  { namespace, principal }: CommentCaller,
  deps: CommentDeps,
): TableEntry {
  const { name, part } = node;
  deps.systemViews.refuse(name, {
    namespace,
    principal,
    action: "comment on",
    ifExists: undefined,
  });
  const table = findTable(deps, name, { namespace, node: name, principal });
  const comment = textOf(node);
  if (part === undefined) {
    const isMaterialized = node.kind === "materialized view";
    requireMaterialized(isMaterialized, table, { node: name, verb: "COMMENT ON" });
    return { ...table, comment };
  }
  return node.kind === "column"
    ? withColumnComment(table, part, comment)
    : withConstraintComment(table, part, comment);
}

interface Commented {
  readonly name: string;
  readonly comment?: string | undefined;
}

/**
 * Returns the entries with the comment added to the entry that has the given name; undefined if
 * there is no such entry.
 */
function withComment<Entry extends Commented>(
  entries: readonly Entry[] = [],
  name: string,
  comment: string | undefined,
): Entry[] | undefined {
  const at = entries.findIndex((each) => each.name === name);
  const entry = entries[at];
  return entry === undefined ? undefined : entries.with(at, { ...entry, comment });
}

function withColumnComment(
  table: TableEntry,
  column: Name,
  comment: string | undefined,
): TableEntry {
  const known = shownColumnsOf(table);
  const columns = withComment(known, column.name, comment);
  if (columns !== undefined) {
    return { ...table, columns: [...columns, ...table.columns.slice(known.length)] };
  }
  throw notFound("column", table, { named: column, known });
}

function withConstraintComment(
  table: TableEntry,
  constraint: Name,
  comment: string | undefined,
): TableEntry {
  const { name } = constraint;
  if (name === keyNameOf(table)) {
    return { ...table, keyComment: comment };
  }
  const checks = withComment(table.checks, name, comment);
  if (checks !== undefined) return { ...table, checks };
  const foreignKeys = withComment(table.foreignKeys, name, comment);
  if (foreignKeys !== undefined) return { ...table, foreignKeys };
  const unique = table.indexes?.filter(({ isConstraint }) => isConstraint) ?? [];
  const isUnique = unique.some((each) => each.name === name);
  const indexes = isUnique ? withComment(table.indexes, name, comment) : undefined;
  if (indexes !== undefined) return { ...table, indexes };
  const known = [...table.checks, ...unique, ...(table.foreignKeys ?? [])];
  throw notFound("constraint", table, { named: constraint, known });
}

function notFound(
  kind: "column" | "constraint",
  table: TableEntry,
  { known, named }: { readonly named: Name; readonly known: readonly { readonly name: string }[] },
): DatabaseError {
  const near = nearestName(
    named.name,
    known.map(({ name }) => name),
  );
  return new DatabaseError(
    kind === "column" ? "COLUMN_NOT_FOUND" : "OBJECT_NOT_FOUND",
    `Cannot find ${kind} "${named.name}" on ${nameOf(table)}`,
    {
      position: named._location.start,
      ...(near === undefined ? {} : { hint: `did you mean "${near}"?` }),
    },
  );
}

function changeTable(changed: TableEntry, { catalog, clock, store }: CommentDeps): void {
  catalog.changeTable({ ...changed, updatedAtMs: clock.nowMs() }, store.issueSeq(), {});
}
