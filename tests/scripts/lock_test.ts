/**
 * Verifies that `npm ci` would accept the lock file. npm refuses it if a required package is
 * missing. npm itself leaves out packages for other platforms that are missing from its registry.
 */
import { expect, test } from "bun:test";

interface Locked {
  readonly version?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const { packages }: { readonly packages: Readonly<Record<string, Locked>> } = await Bun.file(
  new URL("../../package-lock.json", import.meta.url),
).json();
const asked = Object.values(packages).flatMap(({ dependencies = {}, optionalDependencies = {} }) =>
  Object.entries({ ...dependencies, ...optionalDependencies }),
);

test("the lock file has every package that one of its packages requires", () => {
  expect(asked.length).toBeGreaterThan(100);
  const missing = asked.filter(([name]) => packages[`node_modules/${name}`] === undefined);
  expect(missing).toEqual([]);
});

test("packages for one platform declare it, so that no other platform requires them", () => {
  const unclear = Object.entries(packages).flatMap(([path, { cpu, os }]) =>
    /(?:darwin|win32|linux|android)-/.test(path) && (cpu ?? os) === undefined ? [path] : [],
  );
  expect(unclear).toEqual([]);
});
