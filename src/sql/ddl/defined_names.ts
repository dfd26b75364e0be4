/**
 * Collects the names that the definitions in a request create, change or drop. A later statement
 * that uses one of these names is bound just before it runs. All other statements are bound before
 * any part of the request runs.
 *
 * A column or alias with the same name as a table in the namespace is mistaken for that table,
 * which merely delays the binding of the statement.
 */
import type { ErrorCode } from "../../base/errors.ts";
import type {
  AlterTableStatement,
  CreateTableStatement,
  Name,
  QName,
  Statement,
} from "../parse/ast/ast.ts";
import { actedForIn } from "../parse/ast/query_nodes.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { isPolicyDefinition } from "./policy_definitions.ts";
import { isRangeDefinition, multirangeNameOf } from "./range_definitions.ts";
import { isTriggerDefinition } from "./trigger_definitions.ts";

/**
 * The kind of a named object. A relation is a table, a view or a topic, and is identified by
 * "namespace.name". All other objects are identified by their name alone.
 */
type Kind = "invitation" | "namespace" | "relation" | "storage" | "token" | "user";

interface DefinedName {
  readonly kind: Kind;
  readonly name: string;
}

/**
 * The statements that may refer to sequences or indexes whose names do not occur in any earlier
 * statement.
 */
const MAY_NAME_UNWRITTEN: ReadonlySet<Statement["type"]> = new Set([
  "create table",
  "alter table",
  "alter sequence",
  "drop sequence",
  "alter index",
  "drop index",
  "alter owner",
  "comment on",
  "alter policy",
  "drop policy",
  "create trigger",
  "alter trigger",
  "drop trigger",
] as const);

export class DefinedNames {
  readonly #names: Readonly<Record<Kind, Set<string>>> = {
    invitation: new Set(),
    namespace: new Set(),
    relation: new Set(),
    storage: new Set(),
    token: new Set(),
    user: new Set(),
  };
  /** Whether a CASCADE may drop views that the request does not mention. */
  #isCascading = false;

  /**
   * Adds the names that a statement defines.
   *
   * @param namespace The namespace in which unqualified names are looked up.
   */
  add(node: Statement, namespace: string): void {
    for (const { kind, name } of definedBy(node, namespace)) this.#names[kind].add(name);
    if (isCascade(node)) this.#isCascading = true;
  }

  /**
   * Returns whether a statement's error may disappear once the preceding definitions have been
   * executed.
   *
   * @param namespace The namespace in which unqualified names are looked up.
   */
  mayMend(node: Statement, code: ErrorCode, namespace: string): boolean {
    // A DEPENDENT_OBJECTS error does not name the dependent objects, such as the views of a table
    // or the tables of a namespace.
    if (code === "DEPENDENT_OBJECTS" && this.#names.relation.size > 0) return true;
    // Some sequence names do not occur as names in the SQL: names in string literals, as in
    // nextval('orders_id_seq'), and names generated for columns.
    const isUnwritten = code === "OBJECT_NOT_FOUND" && MAY_NAME_UNWRITTEN.has(node.type);
    if (isUnwritten && this.#names.relation.size > 0) return true;
    const isOfUser = node.type === "alter user" || node.type === "drop user";
    // The last user with the role `system` cannot be dropped, but another such user may exist by
    // the time the statement runs.
    if (isOfUser && code === "INVALID_OPERATION") return this.#names.user.size > 0;
    return this.isUsedBy(node, namespace);
  }

  /**
   * Returns whether a statement uses a name from a preceding definition.
   *
   * @param namespace The namespace in which unqualified names are looked up.
   */
  isUsedBy(node: Statement, namespace: string): boolean {
    if (ownNames(node).some(({ kind, name }) => this.#names[kind].has(name))) return true;
    if (!namesRelations(node)) return false;
    if (this.#isCascading) return true;
    for (const part of partsOf(node)) if (this.#isNamedIn(part, namespace)) return true;
    return false;
  }

  #isNamedIn(part: object, around: string): boolean {
    const { name, schema, value }: { name?: unknown; schema?: unknown; value?: unknown } = part;
    if (typeof name !== "string") return false;
    if (name === "storage_id") return this.#hasValue("storage", value);
    if (name === "dead_letter") return this.#hasValue("relation", value);
    const namespace = typeof schema === "string" ? schema : around;
    return this.#names.relation.has(`${namespace}.${name}`) || this.#names.namespace.has(namespace);
  }

  /** Returns whether an option's value is a name from a preceding definition. */
  #hasValue(kind: Kind, option: unknown): boolean {
    if (typeof option !== "object" || option === null) return false;
    const { name, value }: { name?: unknown; value?: unknown } = option;
    return [name, value].some((id) => typeof id === "string" && this.#names[kind].has(id));
  }
}

function definedBy(node: Statement, namespace: string): readonly DefinedName[] {
  switch (node.type) {
    case "create namespace":
    case "alter namespace":
      return [named("namespace", node.name)];
    case "drop namespace":
      return node.names.map((name) => named("namespace", name));
    case "create user":
    case "alter user":
    case "drop user":
      return [named("user", node.name)];
    case "create token":
    case "drop token":
      return [named("token", node.name)];
    case "create invitation":
    case "drop invitation":
      return [named("invitation", node.name)];
    case "create storage":
    case "alter storage":
    case "drop storage":
      return [named("storage", node.name)];
    default:
      return relationsDefinedBy(node).map(({ name, schema = namespace }) => {
        return { kind: "relation", name: `${schema}.${name}` };
      });
  }
}

function relationsDefinedBy(node: Statement): readonly QName[] {
  if (isTriggerDefinition(node) || isPolicyDefinition(node)) return [node.table];
  switch (node.type) {
    case "create table":
      return [node.name, ...parentOf(node)];
    case "create table as":
    case "create view":
    case "create sequence":
    case "create domain":
    case "create topic":
    case "alter topic":
    case "drop topic":
    case "clear topic":
      return [node.name];
    case "create type":
      return isRangeDefinition(node) ? [node.name, multirangeNameOf(node)] : [node.name];
    case "create index":
      return [node.table];
    case "drop table":
    case "drop view":
    case "drop sequence":
    case "drop type":
      return node.names;
    case "do":
      return relationsDefinedBy(node.statement);
    default:
      return relationsAlteredBy(node);
  }
}

/**
 * Returns the table to which CREATE TABLE … PARTITION OF adds a partition; an empty list for any
 * other CREATE TABLE.
 */
function parentOf({ partitionOf }: CreateTableStatement): readonly QName[] {
  return partitionOf === undefined ? [] : [partitionOf.parent];
}

/** Returns the names that the relations altered by a statement have before and after it. */
function relationsAlteredBy(node: Statement): readonly QName[] {
  switch (node.type) {
    case "attach partition":
    case "detach partition":
      return [node.table, node.partition];
    case "alter sequence":
      return [node.name, ...renamed(node.name, node.renamedTo)];
    case "alter table":
      return [node.table, ...newNamesIn(node)];
    case "refresh materialized view":
      return [node.name];
    case "alter index":
      return node.change.type === "rename"
        ? [node.name, ...renamed(node.name, node.change.to)]
        : [node.name, node.change.partition];
    case "alter view": {
      const { change } = node;
      return change.type === "rename" ? [node.name, ...renamed(node.name, change.to)] : [node.name];
    }
    case "create collation":
      return [node.name];
    case "alter domain":
    case "alter type":
      return node.change.type === "rename"
        ? [node.name, ...renamed(node.name, node.change.to)]
        : [node.name];
    default:
      return functionsDefinedBy(node);
  }
}

/**
 * Returns the names of the functions that a statement defines. They count as relations, since any
 * statement may call them.
 */
function functionsDefinedBy(node: Statement): readonly QName[] {
  switch (node.type) {
    case "create aggregate":
    case "create function":
      return [node.name];
    case "alter function":
      return [
        node.name,
        ...renamed(node.name, node.change.type === "rename" ? node.change.to : undefined),
      ];
    case "drop function":
      return node.names;
    default:
      return [];
  }
}

function renamed(name: QName, to: Name | undefined): readonly QName[] {
  return to === undefined ? [] : [{ ...name, name: to.name }];
}

/** Returns the new names that ALTER TABLE gives to its table. */
function newNamesIn({ changes, table }: AlterTableStatement): readonly QName[] {
  return changes.flatMap((change) =>
    change.type === "rename table" ? [{ ...table, name: change.to.name }] : [],
  );
}

/** Returns the names in a statement that refer to objects other than relations. */
function ownNames(node: Statement): readonly DefinedName[] {
  switch (node.type) {
    case "use namespace":
      return [named("namespace", node.name)];
    case "drop namespace":
      return node.names.map((name) => named("namespace", name));
    case "create namespace":
      return [named("namespace", node.name), ...optional("user", node.authorization)];
    case "alter namespace":
      return [named("namespace", node.name), ...optional("user", node.owner)];
    case "show tables":
    case "show topics":
      return optional("namespace", node.namespace);
    case "storage flush":
    case "storage compact":
      return optional("namespace", node.namespace);
    case "create user":
    case "alter user":
    case "drop user":
      return [named("user", node.name)];
    case "execute as":
    case "explain":
      return optional("user", node.user);
    case "create storage":
    case "alter storage":
    case "drop storage":
    case "storage check":
      return [named("storage", node.name)];
    default:
      return namesBesideObject(node);
  }
}

/**
 * Returns the names in a statement about tokens, invitations, owners or comments, apart from
 * relation names.
 */
function namesBesideObject(node: Statement): readonly DefinedName[] {
  if (node.type === "create token") return [named("user", node.user), named("token", node.name)];
  if (node.type === "drop token") return [named("token", node.name)];
  if (node.type === "create invitation" || node.type === "drop invitation") {
    return [named("invitation", node.name)];
  }
  if (node.type === "alter owner") {
    return node.owner.currentUser === true ? [] : [named("user", node.owner)];
  }
  const isNamespace = node.type === "comment on" && node.kind === "namespace";
  return isNamespace ? [named("namespace", node.name)] : [];
}

function namesRelations(node: Statement): boolean {
  if (node.type === "set" || node.type === "show") return false;
  const isOfUser = actedForIn(node) !== undefined || node.type === "alter owner";
  return isOfUser || ownNames(node).length === 0;
}

function named(kind: Kind, { name }: Name): DefinedName {
  return { kind, name };
}

function optional(kind: Kind, name: Name | undefined): readonly DefinedName[] {
  return name === undefined ? [] : [named(kind, name)];
}

function isCascade(node: Statement): boolean {
  if (node.type === "alter table") {
    return node.changes.some(
      (change) => change.type === "drop column" && change.behaviour === "cascade",
    );
  }
  return "cascade" in node && node.cascade === "cascade";
}
