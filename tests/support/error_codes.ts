/**
 * Returns the error code of an action that should fail, so that tests can compare it; undefined if
 * the action succeeds. Any error other than a DatabaseError is rethrown.
 */
import { DatabaseError } from "../../src/base/errors.ts";

export function errorCodeOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    return codeOfDatabaseError(error);
  }
  return undefined;
}

/** Returns the error code of an action that throws, or that returns a promise that is rejected. */
export async function laterErrorCodeOf(action: () => unknown): Promise<string | undefined> {
  try {
    await action();
  } catch (error) {
    return codeOfDatabaseError(error);
  }
  return undefined;
}

function codeOfDatabaseError(error: unknown): string {
  if (error instanceof DatabaseError) return error.code;
  throw error;
}
