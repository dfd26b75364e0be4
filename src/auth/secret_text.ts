/**
 * Defines the format of the secrets that the server creates and shows only once: service tokens
 * and invitations.
 *
 *     tdm_ 32 characters 6 characters      a service token
 *     tdi_ 32 characters 6 characters      an invitation
 *     kind random        CRC-32 of kind and random characters, in base 62, padded with 0
 *
 * The prefix and the checksum let tools that scan text for leaked secrets recognise such a secret
 * reliably. 32 characters in base 62 have 190 random bits, so guessing is hopeless. A fast,
 * unsalted hash is therefore sufficient for the stored form.
 */
import { crc32 } from "../base/checksum.ts";
import type { Random } from "../base/random.ts";

export type SecretKind = "tdi_" | "tdm_";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;

/**
 * Random bytes greater than or equal to this value are discarded. Otherwise, the first digits
 * would be more likely than the others.
 */
const FAIR_BYTES = 256 - (256 % DIGITS.length);

export function newSecret(kind: SecretKind, random: Random): string {
  let text: string = kind;
  while (text.length < kind.length + RANDOM_LENGTH) {
    const [byte = 0] = random.bytes(1);
    if (byte < FAIR_BYTES) text += DIGITS.charAt(byte % DIGITS.length);
  }
  return text + checksumOf(text);
}

/**
 * Returns whether a string has the form of a secret of the given kind, including a correct
 * checksum.
 */
export function isSecret(kind: SecretKind, text: string): boolean {
  const length = kind.length + RANDOM_LENGTH;
  if (text.length !== length + CHECKSUM_LENGTH || !text.startsWith(kind)) return false;
  return text.slice(length) === checksumOf(text.slice(0, length));
}

/** Returns the hash of a secret under which the catalog stores it. */
export function hashOfSecret(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64url");
}

function checksumOf(text: string): string {
  let rest = crc32(new TextEncoder().encode(text));
  let digits = "";
  for (let index = 0; index < CHECKSUM_LENGTH; index += 1) {
    digits = DIGITS.charAt(rest % DIGITS.length) + digits;
    rest = Math.floor(rest / DIGITS.length);
  }
  return digits;
}
