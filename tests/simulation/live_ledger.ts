/**
 * The oracle for the simulation of live queries. It keeps every version ever written, so it knows
 * the rows at each seq.
 */
import { seqFromUnixMs } from "../../src/base/seq.ts";
import type { Row } from "../../src/types/mod.ts";
import type { ManualClock } from "../support/manual_clock.ts";

export interface Version {
  readonly seq: number;
  readonly commitSeq: number;
  readonly id: number;
  readonly isDeleted: boolean;
  readonly row: Row;
  readonly before: Version | undefined;
}

/** Every version of the rows of every owner, in order of seq. */
export class Ledger {
  readonly #byOwner = new Map<number, Version[]>();
  readonly #newest = new Map<string, Version>();
  readonly #clock: ManualClock;
  readonly #ttlMs: number | undefined;

  constructor(clock: ManualClock, ttlMs: number | undefined) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  get isStream(): boolean {
    return this.#ttlMs !== undefined;
  }

  hasExpired({ seq }: { seq: number }): boolean {
    if (this.#ttlMs === undefined) return false;
    return seq < seqFromUnixMs(this.#clock.nowMs() - this.#ttlMs + 1);
  }

  add(
    owner: number,
    seqs: Iterable<{ seq: number; isDeleted: boolean; row: Row }>,
    commitSeq: number,
  ): void {
    for (const { seq, isDeleted, row } of seqs) {
      const id = Number(row[0]);
      const before = this.newest(owner, id);
      const version = { seq, commitSeq, id, isDeleted, row, before };
      this.#newest.set(`${owner}/${id}`, version);
      this.of(owner).push(version);
    }
  }

  of(owner: number): Version[] {
    let versions = this.#byOwner.get(owner);
    if (versions === undefined) this.#byOwner.set(owner, (versions = []));
    return versions;
  }

  /** Returns the newest version of the row with a key; undefined if it has expired. */
  newest(owner: number, id: number): Version | undefined {
    const newest = this.#newest.get(`${owner}/${id}`);
    return newest === undefined || this.hasExpired(newest) ? undefined : newest;
  }

  at(owner: number, seq: number): Version | undefined {
    const version = this.of(owner)[this.#countBelow(owner, seq)];
    return version?.seq === seq ? version : undefined;
  }

  between(owner: number, after: number, upTo: number): Version[] {
    if (upTo <= after) return [];
    const end = this.#countBelow(owner, upTo + 1);
    return this.of(owner).slice(this.#countBelow(owner, after + 1), end);
  }

  /** Returns the live rows at a seq, keyed by id. */
  rowsAt(owner: number, seq: number): Map<number, Version> {
    const rows = new Map<number, Version>();
    for (const version of this.of(owner)) {
      if (version.seq > seq) break;
      if (version.isDeleted) rows.delete(version.id);
      else rows.set(version.id, version);
    }
    return rows;
  }

  /** Returns how many versions of an owner have a seq below the given one. */
  #countBelow(owner: number, seq: number): number {
    const versions = this.of(owner);
    let low = 0;
    let high = versions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((versions[middle]?.seq ?? Infinity) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
