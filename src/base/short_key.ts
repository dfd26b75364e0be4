/**
 * Creates short keys for looking up data sent by clients. Such data may be a megabyte long,
 * whereas a key stays in memory for as long as it may be looked up.
 */

const KEY_CHARS_MAX = 512;

/**
 * Returns a key for a string: a short string itself, or a collision-resistant digest of a long
 * one.
 */
export function shortKey(text: string): string {
  if (text.length <= KEY_CHARS_MAX) return text;
  return new Bun.CryptoHasher("sha256").update(text).digest("base64");
}

/**
 * The number of characters in the key of a long string. They encode 132 of the 256 bits of
 * SHA-256.
 */
const DIGEST_CHARS = 22;

/** Returns a short digest of a string. The same string always has the same digest. */
export function digestKey(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64url").slice(0, DIGEST_CHARS);
}
