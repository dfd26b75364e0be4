/**
 * Ensures that requests with the same idempotency key run at most once. The response is stored in
 * an internal table, by the same commit as the request's changes. After a crash, either both or
 * neither of them exists.
 *
 *     no record ──run──► record ──same body──► the kept response
 *                                ──another body──► IDEMPOTENCY_CONFLICT
 *                                ──older than the TTL──► as if there were none
 *
 * - A key belongs to its user: the record is a row with that owner.
 * - A user who has lost the right to run the request does not get its response again.
 * - A repeated request waits while the first one runs. A request that fails or changes no rows
 *   leaves no record, so it may run again.
 * - The records of a user take at most `idempotencyBytesMax` bytes; a request that would exceed
 *   this limit fails.
 * - The record is the last row of its commit, so its `_seq` is the `last_seq` of the commit.
 * - The store removes expired records, including those of inactive owners. If a segment with
 *   records is damaged, requests of owners who may have a record in it are refused until its last
 *   record has expired.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_COLUMN_ID, type TableWrite } from "../../storage/mod.ts";
import type { Row } from "../../types/mod.ts";
import { ANSWER_COLUMN_IDS, ANSWERS_TABLE } from "../own_tables/answers_table.ts";
import type { SqlRequest, SqlResponse, StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { expectedFailure } from "./at_statement.ts";

/**
 * The memory that a record takes in addition to its response, in bytes: the key, the digest, and
 * overhead in the store.
 */
const RECORD_BYTES = 512;

/** The maximum length of a stored response. A longer response is stored without its rows. */
const ANSWER_LENGTH_MAX = 1024 * 1024;

/**
 * Creates the writes that record a response. Called in the tick in which the changes are
 * committed.
 */
export type AnswerRecorder = (answer: KeptAnswer) => readonly TableWrite[];

export interface KeptAnswer {
  readonly results: readonly StatementResult[];
  /**
   * The index of the entry that has the seq of the record as its `last_seq`: the COMMIT or, if
   * there is none, the last change.
   */
  readonly commitIndex?: number;
}

/** A request with an idempotency key, and the operations that run it. */
export interface KeyedRequest {
  /** Runs the request. Its commit must include the writes that the recorder returns. */
  readonly run: (recorder: AnswerRecorder) => Promise<SqlResponse>;
  /** Returns whether the caller still has the rights that the request requires. */
  readonly isStillAllowed: () => Promise<boolean>;
}

interface Running {
  readonly digest: string;
  readonly answered: Promise<void>;
}

type AnswerDeps = Pick<SqlEnvironment, "catalog" | "clock" | "limits" | "store">;

export class IdempotentRequests {
  readonly #deps: AnswerDeps;
  /** The running requests, keyed by owner and idempotency key. */
  readonly #running = new Map<string, Running>();
  readonly #kept: KeptBytes;

  constructor(deps: AnswerDeps) {
    this.#deps = deps;
    this.#kept = new KeptBytes(deps.clock, deps.limits.idempotencyTtlMs);
  }

  /**
   * Runs a request, or returns its stored response.
   *
   * @throws {DatabaseError} IDEMPOTENCY_CONFLICT
   */
  async execute(
    principal: Principal,
    { key, digest }: NonNullable<SqlRequest["idempotency"]>,
    { isStillAllowed, run }: KeyedRequest,
  ): Promise<SqlResponse> {
    const owner = this.#deps.catalog.accounts.ownerNumber(principal.actorId, { create: true });
    assert(owner !== undefined, "idempotency record: caller has no owner number");
    const name = `${owner} ${key}`;
    for (;;) {
      const running = this.#running.get(name);
      if (running === undefined) break;
      if (running.digest !== digest) throw conflict(key);
      await running.answered;
    }
    const kept = this.#keptAnswer(owner, key, digest);
    if (kept !== undefined) {
      if (await isStillAllowed()) return { results: kept, isReplayed: true };
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot repeat the response for idempotency_key "${key}": you no longer have the ` +
          "rights to run the request",
      );
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running.set(name, { digest, answered: promise });
    try {
      return await run((answer) => this.#writes(owner, { key, digest, answer }));
    } finally {
      this.#running.delete(name);
      resolve();
    }
  }

  /**
   * Returns the stored response to an earlier request with this key, if there is one.
   * @throws {DatabaseError} IDEMPOTENCY_CONFLICT
   */
  #keptAnswer(owner: number, key: string, digest: string): readonly StatementResult[] | undefined {
    const row = this.#recordOf(owner, key);
    if (row === undefined) return undefined;
    const [, keptDigest, answer, createdAtMs, seq] = row;
    if (this.#isExpired(createdAtMs)) return undefined;
    if (keptDigest !== digest) throw conflict(key);
    assert(typeof answer === "string", "idempotency record: stored answer is not a string");
    const { results, commitIndex } = JSON.parse(answer) as KeptAnswer;
    if (commitIndex === undefined) return results;
    const commit = results[commitIndex];
    assert(commit !== undefined, "idempotency record: stored answer lacks the commit entry");
    return results.with(commitIndex, { ...commit, lastSeq: Number(seq) });
  }

  #recordOf(owner: number, key: string): Row | undefined {
    const { store } = this.#deps;
    const columnIds = [...ANSWER_COLUMN_IDS, SEQ_COLUMN_ID];
    try {
      return store.lookup(ANSWERS_TABLE.tableId, {
        owner,
        key: [key],
        upTo: store.appliedSeq,
        columnIds,
      });
    } catch (error) {
      const failure = expectedFailure(error);
      throw failure.code === "DATA_DAMAGED" ? this.#damaged(failure) : failure;
    }
  }

  /**
   * Replaces an error about damage, because its usual advice does not apply: users cannot drop the
   * internal table of responses.
   */
  #damaged({ message }: DatabaseError): DatabaseError {
    const seconds = Math.ceil(this.#deps.limits.idempotencyTtlMs / 1000);
    return new DatabaseError(
      "DATA_DAMAGED",
      `Cannot look up the stored response for this idempotency_key: ${message}`,
      {
        hint:
          `the damaged records expire ${seconds} s after they were written ` +
          "(limits.idempotency_ttl_secs); until then, run a query to check whether the request " +
          "was executed, and if it was not, send it without a key",
      },
    );
  }

  /**
   * Whether a record has expired. The store may still contain it, because rows with a `_seq` ahead
   * of the clock are removed later.
   */
  #isExpired(createdAtMs: unknown): boolean {
    const { clock, limits } = this.#deps;
    return clock.nowMs() - Number(createdAtMs) >= limits.idempotencyTtlMs;
  }

  #writes(
    owner: number,
    { answer, digest, key }: { key: string; digest: string; answer: KeptAnswer },
  ): TableWrite[] {
    const text = JSON.stringify(answer);
    const kept = text.length <= ANSWER_LENGTH_MAX ? text : JSON.stringify(countsOf(answer));
    this.#count(owner, RECORD_BYTES + kept.length);
    const row: Row = [key, digest, kept, this.#deps.clock.nowMs()];
    const operation = this.#recordOf(owner, key) === undefined ? "insert" : "update";
    return [{ tableId: ANSWERS_TABLE.tableId, owner, operation, rows: [row] }];
  }

  /**
   * Adds the size of a stored response to its owner's total. @throws {DatabaseError}
   * LIMIT_EXCEEDED
   */
  #count(owner: number, bytes: number): void {
    const { idempotencyBytesMax: bytesMax, idempotencyTtlMs } = this.#deps.limits;
    if (bytesMax === 0) return;
    if (this.#kept.of(owner) + bytes > bytesMax) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        "Cannot store the response for this idempotency_key: the stored responses of a user " +
          `may take at most ${bytesMax} bytes`,
        {
          hint:
            `responses expire after ${Math.ceil(idempotencyTtlMs / 1000)} s; return fewer rows, ` +
            "send the request without a key, or raise limits.idempotency_bytes_per_user",
        },
      );
    }
    this.#kept.add(owner, bytes);
  }
}

/** Returns a response without the rows of its results. */
function countsOf(answer: KeptAnswer): KeptAnswer {
  const results = answer.results.map(
    ({ asUser, lastSeq, message, notices, rowCount }): StatementResult => ({
      rowCount,
      asUser,
      ...(message === undefined ? {} : { message }),
      ...(lastSeq === undefined ? {} : { lastSeq }),
      ...(notices === undefined ? {} : { notices }),
    }),
  );
  return { ...answer, results };
}

function conflict(key: string): DatabaseError {
  return new DatabaseError(
    "IDEMPOTENCY_CONFLICT",
    `Cannot run the request: its idempotency_key "${key}" has already been used for a ` +
      "different request body",
    {
      hint: "use a new key for each request; to repeat a request, send exactly the same body again",
    },
  );
}

/** The number of parts into which the time to live of responses is divided. */
const PARTS = 32;

interface KeptBytesPart {
  readonly endMs: number;
  bytes: number;
}

/**
 * Counts the bytes of stored responses for each owner. Only responses written by this process are
 * counted; older responses expire without being counted.
 *
 * Expiry times are rounded up to a fraction of the time to live, so only a few numbers are kept
 * for each owner, however many responses there are. An owner without responses is removed at the
 * next check.
 */
class KeptBytes {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** For each owner, the bytes of stored responses by expiry time, oldest first. */
  readonly #byOwner = new Map<number, KeptBytesPart[]>();

  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /** Returns the total size of an owner's unexpired responses, in bytes. */
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

  #standing(owner: number): KeptBytesPart[] {
    const nowMs = this.#clock.monotonicMs();
    const parts = (this.#byOwner.get(owner) ?? []).filter(({ endMs }) => endMs > nowMs);
    if (parts.length === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, parts);
    return parts;
  }
}
