/**
 * What is decided for each kind of statement: who may run it, which part of the engine does, and
 * what it is to its transaction. One total table: a statement that is added does not compile before
 * somebody has decided, and then where the part that is named has no case for it.
 */
import { type Principal, requireRun, type StatementClass } from "../../auth/mod.ts";
import type {
  AlterNamespaceStatement,
  AlterStorageStatement,
  AlterTableStatement,
  AlterUserStatement,
  BackupStatement,
  CreateNamespaceStatement,
  CreateStorageStatement,
  CreateTableStatement,
  CreateUserStatement,
  CreateViewStatement,
  DescribeStatement,
  DropNamespaceStatement,
  DropStorageStatement,
  DropTableStatement,
  DropUserStatement,
  DropViewStatement,
  ExplainSubscribeStatement,
  KillStatement,
  RestoreStatement,
  ShowColumnsStatement,
  ShowSimpleStatement,
  ShowStatsStatement,
  ShowTablesStatement,
  ShowVariableStatement,
  Statement,
  StorageCheckStatement,
  StorageTableStatement,
  SubscribeStatement,
} from "../parse/ast/ast.ts";

/** A statement that lists what there is. */
export type ShowStatement =
  | ShowVariableStatement
  | ShowSimpleStatement
  | ShowTablesStatement
  | ShowColumnsStatement
  | ShowStatsStatement
  | DescribeStatement;

/** A statement that `sql/define` runs. */
export type DefiningStatement =
  | CreateNamespaceStatement
  | AlterNamespaceStatement
  | DropNamespaceStatement
  | CreateTableStatement
  | AlterTableStatement
  | DropTableStatement
  | CreateViewStatement
  | DropViewStatement
  | CreateStorageStatement
  | AlterStorageStatement
  | DropStorageStatement;

/** A statement that `sql/administer` runs. */
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
  | BackupStatement
  | RestoreStatement;

/**
 * Who binds and runs a statement: what reads or writes rows is prepared; `request.ts` has what
 * changes the request itself; `define` and `administer` are the rooms, the latter also of `show`.
 */
type Home = "rows" | "request" | "define" | "administer" | "show";

/** Ties the table to the types above: neither says of a statement what the other does not. */
type HomeOf<Type extends Statement["type"]> = Type extends DefiningStatement["type"]
  ? "define"
  : Type extends ShowStatement["type"]
    ? "show"
    : Type extends AdministeringStatement["type"]
      ? "administer"
      : "rows" | "request";

interface StatementKind<HomeHere extends Home> {
  /**
   * Its row of the role × statement matrix. `"object"` is decided by what the statement names:
   * `sql/define/definitions.ts` asks with the namespace or the table at hand,
   * `sql/request/request_binding.ts` for the statement inside EXECUTE AS.
   */
  readonly right: StatementClass | "object";
  readonly home: HomeHere;
  /** As far as its transaction and the log of slow requests ask. */
  readonly work: "show" | "job" | "other";
}

const ROWS = { right: "rows", home: "rows", work: "other" } as const;
const REQUEST = { right: "rows", home: "request", work: "other" } as const;
const SETTING = { right: "inspect", home: "request", work: "other" } as const;
const DEFINITION = { right: "object", home: "define", work: "other" } as const;
const STORAGE = { right: "operate", home: "define", work: "other" } as const;
const SHOW = { right: "show", home: "show", work: "show" } as const;
const INSPECTION = { right: "inspect", home: "show", work: "show" } as const;
const MAINTENANCE = { right: "maintain", home: "administer", work: "job" } as const;
const OPERATION = { right: "operate", home: "administer", work: "other" } as const;
const USER = { right: "users", home: "administer", work: "other" } as const;
const COPY = { right: "administer", home: "administer", work: "job" } as const;

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
  "execute as": { right: "object", home: "rows", work: "other" },
  explain: { right: "inspect", home: "rows", work: "show" },
  begin: REQUEST,
  "start transaction": REQUEST,
  commit: REQUEST,
  rollback: REQUEST,
  "use namespace": REQUEST,
  set: SETTING,
  "set timezone": SETTING,
  "create namespace": DEFINITION,
  "alter namespace": DEFINITION,
  "drop namespace": DEFINITION,
  "create table": DEFINITION,
  "alter table": DEFINITION,
  "drop table": DEFINITION,
  "create view": DEFINITION,
  "drop view": DEFINITION,
  "create storage": STORAGE,
  "alter storage": STORAGE,
  "drop storage": STORAGE,
  "show namespaces": SHOW,
  "show tables": SHOW,
  "show columns": SHOW,
  "show stats": SHOW,
  "show storages": SHOW,
  "show manifest": SHOW,
  describe: SHOW,
  show: INSPECTION,
  "show all": INSPECTION,
  "explain subscribe": { right: "inspect", home: "administer", work: "show" },
  subscribe: { right: "rows", home: "administer", work: "other" },
  "storage flush": MAINTENANCE,
  "storage compact": MAINTENANCE,
  "storage check": OPERATION,
  kill: OPERATION,
  "create user": USER,
  "alter user": USER,
  "drop user": USER,
  backup: COPY,
  restore: COPY,
};

export function isDefining(node: Statement): node is DefiningStatement {
  return KINDS[node.type].home === "define";
}

export function isAdministering(node: Statement): node is AdministeringStatement {
  return KINDS[node.type].home === "administer" || isShow(node);
}

export function isShow(node: Statement): node is ShowStatement {
  return KINDS[node.type].home === "show";
}

/**
 * Asks the role × statement matrix, but for what depends on an object.
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

/** Whether the work of a statement is a job, which goes on by itself while the statement waits. */
export function isJobNode(node: Statement): boolean {
  if (node.type === "drop user") return node.purge === true;
  return KINDS[node.type].work === "job";
}

/** Whether a statement that is not about rows may stand in a transaction. */
export function isReadOnlyNode({ type }: Statement): boolean {
  return KINDS[type].work === "show";
}
