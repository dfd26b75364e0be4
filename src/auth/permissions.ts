/**
 * Defines the rights of each role as pure functions: the role × statement matrix, the table
 * matrix, and the matrix for EXECUTE AS. The SQL layer calls these functions each time a statement
 * runs, and no other code decides whether a statement is allowed.
 *
 * - Access that no row of a matrix allows is refused.
 * - The owner of a namespace has the rights in the rows marked `owner` to all objects in the
 *   namespace. Inside EXECUTE AS, ownership does not apply: the caller has the identity of the
 *   target user with the role `user`.
 * - Rows of USER and STREAM tables are separated by owner number elsewhere. In these tables, all
 *   users may read and write their *own* rows.
 * - In a RESTRICTED table, policies decide about each row for the roles `user` and `service`. If a
 *   table has no policy for a caller's role, the table does not exist for that caller.
 */
import { DatabaseError, type ErrorDetails } from "../base/errors.ts";
import type {
  NamespaceEntry,
  PolicyCommand,
  PolicyEntry,
  PolicyRole,
  Role,
  TableEntry,
  TokenRight,
  TopicEntry,
  ViewLevel,
  ViewRights,
} from "../catalog/mod.ts";
import { accessLevelOf, ROOT_USER_ID } from "../catalog/mod.ts";
import type { Principal } from "./principal.ts";

/**
 * A class of statements that require the same rights. Each is a row of the role × statement
 * matrix.
 */
export type StatementClass =
  /**
   * The class of SELECT, INSERT, UPDATE, DELETE, SUBSCRIBE TO, transactions, USE and SET. The
   * caller also needs the rights to the tables that the statement uses.
   */
  | "rows"
  /** The class of EXPORT USER DATA, SHOW EXPORT, and the download of an archive. */
  | "export"
  /**
   * The class of DESCRIBE, SHOW COLUMNS, SHOW with the name of a setting, and SHOW NAMESPACES,
   * TABLES, STORAGES, STATS or MANIFEST.
   */
  | "show"
  /** The class of CREATE TABLE and ALTER TABLE. */
  | "defineTable"
  /**
   * The class of DROP TABLE, of statements on views, functions and policies, and of DROP for types
   * and sequences.
   */
  | "removeTable"
  /** The class of CREATE NAMESPACE, DROP NAMESPACE and ALTER NAMESPACE OWNER. */
  | "namespace"
  /** The class of STORAGE FLUSH, STORAGE COMPACT, PG_SLEEP, CONSUME and ACK. */
  | "maintain"
  /**
   * The class of EXPLAIN, SHOW ALL, SHOW for the configuration, and the system views that are not
   * public.
   */
  | "inspect"
  /** The class of KILL …, STORAGE CHECK, and CREATE, ALTER and DROP STORAGE. */
  | "operate"
  /** The class of CREATE USER; see `mayCreateUser`. */
  | "newUsers"
  /**
   * The class of ALTER USER, DROP USER, and statements on tokens and invitations; see
   * `mayManageUser`.
   */
  | "users"
  /** The class of statements on topics and webhooks, BACKUP and RESTORE. */
  | "administer";

/**
 * Returns the reason why the caller's token does not permit a kind of access, phrased as the end
 * of a sentence; undefined if the token permits it. A token without scopes permits everything that
 * its user may do.
 *
 * @param asked.right "all" for access that no scope covers.
 * @param asked.namespace The namespace of the object; undefined if the object is in no namespace.
 */
function tokenFault(
  { tokenScope }: Principal,
  { namespace, right }: { right: TokenRight | "all" | undefined; namespace?: string | undefined },
): string | undefined {
  if (tokenScope === undefined) return undefined;
  const { namespaces, rights, tokenName } = tokenScope;
  if (right === "all")
    return `token ${tokenName} has scopes, but this requires a token without scopes`;
  if (right !== undefined && rights?.has(right) === false) {
    return `token ${tokenName} lacks the scope ${right.toUpperCase()}`;
  }
  if (namespace === undefined || namespaces?.has(namespace) !== false) return undefined;
  return `token ${tokenName} is limited to the namespaces ${[...namespaces].join(", ")}`;
}

/**
 * Refuses a caller whose token does not cover the namespace of a topic.
 *
 * @param topicName "namespace.name".
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function requireTopic(
  principal: Principal,
  topicName: string,
  details: ErrorDetails = {},
): void {
  const namespace = topicName.slice(0, topicName.indexOf("."));
  const fault = tokenFault(principal, { right: undefined, namespace });
  if (fault !== undefined) throw denied(`read topic ${topicName}`, fault, details);
}

/**
 * Returns whether a role has at least the rights of another. The order is user < service < dba <
 * system.
 */
export function isAtLeast(role: Role, minimum: Role): boolean {
  return RANKS[role] >= RANKS[minimum];
}

/** Returns whether the caller owns a namespace and is not inside EXECUTE AS. */
export function ownsNamespace(
  principal: Principal,
  namespace: NamespaceEntry | undefined,
): boolean {
  return !principal.isImpersonated && namespace?.owner === principal.userId;
}

/** Returns the lowest role that may run a class of statements on objects that it does not own. */
export function minimumRoleOf(statement: StatementClass): Role {
  return STATEMENTS[statement].minimum;
}

/**
 * Returns whether the role × statement matrix allows the caller to run a class of statements.
 * `namespace` is the namespace of the object, if the statement refers to one.
 */
export function mayRun(
  principal: Principal,
  statement: StatementClass,
  namespace?: NamespaceEntry,
): boolean {
  if (classFault(principal, statement, namespace) !== undefined) return false;
  const { minimum, owner } = STATEMENTS[statement];
  if (isAtLeast(principal.role, minimum)) return true;
  return owner && ownsNamespace(principal, namespace);
}

/**
 * Returns the reason why the caller's token does not permit a class of statements, phrased as the
 * end of a sentence; undefined if the token permits it.
 */
function classFault(
  principal: Principal,
  statement: StatementClass,
  namespace: NamespaceEntry | undefined,
): string | undefined {
  const { isWide, token: right } = STATEMENTS[statement];
  const fault = tokenFault(principal, { right, namespace: namespace?.name });
  if (fault !== undefined || !isWide) return fault;
  const { namespaces, tokenName } = principal.tokenScope ?? {};
  if (namespaces === undefined) return undefined;
  return (
    `token ${tokenName} is limited to the namespaces ${[...namespaces].join(", ")}, but this ` +
    "affects the whole server"
  );
}

/**
 * Refuses a caller who may not run a class of statements.
 * @throws {DatabaseError} PERMISSION_DENIED, with a message that begins with "Cannot" and
 *   continues with `action`, for example "explain a query".
 */
export function requireRun(
  principal: Principal,
  statement: StatementClass,
  { namespace, action, ...details }: { namespace?: NamespaceEntry; action: string } & ErrorDetails,
): void {
  if (mayRun(principal, statement, namespace)) return;
  const fault = classFault(principal, statement, namespace);
  if (fault !== undefined) throw denied(action, fault, details);
  const { minimum, owner } = STATEMENTS[statement];
  throw denied(
    action,
    owner
      ? `this requires the role ${minimum} or higher, or ownership of the namespace`
      : `this requires the role ${minimum} or higher`,
    details,
  );
}

/**
 * Returns whether the caller may read rows of the table. In USER and STREAM tables, these are the
 * caller's own rows.
 */
export function mayRead(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (tokenFault(principal, { right: "read", namespace: table.namespace }) !== undefined) {
    return false;
  }
  if (ownsNamespace(principal, namespace)) return true;
  switch (accessLevelOf(table)) {
    case undefined:
    case "PUBLIC":
      return true;
    case "PRIVATE":
      return isAtLeast(principal.role, "service");
    case "RESTRICTED":
      return isAtLeast(principal.role, "dba") || policiesOf(table, principal.role).length > 0;
    case "DBA":
      return isAtLeast(principal.role, "dba");
  }
}

/**
 * Returns whether the caller may read a view. If the view runs with the rights of its reader, the
 * reader also needs the rights to everything that its query reads.
 */
export function mayReadView(
  principal: Principal,
  view: { readonly namespace: string; readonly ownRights?: ViewRights | undefined },
  namespace: NamespaceEntry | undefined,
): boolean {
  const { namespace: name, ownRights } = view;
  // The token's scope must cover the view itself, no matter which tables the view reads, because
  // even the view's definition reveals something.
  if (tokenFault(principal, { right: "read", namespace: name }) !== undefined) return false;
  if (ownRights === undefined || ownsNamespace(principal, namespace)) return true;
  return isAtLeast(principal.role, VIEW_READERS[ownRights.accessLevel]);
}

const VIEW_READERS: Readonly<Record<ViewLevel, Role>> = {
  PUBLIC: "user",
  PRIVATE: "service",
  DBA: "dba",
};

/**
 * Returns the role whose policies control access to the rows of a table; undefined if the table
 * matrix alone decides.
 */
export function policyRoleFor(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): PolicyRole | undefined {
  if (accessLevelOf(table) !== "RESTRICTED" || ownsNamespace(principal, namespace)) {
    return undefined;
  }
  const { role } = principal;
  return role === "user" || role === "service" ? role : undefined;
}

/** The methods of the catalog that find the owner of a table's namespace. */
interface RuledCatalog {
  readonly namespace: (name: string) => NamespaceEntry | undefined;
}

/** Returns whether policies decide which rows of a table a caller may access. */
export function isRuledFor(
  principal: Principal,
  table: TableEntry,
  catalog: RuledCatalog,
): boolean {
  return policyRoleFor(principal, table, catalog.namespace(table.namespace)) !== undefined;
}

/**
 * Returns the policies of a table that apply to a role, in the order in which they were defined.
 */
export function policiesOf({ policies = [] }: TableEntry, role: Role): readonly PolicyEntry[] {
  return policies.filter(({ roles }) => roles?.some((each) => each === role) !== false);
}

/** Returns whether a policy applies to a command such as SELECT. */
export function isPolicyFor({ command }: PolicyEntry, asked: PolicyCommand): boolean {
  return command === "all" || command === asked;
}

/**
 * Returns whether the caller may read the tombstones of deleted rows: in their own partition, or
 * in a SHARED table that they administer.
 */
export function mayReadHistory(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (table.kind !== "shared") return true;
  return ownsNamespace(principal, namespace) || isAtLeast(principal.role, "dba");
}

/**
 * Returns whether the caller may download the files in a user's rows: users may download their own
 * files, and the role `dba` may download all files.
 */
export function mayReadFilesOf(principal: Principal, userId: string): boolean {
  return userId === principal.userId || isAtLeast(principal.role, "dba");
}

/**
 * Refuses a caller who may not read the messages of a topic. A topic delivers complete rows of its
 * tables, so the caller must be allowed to read each of these tables, and no policies may control
 * the caller's access to their rows.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function requireMessages(
  principal: Principal,
  { name, namespace, sources }: TopicEntry,
  catalog: RuledCatalog & { readonly tableById: (tableId: number) => TableEntry | undefined },
): void {
  requireRun(principal, "maintain", { action: "read topics" });
  for (const { tableId } of sources) {
    const table = catalog.tableById(tableId);
    if (table === undefined) continue;
    if (!mayRead(principal, table, catalog.namespace(table.namespace))) {
      const fault = tokenFault(principal, { right: "read", namespace: table.namespace });
      const reason = `the topic delivers rows that the role ${principal.role} may not read`;
      throw denied(`read topic ${namespace}.${name}`, fault ?? reason, {});
    }
    if (!isRuledFor(principal, table, catalog)) continue;
    throw denied(
      `read topic ${namespace}.${name}`,
      `the topic delivers whole rows of ${table.namespace}.${table.name}, but policies ` +
        `restrict which rows the role ${principal.role} may read`,
      { hint: "consume it with the role dba or higher" },
    );
  }
}

/**
 * Returns whether the caller may write rows of a table. Inside EXECUTE AS, rows of a SHARED table
 * may be written only if policies permit it.
 */
export function mayWrite(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (tokenFault(principal, { right: "write", namespace: table.namespace }) !== undefined) {
    return false;
  }
  if (table.kind !== "shared") return true;
  const role = policyRoleFor(principal, table, namespace);
  if (role !== undefined)
    return policiesOf(table, role).some(({ command }) => command !== "select");
  if (principal.isImpersonated) return false;
  return ownsNamespace(principal, namespace) || isAtLeast(principal.role, writerOf(table));
}

export function mayAlter(
  principal: Principal,
  table: TableEntry,
  namespace: NamespaceEntry | undefined,
): boolean {
  if (tokenFault(principal, { right: "define", namespace: table.namespace }) !== undefined) {
    return false;
  }
  return ownsNamespace(principal, namespace) || isAtLeast(principal.role, writerOf(table));
}

/**
 * Refuses a caller who may not write to a table.
 * @throws {DatabaseError} PERMISSION_DENIED, SHARED_IMPERSONATION
 */
export function requireWrite(principal: Principal, table: TableEntry, right: TableRight): void {
  if (mayWrite(principal, table, right.namespace)) return;
  const { namespace, ...details } = right;
  const name = `${table.namespace}.${table.name}`;
  const fault = tokenFault(principal, { right: "write", namespace: table.namespace });
  if (fault !== undefined) throw denied(`write to table ${name}`, fault, details);
  const role = policyRoleFor(principal, table, namespace);
  if (role !== undefined) {
    const reason = `no policy of the table allows the role ${role} to write`;
    throw denied(`write to table ${name}`, `${levelOf(table)}, and ${reason}`, details);
  }
  if (principal.isImpersonated) {
    throw new DatabaseError(
      "SHARED_IMPERSONATION",
      `Cannot write to table ${name}: it is a SHARED table, but EXECUTE AS can write only to ` +
        "USER and STREAM tables",
      details,
    );
  }
  const writer = `writing to it requires the role ${writerOf(table)} or higher, or ownership of the namespace`;
  throw denied(`write to table ${name}`, `${levelOf(table)}, and ${writer}`, details);
}

/** Refuses a caller who may not alter a table. @throws {DatabaseError} PERMISSION_DENIED */
export function requireAlter(
  principal: Principal,
  table: TableEntry,
  { namespace, ...details }: TableRight,
): void {
  if (mayAlter(principal, table, namespace)) return;
  const action = `alter table ${table.namespace}.${table.name}`;
  const fault = tokenFault(principal, { right: "define", namespace: table.namespace });
  if (fault !== undefined) throw denied(action, fault, details);
  throw denied(
    action,
    `this requires the role ${writerOf(table)} or higher, or ownership of the namespace`,
    details,
  );
}

/** Refuses a caller who may not drop a table. @throws {DatabaseError} PERMISSION_DENIED */
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

/**
 * Refuses a token that does not cover every object that depends on an object being changed or
 * dropped. With CASCADE, a role that may drop an object may drop its dependents in every
 * namespace, but a token is limited to its namespaces. The error does not name objects in other
 * namespaces. This check must therefore run before the check that refuses a change without
 * CASCADE, whose error names the dependents.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function requireReach(
  principal: Principal,
  dependents: readonly { readonly namespace: string }[],
  { action, ...details }: { readonly action: string } & ErrorDetails,
): void {
  for (const { namespace } of dependents) {
    const fault = tokenFault(principal, { right: "define", namespace });
    if (fault === undefined) continue;
    throw denied(action, `${fault}, and an object in another namespace depends on it`, details);
  }
}

/**
 * Refuses a caller who may not create tables in a namespace.
 * @throws {DatabaseError} PERMISSION_DENIED
 */
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

/** The remaining parameters of the `require…` functions, besides the caller and the table. */
export interface TableRight extends ErrorDetails {
  /** The namespace of the table, whose owner has additional rights. */
  readonly namespace: NamespaceEntry | undefined;
}

/**
 * Returns whether the matrix for EXECUTE AS allows the caller to act as a target user.
 *
 * @param target The target user. The role is undefined for an id without an account; the id then
 *   has the role `user`.
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

/** Returns whether the caller's role and token permit acting on behalf of a user. */
export function mayActFor(
  principal: Principal,
  target: { readonly userId: string; readonly role: Role | undefined },
): boolean {
  if (principal.isImpersonated) return false;
  const isOther = target.userId !== principal.userId;
  if (isOther && tokenFault(principal, { right: "act" }) !== undefined) return false;
  return mayExecuteAs({ userId: principal.actorId, role: principal.actorRole }, target);
}

/**
 * Refuses a caller whose token does not permit acting on behalf of other users.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function requireTokenToAct(principal: Principal, targetUserId: string): void {
  if (targetUserId === principal.userId) return;
  const fault = tokenFault(principal, { right: "act" });
  if (fault !== undefined) throw denied(`execute as user ${targetUserId}`, fault, {});
}

/**
 * Returns whether the caller may create, alter or drop a user. Only the role `system`, which
 * `root` has, may change users with the role `system` or grant that role.
 */
export function mayManageUser(
  principal: Principal,
  target: { readonly userId: string; readonly role: Role; readonly newRole?: Role },
): boolean {
  if (principal.isImpersonated || principal.tokenScope !== undefined) return false;
  if (isAtLeast(principal.role, "system")) return true;
  if (!isAtLeast(principal.role, "dba")) return false;
  return target.role !== "system" && target.newRole !== "system" && target.userId !== ROOT_USER_ID;
}

/**
 * Returns whether the caller may create a user. A back end with the role `service` may create
 * users with the role `user`.
 */
export function mayCreateUser(
  principal: Principal,
  target: { readonly userId: string; readonly role: Role },
): boolean {
  if (mayManageUser(principal, target)) return true;
  if (principal.isImpersonated || principal.tokenScope !== undefined) return false;
  const isUser = target.role === "user" && target.userId !== ROOT_USER_ID;
  return isUser && isAtLeast(principal.role, "service");
}

/**
 * Returns whether the caller may set a user's password. Callers may set their own passwords and
 * those of the users they manage.
 */
export function maySetPassword(
  principal: Principal,
  target: { readonly userId: string; readonly role: Role },
): boolean {
  if (principal.isImpersonated || principal.tokenScope !== undefined) return false;
  return principal.userId === target.userId || mayManageUser(principal, target);
}

const RANKS: Readonly<Record<Role, number>> = { user: 0, service: 1, dba: 2, system: 3 };

interface ClassRule {
  /** The lowest role that has this right on objects that it does not own. */
  readonly minimum: Role;
  /** Whether the owner of the namespace has this right, regardless of their role. */
  readonly owner: boolean;
  /**
   * The scope that a service token needs; "all" if only a token without scopes is sufficient;
   * absent if any token is sufficient.
   */
  readonly token?: TokenRight | "all";
  /**
   * True if the right concerns the entire server. Tokens limited to certain namespaces do not have
   * such a right.
   */
  readonly isWide?: true;
}

const STATEMENTS: Readonly<Record<StatementClass, ClassRule>> = {
  rows: { minimum: "user", owner: false },
  export: { minimum: "user", owner: false, token: "read", isWide: true },
  show: { minimum: "user", owner: false },
  defineTable: { minimum: "service", owner: true, token: "define" },
  removeTable: { minimum: "dba", owner: true, token: "define" },
  namespace: { minimum: "dba", owner: false, token: "define", isWide: true },
  maintain: { minimum: "service", owner: false, token: "write" },
  inspect: { minimum: "dba", owner: false, token: "read", isWide: true },
  operate: { minimum: "dba", owner: false, token: "all" },
  newUsers: { minimum: "service", owner: false, token: "all" },
  users: { minimum: "dba", owner: false, token: "all" },
  administer: { minimum: "dba", owner: false, token: "all" },
};

/**
 * Returns the lowest role that may write to a table, or alter it, if the caller does not own its
 * namespace.
 */
function writerOf(table: TableEntry): Role {
  const level = accessLevelOf(table);
  return level === "DBA" || level === "RESTRICTED" ? "dba" : "service";
}

function levelOf(table: TableEntry): string {
  return `it is a SHARED table with ACCESS_LEVEL '${accessLevelOf(table)}'`;
}

function denied(action: string, reason: string, details: ErrorDetails): DatabaseError {
  return new DatabaseError("PERMISSION_DENIED", `Cannot ${action}: ${reason}`, details);
}
