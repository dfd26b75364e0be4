/**
 * Who may do what: the role × statement matrix, the table matrix and the matrix of EXECUTE AS, as
 * pure functions. The SQL layer asks them before each run, and nobody else decides about
 * statements.
 *
 * - Default deny: what no row of a matrix admits is refused.
 * - The owner of a namespace has, on what lies in it, the rights of the rows marked `owner`. Inside
 *   EXECUTE AS nobody owns anything: the caller is the identity with role `user` and no more.
 * - Rows of USER and STREAM tables are kept apart by their owner number, not here: everybody may
 *   read and write *own* rows.
 */
import { DatabaseError, type ErrorDetails } from "../base/errors.ts";
import type { NamespaceEntry, Role, TableEntry } from "../catalog/mod.ts";
import { accessLevelOf, ROOT_USER_ID } from "../catalog/mod.ts";
import type { Principal } from "./principal.ts";

/** A group of statements that one row of the matrix admits. */
export type StatementClass =
  /** SELECT, INSERT, UPDATE, DELETE, SUBSCRIBE TO, transactions, USE; then the table matrix. */
  | "rows"
  /** SHOW NAMESPACES, TABLES, STORAGES, STATS, MANIFEST; DESCRIBE, SHOW COLUMNS. */
  | "show"
  /** CREATE TABLE, ALTER TABLE. */
  | "defineTable"
  /** DROP TABLE, CREATE VIEW, DROP VIEW, ALTER NAMESPACE SET OPTIONS. */
  | "removeTable"
  /** CREATE NAMESPACE, DROP NAMESPACE, ALTER NAMESPACE OWNER. */
  | "namespace"
  /** STORAGE FLUSH, STORAGE COMPACT, PG_SLEEP, CONSUME, ACK. */
  | "maintain"
  /** EXPLAIN, SET, SHOW ALL, SHOW name, and the system views that are not open to everybody. */
  | "inspect"
  /** KILL …, STORAGE CHECK, CREATE/ALTER/DROP STORAGE. */
  | "operate"
  /** CREATE/ALTER/DROP USER; see `mayManageUser`. */
  | "users"
  /** Topics, BACKUP, RESTORE, policies. */
  | "administer";

/** Whether a role is at least another: user < service < dba < system. */
export function isAtLeast(role: Role, minimum: Role): boolean {
  return RANKS[role] >= RANKS[minimum];
}

/** Whether the caller owns a namespace, outside EXECUTE AS. */
export function ownsNamespace(
  principal: Principal,
  namespace: NamespaceEntry | undefined,
): boolean {
  return !principal.isImpersonated && namespace?.owner === principal.userId;
}

/** The role × statement matrix. `namespace` is the one that holds the object, if there is one. */
export function mayRun(
  principal: Principal,
  statement: StatementClass,
  namespace?: NamespaceEntry,
): boolean {
  const { minimum, owner } = STATEMENTS[statement];
  if (isAtLeast(principal.role, minimum)) return true;
  return owner && ownsNamespace(principal, namespace);
}

/** @throws {DatabaseError} PERMISSION_DENIED; `action` reads like "explain a query". */
export function requireRun(
  principal: Principal,
  statement: StatementClass,
  { namespace, action, ...details }: { namespace?: NamespaceEntry; action: string } & ErrorDetails,
): void {
  if (mayRun(principal, statement, namespace)) return;
  const { minimum, owner } = STATEMENTS[statement];
  throw denied(
    action,
    owner
      ? `it takes role ${minimum} or higher, or the owner of the namespace`
      : `it takes role ${minimum} or higher`,
    details,
  );
}

/** Whether rows of the table may be read; of USER and STREAM tables the own ones. */
export function mayRead(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (ownsNamespace(principal, namespace)) return true;
  switch (accessLevelOf(table)) {
    case undefined:
    case "PUBLIC":
      return true;
    case "PRIVATE":
    case "RESTRICTED":
      return isAtLeast(principal.role, "service");
    case "DBA":
      return isAtLeast(principal.role, "dba");
  }
}

/** Whether tombstones may be read: own ones, and those of a SHARED table by who administers it. */
export function mayReadHistory(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (table.kind !== "shared") return true;
  return ownsNamespace(principal, namespace) || isAtLeast(principal.role, "dba");
}

/** Whether files of a user's rows may be downloaded: own ones, and those of others by role dba. */
export function mayReadFilesOf(principal: Principal, userId: string): boolean {
  return userId === principal.userId || isAtLeast(principal.role, "dba");
}

/** Whether rows may be written; inside EXECUTE AS never those of a SHARED table. */
export function mayWrite(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (table.kind !== "shared") return true;
  if (principal.isImpersonated) return false;
  return ownsNamespace(principal, namespace) || isAtLeast(principal.role, writerOf(table));
}

export function mayAlter(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  return ownsNamespace(principal, namespace) || isAtLeast(principal.role, writerOf(table));
}

/** @throws {DatabaseError} PERMISSION_DENIED, SHARED_IMPERSONATION */
export function requireWrite(principal: Principal, table: TableEntry, right: TableRight): void {
  if (mayWrite(principal, table, right.namespace)) return;
  const { namespace: _, ...details } = right;
  const name = `${table.namespace}.${table.name}`;
  if (principal.isImpersonated) {
    throw new DatabaseError(
      "SHARED_IMPERSONATION",
      `Cannot write table ${name}: it is SHARED, and EXECUTE AS writes rows of USER and STREAM tables only`,
      details,
    );
  }
  const writer = `role ${writerOf(table)} or higher writes it, or the owner of the namespace`;
  throw denied(`write table ${name}`, `${levelOf(table)}, and ${writer}`, details);
}

/** @throws {DatabaseError} PERMISSION_DENIED */
export function requireAlter(
  principal: Principal,
  table: TableEntry,
  { namespace, ...details }: TableRight,
): void {
  if (mayAlter(principal, table, namespace)) return;
  throw denied(
    `alter table ${table.namespace}.${table.name}`,
    `it takes role ${writerOf(table)} or higher, or the owner of the namespace`,
    details,
  );
}

/** @throws {DatabaseError} PERMISSION_DENIED */
export function requireDrop(
  principal: Principal,
  table: TableEntry,
  { namespace, ...details }: TableRight,
): void {
  requireRun(principal, "removeTable", {
    ...(namespace === undefined ? {} : { namespace }),
    action: `drop table ${table.namespace}.${table.name}`,
    ...details,
  });
}

/** @throws {DatabaseError} PERMISSION_DENIED */
export function requireCreateTable(
  principal: Principal,
  tableName: string,
  { namespace, ...details }: TableRight,
): void {
  requireRun(principal, "defineTable", {
    ...(namespace === undefined ? {} : { namespace }),
    action: `create table ${tableName}`,
    ...details,
  });
}

/** What the `require…` functions of tables need beside the table. */
export interface TableRight extends ErrorDetails {
  /** The namespace that holds the table. */
  readonly namespace: NamespaceEntry | undefined;
}

/**
 * The matrix of EXECUTE AS.
 *
 * @param target Its role is undefined for an id without account, which counts as role `user`.
 */
export function mayExecuteAs(
  actor: { readonly userId: string; readonly role: Role },
  target: { readonly userId: string; readonly role: Role | undefined },
): boolean {
  if (actor.userId === target.userId) return true;
  const role = target.role ?? "user";
  switch (actor.role) {
    case "system":
      return true;
    case "dba":
      return role !== "system";
    case "service":
      return role === "service" || role === "user";
    case "user":
      return false;
  }
}

/**
 * Whether the caller may create, alter or drop a user. Nobody but role `system` touches a user of
 * role `system` or grants that role; `root` has it.
 */
export function mayManageUser(
  principal: Principal,
  target: { readonly userId: string; readonly role: Role; readonly newRole?: Role },
): boolean {
  if (principal.isImpersonated) return false;
  if (isAtLeast(principal.role, "system")) return true;
  if (!isAtLeast(principal.role, "dba")) return false;
  return target.role !== "system" && target.newRole !== "system" && target.userId !== ROOT_USER_ID;
}

/** Whether the caller may set the password of a user: own, or that of one whom it manages. */
export function maySetPassword(
  principal: Principal,
  target: { readonly userId: string; readonly role: Role },
): boolean {
  if (principal.isImpersonated) return false;
  return principal.userId === target.userId || mayManageUser(principal, target);
}

const RANKS: Readonly<Record<Role, number>> = { user: 0, service: 1, dba: 2, system: 3 };

const STATEMENTS: Readonly<
  Record<StatementClass, { readonly minimum: Role; readonly owner: boolean }>
> = {
  rows: { minimum: "user", owner: false },
  show: { minimum: "user", owner: false },
  defineTable: { minimum: "service", owner: true },
  removeTable: { minimum: "dba", owner: true },
  namespace: { minimum: "dba", owner: false },
  maintain: { minimum: "service", owner: false },
  inspect: { minimum: "dba", owner: false },
  operate: { minimum: "dba", owner: false },
  users: { minimum: "dba", owner: false },
  administer: { minimum: "dba", owner: false },
};

/** The lowest role that writes and alters a table that it does not own. */
function writerOf(table: TableEntry): Role {
  return accessLevelOf(table) === "DBA" ? "dba" : "service";
}

function levelOf(table: TableEntry): string {
  return `it is a SHARED table of ACCESS_LEVEL '${accessLevelOf(table)}'`;
}

function denied(action: string, reason: string, details: ErrorDetails): DatabaseError {
  return new DatabaseError("PERMISSION_DENIED", `Cannot ${action}: ${reason}`, details);
}
