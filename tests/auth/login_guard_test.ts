/**
 * Goal: guessing is slow, nobody can lock somebody else out, and memory stays bounded.
 */
import { expect, test } from "bun:test";
import { AuthBucket, LoginGuard } from "../../src/auth/login_guard.ts";
import { ManualClock } from "../support/manual_clock.ts";

function newGuard(failuresMax = 5): { clock: ManualClock; guard: LoginGuard } {
  const clock = new ManualClock();
  return { clock, guard: new LoginGuard({ clock, failuresMax, lockMs: 900_000 }) };
}

test("LoginGuard locks a pair at the failure that reaches the bound, for as long as it says", () => {
  const { clock, guard } = newGuard();
  const locked = [1, 2, 3, 4, 5].map(() => guard.failed("ada", "1.1.1.1"));

  expect(locked).toEqual([false, false, false, false, true]);
  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBe(900);
  clock.advance(899_999);
  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBe(1);
  clock.advance(1);
  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBeUndefined();
});

test("LoginGuard counts from 0 after a success and after a lock", () => {
  const { clock, guard } = newGuard();
  const failTimes = (count: number): boolean[] =>
    Array.from({ length: count }, () => guard.failed("ada", "1.1.1.1"));

  failTimes(4);
  guard.succeeded("ada", "1.1.1.1");
  expect(failTimes(5).at(-1)).toBeTrue();
  clock.advance(900_000);
  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBeUndefined();
  expect(failTimes(4)).toEqual([false, false, false, false]);
  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBeUndefined();
});

test("LoginGuard locks neither another address nor another name", () => {
  const { guard } = newGuard(2);
  guard.failed("ada", "1.1.1.1");
  guard.failed("ada", "1.1.1.1");

  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBeNumber();
  expect(guard.lockedForSeconds("ada", "2.2.2.2")).toBeUndefined();
  expect(guard.lockedForSeconds("bob", "1.1.1.1")).toBeUndefined();
});

test("LoginGuard.forgive lifts the locks and the slowness of one name, from everywhere", () => {
  const { guard } = newGuard(2);
  for (const name of ["ada", "ada\nbob", "bob"]) {
    for (const address of ["1.1.1.1", "2.2.2.2"]) {
      for (let attempt = 0; attempt < 10; attempt += 1) guard.failed(name, address);
    }
  }
  guard.forgive("bob");
  expect(["1.1.1.1", "2.2.2.2"].map((from) => guard.lockedForSeconds("bob", from))).toEqual([
    undefined,
    undefined,
  ]);
  expect([guard.delayMs("bob"), guard.delayMs("ada")]).toEqual([0, 1000]);
  expect([...guard.troubles().keys()]).toEqual(["ada", "ada\nbob"]);
});

test("LoginGuard with 0 failures never locks", () => {
  const { guard } = newGuard(0);
  for (let count = 0; count < 200; count += 1) guard.failed("ada", "1.1.1.1");

  expect(guard.lockedForSeconds("ada", "1.1.1.1")).toBeUndefined();
});

test("LoginGuard slows a name after 20 failures within 15 minutes, from wherever", () => {
  const { clock, guard } = newGuard();
  for (let count = 0; count < 19; count += 1) guard.failed("ada", `10.0.0.${count}`);

  expect(guard.delayMs("ada")).toBe(0);
  guard.failed("ada", "10.0.1.1");
  expect(guard.delayMs("ada")).toBe(1000);
  expect(guard.delayMs("bob")).toBe(0);
  clock.advance(15 * 60_000);
  expect(guard.delayMs("ada")).toBe(1000);
  clock.advance(1);
  expect(guard.delayMs("ada")).toBe(0);
});

test("AuthBucket holds five seconds' worth and refills at its rate", () => {
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

test("AuthBucket with rate 0 has no limit", () => {
  const bucket = new AuthBucket({ clock: new ManualClock(), perSecond: 0 });
  for (let count = 0; count < 1000; count += 1) expect(bucket.take("1.1.1.1")).toBeUndefined();
});

test("LoginGuard remembers a bounded number of names: the oldest goes first", () => {
  const { guard } = newGuard(1);
  for (let index = 0; index <= 100_000; index += 1) guard.failed(`name${index}`, "1.1.1.1");

  expect(guard.lockedForSeconds("name0", "1.1.1.1")).toBeUndefined();
  expect(guard.lockedForSeconds("name1", "1.1.1.1")).toBe(900);
  expect(guard.lockedForSeconds("name100000", "1.1.1.1")).toBe(900);
});
