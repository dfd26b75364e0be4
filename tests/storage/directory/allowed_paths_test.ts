/** Tests the error for a directory that the configuration does not allow. */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { requireAllowedPath } from "../../../src/storage/mod.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

function hintWith(allowedRoots: readonly string[]): string | undefined {
  const paths = { disk: new SimulatedDisk(), allowedRoots, dataPath: "/data" };
  try {
    requireAllowedPath(paths, { action: "back up to", path: "/elsewhere/monday" });
  } catch (error) {
    return error instanceof DatabaseError ? error.hint : undefined;
  }
  return undefined;
}

test("requireAllowedPath says which directories are allowed, and how to allow one if none is", () => {
  expect(hintWith(["/mnt/a", "/mnt/b"])).toBe(
    "choose a directory below one of storage.allowed_roots: /mnt/a, /mnt/b",
  );
  expect(hintWith([])).toBe(
    "storage.allowed_roots in the configuration is empty; add a directory to it, and restart " +
      "the server",
  );
});
