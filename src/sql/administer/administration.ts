/**
 * Statements about users, maintenance and what there is: CREATE USER, SHOW, DESCRIBE, KILL,
 * SUBSCRIBE TO; those that begin jobs are in `job_statements.ts`.
 */
import {
  type AlterUserRequest,
  type CreateUserRequest,
  mayRead,
  mayRun,
  type NewCredentials,
  type Principal,
  requireRun,
  roleFromWord,
} from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Role, TableEntry } from "../../catalog/mod.ts";
import { TEXT } from "../../types/mod.ts";
import { notAvailable } from "../bind/binding.ts";
import type { Parameter, ServerAddress, StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import type { ShownSetting } from "../common/layers_above.ts";
import { messageResult, type PlainColumn, rowsResult } from "../common/result.ts";
import { findNamespace, findTable } from "../common/table_names.ts";
import { type ShownView, visibleViews } from "../common/views.ts";
import type {
  AlterUserStatement,
  AstNode,
  CreateUserStatement,
  DropUserStatement,
  KillStatement,
  Name,
  QName,
  Statement,
} from "../parse/ast/ast.ts";
import type { LivePlanWorld } from "../prepare/live_planner.ts";
import { manifestRows, SHOW_MANIFEST_COLUMNS } from "../system/manifest_rows.ts";
import {
  DESCRIBE_COLUMNS,
  describeRows,
  describeViewRows,
  namespaceRows,
  SHOW_NAMESPACES_COLUMNS,
  SHOW_STATS_COLUMNS,
  SHOW_STORAGES_COLUMNS,
  SHOW_TABLES_COLUMNS,
  statsRow,
  storageRows,
  systemTableRows,
  tableRows,
} from "../system/show.ts";
import { isSystemViews } from "../system/system_views.ts";
import { type ErasureWorld, eraseName } from "./erasure.ts";
import {
  copyDatabase,
  JOB_COLUMNS,
  killJob,
  type MaintenanceWorld,
  maintainedTables,
  maintainTables,
  purgeUser,
} from "./job_statements.ts";
import { rightOf } from "./statement_rights.ts";
import { checkedStorage, checkStorage, STORAGE_CHECK_COLUMNS } from "./storage_check.ts";
import { explainSubscribe, subscribe } from "./subscribe_statement.ts";

export interface AdministrationCall {
  readonly principal: Principal;
  readonly namespace: string;
  /** As the caller sees it, for SUBSCRIBE TO. */
  readonly server: ServerAddress | undefined;
  /** What SET changes, for SHOW. */
  readonly requestSettings: readonly ShownSetting[];
  /** Of the request, for SUBSCRIBE TO. */
  readonly params: readonly Parameter[];
}

const SETTING_COLUMNS: readonly PlainColumn[] = ["name", "value", "description", "category"].map(
  (name) => ({ name, type: TEXT }),
);

/** What shows the objects that SHOW lists in other systems. */
const INSTEAD_OF_SHOW: ReadonlyMap<string, string> = new Map([
  ["databases", "SHOW NAMESPACES lists namespaces"],
  ["users", "SELECT * FROM system.users lists them"],
  ["roles", "SELECT * FROM system.users lists users with their roles"],
  ["views", "SHOW TABLES lists views, too"],
  ["search_path", "SELECT CURRENT_NAMESPACE() gives the current namespace"],
  ["processlist", "SELECT * FROM system.queries lists what runs"],
]);

/** Statements that name nothing of the catalog, or what is only known at their turn. */
const RUN_ONLY: ReadonlySet<Statement["type"]> = new Set<Statement["type"]>([
  "begin",
  "start transaction",
  "commit",
  "rollback",
  "set",
  "set timezone",
  "use namespace",
  "backup",
  "restore",
  "kill",
  "show namespaces",
  "show storages",
  "show manifest",
]);

/** What these statements show and change. */
export interface AdministrationWorld
  extends LivePlanWorld,
    MaintenanceWorld,
    ErasureWorld,
    Pick<
      SqlEnvironment,
      "activity" | "auth" | "backups" | "connections" | "live" | "settings" | "storages"
    > {}

export class Administration {
  readonly #world: AdministrationWorld;

  constructor(world: AdministrationWorld) {
    this.#world = world;
  }

  /** The role × statement matrix, before anything of the request runs. @throws {DatabaseError} */
  authorize(node: Statement, principal: Principal): void {
    const isOwnPassword =
      node.type === "alter user" &&
      node.password !== undefined &&
      this.#userId(node.name, principal) === principal.userId;
    const right = rightOf(node.type);
    if (right === "object" || isOwnPassword) return;
    requireRun(principal, right, {
      action: `run ${node.type.toUpperCase()}`,
      position: node._location.start,
    });
  }

  /** Finds what a statement names wrongly as the catalog is, and changes nothing. @throws {DatabaseError} */
  check(node: Statement, call: AdministrationCall): void {
    switch (node.type) {
      case "create user":
      case "alter user":
      case "drop user":
        this.#checkUser(node, call.principal);
        return;
      case "storage check":
        checkedStorage(this.#world.catalog, node);
        return;
      case "storage flush":
      case "storage compact":
        maintainedTables(this.#world, node, call);
        return;
      case "subscribe":
        subscribe(this.#world, node, call);
        return;
      case "explain subscribe":
        explainSubscribe(this.#world, node.subscribe, call);
        return;
      default:
        if (!RUN_ONLY.has(node.type)) this.#show(node, call);
    }
  }

  /** @throws {DatabaseError} UNSUPPORTED_FEATURE for statements that are not built. */
  async run(node: Statement, call: AdministrationCall): Promise<StatementResult> {
    this.authorize(node, call.principal);
    const { principal } = call;
    const asUser = principal.userId;
    switch (node.type) {
      case "create user":
        return messageResult(await this.#createUser(node, principal), asUser);
      case "alter user":
        return messageResult(await this.#alterUser(node, principal), asUser);
      case "drop user":
        return this.#dropUser(node, principal);
      case "storage check":
        return rowsResult(STORAGE_CHECK_COLUMNS, [checkStorage(this.#world, node)], asUser);
      case "storage flush":
      case "storage compact":
        return rowsResult(JOB_COLUMNS, await maintainTables(this.#world, node, call), asUser);
      case "backup":
      case "restore":
        return rowsResult(
          JOB_COLUMNS,
          await copyDatabase(this.#world, node, principal.userId),
          asUser,
        );
      case "kill":
        return messageResult(this.#kill(node), asUser);
      case "subscribe":
        return subscribe(this.#world, node, call);
      case "explain subscribe":
        return explainSubscribe(this.#world, node.subscribe, call);
      default:
        return this.#show(node, call);
    }
  }

  async #createUser(node: CreateUserStatement, principal: Principal): Promise<string> {
    const { auth, catalog } = this.#world;
    const userId = node.name.name;
    if (node.ifNotExists === true && catalog.user(userId) !== undefined) {
      return `User ${userId} already exists`;
    }
    await auth.createUser(principal, newUserOf(node));
    // Who had the name before leaves nothing; the account has another number, and sees none of it.
    const leftovers = eraseName(this.#world, userId, principal.userId);
    await Promise.all(leftovers.map(({ ended }) => ended));
    return `User ${userId} created`;
  }

  async #alterUser(node: AlterUserStatement, principal: Principal): Promise<string> {
    const change = this.#userChangeOf(node, principal);
    await this.#world.auth.alterUser(principal, change);
    return `User ${change.userId} altered`;
  }

  #userChangeOf(node: AlterUserStatement, principal: Principal): AlterUserRequest {
    const role = roleOf(node.role);
    return {
      userId: this.#userId(node.name, principal),
      ...(node.password === undefined ? {} : { password: node.password }),
      ...(role === undefined ? {} : { role }),
      ...(node.email === undefined ? {} : { email: node.email }),
    };
  }

  /** What a statement about a user would be refused for, but for the password. */
  #checkUser(
    node: CreateUserStatement | AlterUserStatement | DropUserStatement,
    principal: Principal,
  ): void {
    const { auth, catalog } = this.#world;
    const isThere = catalog.user(node.name.name) !== undefined;
    switch (node.type) {
      case "create user":
        if (!isThere || node.ifNotExists !== true) auth.checkCreateUser(principal, newUserOf(node));
        return;
      case "alter user":
        auth.checkAlterUser(principal, this.#userChangeOf(node, principal));
        return;
      case "drop user":
        if (isThere || node.ifExists !== true) auth.checkDropUser(principal, node.name.name);
    }
  }

  async #dropUser(node: DropUserStatement, principal: Principal): Promise<StatementResult> {
    const { auth, catalog } = this.#world;
    const userId = node.name.name;
    const asUser = principal.userId;
    if (node.ifExists === true && catalog.user(userId) === undefined) {
      return messageResult(`User ${userId} does not exist`, asUser);
    }
    const erasesNow = node.purge === true;
    auth.dropUser(principal, userId, { erasesNow });
    if (!erasesNow) return messageResult(`User ${userId} dropped`, asUser);
    return rowsResult(JOB_COLUMNS, await purgeUser(this.#world, userId, asUser), asUser);
  }

  #userId(name: CreateUserStatement["name"], principal: Principal): string {
    return name.currentUser === true ? principal.userId : name.name;
  }

  #kill(node: KillStatement): string {
    const { id, target, _location } = node;
    const { connections, live } = this.#world;
    const known = (isThere: boolean, view: string): string => {
      if (isThere) return `${target.charAt(0).toUpperCase()}${target.slice(1)} ${id} killed`;
      throw notFound(`${target} "${id}"`, _location.start, `SELECT ${view}`);
    };
    switch (target) {
      case "job":
        return killJob(this.#world.jobs, node);
      case "query": {
        const { running } = this.#world.activity;
        return known(running.kill(id), "query_id FROM system.queries");
      }
      case "live query":
        return known(live().kill(id), "live_id FROM system.live");
      case "connection":
        return known(connections().kill(id), "connection_id FROM system.connections");
    }
  }

  #show(
    node: Statement,
    { namespace, principal, requestSettings }: AdministrationCall,
  ): StatementResult {
    const world = this.#world;
    const { catalog, settings, systemViews } = world;
    const asUser = principal.userId;
    switch (node.type) {
      case "show namespaces":
        return rowsResult(SHOW_NAMESPACES_COLUMNS, namespaceRows(catalog, principal), asUser);
      case "show tables": {
        const within = node.namespace?.name;
        if (within !== undefined && isSystemViews(within)) {
          const names = systemViews.namesFor(principal);
          const rows = systemTableRows(catalog, { names, namespace: within });
          return rowsResult(SHOW_TABLES_COLUMNS, rows, asUser);
        }
        if (within !== undefined) findNamespace(catalog, within, node);
        const views = visibleViews(catalog, principal, systemViews.find);
        const rows = tableRows(catalog, { principal, namespace: within, views });
        return rowsResult(SHOW_TABLES_COLUMNS, rows, asUser);
      }
      case "show columns":
      case "describe": {
        const system = systemViews.findFor(node.table, { namespace, principal });
        if (system !== undefined) {
          return rowsResult(DESCRIBE_COLUMNS, describeViewRows(system), asUser);
        }
        const view = this.#visibleView(node.table, { namespace, principal });
        if (view !== undefined) {
          return rowsResult(DESCRIBE_COLUMNS, describeViewRows(view), asUser);
        }
        const table = this.#visibleTable(node.table, { namespace, principal });
        const versions =
          node.type === "describe" && node.history === true
            ? catalog.tableVersions(table.tableId)
            : [table];
        return rowsResult(DESCRIBE_COLUMNS, versions.flatMap(describeRows), asUser);
      }
      case "show stats": {
        const action = "show stats of";
        systemViews.refuse(node.table, { namespace, principal, action });
        const table = this.#visibleTable(node.table, { namespace, principal });
        return rowsResult(SHOW_STATS_COLUMNS, [statsRow(world, table, principal)], asUser);
      }
      case "show manifest":
        return rowsResult(SHOW_MANIFEST_COLUMNS, manifestRows(world, principal), asUser);
      case "show storages": {
        const rows = storageRows(world, { isAdmin: mayRun(principal, "inspect") });
        return rowsResult(SHOW_STORAGES_COLUMNS, rows, asUser);
      }
      case "show all":
      case "show":
        return this.#settings(node, [...settings, ...requestSettings], asUser);
      default:
        throw notAvailable(node, node.type.toUpperCase());
    }
  }

  #settings(node: Statement, settings: readonly ShownSetting[], asUser: string): StatementResult {
    const wanted = node.type === "show" ? node.variable.name.toLowerCase() : undefined;
    const found = settings.filter(({ name }) => wanted === undefined || name === wanted);
    if (found.length === 0) {
      throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find setting "${wanted ?? ""}"`, {
        position: node._location.start,
        hint: INSTEAD_OF_SHOW.get(wanted ?? "") ?? "SHOW ALL lists them",
      });
    }
    const rows = found.map(({ category, description, name, value }) => [
      name,
      value,
      description,
      category,
    ]);
    return rowsResult(SETTING_COLUMNS, rows, asUser);
  }

  /** @throws {DatabaseError} PERMISSION_DENIED for a view that the caller may not read. */
  #visibleView(
    name: QName,
    { namespace, principal }: { namespace: string; principal: Principal },
  ): ShownView | undefined {
    const { catalog, systemViews } = this.#world;
    const entry = catalog.view(name.schema ?? namespace, name.name);
    if (entry === undefined) return undefined;
    const views = visibleViews(catalog, principal, systemViews.find);
    const view = views.find((each) => each.entry === entry);
    if (view !== undefined) return view;
    throw new DatabaseError(
      "PERMISSION_DENIED",
      `Cannot describe view ${entry.namespace}.${entry.name}: it is not readable`,
      { position: name._location.start },
    );
  }

  /** A table that the caller may read; another's is as if it were not there. */
  #visibleTable(
    name: Parameters<typeof findTable>[1] & AstNode,
    { namespace, principal }: { namespace: string; principal: Principal },
  ): TableEntry {
    const { catalog } = this.#world;
    const table = findTable(catalog, name, { namespace, node: name, principal });
    if (mayRead(principal, table, catalog.namespace(table.namespace))) return table;
    throw new DatabaseError(
      "PERMISSION_DENIED",
      `Cannot describe table ${table.namespace}.${table.name}: it is not readable`,
      { position: name._location.start },
    );
  }
}

function notFound(what: string, position: number, hint: string): DatabaseError {
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find ${what}`, { position, hint });
}

function roleOf(word: Name | undefined): Role | undefined {
  if (word === undefined) return undefined;
  const role = roleFromWord(word.name);
  if (role !== undefined) return role;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use role "${word.name}": there is no such role`,
    {
      position: word._location.start,
      hint: "user, service, dba or system",
    },
  );
}

function newUserOf(node: CreateUserStatement): CreateUserRequest {
  const role = roleOf(node.role);
  return {
    userId: node.name.name,
    credentials: credentialsOf(node),
    ...(role === undefined ? {} : { role }),
    ...(node.email === undefined ? {} : { email: node.email }),
  };
}

function credentialsOf({ oauth, password }: CreateUserStatement): NewCredentials {
  if (password !== undefined) return { kind: "password", password };
  if (oauth !== undefined) return { kind: "oauth", link: oauth };
  return { kind: "internal" };
}
