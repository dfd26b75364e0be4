/**
 * What the definitions of a text create, change or drop, and whether a statement behind them uses
 * any of it: then it is bound at its turn, and else before anything of the text runs.
 *
 * A column or an alias with the name of a table of its namespace counts as that table, which only
 * binds the statement later.
 */
import type { Condition } from "../../base/errors.ts";
import type { Name, QName, Statement } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";

/** A relation is a table or a view, by "namespace.name"; the others are known by their names. */
type Kind = "namespace" | "relation" | "storage" | "user";

interface Named {
  readonly kind: Kind;
  readonly name: string;
}

export class DefinedNames {
  readonly #names: Readonly<Record<Kind, Set<string>>> = {
    namespace: new Set(),
    relation: new Set(),
    storage: new Set(),
    user: new Set(),
  };
  /** CASCADE drops views that it does not name. */
  #isCascading = false;

  /** @param namespace That of unqualified names. */
  add(node: Statement, namespace: string): void {
    for (const { kind, name } of definedBy(node, namespace)) this.#names[kind].add(name);
    if (isCascade(node)) this.#isCascading = true;
  }

  /**
   * Whether a fault of a statement may be gone once the definitions so far have run.
   *
   * @param namespace That of unqualified names.
   */
  mayMend(node: Statement, condition: Condition, namespace: string): boolean {
    // What depends on an object is not named: the views of a table, the tables of a namespace.
    if (condition === "DEPENDENT_OBJECTS" && this.#names.relation.size > 0) return true;
    const isOfUser = node.type === "alter user" || node.type === "drop user";
    // The last user of role system may go once there is another.
    if (isOfUser && condition === "INVALID_OPERATION") return this.#names.user.size > 0;
    return this.isUsedBy(node, namespace);
  }

  /** @param namespace That of unqualified names. */
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
    if (name === "storage_id") return this.#isStorage(value);
    const namespace = typeof schema === "string" ? schema : around;
    return this.#names.relation.has(`${namespace}.${name}`) || this.#names.namespace.has(namespace);
  }

  #isStorage(option: unknown): boolean {
    if (typeof option !== "object" || option === null) return false;
    const { name, value }: { name?: unknown; value?: unknown } = option;
    return [name, value].some((id) => typeof id === "string" && this.#names.storage.has(id));
  }
}

function definedBy(node: Statement, namespace: string): readonly Named[] {
  const relation = ({ name, schema = namespace }: QName): Named => {
    return { kind: "relation", name: `${schema}.${name}` };
  };
  switch (node.type) {
    case "create namespace":
    case "alter namespace":
    case "drop namespace":
      return [named("namespace", node.name)];
    case "create user":
    case "alter user":
    case "drop user":
      return [named("user", node.name)];
    case "create storage":
    case "alter storage":
    case "drop storage":
      return [named("storage", node.name)];
    case "create table":
    case "create view":
      return [relation(node.name)];
    case "alter table":
      return [relation(node.table)];
    case "drop table":
    case "drop view":
      return node.names.map(relation);
    default:
      return [];
  }
}

/** What a statement names that is no relation. */
function ownNames(node: Statement): readonly Named[] {
  switch (node.type) {
    case "use namespace":
    case "drop namespace":
      return [named("namespace", node.name)];
    case "create namespace":
      return [named("namespace", node.name), ...optional("user", node.authorization)];
    case "alter namespace":
      return [named("namespace", node.name), ...optional("user", node.owner)];
    case "show tables":
      return optional("namespace", node.namespace);
    case "storage flush":
    case "storage compact":
      return optional("namespace", node.namespace);
    case "create user":
    case "alter user":
    case "drop user":
      return [named("user", node.name)];
    case "execute as":
      return [named("user", node.user)];
    case "create storage":
    case "alter storage":
    case "drop storage":
    case "storage check":
      return [named("storage", node.name)];
    default:
      return [];
  }
}

function namesRelations(node: Statement): boolean {
  if (node.type === "set" || node.type === "show") return false;
  return node.type === "execute as" || ownNames(node).length === 0;
}

function named(kind: Kind, { name }: Name): Named {
  return { kind, name };
}

function optional(kind: Kind, name: Name | undefined): readonly Named[] {
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
