/**
 * The statements of one request between their text and their turn: each is bound and authorised
 * before any runs, and again at its turn when what it was bound against has changed.
 *
 * Invariant: few statements are kept bound at a time, however many a text has.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError, isDenial } from "../../base/errors.ts";
import { inOneTurn } from "../../base/steps.ts";
import { DEFAULT_NAMESPACE } from "../../catalog/mod.ts";
import type { DataType, Value } from "../../types/mod.ts";
import type { Administration } from "../administer/administration.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { SqlRequest } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { rowsNode } from "../common/node_kinds.ts";
import { requireNoGap, typedParameters } from "../common/parameters.ts";
import { atName } from "../common/placed.ts";
import { authorize } from "../common/requirements.ts";
import { isAdministering, isDefining } from "../common/statement_kinds.ts";
import { findNamespace } from "../common/table_names.ts";
import { DefinedNames } from "../define/defined_names.ts";
import type { Definitions } from "../define/definitions.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import type { Statement } from "../parse/ast/ast.ts";
import { type BindingWorld, dmlWorldOf, statisticsOf } from "../prepare/binding_world.ts";
import { boundInSteps, type Prepared, prepareInSteps } from "../prepare/prepared.ts";
import { watchOf } from "../prepare/statement_watch.ts";
import type { QuerySource } from "../readers/reader.ts";
import { isSystemViews } from "../system/system_views.ts";
import { RequestSettings, requireSettable } from "./request_settings.ts";
import { refuseInside } from "./request_text.ts";

/**
 * How many statements of a text are kept as they were bound until their turn; those behind them are
 * bound again. Each takes 10 KB, and a text of a megabyte may hold a hundred thousand.
 */
const KEPT_MAX = 1000;

/** A statement between binding and its turn. */
export interface Unit {
  readonly node: Statement;
  /** Of a statement that reads or writes rows, while it is kept bound. */
  prepared: Prepared | undefined;
  /** Catalog version and namespace that it was bound with. */
  catalogVersion: number;
  namespace: string;
}

export interface RequestBindingOptions {
  readonly world: BindingWorld & Pick<SqlEnvironment, "auth" | "clock" | "store">;
  readonly principal: Principal;
  readonly request: SqlRequest;
  readonly definitions: Definitions;
  readonly administration: Administration;
  readonly ledger: RequestLedger;
}

export class RequestBinding {
  /** The current namespace: USE changes it. */
  namespace: string = DEFAULT_NAMESPACE;
  readonly #options: RequestBindingOptions;
  #parameterTypes: readonly DataType[] = [];
  readonly #usedParameters = new Set<number>();
  /** What statements that were bound define. */
  readonly #defined = new DefinedNames();
  #keptCount = 0;
  #hasRows = false;

  constructor(options: RequestBindingOptions) {
    this.#options = options;
    this.leaveNamespaces();
  }

  /** Goes back to the namespace that the request began in. */
  leaveNamespaces(): void {
    this.namespace = this.#options.request.namespace ?? DEFAULT_NAMESPACE;
  }

  /** The parameters of the request, for the statements to come. @throws {DatabaseError} */
  readParameters(): readonly Value[] {
    const { request, world } = this.#options;
    const { types, values } = typedParameters(request.params, world.limits);
    this.#parameterTypes = types;
    return values;
  }

  /** @throws {DatabaseError} INVALID_PARAMETER when a parameter is used by no statement. */
  requireNoGap(parameterCount: number): void {
    // A definition takes no parameter, and says so itself.
    if (this.#hasRows) requireNoGap(this.#usedParameters, parameterCount);
  }

  /**
   * Binds and authorises a statement before anything runs, in small steps. One that does not bind
   * may at its turn, when it uses what an earlier one defines.
   *
   * @param options.isAlone Whether it is the whole text; a definition is then bound at its turn
   * only.
   * @throws {DatabaseError}
   */
  *bind(unit: Unit, { isAlone }: { isAlone: boolean }): Generator<void, void> {
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
    this.#hasRows = true;
    this.#keptCount += 1;
    // A check tells what was bound, and nothing has its turn.
    if (this.#keptCount > KEPT_MAX && this.#options.request.check !== true) this.forget(unit);
  }

  /**
   * Whether a fault of a statement may be gone once the definitions before it have run.
   *
   * @param runsAs Undefined when the fault is that the caller may not act for the other user.
   */
  #isMendable(node: Statement, error: unknown, runsAs: Principal | undefined): boolean {
    if (!(error instanceof DatabaseError)) return false;
    const { condition } = error;
    // A definition may open a table to the user that a statement runs as; the caller has its role.
    const runsRows = node.type === "execute as" && rowsNode(node) !== undefined;
    const mayBeGranted = runsRows && runsAs !== undefined;
    if (isDenial(error) && !mayBeGranted) return false;
    return this.#defined.mayMend(node, condition, this.namespace);
  }

  /** Finds what a statement that is not about rows names wrongly. @throws {DatabaseError} */
  #check(node: Statement): void {
    const { administration, definitions, ledger, principal, request, world } = this.#options;
    const { namespace } = this;
    if (isDefining(node)) definitions.check(node, principal, namespace);
    if (!isAdministering(node)) return;
    const requestSettings = new RequestSettings(world.limits).rows();
    const { params, server } = request;
    const call = { principal, namespace, server, requestSettings, params, ledger };
    administration.check(node, call);
  }

  /** @throws {DatabaseError} NAMESPACE_NOT_FOUND */
  useNamespace(node: Extract<Statement, { type: "use namespace" }>): void {
    const { name } = node.name;
    if (!isSystemViews(name)) findNamespace(this.#options.world.catalog, name, node.name);
    this.namespace = name;
  }

  /**
   * Binds a statement of rows anew, where that is needed, in small steps: what changes meanwhile is
   * left to {@linkcode renewed}, which takes one turn.
   *
   * @throws {DatabaseError}
   */
  *renew(unit: Unit): Generator<void, void> {
    if (rowsNode(unit.node) === undefined || !this.#isStale(unit)) return;
    yield* this.#prepare(unit, this.principalOf(unit.node));
  }

  /**
   * A statement of rows as the definitions of this turn have it; undefined for any other. Rights
   * are asked again: an earlier statement, or another caller, may have changed them.
   */
  renewed(unit: Unit): Prepared | undefined {
    const { catalog } = this.#options.world;
    const runsAs = this.principalOf(unit.node);
    if (this.#isStale(unit)) inOneTurn(this.#prepare(unit, runsAs));
    const { prepared } = unit;
    if (prepared !== undefined) authorize(prepared.requirements, runsAs, catalog);
    return prepared;
  }

  /** The source of a statement that reads or writes rows; undefined for any other statement. */
  sourceOf({ node }: Unit): QuerySource | undefined {
    const rows = rowsNode(node);
    if (rows === undefined) return undefined;
    return { node: rows, types: this.#parameterTypes };
  }

  #isStale({ catalogVersion, namespace, prepared }: Unit): boolean {
    const { version } = this.#options.world.catalog;
    return prepared === undefined || catalogVersion !== version || namespace !== this.namespace;
  }

  /** Lets go of what was bound: it has had its turn, or is bound again at its turn. */
  forget(unit: Unit): void {
    unit.prepared = undefined;
  }

  /** Who a statement runs as. */
  principalOf(node: Statement): Principal {
    const { principal, world } = this.#options;
    if (node.type !== "execute as") return principal;
    return atName(node.user, () => world.auth.executeAs(principal, node.user.name));
  }

  *#prepare(unit: Unit, runsAs: Principal): Generator<void, void> {
    const { node } = unit;
    const { administration, definitions, ledger, principal, world } = this.#options;
    const rows = rowsNode(node);
    if (rows === undefined) {
      if (node.type === "execute as") throw refuseInside(node);
      if (isDefining(node)) definitions.authorize(node, principal, this.namespace);
      else administration.authorize(node, principal);
      if (node.type === "set" || node.type === "set timezone") {
        requireSettable(node, world.limits);
      }
      return;
    }
    if (node.type === "explain") administration.authorize(node, principal);
    const statement = new StatementBinding(this.#parameterTypes, {
      statistics: statisticsOf(world),
      watch: watchOf(ledger, world),
    });
    const { namespace } = this;
    const dmlWorld = dmlWorldOf(world, { namespace, principal: runsAs, statement });
    const { catalog } = world;
    // A definition between two steps is one that the statement was not bound against.
    const { version } = catalog;
    const prepared = yield* boundInSteps(
      { catalog, principal: runsAs, statement },
      prepareInSteps(rows, { world: dmlWorld, statement }),
    );
    authorize(prepared.requirements, runsAs, catalog);
    for (const number of statement.usedParameters) this.#usedParameters.add(number);
    unit.prepared = prepared;
    unit.catalogVersion = version;
    unit.namespace = namespace;
  }
}
