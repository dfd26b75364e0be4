/**
 * The row of the role × statement matrix for each statement. The table is total: a statement that
 * is added does not compile before somebody has decided who may run it.
 */
import type { StatementClass } from "../../auth/mod.ts";
import type { Statement } from "../parse/ast/ast.ts";

/**
 * `"object"` is decided by what the statement names: `sql/define/definitions.ts` asks with the
 * namespace or the table at hand, `sql/request/request.ts` for the statement inside EXECUTE AS.
 */
export type StatementRight = StatementClass | "object";

const RIGHTS: Readonly<Record<Statement["type"], StatementRight>> = {
  select: "rows",
  union: "rows",
  "union all": "rows",
  intersect: "rows",
  "intersect all": "rows",
  except: "rows",
  "except all": "rows",
  values: "rows",
  with: "rows",
  "with recursive": "rows",
  insert: "rows",
  update: "rows",
  delete: "rows",
  begin: "rows",
  "start transaction": "rows",
  commit: "rows",
  rollback: "rows",
  "use namespace": "rows",
  subscribe: "rows",
  copy: "rows",
  "export user data": "rows",
  "show export": "rows",
  "show namespaces": "show",
  "show tables": "show",
  "show columns": "show",
  "show stats": "show",
  "show storages": "show",
  "show manifest": "show",
  describe: "show",
  "execute as": "object",
  "create namespace": "object",
  "alter namespace": "object",
  "drop namespace": "object",
  "create table": "object",
  "alter table": "object",
  "drop table": "object",
  "create view": "object",
  "drop view": "object",
  "storage flush": "maintain",
  "storage compact": "maintain",
  consume: "maintain",
  ack: "maintain",
  explain: "inspect",
  "explain subscribe": "inspect",
  show: "inspect",
  "show all": "inspect",
  set: "inspect",
  "set timezone": "inspect",
  kill: "operate",
  "storage check": "operate",
  "create storage": "operate",
  "alter storage": "operate",
  "drop storage": "operate",
  "create user": "users",
  "alter user": "users",
  "drop user": "users",
  backup: "administer",
  restore: "administer",
  "create topic": "administer",
  "alter topic": "administer",
  "drop topic": "administer",
  "clear topic": "administer",
  "create policy": "administer",
  "alter policy": "administer",
  "drop policy": "administer",
};

/** Of ALTER USER, a change of the own password alone is for everybody. */
export function rightOf(type: Statement["type"]): StatementRight {
  return RIGHTS[type];
}
