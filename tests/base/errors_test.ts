/**
 * Errors that are thrown anew by who knows more of them.
 */
import { expect, test } from "bun:test";
import { DatabaseError, detailsOf, withDetails } from "../../src/base/errors.ts";

const SAID = { position: 7, hint: "name another", statementIndex: 2, earliestSeq: 4096 };

test("withDetails keeps all that an error says and the changes do not name", () => {
  const error = new DatabaseError("INVALID_VALUE", "Cannot read the value", SAID);

  const same = withDetails(error, {});
  expect(same.condition).toBe("INVALID_VALUE");
  expect(same.message).toBe("Cannot read the value");
  expect(detailsOf(same)).toEqual(SAID);
  expect(same.cause).toBe(error);

  const changed = withDetails(error, {
    condition: "INVALID_SQL",
    message: "Cannot run",
    position: 0,
  });
  expect(changed.condition).toBe("INVALID_SQL");
  expect(changed.message).toBe("Cannot run");
  expect(detailsOf(changed)).toEqual({ ...SAID, position: 0 });
});

test("withDetails takes a cause in the place of the error, and takes away what is undefined", () => {
  const cause = new Error("the first");
  const error = new DatabaseError("INVALID_VALUE", "Cannot read the value", SAID);

  const changed = withDetails(error, { cause, hint: undefined });
  expect(changed.cause).toBe(cause);
  expect(detailsOf(changed)).toEqual({ ...SAID, hint: undefined });
});
