/** Runs the calls to constraint triggers that a transaction has deferred. */
import type { Principal } from "../../auth/mod.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { DeferredCall, TriggerCalls } from "../execute/context/trigger_calls.ts";

/**
 * Runs deferred trigger calls in the order in which they were deferred, including calls that these
 * calls defer in turn.
 *
 * @param options.isChosen Decides which calls to run; if absent, all of them run.
 * @throws {DatabaseError} the errors of the trigger functions
 */
export async function runDeferred(
  transaction: Transaction,
  options: {
    readonly callsFor: (principal: Principal) => TriggerCalls;
    readonly isChosen?: (call: DeferredCall) => boolean;
  },
): Promise<void> {
  const { callsFor, isChosen } = options;
  for (;;) {
    const deferred = transaction.nextDeferred(isChosen);
    if (deferred === undefined) return;
    await callsFor(deferred.principal).call(deferred.call);
  }
}
