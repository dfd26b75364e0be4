/**
 * How many bytes of kept answers each owner has, as this process wrote them: what an earlier one
 * left is not counted, and expires by itself.
 *
 * Times are rounded up to a part of the time to live, so an owner costs a few numbers however many
 * answers it has; and one without answers costs none once it is looked at.
 */
import type { Clock } from "../../base/clock.ts";

/** Into so many parts the time to live is divided. */
const PARTS = 32;

interface Part {
  readonly endMs: number;
  bytes: number;
}

export class KeptBytes {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** Of each owner, the oldest first. */
  readonly #byOwner = new Map<number, Part[]>();

  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /** What has not expired. */
  of(owner: number): number {
    return this.#standing(owner).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  add(owner: number, bytes: number): void {
    const parts = this.#standing(owner);
    const partMs = this.#ttlMs / PARTS;
    const endMs = (Math.floor((this.#clock.monotonicMs() + this.#ttlMs) / partMs) + 1) * partMs;
    const last = parts.at(-1);
    if (last?.endMs === endMs) last.bytes += bytes;
    else parts.push({ endMs, bytes });
    this.#byOwner.set(owner, parts);
  }

  #standing(owner: number): Part[] {
    const nowMs = this.#clock.monotonicMs();
    const parts = (this.#byOwner.get(owner) ?? []).filter(({ endMs }) => endMs > nowMs);
    if (parts.length === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, parts);
    return parts;
  }
}
