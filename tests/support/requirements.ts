/**
 * Selects tests that need more than Bun, such as a program, a device or an operating system. On a
 * machine that lacks the requirement, the test is skipped, and its name then says what is missing
 * and how to get it. `scripts/test.ts` repeats these reasons at the end of a run.
 */
import { describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { SKIP_MARK } from "../../scripts/support/skipped_tests.ts";
import { onlyThorough } from "./thoroughness.ts";

/** Undefined if the requirement is met, otherwise a clause that names the missing part. */
export type Missing = string | undefined;

/** The headless program comes first, because it takes half of the processor time. */
const CHROMIUM_CANDIDATES = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of Chromium on this machine. */
export const CHROMIUM: string | undefined = CHROMIUM_CANDIDATES.find((path) => existsSync(path));

export const chromiumMissing: Missing =
  CHROMIUM === undefined
    ? "Chromium is not installed (Debian: apt-get install chromium)"
    : undefined;

export const linuxMissing: Missing =
  process.platform === "linux" ? undefined : "this system is not Linux";

/** Checks whether a program is installed. @returns Undefined if the program is on the path. */
export function programMissing(name: string, debianPackage: string): Missing {
  if (Bun.which(name) !== null) return undefined;
  return `${name} is not installed (Debian: apt-get install ${debianPackage})`;
}

export function fileMissing(path: string): Missing {
  return existsSync(path) ? undefined : `this system has no ${path}`;
}

/** Returns undefined if strace can trace another process here and make its system calls fail. */
export function straceMissing(): Missing {
  const absent = programMissing("strace", "strace");
  if (absent !== undefined) return absent;
  const inject = ["-e", "inject=getpid:error=EIO"];
  const tried = Bun.spawnSync(["strace", "-o", "/dev/null", ...inject, "true"]);
  return tried.success ? undefined : `strace does not work here: ${tried.stderr.toString().trim()}`;
}

/** Returns `test`, or `test.skip` with a name that ends with the reason. */
export function testUnless(missing: Missing): typeof test {
  if (missing === undefined) return test;
  const skip = (name: string, ...rest: Rest): void =>
    test.skip(skippedName(name, missing), ...rest);
  const each =
    (cases: readonly unknown[]) =>
    (name: string): void =>
      test.skip.each(cases)(skippedName(name, missing), () => undefined);
  return Object.assign(skip, { each }) as unknown as typeof test;
}

/** A test that runs only in a thorough run. */
export const testThoroughly: typeof test = testUnless(onlyThorough);

/** Returns `describe`, or `describe.skip` with a name that ends with the reason. */
export function describeUnless(missing: Missing): (name: string, body: () => void) => void {
  if (missing === undefined) return describe;
  return (name, body) => describe.skip(skippedName(name, missing), body);
}

type Rest = Parameters<typeof test.skip> extends [unknown, ...infer Others] ? Others : never;

function skippedName(name: string, missing: string): string {
  return `${name}${SKIP_MARK}${missing}`;
}
