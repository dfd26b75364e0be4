/**
 * From rows and changes to messages: what may share a message, and how much one may hold.
 *
 * Invariants: a message never holds changes of two commits or of two kinds; messages keep the
 * order of the changes, so a resume from the highest `_seq` of any message skips nothing; only a
 * message of one single row may exceed the frame size.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import type {
  BatchControl,
  CellObject,
  Change,
  InitialDataBatch,
  SubscriptionAck,
} from "../protocol/mod.ts";
import type { Store } from "../storage/mod.ts";
import { ENVELOPE_BYTES_MAX, exactTextBytes, roughTextBytes, rowBytes } from "./frame_budget.ts";
import type { PagedBatch, SharedMessage } from "./live.ts";
import type { LiveChange } from "./live_program.ts";
import { RowPage } from "./row_page.ts";

/** Rows in one `change`, as the wire contract promises clients. */
const CHANGE_ROWS_MAX = 1000;

/** Clients of one program tend to choose the same ids; those with ids of their own share rows. */
const MESSAGES_MAX = 4;

/** A `change` before it is addressed to a subscription. */
export interface ChangeDraft {
  readonly type: LiveChange["type"];
  readonly rows: readonly CellObject[];
  /** One a row changed, for updates and deletes. */
  readonly oldValues: readonly CellObject[];
  readonly commitSeq: number;
  /** Time of the commit, in Unix milliseconds. */
  readonly commitMs: number;
  /** Seq of the last change in it. */
  readonly lastSeq: Seq;
  /** How many changes it holds. */
  readonly count: number;
}

/** Options for turning changes into messages. */
export interface DraftOptions {
  readonly frameBytesMax: number;
  /** Gives the time of a commit. */
  readonly store: Pick<Store, "commitMs">;
}

/**
 * Takes the longest run of changes that may share a message.
 *
 * @param start Index of the first change.
 * @param countMax Largest number of changes to take, 1 or more.
 */
export function draftFrom(
  changes: readonly LiveChange[],
  start: number,
  { countMax, frameBytesMax, store }: DraftOptions & { countMax: number },
): ChangeDraft {
  const first = changes[start];
  assert(first !== undefined, "a message has a change");
  const { type, commitSeq } = first;
  const limit = Math.min(changes.length, start + Math.min(countMax, CHANGE_ROWS_MAX));
  let end = start + 1;
  while (end < limit && changes[end]?.type === type && changes[end]?.commitSeq === commitSeq) {
    end += 1;
  }
  if (end > start + 1) end = start + fittingCount(changes.slice(start, end), frameBytesMax);
  const rows: CellObject[] = [];
  const oldValues: CellObject[] = [];
  let lastSeq = first.seq;
  for (let index = start; index < end; index += 1) {
    const change = changes[index];
    assert(change !== undefined, "a run of changes has no hole");
    if (change.row !== undefined) rows.push(change.row);
    if (change.old !== undefined) oldValues.push(change.old);
    lastSeq = change.seq;
  }
  const commitMs = store.commitMs(commitSeq);
  return { type, rows, oldValues, commitSeq, commitMs, lastSeq, count: end - start };
}

/** Addresses a draft to one subscription id. */
export function changeMessage(draft: ChangeDraft, subscriptionId: string): Change {
  const { type, rows, oldValues, commitMs: ts, commitSeq } = draft;
  if (type === "insert") {
    return {
      type: "change",
      subscription_id: subscriptionId,
      change_type: type,
      rows,
      ts,
      commit_seq: commitSeq,
    };
  }
  return {
    type: "change",
    subscription_id: subscriptionId,
    change_type: type,
    rows,
    old_values: oldValues,
    ts,
    commit_seq: commitSeq,
  };
}

export function ackMessage(options: {
  subscriptionId: string;
  control: BatchControl;
  schema: SubscriptionAck["schema"];
}): SubscriptionAck {
  return {
    type: "subscription_ack",
    subscription_id: options.subscriptionId,
    total_rows: 0,
    batch_control: options.control,
    schema: options.schema,
  };
}

/** A batch of a subscription; the rows of a page stay columns unless somebody asks for objects. */
export function sharedBatch(options: {
  subscriptionId: string;
  rows: readonly CellObject[] | RowPage;
  control: BatchControl;
}): SharedMessage {
  const { control, rows, subscriptionId } = options;
  if (rows instanceof RowPage) return new SharedPage({ subscriptionId, rows, control });
  return shared(batchMessage(options, rows));
}

/** A batch whose rows become objects when somebody first looks at them. */
class SharedPage implements SharedMessage {
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
  rows: readonly CellObject[],
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

/** The messages that were made of one thing, by subscription id. */
export class Messages {
  readonly #byId = new Map<string, SharedMessage>();

  get(id: string, make: () => SharedMessage): SharedMessage {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const made = make();
    if (this.#byId.size < MESSAGES_MAX) this.#byId.set(id, made);
    return made;
  }
}

/** How many leading changes fit one frame; at least one. */
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
