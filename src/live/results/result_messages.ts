/**
 * Builds the messages for one step from a state to the next. They are built once, and each is
 * addressed to a subscription id when that id first needs it.
 *
 * Invariant: all messages of a step have the same `commit_seq`, and only the last has `commit_end`:
 * a client that has applied it has exactly the rows of the query at that seq.
 */
import type { Seq } from "../../base/seq.ts";
import type { ResultPlan } from "../../sql/mod.ts";
import type { SharedMessage } from "../contract/live.ts";
import {
  changeMessage,
  Messages,
  type PendingChange,
  type PendingChangeOptions,
  pendingChangeFrom,
  shared,
} from "../delivery/messages.ts";
import type { LiveChange } from "../program/live_program.ts";
import type { ResultState } from "./result_state.ts";

/** The part of a state that tells the range of a step. */
type StepEnd = Pick<ResultState, "seq">;

/** Adds the reason to each delete of a row that expired between two states. */
export function withReasons(
  changes: readonly LiveChange[],
  plan: Pick<ResultPlan, "expiredBetween">,
  { after, before }: { before: StepEnd; after: StepEnd },
): readonly LiveChange[] {
  if (!changes.some(({ type }) => type === "delete")) return changes;
  const isExpired = plan.expiredBetween(before.seq, after.seq);
  if (isExpired === undefined) return changes;
  return changes.map((change) => {
    const { old, type } = change;
    const hasExpired = type === "delete" && old !== undefined && isExpired(old);
    return hasExpired ? { ...change, reason: "expired" as const } : change;
  });
}

interface StepMessage {
  readonly pending: PendingChange;
  readonly messages: Messages;
}

export class StepMessages {
  readonly seq: Seq;
  /** The number of changes in all messages. */
  readonly changeCount: number;
  readonly #steps: readonly StepMessage[];

  /** @param options.isPartial Whether more than these messages belong to the step. */
  constructor(
    changes: readonly LiveChange[],
    {
      seq,
      isPartial = false,
      ...options
    }: PendingChangeOptions & { seq: Seq; isPartial?: boolean },
  ) {
    this.seq = seq;
    this.changeCount = changes.length;
    const pendings: PendingChange[] = [];
    for (let start = 0; start < changes.length; ) {
      const pending = pendingChangeFrom(changes, start, { ...options, countMax: changes.length });
      start += pending.count;
      const isCommitEnd = start === changes.length && !isPartial;
      pendings.push({ ...pending, isCommitEnd });
    }
    this.#steps = pendings.map((pending) => ({ pending, messages: new Messages() }));
  }

  get count(): number {
    return this.#steps.length;
  }

  /** Returns one message of the step, addressed to a subscription. */
  message(index: number, subscriptionId: string): SharedMessage | undefined {
    const step = this.#steps[index];
    if (step === undefined) return undefined;
    const make = (): SharedMessage => shared(changeMessage(step.pending, subscriptionId));
    return step.messages.get(subscriptionId, make);
  }
}
