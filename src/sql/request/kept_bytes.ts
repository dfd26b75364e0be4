/**
 * Counts the bytes of kept answers by owner, as far as this process wrote them. Answers written
 * before a restart are not counted; they expire by themselves.
 *
 * Expiry times are rounded up to a fraction of the time to live, so an owner takes a few numbers
 * however many answers there are. An owner without answers is forgotten at the next look.
 */
import type { Clock } from "../../base/clock.ts";

/** The number of parts into which the time to live is divided. */
const PARTS = 32;

interface Part {
  readonly endMs: number;
  bytes: number;
}

export class KeptBytes {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** The parts of each owner, oldest first. */
  readonly #byOwner = new Map<number, Part[]>();

  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /** The bytes of an owner that have not expired. */
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
