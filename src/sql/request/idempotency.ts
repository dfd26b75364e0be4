/**
 * Requests that carry a key run once: the answer is kept in a table of the store's own, written by
 * the commit that writes the request's changes, so that after a crash both are there or neither.
 *
 *     no record ──run──► record ──same body──► the kept answer
 *                                ──another body──► IDEMPOTENCY_CONFLICT
 *                                ──older than the TTL──► as if there were none
 *
 * - A key belongs to its user: the record lies among the rows of that owner.
 * - Whoever has lost the right to run the request is not told its answer again.
 * - A repeat waits for the first request while that runs. A request that fails or changes no row
 *   leaves no record, so it may run again.
 * - A user has at most `idempotencyBytesMax` of records; a request that would exceed it fails.
 * - The record is the last row of its commit, so its `_seq` is the `last_seq` of that commit.
 * - The store forgets expired records, also of owners who never come back. Damage to a segment of
 *   them refuses who may have a record in it until the last one there has expired.
 */

import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_COLUMN_ID, type TableWrite } from "../../storage/mod.ts";
import type { Row } from "../../types/mod.ts";
import { ANSWER_COLUMN_IDS, ANSWERS_TABLE } from "../common/answers_table.ts";
import type { SqlRequest, SqlResponse, StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { expectedFailure } from "./at_statement.ts";
import { KeptBytes } from "./kept_bytes.ts";

/** The bytes of a record besides its answer: key, digest, and overhead in the store. */
const RECORD_BYTES = 512;

/** A longer answer is kept as its counts. */
const ANSWER_LENGTH_MAX = 1024 * 1024;

/** Makes the writes that record an answer, in the turn in which its changes are committed. */
export type AnswerRecorder = (answer: KeptAnswer) => readonly TableWrite[];

export interface KeptAnswer {
  readonly results: readonly StatementResult[];
  /** The entry whose `last_seq` is that of the record: COMMIT, or without one the last change. */
  readonly commitIndex?: number;
}

/** One request, and what can be asked about it. */
export interface KeyedRequest {
  /** Runs it; its commit is to hold the writes of the recorder. */
  readonly run: (recorder: AnswerRecorder) => Promise<SqlResponse>;
  /** Whether its caller has the rights that it takes now, too. */
  readonly isStillAllowed: () => Promise<boolean>;
}

interface Running {
  readonly digest: string;
  readonly answered: Promise<void>;
}

type AnswerWorld = Pick<SqlEnvironment, "catalog" | "clock" | "limits" | "store">;

export class IdempotentRequests {
  readonly #world: AnswerWorld;
  /** Requests under way, by owner and key. */
  readonly #running = new Map<string, Running>();
  readonly #kept: KeptBytes;

  constructor(world: AnswerWorld) {
    this.#world = world;
    this.#kept = new KeptBytes(world.clock, world.limits.idempotencyTtlMs);
  }

  /** @throws {DatabaseError} IDEMPOTENCY_CONFLICT */
  async execute(
    principal: Principal,
    { key, digest }: NonNullable<SqlRequest["idempotency"]>,
    { isStillAllowed, run }: KeyedRequest,
  ): Promise<SqlResponse> {
    const owner = this.#world.catalog.ownerNumber(principal.actorId, { create: true });
    assert(owner !== undefined, "a caller has a number once it was asked to be made");
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
        `Cannot answer the request of idempotency_key "${key}" again: you may no longer run it`,
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

  /** @throws {DatabaseError} IDEMPOTENCY_CONFLICT */
  #keptAnswer(owner: number, key: string, digest: string): readonly StatementResult[] | undefined {
    const row = this.#recordOf(owner, key);
    if (row === undefined) return undefined;
    const [, keptDigest, answer, createdAtMs, seq] = row;
    if (this.#isExpired(createdAtMs)) return undefined;
    if (keptDigest !== digest) throw conflict(key);
    assert(typeof answer === "string", "a record has an answer");
    const { results, commitIndex } = JSON.parse(answer) as KeptAnswer;
    if (commitIndex === undefined) return results;
    const commit = results[commitIndex];
    assert(commit !== undefined, "a kept answer has the entry of its commit");
    return results.with(commitIndex, { ...commit, lastSeq: Number(seq) });
  }

  #recordOf(owner: number, key: string): Row | undefined {
    const { store } = this.#world;
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
      throw failure.condition === "DATA_DAMAGED" ? this.#damaged(failure) : failure;
    }
  }

  /** Nobody can drop this table, so the advice of others would be of no use. */
  #damaged({ message }: DatabaseError): DatabaseError {
    const seconds = Math.ceil(this.#world.limits.idempotencyTtlMs / 1000);
    return new DatabaseError(
      "DATA_DAMAGED",
      `Cannot look for the kept answer of this idempotency_key: ${message}`,
      {
        hint: `the damaged records go by themselves ${seconds} s after they were written (limits.idempotency_ttl_secs); until then check by a query whether the request was done, and send it without a key if it was not`,
      },
    );
  }

  /**
   * Also for what the store still has: a `_seq` may be ahead of the clock, and its row lives
   * longer.
   */
  #isExpired(createdAtMs: unknown): boolean {
    const { clock, limits } = this.#world;
    return clock.nowMs() - Number(createdAtMs) >= limits.idempotencyTtlMs;
  }

  #writes(
    owner: number,
    { answer, digest, key }: { key: string; digest: string; answer: KeptAnswer },
  ): TableWrite[] {
    const text = JSON.stringify(answer);
    const kept = text.length <= ANSWER_LENGTH_MAX ? text : JSON.stringify(countsOf(answer));
    this.#count(owner, RECORD_BYTES + kept.length);
    const row: Row = [key, digest, kept, this.#world.clock.nowMs()];
    const operation = this.#recordOf(owner, key) === undefined ? "insert" : "update";
    return [{ tableId: ANSWERS_TABLE.tableId, owner, operation, rows: [row] }];
  }

  /** @throws {DatabaseError} LIMIT_EXCEEDED */
  #count(owner: number, bytes: number): void {
    const { idempotencyBytesMax: bytesMax, idempotencyTtlMs } = this.#world.limits;
    if (bytesMax === 0) return;
    if (this.#kept.of(owner) + bytes > bytesMax) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot keep the answer for its idempotency_key: the kept answers of this user may take at most ${bytesMax} bytes`,
        {
          hint: `an answer expires after ${Math.ceil(idempotencyTtlMs / 1000)} s; return fewer rows, send the request without a key, or raise limits.idempotency_bytes_per_user`,
        },
      );
    }
    this.#kept.add(owner, bytes);
  }
}

/** An answer without its rows. */
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
    `Cannot run the request: idempotency_key "${key}" was used with another body`,
    { hint: "use a new key for each request; repeat one unchanged" },
  );
}
