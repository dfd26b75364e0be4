/**
 * Whether an answer holds what its caller must not see: a foreign canary in any of its forms, or
 * anything else that it would not hold if the caller were alone.
 */
import type { SqlResponse } from "../../src/sql/mod.ts";
import { OF_VALUES } from "../fuzz_sql/allowed.ts";
import { cellFromWire } from "../fuzz_sql/cells.ts";

const ROWS_SHOWN_MAX = 6;

/** Everything that an answer says. */
export function textOfAnswer({ error, results }: SqlResponse): string {
  const said = error === undefined ? "" : `${error.message} ${error.hint ?? ""}`;
  return `${JSON.stringify(results)} ${said}`;
}

/** The canary that a text holds, as it is, in hexadecimal or in base64. */
export function canaryIn(text: string, canaries: readonly string[]): string | undefined {
  const folded = text.toLowerCase();
  return canaries.find((canary) => {
    const bytes = Buffer.from(canary);
    const forms = [canary, bytes.toString("hex"), bytes.toString("base64").toLowerCase()];
    // Bytes are sent as a list of numbers.
    forms.push([...bytes].join(","));
    return forms.some((form) => folded.includes(form));
  });
}

/**
 * How the answers of two worlds differ; undefined if they do not, or only by order of evaluation.
 */
export function differenceOf(one: SqlResponse, other: SqlResponse): string | undefined {
  if (one.error !== undefined && other.error !== undefined) {
    return one.error.condition === "INTERNAL_ERROR" ? one.error.message : undefined;
  }
  const refusal = one.error ?? other.error;
  // Which values are computed is not promised, and hangs on sizes that a plan is made by.
  if (refusal !== undefined) {
    return OF_VALUES.has(refusal.condition) || refusal.condition === "CARDINALITY_VIOLATION"
      ? undefined
      : `${refusal.condition} in one of both: ${refusal.message}`;
  }
  const [rows, others] = [rowsOf(one), rowsOf(other)];
  if (rows.join("\n") === others.join("\n")) return undefined;
  const only = rows.filter((row) => !others.includes(row)).slice(0, ROWS_SHOWN_MAX);
  const missing = others.filter((row) => !rows.includes(row)).slice(0, ROWS_SHOWN_MAX);
  return `${rows.length} row(s) instead of ${others.length}: ${only.join(" / ")}\n  alone: ${missing.join(" / ")}`;
}

function rowsOf({ results }: SqlResponse): string[] {
  return results.flatMap(({ rowCount, rows, schema = [] }) => {
    if (rows === undefined) return [`${rowCount} row(s) changed`];
    return rows
      .map((row) => schema.map(({ data_type }, i) => cellFromWire(row[i], data_type)).join(" | "))
      .toSorted();
  });
}
