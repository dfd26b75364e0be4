/**
 * How many bytes of request bodies may be in memory: of one user, of one address, and of all.
 *
 * The runtime takes the first megabyte of a body in whether anybody reads it or not: 2,400 requests
 * that kept the end of their bodies back took 3 GB. A body can therefore not wait unread: it is
 * counted when its head is there, with the size that it declares or else that megabyte, and a
 * request beyond the bounds is answered at once. Its connection is closed, and with the answer the
 * runtime lets go of what has come.
 *
 * A body is counted until it is read, and beyond `SHORT_BODY_BYTES` until its request is answered,
 * as a statement keeps its text. What a large body has beyond `LARGE_BODY_BYTES` is counted by
 * `large_bodies.ts`: such bodies wait for each other.
 *
 * Short bodies have a sum of their own, so that long ones leave everybody the short statements;
 * and nobody asks for the address of a known user who sends one, as that takes a while.
 *
 * Invariant: a sum is what the bodies under way were counted with; who has none is forgotten.
 */
import { senderOf } from "../../base/sender.ts";
import { HttpError, RETRY_SECONDS } from "./http_error.ts";
import { LARGE_BODY_BYTES } from "./large_bodies.ts";

const MIB: number = 1 << 20;

/** Bodies up to this size are short. */
export const SHORT_BODY_BYTES: number = 16 * 1024;

/** Whether a request says that its body is short. */
export function hasShortBody({ headers }: Request): boolean {
  const declared = headers.get("content-length");
  return declared !== null && Number(declared) <= SHORT_BODY_BYTES;
}

export interface BodyBounds {
  readonly userBytesMax: number;
  /** Of users who are known, and of callers who are not. */
  readonly addressBytesMax: number;
  readonly strangerBytesMax: number;
  /** Of all senders: once for short bodies, once for the others. */
  readonly bytesMax: number;
}

/** With what `LargeBodies` lets in all that bodies can take of memory. */
const BODY_BOUNDS: BodyBounds = {
  userBytesMax: 128 * MIB,
  addressBytesMax: 256 * MIB,
  strangerBytesMax: 16 * MIB,
  bytesMax: 512 * MIB,
};

/** Who sends a body. */
export interface BodySender {
  /** Undefined before anybody is known. */
  readonly userId: string | undefined;
  readonly address: () => string;
}

export class BodyLedger {
  readonly #bounds: BodyBounds;
  readonly #byUser = new Map<string, number>();
  readonly #byAddress = new Map<string, number>();
  readonly #byStranger = new Map<string, number>();
  #shortBytes = 0;
  #longBytes = 0;

  constructor(bounds: BodyBounds = BODY_BOUNDS) {
    this.#bounds = bounds;
  }

  /** Bytes of all bodies under way. */
  get heldBytes(): number {
    return this.#shortBytes + this.#longBytes;
  }

  /**
   * Counts a short body of a known user. @throws {HttpError} RATE_LIMIT_EXCEEDED,
   * TOO_MANY_CONNECTIONS
   */
  takeShort(userId: string, bytes: number): void {
    const { bytesMax, userBytesMax } = this.#bounds;
    const held = this.#byUser.get(userId) ?? 0;
    if (held + bytes > userBytesMax) throw tooMuch(USER, userBytesMax);
    if (this.#shortBytes + bytes > bytesMax) throw tooMuchOfAll(bytesMax);
    this.#byUser.set(userId, held + bytes);
    this.#shortBytes += bytes;
  }

  giveShort(userId: string, bytes: number): void {
    add(this.#byUser, userId, -bytes);
    this.#shortBytes -= bytes;
  }

  /**
   * Counts any body.
   * @param declaredBytes Undefined where the head does not say.
   * @throws {HttpError} RATE_LIMIT_EXCEEDED, TOO_MANY_CONNECTIONS
   */
  enter(sender: BodySender, declaredBytes: number | undefined): BodyEntry {
    const { userId } = sender;
    const address = senderOf(sender.address());
    const { addressBytesMax, strangerBytesMax, userBytesMax } = this.#bounds;
    const sums: Sum[] =
      userId === undefined
        ? [
            {
              key: address,
              held: this.#byStranger,
              bytesMax: strangerBytesMax,
              whose: ADDRESS,
            },
          ]
        : [
            {
              key: userId,
              held: this.#byUser,
              bytesMax: userBytesMax,
              whose: USER,
            },
            {
              key: address,
              held: this.#byAddress,
              bytesMax: addressBytesMax,
              whose: ADDRESS,
            },
          ];
    const bytes = Math.min(declaredBytes ?? LARGE_BODY_BYTES, LARGE_BODY_BYTES);
    for (const { bytesMax, held, key, whose } of sums) {
      if ((held.get(key) ?? 0) + bytes > bytesMax) throw tooMuch(whose, bytesMax);
    }
    const { bytesMax } = this.#bounds;
    if (this.#longBytes + bytes > bytesMax) throw tooMuchOfAll(bytesMax);
    const entry = new Entry((more) => {
      for (const { held, key } of sums) add(held, key, more);
      this.#longBytes += more;
    });
    entry.countAs(bytes);
    return entry;
  }
}

/** A body under way. */
export interface BodyEntry {
  /** Counts a body of undeclared size with the one that it turned out to have. */
  isRead(bytes: number): void;
  /** Takes the body off. May be called again, and then does nothing. */
  leave(): void;
}

interface Sum {
  readonly key: string;
  readonly held: Map<string, number>;
  readonly bytesMax: number;
  readonly whose: string;
}

class Entry implements BodyEntry {
  readonly #addToSums: (bytes: number) => void;
  #bytes = 0;
  #hasLeft = false;

  /** @param addToSums Adds to every sum that the body is part of. */
  constructor(addToSums: (bytes: number) => void) {
    this.#addToSums = addToSums;
  }

  isRead(bytes: number): void {
    if (!this.#hasLeft) this.countAs(Math.min(bytes, this.#bytes));
  }

  countAs(bytes: number): void {
    this.#addToSums(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  leave(): void {
    this.countAs(0);
    this.#hasLeft = true;
  }
}

const USER = "this user";
const ADDRESS = "this address";

function add(held: Map<string, number>, key: string, bytes: number): void {
  const sum = (held.get(key) ?? 0) + bytes;
  if (sum > 0) held.set(key, sum);
  else held.delete(key);
}

function tooMuch(whose: string, bytesMax: number): HttpError {
  return new HttpError(
    429,
    "RATE_LIMIT_EXCEEDED",
    `Cannot read the body: requests of ${whose} that are not answered yet may hold ${bytesMax} bytes of bodies together; send fewer at once`,
    { retryAfterSeconds: RETRY_SECONDS, closes: true },
  );
}

function tooMuchOfAll(bytesMax: number): HttpError {
  return new HttpError(
    503,
    "TOO_MANY_CONNECTIONS",
    `Cannot read the body: all requests that are not answered yet may hold ${bytesMax} bytes of bodies together; try again soon`,
    { retryAfterSeconds: RETRY_SECONDS, closes: true },
  );
}
