/**
 * Compares (`COLLATE "C"`), measures and cuts strings by code point.
 *
 * JavaScript compares strings by UTF-16 unit. The order differs from that of code points only
 * between surrogates and U+E000 to U+FFFF. Most strings contain neither, so they need only an
 * ordinary comparison.
 */

/** Orders strings by code points, which is the order of their UTF-8 bytes. */
export function compareCodePoints(left: string, right: string): number {
  if (left === right) return 0;
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const a = left.charCodeAt(at);
    const b = right.charCodeAt(at);
    if (a !== b) return rank(a) - rank(b);
  }
  return left.length - right.length;
}

/**
 * Maps a UTF-16 unit to its position in code point order: surrogates come after the rest of the
 * basic plane.
 */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit <= 0xdfff ? unit + 0x2000 : unit - 0x800;
}

function hasSurrogates(text: string): boolean {
  return /[\ud800-\udfff]/.test(text);
}

export function codePointLength(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length; at += 1) {
    // The second half of a surrogate pair is not counted as a character.
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) length -= 1;
  }
  return length;
}

/** Returns code points `start` (inclusive) to `end` (exclusive), both counted from 0. */
export function sliceCodePoints(text: string, start: number, end: number): string {
  if (!hasSurrogates(text)) return text.slice(Math.max(start, 0), Math.max(end, 0));
  return Array.from(text).slice(Math.max(start, 0), Math.max(end, 0)).join("");
}
