/**
 * Keys that are made of what a client sent, and only compared: that may have a megabyte, and a key
 * is kept for as long as somebody may ask for it.
 */

const KEY_CHARS_MAX = 512;

/** A text as it is, or a digest that no other text has where it is long. */
export function shortKey(text: string): string {
  if (text.length <= KEY_CHARS_MAX) return text;
  return new Bun.CryptoHasher("sha256").update(text).digest("base64");
}
