/**
 * Checks the configured secret with which tokens are signed; if none is configured, creates one.
 *
 * If the server listens on a loopback address, a missing secret is created once and kept in the
 * data directory. On any other address, the operator must configure a secret of at least 32 bytes
 * that was not copied from an example.
 *
 *     jwt_secret   OFFSET SIZE
 *                     0    32  the secret
 *                    32 4 u32 CRC-32 of the secret, little-endian; absent in an older form
 *
 * The checksum detects a change to the stored secret on disk. Such a change would otherwise
 * silently end every session.
 */

import { crc32 } from "../base/checksum.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError } from "../base/errors.ts";
import { isLoopbackHost } from "../base/ip_address.ts";
import type { Random } from "../base/random.ts";

/** The minimum size of a secret, in bytes. It equals the size of the SHA-256 hash. */
const SECRET_BYTES_MIN = 32;

/** The size of the file that contains the secret, in bytes. A longer file is not read. */
const FILE_BYTES = SECRET_BYTES_MIN + 4;

/** A problem with the configured secret, given the address on which the server listens. */
export interface SecretFault {
  /** Whether the problem with the secret must prevent the server from starting. */
  readonly isFatal: boolean;
  readonly message: string;
}

/**
 * Checks whether the configured secret is sufficient for the address on which the server listens.
 * On a loopback address, no secret is required. If none is configured there, {@linkcode
 * missingSecretText} returns the message to log.
 */
export function secretFault(secret: string | undefined, host: string): SecretFault | undefined {
  const isFatal = !isLoopbackHost(host);
  if (secret === undefined) {
    if (!isFatal) return undefined;
    return {
      isFatal,
      message:
        `auth.jwt_secret is missing, but is required because ${host} is not a loopback address; ` +
        HINT,
    };
  }
  if (isKnownSecret(secret))
    return { isFatal, message: `auth.jwt_secret is a well-known secret; ${HINT}` };
  const bytes = Buffer.byteLength(secret);
  if (bytes < SECRET_BYTES_MIN) {
    return {
      isFatal,
      message: `auth.jwt_secret has ${bytes} bytes, but must have at least ${SECRET_BYTES_MIN}; ${HINT}`,
    };
  }
  return undefined;
}

/** The hint in error messages that explains how to create a good secret. */
const HINT = "to create one, run: openssl rand -base64 48";

/** Returns the message to log if the server starts without a configured secret. */
export function missingSecretText(disk: Pick<Disk, "exists">, dataPath: string): string {
  const what = disk.exists(keptSecretPath(dataPath))
    ? "tokens are signed with the secret stored in the data directory"
    : "the server creates a secret and stores it in the data directory";
  return `auth.jwt_secret is not set: ${what}`;
}

/**
 * Returns the secret in `{data_path}/jwt_secret`, and creates the file if it does not exist. The
 * directory must exist.
 *
 * @throws {CorruptionError} If the file does not contain a valid secret.
 * @throws {DiskError}
 */
export function keptSecret({
  disk,
  dataPath,
  random,
}: {
  disk: Disk;
  dataPath: string;
  random: Random;
}): Uint8Array {
  const path = keptSecretPath(dataPath);
  if (!disk.exists(path)) writeSecret(disk, { dataPath, path, secret: random.bytes(32) });
  const kept = readSecret(disk, path);
  if (kept instanceof CorruptionError) throw kept;
  return kept;
}

export function keptSecretPath(dataPath: string): string {
  return `${dataPath}/jwt_secret`;
}

/**
 * Returns a description of any damage to the secret in a data directory; undefined if the secret
 * is intact.
 *
 * @throws {DiskError}
 */
export function keptSecretFault(disk: Disk, dataPath: string): CorruptionError | undefined {
  const path = keptSecretPath(dataPath);
  if (!disk.exists(path)) return undefined;
  const kept = readSecret(disk, path);
  return kept instanceof CorruptionError ? kept : undefined;
}

/**
 * Reads the secret from a file. If the file is damaged, returns the error instead of throwing it.
 */
function readSecret(disk: Disk, path: string): Uint8Array | CorruptionError {
  const byteCount = disk.sizeOf(path) ?? 0;
  if (byteCount !== FILE_BYTES && byteCount !== SECRET_BYTES_MIN) {
    const what = `the file has ${byteCount} bytes instead of ${FILE_BYTES}`;
    return new CorruptionError(path, 0, `${what}; ${REMEDY}`);
  }
  const bytes = disk.readFile(path);
  const secret = bytes.slice(0, SECRET_BYTES_MIN);
  if (bytes.length > SECRET_BYTES_MIN && crc32(secret) !== checksumIn(bytes)) {
    return new CorruptionError(path, 0, `the checksum of the file does not match; ${REMEDY}`);
  }
  return secret;
}

const REMEDY = "remove the file to get a new secret, which invalidates all tokens";

function checksumIn(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(SECRET_BYTES_MIN, true);
}

function withChecksum(secret: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(FILE_BYTES);
  bytes.set(secret);
  new DataView(bytes.buffer).setUint32(SECRET_BYTES_MIN, crc32(secret), true);
  return bytes;
}

/**
 * Writes the secret to a file atomically. Like every file created through a `Disk`, it is readable
 * only by its owner.
 */
function writeSecret(
  disk: Disk,
  { dataPath, path, secret }: { dataPath: string; path: string; secret: Uint8Array },
): void {
  const temporary = `${path}.tmp`;
  if (disk.exists(temporary)) disk.remove(temporary);
  const file = disk.open(temporary, { create: true, exclusive: true });
  try {
    file.write(withChecksum(secret), 0);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.rename(temporary, path);
  disk.syncDirectory(dataPath);
}

/**
 * Returns whether a secret is easy to guess: an example, a placeholder, or a single repeated
 * character.
 */
function isKnownSecret(secret: string): boolean {
  const folded = secret.trim().toLowerCase();
  if (new Set(folded).size <= 1) return true;
  const letters = folded.replaceAll(/[^a-z0-9]/g, "");
  if (KNOWN_SECRETS.has(letters)) return true;
  return PLACEHOLDERS.some((word) => letters.includes(word));
}

const KNOWN_SECRETS: ReadonlySet<string> = new Set([
  "secret",
  "password",
  "passw0rd",
  "jwtsecret",
  "jwtsecretkey",
  "mysecret",
  "mysecretkey",
  "mysupersecretkey",
  "supersecret",
  "supersecretkey",
  "secretkey",
  "secretsecret",
  "topsecret",
  "tokensecret",
  "yoursecret",
  "yoursecretkey",
  "your256bitsecret",
  "your384bitsecret",
  "your512bitsecret",
  "shhhhh",
  "shhhhhhhhhh",
  "keyboardcat",
  "tidemark",
  "tidemarksecret",
  "test",
  "testsecret",
  "dev",
  "devsecret",
  "developmentsecret",
  "example",
  "default",
  "defaultsecret",
  "admin",
  "root",
  "qwerty",
  "qwertyuiopasdfghjklzxcvbnm123456",
  "abcdefghijklmnopqrstuvwxyz",
  "abcdefghijklmnopqrstuvwxyz012345",
  "abcdefghijklmnopqrstuvwxyz123456",
  "abcdefghijklmnopqrstuvwxyz0123456789",
  "0123456789abcdef0123456789abcdef",
  "0123456789abcdefghijklmnopqrstuv",
  "0123456789",
  "01234567890123456789012345678901",
  "12345678901234567890123456789012",
  "1234567890123456789012345678901234567890",
  "1234567890abcdef1234567890abcdef",
  "asecretkeythatisatleast32byteslong",
  "averylongsecretkeythatnobodyknows",
]);

const PLACEHOLDERS: readonly string[] = [
  "replaceby",
  "replacewith",
  "replaceme",
  "replacethis",
  "changeme",
  "changethis",
  "changeit",
  "changeinproduction",
  "placeholder",
  "insecure",
  "notsecure",
  "donotuse",
  "yoursecret",
  "yourjwtsecret",
  "yoursupersecret",
  "mysupersecret",
  "atleast32",
];
