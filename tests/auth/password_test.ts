/**
 * Verifies that weak passwords are refused on every path, and that comparing a password always
 * takes the same amount of work.
 */
import { expect, spyOn, test } from "bun:test";
import { passwordFault } from "../../src/auth/mod.ts";
import { PasswordHasher } from "../../src/auth/password.ts";
import { failureOf, PASSWORD, PASSWORD_HASH } from "./auth_fixture.ts";

const TURN = { sender: "1.1.1.1", isTrusted: false };

const POLICY = { lengthMin: 8, lengthMax: 256, isComplex: false };

function isAccepted(
  password: string,
  change: Partial<typeof POLICY> = {},
  userId = "ada",
): boolean {
  return passwordFault(password, { userId, policy: { ...POLICY, ...change } }) === undefined;
}

test("passwordFault counts code points at, below and above its bounds", () => {
  expect(isAccepted("kx9vq2m")).toBeFalse();
  expect(isAccepted("kx9vq2mt")).toBeTrue();
  expect(isAccepted("🐳".repeat(7))).toBeFalse();
  expect(isAccepted("🐳🐬".repeat(4))).toBeTrue();
  expect(isAccepted("ab".repeat(128))).toBeTrue();
  expect(isAccepted(`${"ab".repeat(128)}c`)).toBeFalse();
  expect(isAccepted("🐳".repeat(256))).toBeTrue();
  expect(isAccepted("🐳".repeat(257), { lengthMax: 1024 })).toBeFalse();
  expect(isAccepted("ab".repeat(512), { lengthMax: 1024 })).toBeTrue();
  expect(isAccepted("longer than ten", { lengthMin: 20 })).toBeFalse();
});

test("passwordFault refuses the user id and common passwords in any case", () => {
  for (const password of ["password", "PassWord", "12345678", "qwertyuiop", "Password123"]) {
    expect(isAccepted(password), password).toBeFalse();
  }
  expect(isAccepted("ada.lovelace", {}, "ada.lovelace")).toBeFalse();
  expect(isAccepted("ADA.lovelace", {}, "ada.lovelace")).toBeFalse();
  expect(isAccepted("ada.lovelace", {}, "bob")).toBeTrue();
  expect(isAccepted("\ud800abcdefgh")).toBeFalse();
});

test("passwordFault refuses a password of blanks of any kind", () => {
  for (const blank of [" ", "\t", "\u00a0", "\u3000", "\u200b", "\u202e", "\u2800", "\u3164"]) {
    expect(isAccepted(blank.repeat(8)), JSON.stringify(blank)).toBeFalse();
  }
  expect(isAccepted(" \u200b \u3000    ")).toBeFalse();
  expect(isAccepted("       x")).toBeTrue();
});

test("passwordFault with complexity requires four kinds of characters", () => {
  const complex = { isComplex: true };

  expect(isAccepted("Correct-horse-9", complex)).toBeTrue();
  for (const password of [
    "correct-horse-9",
    "CORRECT-HORSE-9",
    "Correct-horse-x",
    "Correcthorse9",
  ]) {
    expect(isAccepted(password, complex), password).toBeFalse();
    expect(isAccepted(password), password).toBeTrue();
  }
});

test("passwordFault never repeats the password", () => {
  for (const password of ["short", "password1", "x".repeat(2000)]) {
    const fault = passwordFault(password, { userId: "ada", policy: POLICY });
    expect(fault).toBeString();
    expect(fault).not.toContain(password);
  }
});

test("PasswordHasher.hash stores argon2id with its cost, and a different salt each time", async () => {
  const hasher = new PasswordHasher({ runningMax: 2 });
  const [first, second] = await Promise.all([
    hasher.hash(PASSWORD, TURN),
    hasher.hash(PASSWORD, TURN),
  ]);

  expect(first).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  expect(first).not.toBe(second);
  expect(await hasher.matches(PASSWORD, first, TURN)).toBeTrue();
  expect(await hasher.matches(`${PASSWORD} `, first, TURN)).toBeFalse();
});

test("PasswordHasher.matches does the same work for passwords that cannot match", async () => {
  const hasher = new PasswordHasher({ runningMax: 1 });
  const real = await hasher.hash(PASSWORD, TURN);
  const verify = spyOn(Bun.password, "verify");
  try {
    for (const [password, hash] of [
      ["wrong password", real],
      ["wrong password", undefined],
      ["x".repeat(1025), real],
      ["", real],
    ] as const) {
      verify.mockClear();
      expect(await hasher.matches(password, hash, TURN)).toBeFalse();
      // The parameters of a hash determine the amount of work. The hash used for unknown users has
      // the same parameters.
      const worked = verify.mock.calls.map(([, against]) => workOf(against));
      expect(worked).toEqual([workOf(real)]);
    }
  } finally {
    verify.mockRestore();
  }
});

/** Returns the algorithm, version and cost parameters of a hash. */
function workOf(hash: Parameters<typeof Bun.password.verify>[1]): string {
  return Buffer.from(hash as string)
    .toString()
    .split("$")
    .slice(0, 4)
    .join("$");
}

test("PasswordHasher runs a few hashes at a time and refuses more when too many wait", async () => {
  const hasher = new PasswordHasher({ runningMax: 2 });
  const all = Array.from({ length: 420 }, () =>
    failureOf(() => hasher.matches("x", PASSWORD_HASH, TURN)),
  );
  const codes = await Promise.all(all);

  expect(codes.filter((code) => code === "rate_limited")).toHaveLength(18);
  expect(codes.filter((code) => code === undefined)).toHaveLength(402);
  expect(await hasher.matches(PASSWORD, PASSWORD_HASH, TURN)).toBeTrue();
});
