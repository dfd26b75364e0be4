/**
 * Verifies how recently a user without a password must have logged in to delete the account, and
 * that otherwise the code of a new login is required.
 */
import { expect, test } from "bun:test";
import { OwnAccount, type OwnAccountOptions } from "../../src/auth/own_account.ts";
import { providerPart } from "../../src/auth/provider_sessions.ts";
import { failureOf, LOCAL } from "./auth_fixture.ts";

const NOW_MS = 1_000_000_000;

const PERSON = { provider: { link: "idp" }, subject: "ann" } as unknown as Parameters<
  typeof providerPart
>[0];

test.each<[string, string, object, string | undefined, boolean]>([
  ["a login of a moment ago", `s${providerPart(PERSON, NOW_MS - 299_999)}`, {}, undefined, false],
  ["an older login", `s${providerPart(PERSON, NOW_MS - 300_000)}`, {}, "forbidden", false],
  ["a password session", "s", {}, "forbidden", false],
  ["a new bearer token", `external x${providerPart(PERSON, NOW_MS)}`, {}, "forbidden", false],
  ["an older login with a code", `s${providerPart(PERSON, 0)}`, { code: "c" }, undefined, true],
])("a user without a password deletes the account by %s", async (...row) => {
  const [, sessionId, body, expected, asksForCode] = row;
  const dropped: string[] = [];
  const asked: unknown[] = [];
  const options = {
    bucket: { takeAttempt: () => undefined },
    catalog: {
      accounts: {
        user: () => ({ authType: "oauth" }),
        drop: (userId: string) => void dropped.push(userId),
      },
    },
    clock: { nowMs: () => NOW_MS },
    log: { info: () => undefined },
    onAudit: () => undefined,
    providerLogins: { requireOwnLogin: (_: unknown, given: unknown) => void asked.push(given) },
    sessionEnds: { endAccount: () => undefined },
    settings: { mayDeleteAccount: true },
  };
  const own = new OwnAccount(options as unknown as OwnAccountOptions);
  const principal = { userId: "ann", role: "user", sessionId } as Parameters<typeof own.delete>[0];
  expect(await failureOf(async () => await own.delete(principal, body, LOCAL))).toBe(expected);
  expect(dropped).toEqual(expected === undefined ? ["ann"] : []);
  expect(asked).toEqual(asksForCode ? [body] : []);
});
