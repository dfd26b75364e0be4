/**
 * The text of a statement without its literals and secrets, as `system.query_stats` shows it.
 */
import type { Statement } from "./parse/ast.ts";
import { LITERAL_MARKS, normalizeStatement } from "./parse/normalize.ts";
import { statementToSql } from "./parse/print.ts";

const LENGTH_MAX = 2000;

/** The key of the plan cache with `?` for each literal that was lifted out. */
export function textOfKey(key: string): string {
  return key.replaceAll(LITERAL_MARKS, "?").slice(0, LENGTH_MAX);
}

export function textOfStatement(node: Statement): string {
  const sql = statementToSql(node);
  return textOfKey(normalizeStatement(sql)?.key ?? sql);
}
