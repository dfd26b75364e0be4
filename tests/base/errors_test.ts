/** Tests how an error is rethrown with additional details. */
import { expect, test } from "bun:test";
import {
  DatabaseError,
  detailsOf,
  namesOnly,
  withDetails,
  withoutPaths,
} from "../../src/base/errors.ts";

const SAID = {
  position: 7,
  hint: "name another",
  statementIndex: 2,
  earliestSeq: 4096,
  isHidden: false,
  sqlstate: "22P02",
};

test("withDetails keeps every part of an error that it does not replace", () => {
  const error = new DatabaseError("INVALID_VALUE", "Cannot read the value", SAID);

  const same = withDetails(error, {});
  expect(same.code).toBe("INVALID_VALUE");
  expect(same.message).toBe("Cannot read the value");
  expect(detailsOf(same)).toEqual(SAID);
  expect(same.cause).toBe(error);

  const changed = withDetails(error, {
    code: "INVALID_SQL",
    message: "Cannot run",
    position: 0,
  });
  expect(changed.code).toBe("INVALID_SQL");
  expect(changed.message).toBe("Cannot run");
  expect(detailsOf(changed)).toEqual({ ...SAID, position: 0 });
});

test("withDetails replaces the error with a cause, and removes undefined members", () => {
  const cause = new Error("the first");
  const error = new DatabaseError("INVALID_VALUE", "Cannot read the value", SAID);

  const changed = withDetails(error, { cause, hint: undefined });
  expect(changed.cause).toBe(cause);
  expect(detailsOf(changed)).toEqual({ ...SAID, hint: undefined });
});

test.each([
  [
    "Cannot read /srv/db/segments/a/7.seg at byte 12: it ends",
    "Cannot read 7.seg at byte 12: it ends",
  ],
  ["Cannot open ./data/format.json: EACCES", "Cannot open format.json: EACCES"],
  ['Cannot use "/mnt/two/": the disk says EIO', 'Cannot use "two": the disk says EIO'],
  ["put /mnt/two in order, and (/mnt/one)", "put two in order, and (one)"],
  ["Cannot open /: EACCES", "Cannot open the root directory: EACCES"],
  ["Cannot write: the disk is full", "Cannot write: the disk is full"],
])("namesOnly of %s", (text, expected) => {
  expect(namesOnly(text)).toBe(expected);
});

test("namesOnly accepts long words even if each letter could begin a path", () => {
  const word = "a".repeat(1_000_000);
  expect(namesOnly(`${word} of /srv/db/${word}`)).toBe(`${word} of ${word}`);
});

test("withoutPaths changes text from the system but not text from a caller", () => {
  const text = "Cannot use /srv/db/a.seg";
  const details = { ...SAID, hint: "look at /srv/db" };
  const damaged = withoutPaths(new DatabaseError("DATA_DAMAGED", text, details));
  expect(damaged.message).toBe("Cannot use a.seg");
  expect(detailsOf(damaged)).toEqual({ ...SAID, hint: "look at db" });
  const wrong = new DatabaseError("INVALID_VALUE", text, details);
  expect(withoutPaths(wrong)).toBe(wrong);
});

test("a long message or hint keeps its beginning and its end", () => {
  const name = "n".repeat(300_000);
  const error = new DatabaseError("COLUMN_NOT_FOUND", `Cannot find column "${name}"`, {
    hint: `did you mean ${name}?`,
  });
  expect(error.message).toMatch(/^Cannot find column "n{979}…n{998}"$/);
  expect(error.hint).toMatch(/^did you mean n{986}…n{998}\?$/);

  const short = "m".repeat(2000);
  expect(new DatabaseError("INVALID_VALUE", short).message).toBe(short);
});
