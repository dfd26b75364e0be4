/**
 * Binds the statements of a request. Each statement is bound and authorised before any statement
 * runs, and again just before it runs if definitions or rights have changed.
 *
 * Only a limited number of statements are kept bound at a time, however many the request contains.
 */

import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError, isDenial } from "../../base/errors.ts";
import { runToCompletion } from "../../base/steps.ts";
import { type Catalog, DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import type { DataType, Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { CursorReading } from "../bind/change/cursor_rows.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { DefinedNames } from "../ddl/defined_names.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { atName, findNamespace } from "../names/table_names.ts";
import type { CreateTableAsStatement, SelectStatement, Statement } from "../parse/ast/ast.ts";
import {
  actedForIn,
  copySourceNode,
  isQueryNode,
  ownDataNode,
  rowsNode,
} from "../parse/ast/query_nodes.ts";
import type { SqlRequest } from "../ports/engine.ts";
import { requireNoGap, typedParameters } from "../ports/parameters.ts";
import { dmlDepsOf, statisticsOf } from "../prepare/binding_deps.ts";
import type { WholeText } from "../prepare/plan_cache.ts";
import { boundInSteps, type Prepared, prepareInSteps } from "../prepare/prepared.ts";
import { watchOf } from "../prepare/statement_watch.ts";
import { parseBody } from "../procedural/parse_body.ts";
import type { QuerySource } from "../readers/reader.ts";
import { authorize, meetsAll, requireRights } from "../rights/requirements.ts";
import { isAdministering, isDefining } from "../rights/statement_kinds.ts";
import { isSystemViews } from "../system/system_views.ts";
import { topicParameters } from "../utility/topic_arguments.ts";
import { lockedNames, lockedTables } from "./locking_read.ts";
import { DO_CONTEXT } from "./program_runner.ts";
import { refreshedView } from "./refresh.ts";
import type { RequestScope } from "./request_scope.ts";
import { RequestSettings, requireSettable } from "./request_settings.ts";
import { refuseInside } from "./request_text.ts";
import { rowsOf, tableOf } from "./table_as.ts";
import { deletesOf } from "./truncation.ts";

/**
 * The maximum number of statements that are kept bound until they run; later statements are bound
 * again. Each of them takes 10 KB, and a megabyte of SQL may contain a hundred thousand
 * statements.
 */
const KEPT_MAX = 1000;

/** A statement of a request, from binding to execution. */
export interface BoundUnit {
  readonly node: Statement;
  /** The SQL of the request, if it consists of only this statement. */
  readonly text?: string | undefined;
  /**
   * Set if the rows of the statement are not read. The materialized views that it names may then
   * be unpopulated.
   */
  readonly isUnread?: true | undefined;
  /** How a cursor reads the rows of the statement; absent if no cursor does. */
  readonly cursor?: CursorReading | undefined;
  /** The prepared form of a statement that reads or writes rows, as long as it is kept. */
  prepared: Prepared | undefined;
  /** The catalog version for which the statement was bound. */
  catalogVersion: number;
  namespace: string;
}

/** Creates the entry for a statement that has not been bound yet. */
export function unboundUnit(node: Statement, text?: string): BoundUnit {
  return { node, text, prepared: undefined, catalogVersion: -1, namespace: "" };
}

/**
 * Returns the query of CREATE TABLE … AS as a separate statement. With WITH NO DATA, its rows are
 * not read.
 */
function rowsUnit(node: CreateTableAsStatement): BoundUnit {
  return { ...unboundUnit(rowsOf(node)), isUnread: node.withData ? undefined : true };
}

function cursorOf({ cursor, node }: BoundUnit): CursorReading | undefined {
  if (cursor !== undefined || node.type !== "declare cursor") return cursor;
  return { locked: node.query.type === "select for" ? lockedNames(node.query) : undefined };
}

function authorizeUnit(
  { isUnread }: BoundUnit,
  { requirements }: Prepared,
  { catalog, principal }: { readonly catalog: Catalog; readonly principal: Principal },
): void {
  if (isUnread === true) requireRights(requirements, principal, catalog);
  else authorize(requirements, principal, catalog);
}

export interface RequestBindingOptions {
  readonly scope: Pick<RequestScope, "administration" | "definitions" | "deps">;
  readonly principal: Principal;
  readonly request: SqlRequest;
  readonly ledger: RequestLedger;
}

export class RequestBinding {
  /** The current namespace, which USE NAMESPACE changes. */
  namespace: string = DEFAULT_NAMESPACE;
  readonly #options: RequestBindingOptions;
  #parameterTypes: readonly DataType[] = [];
  #parameters: readonly Value[] = [];
  readonly #usedParameters = new Set<number>();
  /** The names defined by earlier statements of the request. */
  readonly #defined = new DefinedNames();
  #keptCount = 0;
  #takesParameters = false;

  constructor(options: RequestBindingOptions) {
    this.#options = options;
    this.leaveNamespaces();
  }

  /** Returns to the namespace in which the request began. */
  leaveNamespaces(): void {
    this.namespace = this.#options.request.namespace ?? DEFAULT_NAMESPACE;
  }

  /**
   * Reads the parameters of the request, which the statements that follow use. @throws
   * {DatabaseError}
   */
  readParameters(): readonly Value[] {
    const { request, scope } = this.#options;
    const { deps } = scope;
    const { types, values } = typedParameters(request.params, deps.limits);
    this.#parameterTypes = types;
    this.#parameters = values;
    return values;
  }

  /**
   * Requires that each parameter is used by some statement.
   * @throws {DatabaseError} INVALID_PARAMETER if a parameter is unused.
   */
  requireNoGap(parameterCount: number): void {
    // A definition accepts no parameters, and its own check reports any that are given.
    if (this.#takesParameters) requireNoGap(this.#usedParameters, parameterCount);
  }

  /**
   * Binds and authorises a statement before any statement runs, in small steps. If the statement
   * uses a name that an earlier statement defines, it may not be possible to bind it yet. It is
   * then bound just before it runs.
   *
   * @param options.isAlone Whether the request consists of only this statement; a definition is
   *   then bound only when it runs.
   * @throws {DatabaseError}
   */
  *bind(unit: BoundUnit, { isAlone }: { isAlone: boolean }): Generator<void, void> {
    const { node } = unit;
    let runsAs: Principal | undefined;
    try {
      runsAs = this.principalOf(node);
      if (node.type === "use namespace") this.useNamespace(node);
      else yield* this.#prepare(unit, runsAs);
      if (unit.prepared === undefined && !isAlone) this.#check(node);
    } catch (error) {
      if (!this.#isMendable(node, error, runsAs)) throw error;
      if (node.type === "use namespace") this.namespace = node.name.name;
    }
    this.#defined.add(node, this.namespace);
    if (unit.prepared === undefined) return;
    this.#takesParameters = true;
    this.#keptCount += 1;
    // If the request is only checked, no statement will run, so bound statements are not needed
    // later.
    if (this.#keptCount > KEPT_MAX && this.#options.request.check !== true) this.forget(unit);
  }

  /**
   * Whether the error of a statement may disappear once earlier definitions have run.
   *
   * @param runsAs The principal as which the statement runs; undefined if the caller may not act
   *   for that user.
   */
  #isMendable(node: Statement, error: unknown, runsAs: Principal | undefined): boolean {
    if (!(error instanceof DatabaseError)) return false;
    const { code } = error;
    // A definition may give a user access to a table, so that a statement that runs as this user
    // succeeds. A definition cannot change the caller's own role.
    const runsRows = actedForIn(node) !== undefined && rowsNode(node) !== undefined;
    const mayBeGranted = runsRows && runsAs !== undefined;
    if (isDenial(error) && !mayBeGranted) return false;
    return this.#defined.mayMend(node, code, this.namespace);
  }

  /** Checks the names in a statement that neither reads nor writes rows. @throws {DatabaseError} */
  #check(node: Statement): void {
    const { ledger, principal, request, scope } = this.#options;
    const { administration, definitions, deps } = scope;
    const { namespace } = this;
    if (isDefining(node)) definitions.check(node, principal, namespace);
    if (node.type === "create table as") definitions.check(tableOf(node), principal, namespace);
    if (!isAdministering(node)) return;
    const { version } = deps;
    const requestSettings = new RequestSettings(deps).rows({ namespace, version });
    const { params, server } = request;
    const parameters = this.#parameters;
    const call = { principal, namespace, server, requestSettings, params, parameters, ledger };
    administration.check(node, call);
  }

  /**
   * Changes the namespace in which unqualified names are looked up.
   * @throws {DatabaseError} NAMESPACE_NOT_FOUND
   */
  useNamespace(node: Extract<Statement, { type: "use namespace" }>): void {
    const { name } = node.name;
    if (!isSystemViews(name)) findNamespace(this.#options.scope.deps.catalog, name, node.name);
    this.namespace = name;
  }

  /**
   * Binds a statement again if necessary, in small steps. If definitions change between these
   * steps, {@linkcode renewed} binds the statement once more, in a single tick.
   *
   * @throws {DatabaseError}
   */
  *renew(unit: BoundUnit): Generator<void, void> {
    if (rowsNode(unit.node) === undefined || !this.#isStale(unit)) return;
    yield* this.#prepare(unit, this.principalOf(unit.node));
  }

  /**
   * Returns a statement that reads or writes rows, bound with the definitions that are current in
   * this tick; undefined for any other statement. Rights are checked again, because an earlier
   * statement or another caller may have changed them.
   */
  renewed(unit: BoundUnit): Prepared | undefined {
    const { catalog } = this.#options.scope.deps;
    const runsAs = this.principalOf(unit.node);
    if (this.#isStale(unit)) runToCompletion(this.#prepare(unit, runsAs));
    const { prepared } = unit;
    if (prepared !== undefined) authorizeUnit(unit, prepared, { principal: runsAs, catalog });
    return prepared;
  }

  /** Binds and authorises a query that the server has derived from the request. */
  prepareNow(node: SelectStatement, cursor?: CursorReading): Prepared {
    return defined(
      this.renewed({ ...unboundUnit(node), cursor }),
      "request binding: derived query is not a statement that reads rows",
    );
  }

  /** Binds and authorises the query of CREATE TABLE … AS or CREATE MATERIALIZED VIEW. */
  prepareRowsOf(node: CreateTableAsStatement): Prepared {
    return defined(
      this.renewed(rowsUnit(node)),
      "request binding: derived query is not a statement that reads rows",
    );
  }

  /**
   * Returns the input from which a reader compiles a statement; undefined for a statement that
   * neither reads nor writes rows.
   */
  sourceOf({ node }: BoundUnit): QuerySource | undefined {
    const rows = rowsNode(node);
    if (rows === undefined) return undefined;
    return { node: rows, types: this.#parameterTypes };
  }

  #isStale({ catalogVersion, namespace, prepared }: BoundUnit): boolean {
    const { version } = this.#options.scope.deps.catalog;
    return prepared === undefined || catalogVersion !== version || namespace !== this.namespace;
  }

  /**
   * Releases the bound form of a statement that has run, or that will be bound again before it
   * runs.
   */
  forget(unit: BoundUnit): void {
    unit.prepared = undefined;
  }

  /** Returns the user as whom a statement runs. */
  principalOf(node: Statement): Principal {
    const { principal, scope } = this.#options;
    const { deps } = scope;
    const user = actedForIn(node);
    if (user === undefined) return principal;
    return atName(user, () => deps.auth.executeAs(principal, user.name));
  }

  /** Requires that the rows which a statement locks can be locked. @throws {DatabaseError} */
  #checkLocks(node: Statement, principal: Principal): void {
    const read = node.type === "declare cursor" ? node.query : node;
    if (read.type !== "select for") return;
    const { deps } = this.#options.scope;
    lockedTables(read, { deps, namespace: this.namespace, principal });
  }

  *#prepare(unit: BoundUnit, runsAs: Principal): Generator<void, void> {
    const { node } = unit;
    const { ledger, principal, scope } = this.#options;
    const { administration, definitions, deps } = scope;
    const rows = rowsNode(node);
    withTypes(node, typesIn(deps.catalog, this.namespace));
    this.#checkLocks(node, runsAs);
    if (node.type === "truncate") {
      for (const each of deletesOf(node)) yield* this.#prepare(unboundUnit(each), runsAs);
      return;
    }
    if (node.type === "create table as") {
      this.#takesParameters = true;
      definitions.authorize(tableOf(node), principal, this.namespace);
      yield* this.#prepare(rowsUnit(node), runsAs);
      return;
    }
    if (node.type === "do block") parseBody(node.source, DO_CONTEXT);
    if (node.type === "refresh materialized view") {
      const { change } = refreshedView(node, { deps, namespace: this.namespace, principal });
      definitions.authorize(change, principal, this.namespace);
      return;
    }
    if (rows === undefined) {
      const own = ownDataNode(node);
      if (own !== undefined) return administration.authorize(own, runsAs);
      if (node.type === "execute as") throw refuseInside(node);
      if (isDefining(node)) definitions.authorize(node, principal, this.namespace);
      else administration.authorize(node, principal);
      for (const number of topicParameters(node)) {
        this.#usedParameters.add(number);
        this.#takesParameters = true;
      }
      if (node.type === "set" || node.type === "set timezone") {
        requireSettable(node, deps);
      }
      return;
    }
    if (node.type === "explain") administration.authorize(node, principal);
    const whole = this.#wholeTextOf(unit);
    if (whole !== undefined && this.#takePlan(unit, whole)) return;
    const statement = new StatementBinding(this.#parameterTypes, {
      statistics: statisticsOf(deps),
      watch: watchOf(ledger, deps),
    });
    const { namespace } = this;
    const dmlDeps = dmlDepsOf(deps, { namespace, principal: runsAs, statement });
    const { catalog } = deps;
    // The binding may have missed definitions that changed between two steps, so the statement
    // counts as bound with the catalog version before the first step.
    const { version } = catalog;
    const prepared = yield* boundInSteps(
      { catalog, principal: runsAs, statement },
      prepareInSteps(rows, { cursor: cursorOf(unit), deps: dmlDeps, statement }),
    );
    authorizeUnit(unit, prepared, { principal: runsAs, catalog });
    for (const number of statement.usedParameters) this.#usedParameters.add(number);
    unit.prepared = prepared;
    unit.catalogVersion = version;
    unit.namespace = namespace;
    if (whole !== undefined && catalog.version === version) {
      const plan = { prepared, usedParameters: [...statement.usedParameters] };
      deps.plans.setText(whole, plan, principal);
    }
  }

  /**
   * Returns the SQL of a query or change, with everything else on which its plan depends;
   * undefined for a statement whose plan is not cached.
   */
  #wholeTextOf({ node, text }: BoundUnit): WholeText | undefined {
    const { copy, files } = this.#options.request;
    if (text === undefined || !isQueryNode(node)) return undefined;
    if (copy !== undefined || files !== undefined || copySourceNode(node) !== undefined) {
      return undefined;
    }
    return { sql: text, namespace: this.namespace, types: this.#parameterTypes };
  }

  /**
   * Uses the cached plan of a statement if the caller has the necessary rights. Otherwise, the
   * statement has to be bound to find the correct error.
   */
  #takePlan(unit: BoundUnit, whole: WholeText): boolean {
    const { principal, scope } = this.#options;
    const { deps } = scope;
    const known = deps.plans.ofText(whole, principal);
    if (known === undefined) return false;
    const { prepared, usedParameters } = known;
    if (!meetsAll(prepared.requirements, principal, deps.catalog)) return false;
    for (const number of usedParameters) this.#usedParameters.add(number);
    unit.prepared = prepared;
    unit.catalogVersion = deps.catalog.version;
    unit.namespace = whole.namespace;
    return true;
  }
}
