/**
 * Builds the messages that take a subscriber from one state of a query's result to the next. Each
 * message is built once, and is addressed to a subscription id when it is first needed for that
 * id.
 *
 * Invariant: all messages of a step have the same `commit_seq`, and only the last one has
 * `commit_end`: a client that has applied it has exactly the rows of the query at that seq.
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

/** The part of a state that delimits a step, which leads from one state to the next. */
type StepEnd = Pick<ResultState, "seq">;

/** Adds the reason to each delete of a row that expired between the two states. */
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
  /** The total number of changes in the messages of a step. */
  readonly changeCount: number;
  readonly #changes: readonly LiveChange[];
  readonly #options: PendingChangeOptions;
  /** The messages built so far. Each is built when the first subscription needs it. */
  readonly #steps: StepMessage[] = [];
  /** The number of changes in the messages built so far. */
  #start = 0;

  constructor(
    changes: readonly LiveChange[],
    { seq, ...options }: PendingChangeOptions & { seq: Seq },
  ) {
    this.seq = seq;
    this.changeCount = changes.length;
    this.#changes = changes;
    this.#options = options;
  }

  /**
   * Returns the message with an index, addressed to a subscription; undefined if the index is
   * beyond the step's last message.
   */
  message(index: number, subscriptionId: string): SharedMessage | undefined {
    while (index >= this.#steps.length && this.#start < this.changeCount) this.#addStep();
    const step = this.#steps[index];
    if (step === undefined) return undefined;
    const make = (): SharedMessage => shared(changeMessage(step.pending, subscriptionId));
    return step.messages.get(subscriptionId, make);
  }

  #addStep(): void {
    const pending = pendingChangeFrom(this.#changes, this.#start, this.#options);
    this.#start += pending.count;
    const isCommitEnd = this.#start === this.changeCount;
    this.#steps.push({ pending: { ...pending, isCommitEnd }, messages: new Messages() });
  }
}
