/**
 * A moment as messages and the log show it.
 */

/** ISO 8601 in UTC, with milliseconds. */
export function timeText(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
