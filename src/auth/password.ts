/**
 * Implements the policy for new passwords, the storage of passwords, and a comparison that does
 * not reveal whether a user exists.
 *
 * Passwords are stored as argon2id hashes (m = 19456 KiB, t = 2, p = 1). Computing one takes about
 * 30 ms of a core's time, off the event loop, so only a few hashes run at a time. The number of
 * waiting hashes is limited, and senders are served in rotation, so a flood of logins slows down
 * only logins from the same sender.
 */
import { assert } from "../base/assert.ts";
import { AuthError } from "./auth_error.ts";
import { isCommonPassword } from "./common_passwords.ts";
import { type HashTurn, HashTurns } from "./hash_turns.ts";

export interface PasswordPolicy {
  /** The minimum length of a password. The minimum and the maximum are in Unicode code points. */
  readonly lengthMin: number;
  readonly lengthMax: number;
  /**
   * Whether a password must contain an upper-case letter, a lower-case letter, a digit and a
   * character that is neither a letter nor a digit.
   */
  readonly isComplex: boolean;
}

/**
 * Returns the form in which a password is hashed and compared, as defined by RFC 8265: normalised
 * to NFC, with every kind of space replaced by an ordinary one. Keyboards differ in how they
 * encode characters and spaces.
 */
function preparedPassword(password: string): string {
  return password.replace(/\p{Zs}/gu, " ").normalize("NFC");
}

/**
 * The maximum length of a password, in bytes. A longer one is refused before any further
 * processing.
 */
const PASSWORD_BYTES_MAX = 1024;

/**
 * Returns the reason why a password may not be used, phrased as the end of a sentence; undefined
 * if it may be used.
 *
 * @param userId The user whose password is to be set.
 */
export function passwordFault(
  given: string,
  { userId, policy }: { userId: string; policy: PasswordPolicy },
): string | undefined {
  if (!given.isWellFormed()) return "a password must be valid Unicode text";
  const password = preparedPassword(given);
  if (Buffer.byteLength(password) > PASSWORD_BYTES_MAX) {
    return `a password must be at most ${PASSWORD_BYTES_MAX} bytes long`;
  }
  const length = Array.from(password).length;
  if (length < policy.lengthMin)
    return `a password must have at least ${policy.lengthMin} characters`;
  if (!SEEN.test(password)) return "a password must contain visible characters";
  if (length > policy.lengthMax)
    return `a password must have at most ${policy.lengthMax} characters`;
  if (isCommonPassword(password)) return "a password must not be one of the most common passwords";
  if (password.toLowerCase() === userId.toLowerCase())
    return "a password must differ from the user id";
  if (policy.isComplex && !COMPLEX.every((part) => part.test(password))) {
    return (
      "a password must contain an uppercase letter, a lowercase letter, a digit and another " +
      "character"
    );
  }
  return undefined;
}

/**
 * Refuses a password that may not be used.
 *
 * @param field The field of the request that contains the password.
 * @throws {AuthError} weak_password
 */
export function requireStrong(
  password: string,
  { field, ...whose }: { userId: string; policy: PasswordPolicy; field: string },
): void {
  const fault = passwordFault(password, whose);
  if (fault === undefined) return;
  throw new AuthError("weak_password", `Cannot use "${field}": ${fault}`, { field });
}

export class PasswordHasher {
  readonly #runningMax: number;
  readonly #turns = new HashTurns();
  #running = 0;

  constructor({ runningMax }: { runningMax: number }) {
    assert(runningMax > 0, "password hasher: the limit on concurrent hashes is zero");
    this.#runningMax = runningMax;
  }

  /**
   * Hashes a password. If too many other hashes are being computed, it waits for its turn.
   * @throws {AuthError} rate_limited if too many are already waiting.
   */
  hash(given: string, turn: HashTurn): Promise<string> {
    const password = preparedPassword(given);
    assert(
      Buffer.byteLength(password) <= PASSWORD_BYTES_MAX,
      "password hasher: password is longer than the policy allows",
    );
    return this.#inTurn(turn, () =>
      Bun.password.hash(password, { algorithm: "argon2id", memoryCost: 19456, timeCost: 2 }),
    );
  }

  /**
   * Compares a password with a hash. The call takes just as long if there is no hash.
   *
   * @param hash Undefined for a user who does not exist or has no password.
   * @throws {AuthError} rate_limited if too many are already waiting.
   */
  async matches(given: string, hash: string | undefined, turn: HashTurn): Promise<boolean> {
    const password = preparedPassword(given);
    const isTooLong = Buffer.byteLength(password) > PASSWORD_BYTES_MAX;
    const isPossible = hash !== undefined && !isTooLong;
    const isSame = await this.#inTurn(turn, () =>
      Bun.password.verify(
        isTooLong || password === "" ? "x" : password,
        isPossible ? hash : DUMMY_HASH,
      ),
    );
    return isSame && isPossible && password !== "";
  }

  async #inTurn<T>(turn: HashTurn, work: () => Promise<T>): Promise<T> {
    // A finished hash computation passes its slot on to a waiting one, so the count of running
    // computations does not change after a wait.
    if (this.#running >= this.#runningMax) await this.#turns.wait(turn);
    else this.#running += 1;
    try {
      return await work();
    } finally {
      if (!this.#turns.startNext()) this.#running -= 1;
    }
  }
}

/**
 * The hash of a random password that nobody knows. A comparison with it takes as long as a
 * comparison with a real hash.
 */
const DUMMY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$BENXesyrkMxrbkVw8yvxR43EzDk11nSSPeDixLqg+t0$OZLZWMHw+qKr1jyEMOIoi3vsGp5TIqOhC/MNSRTZo5I";

/**
 * Matches a visible character: one that is neither a space nor a control, format or unassigned
 * character.
 */
const SEEN = /[^\p{White_Space}\p{C}\u2800\u3164\u115f\u1160\uffa0]/u;

const COMPLEX: readonly RegExp[] = [/\p{Lu}/u, /\p{Ll}/u, /\p{Nd}/u, /[^\p{L}\p{Nd}]/u];
