/**
 * Creates the parts of the live layer on which tests of its other parts depend: tick budgets,
 * programs, readers and feeds.
 */
import { ChangeFeed } from "../../src/live/change_feed/change_feed.ts";
import type { GroupMember } from "../../src/live/delivery/groups.ts";
import { LiveProgram } from "../../src/live/program/live_program.ts";
import { TickBudget } from "../../src/live/scheduler/tick_budget.ts";
import { SnapshotReader } from "../../src/live/snapshot/snapshot_reader.ts";
import { parametersFromSpec } from "../../src/live/subscription/subscribe_options.ts";
import type { LivePlan } from "../../src/sql/mod.ts";

export type { GroupMember, Reach, SubscriptionGroup } from "../../src/live/delivery/groups.ts";

/** Returns the budget of a tick with the given number of work units. */
export function tickOf(units: number): TickBudget {
  return new TickBudget(units);
}

/** Returns the program that subscriptions run for a plan. */
export function programFor(plan: LivePlan): LiveProgram {
  return new LiveProgram(plan);
}

/** Returns a reader that reads a snapshot. */
export function snapshotReader(
  options: ConstructorParameters<typeof SnapshotReader>[0],
): SnapshotReader {
  return new SnapshotReader(options);
}

/** Returns a feed of the changes in one partition. */
export function feedOver<Member extends GroupMember>(
  options: ConstructorParameters<typeof ChangeFeed<Member>>[0],
): ChangeFeed<Member> {
  return new ChangeFeed<Member>(options);
}

/** Returns the numbers among a subscription's parameters, as text. */
export function boundNumbers(params: unknown[]): readonly string[] {
  return parametersFromSpec(params).map((value) => (value as { number: string }).number);
}
