/**
 * Reviews a group after a definition has changed: the query of each subscriber is planned again,
 * as if the subscriber had just subscribed. A subscription ends if its user may no longer read the
 * table, if the table is gone, or if its rows would look different. All other subscriptions
 * continue unaffected.
 *
 * The review runs in slices, because reviewing 5,000 queries in one go would block the event loop
 * for more than half a second. A feed reads nothing until all of its groups have been reviewed, so
 * that no subscriber receives a row written after the change that ends its subscription. In
 * return, changes to the table wait during the review, and a client that subscribes during the
 * review gets a separate group.
 */
import type { Principal } from "../auth/mod.ts";
import type { EndCode, ErrorMessage, SubscriptionSpec } from "../protocol/mod.ts";
import type { LivePlan } from "../sql/mod.ts";
import { type DataType, dataTypeWord } from "../types/mod.ts";
import type { Review } from "./change_feed/change_feed.ts";
import { SubscriptionError } from "./contract/live.ts";
import { codeAfterRefusal, ending } from "./contract/live_errors.ts";
import type { SubscriptionGroup } from "./delivery/groups.ts";
import type { TickBudget } from "./scheduler/tick_budget.ts";
import type { Subscription } from "./subscription/subscription.ts";

/**
 * Plans the query of a subscription against the current definitions.
 * @throws {SubscriptionError}
 */
type Planner = (principal: Principal, spec: SubscriptionSpec) => LivePlan;

/**
 * The costs of planning a query, and of ending or keeping a subscription, in budget units of about
 * 1 µs. Planning takes 100 to 200 µs, and each subscription about 15 µs.
 */
const PLAN_UNITS = 128;
const MEMBER_UNITS = 16;

/** Reviews a group. A group may have thousands of members, so a review may span several ticks. */
export class DefinitionReview implements Review {
  readonly #before: LivePlan;
  readonly #planner: Planner;
  readonly #members: readonly Subscription[];
  #index = 0;
  readonly #byPrincipal = new Map<string, LivePlan | SubscriptionError>();
  #plan: LivePlan | undefined;

  constructor(group: SubscriptionGroup<Subscription>, planner: Planner) {
    this.#before = group.program.plan;
    this.#planner = planner;
    this.#members = group.members();
  }

  get plan(): LivePlan | undefined {
    return this.#plan;
  }

  advance(budget: TickBudget): boolean {
    for (; this.#index < this.#members.length; this.#index += 1) {
      if (budget.isSpent) return false;
      const member = this.#members[this.#index];
      if (member !== undefined && member.state !== "ended") this.#review(member, budget);
    }
    return true;
  }

  #review(subscription: Subscription, budget: TickBudget): void {
    budget.spend(MEMBER_UNITS);
    const outcome = this.#outcomeFor(subscription, budget);
    const verdict =
      outcome instanceof SubscriptionError
        ? codeAfterRefusal(outcome)
        : codeAfterPlanning(this.#before, outcome);
    if (verdict !== undefined) subscription.end(told(subscription.id, verdict, this.#before));
    else if (!(outcome instanceof SubscriptionError)) this.#plan = outcome;
  }

  #outcomeFor({ principal, spec }: Subscription, budget: TickBudget): LivePlan | SubscriptionError {
    // All members of a group run the same query, so the result of planning depends only on the
    // user and the token.
    const key = JSON.stringify([principal.userId, principal.role, principal.claims]);
    const known = this.#byPrincipal.get(key);
    if (known !== undefined) return known;
    budget.spend(PLAN_UNITS);
    const outcome = planned(this.#planner, principal, spec);
    this.#byPrincipal.set(key, outcome);
    return outcome;
  }
}

function planned(
  planner: Planner,
  principal: Principal,
  spec: SubscriptionSpec,
): LivePlan | SubscriptionError {
  try {
    return planner(principal, spec);
  } catch (error) {
    // A refusal is an expected result: it becomes the message that ends the subscription.
    if (error instanceof SubscriptionError) return error;
    throw error;
  }
}

function codeAfterPlanning(before: LivePlan, after: LivePlan): EndCode | undefined {
  if (after.tableId !== before.tableId) return "NOT_FOUND";
  if (!after.mayRead()) return "UNAUTHORIZED";
  // If policies have changed, an unchanged row may have entered or left the result.
  if (after.owner !== before.owner || after.fingerprint !== before.fingerprint) {
    return "SCHEMA_CHANGED";
  }
  const isSame = hasSameFields(before, after) && namesSameColumns(before, after);
  return isSame ? undefined : "SCHEMA_CHANGED";
}

/**
 * Returns whether two plans show the same row in the same form. NOT NULL may differ, because it
 * does not affect the form of a row.
 */
function hasSameFields(before: LivePlan, after: LivePlan): boolean {
  if (before.fields.length !== after.fields.length) return false;
  return before.fields.every((field, index) => {
    const other = after.fields[index];
    const isSame = JSON.stringify(field.data_type) === JSON.stringify(other?.data_type);
    return field.name === other?.name && isSame;
  });
}

/**
 * Returns whether each name still refers to the same column. A column that was dropped and added
 * again has different values, and two columns may have swapped names. In addition, a condition may
 * give a different result for an unchanged row after a column has been widened, for example if it
 * tests the number of digits in the column's text form.
 */
function namesSameColumns({ namedColumns: before }: LivePlan, { namedColumns: after }: LivePlan) {
  return (
    before.length === after.length &&
    before.every(({ columnId, type }, index) => {
      const other = after[index];
      return other?.columnId === columnId && isSameType(type, other.type);
    })
  );
}

function isSameType(type: DataType, other: DataType): boolean {
  return JSON.stringify(dataTypeWord(type)) === JSON.stringify(dataTypeWord(other));
}

function told(subscriptionId: string, code: EndCode, { tableName }: LivePlan): ErrorMessage {
  return ending(
    subscriptionId,
    code,
    WHY[code]?.(tableName) ?? `Table ${tableName} has changed; subscribe again`,
  );
}

const WHY: Partial<Record<EndCode, (tableName: string) => string>> = {
  NOT_FOUND: (tableName) => `Table ${tableName} has been dropped or renamed`,
  UNAUTHORIZED: (tableName) => `You may no longer read table ${tableName}`,
  SCHEMA_CHANGED: (tableName) => `Table ${tableName} has been altered; subscribe again`,
  SUBSCRIPTION_FAILED: () => "The subscription has ended because of an internal error",
};
