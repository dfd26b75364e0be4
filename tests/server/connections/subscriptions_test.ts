/**
 * Verifies that a connection's subscriptions are kept in order of arrival, whether there is one or
 * many.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import type { LiveSubscription } from "../../../src/live/mod.ts";
import { Subscriptions } from "../../../src/server/connections/subscriptions.ts";

class Recorded implements LiveSubscription {
  readonly id: string;
  readonly position = 5 as Seq;
  state: LiveSubscription["state"] = "following";
  readonly calls: string[];

  constructor(id: string, calls: string[] = []) {
    this.id = id;
    this.calls = calls;
  }

  nextBatch(): void {
    this.calls.push(`next ${this.id}`);
  }

  drained(): void {
    this.calls.push(`drained ${this.id}`);
  }

  close(): void {
    this.calls.push(`close ${this.id}`);
  }
}

test("the next subscription takes the place of the first, and the order is preserved", () => {
  const open = new Subscriptions();
  expect(open.count).toBe(0);
  for (const id of ["a", "b", "c", "d"]) open.add(new Recorded(id));
  expect(open.count).toBe(4);
  open.forget("a");
  expect(open.ids()).toEqual(["b", "c", "d"]);
  open.forget("c");
  expect(open.ids()).toEqual(["b", "d"]);
  open.forget("nobody");
  open.forget("b");
  open.add(new Recorded("e"));
  expect(open.ids()).toEqual(["d", "e"]);
  expect(Object.keys(open.positions())).toEqual(["d", "e"]);
  open.forget("d");
  open.forget("e");
  expect(open.count).toBe(0);
  open.add(new Recorded("f"));
  expect(open.ids()).toEqual(["f"]);
});

test("free space in the socket is announced once to an open subscription", () => {
  const calls: string[] = [];
  const open = new Subscriptions();
  open.drained();
  for (const id of ["a", "b", "c"]) open.add(new Recorded(id, calls));
  open.drained();
  open.forget("a");
  open.drained();
  expect(calls).toEqual(["drained a", "drained b"]);
  open.closeAll();
  expect(calls.slice(2)).toEqual(["close b", "close c"]);
  expect(open.count).toBe(0);
  open.drained();
  expect(calls.length).toBe(4);
});

test("a batch is requested for the only loading subscription, whatever its place", () => {
  const calls: string[] = [];
  const open = new Subscriptions();
  const all = ["a", "b", "c"].map((id) => new Recorded(id, calls));
  for (const subscription of all) open.add(subscription);
  for (const [index, subscription] of all.entries()) {
    subscription.state = "loading";
    open.nextBatch(undefined);
    expect(calls.at(-1)).toBe(`next ${subscription.id}`);
    expect(calls.length).toBe(index + 1);
    subscription.state = "following";
  }
  for (const subscription of all) subscription.state = "loading";
  expect(() => open.nextBatch(undefined)).toThrow("Several subscriptions are loading");
  expect(() => open.nextBatch("nobody")).toThrow('This connection has no subscription "nobody"');
});
