/**
 * Checks whether a response contains anything that its caller must not see: a foreign canary in
 * any form, or anything else that the response would not contain if the caller were alone.
 */
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { OF_VALUES } from "../fuzz_sql/allowed.ts";
import { cellFromWire } from "../fuzz_sql/cells.ts";

const ROWS_SHOWN_MAX = 6;

/** Returns the entire content of a response as text. */
export function textOfAnswer({ error, results }: SqlResponse): string {
  const said = error === undefined ? "" : `${error.message} ${error.hint ?? ""}`;
  return `${JSON.stringify(results)} ${said}`;
}

/**
 * Returns the canary that a text contains, whether plain, in hexadecimal or in base64; undefined
 * if there is none.
 */
export function canaryIn(text: string, canaries: readonly string[]): string | undefined {
  const folded = text.toLowerCase();
  return canaries.find((canary) => {
    const bytes = Buffer.from(canary);
    const forms = [canary, bytes.toString("hex"), bytes.toString("base64").toLowerCase()];
    // Bytes may be sent as a list of numbers.
    forms.push([...bytes].join(","));
    return forms.some((form) => folded.includes(form));
  });
}

/**
 * Returns the difference between the responses of two databases; undefined if they agree or differ
 * only because of evaluation order.
 */
export function differenceOf(one: SqlResponse, other: SqlResponse): string | undefined {
  if (one.error !== undefined && other.error !== undefined) {
    return one.error.code === "INTERNAL_ERROR" ? one.error.message : undefined;
  }
  const refusal = one.error ?? other.error;
  // SQL does not guarantee which values are computed. That depends on the table sizes on which a
  // plan is based.
  if (refusal !== undefined) {
    return OF_VALUES.has(refusal.code) || refusal.code === "CARDINALITY_VIOLATION"
      ? undefined
      : `${refusal.code} in only one of the worlds: ${refusal.message}`;
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
