/**
 * Authorises administrative statements and passes them to the files that run them. These
 * statements concern users and their tokens, maintenance, and system information. KILL is handled
 * here.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Value } from "../../types/mod.ts";
import { checkResultRows } from "../execute/context/execution_context.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { KillStatement, Statement } from "../parse/ast/ast.ts";
import type { ServerAddress, SqlParameter, StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { ShownSetting } from "../ports/ports.ts";
import type { LivePlanDeps } from "../prepare/live_planner.ts";
import { messageResult, rowsResult } from "../result/result.ts";
import {
  type AdministeringStatement,
  isSecretDefinition,
  isShow,
  requireRight,
  type ShowStatement,
} from "../rights/statement_kinds.ts";
import {
  copyDatabase,
  exportUserData,
  JOB_COLUMNS,
  killJob,
  type MaintenanceDeps,
  maintainedTables,
  maintainTables,
} from "./job_statements.ts";
import { type ShowDeps, show } from "./show_statements.ts";
import { checkedStorage, checkStorage, STORAGE_CHECK_COLUMNS } from "./storage_check.ts";
import { explainSubscribe, subscribe } from "./subscribe_statement.ts";
import { checkTokenStatement, runTokenStatement, type TokenDeps } from "./token_statements.ts";
import {
  ack,
  ackRequest,
  checkRemoval,
  consume,
  consumeRequest,
  removeMessages,
  type TopicStatementDeps,
} from "./topic_statements.ts";
import {
  changesOwnPassword,
  checkUserStatement,
  runUserStatement,
  type UserDeps,
} from "./user_statements.ts";

export interface AdministrationCall {
  readonly principal: Principal;
  readonly namespace: string;
  /** The server's address as the caller sees it, used by SUBSCRIBE TO. */
  readonly server: ServerAddress | undefined;
  /** The settings changed by SET, used by SHOW. */
  readonly requestSettings: readonly ShownSetting[];
  /** The request's parameters as received, used by SUBSCRIBE TO. */
  readonly params: readonly SqlParameter[];
  /** The parameter values of CONSUME and ACK. */
  readonly parameters: readonly Value[];
  /** Limits how long planning SUBSCRIBE TO may take. */
  readonly ledger: RequestLedger;
}

/**
 * Statements that list all objects of a kind. They name no object, so nothing is checked before
 * they run.
 */
const SHOWS_OF_ALL: ReadonlySet<ShowStatement["type"]> = new Set<ShowStatement["type"]>([
  "show manifest",
  "show namespaces",
  "show storages",
  "show webhooks",
  "show tokens",
  "show invitations",
  "show export",
]);

/** The parts of the database that administrative statements use. */
export interface AdministrationDeps
  extends LivePlanDeps,
    MaintenanceDeps,
    ShowDeps,
    TokenDeps,
    TopicStatementDeps,
    UserDeps,
    Pick<SqlEnvironment, "activity" | "backups" | "connections" | "live" | "storages"> {}

export class Administration {
  readonly #deps: AdministrationDeps;

  constructor(deps: AdministrationDeps) {
    this.#deps = deps;
  }

  /**
   * Checks that the caller may run an administrative statement, before any statement of the
   * request runs.
   * @throws {DatabaseError}
   */
  authorize(node: Statement, principal: Principal): void {
    if (!changesOwnPassword(node, principal)) requireRight(node, principal);
  }

  /**
   * Checks the names in a statement against the current catalog, without changing anything.
   * @throws {DatabaseError}
   */
  check(node: AdministeringStatement, call: AdministrationCall): void {
    if (isShow(node)) {
      if (!SHOWS_OF_ALL.has(node.type)) this.#show(node, call);
      return;
    }
    if (isSecretDefinition(node)) {
      checkTokenStatement(node, { deps: this.#deps, principal: call.principal });
      return;
    }
    switch (node.type) {
      case "create user":
      case "alter user":
      case "drop user":
        checkUserStatement(node, { deps: this.#deps, principal: call.principal });
        return;
      case "storage check":
        checkedStorage(this.#deps.catalog, node);
        return;
      case "storage flush":
      case "storage compact":
        maintainedTables(this.#deps, node, call);
        return;
      case "subscribe":
        subscribe(this.#deps, node, call);
        return;
      case "explain subscribe":
        explainSubscribe(this.#deps, node.subscribe, call);
        return;
      case "drop topic":
      case "clear topic":
        checkRemoval(this.#deps, node, call.namespace);
        return;
      case "consume":
        consumeRequest(this.#deps, node, call);
        return;
      case "ack":
        ackRequest(this.#deps, node, call);
        return;
      case "backup":
      case "restore":
      case "export user data":
      case "kill":
        // Such a statement names no object in the catalog, or an object that is known only once
        // the statement runs.
        return;
    }
  }

  /** Runs an administrative statement. @throws {DatabaseError} */
  async run(node: AdministeringStatement, call: AdministrationCall): Promise<StatementResult> {
    this.authorize(node, call.principal);
    if (isShow(node)) return this.#show(node, call);
    const { principal } = call;
    if (isSecretDefinition(node)) return runTokenStatement(node, { deps: this.#deps, principal });
    const asUser = principal.userId;
    switch (node.type) {
      case "create user":
      case "alter user":
      case "drop user":
        return runUserStatement(node, { deps: this.#deps, principal });
      case "storage check":
        return rowsResult(STORAGE_CHECK_COLUMNS, [await checkStorage(this.#deps, node)], asUser);
      case "storage flush":
      case "storage compact":
        return rowsResult(JOB_COLUMNS, await maintainTables(this.#deps, node, call), asUser);
      case "backup":
      case "restore":
        return rowsResult(
          JOB_COLUMNS,
          await copyDatabase(this.#deps, node, principal.userId),
          asUser,
        );
      case "export user data":
        return rowsResult(JOB_COLUMNS, await exportUserData(this.#deps, principal), asUser);
      case "drop topic":
      case "clear topic":
        return rowsResult(JOB_COLUMNS, await removeMessages(this.#deps, node, call), asUser);
      case "consume":
        return consume(this.#deps, node, call);
      case "ack":
        return ack(this.#deps, node, call);
      case "kill":
        return messageResult(this.#kill(node), asUser);
      case "subscribe":
        return subscribe(this.#deps, node, call);
      case "explain subscribe":
        return explainSubscribe(this.#deps, node.subscribe, call);
    }
  }

  #show(node: ShowStatement, call: AdministrationCall): StatementResult {
    const shown = show(this.#deps, node, call);
    checkResultRows(shown.rowCount, this.#deps.limits.resultRowsMax);
    return shown;
  }

  #kill(node: KillStatement): string {
    const { id, target, _location } = node;
    const { connections, live, topics } = this.#deps;
    const known = (isThere: boolean, view: string): string => {
      if (isThere) return `${target.charAt(0).toUpperCase()}${target.slice(1)} ${id} killed`;
      throw notFound(`${target} "${id}"`, _location.start, `SELECT ${view}`);
    };
    switch (target) {
      case "job":
        return killJob(this.#deps.jobs, node);
      case "query": {
        const { running } = this.#deps.activity;
        return known(running.kill(id), "query_id FROM system.queries");
      }
      case "transaction": {
        const { transactions } = this.#deps.activity;
        return known(transactions.kill(id), "transaction_id FROM system.transactions");
      }
      case "live query":
        return known(live().kill(id), "live_id FROM system.live");
      case "connection":
        return known(connections().kill(id), "connection_id FROM system.connections");
      case "consumer":
        return known(topics().kill(id), "consumer_id FROM system.topic_consumers");
    }
  }
}

function notFound(what: string, position: number, hint: string): DatabaseError {
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find ${what}`, { position, hint });
}
