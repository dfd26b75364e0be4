/**
 * Tests the write gates of tables: the statements that wait at a gate, and the order in which they
 * continue. A statement that has ended does not continue.
 */
import { expect, test } from "bun:test";
import { WriteGates } from "../../../src/sql/mod.ts";
import { laterErrorCodeOf } from "../../support/error_codes.ts";
import { endingAt, NEVER } from "../../support/ledgers.ts";
import { ManualClock } from "../../support/manual_clock.ts";

test("a gate makes only statements on its table wait until it is opened", async () => {
  const gates = new WriteGates(new ManualClock());
  const open = await gates.close([1], endingAt(NEVER));
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

test("a statement that was ended while it waited does not run after the gate opens", async () => {
  const gates = new WriteGates(new ManualClock());
  const open = await gates.close([1], endingAt(NEVER));
  const ledger = endingAt(NEVER);
  const waiting = laterErrorCodeOf(() => gates.opened([1], ledger));
  ledger.cancelledBy = "kill";
  open();
  expect(await waiting).toBe("CANCELLED");
});

test("a statement stops waiting at its deadline", async () => {
  const clock = new ManualClock();
  const gates = new WriteGates(clock);
  await gates.close([1], endingAt(NEVER));
  const waiting = laterErrorCodeOf(() => gates.opened([1], endingAt(clock.monotonicMs() + 30)));
  clock.advance(20);
  await clock.yield();
  clock.advance(20);
  expect(await waiting).toBe("STATEMENT_TIMEOUT");
});
