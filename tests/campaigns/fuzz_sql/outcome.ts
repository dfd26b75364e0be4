/**
 * Defines the outcome of a statement on one side, and the differences between two outcomes.
 */
import { OF_VALUES } from "./allowed.ts";

const ROWS_SHOWN_MAX = 8;

export interface Difference {
  readonly tidemark: string;
  /**
   * DuckDB's result. It is present if it differs from Tidemark's, and PostgreSQL agrees with
   * Tidemark or has no result.
   */
  readonly duckdb?: string;
  readonly postgres: string;
  /**
   * True if only one side failed for a value. That side may have computed a value that the other
   * side did not compute.
   */
  readonly isValueError: boolean;
  /** True if Tidemark responded that the feature is not available yet. */
  readonly isUnavailable: boolean;
}

export type Outcome =
  | { readonly kind: "rows"; readonly rows: readonly string[] }
  | { readonly kind: "failure"; readonly condition: string; readonly message: string };

export function compare(ours: Outcome, theirs: Outcome): Difference | undefined {
  if (ours.kind === "failure" && theirs.kind === "failure") {
    if (ours.condition !== "INTERNAL_ERROR") return undefined;
  } else if (ours.kind === "rows" && theirs.kind === "rows") {
    if (ours.rows.join("\n") === theirs.rows.join("\n")) return undefined;
  }
  return {
    tidemark: shown(ours, theirs),
    postgres: shown(theirs, ours),
    isValueError:
      ours.kind === "failure"
        ? OF_VALUES.has(ours.condition)
        : theirs.kind === "failure" && theirs.condition.startsWith("22"),
    isUnavailable: false,
  };
}

/**
 * Describes the outcome of one side. If the outcome consists of rows, shows the rows that the
 * other side lacks or returns in a different position.
 */
export function shown(outcome: Outcome, other: Outcome): string {
  if (outcome.kind === "failure") return `${outcome.condition}: ${outcome.message}`;
  const theirs = other.kind === "rows" ? other.rows : [];
  const missing = outcome.rows.filter((row) => !theirs.includes(row));
  const moved = outcome.rows.filter((row, i) => row !== theirs[i]);
  const lines = (missing.length > 0 ? missing : moved).slice(0, ROWS_SHOWN_MAX);
  return [`${outcome.rows.length} row(s)`, ...lines.map((line) => `    ${line}`)].join("\n");
}

/** Adds one to the number of differences with a given reason. */
export function noteOnce(counts: Map<string, number>, because: string): void {
  counts.set(because, (counts.get(because) ?? 0) + 1);
}
