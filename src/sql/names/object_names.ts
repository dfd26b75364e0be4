/**
 * Maps the names of objects to OIDs and back, for types such as REGCLASS.
 *
 * The OID of a table, partition, view, function, sequence or type is its id in the catalog plus an
 * offset, so it never changes and is never reused. Built-in types have PostgreSQL's OIDs. Objects
 * without a number in the catalog (namespaces, users, built-in functions and collations) have an
 * OID computed from their names.
 *
 * An object that the caller may not see is treated as if it did not exist.
 */
import { mayRead, mayReadView, mayRun, ownsNamespace, type Principal } from "../../auth/mod.ts";
import { crc32 } from "../../base/checksum.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  DEFAULT_NAMESPACE,
  type FunctionEntry,
  isSystemNamespace,
  type NamespaceEntry,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import {
  bareTypeName,
  collationName,
  type DataType,
  definedNameOf,
  type ObjectNameKind,
  objectNameValue,
  oidOfObjectName,
  textFromObjectName,
  unsignedValue,
} from "../../types/mod.ts";
import { builtInCollation } from "../bind/expression/collation_names.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { domainOf, resolveType } from "../bind/expression/types.ts";
import { isInput } from "../bind/query/routine_resolution.ts";
import { idOfOid, oidOfId } from "../bind/query/table_oid.ts";
import { functionExists, resolveFunction } from "../functions/registry.ts";
import type { DataTypeDef } from "../parse/ast/ast.ts";
import { type NameInText, nameInText } from "../parse/name_in_text.ts";
import { parseExpression } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { BUILT_IN_TYPE_OIDS } from "./built_in_oids.ts";
import { visibleFunctions } from "./functions.ts";
import { mayUseSequence } from "./sequences.ts";

/** The caller, the catalog and the namespace for looking up objects in a statement. */
export interface ObjectPlace {
  readonly catalog: Catalog;
  readonly principal: Principal;
  /** The namespace whose objects are written without a namespace. */
  readonly namespace: string;
}

/** The maximum length of a text that can be read as the name of an object. */
const TEXT_MAX = 1024;

/** The namespace of built-in functions, types and collations. */
const BUILT_IN = "pg_catalog";

/** Computes an OID from the name of an object, for objects without a number in the catalog. */
function oidOfName(kind: ObjectNameKind, name: string): string {
  const sum = crc32(Buffer.from(`${kind} ${name}`));
  // Ids are assigned in ascending order and never reach the upper half of the OIDs.
  return unsignedValue("oid", BigInt((sum | 0x80000000) >>> 0)) ?? "";
}

/**
 * Returns the value of an object type for a name; undefined if there is no such object that the
 * caller may see.
 *
 * @throws {DatabaseError} INVALID_NAME if the text is not a name.
 */
export function objectNamed(
  kind: ObjectNameKind,
  text: string,
  place: ObjectPlace,
): string | undefined {
  if (text.length > TEXT_MAX) {
    throw new DatabaseError(
      "INVALID_NAME",
      `Cannot read the text as ${kind}: it has ${text.length} characters, but the maximum is ${TEXT_MAX}`,
    );
  }
  switch (kind) {
    case "regclass":
      return relationNamed(nameInText(text), place);
    case "regtype":
      return typeNamed(text, place);
    case "regproc":
      return functionNamed(nameInText(text), place);
    case "regprocedure":
      return signatureNamed(text, place);
    case "regcollation":
      return collationNamed(nameInText(text), place);
    case "regnamespace":
    case "regrole": {
      const { name, namespace } = nameInText(text);
      if (namespace !== undefined) throw qualified(kind, text);
      const isSeen = kind === "regrole" ? seesUser(name, place) : seesNamespace(name, place);
      return isSeen ? namedValue(kind, name) : undefined;
    }
  }
}

function qualified(kind: ObjectNameKind, text: string): DatabaseError {
  const what = kind === "regrole" ? "user" : "namespace";
  return new DatabaseError(
    "INVALID_NAME",
    `Cannot read ${JSON.stringify(text.slice(0, 128))} as ${kind}: the name of a ${what} has no qualifier`,
  );
}

/**
 * Returns the value of an object type for an OID; undefined if there is no such object that the
 * caller may see.
 */
export function objectWithOid(
  kind: ObjectNameKind,
  oid: string,
  place: ObjectPlace,
): string | undefined {
  const id = idOfOid(oid);
  switch (kind) {
    case "regclass":
      return relationWithId(id, place);
    case "regtype":
      return typeWithOid(oid, place);
    case "regproc":
    case "regprocedure": {
      const entry = visibleFunctions(place.catalog, place.principal).find(
        ({ viewId }) => viewId === id,
      );
      return entry && routineValue(kind, entry, place);
    }
    case "regnamespace":
      return place.catalog
        .namespaces()
        .filter(({ name }) => seesNamespace(name, place))
        .map(({ name }) => namedValue(kind, name))
        .find((value) => oidOfObjectName(value) === oid);
    case "regrole":
      return place.catalog.accounts
        .users()
        .filter(({ userId }) => seesUser(userId, place))
        .map(({ userId }) => namedValue(kind, userId))
        .find((value) => oidOfObjectName(value) === oid);
    case "regcollation":
      return undefined;
  }
}

function namedValue(kind: ObjectNameKind, name: string): string {
  return objectNameValue(oidOfName(kind, name), nameText(name));
}

type Qualified = Pick<TableEntry, "name" | "namespace">;

/**
 * Returns the name of an object, qualified unless the object is in the statement's current
 * namespace.
 */
function shownName({ name, namespace }: Qualified, place: ObjectPlace): string {
  const own = nameText(name);
  return namespace === place.namespace ? own : `${nameText(namespace)}.${own}`;
}

function idValue(id: number, entry: Qualified, place: ObjectPlace): string {
  return objectNameValue(oidOfId(id), shownName(entry, place));
}

function relationNamed(
  { name, namespace: given }: NameInText,
  place: ObjectPlace,
): string | undefined {
  const { catalog } = place;
  const namespace = given ?? place.namespace;
  const table = catalog.table(namespace, name);
  if (table !== undefined && seesTable(table, place)) return idValue(table.tableId, table, place);
  const view = catalog.view(namespace, name);
  if (view !== undefined && seesView(view, place)) return idValue(view.viewId, view, place);
  const sequence = catalog.sequence(namespace, name);
  if (sequence === undefined) return undefined;
  const isSeen = mayUseSequence(place.principal, sequence, { catalog, use: "take" });
  return isSeen ? idValue(sequence.sequenceId, sequence, place) : undefined;
}

function relationWithId(id: number, place: ObjectPlace): string | undefined {
  const { catalog, principal } = place;
  const table = catalog.tableById(id);
  if (table !== undefined) return seesTable(table, place) ? idValue(id, table, place) : undefined;
  const view = catalog.viewById(id);
  if (view !== undefined) {
    const isSeen = view.routine === undefined && seesView(view, place);
    return isSeen ? idValue(id, view, place) : undefined;
  }
  const sequence = catalog.sequences().find(({ sequenceId }) => sequenceId === id);
  if (sequence === undefined) return undefined;
  const isSeen = mayUseSequence(principal, sequence, { catalog, use: "take" });
  return isSeen ? idValue(id, sequence, place) : undefined;
}

/** Whether the caller may read a table. */
export function seesTable(table: TableEntry, { catalog, principal }: ObjectPlace): boolean {
  return mayRead(principal, table, catalog.namespace(table.namespace));
}

/**
 * Whether the caller may read a view. A view that runs with the rights of its reader is visible to
 * callers who may read everything that it reads.
 */
export function seesView(view: ViewEntry, place: ObjectPlace): boolean {
  const { catalog, principal } = place;
  if (!mayReadView(principal, view, catalog.namespace(view.namespace))) return false;
  if (view.ownRights !== undefined) return true;
  const tables = view.tables.flatMap(({ tableId }) => catalog.tableById(tableId) ?? []);
  const views = view.views.flatMap(({ viewId }) => catalog.viewById(viewId) ?? []);
  return (
    tables.every((table) => seesTable(table, place)) && views.every((each) => seesView(each, place))
  );
}

/** Returns the namespace with an OID; undefined if there is none. */
export function namespaceWithOid(
  oid: string,
  { catalog }: Pick<ObjectPlace, "catalog">,
): NamespaceEntry | undefined {
  return catalog.namespaces().find(({ name }) => oidOfName("regnamespace", name) === oid);
}

function seesNamespace(name: string, { catalog, principal }: ObjectPlace): boolean {
  if (name === BUILT_IN || name === DEFAULT_NAMESPACE || isSystemNamespace(name)) return true;
  const namespace = catalog.namespace(name);
  if (namespace === undefined || !mayRun(principal, "show", namespace)) return false;
  if (mayRun(principal, "defineTable") || ownsNamespace(principal, namespace)) return true;
  return catalog
    .tables()
    .some((table) => table.namespace === name && mayRead(principal, table, namespace));
}

function seesUser(userId: string, { catalog, principal }: ObjectPlace): boolean {
  if (userId === principal.userId || userId === principal.actorId) return true;
  return mayRun(principal, "inspect") && catalog.accounts.user(userId) !== undefined;
}

function typeNamed(text: string, place: ObjectPlace): string | undefined {
  const definition = typeInText(text, place);
  if (definition === undefined) return undefined;
  const domain = domainOf(definition);
  if (domain !== undefined) return idValue(domain.typeId, domain, place);
  let type: DataType;
  try {
    type = resolveType(definition);
  } catch (error) {
    // There is no value for an unknown type. The caller decides whether that is an error.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
  return typeValue(type, place);
}

/** Parses the name of a type; returns undefined if the text is not the name of a type. */
function typeInText(text: string, { catalog, namespace }: ObjectPlace): DataTypeDef | undefined {
  const bare = text.replace(/^\s*pg_catalog\s*\./i, "");
  try {
    const node = parseExpression(`NULL::${bare}`);
    if (node.type !== "cast" || node.operand.type !== "null") return undefined;
    return withTypes(node, typesIn(catalog, namespace)).to;
  } catch (error) {
    // Ignoring the error is safe: a text that cannot be parsed as a type name does not denote a
    // type.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

function typeValue(type: DataType, place: ObjectPlace): string {
  const defined = definedNameOf(type);
  if (defined !== undefined) return idValue(defined.typeId, defined, place);
  if (type.kind === "array") {
    const text = `${textFromObjectName(typeValue(type.element, place))}[]`;
    return objectNameValue(BUILT_IN_TYPE_OIDS.get(text) ?? oidOfName("regtype", text), text);
  }
  const text = bareTypeName(type);
  return objectNameValue(BUILT_IN_TYPE_OIDS.get(text) ?? oidOfName("regtype", text), text);
}

function typeWithOid(oid: string, place: ObjectPlace): string | undefined {
  for (const [name, known] of BUILT_IN_TYPE_OIDS) {
    if (known === oid) return objectNameValue(oid, name);
  }
  const id = idOfOid(oid);
  const entry = place.catalog.types().find(({ collation, typeId }) => {
    return typeId === id && collation === undefined;
  });
  return entry && idValue(id, entry, place);
}

function functionsWithName(
  { name, namespace: given }: NameInText,
  { catalog, namespace, principal }: ObjectPlace,
): FunctionEntry[] {
  const holder = given ?? namespace;
  return catalog
    .functionsNamed(holder, name)
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(holder)));
}

function functionNamed(name: NameInText, place: ObjectPlace): string | undefined {
  const [entry, ...others] = functionsWithName(name, place);
  if (others.length > 0) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${name.name} as regproc: there are several functions with this name`,
      { hint: `write the types of the arguments: '${name.name}(int)'::regprocedure` },
    );
  }
  if (entry !== undefined) return routineValue("regproc", entry, place);
  if (!isOfBuiltIns(name) || !functionExists(name.name)) return undefined;
  return namedValue("regproc", name.name);
}

function isOfBuiltIns({ namespace }: NameInText): boolean {
  return namespace === undefined || namespace === BUILT_IN;
}

/** Finds a function by its name and argument types, as in `abs(numeric)`. */
function signatureNamed(text: string, place: ObjectPlace): string | undefined {
  const [, written = "", list] = /^([^(]*)\(([^)]*)\)\s*$/.exec(text) ?? [];
  if (list === undefined) {
    throw new DatabaseError(
      "INVALID_NAME",
      `Cannot read ${JSON.stringify(text.slice(0, 128))} as regprocedure: expected a name and types, such as "lower(text)"`,
    );
  }
  const name = nameInText(written);
  const values = list.trim() === "" ? [] : list.split(",").map((each) => typeNamed(each, place));
  if (values.some((value) => value === undefined)) return undefined;
  const wanted = values.map((value) => textFromObjectName(value ?? "")).join(",");
  const entry = functionsWithName(name, place).find(
    (each) => argumentsText(each, place) === wanted,
  );
  if (entry !== undefined) return routineValue("regprocedure", entry, place);
  if (!isOfBuiltIns(name)) return undefined;
  const types = list.trim() === "" ? [] : list.split(",").map((each) => builtInType(each, place));
  const known = types.flatMap((type) => type ?? []);
  if (known.length < types.length || resolveFunction(name.name, known) === undefined) {
    return undefined;
  }
  const shown = `${nameText(name.name)}(${wanted})`;
  return objectNameValue(oidOfName("regprocedure", shown), shown);
}

function builtInType(text: string, place: ObjectPlace): DataType | undefined {
  const definition = typeInText(text, place);
  return definition && resolveType(definition);
}

function routineValue(
  kind: "regproc" | "regprocedure",
  entry: FunctionEntry,
  place: ObjectPlace,
): string {
  const { namespace, routine, viewId } = entry;
  const name = shownName({ namespace, name: routine.name }, place);
  const text = kind === "regproc" ? name : `${name}(${argumentsText(entry, place)})`;
  return objectNameValue(oidOfId(viewId), text);
}

/** Returns the input parameter types of a function as text, in the form of a REGPROCEDURE. */
function argumentsText({ routine }: FunctionEntry, place: ObjectPlace): string {
  return routine.parameters
    .filter(isInput)
    .map(({ type }) =>
      typeof type === "string" ? type : textFromObjectName(typeValue(type, place)),
    )
    .join(",");
}

function collationNamed(name: NameInText, place: ObjectPlace): string | undefined {
  const { catalog, namespace } = place;
  const holder = name.namespace ?? namespace;
  const entry = catalog.type(holder, name.name);
  if (entry?.collation !== undefined) return idValue(entry.typeId, entry, place);
  const found = builtInCollation({ name: name.name, schema: name.namespace });
  if (found === undefined) return undefined;
  const shown = collationName(found);
  return objectNameValue(oidOfName("regcollation", shown), shown);
}
