/**
 * Executes CREATE, ALTER and DROP for all catalog objects: checks the caller's rights, and passes
 * each definition to the module for its kind of object.
 *
 * A definition receives a seq, commits in the catalog, and takes effect in storage only then, so
 * the catalog never lags behind the data.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { checkCancelled, type RequestLedger } from "../execute/context/request_ledger.ts";
import type {
  AlterIndexStatement,
  AlterOwnerStatement,
  AlterViewStatement,
  CommentStatement,
  CreateExtensionStatement,
  CreateIndexStatement,
  DoStatement,
  DropIndexStatement,
  DropNamespaceStatement,
  FunctionDefinition,
  PartitionDefinition,
  PolicyDefinition,
  TriggerDefinition,
  TypeDefinition,
} from "../parse/ast/ast.ts";
import { isFunctionNode } from "../parse/print/print_functions.ts";
import type { StatementResult } from "../ports/engine.ts";
import { messageResult } from "../result/result.ts";
import { type DefiningStatement, requireRight } from "../rights/statement_kinds.ts";
import { createAggregate } from "./aggregate_definitions.ts";
import { createCollation } from "./collation_definitions.ts";
import { authorizeComment, commentOn } from "./comments.ts";
import { authorizeCreateTable, createTable } from "./create_table.ts";
import { alterDomain, createDomain } from "./domain_definitions.ts";
import { authorizeDropTables, dropAll, dropTables, withDependents } from "./drop_table.ts";
import { dropFunctions, dropViews } from "./drop_views.ts";
import { alterFunction, authorizeFunction, createFunction } from "./function_definitions.ts";
import { alterIndex, authorizeIndexes, createIndex, dropIndexes } from "./index_definitions.ts";
import { authorizePartition, definePartition, isPartitionDefinition } from "./moved_partitions.ts";
import {
  alterNamespace,
  authorizeNamespace,
  type BoundDefinition,
  createNamespace,
  dropNamespaces,
} from "./namespace_definitions.ts";
import { alterOwner, createExtension } from "./ownership.ts";
import { authorizePolicy, definePolicy, isPolicyDefinition } from "./policy_definitions.ts";
import { createRangeType, isRangeDefinition } from "./range_definitions.ts";
import { asRenamedRelation } from "./renamed_relation.ts";
import {
  alterSequence,
  authorizeSequence,
  createSequence,
  dropSequences,
} from "./sequence_definitions.ts";
import { alterStorage, createStorage, dropStorage } from "./storage_definitions.ts";
import { alterTable, authorizeAlteration } from "./table_alteration.ts";
import type { TableDeps } from "./table_statement.ts";
import { alterTopic, createTopic } from "./topic_definitions.ts";
import { defineTrigger, isTriggerDefinition } from "./trigger_definitions.ts";
import {
  alterType,
  authorizeType,
  createType,
  dropTypes,
  isTypeDefinition,
} from "./type_definitions.ts";
import { alterView, authorizeView, createView } from "./view_definitions.ts";
import {
  alterWebhook,
  createWebhook,
  dropWebhook,
  type WebhookDefinitionDeps,
} from "./webhook_definitions.ts";
import { writeFunctions } from "./written_functions.ts";

type SmallDefinition =
  | AlterOwnerStatement
  | AlterViewStatement
  | CommentStatement
  | CreateExtensionStatement
  | CreateIndexStatement
  | AlterIndexStatement
  | DropIndexStatement
  | FunctionDefinition
  | TypeDefinition
  | PolicyDefinition
  | TriggerDefinition
  | DoStatement;

/** The parts of the database that definitions change. */
export interface DefinitionDeps extends TableDeps, WebhookDefinitionDeps {}

export class DefinitionStatements {
  readonly #deps: DefinitionDeps;
  readonly #ledger: RequestLedger;

  constructor(deps: DefinitionDeps, ledger: RequestLedger) {
    this.#deps = deps;
    this.#ledger = ledger;
  }

  /**
   * Checks the caller's rights to run a definition, before any part of the request runs.
   *
   * @throws {DatabaseError}
   */
  authorize(written: DefiningStatement, principal: Principal, namespace: string): void {
    const { catalog } = this.#deps;
    const node = asRenamedRelation(written, namespace, catalog);
    switch (node.type) {
      case "create namespace":
      case "drop namespace":
      case "alter namespace":
        authorizeNamespace(node, principal, catalog);
        return;
      case "create table":
        authorizeCreateTable(node, { principal, namespace }, catalog);
        return;
      case "alter table":
      case "create index":
        authorizeAlteration(node, { principal, namespace }, catalog);
        return;
      case "create sequence":
      case "alter sequence":
      case "drop sequence":
        authorizeSequence(node, { principal, namespace }, catalog);
        return;
      case "alter index":
      case "drop index":
        authorizeIndexes(node, { principal, namespace }, catalog);
        return;
      case "alter owner":
      case "comment on":
        authorizeComment(node, { principal, namespace }, catalog);
        return;
      case "create view":
      case "alter view":
      case "drop view":
        authorizeView(node, { principal, namespace }, catalog);
        return;
      case "drop table":
        authorizeDropTables(node, { principal, namespace }, catalog);
        return;
      case "do":
        this.authorize(node.statement, principal, namespace);
        return;
      default:
        this.#authorizeSmall(node, principal, namespace);
    }
  }

  #authorizeSmall(
    node: Parameters<typeof requireRight>[0],
    principal: Principal,
    namespace: string,
  ): void {
    const caller = { principal, namespace };
    const { catalog } = this.#deps;
    if (isPartitionDefinition(node)) authorizePartition(node, caller, this.#deps);
    else if (isTypeDefinition(node)) authorizeType(node, caller, catalog);
    else if (isFunctionNode(node)) authorizeFunction(node, caller, catalog);
    else if (isPolicyDefinition(node)) authorizePolicy(node, caller, catalog);
    else if (isTriggerDefinition(node)) authorizeAlteration(node, caller, catalog);
    // For storages, topics and webhooks, the required right depends only on the kind of statement.
    else requireRight(node, principal);
  }

  /**
   * Checks a definition against the current catalog without changing anything.
   *
   * @throws {DatabaseError}
   */
  check(node: DefiningStatement, principal: Principal, namespace: string): void {
    this.#bound(node, principal, namespace);
  }

  /**
   * Executes a definition, and returns a description of the change.
   * @throws {DatabaseError}
   */
  async run(
    node: DefiningStatement,
    principal: Principal,
    namespace: string,
  ): Promise<StatementResult> {
    this.authorize(node, principal, namespace);
    const change = this.#bound(node, principal, namespace);
    return messageResult(await change(), principal.userId);
  }

  /**
   * Returns a definition in which names are resolved to the functions and types that now have
   * these names.
   */
  #current(written: DefiningStatement, principal: Principal, namespace: string): DefiningStatement {
    const { catalog } = this.#deps;
    const named = asRenamedRelation(written, namespace, catalog);
    const node = writeFunctions(named, { catalog, principal, namespace });
    return withTypes(node, typesIn(catalog, namespace) ?? (() => undefined));
  }

  /** Binds a definition against the current catalog. */
  #bound(written: DefiningStatement, principal: Principal, namespace: string): BoundDefinition {
    const node = this.#current(written, principal, namespace);
    if (!isPartitionDefinition(node)) return this.#boundOther(node, principal, namespace);
    const call = { principal, namespace, ledger: this.#ledger };
    return definePartition(node, call, this.#deps);
  }

  #boundOther(
    node: Exclude<DefiningStatement, PartitionDefinition>,
    principal: Principal,
    namespace: string,
  ): BoundDefinition {
    switch (node.type) {
      case "create namespace":
        return createNamespace(node, principal, this.#deps);
      case "alter namespace":
        return alterNamespace(node, this.#deps);
      case "drop namespace":
        return this.#dropNamespaces(node, principal);
      case "create storage":
        return createStorage(node, this.#deps);
      case "alter storage":
        return alterStorage(node, this.#deps);
      case "drop storage":
        return dropStorage(node, this.#deps);
      case "create table":
        return createTable(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "alter table":
        return alterTable(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "drop table":
        return dropTables(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "create view":
        return createView(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "drop view":
        return dropViews(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "create sequence":
        return createSequence(node, { principal, namespace }, this.#deps);
      case "alter sequence":
        return alterSequence(node, { principal, namespace }, this.#deps);
      case "drop sequence":
        return dropSequences(node, { principal, namespace }, this.#deps);
      case "create topic":
        return createTopic(node, { principal, namespace }, this.#deps);
      case "alter topic":
        return alterTopic(node, { principal, namespace }, this.#deps);
      case "create webhook":
        return createWebhook(node, { principal, namespace }, this.#deps);
      case "alter webhook":
        return alterWebhook(node, this.#deps);
      case "drop webhook":
        return dropWebhook(node, this.#deps);
      default:
        return this.#boundSmall(node, principal, namespace);
    }
  }

  #dropNamespaces(node: DropNamespaceStatement, principal: Principal): BoundDefinition {
    const statement = {
      action: "drop a namespace",
      isCascading: true,
      position: node._location.start,
      principal,
    };
    return dropNamespaces(node, this.#deps, {
      dropped: (named) => {
        return { ...withDependents(named, statement, this.#deps.catalog), message: "" };
      },
      drop: (droppedNow) => dropAll(droppedNow, this.#ledger, this.#deps),
      checkCancelled: () => checkCancelled(this.#ledger),
    });
  }

  #boundSmall(node: SmallDefinition, principal: Principal, namespace: string): BoundDefinition {
    if (isTriggerDefinition(node)) return defineTrigger(node, { principal, namespace }, this.#deps);
    if (isPolicyDefinition(node)) {
      return definePolicy(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
    }
    switch (node.type) {
      case "alter owner":
        return alterOwner(node, { principal, namespace }, this.#deps);
      case "comment on":
        return commentOn(node, { principal, namespace }, this.#deps);
      case "alter view":
        return alterView(node, { principal, namespace }, this.#deps);
      case "create aggregate":
        return createAggregate(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "create function":
        return createFunction(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "alter function":
        return alterFunction(node, { principal, namespace }, this.#deps);
      case "drop function":
        return dropFunctions(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "create extension":
        return createExtension(node);
      case "do":
        return this.#boundTolerant(node, principal, namespace);
      case "create index":
        return createIndex(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "alter index":
        return alterIndex(node, { principal, namespace }, this.#deps);
      case "drop index":
        return dropIndexes(node, { principal, namespace }, this.#deps);
      default:
        return this.#boundType(node, principal, namespace);
    }
  }

  #boundType(node: TypeDefinition, principal: Principal, namespace: string): BoundDefinition {
    switch (node.type) {
      case "create collation":
        return createCollation(node, { principal, namespace }, this.#deps);
      case "create domain":
        return createDomain(node, { principal, namespace }, this.#deps);
      case "alter domain":
        return alterDomain(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "create type":
        return isRangeDefinition(node)
          ? createRangeType(node, { principal, namespace }, this.#deps)
          : createType(node, { principal, namespace }, this.#deps);
      case "alter type":
        return alterType(node, { principal, namespace }, this.#deps);
      case "drop type":
        return dropTypes(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
    }
  }

  /** Binds a definition that has no effect if its object already exists. */
  #boundTolerant(
    { statement }: DoStatement,
    principal: Principal,
    namespace: string,
  ): BoundDefinition {
    try {
      const change = this.#bound(statement, principal, namespace);
      return async () => {
        try {
          return await change();
        } catch (error) {
          return passedOver(error);
        }
      };
    } catch (error) {
      const message = passedOver(error);
      return () => message;
    }
  }
}

/**
 * Returns the response to a CREATE that had no effect because its object already exists.
 *
 * @throws The given error, if it has any other cause.
 */
function passedOver(error: unknown): string {
  if (!(error instanceof DatabaseError) || error.code !== "ALREADY_EXISTS") throw error;
  return `Nothing done: ${error.message}`;
}
