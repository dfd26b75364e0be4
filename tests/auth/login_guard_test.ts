/**
 * Verifies that guessing passwords is slow, that no user can lock out another, and that memory
 * stays bounded.
 */
import { expect, test } from "bun:test";
import { AuthBucket, LoginGuard } from "../../src/auth/login_guard.ts";
import { ManualClock } from "../support/manual_clock.ts";

function newGuard(failuresMax = 5): { clock: ManualClock; guard: LoginGuard } {
  const clock = new ManualClock();
  return { clock, guard: new LoginGuard({ clock, failuresMax, lockMs: 900_000 }) };
}

test("LoginGuard locks an address and a name at the failure that reaches the bound, for the time that it announces", () => {
  const { clock, guard } = newGuard();
  const locked = [1, 2, 3, 4, 5].map(() => guard.failed(guard.attempt("ada", "1.1.1.1")));

  expect(locked).toEqual([false, false, false, false, true]);
  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBe(900);
  clock.advance(899_999);
  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBe(1);
  clock.advance(1);
  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBeUndefined();
});

test("LoginGuard starts counting again after a success and after a lock", () => {
  const { clock, guard } = newGuard();
  const failTimes = (count: number): boolean[] =>
    Array.from({ length: count }, () => guard.failed(guard.attempt("ada", "1.1.1.1")));

  failTimes(4);
  guard.succeeded(guard.attempt("ada", "1.1.1.1"), "1.1.1.1");
  expect(failTimes(5).at(-1)).toBeTrue();
  clock.advance(900_000);
  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBeUndefined();
  expect(failTimes(4)).toEqual([false, false, false, false]);
  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBeUndefined();
});

test("LoginGuard locks no other address and no other name", () => {
  const { guard } = newGuard(2);
  guard.failed(guard.attempt("ada", "1.1.1.1"));
  guard.failed(guard.attempt("ada", "1.1.1.1"));

  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBeNumber();
  expect(guard.lockedForSeconds(guard.attempt("ada", "2.2.2.2"))).toBeUndefined();
  expect(guard.lockedForSeconds(guard.attempt("bob", "1.1.1.1"))).toBeUndefined();
});

test("LoginGuard.forgive lifts the locks and delays of one name for all addresses", () => {
  const { guard } = newGuard(2);
  for (const name of ["ada", "ada\nbob", "bob"]) {
    for (const address of ["1.1.1.1", "2.2.2.2"]) {
      for (let attempt = 0; attempt < 10; attempt += 1) guard.failed(guard.attempt(name, address));
    }
  }
  guard.forgive("bob");
  expect(
    ["1.1.1.1", "2.2.2.2"].map((from) => guard.lockedForSeconds(guard.attempt("bob", from))),
  ).toEqual([undefined, undefined]);
  expect([
    guard.delayMs(guard.attempt("bob", "9.9.9.9")),
    guard.delayMs(guard.attempt("ada", "9.9.9.9")),
  ]).toEqual([0, 1000]);
  expect([...guard.troubles().keys()]).toEqual(["ada", "ada\nbob"]);
});

test("LoginGuard never locks if the bound is 0 failures", () => {
  const { guard } = newGuard(0);
  for (let count = 0; count < 200; count += 1) guard.failed(guard.attempt("ada", "1.1.1.1"));

  expect(guard.lockedForSeconds(guard.attempt("ada", "1.1.1.1"))).toBeUndefined();
});

test("LoginGuard delays logins under a name after 20 failures within 15 minutes, from any address", () => {
  const { clock, guard } = newGuard();
  for (let count = 0; count < 19; count += 1) guard.failed(guard.attempt("ada", `10.0.0.${count}`));

  expect(guard.delayMs(guard.attempt("ada", "9.9.9.9"))).toBe(0);
  guard.failed(guard.attempt("ada", "10.0.1.1"));
  expect(guard.delayMs(guard.attempt("ada", "9.9.9.9"))).toBe(1000);
  expect(guard.delayMs(guard.attempt("bob", "9.9.9.9"))).toBe(0);
  clock.advance(15 * 60_000);
  expect(guard.delayMs(guard.attempt("ada", "9.9.9.9"))).toBe(1000);
  clock.advance(1);
  expect(guard.delayMs(guard.attempt("ada", "9.9.9.9"))).toBe(0);
});

test("AuthBucket holds the requests of five seconds and refills at its configured rate", () => {
  const clock = new ManualClock();
  const bucket = new AuthBucket({ clock, perSecond: 20 });
  const takeAll = (address: string): number => {
    let taken = 0;
    while (taken < 1000 && bucket.take(address) === undefined) taken += 1;
    return taken;
  };

  expect(takeAll("1.1.1.1")).toBe(100);
  expect(bucket.take("1.1.1.1")).toBe(1);
  expect(takeAll("2.2.2.2")).toBe(100);
  clock.advance(1000);
  expect(takeAll("1.1.1.1")).toBe(20);
  clock.advance(3_600_000);
  expect(takeAll("1.1.1.1")).toBe(100);
});

test("AuthBucket with a rate of 0 has no limit", () => {
  const bucket = new AuthBucket({ clock: new ManualClock(), perSecond: 0 });
  for (let count = 0; count < 1000; count += 1) expect(bucket.take("1.1.1.1")).toBeUndefined();
});

test("LoginGuard remembers a bounded number of names, and forgets the oldest first", () => {
  const { guard } = newGuard(1);
  for (let index = 0; index <= 100_000; index += 1)
    guard.failed(guard.attempt(`name${index}`, "1.1.1.1"));

  expect(guard.lockedForSeconds(guard.attempt("name0", "1.1.1.1"))).toBeUndefined();
  expect(guard.lockedForSeconds(guard.attempt("name1", "1.1.1.1"))).toBe(900);
  expect(guard.lockedForSeconds(guard.attempt("name100000", "1.1.1.1"))).toBe(900);
});

const HOUR_MS = 3_600_000;

/** Fails to log in as `name` this many times, each time from a different sender. */
function failFromEverywhere(guard: LoginGuard, name: string, count: number): void {
  for (let index = 0; index < count; index += 1) {
    guard.failed(guard.attempt(name, `10.${index >> 8}.${index & 255}.1`));
  }
}

test("LoginGuard closes a name at its 100th failure in an hour, wherever the failures come from", () => {
  const { clock, guard } = newGuard();
  failFromEverywhere(guard, "ada", 99);
  const other = guard.attempt("ada", "9.9.9.9");
  expect(guard.closedForSeconds(other)).toBeUndefined();
  clock.advance(1000);
  failFromEverywhere(guard, "ada", 1);
  expect(guard.closedForSeconds(other)).toBe(3599);
  expect(guard.closedForSeconds(guard.attempt("bob", "9.9.9.9"))).toBeUndefined();
  clock.advance(HOUR_MS - 1001);
  expect(guard.closedForSeconds(other)).toBe(1);
  clock.advance(1);
  expect(guard.closedForSeconds(other)).toBeUndefined();
});

test("LoginGuard keeps a closed name open to known devices, and counts each device separately", () => {
  const { guard } = newGuard(0);
  guard.succeeded(guard.attempt("ada", "2.2.2.2"), "2.2.2.2");
  guard.succeeded(guard.attempt("ada", "2001:db8:1:2:0:0:0:1"), "2001:db8:1:2:0:0:0:1");
  failFromEverywhere(guard, "ada", 200);
  const known = [
    guard.attempt("ada", "2.2.2.2"),
    guard.attempt("ada", "2001:db8:1:2:9:9:9:9"),
    guard.attempt("ada", "9.9.9.9", "a session"),
  ];
  expect(known.map((attempt) => guard.closedForSeconds(attempt))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(known.map((attempt) => guard.delayMs(attempt))).toEqual([0, 0, 0]);
  expect(guard.closedForSeconds(guard.attempt("ada", "9.9.9.9"))).toBe(3600);
  expect(guard.closedForSeconds(guard.attempt("bob", "2.2.2.2"))).toBeUndefined();

  const [first] = known;
  for (let count = 0; count < 100; count += 1) {
    if (first !== undefined) guard.failed(first);
  }
  expect(known.map((attempt) => guard.closedForSeconds(attempt))).toEqual([
    3600,
    undefined,
    undefined,
  ]);
  guard.forgive("ada");
  expect(guard.attempt("ada", "2.2.2.2").isKnown).toBeFalse();
  expect(guard.closedForSeconds(guard.attempt("ada", "9.9.9.9"))).toBeUndefined();
});

test("LoginGuard counts an IPv6 network of 64 bits as one sender", () => {
  const { guard } = newGuard(2);
  guard.failed(guard.attempt("ada", "2001:db8:1:2:0:0:0:1"));
  guard.failed(guard.attempt("ada", "2001:db8:1:2:0:0:0:2"));
  expect(guard.lockedForSeconds(guard.attempt("ada", "2001:db8:1:2:3:4:5:6"))).toBe(900);
  expect(guard.lockedForSeconds(guard.attempt("ada", "2001:db8:1:3:0:0:0:1"))).toBeUndefined();
});

test("LoginGuard admits one login to a name at a time, queues one more, and lets a known device overtake them", async () => {
  const { guard } = newGuard();
  guard.succeeded(guard.attempt("ada", "2.2.2.2"), "2.2.2.2");
  const entered: string[] = [];
  const enter = async (name: string, address: string): Promise<() => void> => {
    const leave = await guard.enter(guard.attempt(name, address));
    entered.push(`${name} from ${address}`);
    return leave;
  };
  const leave = await enter("ada", "1.1.1.1");
  const second = enter("ada", "1.1.1.2");
  const refused: unknown = await enter("ada", "1.1.1.3").catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "rate_limited", retryAfterSeconds: 1 });
  (await enter("bob", "1.1.1.1"))();
  (await enter("ada", "2.2.2.2"))();
  expect(entered).toEqual(["ada from 1.1.1.1", "bob from 1.1.1.1", "ada from 2.2.2.2"]);
  leave();
  (await second)();
  expect(entered.at(-1)).toBe("ada from 1.1.1.2");
  (await enter("ada", "1.1.1.3"))();
});
