/**
 * Truncates strings. The result never contains only half of a surrogate pair, so it can be sent
 * and stored like any other string.
 */

/** Returns the longest prefix of a string with at most `length` UTF-16 code units. */
export function beginningOf(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}

/** Returns the longest suffix of a string with at most `length` UTF-16 code units. */
export function endOf(text: string, length: number): string {
  return text.slice(Math.max(text.length - length, 0)).replace(/^[\uDC00-\uDFFF]/, "");
}

/** Shortens a string to `length` UTF-16 code units by omitting its middle. */
export function withoutMiddle(text: string, length: number): string {
  if (text.length <= length) return text;
  const half = Math.floor((length - 1) / 2);
  return `${beginningOf(text, half)}…${endOf(text, half)}`;
}
