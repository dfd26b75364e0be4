/**
 * Stores the positions of live queries so that they outlive the program: a reloaded page or a
 * restarted script continues after the last change that it received.
 *
 * A position belongs to a single query of a single user. With the same key, a different query or a
 * different user finds no position and starts from the beginning.
 */
import { kindOf, type ValueRule } from "./checks.ts";

/** The methods of `localStorage` that the client uses. A script can supply its own object. */
export interface PositionStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export const STORAGE: ValueRule = {
  should: "an object like localStorage, with getItem, setItem and removeItem",
  holds: (value) =>
    typeof value === "object" &&
    value !== null &&
    ["getItem", "setItem", "removeItem"].every(
      (name) => typeof (value as Record<string, unknown>)[name] === "function",
    ),
};

/**
 * Returns the storage for positions.
 * @param option The option that requires the storage, for the message.
 * @throws {TypeError} If no storage is given and the runtime has none.
 */
export function storageFor(given: PositionStorage | undefined, option: string): PositionStorage {
  if (given !== undefined) return given;
  const { localStorage } = globalThis as { localStorage?: unknown };
  if (STORAGE.holds(localStorage)) return localStorage as PositionStorage;
  throw new TypeError(
    `Cannot use ${option}: it needs a storage, but localStorage is ${kindOf(localStorage)}; ` +
      "write createClient({ url, storage }), where storage is an object with getItem, setItem " +
      "and removeItem",
  );
}

export interface PositionOptions {
  readonly storage: PositionStorage;
  readonly key: string;
  /** A string that identifies the query. Different queries have different strings. */
  readonly query: string;
}

/**
 * A stored position. It includes the token's claims if the query reads them, because a resume
 * sends them back.
 */
export interface KeptPlace {
  readonly seq: number;
  readonly claims: string | undefined;
}

/** The stored position of one live query. */
export class KeptPosition {
  readonly #options: PositionOptions;
  #written: KeptPlace | undefined;

  constructor(options: PositionOptions) {
    this.#options = options;
  }

  read(user: string | undefined): KeptPlace | undefined {
    const { key, storage } = this.#options;
    const [owner, digits, claims] = (storage.getItem(key) ?? "").split(" ");
    const seq = Number(digits);
    return owner === this.#ownerOf(user) && Number.isSafeInteger(seq) ? { seq, claims } : undefined;
  }

  write(user: string | undefined, seq: number, claims: string | undefined): void {
    if (seq === this.#written?.seq && claims === this.#written.claims) return;
    const words = [this.#ownerOf(user), seq, ...(claims === undefined ? [] : [claims])];
    this.#options.storage.setItem(this.#options.key, words.join(" "));
    this.#written = { seq, claims };
  }

  clear(): void {
    this.#options.storage.removeItem(this.#options.key);
    this.#written = undefined;
  }

  #ownerOf(user: string | undefined): string {
    return hashOf(JSON.stringify([this.#options.query, user ?? null]));
  }
}

/**
 * Returns two FNV-1a-style hashes of a text, as a single string. The hash is stored in place of
 * the text because the text may be long, not because it is secret.
 */
function hashOf(text: string): string {
  let [low, high] = [0x811c9dc5, 0x01000193];
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ (unit + index), 0x85ebca6b);
  }
  return [low, high].map((word) => (word >>> 0).toString(36)).join("-");
}
