/** Executes CREATE TYPE and ALTER TYPE, and DROP for all user-defined types. */

import { type Principal, requireReach, requireRun } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Catalog, checkObjectName, type TypeEntry, typeKindOf } from "../../catalog/mod.ts";
import type { EnumLabel, RowField } from "../../types/mod.ts";
import { builtInCollation } from "../bind/expression/collation_names.ts";
import { domainOf, isBuiltInType, resolveType } from "../bind/expression/types.ts";
import { requireHolder } from "../names/table_names.ts";
import {
  columnsOfType,
  findType,
  functionsOfType,
  shownUsers,
  type TypeUser,
  textsNaming,
  textsWithLabel,
  typesHolding,
  used,
} from "../names/types.ts";
import type {
  AddLabel,
  AlterTypeStatement,
  CreateTypeStatement,
  DropTypeStatement,
  FieldNode,
  LabelNode,
  Name,
  QName,
  TypeDefinition,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { droppedMessage } from "./dropped_message.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { isRelation } from "./numbered_columns.ts";
import { requireStorable } from "./table_elements.ts";
import type { TableCall, TableDeps } from "./table_statement.ts";
import { dropColumnsOf, holdersWithout, type TypeHolders } from "./type_columns.ts";

export type TypeDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store">;

/** The user who defines a type, and the namespace in which unqualified names are looked up. */
export interface TypeCaller {
  readonly principal: Principal;
  readonly namespace: string;
}

/** The maximum length of an enum label in bytes, as in PostgreSQL. */
const LABEL_BYTES_MAX = 63;

const LABELS_MAX = 1000;

const TYPE_DEFINITIONS: ReadonlySet<string> = new Set<TypeDefinition["type"]>([
  "alter domain",
  "alter type",
  "create collation",
  "create domain",
  "create type",
  "drop type",
]);

export function isTypeDefinition(node: { readonly type: string }): node is TypeDefinition {
  return TYPE_DEFINITIONS.has(node.type);
}

/**
 * Checks the caller's rights for a type definition.
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeType(
  node: TypeDefinition,
  { namespace, principal }: TypeCaller,
  catalog: Catalog,
): void {
  const isDrop = node.type === "drop type";
  const several = node.type === "create type" ? node.range?.multirange : undefined;
  const defined = node.type === "drop type" ? node.names : [node.name, several ?? node.name];
  for (const { name, schema = namespace } of defined) {
    const holder = catalog.namespace(schema);
    requireRun(principal, isDrop ? "removeTable" : "defineTable", {
      action: `${node.type} ${schema}.${name}`,
      position: node._location.start,
      ...(holder === undefined ? {} : { namespace: holder }),
    });
  }
}

/**
 * Binds CREATE TYPE against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME, INVALID_DEFINITION, LIMIT_EXCEEDED, …
 */
export function createType(
  node: CreateTypeStatement,
  caller: TypeCaller,
  deps: TypeDeps,
): BoundDefinition {
  const valuesOf = (): Pick<TypeEntry, "fields" | "labels"> => {
    if (node.fields !== undefined) return { labels: [], fields: rowFields(node.fields) };
    const labels: EnumLabel[] = [];
    for (const label of node.labels) {
      requireFreeLabel(labels, label, "create");
      labels.push({ label: label.label, position: labels.length + 1 });
    }
    return { labels };
  };
  return defineType(node.name, { ...caller, valuesOf }, deps);
}

interface NewType extends TypeCaller {
  /**
   * Returns the labels, fields or constraints of the new type. It is called only once the type's
   * name is known to be free.
   */
  readonly valuesOf: () => Pick<TypeEntry, "collation" | "domain" | "fields" | "labels">;
}

/**
 * Creates a type or a domain.
 * @throws {DatabaseError} ALREADY_EXISTS, RESERVED_NAME, …
 */
export function defineType(
  target: QName,
  { namespace, principal, valuesOf }: NewType,
  { catalog, clock, store }: TypeDeps,
): BoundDefinition {
  const { name, schema = namespace, _location } = target;
  requireHolder(catalog, schema, target);
  requireFreeName(catalog, { namespace: schema, name, position: _location.start }, "create");
  const values = valuesOf();
  return () => {
    store.requireFreeSpace();
    const nowMs = clock.nowMs();
    catalog.createTypes([
      {
        ...values,
        typeId: catalog.nextTableId(),
        namespace: schema,
        name,
        createdBy: principal.userId,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      },
    ]);
    return `${wordOf(values)} ${schema}.${name} created`;
  };
}

function wordOf({ collation, domain }: Pick<TypeEntry, "collation" | "domain">): string {
  if (collation !== undefined) return "Collation";
  return domain === undefined ? "Type" : "Domain";
}

/**
 * The maximum number of fields in a row type, equal to the maximum number of columns in a table.
 */
const FIELDS_MAX = 1000;

/**
 * Returns the fields of a row type.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, LIMIT_EXCEEDED, UNSUPPORTED_FEATURE
 */
function rowFields(nodes: readonly FieldNode[]): readonly RowField[] {
  const last = nodes[FIELDS_MAX];
  if (last !== undefined) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot define field "${last.name.name}": a type can have at most ${FIELDS_MAX} fields`,
      { position: last._location.start },
    );
  }
  const seen = new Set<string>();
  return nodes.map(({ dataType, name: { _location, name } }) => {
    const position = _location.start;
    if (seen.has(name)) {
      throw new DatabaseError("INVALID_DEFINITION", `Cannot define field "${name}" twice`, {
        position,
      });
    }
    seen.add(name);
    const domain = domainOf(dataType);
    const type = resolveType(dataType);
    requireStorable(type, dataType, "shared");
    return domain === undefined ? { name, type } : { name, type, domain };
  });
}

/**
 * Requires that a name is valid for a type and not in use.
 *
 * @throws {DatabaseError} RESERVED_NAME, ALREADY_EXISTS
 */
export function requireFreeName(
  catalog: Catalog,
  { name, namespace, position }: { namespace: string; name: string; position: number },
  action: "create" | "rename",
  hint?: string,
): void {
  const details = hint === undefined ? { position } : { position, hint };
  checkObjectName("type", name, { position });
  if (isBuiltInType({ name })) {
    throw new DatabaseError(
      "RESERVED_NAME",
      `Cannot use "${name}" as a type name: a built-in type has this name`,
      details,
    );
  }
  if (!isRelation(catalog, namespace, name)) return;
  throw new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot ${action} type ${namespace}.${name}: it already exists`,
    details,
  );
}

/**
 * Requires that an enum label is valid and not in the type yet.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, ALREADY_EXISTS, LIMIT_EXCEEDED
 */
function requireFreeLabel(
  labels: readonly EnumLabel[],
  { _location, label }: LabelNode,
  action: "add" | "create" | "rename",
): void {
  const position = _location.start;
  if (Buffer.byteLength(label) > LABEL_BYTES_MAX || label.includes("\u0000")) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use "${label}" as a label: a label has at most ${LABEL_BYTES_MAX} bytes, and no ` +
        "zero bytes",
      { position },
    );
  }
  if (labels.length >= LABELS_MAX && action !== "rename") {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot define label "${label}": a type can have at most ${LABELS_MAX} labels`,
      { position },
    );
  }
  if (labels.every((each) => each.label !== label)) return;
  throw new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot define label "${label}": the type already has this label`,
    {
      position,
    },
  );
}

/**
 * Binds ALTER TYPE against the current catalog.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_DEFINITION, …
 */
export function alterType(
  node: AlterTypeStatement,
  { namespace, principal }: TypeCaller,
  { catalog, clock, store }: TypeDeps,
): BoundDefinition {
  if (node.isCollation === true && node.change.type === "refresh version") {
    const { name: collation } = node;
    if (builtInCollation(collation) === undefined) findType(catalog, collation, namespace);
    return () => `Collation ${collation.name} has no version`;
  }
  const changed = (): TypeEntry | undefined =>
    alteredType(node, findType(catalog, node.name, namespace), { catalog, principal });
  changed();
  return () => {
    if (node.change.type === "add value") store.requireFreeSpace();
    const { name, namespace: schema } = findType(catalog, node.name, namespace);
    // The altered type is computed again, because another statement may have changed the type in
    // the meantime.
    const entry = changed();
    if (entry === undefined) return `Type ${schema}.${name} already has the label`;
    catalog.changeType({ ...entry, updatedAtMs: clock.nowMs() });
    return `Type ${schema}.${name} altered`;
  };
}

/**
 * Returns the catalog entry of an altered type; undefined if nothing changes.
 * @throws {DatabaseError}
 */
function alteredType(
  { change, isCollation, name: named }: AlterTypeStatement,
  entry: TypeEntry,
  { catalog, principal }: Pick<TypeDeps, "catalog"> & Pick<TypeCaller, "principal">,
): TypeEntry | undefined {
  const { labels } = entry;
  requireCollation(entry, isCollation === true, named._location.start);
  const isDomain = entry.domain !== undefined;
  if (typeKindOf(entry) !== "enum" && change.type !== "rename") {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot change labels of ${entry.namespace}.${entry.name}: it is a ` +
        `${typeKindOf(entry)}${isDomain ? "" : " type"}, not an enum type`,
      { position: change._location.start, hint: isDomain ? "ALTER DOMAIN" : undefined },
    );
  }
  switch (change.type) {
    case "add value": {
      const { ifNotExists, label } = change;
      const isThere = labels.some((each) => each.label === label.label);
      if (isThere && ifNotExists === true) return undefined;
      requireFreeLabel(labels, label, "add");
      return { ...entry, labels: withLabel(labels, change) };
    }
    case "refresh version":
      return undefined;
    case "rename value": {
      const at = labelAt(labels, change.from);
      const { _location, label } = change.from;
      refuseNamed(`label "${label}" of type ${entry.namespace}.${entry.name}`, {
        naming: textsWithLabel(catalog, entry, label),
        principal,
        position: _location.start,
        renamed: "label",
      });
      requireFreeLabel(labels, change.to, "rename");
      const renamed = { position: labels[at]?.position ?? 0, label: change.to.label };
      return { ...entry, labels: labels.with(at, renamed) };
    }
    case "rename": {
      requireRename(change.to, entry, { catalog, principal, kind: "type" });
      return { ...entry, name: change.to.name };
    }
  }
}

/**
 * Requires that a type can be renamed: the new name must be free, and no stored SQL may use the
 * old name.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, RESERVED_NAME, DEPENDENT_OBJECTS
 */
export function requireRename(
  { _location, name }: Name,
  entry: TypeEntry,
  {
    catalog,
    kind,
    principal,
  }: {
    readonly catalog: Catalog;
    readonly principal: Principal;
    readonly kind: "domain" | "type";
  },
): void {
  const { namespace } = entry;
  const position = _location.start;
  requireFreeName(catalog, { namespace, name, position }, "rename");
  const naming = textsNaming(catalog, entry);
  refuseNamed(`${kind} ${namespace}.${entry.name}`, { naming, principal, position, renamed: kind });
}

/**
 * Refuses to rename a type or an enum label that occurs in stored SQL.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS, PERMISSION_DENIED
 */
function refuseNamed(
  what: string,
  {
    naming,
    position,
    principal,
    renamed,
  }: {
    readonly naming: readonly TypeUser[];
    readonly principal: Principal;
    readonly position: number;
    readonly renamed: "domain" | "label" | "type";
  },
): void {
  requireReach(principal, naming, { action: `rename ${what}`, position });
  if (naming.length === 0) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot rename ${what}: its name is used in a DEFAULT, a condition or a query of ` +
      shownUsers(naming),
    { position, hint: `drop these objects, rename the ${renamed}, then create the objects again` },
  );
}

function labelAt(labels: readonly EnumLabel[], { _location, label }: LabelNode): number {
  const at = labels.findIndex((each) => each.label === label);
  if (at !== -1) return at;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot find label "${label}": the type has no such label`,
    {
      position: _location.start,
    },
  );
}

/**
 * Inserts a label between two labels of an enum type. The sort position of the new label is
 * halfway between theirs.
 *
 * @throws {DatabaseError}
 */
function withLabel(labels: readonly EnumLabel[], { label, place }: AddLabel): readonly EnumLabel[] {
  const at =
    place === undefined
      ? labels.length
      : labelAt(labels, place.neighbour) + (place.side === "after" ? 1 : 0);
  const before = labels[at - 1]?.position;
  const after = labels[at]?.position;
  const position =
    before === undefined
      ? (after ?? 2) - 1
      : after === undefined
        ? Math.floor(before) + 1
        : (before + after) / 2;
  if (position === before || position === after) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot add label "${label.label}" in this position: too many labels have been added ` +
        "between the same two labels",
      {
        position: label._location.start,
        hint: "add the label in a different position, or create a new type",
      },
    );
  }
  return labels.toSpliced(at, 0, { label: label.label, position });
}

/**
 * Binds DROP TYPE and DROP DOMAIN against the current catalog.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, DEPENDENT_OBJECTS, UNSUPPORTED_FEATURE
 */
export function dropTypes(
  node: DropTypeStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const { namespace, principal } = call;
  const { catalog } = deps;
  const missing: string[] = [];
  const isCascading = node.cascade === "cascade";
  const named = node.names.flatMap((name): TypeEntry[] => {
    const { schema = namespace } = name;
    if (node.ifExists === true && catalog.type(schema, name.name) === undefined) {
      missing.push(`${schema}.${name.name}`);
      return [];
    }
    const type = findType(catalog, name, namespace);
    requireKind(type, node, name);
    return [type];
  });
  const types = withRanges(named, { isCascading, catalog });
  for (const type of types) refuseMultirange(type, types, node, catalog);
  const requireUnused = (after: TypeHolders): void => {
    for (const type of types) {
      const holders = typesHolding(catalog, type).filter((each) => !types.includes(each));
      refuseUsed(type, { node, holders, principal }, after);
    }
  };
  if (isCascading) {
    // This check comes first, because the error for a column that cannot be dropped names the
    // column's table, and a message must not name a table in a namespace that is hidden from the
    // caller.
    for (const type of types) {
      const users = usersOf(type, typesHolding(catalog, type), catalog);
      requireReach(principal, users, { action: dropOf(type), position: node._location.start });
    }
  }
  requireUnused(isCascading ? holdersWithout(types, node, call, deps) : catalog);
  return async () => {
    if (isCascading) await dropColumnsOf(types, node, call, deps);
    requireUnused(catalog);
    catalog.dropTypes(types);
    const dropped = named.map((type) => `${type.namespace}.${type.name}`);
    return droppedMessage(node.kind ?? "type", { dropped, missing });
  };
}

/**
 * Adds the types that are dropped together with the given ones: the multirange type of each range
 * type and, with CASCADE, the range types over each type.
 */
function withRanges(
  named: readonly TypeEntry[],
  { catalog, isCascading }: { readonly isCascading: boolean; readonly catalog: Catalog },
): readonly TypeEntry[] {
  const types = new Set(named);
  for (const type of types) {
    for (const each of typesHolding(catalog, type)) {
      if (each.multirangeOf === type.typeId) types.add(each);
      const isOver = each.range !== undefined && each.range.multirangeId !== type.typeId;
      if (isCascading && isOver) types.add(each);
    }
  }
  return [...types];
}

/**
 * Refuses to drop a multirange type without its range type.
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
function refuseMultirange(
  { multirangeOf, name, namespace }: TypeEntry,
  types: readonly TypeEntry[],
  { _location }: DropTypeStatement,
  catalog: Catalog,
): void {
  const range = catalog.types().find(({ typeId }) => typeId === multirangeOf);
  if (range === undefined || types.includes(range)) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot drop type ${namespace}.${name}: it is the multirange type of ` +
      `${range.namespace}.${range.name}`,
    { position: _location.start, hint: `drop type ${range.namespace}.${range.name} instead` },
  );
}

/**
 * Refuses DROP DOMAIN for a type that is not a domain. DROP TYPE also drops domains, as in
 * PostgreSQL.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
function requireKind(entry: TypeEntry, { kind }: DropTypeStatement, { _location }: QName): void {
  const { domain, name, namespace } = entry;
  requireCollation(entry, kind === "collation", _location.start);
  if (kind !== "domain" || domain !== undefined) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot drop domain ${namespace}.${name}: it is a type, but not a domain; use DROP TYPE`,
    { position: _location.start, hint: "DROP TYPE" },
  );
}

/**
 * Refuses a collation in place of a type, and a type in place of a collation.
 * @throws {DatabaseError}
 */
function requireCollation(
  { collation, name, namespace }: TypeEntry,
  isWanted: boolean,
  position: number,
): void {
  if (isWanted === (collation !== undefined)) return;
  const [wanted, found] = isWanted ? ["collation", "type"] : ["type", "collation"];
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot use ${namespace}.${name} as a ${wanted}: it is a ${found}`,
    { position, hint: `write ${found.toUpperCase()} instead of ${wanted.toUpperCase()}` },
  );
}

function dropOf({ name, namespace }: TypeEntry): string {
  return `drop type ${namespace}.${name}`;
}

/** Returns the catalog objects whose definitions use a type. */
function usersOf(type: TypeEntry, holders: readonly TypeEntry[], catalog: TypeHolders): TypeUser[] {
  return [
    ...holders.map((each) => used("type", each)),
    ...columnsOfType(catalog, type),
    ...functionsOfType(catalog, type),
    ...textsNaming(catalog, type),
  ];
}

/**
 * Refuses to drop a type that is in use.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS, UNSUPPORTED_FEATURE, PERMISSION_DENIED
 */
function refuseUsed(
  type: TypeEntry,
  {
    holders,
    node,
    principal,
  }: {
    readonly node: DropTypeStatement;
    readonly holders: readonly TypeEntry[];
    readonly principal: Principal;
  },
  catalog: TypeHolders,
): void {
  const users = usersOf(type, holders, catalog);
  if (users.length === 0) return;
  const position = node._location.start;
  requireReach(principal, users, { action: dropOf(type), position });
  const what = `Cannot drop type ${type.namespace}.${type.name}`;
  if (node.cascade === "cascade") {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `${what} with CASCADE: ${counted(users.length, "object")} would still use the type after ` +
        `its columns are dropped, including ${shownUsers(users.slice(0, 1))}`,
      { position, hint: "drop the objects that use the type first" },
    );
  }
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `${what}: the type is used by ${shownUsers(users)}`,
    {
      position,
      hint: "drop the objects that use the type first",
    },
  );
}
