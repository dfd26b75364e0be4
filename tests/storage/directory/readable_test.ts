/**
 * Verifies that system errors that mean damage are distinguished from errors that only prevent a
 * file from being opened.
 */
import { expect, test } from "bun:test";
import { DatabaseError, DiskError, UnreadableError } from "../../../src/base/errors.ts";
import { available, readable } from "../../../src/storage/directory/readable.ts";

const PATH = "segments/1/1.seg";

function failing(code: string): () => never {
  return () => {
    throw new DiskError(code, PATH, "open");
  };
}

test.each(["ENOENT", "ENOTDIR", "EISDIR", "ELOOP", "EIO", "EBADMSG", "ENODATA", "EUCLEAN"])(
  "readable and available treat %s as damage",
  (code) => {
    const damage = `Cannot read ${PATH} at byte 0: the disk reports ${code}`;
    expect(() => readable(PATH, failing(code))).toThrow(UnreadableError);
    expect(() => available(PATH, failing(code))).toThrow(damage);
  },
);

test.each([
  ["EMFILE", /limit on open files/],
  ["ENFILE", /limit on open files/],
  ["EACCES", /the server's user/],
  ["EPERM", /the server's user/],
  ["ENOMEM", /check the file and its directory/],
])("available reports that a file cannot be opened because of %s, and what to do", (code, hint) => {
  expect(() => readable(PATH, failing(code))).toThrow(DiskError);
  expect(() => available(PATH, failing(code))).toThrow(
    expect.objectContaining({
      code: "STORAGE_UNAVAILABLE",
      hint: expect.stringMatching(hint),
    }),
  );
});

test("available passes on errors that are not disk failures", () => {
  const error = new DatabaseError("CANCELLED", "Cannot go on: it was stopped");
  const stopped = (): never => {
    throw error;
  };
  expect(() => available(PATH, stopped)).toThrow(error);
});
