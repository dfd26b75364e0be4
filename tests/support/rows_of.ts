/**
 * Runs statements in a database of the test's own process, for tests that need only the rows.
 * Statements that fail end the test.
 */
import type { Principal } from "../../src/auth/mod.ts";
import type { Database } from "../../src/database.ts";

/** Runs statements that must succeed. Returns the rows of the last one. */
export async function rowsOf(
  database: Database,
  principal: Principal,
  sql: string,
): Promise<readonly (readonly unknown[])[]> {
  const { error, results } = await database.sql.execute(principal, { sql, params: [] });
  if (error !== undefined) throw error;
  return results.at(-1)?.rows ?? [];
}
