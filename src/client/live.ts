/**
 * Implements a live query: the state of its stream, and the application's callbacks.
 *
 *     connecting → loading → ready        a lost connection leads to offline and, with the position
 *          ↑___________↑_______|          kept, back to loading; only an error or close() ends it
 *
 * Messages are delivered in order of arrival. A message whose `_seq` is not higher than that of
 * the last message received is counted and dropped, so that a resume repeats nothing. For a
 * materialised query, messages are buffered until its state is complete.
 */
import type {
  ChangeMessage,
  ErrorMessage,
  InitialDataBatch,
  SubscriptionAck,
  SubscriptionSpec,
  WireRow,
} from "../protocol/mod.ts";
import type { ClientEnvironment } from "./environment.ts";
import { ServerError } from "./errors.ts";
import { guarded } from "./handlers.ts";
import { type LiveEvent, type LiveOptions, type LiveStatus, orderOf } from "./live_options.ts";
import { LiveQueryRows } from "./live_rows.ts";
import { type SentParameter, sentParameters } from "./parameters.ts";
import { KeptPosition, type PositionStorage, storageFor } from "./positions.ts";
import { columnOf, orderFrom } from "./row_order.ts";
import {
  type CellObject,
  type Change,
  type RowReader,
  rowReaderFor,
  type Values,
} from "./values.ts";

export interface LiveQuery<Row extends object = CellObject> {
  readonly status: LiveStatus;
  /** The current rows, in order. The list stays the same object until a row changes. */
  readonly rows: readonly Row[];
  /** The `_seq` up to which the live query has received everything. */
  readonly position: number | undefined;
  /** How many rows and changes arrived for a second time and were dropped. */
  readonly doubled: number;
  /** Ends the query. No handler is called afterwards. */
  close(): void;
}

/**
 * Errors after which the server closes the connection. The query continues on a new connection.
 */
const RECONNECTS: ReadonlySet<string> = new Set([
  "SHUTTING_DOWN",
  "TOKEN_EXPIRED",
  "TOKEN_REVOKED",
]);

/** Errors after which the same query may be started over. */
const RESTARTS: ReadonlySet<string> = new Set([
  "RESUME_EXPIRED",
  "INVALID_RESUME",
  "SCHEMA_CHANGED",
]);

/** How the connection must respond to an error in a subscription. */
export type AfterError = "nothing" | "subscribe" | "wait" | "reconnect" | "remove";

export interface SubscriptionSettings {
  readonly environment: ClientEnvironment;
  readonly values: Values;
  /** The storage for positions; the runtime's own storage if omitted. */
  readonly storage: PositionStorage | undefined;
  /** The user for whom the live query runs, if known. */
  readonly userId: () => string | undefined;
  /** Called when the application has closed the live query. */
  readonly onClose: (subscription: FollowedQuery) => void;
}

interface SubscriptionParts {
  /** The validated options of the live query. */
  readonly options: LiveOptions;
  readonly settings: SubscriptionSettings;
}

/** The application's handlers, wrapped so that an error in a handler does not stop the client. */
interface Tell {
  readonly event: (event: LiveEvent) => void;
  readonly rows: (list: () => readonly CellObject[]) => void;
  readonly error: (error: ServerError) => void;
}

export class FollowedQuery implements LiveQuery {
  readonly id: string;
  readonly #sql: string;
  readonly #options: LiveOptions;
  readonly #settings: SubscriptionSettings;
  readonly #params: readonly SentParameter[] | undefined;
  readonly #tell: Tell;
  readonly #rows: LiveQueryRows<CellObject>;
  readonly #kept: KeptPosition | undefined;
  readonly #keepPosition: (position: number | undefined) => void;
  #mayRestore = true;
  /**
   * For a materialised query, the messages since its last complete state. Undefined for other
   * queries, whose messages are applied one by one.
   */
  #held: (ChangeMessage | InitialDataBatch)[] | undefined;
  /** The rows most recently passed to `onRows`. */
  #told: readonly CellObject[] | undefined;
  #read: RowReader | undefined;
  #status: LiveStatus = "connecting";
  #position: number | undefined;
  /** The token's claims, sent back on a resume if the query reads them. */
  #claims: string | undefined;
  #resumedFrom: number | undefined;
  #doubled = 0;
  #wasAccepted = false;
  #refusals = 0;

  /**
   * Creates a live query without sending it.
   * @throws {TypeError} If the parameters, the order or the storage cannot be used.
   */
  constructor(id: string, sql: string, { options, settings }: SubscriptionParts) {
    this.id = id;
    this.#sql = sql;
    this.#options = options;
    this.#settings = settings;
    this.#params = options.params === undefined ? undefined : sentParameters(sql, options.params);
    this.#rows = new LiveQueryRows(orderOf(options));
    this.#tell = tellOf(options, settings.environment);
    this.#position = options.from;
    if (options.resumeKey !== undefined) {
      this.#kept = new KeptPosition({
        storage: storageFor(settings.storage, "resumeKey"),
        key: options.resumeKey,
        query: JSON.stringify([sql, this.#params, options.namespace]),
      });
    }
    this.#keepPosition = guarded<number | undefined>(settings.environment, (position) => {
      if (position !== undefined) this.#kept?.write(settings.userId(), position, this.#claims);
    });
  }

  get status(): LiveStatus {
    return this.#status;
  }

  get rows(): readonly CellObject[] {
    return this.#rows.list;
  }

  get position(): number | undefined {
    return this.#position;
  }

  get doubled(): number {
    return this.#doubled;
  }

  /** How many consecutive times the query was refused because a limit was reached. */
  get refusals(): number {
    return this.#refusals;
  }

  close(): void {
    if (this.#status === "ended") return;
    this.#status = "ended";
    this.#settings.onClose(this);
  }

  /** Returns the subscription request to send. */
  spec(): SubscriptionSpec {
    const { batchSize, lastRows, namespace } = this.#options;
    if (this.#mayRestore && this.#kept !== undefined) this.#restore(this.#kept);
    this.#resumedFrom = this.#position;
    return {
      id: this.id,
      sql: this.#sql,
      options: {
        ...(batchSize === undefined ? {} : { batch_size: batchSize }),
        ...(lastRows === undefined ? {} : { last_rows: lastRows }),
        ...(this.#position === undefined ? {} : { from_seq_id: this.#position }),
        ...(this.#claims === undefined ? {} : { claims: this.#claims }),
      },
      ...(this.#params === undefined ? {} : { params: this.#params }),
      ...(namespace === undefined ? {} : { namespace_id: namespace }),
    };
  }

  accepted({ claims, key_columns: keyColumns, schema, sort }: SubscriptionAck): void {
    this.#claims = claims;
    this.#wasAccepted = true;
    this.#refusals = 0;
    const order = this.#options.orderBy;
    const missing =
      typeof order === "string"
        ? orderFrom(order).find((term) => !columnOf(term, schema))
        : undefined;
    if (missing !== undefined) {
      this.failed(noColumn(missing.name));
      return this.#settings.onClose(this);
    }
    this.#read = rowReaderFor(schema, this.#settings.values);
    this.#rows.start(schema, { isAnew: this.#resumedFrom === undefined, sort });
    this.#held = keyColumns === undefined ? undefined : [];
    const resumedFrom = this.#resumedFrom;
    this.#tell.event({ type: "start", schema, resumedFrom, ...(sort && { sort }) });
    this.#become("loading");
  }

  /** Handles a batch of the initial rows. @returns Whether to request more batches. */
  batch(message: InitialDataBatch): boolean {
    const { batch_control: control, rows } = message;
    if (this.#held !== undefined) {
      this.#held.push(message);
      if (control.last_seq_id !== null) this.#takeHeld(this.#held, control.last_seq_id);
      if (!control.has_more) this.#become("ready");
      return control.has_more;
    }
    const fresh = rows.filter((row) => this.#isNew(seqOf(row)));
    for (const row of fresh) this.#advance(seqOf(row));
    if (control.last_seq_id !== null) this.#advance(control.last_seq_id);
    if (fresh.length > 0) {
      const isReplay = this.#resumedFrom !== undefined;
      this.#tell.event({ type: "rows", rows: this.#put(fresh), isReplay });
    }
    if (!control.has_more) this.#become("ready");
    this.#keepPosition(this.#position);
    return control.has_more;
  }

  change(change: ChangeMessage): void {
    if (this.#held !== undefined) {
      this.#held.push(change);
      const { commit_end: isEnd, commit_seq: seq } = change;
      if (isEnd === true && seq !== undefined) this.#takeHeld(this.#held, seq);
      return;
    }
    const { change_type: type, old_values: olds = [], rows } = change;
    const moved = type === "delete" ? olds : rows;
    const kept = moved.flatMap((row, index) => (this.#isNew(seqOf(row)) ? [index] : []));
    for (const row of moved) this.#advance(seqOf(row));
    if (kept.length === 0) return;
    const isWhole = kept.length === moved.length;
    const fresh = isWhole
      ? change
      : { ...change, rows: at(rows, kept), old_values: at(olds, kept) };
    this.#tell.event({
      type: "change",
      change: this.#taken(fresh),
      isReplay: this.#status === "loading",
    });
    if (this.#status === "ready") this.#tellRows();
    this.#keepPosition(this.#position);
  }

  /**
   * Records that the server has sent every change up to a position. Even a query whose table has
   * not changed can then resume from that position.
   */
  reached(position: number): void {
    if (this.#status !== "ready") return;
    this.#advance(position);
    this.#keepPosition(this.#position);
  }

  lost(): void {
    // The messages of an incomplete state are dropped, because the server will send the changes
    // again after a resume.
    if (this.#held !== undefined) this.#held = [];
    if (this.#status !== "ended") this.#become("offline");
  }

  /** Discards all rows and the position, so that the query starts over. */
  reset(): void {
    this.#position = undefined;
    this.#mayRestore = true;
    this.#wasAccepted = false;
    this.#rows.clear();
    if (this.#told !== undefined) this.#tellRows();
  }

  /**
   * Ends the live query with an error.
   * @param isAskedFor Whether the application logged out. A logout ends every query without an
   *   error.
   */
  failed(error: ServerError, { isAskedFor = false }: { isAskedFor?: boolean } = {}): void {
    if (this.#status === "ended") return;
    this.#status = "ended";
    this.#tell.event({ type: "status", status: "ended", error });
    if (!isAskedFor) this.#tell.error(error);
  }

  error(message: ErrorMessage): AfterError {
    if (!message.ended) return "nothing";
    if (RECONNECTS.has(message.code)) return "reconnect";
    // The limit may be exceeded only temporarily: the server may still be counting the
    // subscription on the lost connection.
    if (message.code === "SUBSCRIPTION_LIMIT_EXCEEDED" && this.#wasAccepted) {
      this.#refusals += 1;
      this.lost();
      return "wait";
    }
    const canRestart = this.#position !== undefined || message.code === "SCHEMA_CHANGED";
    if (RESTARTS.has(message.code) && canRestart) {
      this.#position = undefined;
      this.#mayRestore = false;
      return "subscribe";
    }
    const { hint, position } = message;
    this.failed(new ServerError(message.code, message.message, { hint, position }));
    return "remove";
  }

  /**
   * Applies all the messages that lead to one state together, so that the application always sees
   * the rows of the query as of a single seq.
   */
  #takeHeld(held: (ChangeMessage | InitialDataBatch)[], seq: number): void {
    const isReplay = this.#resumedFrom !== undefined && this.#status === "loading";
    for (const message of held.splice(0)) {
      if (message.type === "change") {
        this.#tell.event({ type: "change", change: this.#taken(message), isReplay });
      } else if (message.rows.length > 0) {
        this.#tell.event({ type: "rows", rows: this.#put(message.rows), isReplay });
      }
    }
    this.#advance(seq);
    if (this.#status === "ready") this.#tellRows();
    this.#keepPosition(this.#position);
  }

  #isNew(seq: number): boolean {
    if (this.#position === undefined || seq > this.#position) return true;
    this.#doubled += 1;
    return false;
  }

  #advance(seq: number): void {
    if (this.#position === undefined || seq > this.#position) this.#position = seq;
  }

  /** Reads the stored position, once for each user. */
  #restore(kept: KeptPosition): void {
    const { environment, userId } = this.#settings;
    this.#mayRestore = false;
    // If the storage cannot be read, the failure is reported, and the query starts without a
    // position.
    guarded<undefined>(environment, () => {
      const place = kept.read(userId());
      if (place === undefined) return;
      this.#position = place.seq;
      this.#claims = place.claims;
    })(undefined);
  }

  /** Applies rows that have arrived. @returns The rows as the application sees them. */
  #put(rows: readonly WireRow[]): readonly CellObject[] {
    const read = this.#readAll(rows);
    if (this.#options.keepRows === false) return read;
    for (const [index, row] of rows.entries()) this.#rows.put(row, read[index] ?? row);
    return read;
  }

  #taken(change: ChangeMessage): Change {
    const { old_values: olds, rows } = change;
    const read = this.#put(rows);
    if (change.change_type === "delete") for (const row of olds ?? []) this.#rows.remove(row);
    if (this.#read === undefined) return change;
    return { ...change, rows: read, ...(olds && { old_values: this.#readAll(olds) }) };
  }

  #readAll(rows: readonly WireRow[]): readonly CellObject[] {
    return this.#read === undefined ? rows : rows.map(this.#read);
  }

  #become(status: LiveStatus): void {
    if (this.#status === status || this.#status === "ended") return;
    this.#status = status;
    this.#tell.event({ type: "status", status });
    if (status === "ready") this.#tellRows();
  }

  #tellRows(): void {
    this.#tell.rows(() => {
      const list = this.#rows.list;
      this.#told = list;
      return list;
    });
  }
}

function tellOf({ onError, onEvent, onRows }: LiveOptions, environment: ClientEnvironment): Tell {
  return {
    event: guarded(environment, (event) => onEvent?.(event)),
    // The list is created inside the guarded call, because sorting the rows may call an
    // application function.
    rows: guarded(environment, (list) => onRows?.(list())),
    error: guarded(environment, (error) => {
      if (onError !== undefined) onError(error);
      else if (onEvent === undefined) throw error;
    }),
  };
}

function noColumn(name: string): ServerError {
  const message =
    `Cannot sort the rows: orderBy names ${JSON.stringify(name)}, but the query has no such ` +
    "column";
  return new ServerError("INVALID_ORDER", message);
}

function seqOf(row: WireRow): number {
  return Number(row["_seq"]);
}

function at(rows: readonly WireRow[], indexes: readonly number[]): WireRow[] {
  return indexes.flatMap((index) => {
    const row = rows[index];
    return row === undefined ? [] : [row];
  });
}
