/**
 * Lists the properties of each kind of statement: the right that it requires, the part of the
 * engine that runs it, and its role in a transaction. The compiler enforces completeness: a new
 * statement type does not compile until it has an entry here and the named part of the engine
 * handles it.
 */
import { type Principal, requireRun, type StatementClass } from "../../auth/mod.ts";
import type {
  AckStatement,
  AlterIndexStatement,
  AlterNamespaceStatement,
  AlterOwnerStatement,
  AlterSequenceStatement,
  AlterStorageStatement,
  AlterTableStatement,
  AlterTopicStatement,
  AlterUserStatement,
  AlterViewStatement,
  AlterWebhookStatement,
  BackupStatement,
  ClearTopicStatement,
  CommentStatement,
  ConsumeStatement,
  CreateExtensionStatement,
  CreateIndexStatement,
  CreateNamespaceStatement,
  CreateSequenceStatement,
  CreateStorageStatement,
  CreateTableStatement,
  CreateTopicStatement,
  CreateUserStatement,
  CreateViewStatement,
  CreateWebhookStatement,
  DescribeFunctionStatement,
  DescribeStatement,
  DescribeTopicStatement,
  DoStatement,
  DropIndexStatement,
  DropNamespaceStatement,
  DropSequenceStatement,
  DropStorageStatement,
  DropTableStatement,
  DropTopicStatement,
  DropUserStatement,
  DropViewStatement,
  DropWebhookStatement,
  ExplainSubscribeStatement,
  ExportStatement,
  FunctionDefinition,
  KillStatement,
  PolicyDefinition,
  RestoreStatement,
  SecretDefinition,
  ShowColumnsStatement,
  ShowPoliciesStatement,
  ShowSimpleStatement,
  ShowStatsStatement,
  ShowTablesStatement,
  ShowTopicsStatement,
  ShowVariableStatement,
  Statement,
  StorageCheckStatement,
  StorageTableStatement,
  SubscribeStatement,
  TriggerDefinition,
  TypeDefinition,
} from "../parse/ast/ast.ts";
import type { PartitionDefinition } from "../parse/ast/ast_partitions.ts";

/** A statement that lists system information. */
export type ShowStatement =
  | ShowVariableStatement
  | ShowSimpleStatement
  | ShowTablesStatement
  | ShowTopicsStatement
  | ShowPoliciesStatement
  | ShowColumnsStatement
  | ShowStatsStatement
  | DescribeStatement
  | DescribeFunctionStatement
  | DescribeTopicStatement;

/** A statement that `sql/ddl` runs. */
export type DefiningStatement =
  | CreateNamespaceStatement
  | AlterNamespaceStatement
  | DropNamespaceStatement
  | CreateTableStatement
  | AlterTableStatement
  | PartitionDefinition
  | DropTableStatement
  | CreateIndexStatement
  | AlterIndexStatement
  | DropIndexStatement
  | CreateViewStatement
  | AlterViewStatement
  | DropViewStatement
  | CreateSequenceStatement
  | AlterSequenceStatement
  | DropSequenceStatement
  | TypeDefinition
  | DoStatement
  | AlterOwnerStatement
  | CommentStatement
  | CreateExtensionStatement
  | FunctionDefinition
  | PolicyDefinition
  | TriggerDefinition
  | CreateStorageStatement
  | AlterStorageStatement
  | DropStorageStatement
  | CreateTopicStatement
  | AlterTopicStatement
  | AlterWebhookStatement
  | CreateWebhookStatement
  | DropWebhookStatement;

/** A statement that `sql/utility` runs. */
export type AdministeringStatement =
  | ShowStatement
  | SubscribeStatement
  | ExplainSubscribeStatement
  | StorageTableStatement
  | StorageCheckStatement
  | KillStatement
  | CreateUserStatement
  | AlterUserStatement
  | DropUserStatement
  | SecretDefinition
  | BackupStatement
  | ExportStatement
  | RestoreStatement
  | DropTopicStatement
  | ClearTopicStatement
  | ConsumeStatement
  | AckStatement;

/**
 * The part of the engine that binds and runs a statement. Statements that read or write rows are
 * prepared. `request.ts` handles statements that change the request itself. The folders `ddl` and
 * `utility` handle all other statements; `show` is a part of `utility`.
 */
type Home = "rows" | "request" | "ddl" | "utility" | "show";

/**
 * Derives the part of the engine that runs each statement type, to keep the table below consistent
 * with the types above.
 */
type HomeOf<Type extends Statement["type"]> = Type extends DefiningStatement["type"]
  ? "ddl"
  : Type extends ShowStatement["type"]
    ? "show"
    : Type extends AdministeringStatement["type"]
      ? "utility"
      : "rows" | "request";

interface StatementKind<HomeHere extends Home> {
  /**
   * The statement's row in the role × statement matrix. `"object"` means that the required right
   * depends on the object that the statement names: `sql/ddl/definitions.ts` checks the right to
   * the namespace or table, and `sql/request/request_binding.ts` checks the right to run the
   * statement inside EXECUTE AS.
   */
  readonly right: StatementClass | "object";
  readonly home: HomeHere;
  /**
   * The kind of work that the statement does. It decides whether the statement may run in a
   * transaction, and how the slow request log treats it.
   */
  readonly work: "show" | "job" | "other";
}

const ROWS = { right: "rows", home: "rows", work: "other" } as const;
const REQUEST = { right: "rows", home: "request", work: "other" } as const;
const DEFINITION = { right: "object", home: "ddl", work: "other" } as const;
const STORAGE = { right: "operate", home: "ddl", work: "other" } as const;
const TOPIC = { right: "administer", home: "ddl", work: "other" } as const;
const TOPIC_JOB = { right: "administer", home: "utility", work: "job" } as const;
const MESSAGES = { right: "maintain", home: "utility", work: "other" } as const;
const SHOW = { right: "show", home: "show", work: "show" } as const;
const SHOW_TOPICS = { right: "maintain", home: "show", work: "show" } as const;
const SHOW_WEBHOOKS = { right: "administer", home: "show", work: "show" } as const;
const SHOW_SECRETS = { right: "users", home: "show", work: "show" } as const;
const INSPECTION = { right: "inspect", home: "show", work: "show" } as const;
const MAINTENANCE = { right: "maintain", home: "utility", work: "job" } as const;
const OPERATION = { right: "operate", home: "utility", work: "other" } as const;
const USER = { right: "users", home: "utility", work: "other" } as const;
const COPY = { right: "administer", home: "utility", work: "job" } as const;

const KINDS: Readonly<{ [Type in Statement["type"]]: StatementKind<HomeOf<Type>> }> = {
  select: ROWS,
  union: ROWS,
  "union all": ROWS,
  intersect: ROWS,
  "intersect all": ROWS,
  except: ROWS,
  "except all": ROWS,
  values: ROWS,
  with: ROWS,
  "with recursive": ROWS,
  insert: ROWS,
  update: ROWS,
  delete: ROWS,
  merge: ROWS,
  "copy to": ROWS,
  "select for": ROWS,
  "declare cursor": ROWS,
  truncate: REQUEST,
  "refresh materialized view": { right: "object", home: "request", work: "other" },
  "call procedure": ROWS,
  "do block": REQUEST,
  "create table as": { right: "object", home: "request", work: "other" },
  prepare: REQUEST,
  "execute prepared": REQUEST,
  deallocate: REQUEST,
  fetch: REQUEST,
  move: REQUEST,
  "close cursor": REQUEST,
  "execute as": { right: "object", home: "rows", work: "other" },
  explain: { right: "inspect", home: "rows", work: "show" },
  begin: REQUEST,
  "start transaction": REQUEST,
  commit: REQUEST,
  rollback: REQUEST,
  "set constraints": REQUEST,
  savepoint: REQUEST,
  "release savepoint": REQUEST,
  "rollback to": REQUEST,
  "use namespace": REQUEST,
  set: REQUEST,
  "set timezone": REQUEST,
  "reset all": REQUEST,
  "set transaction": REQUEST,
  "create namespace": DEFINITION,
  "alter namespace": DEFINITION,
  "drop namespace": DEFINITION,
  "create table": DEFINITION,
  "alter table": DEFINITION,
  "attach partition": DEFINITION,
  "detach partition": DEFINITION,
  "drop table": DEFINITION,
  "create index": DEFINITION,
  "alter index": DEFINITION,
  "drop index": DEFINITION,
  "create view": DEFINITION,
  "alter view": DEFINITION,
  "drop view": DEFINITION,
  "create sequence": DEFINITION,
  "alter sequence": DEFINITION,
  "drop sequence": DEFINITION,
  "create collation": DEFINITION,
  "create domain": DEFINITION,
  "alter domain": DEFINITION,
  "create type": DEFINITION,
  "alter type": DEFINITION,
  "drop type": DEFINITION,
  do: DEFINITION,
  "alter owner": DEFINITION,
  "comment on": DEFINITION,
  "create aggregate": DEFINITION,
  "create function": DEFINITION,
  "alter function": DEFINITION,
  "drop function": DEFINITION,
  "create policy": DEFINITION,
  "alter policy": DEFINITION,
  "drop policy": DEFINITION,
  "create trigger": DEFINITION,
  "alter trigger": DEFINITION,
  "drop trigger": DEFINITION,
  "create extension": { right: "rows", home: "ddl", work: "other" },
  "create storage": STORAGE,
  "alter storage": STORAGE,
  "drop storage": STORAGE,
  "create topic": TOPIC,
  "alter topic": TOPIC,
  "create webhook": TOPIC,
  "alter webhook": TOPIC,
  "drop webhook": TOPIC,
  "drop topic": TOPIC_JOB,
  "clear topic": TOPIC_JOB,
  consume: MESSAGES,
  ack: MESSAGES,
  "show namespaces": SHOW,
  "show tables": SHOW,
  "show topics": SHOW_TOPICS,
  "show policies": SHOW,
  "show columns": SHOW,
  "show stats": SHOW,
  "show storages": SHOW,
  "show functions": SHOW,
  "show webhooks": SHOW_WEBHOOKS,
  "show tokens": SHOW_SECRETS,
  "show invitations": SHOW_SECRETS,
  "show manifest": SHOW,
  "show export": { right: "export", home: "show", work: "show" },
  describe: SHOW,
  "describe function": SHOW,
  "describe topic": SHOW_TOPICS,
  show: SHOW,
  "show all": INSPECTION,
  "explain subscribe": { right: "inspect", home: "utility", work: "show" },
  subscribe: { right: "rows", home: "utility", work: "other" },
  "storage flush": MAINTENANCE,
  "storage compact": MAINTENANCE,
  "storage check": OPERATION,
  kill: OPERATION,
  "create user": { right: "newUsers", home: "utility", work: "other" },
  "alter user": USER,
  "drop user": USER,
  "create token": USER,
  "drop token": USER,
  "create invitation": USER,
  "drop invitation": USER,
  backup: COPY,
  restore: COPY,
  "export user data": { right: "export", home: "utility", work: "job" },
};

/** The types of all statements. */
export const STATEMENT_TYPES: readonly Statement["type"][] = Object.keys(
  KINDS,
) as Statement["type"][];

/**
 * Returns the class of the right that a statement needs; "object" if the right depends on the
 * object that the statement names.
 */
export function statementRight(type: Statement["type"]): StatementClass | "object" {
  return KINDS[type].right;
}

export function isDefining(node: Statement): node is DefiningStatement {
  return KINDS[node.type].home === "ddl";
}

export function isAdministering(node: Statement): node is AdministeringStatement {
  return KINDS[node.type].home === "utility" || isShow(node);
}

export function isShow(node: Statement): node is ShowStatement {
  return KINDS[node.type].home === "show";
}

/** Whether a statement concerns a service token or an invitation. */
export function isSecretDefinition(
  node: AdministeringStatement,
): node is Extract<AdministeringStatement, SecretDefinition> {
  return SECRETS.has(node.type);
}

const SECRETS: ReadonlySet<Statement["type"]> = new Set<SecretDefinition["type"]>([
  "create token",
  "drop token",
  "create invitation",
  "drop invitation",
]);

/**
 * Applies the role × statement matrix. Statements whose right depends on their object are skipped.
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function requireRight(node: Statement, principal: Principal): void {
  const { right } = KINDS[node.type];
  if (right === "object") return;
  requireRun(principal, right, {
    action: `run ${node.type.toUpperCase()}`,
    position: node._location.start,
  });
}

/** Whether a statement runs as a job. The job can outlast the statement that waits for it. */
export function isJobNode(node: Statement): boolean {
  if (node.type === "drop user") return node.purge === true;
  return KINDS[node.type].work === "job";
}

/** Whether a definition can take effect when a transaction commits. */
export function isTransactional(node: DefiningStatement): boolean {
  if (node.type === "do") return isTransactional(node.statement);
  const isConcurrent = "isConcurrent" in node && node.isConcurrent === true;
  return !isConcurrent && !OUTSIDE_TRANSACTIONS.has(node.type);
}

/** Definitions that cannot take effect when a transaction commits. */
const OUTSIDE_TRANSACTIONS: ReadonlySet<DefiningStatement["type"]> = new Set<
  DefiningStatement["type"]
>([
  // ALTER TYPE changes the name or labels of a type for every column that has the type, in all
  // tables.
  "alter type",
  // Storages, topics and webhooks have state outside the catalog: a storage is a directory, and
  // topics and webhooks keep positions and deliveries.
  "create storage",
  "alter storage",
  "drop storage",
  "create topic",
  "alter topic",
  "create webhook",
  "alter webhook",
  "drop webhook",
]);

export function isReadOnlyNode({ type }: Statement): boolean {
  return KINDS[type].work === "show";
}
