/**
 * Compares (`COLLATE "C"`), measures and slices strings by code point.
 *
 * JavaScript compares strings by UTF-16 code unit. This order differs from code point order only
 * between surrogates and U+E000 to U+FFFF. Most strings contain neither, so an ordinary comparison
 * is enough for them.
 */

/** Orders strings by code point, which is also the order of their UTF-8 bytes. */
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
 * Maps a UTF-16 code unit to its rank in code point order: surrogates come after all other code
 * units.
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
    // Skips the second half of a surrogate pair.
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) length -= 1;
  }
  return length;
}

/**
 * Returns the code points of a string from `start` (inclusive) to `end` (exclusive), counted from
 * 0.
 */
export function sliceCodePoints(text: string, start: number, end: number): string {
  if (!hasSurrogates(text)) return text.slice(Math.max(start, 0), Math.max(end, 0));
  return Array.from(text).slice(Math.max(start, 0), Math.max(end, 0)).join("");
}
