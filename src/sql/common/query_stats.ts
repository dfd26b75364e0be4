/**
 * How often statements ran, how long they took and how many rows they gave, by their text without
 * literals.
 *
 * Times are counted in buckets that grow by a twelfth of a doubling, so a percentile is off by 6 %
 * at most, and a statement costs a few array accesses. Since the start of the server; the
 * statements that were not seen for longest go first.
 */

import { xxHash3 } from "../../base/checksum.ts";

/** Statements that are remembered, and how many go at once when there are more. */
const STATEMENTS_MAX = 1000;
const EVICTED_COUNT = 100;

/** Shapes of bulk loads that are remembered. */
const SHAPES_MAX = 200;

const BUCKETS_PER_DOUBLING = 12;
/** From a microsecond to beyond an hour. */
const DOUBLINGS = 32;
const BUCKET_COUNT = DOUBLINGS * BUCKETS_PER_DOUBLING;

export class QueryStat {
  readonly fingerprint: string;
  readonly sql: string;
  calls = 0;
  errors = 0;
  rows = 0;
  totalMs = 0;
  maxMs = 0;
  /** Monotonic milliseconds. */
  lastSeenMs = 0;
  readonly #buckets = new Uint32Array(BUCKET_COUNT);

  constructor(fingerprint: string, sql: string) {
    this.fingerprint = fingerprint;
    this.sql = sql;
  }

  /** One execution ended, at a monotonic time, after `ms`. */
  note(atMs: number, { ms, rows }: { readonly ms: number; readonly rows: number }): void {
    this.lastSeenMs = atMs;
    this.calls += 1;
    this.rows += rows;
    this.totalMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
    const bucket = bucketOf(ms);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
  }

  /** The time that this share of the calls did not exceed. */
  percentile(share: number): number {
    let left = Math.ceil(this.calls * share);
    for (let bucket = 0; bucket < BUCKET_COUNT; bucket += 1) {
      left -= this.#buckets[bucket] ?? 0;
      if (left <= 0) return Math.min(upperMsOf(bucket), this.maxMs);
    }
    return this.maxMs;
  }
}

function bucketOf(ms: number): number {
  const micros = ms * 1000;
  if (micros <= 1) return 0;
  return Math.min(BUCKET_COUNT - 1, Math.floor(Math.log2(micros) * BUCKETS_PER_DOUBLING));
}

function upperMsOf(bucket: number): number {
  return 2 ** ((bucket + 1) / BUCKETS_PER_DOUBLING) / 1000;
}

export class QueryStats {
  readonly #byFingerprint = new Map<string, QueryStat>();
  /** By what executions of one statement have in common, so that no text is hashed again. */
  #byStatement = new WeakMap<object, QueryStat>();
  /** By what the texts of bulk loads have in common, so that none of them is printed again. */
  readonly #byShape = new Map<string, QueryStat>();

  /**
   * @param statement What stands for the statement from one execution to the next.
   * @param textOf Its text without literals and secrets, from `source`; asked for when it is seen
   * first.
   */
  of<T>(statement: object, textOf: (source: T) => string, source: T): QueryStat {
    return this.known(statement) ?? this.#find(statement, textOf(source));
  }

  /**
   * The same for statements that do not live on.
   *
   * @param shape Statements of one shape have one text.
   */
  ofShape(shape: string, textOf: () => string): QueryStat {
    const known = this.#byShape.get(shape);
    if (known !== undefined) return known;
    const stat = this.#withText(textOf());
    if (this.#byShape.size >= SHAPES_MAX) this.#byShape.clear();
    this.#byShape.set(shape, stat);
    return stat;
  }

  /** Undefined for a statement that is seen first. */
  known(statement: object): QueryStat | undefined {
    return this.#byStatement.get(statement);
  }

  /** In order of their first execution. */
  all(): readonly QueryStat[] {
    return [...this.#byFingerprint.values()];
  }

  #find(statement: object, text: string): QueryStat {
    const stat = this.#withText(text);
    this.#byStatement.set(statement, stat);
    return stat;
  }

  #withText(text: string): QueryStat {
    const { high, low } = xxHash3(new TextEncoder().encode(text));
    const fingerprint = hex(high) + hex(low);
    let stat = this.#byFingerprint.get(fingerprint);
    if (stat === undefined) {
      if (this.#byFingerprint.size >= STATEMENTS_MAX) this.#evict();
      stat = new QueryStat(fingerprint, text);
      this.#byFingerprint.set(fingerprint, stat);
    }
    return stat;
  }

  #evict(): void {
    const oldest = this.all().toSorted((left, right) => left.lastSeenMs - right.lastSeenMs);
    for (const { fingerprint } of oldest.slice(0, EVICTED_COUNT)) {
      this.#byFingerprint.delete(fingerprint);
    }
    // A statement that lost its place begins anew.
    this.#byStatement = new WeakMap();
    this.#byShape.clear();
  }
}

function hex(half: number): string {
  return half.toString(16).padStart(8, "0");
}
