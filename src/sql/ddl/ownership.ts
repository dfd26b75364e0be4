/**
 * Implements OWNER TO for tables, views, sequences and types, and CREATE EXTENSION, so that dumps
 * with these statements can be loaded. The statements change nothing: they succeed if the
 * requested state already exists, and are refused otherwise.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { findFunction, functionsMeant } from "../names/functions.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { findSequence } from "../names/sequences.ts";
import { findTable, visibleTable, visibleView } from "../names/table_names.ts";
import { findType } from "../names/types.ts";
import type { AlterOwnerStatement, CreateExtensionStatement } from "../parse/ast/ast.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import { functionPlace } from "./function_definitions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";

interface OwnerCall {
  readonly principal: Principal;
  /** The namespace in which OWNER TO looks up unqualified names. */
  readonly namespace: string;
}

/**
 * Binds OWNER TO. A table, view, sequence or type belongs to its namespace. The new owner must
 * therefore be either the owner of the namespace or, if the caller may alter the object, the
 * caller.
 *
 * @throws {DatabaseError} USER_NOT_FOUND, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, …
 */
export function alterOwner(
  node: AlterOwnerStatement,
  call: OwnerCall,
  deps: BindingDeps,
): BoundDefinition {
  const { catalog } = deps;
  const { name, schema = call.namespace } = node.name;
  const path = `${schema}.${name}`;
  const kind = isPartitionOf(node, call, deps) ? "table" : kindOf(node, call, deps);
  if (kind === undefined) return () => `${shown(node.kind)} ${path} does not exist`;
  const { _location, currentUser, name: given } = node.owner;
  const owner = currentUser === true ? call.principal.userId : given;
  const position = _location.start;
  if (catalog.accounts.user(owner) === undefined) {
    throw new DatabaseError("USER_NOT_FOUND", `Cannot find user "${owner}"`, {
      position,
      hint: "create the user with CREATE USER; to dump without OWNER TO, use pg_dump --no-owner",
    });
  }
  const holder = catalog.namespace(schema)?.owner;
  if (owner === holder)
    return () =>
      `${shown(kind)} ${path} already belongs to ${owner}, the owner of namespace ${schema}`;
  if (owner === call.principal.userId) {
    return () => `${shown(kind)} ${path} belongs to namespace ${schema}; ${owner} may alter it`;
  }
  const today = holder === undefined ? "which currently has no owner" : `which ${holder} owns`;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot make ${owner} the owner of ${path}: the owner of a ${kind} is always the owner ` +
      `of its namespace, ${today}`,
    {
      position,
      hint:
        `run ALTER NAMESPACE ${schema} OWNER TO ${owner}, or use a separate namespace; to dump ` +
        "without OWNER TO, use pg_dump --no-owner",
    },
  );
}

function isPartitionOf(
  { kind, name }: AlterOwnerStatement,
  call: OwnerCall,
  deps: BindingDeps,
): boolean {
  return kind === "table" && partitionNamed(name, call, deps) !== undefined;
}

/**
 * Returns the kind of the object with the given name; undefined if there is no such object and the
 * statement has IF EXISTS.
 */
function kindOf(
  { ifExists, kind, name: node }: AlterOwnerStatement,
  { namespace, principal }: OwnerCall,
  deps: BindingDeps,
): AlterOwnerStatement["kind"] | undefined {
  const { catalog, systemViews } = deps;
  const { name, schema = namespace } = node;
  const place = { namespace: schema, name };
  if (kind === "type") {
    findType(catalog, node, namespace);
    return kind;
  }
  if (kind === "function") {
    const functions = functionPlace({ namespace, principal }, deps);
    if (ifExists === true && functionsMeant(node, functions).length === 0) return undefined;
    findFunction(node, functions);
    return kind;
  }
  systemViews.refuse(node, { namespace, principal, action: "alter", ifExists });
  const isTable = visibleTable(catalog, place, principal) !== undefined;
  const isView = visibleView(deps, place, principal) !== undefined;
  const isSequence = catalog.sequence(schema, name) !== undefined;
  if (kind !== "sequence" && isView) return "view";
  if (kind !== "view" && isSequence) return "sequence";
  if (kind === "table" && isTable) return "table";
  if (kind === "materialized view" && catalog.table(schema, name)?.materialized !== undefined) {
    return kind;
  }
  if (ifExists === true && !isTable && !isView && !isSequence) return undefined;
  if (kind === "sequence") findSequence(catalog, node, namespace);
  const table = findTable(deps, node, { namespace, node, principal });
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot use ${nameOf(table)} as a ${kind}: it is a table`,
    { position: node._location.start, hint: "ALTER TABLE" },
  );
}

function shown(kind: AlterOwnerStatement["kind"]): string {
  return `${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;
}

/**
 * PostgreSQL extensions that are at least partly built in, each with a description of the
 * functions that exist.
 */
const BUILT_IN: ReadonlyMap<string, string> = new Map([
  ["pgcrypto", "gen_random_uuid()"],
  ["uuid-ossp", "uuid_generate_v4()"],
  ["pg_trgm", "similarity()"],
  ["btree_gist", "EXCLUDE with equal columns"],
]);

/**
 * Binds CREATE EXTENSION, which has no effect.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
export function createExtension({ name }: CreateExtensionStatement): BoundDefinition {
  const functions = BUILT_IN.get(name.name);
  if (functions !== undefined) {
    return () =>
      `Extension ${name.name}: ${functions} is built in; some of its functions may not exist`;
  }
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot create extension "${name.name}": there is no such extension, and all available ` +
      "functions are built in",
    {
      position: name._location.start,
      hint: `remove the statement; the known extensions are ${[...BUILT_IN.keys()].join(", ")}`,
    },
  );
}
