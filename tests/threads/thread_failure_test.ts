/**
 * Verifies that a thread's errors keep their class and their code when they are passed to another
 * thread.
 */
import { expect, test } from "bun:test";
import {
  CorruptionError,
  DatabaseError,
  DiskError,
  UnreadableError,
} from "../../src/base/errors.ts";
import { errorFromFailure, failureFrom } from "../../src/threads/mod.ts";

test.each<[string, Error]>([
  ["damage", new CorruptionError("/data/1.seg", 77, "the checksum does not match")],
  ["what the disk would not read", new UnreadableError("/data/1.seg", "EIO", 77)],
  ["a disk", new DiskError("ENOSPC", "/data/tmp/1.seg", "write")],
  ["a refusal", new DatabaseError("STORAGE_UNAVAILABLE", "Cannot write", { hint: "wait" })],
  ["a refusal without a hint", new DatabaseError("CANCELLED", "Cannot go on")],
])("an error of %s is the same behind a message to another thread", (_what, error) => {
  const arrived = errorFromFailure(structuredClone(failureFrom(error)));
  expect(arrived.constructor).toBe(error.constructor);
  expect(arrived.message).toBe(error.message);
  expect(Object.entries(arrived)).toEqual(Object.entries(error));
});

test.each([[new TypeError("x is undefined")], ["thrown as a text"]])(
  "%s is a bug there and here, with its place",
  (thrown) => {
    const arrived = errorFromFailure(structuredClone(failureFrom(thrown)));
    expect(arrived.constructor).toBe(Error);
    expect(arrived.stack).toContain(thrown instanceof Error ? (thrown.stack ?? "") : thrown);
  },
);
