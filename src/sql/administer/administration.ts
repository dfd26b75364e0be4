/**
 * Statements about users, maintenance and what there is: who may run them, and which file does;
 * KILL is here.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Parameter, ServerAddress, StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import type { ShownSetting } from "../common/layers_above.ts";
import { messageResult, rowsResult } from "../common/result.ts";
import {
  type AdministeringStatement,
  isShow,
  requireRight,
  type ShowStatement,
} from "../common/statement_kinds.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { checkResultRows } from "../execute/run/run.ts";
import type { KillStatement, Statement } from "../parse/ast/ast.ts";
import type { LivePlanWorld } from "../prepare/live_planner.ts";
import {
  copyDatabase,
  JOB_COLUMNS,
  killJob,
  type MaintenanceWorld,
  maintainedTables,
  maintainTables,
} from "./job_statements.ts";
import { type ShowWorld, show } from "./show_statements.ts";
import { checkedStorage, checkStorage, STORAGE_CHECK_COLUMNS } from "./storage_check.ts";
import { explainSubscribe, subscribe } from "./subscribe_statement.ts";
import {
  changesOwnPassword,
  checkUserStatement,
  runUserStatement,
  type UserWorld,
} from "./user_statements.ts";

export interface AdministrationCall {
  readonly principal: Principal;
  readonly namespace: string;
  /** As the caller sees it, for SUBSCRIBE TO. */
  readonly server: ServerAddress | undefined;
  /** What SET changes, for SHOW. */
  readonly requestSettings: readonly ShownSetting[];
  /** Of the request, for SUBSCRIBE TO. */
  readonly params: readonly Parameter[];
  /** The time of the request, within which SUBSCRIBE TO is planned. */
  readonly ledger: RequestLedger;
}

/** They name nothing, so nothing of them can be wrong before their turn. */
const SHOWS_OF_ALL: ReadonlySet<ShowStatement["type"]> = new Set<ShowStatement["type"]>([
  "show manifest",
  "show namespaces",
  "show storages",
]);

/** What these statements show and change. */
export interface AdministrationWorld
  extends LivePlanWorld,
    MaintenanceWorld,
    ShowWorld,
    UserWorld,
    Pick<SqlEnvironment, "activity" | "backups" | "connections" | "live" | "storages"> {}

export class Administration {
  readonly #world: AdministrationWorld;

  constructor(world: AdministrationWorld) {
    this.#world = world;
  }

  /**
   * Rights of any statement that defines nothing, before anything of the request runs.
   * @throws {DatabaseError}
   */
  authorize(node: Statement, principal: Principal): void {
    if (!changesOwnPassword(node, principal)) requireRight(node, principal);
  }

  /**
   * Finds what a statement names wrongly as the catalog is, and changes nothing.
   * @throws {DatabaseError}
   */
  check(node: AdministeringStatement, call: AdministrationCall): void {
    if (isShow(node)) {
      if (!SHOWS_OF_ALL.has(node.type)) this.#show(node, call);
      return;
    }
    switch (node.type) {
      case "create user":
      case "alter user":
      case "drop user":
        checkUserStatement(node, { world: this.#world, principal: call.principal });
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
      case "backup":
      case "restore":
      case "kill":
        // They name nothing of the catalog, or what is only known at their turn.
        return;
    }
  }

  /** @throws {DatabaseError} */
  async run(node: AdministeringStatement, call: AdministrationCall): Promise<StatementResult> {
    this.authorize(node, call.principal);
    if (isShow(node)) return this.#show(node, call);
    const { principal } = call;
    const asUser = principal.userId;
    switch (node.type) {
      case "create user":
      case "alter user":
      case "drop user":
        return runUserStatement(node, { world: this.#world, principal });
      case "storage check":
        return rowsResult(STORAGE_CHECK_COLUMNS, [await checkStorage(this.#world, node)], asUser);
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
    }
  }

  #show(node: ShowStatement, call: AdministrationCall): StatementResult {
    const shown = show(this.#world, node, call);
    checkResultRows(shown.rowCount, this.#world.limits.resultRowsMax);
    return shown;
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
}

function notFound(what: string, position: number, hint: string): DatabaseError {
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find ${what}`, { position, hint });
}
