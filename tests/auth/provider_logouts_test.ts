/**
 * Verifies that a logout token can be sent again if an error prevented it from ending its
 * sessions.
 */
import { expect, test } from "bun:test";
import { ProviderLogouts, type ProviderLogoutsOptions } from "../../src/auth/provider_logouts.ts";

const NOW_MS = 1_000_000;

test("a logout token is used up only when its sessions have ended", async () => {
  const revoked = new Set<string>();
  let isFull = true;
  const payload = {
    iss: "https://idp.example.com",
    aud: "db",
    sub: "ann",
    jti: "t1",
    iat: NOW_MS / 1000,
    exp: NOW_MS / 1000 + 60,
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
  };
  const provider = {
    issuer: payload.iss,
    link: "idp",
    settings: { clientId: "db" },
    keys: { verified: async () => await Promise.resolve({ payload }) },
  };
  const options = {
    catalog: {
      revocations: {
        isRevoked: (id: string) => revoked.has(id),
        revoke: (id: string) => {
          if (isFull && id.startsWith("provider ")) throw new Error("The disk is full");
          revoked.add(id);
        },
      },
      accounts: { userByLink: () => undefined },
    },
    clock: { nowMs: () => NOW_MS },
    providers: { named: () => provider },
    sessionEnds: { endEvery: () => undefined },
    bucket: { failedToken: (error: Error) => error },
    onAudit: () => undefined,
    refreshLifetimeSeconds: 60,
  };
  const logouts = new ProviderLogouts(options as unknown as ProviderLogoutsOptions);
  const caller = { address: "127.0.0.1", requestId: "r" } as Parameters<typeof logouts.end>[2];
  const end = async (): Promise<boolean> => await logouts.end("idp", "token", caller);
  expect(end()).rejects.toThrow("The disk is full");
  isFull = false;
  expect(await end()).toBe(true);
  expect(end()).rejects.toThrow("The logout token is not valid");
});
