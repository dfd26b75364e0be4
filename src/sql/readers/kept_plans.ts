/**
 * The plans that a reader keeps, by their numbers. When there are too many plans, or their texts
 * are too long in total, the oldest ones are discarded, because a plan for a megabyte of SQL takes
 * several megabytes.
 *
 * The event loop keeps the same list for each reader. Both sides discard plans by the same rule, so
 * a reader has every plan on the list.
 */
import type { QueryStatement } from "../parse/ast/ast.ts";

const PLANS_MAX = 200;
const TEXT_LENGTH_MAX = 512 * 1024;

interface KeptPlan<Plan> {
  readonly plan: Plan;
  readonly textLength: number;
}

export class KeptPlans<Plan> {
  readonly #plans = new Map<number, KeptPlan<Plan>>();
  #textLength = 0;

  has(number: number): boolean {
    return this.#plans.has(number);
  }

  get(number: number): Plan | undefined {
    return this.#plans.get(number)?.plan;
  }

  /** @param node The statement from which the plan was compiled. */
  add(number: number, plan: Plan, { _location: { end, start } }: QueryStatement): void {
    const textLength = end - start;
    this.delete(number);
    this.#plans.set(number, { plan, textLength });
    this.#textLength += textLength;
    for (const oldest of this.#plans.keys()) {
      const isWithin = this.#plans.size <= PLANS_MAX && this.#textLength <= TEXT_LENGTH_MAX;
      if (isWithin || oldest === number) return;
      this.delete(oldest);
    }
  }

  delete(number: number): void {
    this.#textLength -= this.#plans.get(number)?.textLength ?? 0;
    this.#plans.delete(number);
  }
}
