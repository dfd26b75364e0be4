/**
 * Caches the plans of recent subscriptions, because many clients may send the same query at the
 * same time, for example after a server restart or behind a proxy that lost its connections.
 * Finding a plan here saves parsing and binding, and the garbage that both produce.
 *
 * Invariant: a plan is reused only while it is the plan of an open group, because such plans are
 * renewed whenever a definition changes. Rights are checked on each use. The cache refers to
 * plans weakly: a plan lives as long as its group, because its parameters may take up a megabyte.
 */
import type { Principal } from "../auth/mod.ts";
import { putNewest } from "../base/newest.ts";
import { shortKey } from "../base/short_key.ts";
import type { SubscriptionSpec } from "../protocol/mod.ts";
import type { LivePlan } from "../sql/mod.ts";

/** The maximum number of plans. When it is exceeded, the oldest plan is removed. */
const PLANS_MAX = 256;

export class RecentPlans {
  readonly #byKey = new Map<string, WeakRef<LivePlan>>();

  /**
   * Returns the recent plan for a key if it can be reused; otherwise undefined.
   * @param isOpen Returns whether a plan belongs to an open group.
   */
  find(key: string, isOpen: (plan: LivePlan) => boolean): LivePlan | undefined {
    const plan = this.#byKey.get(key)?.deref();
    if (plan !== undefined && isOpen(plan) && plan.mayRead()) return plan;
    this.#byKey.delete(key);
    return undefined;
  }

  remember(key: string, plan: LivePlan): void {
    putNewest(this.#byKey, [key, new WeakRef(plan)], PLANS_MAX);
  }
}

/** Returns a cache key that covers everything a plan depends on, apart from the definitions. */
export function planKeyOf(
  { claims, owner, role, tokenScope, userId }: Principal,
  { namespace_id, params, sql }: SubscriptionSpec,
): string {
  const caller = [userId, role, owner ?? null, claims ?? null, scopeParts(tokenScope)];
  const parts = [...caller, namespace_id ?? null, sql, params ?? []];
  // JSON.stringify calls a replacer function for every part of the value, so a replacer is used
  // only if the query has parameters.
  return shortKey(params === undefined ? JSON.stringify(parts) : JSON.stringify(parts, tagged));
}

/**
 * The token's scope is part of the key, because the scope is checked during binding, and a cached
 * plan is not bound again.
 */
function scopeParts(scope: Principal["tokenScope"]): readonly unknown[] | null {
  if (scope === undefined) return null;
  const { namespaces, rights, tokenName } = scope;
  return [tokenName, rights && [...rights], namespaces && [...namespaces]];
}

/**
 * Marks values that JSON cannot distinguish from others: NaN, which it writes as null, and
 * integers beyond 2^53, which are bigints.
 */
function tagged(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return { bigint: String(value) };
  return typeof value === "number" ? { number: String(value) } : value;
}
