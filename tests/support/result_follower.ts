/**
 * A client that follows a materialised query. It applies each message on arrival, and checks all
 * guarantees that the messages alone can prove.
 */
import { assert } from "../../src/base/assert.ts";
import type { LiveSink, LiveSubscription, SharedMessage } from "../../src/live/mod.ts";
import type {
  ChangeMessage,
  DataMessage,
  ErrorMessage,
  SubscriptionAck,
  WireRow,
} from "../../src/protocol/mod.ts";
import { until } from "./until.ts";

/** The rows of a result once all messages of a commit have arrived. */
export interface FollowedState {
  readonly seq: number;
  readonly rows: readonly WireRow[];
}

/**
 * A fault in the messages that a follower receives: a change is lost, a cell is altered, a commit
 * seems to end early, or a deleted row stays.
 */
export type PlantedFault = "lost" | "altered" | "early" | "undead";

interface FollowerOptions {
  readonly onState?: (state: FollowedState) => void;
  /** An earlier follower whose rows are the starting point of this follower. */
  readonly held?: ResultFollower;
  readonly fault?: PlantedFault | undefined;
}

export class ResultFollower implements LiveSink {
  readonly connectionId = "follower";
  backpressure: unknown;
  /** The number of bytes in the connection's queue, as the engine sees it. */
  queuedBytes = 0;
  subscription: LiveSubscription | undefined;
  readonly messages: DataMessage[] = [];
  readonly changes: ChangeMessage[] = [];
  ack: SubscriptionAck | undefined;
  failure: ErrorMessage | undefined;
  /** Whether the queue is full. If so, the engine has to wait until `drain` is called. */
  isFull = false;
  #rows: Map<string, WireRow>;
  /**
   * The rows of the last complete state. Set only while the current rows include just part of a
   * commit.
   */
  #completeRows: Map<string, WireRow> | undefined;
  #seq: number | undefined;
  #isComplete = false;
  readonly #fault: PlantedFault | undefined;
  readonly #onState: ((state: FollowedState) => void) | undefined;

  constructor(options: FollowerOptions = {}) {
    this.#fault = options.fault;
    this.#onState = options.onState;
    const { held } = options;
    this.#rows = new Map(held === undefined ? [] : (held.#completeRows ?? held.#rows));
    if (held === undefined) return;
    this.#completeRows = new Map(this.#rows);
    this.#seq = held.#seq;
  }

  /** The seq of the last complete state. */
  get seq(): number | undefined {
    return this.#seq;
  }

  /** Whether the current rows form a complete state. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  get rows(): WireRow[] {
    return [...this.#rows.values()];
  }

  send({ message }: SharedMessage): boolean {
    this.receive(message);
    return !this.isFull;
  }

  end(message: ErrorMessage): void {
    this.failure = message;
  }

  /** Empties the queue, so that the engine continues. */
  drain(): void {
    this.isFull = false;
    this.subscription?.drained();
  }

  receive(message: DataMessage): void {
    this.messages.push(message);
    switch (message.type) {
      case "subscription_ack":
        this.ack = message;
        if (!message.batch_control.has_more) this.#complete(message.batch_control.last_seq_id);
        break;
      case "initial_data_batch": {
        for (const row of message.rows) this.#rows.set(keyOf(row), row);
        const { has_more: hasMore, last_seq_id: lastSeq } = message.batch_control;
        assert(hasMore === (lastSeq === null), "only the last batch may end at a position");
        if (hasMore) queueMicrotask(() => this.subscription?.nextBatch());
        else this.#complete(lastSeq);
        break;
      }
      case "change":
        this.#apply(faulty(message, this.#fault));
    }
  }

  /** Resolves once the follower's state has reached `seq`. */
  async reaches(seq: number): Promise<void> {
    await until(() => {
      if (this.failure !== undefined) throw new Error(JSON.stringify(this.failure));
      return (this.subscription?.position ?? this.#seq ?? 0) >= seq && this.#isComplete;
    });
  }

  #apply(message: ChangeMessage): void {
    const { change_type: type, commit_end: isEnd, old_values: olds = [], rows } = message;
    this.changes.push(message);
    if (this.#isComplete) this.#completeRows = new Map(this.#rows);
    this.#isComplete = false;
    for (const [index, row] of (type === "delete" ? olds : rows).entries()) {
      const key = keyOf(row);
      const has = this.#rows.has(key);
      if (has === (type === "insert")) throw new Error(`${type} of ${key}, which is there: ${has}`);
      if (type === "update")
        assert(keyOf(olds[index] ?? {}) === key, "old values must contain the key");
      if (type === "delete") this.#rows.delete(key);
      else this.#rows.set(key, row);
    }
    if (isEnd === true) this.#complete(message.commit_seq ?? null);
  }

  #complete(seq: number | null): void {
    assert(seq !== null, "a complete state must have a seq");
    this.#isComplete = true;
    this.#completeRows = undefined;
    this.#seq = seq;
    this.#onState?.({ seq, rows: this.rows });
  }
}

function faulty(message: ChangeMessage, fault: PlantedFault | undefined): ChangeMessage {
  switch (fault) {
    case undefined:
      return message;
    case "lost":
      return { ...message, rows: [], old_values: [] };
    case "altered":
      return { ...message, rows: message.rows.map((row) => ({ ...row, ...alteredIn(row) })) };
    case "early":
      return { ...message, rows: message.rows.slice(1), commit_end: true };
    case "undead":
      return message.change_type === "delete" ? { ...message, old_values: [] } : message;
  }
}

/** Returns a copy of a row with a different value in its first field. */
function alteredIn(row: WireRow): WireRow {
  const [name] = Object.keys(row);
  return name === undefined ? {} : { [name]: `not ${String(row[name])}` };
}

function keyOf(row: WireRow): string {
  const key = row["_key"];
  assert(typeof key === "string" && Number(row["_seq"]) > 0, "each row must have a key and a seq");
  return key;
}
