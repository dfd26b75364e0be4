/**
 * Caches the plans for maintaining the results of a materialised query. Subscribers share a plan
 * if their values differ only in conditions that divide the rows among them, such as `WHERE
 * user_id = $1`.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import { WeakValues } from "../../base/weak_values.ts";
import type { ReadStore } from "../../storage/mod.ts";
import { type DataType, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundSelect } from "../bind/bound.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { newLedger, type RequestLedger } from "../execute/context/request_ledger.ts";
import { isFullJoin } from "../maintain/full_join.ts";
import { KeptIndexes } from "../maintain/kept_index.ts";
import { MaintainedQuery } from "../maintain/maintained_query.ts";
import { CannotFollow, NotMaintained } from "../maintain/not_maintained.ts";
import { STEP_MS_MAX, STEP_ROWS_MAX, type StepContexts } from "../maintain/query_at.ts";
import { textOfRow } from "../maintain/row_text.ts";
import type { WindowTerm } from "../maintain/row_window.ts";
import { SetQuery, type SetQueryOptions } from "../maintain/set_query.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import { coreOf, mapCore } from "../parse/ast/query_nodes.ts";
import { CellRows } from "../result/result.ts";
import { dmlDepsOf, statisticsOf } from "./binding_deps.ts";
import { FIXED_FUNCTIONS, type LivePlanDeps } from "./live_planner.ts";
import { type PreparedQuery, prepare } from "./prepared.ts";
import { newContext, type StatementContext } from "./statement_context.ts";

/** A maintained query, and the statement that computes the initial rows of each result. */
interface SharedPlan {
  readonly query: MaintainedQuery | SetQuery;
  readonly seed: StatementToRun;
}

/** A shared plan, with the values of one subscriber. */
export interface MaintainedPlan {
  readonly shared: SharedPlan;
  /** The partition that the subscriber follows. */
  readonly partition: string;
}

/** A prepared statement, with its SQL for readers in other threads. */
export interface StatementToRun {
  readonly node: SelectStatement;
  readonly prepared: PreparedQuery;
}

/** The values that may differ between subscribers of the same query. */
export interface Subscriber {
  readonly principal: Principal;
  readonly slots: readonly Value[];
}

export interface MaintainedPlansOptions {
  readonly node: SelectStatement;
  readonly types: readonly DataType[];
  readonly namespace: string;
  readonly changesByTime: boolean;
  readonly readsTombstones: boolean;
  /** Whether an aggregate calls a function that runs as a program. */
  readonly callsPrograms: boolean;
  /** Whether a subset of the fields identifies a row of the result. */
  readonly hasKey: boolean;
  /**
   * Whether the last item of the select list is the seq of the newest table row from which a
   * result row is derived.
   */
  readonly hasRowSeq: boolean;
  /** The unambiguous sort order of a result with LIMIT. */
  readonly terms: readonly WindowTerm[] | undefined;
}

export class MaintainedPlans {
  readonly #deps: LivePlanDeps;
  readonly #options: MaintainedPlansOptions;
  /** The reason why results of this query cannot be maintained; undefined if none is known. */
  #reason: string | undefined;
  /** The subscriber's values on which plans depend; undefined until the first plan exists. */
  #values: MaintainedQuery["values"] | undefined;
  /** The shared plans. A plan lives as long as there are results that use it. */
  readonly #plans = new WeakValues<SharedPlan>();

  constructor(deps: LivePlanDeps, options: MaintainedPlansOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /**
   * Returns the plan for a subscriber, or the reason why the result cannot be maintained.
   * @throws {DatabaseError}
   */
  planFor(subscriber: Subscriber): MaintainedPlan | string {
    try {
      return this.#reason ?? this.#planFor(subscriber);
    } catch (error) {
      if (!(error instanceof NotMaintained)) throw error;
      this.#reason = error.message;
      return error.message;
    }
  }

  #planFor(subscriber: Subscriber): MaintainedPlan {
    const context = this.#contextOf(subscriber);
    const known = this.#values === undefined ? undefined : this.#known(this.#values, subscriber);
    const shared = known ?? this.#newPlan(subscriber, context);
    return { shared, partition: shared.query.partitionOf(context) };
  }

  #known(values: MaintainedQuery["values"], subscriber: Subscriber): SharedPlan | undefined {
    return this.#plans.get(keyOf(values, subscriber));
  }

  #newPlan(subscriber: Subscriber, context: StatementContext): SharedPlan {
    const { callsPrograms, changesByTime, hasKey, hasRowSeq, node, readsTombstones, terms } =
      this.#options;
    if (changesByTime) throw new NotMaintained("the rows of the query change over time");
    if (readsTombstones) throw new NotMaintained("the query reads deleted rows");
    if (callsPrograms) throw new NotMaintained("an aggregate calls a function in PL/pgSQL");
    const { principal } = subscriber;
    const bind = (other: SelectStatement): BoundSelect =>
      bindQuery(other, this.#binding(principal).deps);
    const options = {
      terms,
      principal,
      store: this.#deps.store,
      indexes: indexesOver(this.#deps.store),
      context,
      newContexts: () => this.newContexts(subscriber),
      isOfCaller: (name: string) => FIXED_FUNCTIONS.has(name),
    };
    const { query, seedNode } = maintainedQuery(node, { ...options, bind, hasKey, hasRowSeq });
    const seed = prepare(seedNode, this.#binding(principal));
    assert(seed.kind === "query", "maintained query: seed statement is not a query");
    const cells = new CellRows(seed.cells.types, () => (value) => value);
    const plan = { query, seed: { node: seedNode, prepared: { ...seed, cells } } };
    this.#values = query.values;
    this.#plans.set(keyOf(query.values, subscriber), plan);
    return plan;
  }

  /**
   * Returns the environment for binding statements. It has no time limit, because the subscriber's
   * request may have ended.
   */
  #binding(principal: Principal): Parameters<typeof prepare>[1] {
    const { namespace, types } = this.#options;
    const statement = new StatementBinding(types, { statistics: statisticsOf(this.#deps) });
    return { statement, deps: dmlDepsOf(this.#deps, { namespace, principal, statement }) };
  }

  #contextOf({ principal, slots }: Subscriber): StatementContext {
    const { namespace } = this.#options;
    const atSeq = this.#deps.store.visibleSeq;
    return newContext(this.#deps, { principal, namespace, slots, atSeq });
  }

  /** Creates the execution contexts for one step, which share the time limit of the step. */
  newContexts({ principal, slots }: Subscriber): StepContexts {
    const { namespace } = this.#options;
    const deps = this.#deps;
    const contexts = new Map<Seq, StatementContext>();
    const time = { timeoutMs: STEP_MS_MAX, timeoutMsDefault: 0, timeoutMsMax: STEP_MS_MAX };
    const ledger: RequestLedger = {
      ...newLedger(deps.clock.monotonicMs(), time),
      noteProgress: () => {
        if (ledger.rowsRead > STEP_ROWS_MAX) throw new CannotFollow();
      },
    };
    return {
      at: (atSeq) => {
        const known = contexts.get(atSeq);
        if (known !== undefined) return known;
        const context = newContext(deps, { principal, namespace, slots, atSeq, ledger });
        contexts.set(atSeq, context);
        return context;
      },
      close: () => {
        for (const context of contexts.values()) context.beginAnew(undefined);
      },
    };
  }
}

/**
 * Plans how a single SELECT, a set operation or a full join is maintained.
 * @throws {NotMaintained}
 */
function maintainedQuery(
  node: SelectStatement,
  options: Omit<SetQueryOptions, "node" | "select"> &
    Pick<MaintainedPlansOptions, "hasKey" | "hasRowSeq">,
): { readonly query: MaintainedQuery | SetQuery; readonly seedNode: SelectStatement } {
  const { bind } = options;
  const core = coreOf(node);
  const select = bind(node);
  if (core === undefined || isFullJoin(select)) {
    const query = new SetQuery({ ...options, node, select });
    return { query, seedNode: query.seed };
  }
  const query = new MaintainedQuery({
    ...options,
    core,
    bind: (other) => bind(mapCore(node, () => other)),
  });
  return { query, seedNode: mapCore(node, () => query.seed) };
}

const INDEXES = new WeakMap<ReadStore, KeptIndexes>();

/** Returns the in-memory indexes that maintained queries use on the tables of a store. */
function indexesOver(store: ReadStore): KeptIndexes {
  const known = INDEXES.get(store) ?? new KeptIndexes(store);
  INDEXES.set(store, known);
  return known;
}

function keyOf(
  { slots: numbers, usesCaller }: MaintainedQuery["values"],
  { principal, slots }: Subscriber,
): string {
  const { claims, owner, role, userId } = principal;
  const caller = usesCaller ? [userId, role, owner ?? null, claims ?? null] : [];
  const values = [...numbers].map((slot) => slots[slot] ?? null);
  return JSON.stringify([textOfRow(values), ...caller]);
}
