/**
 * Verifies that a server that other machines can reach never signs tokens with a secret that an
 * attacker may know.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keptSecret, keptSecretFault, missingSecretText, secretFault } from "../../src/auth/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { CorruptionError } from "../../src/base/errors.ts";
import { systemRandom } from "../../src/base/random.ts";

const dataPath = mkdtempSync(join(tmpdir(), "tidemark-secret-"));
afterAll(() => rmSync(dataPath, { recursive: true }));

const GOOD = "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj";

test("secretFault is a warning on a loopback address and fatal on any other", () => {
  const bad = [
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
  for (const secret of [undefined, ...bad]) {
    for (const host of ["0.0.0.0", "::", "192.168.1.5", "db.example.com"]) {
      expect(secretFault(secret, host), `${secret} ${host}`).toMatchObject({ isFatal: true });
    }
  }
  for (const secret of bad) {
    expect(secretFault(secret, "127.0.0.1"), secret).toMatchObject({ isFatal: false });
  }
  expect(secretFault(undefined, "127.0.0.1")).toBeUndefined();
  for (const host of ["127.0.0.1", "0.0.0.0"]) expect(secretFault(GOOD, host)).toBeUndefined();
});

test("missingSecretText says whether a new secret is created or an existing one is kept", () => {
  const kept = (exists: boolean): string => missingSecretText({ exists: () => exists }, dataPath);
  expect(kept(false)).toBe(
    "auth.jwt_secret is not set: the server creates a secret and stores it in the data directory",
  );
  expect(kept(true)).toBe(
    "auth.jwt_secret is not set: tokens are signed with the secret stored in the data directory",
  );
});

test("secretFault never repeats the secret", () => {
  expect(secretFault("hunter2hunter2", "0.0.0.0")?.message).not.toContain("hunter2");
});

test("keptSecret creates a secret that only its owner can read, and returns the same one afterwards", () => {
  const first = keptSecret({ disk: bunDisk, dataPath, random: systemRandom });
  const path = join(dataPath, "jwt_secret");

  expect(first).toHaveLength(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toEqual(first);
  expect([...readFileSync(path)].slice(0, 32)).toEqual([...first]);
});

test("keptSecret rejects a secret in which any byte was changed", () => {
  const good = keptSecret({ disk: bunDisk, dataPath, random: systemRandom });
  const path = join(dataPath, "jwt_secret");
  const bytes = readFileSync(path);
  expect(bytes).toHaveLength(36);
  for (let offset = 0; offset < bytes.length; offset += 1) {
    const damaged = Uint8Array.from(bytes);
    damaged[offset] = (damaged[offset] ?? 0) ^ 0xff;
    writeFileSync(path, damaged);
    const read = (): unknown => keptSecret({ disk: bunDisk, dataPath, random: systemRandom });
    expect(read, `byte ${offset}`).toThrow(CorruptionError);
    expect(keptSecretFault(bunDisk, dataPath)?.message, `byte ${offset}`).toContain("checksum");
  }
  writeFileSync(path, bytes);
  expect(keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toEqual(good);
  expect(keptSecretFault(bunDisk, dataPath)).toBeUndefined();
});

test.each([0, 31, 33, 35, 37])("keptSecret rejects a file of %d bytes", (byteCount) => {
  const path = join(dataPath, "jwt_secret");
  const bytes = readFileSync(path);
  writeFileSync(path, new Uint8Array(byteCount));
  const fault = `the file has ${byteCount} bytes instead of 36`;
  expect(() => keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toThrow(fault);
  expect(keptSecretFault(bunDisk, dataPath)?.message).toContain(fault);
  writeFileSync(path, bytes);
});

test("keptSecret reads the older form, which has no checksum", () => {
  const path = join(dataPath, "jwt_secret");
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.subarray(0, 32));
  const secret = keptSecret({ disk: bunDisk, dataPath, random: systemRandom });
  expect([...secret]).toEqual([...bytes.subarray(0, 32)]);
  expect(keptSecretFault(bunDisk, dataPath)).toBeUndefined();
  writeFileSync(path, bytes);
});

test("keptSecret survives a process that died while writing one", () => {
  rmSync(join(dataPath, "jwt_secret"), { force: true });
  writeFileSync(join(dataPath, "jwt_secret.tmp"), "half");

  expect(keptSecret({ disk: bunDisk, dataPath, random: systemRandom })).toHaveLength(32);
});
