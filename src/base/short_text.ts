/**
 * Texts of any length, short enough to be read. A cut never falls between the two halves of one
 * character, so what is left can be sent and stored like any other text.
 */

/** The first characters of a text, as many as fit into a length in UTF-16 units. */
export function beginningOf(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}

/** The last characters of a text, as many as fit into a length in UTF-16 units. */
export function endOf(text: string, length: number): string {
  return text.slice(Math.max(text.length - length, 0)).replace(/^[\uDC00-\uDFFF]/, "");
}

/** A text of at most a length in UTF-16 units: what is too much is cut from its middle. */
export function withoutMiddle(text: string, length: number): string {
  if (text.length <= length) return text;
  const half = Math.floor((length - 1) / 2);
  return `${beginningOf(text, half)}…${endOf(text, half)}`;
}
