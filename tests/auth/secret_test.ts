/**
 * Goal: a server that others can reach never signs with a secret that others can know.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isLoopbackHost, keptSecret, secretFault } from "../../src/auth/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { CorruptionError } from "../../src/base/errors.ts";
import { systemRandom } from "../../src/base/random.ts";

const dataPath = mkdtempSync(join(tmpdir(), "tidemark-secret-"));
afterAll(() => rmSync(dataPath, { recursive: true }));

const GOOD = "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj";

test("isLoopbackHost knows this machine in every spelling, and nothing else", () => {
  for (const host of [
    "127.0.0.1",
    "127.8.9.10",
    "::1",
    "[::1]",
    "localhost",
    "LocalHost",
    "::ffff:127.0.0.1",
  ]) {
    expect(isLoopbackHost(host), host).toBeTrue();
  }
  for (const host of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "128.0.0.1",
    "127.0.0.1.example.com",
    "localhost.example.com",
    "",
  ]) {
    expect(isLoopbackHost(host), host).toBeFalse();
  }
});

test("secretFault is a warning on a loopback address and fatal on any other", () => {
  const bad = [
    undefined,
    "x".repeat(31),
    "short",
    "secret",
    "password",
    "a".repeat(64),
    "change-me-change-me-change-me-change-me",
    "replace-by-at-least-32-random-bytes",
    "your-256-bit-secret",
    "0123456789abcdef0123456789abcdef",
  ];
  for (const secret of bad) {
    expect(secretFault(secret, "127.0.0.1"), String(secret)).toMatchObject({ isFatal: false });
    for (const host of ["0.0.0.0", "::", "192.168.1.5", "db.example.com"]) {
      expect(secretFault(secret, host), `${secret} ${host}`).toMatchObject({ isFatal: true });
    }
  }
  for (const host of ["127.0.0.1", "0.0.0.0"]) expect(secretFault(GOOD, host)).toBeUndefined();
});

test("secretFault never repeats the secret", () => {
  expect(secretFault("hunter2hunter2", "0.0.0.0")?.message).not.toContain("hunter2");
});

test("keptSecret makes one, for its owner's eyes, and gives the same ever after", () => {
  const first = keptSecret({ disk: bunDisk, dataPath, random: systemRandom });
  const path = join(dataPath, "jwt_secret");

  expect(first).toHaveLength(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toEqual(first);
  expect([...readFileSync(path)]).toEqual([...first]);
  writeFileSync(path, "too short");
  expect(() => keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toThrow(
    CorruptionError,
  );
});

test("keptSecret survives a process that died while it wrote one", () => {
  rmSync(join(dataPath, "jwt_secret"), { force: true });
  writeFileSync(join(dataPath, "jwt_secret.tmp"), "half");

  expect(keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toHaveLength(32);
});
