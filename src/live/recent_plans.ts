/**
 * The plans of queries that were subscribed to of late, for clients that come all at once with the
 * same query: after a restart of the server, or behind a proxy that lost its connections. A plan
 * found here saves the parser's and the binder's work, and the garbage of both.
 *
 * Invariant: a plan is used again only while it is the plan of an open group, because those are
 * made anew with every change of a definition; rights are asked of it at each use. It is held
 * weakly, since it goes with its group, and its parameters may have a megabyte.
 */
import type { Principal } from "../auth/mod.ts";
import { putNewest } from "../base/newest.ts";
import { shortKey } from "../base/short_key.ts";
import type { SubscriptionSpec } from "../protocol/mod.ts";
import type { LivePlan } from "../sql/mod.ts";

/** Plans that are remembered; the oldest goes first. */
const PLANS_MAX = 256;

export class RecentPlans {
  readonly #byKey = new Map<string, WeakRef<LivePlan>>();

  /** @param isOpen Whether a plan is that of an open group. */
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

/** All that a plan is made from, but for the definitions. */
export function planKeyOf(
  { owner, role, userId }: Principal,
  { namespace_id, params, sql }: SubscriptionSpec,
): string {
  const parts = [userId, role, owner ?? null, namespace_id ?? null, sql, params ?? []];
  // A replacer costs every part a call, so it is there for parameters only.
  return shortKey(params === undefined ? JSON.stringify(parts) : JSON.stringify(parts, tagged));
}

/** Numbers that JSON would not tell apart from null or from text: NaN, and those beyond 2^53. */
function tagged(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return { bigint: String(value) };
  return typeof value === "number" ? { number: String(value) } : value;
}
