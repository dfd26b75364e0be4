/**
 * Stores the ids of revoked tokens and sessions.
 *
 * An entry is kept until a day after every token that it revokes has expired, in case the clock
 * jumps. Whenever an entry is added, a few old entries are checked, and removed if they are no
 * longer needed.
 */
import { type Clock, HOUR_MS } from "../base/clock.ts";
import type { CatalogRevocations, RevokeOptions } from "./catalog.ts";
import { allSealed, putSealed, removeSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

export interface RevocationRecord {
  readonly id: string;
  readonly revokedAtMs: number;
  readonly expiresAtMs: number;
  /**
   * The id of the token whose use retired the revoked token; absent if no successor retired it.
   */
  readonly successorId?: string;
}

const KEPT_MS: number = 24 * HOUR_MS;

/**
 * The number of entries checked for expiry whenever an entry is added. It is greater than one, so
 * that expired entries cannot accumulate.
 */
const LOOKED_AT_COUNT = 16;

export class Revocations implements CatalogRevocations {
  /** The version number of the revocation list. Every revocation increments it. */
  version = 0;
  readonly #file: SqliteFile;
  readonly #clock: Clock;
  /** The entries in the order in which they were last checked for expiry, oldest first. */
  readonly #entries = new Map<string, RevocationRecord>();
  /** The ids of the entries that had already expired when the catalog was opened. */
  readonly #over = new Set<string>();

  constructor(file: SqliteFile, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
    for (const entry of allSealed<RevocationRecord>(file, "revocations")) {
      if (this.#isOver(entry)) this.#over.add(entry.id);
      else this.#entries.set(entry.id, entry);
    }
  }

  isRevoked(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Returns the revocation of an id, or undefined if the id is not revoked. */
  revocation(id: string): RevocationRecord | undefined {
    return this.#entries.get(id);
  }

  /**
   * Revokes an id. If the id is already revoked, the first revocation's time and successor are
   * kept, unless `isAnew` is set.
   */
  revoke(
    id: string,
    expiresAtMs: number,
    { isAnew = false, successorId }: RevokeOptions = {},
  ): void {
    const before = this.#entries.get(id);
    const successor = before === undefined ? successorId : before.successorId;
    const nowMs = this.#clock.nowMs();
    const entry = {
      id,
      revokedAtMs: isAnew ? nowMs : (before?.revokedAtMs ?? nowMs),
      expiresAtMs: Math.max(expiresAtMs, before?.expiresAtMs ?? 0),
      ...(successor === undefined ? {} : { successorId: successor }),
    };
    const oldest = this.#entries.values().take(LOOKED_AT_COUNT).toArray();
    const found = this.#over.values().take(LOOKED_AT_COUNT).toArray();
    const over = oldest.filter((other) => other.id !== id && this.#isOver(other));
    this.#file.transaction(() => {
      for (const other of found) removeSealed(this.#file, "revocations", other);
      putSealed(this.#file, "revocations", { key: id, value: entry });
      for (const other of over) removeSealed(this.#file, "revocations", other.id);
    });
    this.version += 1;
    for (const other of [...found, id]) this.#over.delete(other);
    for (const other of oldest) this.#entries.delete(other.id);
    for (const other of oldest) {
      if (!over.includes(other)) this.#entries.set(other.id, other);
    }
    this.#entries.set(id, entry);
  }

  #isOver({ expiresAtMs }: RevocationRecord): boolean {
    return expiresAtMs < this.#clock.nowMs() - KEPT_MS;
  }
}
