/**
 * Statements about users, maintenance and what there is: CREATE USER, SHOW, DESCRIBE, STORAGE
 * FLUSH and COMPACT, KILL, SUBSCRIBE TO.
 */
import {
  mayRead,
  type NewCredentials,
  type Principal,
  requireRun,
  roleFromWord,
} from "../auth/mod.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Role, TableEntry } from "../catalog/mod.ts";
import type { Store } from "../storage/mod.ts";
import type { Row } from "../types/mod.ts";
import { TEXT } from "../types/mod.ts";
import { notAvailable } from "./bind/binding.ts";
import type { StatementResult } from "./engine.ts";
import type { SqlEnvironment } from "./environment.ts";
import { findNamespace, findTable } from "./names.ts";
import type {
  AlterUserStatement,
  AstNode,
  CreateUserStatement,
  DropUserStatement,
  KillStatement,
  Name,
  Statement,
  StorageTableStatement,
} from "./parse/ast.ts";
import { messageResult, type PlainColumn, rowsResult } from "./result.ts";
import {
  DESCRIBE_COLUMNS,
  describeRows,
  namespaceRows,
  SHOW_NAMESPACES_COLUMNS,
  SHOW_STATS_COLUMNS,
  SHOW_STORAGES_COLUMNS,
  SHOW_TABLES_COLUMNS,
  statsRow,
  storageRow,
  tableRows,
} from "./show.ts";
import { rightOf } from "./statement_rights.ts";
import { explainSubscribe, subscribe } from "./subscribe_statement.ts";

export interface AdministrationCall {
  readonly principal: Principal;
  readonly namespace: string;
  /** Origin of the server as the caller sees it, for SUBSCRIBE TO. */
  readonly baseUrl: string | undefined;
}

const JOB_COLUMNS: readonly PlainColumn[] = [
  "job_id",
  "job_type",
  "status",
  "namespace_id",
  "table_name",
  "message",
].map((name) => ({ name, type: TEXT }));

const SETTING_COLUMNS: readonly PlainColumn[] = ["name", "value", "description", "category"].map(
  (name) => ({ name, type: TEXT }),
);

/** What maintenance does to one table: tells what was done, undefined for nothing. */
interface Maintenance {
  readonly kind: "flush" | "compact";
  /** What ids of such a job begin with. */
  readonly letters: string;
  readonly run: (store: Store, tableId: number) => Promise<string | undefined>;
}

const MAINTENANCE: Readonly<Record<StorageTableStatement["type"], Maintenance>> = {
  "storage flush": {
    kind: "flush",
    letters: "FL",
    run: async (store, tableId) => {
      const { versions } = await store.flush(tableId);
      return versions === 0 ? undefined : `${versions} row version(s) written to a segment`;
    },
  },
  "storage compact": {
    kind: "compact",
    letters: "CO",
    run: async (store, tableId) => {
      const { discardedVersions, mergedSegments } = await store.compact(tableId);
      if (mergedSegments === 0) return undefined;
      return `${mergedSegments} segment(s) merged, ${discardedVersions} old row version(s) discarded`;
    },
  },
};

export class Administration {
  readonly #environment: SqlEnvironment;

  constructor(environment: SqlEnvironment) {
    this.#environment = environment;
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
        return messageResult(this.#dropUser(node, principal), asUser);
      case "storage flush":
      case "storage compact":
        return this.#maintain(node, call);
      case "kill":
        return messageResult(this.#kill(node), asUser);
      case "subscribe":
        return subscribe(this.#environment, node, call);
      case "explain subscribe":
        return explainSubscribe(this.#environment, node.subscribe, call);
      default:
        return this.#show(node, call);
    }
  }

  async #createUser(node: CreateUserStatement, principal: Principal): Promise<string> {
    const { auth, catalog } = this.#environment;
    const userId = node.name.name;
    if (node.ifNotExists === true && catalog.user(userId) !== undefined) {
      return `User ${userId} already exists`;
    }
    const role = roleOf(node.role);
    await auth.createUser(principal, {
      userId,
      credentials: credentialsOf(node),
      ...(role === undefined ? {} : { role }),
      ...(node.email === undefined ? {} : { email: node.email }),
    });
    return `User ${userId} created`;
  }

  async #alterUser(node: AlterUserStatement, principal: Principal): Promise<string> {
    const userId = this.#userId(node.name, principal);
    const role = roleOf(node.role);
    await this.#environment.auth.alterUser(principal, {
      userId,
      ...(node.password === undefined ? {} : { password: node.password }),
      ...(role === undefined ? {} : { role }),
      ...(node.email === undefined ? {} : { email: node.email }),
    });
    return `User ${userId} altered`;
  }

  #dropUser(node: DropUserStatement, principal: Principal): string {
    const { auth, catalog } = this.#environment;
    const userId = node.name.name;
    if (node.purge === true) throw notAvailable(node, "DROP USER … PURGE");
    if (node.ifExists === true && catalog.user(userId) === undefined) {
      return `User ${userId} does not exist`;
    }
    auth.dropUser(principal, userId);
    return `User ${userId} dropped`;
  }

  #userId(name: CreateUserStatement["name"], principal: Principal): string {
    return name.currentUser === true ? principal.userId : name.name;
  }

  /** STORAGE FLUSH and COMPACT: one row for each table that they are about. */
  async #maintain(
    node: StorageTableStatement,
    { namespace, principal }: AdministrationCall,
  ): Promise<StatementResult> {
    const { catalog, store } = this.#environment;
    if (node.namespace !== undefined) findNamespace(catalog, node.namespace.name, node);
    const tables =
      node.table === undefined
        ? catalog
            .tables()
            .filter((t) => node.namespace === undefined || t.namespace === node.namespace.name)
        : [findTable(catalog, node.table, { namespace, node: node.table, principal })];
    const { kind, letters, run } = MAINTENANCE[node.type];
    const rows: Row[] = [];
    for (const table of tables) {
      if (table.kind === "stream") {
        if (node.table === undefined) continue;
        throw new DatabaseError(
          "INVALID_OPERATION",
          `Cannot ${kind} ${table.namespace}.${table.name}: it is a STREAM table`,
          { position: node._location.start },
        );
      }
      const done = await run(store, table.tableId);
      const jobId = done === undefined ? null : `${letters}${store.snowflakeId()}`;
      const status = done === undefined ? "skipped" : "completed";
      const message = done ?? `nothing to ${kind}`;
      rows.push([jobId, kind, status, table.namespace, table.name, message]);
    }
    return rowsResult(JOB_COLUMNS, rows, principal.userId);
  }

  #kill({ id, target, _location }: KillStatement): string {
    const { connections, live } = this.#environment;
    switch (target) {
      case "live query":
        if (live().kill(id)) return `Live query ${id} killed`;
        throw notFound(`live query "${id}"`, _location.start, "SELECT live_id FROM system.live");
      case "connection":
        if (connections().kill(id)) return `Connection ${id} killed`;
        throw notFound(
          `connection "${id}"`,
          _location.start,
          "SELECT connection_id FROM system.connections",
        );
      default:
        throw notAvailable({ _location }, `KILL ${target.toUpperCase()}`);
    }
  }

  #show(node: Statement, { namespace, principal }: AdministrationCall): StatementResult {
    const environment = this.#environment;
    const { catalog } = environment;
    const asUser = principal.userId;
    switch (node.type) {
      case "show namespaces":
        return rowsResult(SHOW_NAMESPACES_COLUMNS, namespaceRows(environment, principal), asUser);
      case "show tables": {
        if (node.namespace !== undefined) findNamespace(catalog, node.namespace.name, node);
        const rows = tableRows(environment, { principal, namespace: node.namespace?.name });
        return rowsResult(SHOW_TABLES_COLUMNS, rows, asUser);
      }
      case "show columns":
      case "describe": {
        const table = this.#visibleTable(node.table, { namespace, principal });
        const versions =
          node.type === "describe" && node.history === true
            ? catalog.tableVersions(table.tableId)
            : [table];
        return rowsResult(DESCRIBE_COLUMNS, versions.flatMap(describeRows), asUser);
      }
      case "show stats": {
        const table = this.#visibleTable(node.table, { namespace, principal });
        return rowsResult(SHOW_STATS_COLUMNS, [statsRow(environment, table, principal)], asUser);
      }
      case "show storages":
        return rowsResult(SHOW_STORAGES_COLUMNS, [storageRow()], asUser);
      case "show all":
      case "show":
        return this.#settings(node, asUser);
      default:
        throw notAvailable(node, node.type.toUpperCase());
    }
  }

  #settings(node: Statement, asUser: string): StatementResult {
    const { settings } = this.#environment;
    const wanted = node.type === "show" ? node.variable.name : undefined;
    const found = settings.filter(({ name }) => wanted === undefined || name === wanted);
    if (found.length === 0) {
      throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find setting "${wanted ?? ""}"`, {
        position: node._location.start,
        hint: "SHOW ALL lists them",
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

  /** A table that the caller may read; another's is as if it were not there. */
  #visibleTable(
    name: Parameters<typeof findTable>[1] & AstNode,
    { namespace, principal }: { namespace: string; principal: Principal },
  ): TableEntry {
    const { catalog } = this.#environment;
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

function credentialsOf({ oauth, password }: CreateUserStatement): NewCredentials {
  if (password !== undefined) return { kind: "password", password };
  if (oauth !== undefined) return { kind: "oauth", link: oauth };
  return { kind: "internal" };
}
