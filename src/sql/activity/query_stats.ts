/**
 * Keeps statistics about statements: the number of calls, their durations, and the number of rows.
 * Statements that differ only in their literals are counted together.
 *
 * Durations are counted in logarithmic buckets, twelve per doubling. A percentile is therefore off
 * by at most 6 %, and recording a statement takes only a few array accesses. The statistics begin
 * at server startup. When there are too many statements, the least recently executed ones are
 * dropped.
 */

import { xxHash3 } from "../../base/checksum.ts";

/** The maximum number of statements, and the number of statements dropped when it is exceeded. */
const STATEMENTS_MAX = 1000;
const EVICTED_COUNT = 100;

/** The maximum number of bulk load shapes remembered at the same time. */
const SHAPES_MAX = 200;

const BUCKETS_PER_DOUBLING = 12;
/** How many doublings the buckets cover: from a microsecond to more than an hour. */
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
  /** When the statement last ran, in milliseconds on the monotonic clock. */
  lastSeenMs = 0;
  readonly #buckets = new Uint32Array(BUCKET_COUNT);

  constructor(fingerprint: string, sql: string) {
    this.fingerprint = fingerprint;
    this.sql = sql;
  }

  /**
   * Records an execution.
   * @param atMs When it ended, on the monotonic clock.
   * @param execution.ms How long it took.
   */
  note(atMs: number, { ms, rows }: { readonly ms: number; readonly rows: number }): void {
    this.lastSeenMs = atMs;
    this.calls += 1;
    this.rows += rows;
    this.totalMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
    const bucket = bucketOf(ms);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
  }

  /**
   * Returns the duration that the given share of the calls did not exceed.
   * @param share Between 0 and 1.
   */
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
  /**
   * The statistics, keyed by an object that all executions of a statement share. A lookup by this
   * object avoids hashing the SQL.
   */
  #byStatement = new WeakMap<object, QueryStat>();
  /**
   * The statistics of bulk loads, keyed by shape, so that a repeated load does not have to be
   * printed again.
   */
  readonly #byShape = new Map<string, QueryStat>();

  /**
   * Returns the statistics of a statement.
   *
   * @param statement An object that identifies the statement across executions.
   *
   * @param textOf Returns the SQL of the statement without literals and secrets, from `source`.
   *   Called only when the statement is first seen.
   */
  of<T>(statement: object, textOf: (source: T) => string, source: T): QueryStat {
    return this.known(statement) ?? this.#find(statement, textOf(source));
  }

  /**
   * Returns the statistics of a statement without a cached syntax tree.
   *
   * @param shape A string shared only by statements that have the same printed form.
   */
  ofShape(shape: string, textOf: () => string): QueryStat {
    const known = this.#byShape.get(shape);
    if (known !== undefined) return known;
    const stat = this.#withText(textOf());
    if (this.#byShape.size >= SHAPES_MAX) this.#byShape.clear();
    this.#byShape.set(shape, stat);
    return stat;
  }

  /** Returns the statistics of a statement; undefined if it has not been seen before. */
  known(statement: object): QueryStat | undefined {
    return this.#byStatement.get(statement);
  }

  /** Returns the statistics in order of first execution. */
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
    // Dropped statements start again with zero counts, so the keys that refer to their old
    // statistics are forgotten.
    this.#byStatement = new WeakMap();
    this.#byShape.clear();
  }
}

function hex(half: number): string {
  return half.toString(16).padStart(8, "0");
}
