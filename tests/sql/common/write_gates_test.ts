/**
 * Gates of tables: who waits, in which turn it goes on, and that who was ended meanwhile does not.
 */
import { expect, test } from "bun:test";
import { WriteGates } from "../../../src/sql/common/write_gates.ts";
import { newLedger, type RequestLedger } from "../../../src/sql/execute/run/request_ledger.ts";
import { laterConditionOf } from "../../support/conditions.ts";
import { ManualClock } from "../../support/manual_clock.ts";

function endingAt(deadlineMs: number): RequestLedger {
  return newLedger(0, { timeoutMs: deadlineMs, timeoutMsDefault: 0, timeoutMsMax: NEVER });
}

const NEVER: number = Number.POSITIVE_INFINITY;

test("a gate keeps others waiting until it is opened, and only those of its table", async () => {
  const gates = new WriteGates(new ManualClock());
  const open = await gates.close(1, endingAt(NEVER));
  expect([gates.areClosed([1]), gates.areClosed([2]), gates.areClosed([2, 1])]).toEqual([
    true,
    false,
    true,
  ]);
  const order: string[] = [];
  const waiting = gates.opened([2, 1], endingAt(NEVER)).then(() => order.push("through"));
  await gates.opened([2], endingAt(NEVER));
  order.push("opens");
  open();
  await waiting;
  expect(order).toEqual(["opens", "through"]);
});

test("who was ended while it waited does not run, though the gate is open by then", async () => {
  const gates = new WriteGates(new ManualClock());
  const open = await gates.close(1, endingAt(NEVER));
  const ledger = endingAt(NEVER);
  const waiting = laterConditionOf(() => gates.opened([1], ledger));
  ledger.cancelledBy = "kill";
  open();
  expect(await waiting).toBe("CANCELLED");
});

test("whose time is over stops waiting", async () => {
  const clock = new ManualClock();
  const gates = new WriteGates(clock);
  await gates.close(1, endingAt(NEVER));
  const waiting = laterConditionOf(() => gates.opened([1], endingAt(clock.monotonicMs() + 30)));
  clock.advance(20);
  await clock.yield();
  clock.advance(20);
  expect(await waiting).toBe("STATEMENT_TIMEOUT");
});
