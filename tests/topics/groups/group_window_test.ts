/**
 * Tests the state machine of a group in a partition: every event in every state, the bounds of the
 * window, and the stored form of the window.
 */
import { describe, expect, test } from "bun:test";
import { GroupWindow, WINDOW_MAX } from "../../../src/topics/groups/group_window.ts";

const EMPTY = { committed: 0, end: 0, acked: [], deliveries: [] };

type State = "new" | "waiting" | "claimed" | "acknowledged";

/**
 * The offset whose state the cases change. Offset 0 stays claimed, so that the window contains
 * both offsets.
 */
const IT = 1;
const NOW_MS = 100;
const CONSUMER = 7;

/** Returns a window in which the message {@linkcode IT} is in the given state. */
function windowIn(state: State): GroupWindow {
  const window = new GroupWindow(EMPTY);
  window.push("first");
  window.claim(0, { consumer: 1, deadlineMs: 1e9 });
  if (state === "new") return window;
  window.push("it");
  if (state === "claimed") window.claim(IT, { consumer: CONSUMER, deadlineMs: 1000 });
  if (state === "acknowledged") window.ack({ offsets: [IT] });
  return window;
}

function stateOf(window: GroupWindow): State {
  if (window.end <= IT) return "new";
  if (window.isAcked(IT)) return "acknowledged";
  return window.isClaimed(IT) ? "claimed" : "waiting";
}

const EVENTS: Readonly<Record<string, (window: GroupWindow) => void>> = {
  deliver: (window) => {
    if (window.end === IT) window.push("it");
    for (const offset of window.due(NOW_MS, 10)) {
      window.claim(offset, { consumer: CONSUMER, deadlineMs: NOW_MS + 10 });
    }
  },
  nack: (window) => void window.release(IT, NOW_MS + 50),
  "deadline over": (window) => window.expire(1000),
  "consumer ends": (window) => void window.releaseAllOf(CONSUMER),
  "consumer did not get it": (window) => window.unclaim(IT),
  ack: (window) => window.ack({ offsets: [IT] }),
  "ack up to": (window) => window.ack({ upTo: IT }),
};

const TABLE: Readonly<Record<string, Readonly<Record<State, State>>>> = {
  deliver: { new: "claimed", waiting: "claimed", claimed: "claimed", acknowledged: "acknowledged" },
  nack: { new: "new", waiting: "waiting", claimed: "waiting", acknowledged: "acknowledged" },
  "deadline over": {
    new: "new",
    waiting: "waiting",
    claimed: "waiting",
    acknowledged: "acknowledged",
  },
  "consumer ends": {
    new: "new",
    waiting: "waiting",
    claimed: "waiting",
    acknowledged: "acknowledged",
  },
  "consumer did not get it": {
    new: "new",
    waiting: "waiting",
    claimed: "waiting",
    acknowledged: "acknowledged",
  },
  // The group has already checked that an acknowledged message was delivered, or may have been
  // delivered before a restart.
  ack: {
    new: "acknowledged",
    waiting: "acknowledged",
    claimed: "acknowledged",
    acknowledged: "acknowledged",
  },
  "ack up to": {
    new: "acknowledged",
    waiting: "acknowledged",
    claimed: "acknowledged",
    acknowledged: "acknowledged",
  },
};

describe("GroupWindow tracks the state of each message", () => {
  for (const [event, row] of Object.entries(TABLE)) {
    for (const [from, to] of Object.entries(row) as [State, State][]) {
      test(`the event ${event} changes the state ${from} to ${to}`, () => {
        const window = windowIn(from);
        expect(stateOf(window)).toBe(from);
        EVENTS[event]?.(window);
        expect(
          stateOf(window) === "new" && to === "acknowledged" ? window.isAcked(IT) : stateOf(window),
        ).toBe(to);
        const counted = { claims: 0, waiting: 0 };
        for (let offset = window.committed; offset < window.end; offset += 1) {
          if (window.isClaimed(offset)) counted.claims += 1;
          if (window.isWaiting(offset)) counted.waiting += 1;
        }
        expect({ claims: window.claimCount, waiting: window.waitingCount }).toEqual(counted);
      });
    }
  }

  test("GroupWindow.release makes a message wait until its delay is over", () => {
    const window = windowIn("claimed");
    window.release(IT, NOW_MS + 50);
    expect(window.due(NOW_MS + 49, 10)).toEqual([]);
    expect(window.nextDueMs(NOW_MS)).toBe(NOW_MS + 50);
    expect(window.due(NOW_MS + 50, 10)).toEqual([IT]);
  });

  test("GroupWindow.expire releases a claim at its deadline, and not earlier", () => {
    const window = windowIn("claimed");
    window.expire(999);
    expect(window.isClaimed(IT)).toBe(true);
    window.expire(1000);
    expect(window.isWaiting(IT)).toBe(true);
  });

  test("GroupWindow.claim counts deliveries, and unclaim subtracts one", () => {
    const window = windowIn("waiting");
    const claim = (): number => window.claim(IT, { consumer: CONSUMER, deadlineMs: 1 });
    expect(claim()).toBe(1);
    window.release(IT, 0);
    expect([claim(), window.redeliveries]).toEqual([2, 1]);
    window.unclaim(IT);
    expect(claim()).toBe(2);
  });

  test("GroupWindow.committed advances only over acknowledged messages", () => {
    const window = windowIn("claimed");
    window.ack({ offsets: [IT] });
    expect(window.committed).toBe(0);
    window.ack({ offsets: [0] });
    expect(window.committed).toBe(2);
  });

  test("GroupWindow leaves messages waiting before an acknowledgement beyond the end", () => {
    const window = new GroupWindow(EMPTY);
    window.ack({ offsets: [3] });
    expect([window.committed, window.end, window.due(0, 10)]).toEqual([0, 4, [0, 1, 2]]);
  });

  test("GroupWindow moves both ends with a cumulative acknowledgement beyond the end", () => {
    const window = windowIn("claimed");
    window.ack({ upTo: 99_999 });
    expect([window.committed, window.end, window.claimCount]).toEqual([100_000, 100_000, 0]);
    window.push("next");
    expect(window.due(0, 10)).toEqual([100_000]);
  });

  test("GroupWindow.isHeldByKey holds until every earlier message of the key is acknowledged", () => {
    const window = new GroupWindow(EMPTY);
    for (const key of ["a", "b", "a", "a", undefined]) window.push(key);
    const held = (): boolean[] => [0, 1, 2, 3, 4].map((offset) => window.isHeldByKey(offset));
    expect(held()).toEqual([false, false, true, true, false]);
    window.ack({ offsets: [0] });
    expect(held().slice(2)).toEqual([false, true, false]);
    window.ack({ offsets: [2] });
    expect(held().slice(3)).toEqual([false, false]);
    window.push("b");
    expect(window.isHeldByKey(5)).toBe(true);
  });

  test("GroupWindow is limited to WINDOW_MAX messages, and its ring keeps all of them", () => {
    const window = new GroupWindow(EMPTY);
    for (let offset = 0; offset < WINDOW_MAX; offset += 1) window.push(String(offset % 10));
    expect(window.freeCount).toBe(0);
    for (const offset of window.due(0, WINDOW_MAX)) {
      window.claim(offset, { consumer: offset % 3, deadlineMs: 5 });
    }
    expect(window.claimCount).toBe(WINDOW_MAX);
    window.ack({ upTo: 0 });
    expect(window.freeCount).toBe(1);
    expect(window.releaseAllOf(1) + window.releaseAllOf(2)).toBe(Math.floor((WINDOW_MAX * 2) / 3));
  });

  test("GroupWindow.plan returns the effect of an acknowledgement, and changes nothing", () => {
    const window = windowIn("claimed");
    const before = window.state;
    expect(window.plan({ offsets: [IT] })).toEqual({
      count: 1,
      state: { committed: 0, end: 2, acked: [[1, 2]], deliveries: [] },
    });
    expect(window.plan({ upTo: IT })).toMatchObject({
      count: 2,
      state: { committed: 2, acked: [] },
    });
    expect(window.state).toEqual(before);
    window.ack({ offsets: [IT] });
    expect(window.plan({ offsets: [IT] }).count).toBe(0);
  });

  test("GroupWindow keeps its state when it is stored and read back", () => {
    const window = new GroupWindow({ ...EMPTY, committed: 50, end: 50 });
    for (let index = 0; index < 20; index += 1) window.push(undefined);
    for (const offset of window.due(0, 15)) window.claim(offset, { consumer: 1, deadlineMs: 5 });
    window.release(52, 0);
    window.claim(52, { consumer: 1, deadlineMs: 5 });
    window.ack({ offsets: [51, 55, 56, 69] });
    const { state } = window;
    expect(state.acked).toEqual([
      [51, 52],
      [55, 57],
      [69, 70],
    ]);
    const restored = new GroupWindow(state);
    expect(restored.state).toEqual(state);
    expect([restored.deliveriesOf(52), restored.deliveriesOf(65)]).toEqual([2, 0]);
    expect(restored.claimCount).toBe(0);
  });
});
