/**
 * Defines every message on `/v1/ws`, in its logical form. The server encodes them in `frames/`.
 *
 * A cell is a SQL value in the wire form that `types` produces. A bigint represents an integer
 * beyond 2^53 − 1, which is decimal text in JSON and a 64-bit integer in MessagePack.
 */
import type { SubscriptionCode, TopicCode } from "./error_codes.ts";
import type { TopicMessageBody, TopicStartBody } from "./http.ts";

export type WireCell = null | boolean | number | bigint | string | readonly WireCell[];

export type WireRow = Readonly<Record<string, WireCell>>;

export type DataTypeWord =
  | string
  /**
   * A NUMERIC type. The precision is 0 for a NUMERIC without a declared precision, in which each
   * number has its own scale.
   */
  | { readonly Decimal: { readonly precision: number; readonly scale: number } }
  | { readonly Embedding: number }
  /** The type of the elements; an array with several dimensions is an array of arrays. */
  | { readonly Array: DataTypeWord };

export interface SchemaField {
  readonly name: string;
  readonly data_type: DataTypeWord;
  readonly index: number;
  readonly flags?: readonly ("pk" | "nn" | "uq")[];
}

export interface SubscribeOptions {
  readonly batch_size?: number;
  readonly last_rows?: number | null;
  readonly from_seq_id?: number | string | null;
  readonly from?: number | string | null;
  readonly replay?: "all" | "latest" | null;
  /**
   * On a resume, the `claims` from the acknowledgement of the subscription that is being resumed.
   */
  readonly claims?: string | null;
  /** How a materialised result is kept up to date. If absent, the server chooses. */
  readonly way?: "maintained" | "evaluated" | null;
}

export interface SubscriptionSpec {
  readonly id: string;
  readonly sql: string;
  /**
   * The options of the subscription. If absent, the client receives a full snapshot followed by
   * live changes; if null, it receives only live changes.
   */
  readonly options?: SubscribeOptions | null;
  readonly params?: readonly unknown[];
  readonly namespace_id?: string;
}

export type ClientMessage =
  | {
      readonly type: "authenticate";
      readonly method?: string;
      readonly token: string;
      readonly protocol?: { readonly serialization?: string; readonly compression?: string } | null;
    }
  | { readonly type: "subscribe"; readonly subscription: SubscriptionSpec }
  | {
      readonly type: "next_batch";
      readonly subscription_id?: string;
      readonly last_seq_id?: number | string | null;
    }
  | { readonly type: "unsubscribe"; readonly subscription_id: string }
  | { readonly type: "ping"; readonly id?: string }
  | TopicRequestMessage;

/**
 * Client messages about topics. Each identifies its consumer by the id of the `consume` message.
 */
export type TopicRequestMessage =
  | {
      readonly type: "consume";
      readonly id: string;
      readonly topic_id: string;
      readonly group_id: string;
      /** The partition to consume; all partitions if absent. */
      readonly partition_id?: number | null;
      readonly start?: TopicStartBody | null;
      readonly credit?: number | null;
      readonly ordered?: boolean | null;
    }
  | { readonly type: "credit"; readonly id: string; readonly credit: number }
  | {
      readonly type: "topic_ack";
      readonly id: string;
      readonly partition_id?: number | null;
      readonly upto_offset?: number | null;
      readonly offsets?: readonly number[] | null;
      readonly request_id?: string;
    }
  | {
      readonly type: "nack";
      readonly id: string;
      readonly partition_id?: number | null;
      readonly offsets: readonly number[];
      readonly delay_ms?: number | null;
      readonly request_id?: string;
    }
  | { readonly type: "stop"; readonly id: string; readonly drain?: boolean | null };

export interface BatchControl {
  readonly batch_num: number;
  readonly has_more: boolean;
  readonly status: "loading" | "ready";
  readonly last_seq_id: number | null;
}

export interface SubscriptionAck {
  readonly type: "subscription_ack";
  readonly subscription_id: string;
  readonly total_rows: 0;
  readonly batch_control: BatchControl;
  readonly schema: readonly SchemaField[];
  /**
   * A short text that represents the claims in the client's token. Present only if the query or a
   * policy of its tables reads claims. In that case, a resume must send this text back.
   */
  readonly claims?: string;
  /**
   * The columns that form `_key`; empty if `_key` is derived from the values of the entire row.
   * Present only if the query is materialised.
   */
  readonly key_columns?: readonly string[];
  /**
   * The order of the rows, if the query has ORDER BY. Rows with equal sort keys are ordered by
   * `_key`.
   */
  readonly sort?: readonly SortTerm[];
}

export interface SortTerm {
  readonly column: string;
  readonly direction: "asc" | "desc";
  readonly nulls: "first" | "last";
  /** The collation for text; absent to sort by code point. */
  readonly collation?: SortCollation;
}

/**
 * The rules for sorting text, as options of `Intl.Collator`. In a deterministic collation, text
 * that these rules do not distinguish is ordered by code point.
 */
export interface SortCollation {
  /** A BCP 47 language tag, for example "de-u-co-phonebk". */
  readonly locale: string;
  readonly sensitivity: "base" | "case" | "accent" | "variant";
  readonly ignore_punctuation: boolean;
  readonly deterministic: boolean;
}

export interface InitialDataBatch {
  readonly type: "initial_data_batch";
  readonly subscription_id: string;
  readonly rows: readonly WireRow[];
  readonly batch_control: BatchControl;
}

export interface ChangeMessage {
  readonly type: "change";
  readonly subscription_id: string;
  readonly change_type: "insert" | "update" | "delete";
  readonly rows: readonly WireRow[];
  readonly old_values?: readonly WireRow[];
  /**
   * `expired` if the rows were deleted because they reached the TTL_SECONDS of their table;
   * otherwise absent.
   */
  readonly reason?: "expired";
  /** The time of the commit, in milliseconds since 1970. */
  readonly ts?: number;
  readonly commit_seq?: number;
  /**
   * True for the last message of a commit; the client then has the rows of the query at
   * `commit_seq`. Present only if the query is materialised.
   */
  readonly commit_end?: boolean;
}

export interface ErrorMessage {
  readonly type: "error";
  readonly subscription_id: string;
  readonly code: SubscriptionCode;
  readonly message: string;
  readonly ended: boolean;
  readonly position?: number;
  readonly hint?: string;
  readonly earliest_seq?: number;
  readonly retry_after_ms?: number;
}

/** Data messages. They use the serialization and compression chosen for the connection. */
export type DataMessage = SubscriptionAck | InitialDataBatch | ChangeMessage;

/** Topic messages for a consumer, encoded like data messages. */
export interface TopicDelivery {
  readonly type: "messages";
  readonly id: string;
  /** The topic's messages, with payloads as JSON text. */
  readonly messages: readonly TopicMessageBody[];
}

export interface TopicErrorMessage {
  readonly type: "topic_error";
  readonly id: string;
  readonly code: TopicCode;
  readonly message: string;
  /** Whether the topic consumer has ended. */
  readonly ended: boolean;
  readonly hint?: string;
  readonly request_id?: string;
}

/** Responses to client messages about topics. */
export type TopicControlMessage =
  | { readonly type: "consume_ack"; readonly id: string }
  | {
      readonly type: "topic_ack_result";
      readonly id: string;
      readonly partition_id: number;
      /**
       * The highest offset such that all messages up to it have been acknowledged; -1 if there is
       * none.
       */
      readonly acknowledged_offset: number;
      /** The number of messages acknowledged for the first time. */
      readonly acknowledged: number;
      readonly request_id?: string;
    }
  | TopicErrorMessage;

export type ControlMessage =
  | {
      readonly type: "auth_success";
      readonly user: string;
      readonly role: string;
      readonly protocol: { readonly serialization: string; readonly compression: string };
    }
  | { readonly type: "auth_error"; readonly message: string; readonly code?: string }
  | {
      readonly type: "pong";
      readonly id: string;
      readonly positions: Readonly<Record<string, number>>;
    }
  | ErrorMessage
  | TopicControlMessage;

export type ServerMessage = DataMessage | TopicDelivery | ControlMessage;
