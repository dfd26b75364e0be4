/**
 * What a changed definition does to a group: each of its subscribers is planned anew, as if it
 * subscribed now. Who may no longer read, whose table is gone, or whose rows would look different,
 * is told so; the others go on and notice nothing.
 *
 * It goes in slices: 5,000 queries hold the event loop for 20 to 40 ms, not 500 to 900. A feed
 * reads for nobody until all of its groups are through, so nobody whom the change ends sees a
 * later row. It costs that changes of that table wait meanwhile, and that who subscribes meanwhile
 * is in a group of its own.
 */
import type { Principal } from "../auth/mod.ts";
import type { EndCode, ErrorMessage, SubscriptionSpec } from "../protocol/mod.ts";
import type { LivePlan } from "../sql/mod.ts";
import { type DataType, dataTypeWord } from "../types/mod.ts";
import type { Budget } from "./budget.ts";
import type { Review } from "./feed.ts";
import type { Group } from "./groups.ts";
import { SubscriptionError } from "./live.ts";
import { ending } from "./live_errors.ts";
import type { Subscription } from "./subscription.ts";

/** @throws {SubscriptionError} */
type Planner = (principal: Principal, spec: SubscriptionSpec) => LivePlan;

/** A query that is planned takes 100 to 200 µs; a member that is told, 15. */
const PLAN_UNITS = 128;
const MEMBER_UNITS = 16;

/** Of one group, which may have thousands of members: goes on from turn to turn. */
export class DefinitionReview implements Review {
  readonly #before: LivePlan;
  readonly #planner: Planner;
  readonly #members: readonly Subscription[];
  #index = 0;
  readonly #byPrincipal = new Map<string, LivePlan | SubscriptionError>();
  #plan: LivePlan | undefined;

  constructor(group: Group<Subscription>, planner: Planner) {
    this.#before = group.program.plan;
    this.#planner = planner;
    this.#members = group.members();
  }

  get plan(): LivePlan | undefined {
    return this.#plan;
  }

  advance(budget: Budget): boolean {
    for (; this.#index < this.#members.length; this.#index += 1) {
      if (budget.isSpent) return false;
      const member = this.#members[this.#index];
      if (member !== undefined && member.state !== "ended") this.#review(member, budget);
    }
    return true;
  }

  #review(subscription: Subscription, budget: Budget): void {
    budget.spend(MEMBER_UNITS);
    const outcome = this.#outcomeFor(subscription, budget);
    const verdict =
      outcome instanceof SubscriptionError
        ? codeAfterRefusal(outcome)
        : codeAfterPlanning(this.#before, outcome);
    if (verdict !== undefined) subscription.end(told(subscription.id, verdict, this.#before));
    else if (!(outcome instanceof SubscriptionError)) this.#plan = outcome;
  }

  #outcomeFor({ principal, spec }: Subscription, budget: Budget): LivePlan | SubscriptionError {
    // Members of a group ask the same, so the answer depends on who asks only.
    const key = JSON.stringify([principal.userId, principal.role]);
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
    // A refusal is an answer here: it says how the subscription ends.
    if (error instanceof SubscriptionError) return error;
    throw error;
  }
}

/**
 * A query that is no longer valid names an object that has changed. Its subscriber has seen the
 * table, so the error says that a right is gone, not that the table does not exist.
 */
function codeAfterRefusal({ isHidden, response: { code } }: SubscriptionError): EndCode {
  if (isHidden) return "UNAUTHORIZED";
  if (code === "NOT_FOUND" || code === "UNAUTHORIZED") return code;
  return code === "SUBSCRIPTION_FAILED" ? code : "SCHEMA_CHANGED";
}

function codeAfterPlanning(before: LivePlan, after: LivePlan): EndCode | undefined {
  if (after.tableId !== before.tableId) return "NOT_FOUND";
  if (!after.mayRead()) return "UNAUTHORIZED";
  if (after.owner !== before.owner) return "SCHEMA_CHANGED";
  const isSame = hasSameFields(before, after) && namesSameColumns(before, after);
  return isSame ? undefined : "SCHEMA_CHANGED";
}

/** Whether rows look the same. Flags may differ: NOT NULL changes no row. */
function hasSameFields(before: LivePlan, after: LivePlan): boolean {
  if (before.fields.length !== after.fields.length) return false;
  return before.fields.every((field, index) => {
    const other = after.fields[index];
    const isSame = JSON.stringify(field.data_type) === JSON.stringify(other?.data_type);
    return field.name === other?.name && isSame;
  });
}

/**
 * Whether each name is still that of the same column: one that was dropped and added again has
 * other values, and two may have changed their names. With a wider type a condition may decide
 * otherwise of a row that nobody has changed, as of how many digits a number has as text.
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
  return ending(subscriptionId, code, WHY[code]?.(tableName) ?? `${tableName} was changed`);
}

const WHY: Partial<Record<EndCode, (tableName: string) => string>> = {
  NOT_FOUND: (tableName) => `Table ${tableName} was dropped`,
  UNAUTHORIZED: (tableName) => `Table ${tableName} may no longer be read`,
  SCHEMA_CHANGED: (tableName) => `Table ${tableName} was altered; subscribe again`,
  SUBSCRIPTION_FAILED: () => "The subscription failed on the server",
};
