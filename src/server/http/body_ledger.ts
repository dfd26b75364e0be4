/**
 * Limits the memory for request bodies: per user, per address, and in total.
 *
 * The runtime buffers the first megabyte of a body whether or not the server reads it. In a test,
 * 2,400 requests that withheld the end of their bodies took up 3 GB. The server therefore cannot
 * leave a body unread until memory is free. It counts a body as soon as the head of the request
 * has arrived, at its declared size or, if none is declared, as one megabyte. A request that
 * exceeds the limits is refused immediately. Its connection is then closed, so that the runtime
 * frees the received bytes.
 *
 * A short body is counted until it has been read. A longer body is counted until its request has
 * been answered, because the statement keeps its SQL. The part of a body beyond `LARGE_BODY_BYTES`
 * is counted in `large_bodies.ts`, where large bodies wait for one another.
 *
 * Short bodies have a separate total, so that long bodies never block short statements. For a
 * short body from a known user, the address is not looked up, because that takes time.
 *
 * Invariant: each total is the sum over the bodies in progress; a sender without bodies has no
 * entry.
 */
import { senderOf } from "../../base/sender.ts";
import { HttpError, RETRY_SECONDS } from "./http_error.ts";
import { LARGE_BODY_BYTES } from "./large_bodies.ts";

/** Bodies up to this size count as short. */
export const SHORT_BODY_BYTES: number = 16 * 1024;

/**
 * The maximum by which half of the total for all users applies to a single user. Above it, a
 * quarter of the total applies.
 */
const FEW_BYTES: number = 32 << 20;

/** Returns whether a request declares a short body. */
export function hasShortBody({ headers }: Request): boolean {
  const declared = headers.get("content-length");
  return declared !== null && Number(declared) <= SHORT_BODY_BYTES;
}

export interface BodyBounds {
  readonly userBytesMax: number;
  /** The limit for an address, covering both known users and unknown callers. */
  readonly addressBytesMax: number;
  readonly strangerBytesMax: number;
  /**
   * The limit for all senders together. It applies to short bodies and to longer bodies
   * separately.
   */
  readonly bytesMax: number;
}

/**
 * Divides the total for all senders into limits per user and per address. The smaller the total,
 * the larger the share available to a single user and a single address, because a back end uses
 * only one of each. Every caller may send at least one body of undeclared size. Together with the
 * limits in `LargeBodies`, these limits bound the memory for all bodies.
 */
export function boundsOf(bytesMax: number): BodyBounds {
  const few = Math.min(bytesMax / 2, FEW_BYTES);
  return {
    userBytesMax: Math.max(LARGE_BODY_BYTES, Math.floor(bytesMax / 4), Math.floor(few)),
    addressBytesMax: Math.max(LARGE_BODY_BYTES, Math.floor(bytesMax / 2), Math.floor(2 * few)),
    strangerBytesMax: Math.max(LARGE_BODY_BYTES, Math.floor(bytesMax / 32)),
    bytesMax: Math.max(LARGE_BODY_BYTES, bytesMax),
  };
}

/** The sender of a request body: a user or an address. */
export interface BodySender {
  /** The id of the user; undefined until the caller is authenticated. */
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

  constructor(bounds: BodyBounds) {
    this.#bounds = bounds;
  }

  /** The total size of all request bodies in progress. */
  get heldBytes(): number {
    return this.#shortBytes + this.#longBytes;
  }

  /**
   * Counts a short body from a known user.
   *
   * @throws {HttpError} RATE_LIMIT_EXCEEDED, TOO_MANY_CONNECTIONS
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
   * Counts a body, whatever its size.
   * @param declaredBytes Undefined if the request head declares no size.
   * @throws {HttpError} RATE_LIMIT_EXCEEDED, TOO_MANY_CONNECTIONS
   */
  enter(sender: BodySender, declaredBytes: number | undefined): BodyEntry {
    const { userId } = sender;
    const address = senderOf(sender.address());
    const { addressBytesMax, strangerBytesMax, userBytesMax } = this.#bounds;
    const sums: BodyBytesSum[] =
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
    const entry = new LedgerEntry((more) => {
      for (const { held, key } of sums) add(held, key, more);
      this.#longBytes += more;
    });
    entry.countAs(bytes);
    return entry;
  }
}

/** A request body that counts towards a limit. */
export interface BodyEntry {
  /** Called once the body has been read. Corrects the counted size if no size was declared. */
  isRead(bytes: number): void;
  /** Stops counting the body. Further calls have no effect. */
  leave(): void;
}

interface BodyBytesSum {
  readonly key: string;
  readonly held: Map<string, number>;
  readonly bytesMax: number;
  readonly whose: string;
}

class LedgerEntry implements BodyEntry {
  readonly #addToSums: (bytes: number) => void;
  #bytes = 0;
  #hasLeft = false;

  /**
   * Creates the entry for a request body that has just begun.
   * @param addToSums Adds bytes to every total that includes the body.
   */
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
    `Cannot read the body: the requests in progress from ${whose} exceed the limit of ` +
      `${bytesMax} bytes in total; send fewer requests at a time`,
    { retryAfterSeconds: RETRY_SECONDS, closes: true },
  );
}

function tooMuchOfAll(bytesMax: number): HttpError {
  return new HttpError(
    503,
    "TOO_MANY_CONNECTIONS",
    "Cannot read the body: the requests in progress from all clients exceed the limit of " +
      `${bytesMax} bytes in total; try again soon`,
    { retryAfterSeconds: RETRY_SECONDS, closes: true },
  );
}
