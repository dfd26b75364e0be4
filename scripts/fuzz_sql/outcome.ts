/**
 * What a side made of a statement, and how two of them differ.
 */
import { OF_VALUES } from "./allowed.ts";

const ROWS_SHOWN_MAX = 8;

export interface Difference {
  readonly tidemark: string;
  /** What DuckDB says otherwise, when PostgreSQL agrees or says nothing. */
  readonly duckdb?: string;
  readonly postgres: string;
  /** Only one side failed, for a value: it may have evaluated what the other did not. */
  readonly isValueError: boolean;
  /** Tidemark said that it is not available yet. */
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

/** What happened on one side; of rows those that stand on the other side in no or another place. */
export function shown(outcome: Outcome, other: Outcome): string {
  if (outcome.kind === "failure") return `${outcome.condition}: ${outcome.message}`;
  const theirs = other.kind === "rows" ? other.rows : [];
  const missing = outcome.rows.filter((row) => !theirs.includes(row));
  const moved = outcome.rows.filter((row, i) => row !== theirs[i]);
  const lines = (missing.length > 0 ? missing : moved).slice(0, ROWS_SHOWN_MAX);
  return [`${outcome.rows.length} row(s)`, ...lines.map((line) => `    ${line}`)].join("\n");
}

/** Counts one more of what differed for a reason. */
export function noteOnce(counts: Map<string, number>, because: string): void {
  counts.set(because, (counts.get(because) ?? 0) + 1);
}
