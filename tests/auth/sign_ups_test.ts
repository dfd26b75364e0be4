/**
 * Verifies that a sign-up takes the same time whether or not the name is free, and that idle guests
 * are dropped.
 */
import { afterAll, expect, test } from "bun:test";
import { AuthError } from "../../src/auth/mod.ts";
import { SignUpRate } from "../../src/auth/sign_up_rate.ts";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import { NO_ACCOUNTS } from "../support/http.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { until } from "../support/until.ts";
import { configuredServer, LOCAL, PASSWORD } from "./auth_fixture.ts";

afterAll(removeCatalogs);

test.each([
  ["free", "eve"],
  ["taken", "ada"],
])(
  "the sign-up of a %s name is answered 100 ms after its hash, however long its work takes",
  async (_what, user) => {
    const accounts = { ...NO_ACCOUNTS, signUp: "open" } as const;
    const { auth, clock } = configuredServer({ ada: "dba" }, { accounts });
    let isAnswered = false;
    const answer = auth.signUp({ user, password: PASSWORD }, LOCAL, undefined).then((body) => {
      isAnswered = true;
      return body;
    });
    await until(() => clock.timerCount > 0);
    clock.advance(99);
    await clock.yield();
    expect(isAnswered).toBe(false);
    clock.advance(1);
    await answer;
    expect(isAnswered).toBe(true);
  },
);

test("a guest who was not seen for auth.guest_days is dropped, and other users stay", async () => {
  const accounts = { ...NO_ACCOUNTS, hasGuests: true, guestDays: 2 };
  const { auth, catalog, clock } = configuredServer({ ada: "dba" }, { accounts });
  const idle = await auth.beginAsGuest(LOCAL);
  const busy = await auth.beginAsGuest(LOCAL);
  clock.advance(25 * 3_600_000);
  const renewed = await auth.refresh(busy.refresh_token, LOCAL);
  auth.authenticate(renewed.access_token, LOCAL);
  auth.keepSeen();
  clock.advance(24 * 3_600_000);
  expect(auth.dropIdleGuests()).toBe(false);
  expect(catalog.accounts.user(idle.user.id)).toBeUndefined();
  expect(catalog.accounts.user(busy.user.id)).toBeDefined();
  expect(catalog.accounts.user("ada")).toBeDefined();
});

test("guests are never dropped if auth.guest_days is 0", async () => {
  const accounts = { ...NO_ACCOUNTS, hasGuests: true, guestDays: 0 };
  const { auth, catalog, clock } = configuredServer({}, { accounts });
  const { user } = await auth.beginAsGuest(LOCAL);
  clock.advance(9999 * 24 * 3_600_000);
  auth.dropIdleGuests();
  expect(catalog.accounts.user(user.id)).toBeDefined();
});

test("SignUpRate limits all sign-ups, allows one address a tenth of them, and refills within an hour", () => {
  const clock = new ManualClock();
  const rate = new SignUpRate({ clock, perHour: 20 });
  const take = (address: string, isLocal = false): string => {
    try {
      rate.take({ address, isLocal });
      return "ok";
    } catch (error) {
      expect(error).toBeInstanceOf(AuthError);
      return `wait ${(error as AuthError).retryAfterSeconds}`;
    }
  };
  expect([1, 2, 3].map(() => take("192.0.2.1"))).toEqual(["ok", "ok", "wait 1800"]);
  // All addresses in an IPv6 /64 network share one limit, and requests from this machine are not
  // limited.
  expect(["1", "2", "3"].map((each) => take(`2001:db8:0:0:0:0:0:${each}`))).toEqual([
    "ok",
    "ok",
    "wait 1800",
  ]);
  expect(Array.from({ length: 16 }, () => take("127.0.0.1", true))).not.toContain("wait 180");
  expect([take("127.0.0.1", true), take("198.51.100.7")]).toEqual(["wait 180", "wait 180"]);
  clock.advance(1_800_000);
  expect([1, 2].map(() => take("192.0.2.1"))).toEqual(["ok", "wait 1800"]);
});

test("SignUpRate with a rate of 0 has no limit", () => {
  const rate = new SignUpRate({ clock: new ManualClock(), perHour: 0 });
  for (let each = 0; each < 1000; each += 1) rate.take({ address: "192.0.2.1", isLocal: false });
});
