/**
 * Keeps the acknowledgements of a transaction until its commit writes them. As a result, either
 * both the effects of a message and its acknowledgement exist, or neither does.
 *
 * - Other consumers of a group may acknowledge messages in the meantime. The rows to write are
 *   therefore created in the tick of the commit, regardless of the transaction's snapshot.
 * - If another consumer has acknowledged a message, the transaction fails, because the effects of
 *   the message have already been committed.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { TableWrite } from "../../storage/mod.ts";
import type { AckStatement } from "../parse/ast/ast.ts";
import type { PreparedTopicAck, TopicAccess, TopicAckRequest } from "../ports/ports.ts";

/** The acknowledgements of a transaction in the form in which its commit writes them. */
export interface CommittedAcks {
  readonly writes: readonly TableWrite[];
  /** Must be called in the tick in which the acknowledgements are committed. */
  done(): void;
  /** Must be called instead of `done` if the acknowledgements are not committed. */
  abandoned(): void;
}

/** The acknowledgements that a transaction had at a savepoint. */
export type AcksMark = ReadonlyMap<string, TopicAckRequest>;

export class TransactionAcks {
  readonly #topics: () => TopicAccess;
  /** The acknowledgement requests, keyed by topic, partition and group. */
  #requests = new Map<string, TopicAckRequest>();

  constructor(topics: () => TopicAccess) {
    this.#topics = topics;
  }

  /**
   * Checks an acknowledgement, and keeps it for the commit. Returns the group's committed offset
   * (exclusive) after that commit.
   *
   * @throws {DatabaseError} ALREADY_ACKNOWLEDGED, INVALID_OPERATION, and errors of the topic
   */
  add(request: TopicAckRequest, node: AckStatement): number {
    const key = `${request.topicId} ${request.partition} ${request.group}`;
    const all = merged(this.#requests.get(key), request, node);
    const prepared = this.#topics().prepareAck(all);
    prepared.abandoned();
    requireNew(prepared, all);
    this.#requests.set(key, all);
    return prepared.committedOffset;
  }

  mark(): AcksMark {
    return new Map(this.#requests);
  }

  /** Discards the acknowledgements that were added since a savepoint. */
  returnTo(mark: AcksMark): void {
    this.#requests = new Map(mark);
  }

  get isEmpty(): boolean {
    return this.#requests.size === 0;
  }

  /**
   * Creates the writes for the acknowledgements from the state in this tick. @throws
   * {DatabaseError}
   */
  prepare(): CommittedAcks {
    const prepared: PreparedTopicAck[] = [];
    const abandoned = (): void => {
      for (const each of prepared) each.abandoned();
    };
    try {
      for (const request of this.#requests.values()) {
        const next = this.#topics().prepareAck(request);
        prepared.push(next);
        requireNew(next, request);
      }
    } catch (error) {
      abandoned();
      throw error;
    }
    const writes = prepared.flatMap((each) =>
      each.writes.map((write) => ({ ...write, isCurrent: true })),
    );
    const done = (): void => {
      for (const each of prepared) each.done();
    };
    return { writes, done, abandoned };
  }
}

/** Combines two acknowledgements of the same group. @throws {DatabaseError} INVALID_OPERATION */
function merged(
  before: TopicAckRequest | undefined,
  request: TopicAckRequest,
  node: AckStatement,
): TopicAckRequest {
  if (before === undefined) return request;
  if (before.upTo !== undefined && request.upTo !== undefined) {
    return { ...request, upTo: Math.max(before.upTo, request.upTo) };
  }
  if (before.offsets !== undefined && request.offsets !== undefined) {
    const offsets = new Set([...before.offsets, ...request.offsets]);
    return { ...request, offsets: [...offsets].toSorted((left, right) => left - right) };
  }
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot acknowledge messages for group "${request.group}" with both UPTO OFFSET and ` +
      "OFFSETS in one transaction: use only one of the two",
    { position: node._location.start },
  );
}

/** Refuses to acknowledge messages a second time. @throws {DatabaseError} ALREADY_ACKNOWLEDGED */
function requireNew(
  { acknowledgedCount }: PreparedTopicAck,
  { group, offsets, partition }: TopicAckRequest,
): void {
  if (acknowledgedCount >= (offsets?.length ?? 1)) return;
  throw new DatabaseError(
    "ALREADY_ACKNOWLEDGED",
    `Cannot acknowledge messages in partition ${partition} for group "${group}" again: they ` +
      "have already been acknowledged, and the changes made together with the acknowledgement " +
      "have been committed",
    { hint: "the transaction was rolled back; continue with the next message" },
  );
}
