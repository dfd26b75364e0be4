/**
 * Selects tests that need more than Bun, such as a program, a device or a particular operating
 * system. If a requirement is missing, the test is skipped, and its name says what is missing and
 * how to get it. `scripts/test.ts` repeats these reasons at the end of a run.
 */
import { describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { SKIP_MARK } from "../../scripts/support/skipped_tests.ts";
import { onlyThorough } from "./thoroughness.ts";

/** A clause that names a missing requirement; undefined if the requirement is met. */
export type Missing = string | undefined;

/**
 * The paths where Chromium may be installed, in order of preference. The headless program comes
 * first, because it takes half as much processor time.
 */
const CHROMIUM_CANDIDATES = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of Chromium on this machine; undefined if it is not installed. */
export const CHROMIUM: string | undefined = CHROMIUM_CANDIDATES.find((path) => existsSync(path));

export const chromiumMissing: Missing =
  CHROMIUM === undefined
    ? "Chromium is not installed (Debian: apt-get install chromium)"
    : undefined;

export const linuxMissing: Missing =
  process.platform === "linux" ? undefined : "this system is not Linux";

/**
 * Checks whether a program is installed. @returns undefined if the program is on the path,
 * otherwise the reason to skip a test.
 */
export function programMissing(name: string, debianPackage: string): Missing {
  if (Bun.which(name) !== null) return undefined;
  return `${name} is not installed (Debian: apt-get install ${debianPackage})`;
}

export function fileMissing(path: string): Missing {
  return existsSync(path) ? undefined : `this system has no ${path}`;
}

/**
 * Checks whether strace can trace another process here and make its system calls fail. Returns
 * undefined if it can.
 */
export function straceMissing(): Missing {
  const absent = programMissing("strace", "strace");
  if (absent !== undefined) return absent;
  const inject = ["-e", "inject=getpid:error=EIO"];
  const tried = Bun.spawnSync(["strace", "-o", "/dev/null", ...inject, "true"]);
  return tried.success ? undefined : `strace does not work here: ${tried.stderr.toString().trim()}`;
}

/**
 * Returns `test` or, if a requirement is missing, `test.skip` with a name that ends with the
 * reason.
 */
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

/** Defines a test that runs only in a thorough run. */
export const testThoroughly: typeof test = testUnless(onlyThorough);

/**
 * Returns `describe` or, if a requirement is missing, `describe.skip` with a name that ends with
 * the reason.
 */
export function describeUnless(missing: Missing): (name: string, body: () => void) => void {
  if (missing === undefined) return describe;
  return (name, body) => describe.skip(skippedName(name, missing), body);
}

type Rest = Parameters<typeof test.skip> extends [unknown, ...infer Others] ? Others : never;

function skippedName(name: string, missing: string): string {
  return `${name}${SKIP_MARK}${missing}`;
}
