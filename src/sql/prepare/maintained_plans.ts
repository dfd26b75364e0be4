/**
 * Keeps the plans with which the results of one text are maintained. Subscribers share a plan if
 * their values differ only in the terms that divide the rows among them, such as `WHERE user_id =
 * $1`.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { type DataType, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { MaintainedQuery } from "../maintain/maintained_query.ts";
import { NotMaintained } from "../maintain/not_maintained.ts";
import { textOfRow } from "../maintain/row_text.ts";
import type { WindowTerm } from "../maintain/row_window.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import { coreOf, mapCore } from "../parse/ast/query_nodes.ts";
import { CellRows } from "../result/result.ts";
import { dmlDepsOf, statisticsOf } from "./binding_deps.ts";
import { FIXED_FUNCTIONS, type LivePlanDeps } from "./live_planner.ts";
import { type PreparedQuery, prepare } from "./prepared.ts";
import { newContext, type StatementContext } from "./statement_context.ts";

/** A maintained query, and the statement with which each result begins. */
interface SharedPlan {
  readonly query: MaintainedQuery;
  readonly seed: StatementToRun;
}

/** The plan of one subscriber. */
export interface MaintainedPlan {
  readonly shared: SharedPlan;
  /** The partition of the changes that concerns the subscriber. */
  readonly partition: string;
}

/** A prepared statement, and its text for readers in other threads. */
export interface StatementToRun {
  readonly node: SelectStatement;
  readonly prepared: PreparedQuery;
}

/** The values of a subscriber. */
export interface Subscriber {
  readonly principal: Principal;
  readonly slots: readonly Value[];
}

export interface MaintainedPlansOptions {
  readonly node: SelectStatement;
  readonly types: readonly DataType[];
  readonly namespace: string;
  readonly changesByTime: boolean;
  /** The complete order of a window of LIMIT. */
  readonly terms: readonly WindowTerm[] | undefined;
}

/** The minimum number of plans among which unused ones are looked for. */
const PLANS_MIN = 64;

export class MaintainedPlans {
  readonly #deps: LivePlanDeps;
  readonly #options: MaintainedPlansOptions;
  /** The reason why no result of this text is maintained. */
  #reason: string | undefined;
  /** The values of a subscriber on which plans depend, once there is a plan. */
  #values: MaintainedQuery["values"] | undefined;
  readonly #plans = new Map<string, WeakRef<SharedPlan>>();
  /** The number of plans above which unused ones are looked for. */
  #sizeToLook = PLANS_MIN;

  constructor(deps: LivePlanDeps, options: MaintainedPlansOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Returns the plan of a subscriber, or the reason why there is none. @throws {DatabaseError} */
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
    return this.#plans.get(keyOf(values, subscriber))?.deref();
  }

  #newPlan(subscriber: Subscriber, context: StatementContext): SharedPlan {
    const { changesByTime, node, terms } = this.#options;
    if (changesByTime) throw new NotMaintained("its rows change with time");
    const core = coreOf(node);
    if (core === undefined) throw new NotMaintained("it is not a single SELECT");
    const { principal } = subscriber;
    const query = new MaintainedQuery({
      core,
      bind: (other) =>
        bindQuery(
          mapCore(node, () => other),
          this.#binding(principal).deps,
        ),
      terms,
      principal,
      store: this.#deps.store,
      context,
      isOfCaller: (name) => FIXED_FUNCTIONS.has(name),
    });
    const seedNode = mapCore(node, () => query.seed);
    const seed = prepare(seedNode, this.#binding(principal));
    assert(seed.kind === "query", "a seed is a query");
    const cells = new CellRows(seed.cells.types, () => (value) => value);
    const plan = { query, seed: { node: seedNode, prepared: { ...seed, cells } } };
    this.#values = query.values;
    this.#forgetUnused();
    this.#plans.set(keyOf(query.values, subscriber), new WeakRef(plan));
    return plan;
  }

  /** Removes unused plans. A plan lives as long as its results. */
  #forgetUnused(): void {
    if (this.#plans.size < this.#sizeToLook) return;
    for (const [key, plan] of this.#plans) if (plan.deref() === undefined) this.#plans.delete(key);
    this.#sizeToLook = Math.max(PLANS_MIN, 2 * this.#plans.size);
  }

  /** Binds without a time limit, because the request of the subscriber may have ended. */
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
