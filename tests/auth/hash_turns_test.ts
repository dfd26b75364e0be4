/**
 * Verifies that a client that sends many passwords waits only for its own hashes, that no client
 * is refused because another client floods the server, and that no lane starves.
 */
import { expect, test } from "bun:test";
import { HashTurns } from "../../src/auth/hash_turns.ts";

function setUp(): {
  turns: HashTurns;
  order: string[];
  wait: (sender: string, count?: number, isTrusted?: boolean) => void;
  settle: () => Promise<void>;
} {
  const turns = new HashTurns();
  const order: string[] = [];
  return {
    turns,
    order,
    wait: (sender, count = 1, isTrusted = false) => {
      for (let index = 0; index < count; index += 1) {
        turns.wait({ sender, isTrusted }).then(
          () => order.push(sender),
          () => order.push(`${sender} refused`),
        );
      }
    },
    settle: async () => {
      for (let round = 0; round < 5; round += 1) await Promise.resolve();
    },
  };
}

test("HashTurns serves senders in turn, however many hashes one of them sends", async () => {
  const { order, settle, turns, wait } = setUp();
  wait("mallory", 150);
  wait("ann");
  wait("bob", 2);
  for (let count = 0; count < 6; count += 1) {
    turns.startNext();
    await settle();
  }
  expect(order).toEqual(["mallory", "ann", "bob", "mallory", "bob", "mallory"]);
});

test("HashTurns gives every other turn to known devices", async () => {
  const { order, settle, turns, wait } = setUp();
  for (let index = 0; index < 100; index += 1) wait(`10.0.0.${index}`);
  wait("ann", 2, true);
  wait("bob", 1, true);
  for (let count = 0; count < 7; count += 1) {
    turns.startNext();
    await settle();
  }
  expect(order).toEqual(["ann", "10.0.0.0", "bob", "10.0.0.1", "ann", "10.0.0.2", "10.0.0.3"]);
});

test("HashTurns refuses the newest hash of the busiest sender when too many hashes wait", async () => {
  const { order, settle, turns, wait } = setUp();
  wait("mallory", 400);
  wait("ann");
  await settle();
  expect(order).toEqual(["mallory refused"]);
  wait("mallory");
  await settle().catch(() => undefined);
  expect(turns.waitingCount).toBe(400);
});

test("HashTurns drops a stranger's hash in favour of a known device if many senders have one hash each", async () => {
  const { order, settle, turns, wait } = setUp();
  for (let index = 0; index < 400; index += 1) wait(`10.0.${index}.1`);
  wait("stranger");
  wait("ann", 1, true);
  await settle();
  expect(order.toSorted()).toEqual(["10.0.399.1 refused", "stranger refused"]);
  turns.startNext();
  await settle();
  expect(order.at(-1)).toBe("ann");
  expect(turns.waitingCount).toBe(399);
});

test("HashTurns refuses the newest of many known devices when no stranger waits", async () => {
  const { order, settle, wait } = setUp();
  wait("mallory", 400, true);
  wait("ann", 1, true);
  await settle();
  expect(order).toEqual(["mallory refused"]);
});

test("HashTurns reports that no sender is waiting", () => {
  const { turns } = setUp();
  expect(turns.startNext()).toBeFalse();
});
