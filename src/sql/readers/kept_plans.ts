/**
 * Keeps the plans of a reader, keyed by number. Their total estimated size is limited: the oldest
 * plans are discarded first, and a plan that is too large is not kept at all.
 *
 * The event loop keeps the same list for each reader. Both sides discard plans by the same rule,
 * so a reader has every plan on the list that the event loop keeps for it.
 */
import type { QueryStatement } from "../parse/ast/ast.ts";
import { fitsCache, planBytesOf } from "../prepare/plan_size.ts";

const BYTES_MAX: number = 6 * 2 ** 20;

interface KeptPlan<Plan> {
  readonly plan: Plan;
  readonly bytes: number;
}

export class KeptPlans<Plan> {
  readonly #plans = new Map<number, KeptPlan<Plan>>();
  #bytes = 0;

  has(number: number): boolean {
    return this.#plans.has(number);
  }

  get(number: number): Plan | undefined {
    return this.#plans.get(number)?.plan;
  }

  /**
   * Keeps a compiled plan for later runs of the same statement.
   * @param node The statement that was compiled.
   */
  add(number: number, plan: Plan, { _location: { end, start } }: QueryStatement): void {
    const bytes = planBytesOf(end - start);
    this.delete(number);
    if (!fitsCache(bytes, { bytesMax: BYTES_MAX })) return;
    this.#plans.set(number, { plan, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#plans.keys()) {
      if (this.#bytes <= BYTES_MAX) return;
      this.delete(oldest);
    }
  }

  delete(number: number): void {
    this.#bytes -= this.#plans.get(number)?.bytes ?? 0;
    this.#plans.delete(number);
  }
}
