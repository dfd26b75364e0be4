/**
 * One live query: where its stream stands, and what its user is told.
 *
 *     connecting → loading → ready        a lost connection leads to offline and, with the position
 *          ↑___________↑_______|          kept, back to loading; only an error or close() ends it
 *
 * Messages are told in the order of arrival. One whose `_seq` is not above the last one received is
 * counted and dropped, which makes a resume exact.
 */
import type {
  CellObject,
  Change,
  ErrorMessage,
  InitialDataBatch,
  SchemaField,
  SubscriptionAck,
  SubscriptionSpec,
} from "../protocol/mod.ts";
import { ServerError } from "./errors.ts";
import { countOption, type Parameter, type SentParameter, sentParameters } from "./parameters.ts";

export type LiveStatus = "connecting" | "loading" | "ready" | "offline" | "ended";

export type LiveEvent =
  /** The server accepted. Without a position to resume from the rows start anew. */
  | {
      readonly type: "start";
      readonly schema: readonly SchemaField[];
      readonly resumedFrom: number | undefined;
    }
  /** Rows of the snapshot or of a replay; a row replaces the one with its key. */
  | { readonly type: "rows"; readonly rows: readonly CellObject[]; readonly isReplay: boolean }
  | { readonly type: "change"; readonly change: Change; readonly isReplay: boolean }
  | { readonly type: "status"; readonly status: LiveStatus; readonly error?: ServerError };

export interface LiveOptions {
  readonly params?: readonly Parameter[];
  readonly namespace?: string;
  /** Start with the newest so many rows; all when left out. */
  readonly lastRows?: number;
  readonly batchSize?: number;
  readonly onEvent: (event: LiveEvent) => void;
}

export interface LiveQuery {
  readonly status: LiveStatus;
  /** The `_seq` up to which everything has been received. */
  readonly position: number | undefined;
  /** Rows and changes that came twice and were dropped. */
  readonly doubled: number;
  /** Ends it; nothing is told after. */
  close(): void;
}

/** After these the same query may be asked again from the start. */
const RESTARTS: ReadonlySet<string> = new Set([
  "RESUME_EXPIRED",
  "INVALID_RESUME",
  "SCHEMA_CHANGED",
]);

/** What a subscription wants its connection to do about an error. */
export type AfterError = "nothing" | "subscribe" | "wait" | "reconnect" | "remove";

export class Subscription implements LiveQuery {
  readonly id: string;
  readonly #sql: string;
  readonly #options: LiveOptions;
  readonly #params: readonly SentParameter[] | undefined;
  readonly #onClose: (subscription: Subscription) => void;
  #status: LiveStatus = "connecting";
  #position: number | undefined;
  #resumedFrom: number | undefined;
  #doubled = 0;
  #wasAccepted = false;
  #refusals = 0;

  constructor(
    id: string,
    sql: string,
    options: LiveOptions,
    onClose: (subscription: Subscription) => void,
  ) {
    this.id = id;
    this.#sql = sql;
    this.#options = options;
    this.#params = options.params === undefined ? undefined : sentParameters(options.params);
    this.#onClose = onClose;
    countOption("lastRows", options.lastRows);
    countOption("batchSize", options.batchSize);
  }

  get status(): LiveStatus {
    return this.#status;
  }

  get position(): number | undefined {
    return this.#position;
  }

  get doubled(): number {
    return this.#doubled;
  }

  /** How often in a row there was no room for it. */
  get refusals(): number {
    return this.#refusals;
  }

  close(): void {
    if (this.#status === "ended") return;
    this.#status = "ended";
    this.#onClose(this);
  }

  /** The subscription as it is to be asked for now. */
  spec(): SubscriptionSpec {
    const { batchSize, lastRows, namespace } = this.#options;
    this.#resumedFrom = this.#position;
    return {
      id: this.id,
      sql: this.#sql,
      options: {
        ...(batchSize === undefined ? {} : { batch_size: batchSize }),
        ...(lastRows === undefined ? {} : { last_rows: lastRows }),
        ...(this.#position === undefined ? {} : { from_seq_id: this.#position }),
      },
      ...(this.#params === undefined ? {} : { params: this.#params }),
      ...(namespace === undefined ? {} : { namespace_id: namespace }),
    };
  }

  accepted({ schema }: SubscriptionAck): void {
    this.#wasAccepted = true;
    this.#refusals = 0;
    this.#emit({ type: "start", schema, resumedFrom: this.#resumedFrom });
    this.#become("loading");
  }

  /** @returns Whether more batches are to be asked for. */
  batch({ batch_control: control, rows }: InitialDataBatch): boolean {
    const fresh = rows.filter((row) => this.#isNew(seqOf(row)));
    for (const row of fresh) this.#advance(seqOf(row));
    if (control.last_seq_id !== null) this.#advance(control.last_seq_id);
    if (fresh.length > 0) {
      this.#emit({ type: "rows", rows: fresh, isReplay: this.#resumedFrom !== undefined });
    }
    if (!control.has_more) this.#become("ready");
    return control.has_more;
  }

  change(change: Change): void {
    const { change_type: type, old_values: olds = [], rows } = change;
    const moved = type === "delete" ? olds : rows;
    const kept = moved.flatMap((row, index) => (this.#isNew(seqOf(row)) ? [index] : []));
    for (const row of moved) this.#advance(seqOf(row));
    if (kept.length === 0) return;
    const isWhole = kept.length === moved.length;
    this.#emit({
      type: "change",
      change: isWhole ? change : { ...change, rows: at(rows, kept), old_values: at(olds, kept) },
      isReplay: this.#status === "loading",
    });
  }

  /** Everything up to here has been sent, says the server: where a quiet table resumes. */
  reached(position: number): void {
    if (this.#status === "ready") this.#advance(position);
  }

  lost(): void {
    if (this.#status !== "ended") this.#become("offline");
  }

  /** What it holds is nobody's any more: the next start is one without a position. */
  reset(): void {
    this.#position = undefined;
    this.#wasAccepted = false;
  }

  failed(error: ServerError): void {
    if (this.#status === "ended") return;
    this.#status = "ended";
    this.#emit({ type: "status", status: "ended", error });
  }

  error(message: ErrorMessage): AfterError {
    if (!message.ended) return "nothing";
    if (message.code === "SHUTTING_DOWN" || message.code === "TOKEN_REVOKED") return "reconnect";
    // The server may still count the connection that was lost.
    if (message.code === "SUBSCRIPTION_LIMIT_EXCEEDED" && this.#wasAccepted) {
      this.#refusals += 1;
      this.lost();
      return "wait";
    }
    const canRestart = this.#position !== undefined || message.code === "SCHEMA_CHANGED";
    if (RESTARTS.has(message.code) && canRestart) {
      this.#position = undefined;
      return "subscribe";
    }
    const { hint, position } = message;
    this.failed(new ServerError(message.code, message.message, { hint, position }));
    return "remove";
  }

  #isNew(seq: number): boolean {
    if (this.#position === undefined || seq > this.#position) return true;
    this.#doubled += 1;
    return false;
  }

  #advance(seq: number): void {
    if (this.#position === undefined || seq > this.#position) this.#position = seq;
  }

  #become(status: LiveStatus): void {
    if (this.#status === status || this.#status === "ended") return;
    this.#status = status;
    this.#emit({ type: "status", status });
  }

  #emit(event: LiveEvent): void {
    this.#options.onEvent(event);
  }
}

function seqOf(row: CellObject): number {
  return Number(row["_seq"]);
}

function at(rows: readonly CellObject[], indexes: readonly number[]): CellObject[] {
  return indexes.flatMap((index) => {
    const row = rows[index];
    return row === undefined ? [] : [row];
  });
}
