/**
 * Formats numbers as JSON for responses.
 *
 * Seqs and durations are not small integers, so the runtime formats them as doubles, which takes
 * about as long as the rest of a short response body. This module assembles both from tables
 * instead.
 */
import { assert } from "./assert.ts";

const THREE_DIGITS: readonly string[] = digitTable(3);
const FOUR_DIGITS: readonly string[] = digitTable(4);

/** The number of values of a seq's last eight digits. They repeat about every six hours. */
const LOW_DIGITS = 1e8;

let lastHigh = 0;
let lastHighText = "";

/** Formats a seq, which may be any integer from 0 to 2^53 - 1, as JSON. */
export function seqText(seq: number): string {
  assert(
    Number.isSafeInteger(seq) && seq >= 0,
    "seq to be formatted is not a non-negative safe integer",
  );
  const high = Math.floor(seq / LOW_DIGITS);
  if (high === 0) return String(seq);
  if (high !== lastHigh) {
    lastHigh = high;
    lastHighText = String(high);
  }
  const low = seq - high * LOW_DIGITS;
  const upper = Math.floor(low / 1e4);
  return lastHighText + (FOUR_DIGITS[upper] ?? "") + (FOUR_DIGITS[low - upper * 1e4] ?? "");
}

/** Formats a non-negative number of milliseconds as JSON with three decimal places. */
export function millisecondsText(milliseconds: number): string {
  const micros = Math.round(milliseconds * 1000);
  const whole = Math.floor(micros / 1000);
  return `${whole}.${THREE_DIGITS[micros - whole * 1000] ?? ""}`;
}

function digitTable(digits: number): string[] {
  return Array.from({ length: 10 ** digits }, (_, value) => String(value).padStart(digits, "0"));
}
