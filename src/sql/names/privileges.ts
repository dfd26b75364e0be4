/**
 * Answers the functions that ask for privileges, such as has_table_privilege, from the rights that
 * statements need: the roles of users, the owners of namespaces, access levels and policies.
 *
 * Nobody can pass rights on, so WITH GRANT OPTION is never granted. A user who may not inspect the
 * server can ask only for their own privileges, because the answers reveal the rights of others.
 */
import {
  isAtLeast,
  isPolicyFor,
  mayAlter,
  mayRead,
  mayReadView,
  mayRun,
  mayWrite,
  type Principal,
  policiesOf,
  policyRoleFor,
  roleFromWord,
} from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { replacesChange } from "../bind/change/triggered_view.ts";
import { idOfOid } from "../bind/query/table_oid.ts";
import type { PrivilegeQuestion } from "../functions/base/function.ts";
import { namespaceWithOid, type ObjectPlace, seesTable, seesView } from "./object_names.ts";
import { mayUseSequence } from "./sequences.ts";
import { depsOf, writtenColumns } from "./views.ts";

const PUBLIC = "public";

/**
 * Returns whether a user has a privilege; null if there is no such object.
 *
 * @throws {DatabaseError} USER_NOT_FOUND, COLUMN_NOT_FOUND
 */
export function hasPrivilege(asked: PrivilegeQuestion, place: ObjectPlace): boolean | null {
  const principal = principalOf(asked.user, place.principal, place);
  const isGrant = asked.privilege.endsWith(" with grant option");
  const question = { ...asked, privilege: asked.privilege.replace(/ with grant option$/, "") };
  const asking = { ...place, principal };
  const answer =
    asked.object === "role"
      ? hasRole(asked.role ?? "", asking, place.principal)
      : answered(question, asking);
  return isGrant && answer !== null ? false : answer;
}

/** Returns the rights of a user, or those that every user has for PUBLIC. */
function principalOf(
  user: string | undefined,
  caller: Principal,
  { catalog }: ObjectPlace,
): Principal {
  if (user === undefined || user === caller.userId) return caller;
  const found = user === PUBLIC ? { role: "user" as const } : catalog.accounts.user(user);
  if (found === undefined || (user !== PUBLIC && !mayRun(caller, "inspect"))) {
    throw new DatabaseError("USER_NOT_FOUND", `Cannot find user "${user}"`);
  }
  const { tokenScope: _scope, claims: _claims, fileUrlKey: _key, ...rest } = caller;
  const userId = user === PUBLIC ? "" : user;
  const { role } = found;
  return {
    ...rest,
    userId,
    role,
    owner: undefined,
    actorId: userId,
    actorRole: role,
    isImpersonated: false,
  };
}

function answered(question: PrivilegeQuestion, place: ObjectPlace): boolean | null {
  const { object, oid = "", privilege } = question;
  const { catalog, principal } = place;
  switch (object) {
    case "schema": {
      const namespace = namespaceWithOid(oid, place);
      if (namespace === undefined) return privilege === "usage";
      const needed = privilege === "create" ? "defineTable" : "show";
      return mayRun(principal, needed, namespace);
    }
    case "function": {
      const entry = catalog.viewById(idOfOid(oid));
      if (entry?.routine === undefined) return true;
      return mayReadView(principal, entry, catalog.namespace(entry.namespace));
    }
    case "sequence":
      return onSequence(oid, privilege, place);
    case "type":
      return true;
    default:
      return onRelation(question, place);
  }
}

/**
 * Returns whether a user has the rights of a role. Roles are ranked, and each has the rights of
 * those below it. A user has the rights of no other user.
 */
function hasRole(role: string, { catalog, principal }: ObjectPlace, caller: Principal): boolean {
  const known = roleFromWord(role);
  if (known !== undefined) return isAtLeast(principal.role, known);
  if (role === principal.userId) return true;
  if (!mayRun(caller, "inspect") || catalog.accounts.user(role) === undefined) {
    throw new DatabaseError("USER_NOT_FOUND", `Cannot find role or user "${role}"`, {
      hint: "the roles are user, service, dba and system",
    });
  }
  return false;
}

function onSequence(oid: string, privilege: string, place: ObjectPlace): boolean | null {
  const { catalog, principal } = place;
  const id = idOfOid(oid);
  const sequence = catalog.sequences().find(({ sequenceId }) => sequenceId === id);
  if (sequence === undefined) {
    throw new DatabaseError("INVALID_OPERATION", "Cannot ask: the object is not a sequence", {
      hint: "use has_table_privilege for tables and views",
      sqlstate: "42809",
    });
  }
  const use = privilege === "update" ? "set" : "take";
  return mayUseSequence(principal, sequence, { catalog, use });
}

function onRelation(question: PrivilegeQuestion, place: ObjectPlace): boolean | null {
  const { column, oid = "", privilege } = question;
  const { catalog } = place;
  const id = idOfOid(oid);
  const view = catalog.viewById(id);
  const table = catalog.tableById(view?.partition?.tableId ?? id);
  if (table !== undefined) {
    const names = table.columns.flatMap(({ isHidden, name }) => (isHidden ? [] : [name]));
    if (column !== undefined && columnIn(names, column) === undefined) return null;
    return onTable(table, privilege, place);
  }
  if (view === undefined) return onSequence(oid, privilege, place);
  const name = column === undefined ? undefined : columnIn(view.columnNames, column);
  if (column !== undefined && name === undefined) return null;
  return onView(view, { privilege, name }, place);
}

/**
 * Returns the name of a column; undefined if no column has the position.
 * @throws {DatabaseError} COLUMN_NOT_FOUND
 */
function columnIn(names: readonly string[], column: string | number): string | undefined {
  if (typeof column === "number") return names[column - 1];
  if (names.includes(column)) return column;
  throw new DatabaseError("COLUMN_NOT_FOUND", `Cannot find column "${column}"`);
}

function onTable(table: TableEntry, privilege: string, place: ObjectPlace): boolean {
  const { catalog, principal } = place;
  const namespace = catalog.namespace(table.namespace);
  switch (privilege) {
    case "insert":
    case "update":
    case "delete":
    case "truncate": {
      const command = privilege === "truncate" ? "delete" : privilege;
      if (table.materialized !== undefined) return false;
      if (table.kind === "stream" && command === "update") return false;
      if (!mayWrite(principal, table, namespace)) return false;
      const role = policyRoleFor(principal, table, namespace);
      if (role === undefined) return true;
      return policiesOf(table, role).some((policy) => isPolicyFor(policy, command));
    }
    case "trigger":
      return mayAlter(principal, table, namespace);
    // A foreign key can refer to every table that its author may read.
    default:
      return mayRead(principal, table, namespace);
  }
}

interface AskedOfView {
  readonly privilege: string;
  /** The column; undefined if the privilege concerns the whole view. */
  readonly name: string | undefined;
}

function onView(view: ViewEntry, { name, privilege }: AskedOfView, place: ObjectPlace): boolean {
  const { catalog, principal } = place;
  switch (privilege) {
    case "select":
      return seesView(view, place);
    case "insert":
    case "update":
    case "delete": {
      if (!seesView(view, place)) return false;
      if (replacesChange(view, privilege)) return true;
      const written = writtenColumns(
        view,
        depsOf(catalog, () => undefined),
      );
      if (name === undefined ? written.size === 0 : !written.has(name)) return false;
      const tables = view.tables.flatMap(({ tableId }) => catalog.tableById(tableId) ?? []);
      const views = view.views.flatMap(({ viewId }) => catalog.viewById(viewId) ?? []);
      return (
        tables.every((table) => seesTable(table, place) && onTable(table, privilege, place)) &&
        views.every(
          (each) =>
            each.routine !== undefined || onView(each, { privilege, name: undefined }, place),
        )
      );
    }
    case "trigger":
      return mayRun(principal, "removeTable", catalog.namespace(view.namespace));
    default:
      return false;
  }
}
