/**
 * Turns rows and changes into messages. This module decides which changes share a message and how
 * large a message may become.
 *
 * Invariants: a message never contains changes from two commits, of two kinds, or with different
 * reasons. Messages keep the order of the changes, so a client that resumes from the highest
 * `_seq` of any message skips nothing. Only a message with a single row may exceed the frame size.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type {
  BatchControl,
  ChangeMessage,
  InitialDataBatch,
  SubscriptionAck,
  WireRow,
} from "../../protocol/mod.ts";
import type { Store } from "../../storage/mod.ts";
import type { PagedBatch, SharedMessage } from "../contract/live.ts";
import type { LiveChange } from "../program/live_program.ts";
import {
  ENVELOPE_BYTES_MAX,
  exactTextBytes,
  roughTextBytes,
  rowBytes,
} from "../rows/frame_budget.ts";
import { RowPage } from "../rows/row_page.ts";

/** The maximum number of rows in a `change` message, as documented for clients in docs/live.md. */
const CHANGE_ROWS_MAX = 1000;

/**
 * The maximum number of subscription ids for which finished messages are kept. Clients running the
 * same program tend to choose the same ids, and then share complete messages; other clients share
 * only the rows of a message.
 */
const MESSAGES_MAX = 4;

/** A `change` message before it is addressed to a subscription. */
export interface PendingChange {
  readonly type: LiveChange["type"];
  readonly reason?: LiveChange["reason"];
  readonly rows: readonly WireRow[];
  /** The old values of updated and deleted rows, in the order of the changes. */
  readonly oldValues: readonly WireRow[];
  readonly commitSeq: number;
  /** The time of the commit that made the changes, in Unix milliseconds. */
  readonly commitMs: number;
  /** The seq of the last change in the message. */
  readonly lastSeq: Seq;
  /** The number of changes in the message. */
  readonly count: number;
  /**
   * Whether this is the last message of its commit. Set only for a materialised query.
   */
  readonly isCommitEnd?: boolean;
}

/** Options for turning changes into messages. */
export interface PendingChangeOptions {
  readonly frameBytesMax: number;
  /** Provides the time of each commit. */
  readonly store: Pick<Store, "commitMs">;
}

/**
 * Removes and returns the longest run of changes that may share a message.
 *
 * @param start The index of the first change.
 * @param options.countMax The maximum number of changes to take, at least 1; absent if only the
 *   message size is limited.
 */
export function pendingChangeFrom(
  changes: readonly LiveChange[],
  start: number,
  {
    countMax = CHANGE_ROWS_MAX,
    frameBytesMax,
    store,
  }: PendingChangeOptions & { countMax?: number },
): PendingChange {
  const first = changes[start];
  assert(first !== undefined, "change message: no change at the start position");
  const { type, commitSeq, reason } = first;
  const isLikeFirst = (other: LiveChange | undefined): boolean =>
    other?.type === type && other.commitSeq === commitSeq && other.reason === reason;
  const limit = Math.min(changes.length, start + Math.min(countMax, CHANGE_ROWS_MAX));
  let end = start + 1;
  while (end < limit && isLikeFirst(changes[end])) end += 1;
  if (end > start + 1) end = start + fittingCount(changes.slice(start, end), frameBytesMax);
  const rows: WireRow[] = [];
  const oldValues: WireRow[] = [];
  let lastSeq = first.seq;
  for (let index = start; index < end; index += 1) {
    const change = changes[index];
    assert(change !== undefined, "change message: missing change within a run");
    if (change.row !== undefined) rows.push(change.row);
    if (change.old !== undefined) oldValues.push(change.old);
    lastSeq = change.seq;
  }
  const commitMs = store.commitMs(commitSeq);
  const pending = { type, rows, oldValues, commitSeq, commitMs, lastSeq, count: end - start };
  return reason === undefined ? pending : { ...pending, reason };
}

/** Addresses a pending change to a subscription id. */
export function changeMessage(pending: PendingChange, subscriptionId: string): ChangeMessage {
  const { type, reason, rows, oldValues, commitMs: ts, commitSeq, isCommitEnd } = pending;
  const end = isCommitEnd === undefined ? {} : { commit_end: isCommitEnd };
  if (type === "insert") {
    return {
      type: "change",
      subscription_id: subscriptionId,
      change_type: type,
      rows,
      ts,
      commit_seq: commitSeq,
      ...end,
    };
  }
  return {
    type: "change",
    subscription_id: subscriptionId,
    change_type: type,
    rows,
    old_values: oldValues,
    ...(reason !== undefined && { reason }),
    ts,
    commit_seq: commitSeq,
    ...end,
  };
}

/** @param options.result For a materialised query: its key and its order. */
export function ackMessage(options: {
  subscriptionId: string;
  control: BatchControl;
  schema: SubscriptionAck["schema"];
  claimsKey: string | undefined;
  result?: Pick<SubscriptionAck, "key_columns" | "sort">;
}): SubscriptionAck {
  return {
    type: "subscription_ack",
    subscription_id: options.subscriptionId,
    total_rows: 0,
    batch_control: options.control,
    schema: options.schema,
    ...(options.claimsKey !== undefined && { claims: options.claimsKey }),
    ...options.result,
  };
}

/**
 * Builds the message for a batch of a subscription's rows. The rows of a page stay in columnar
 * form until row objects are requested.
 */
export function sharedBatch(options: {
  subscriptionId: string;
  rows: readonly WireRow[] | RowPage;
  control: BatchControl;
}): SharedMessage {
  const { control, rows, subscriptionId } = options;
  if (rows instanceof RowPage) return new PageMessage({ subscriptionId, rows, control });
  return shared(batchMessage(options, rows));
}

/** A batch message that creates its row objects on first access. */
class PageMessage implements SharedMessage {
  readonly encoded: SharedMessage["encoded"] = [];
  readonly paged: PagedBatch;
  #message: InitialDataBatch | undefined;

  constructor(paged: PagedBatch) {
    this.paged = paged;
  }

  get message(): InitialDataBatch {
    this.#message ??= batchMessage(this.paged, this.paged.rows.rows());
    return this.#message;
  }
}

function batchMessage(
  { control, subscriptionId }: Omit<PagedBatch, "rows">,
  rows: readonly WireRow[],
): InitialDataBatch {
  return {
    type: "initial_data_batch",
    subscription_id: subscriptionId,
    rows,
    batch_control: control,
  };
}

export function shared(message: SharedMessage["message"]): SharedMessage {
  return { message, encoded: [] };
}

/**
 * The messages created from a pending change or a batch, keyed by subscription id. A list takes
 * less memory than a map, and most changes to results have one subscriber.
 */
export class Messages {
  readonly #ids: string[] = [];
  readonly #made: SharedMessage[] = [];

  get(id: string, make: () => SharedMessage): SharedMessage {
    const known = this.#made[this.#ids.indexOf(id)];
    if (known !== undefined) return known;
    const made = make();
    if (this.#ids.length < MESSAGES_MAX) {
      this.#ids.push(id);
      this.#made.push(made);
    }
    return made;
  }
}

/**
 * Returns how many changes, counted from the first, fit into a frame. The result is at least 1.
 */
function fittingCount(changes: readonly LiveChange[], frameBytesMax: number): number {
  if (roughBytes(changes) <= frameBytesMax - ENVELOPE_BYTES_MAX) return changes.length;
  let bytes = 0;
  for (const [index, { row, old }] of changes.entries()) {
    if (row !== undefined) bytes += rowBytes(row, exactTextBytes);
    if (old !== undefined) bytes += rowBytes(old, exactTextBytes);
    if (bytes > frameBytesMax - ENVELOPE_BYTES_MAX) return Math.max(1, index);
  }
  return changes.length;
}

function roughBytes(changes: readonly LiveChange[]): number {
  let bytes = 0;
  for (const { row, old } of changes) {
    if (row !== undefined) bytes += rowBytes(row, roughTextBytes);
    if (old !== undefined) bytes += rowBytes(old, roughTextBytes);
  }
  return bytes;
}
