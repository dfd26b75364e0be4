/** Runs the calls of constraint triggers that a transaction has left to its end. */
import type { Principal } from "../../auth/mod.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { DeferredCall, TriggerCalls } from "../execute/context/trigger_calls.ts";

/**
 * Runs deferred calls in the order in which they were deferred, including those that these calls
 * defer.
 *
 * @param options.isChosen Decides which calls run; all of them if absent.
 * @throws {DatabaseError} The errors of the functions.
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
