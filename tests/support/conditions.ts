/**
 * The condition that something fails with, as tests compare it: undefined where nothing fails. What
 * is no DatabaseError goes on.
 */
import { DatabaseError } from "../../src/base/errors.ts";

export function conditionOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    return conditionOfError(error);
  }
  return undefined;
}

/** Of what an action raises at once, or what its promise is rejected with. */
export async function laterConditionOf(action: () => unknown): Promise<string | undefined> {
  try {
    await action();
  } catch (error) {
    return conditionOfError(error);
  }
  return undefined;
}

function conditionOfError(error: unknown): string {
  if (error instanceof DatabaseError) return error.condition;
  throw error;
}
