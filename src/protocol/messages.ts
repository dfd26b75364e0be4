/**
 * Every message on `/v1/ws`, in its logical shape; bytes are the server's `frames/`.
 *
 * A cell is a SQL value as the wire has it; `types` makes it. A bigint stands for a whole number
 * beyond 2^53 − 1: decimal text in JSON, a 64-bit integer in MessagePack.
 */
import type { SubscriptionCode } from "./error_codes.ts";

export type Cell = null | boolean | number | bigint | string | readonly number[];

export type CellObject = Readonly<Record<string, Cell>>;

export type DataTypeWord =
  | string
  | { readonly Decimal: { readonly precision: number; readonly scale: number } }
  | { readonly Embedding: number };

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
}

export interface SubscriptionSpec {
  readonly id: string;
  readonly sql: string;
  /** Absent: full snapshot, then live; null: live only. */
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
  | { readonly type: "ping"; readonly id?: string };

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
}

export interface InitialDataBatch {
  readonly type: "initial_data_batch";
  readonly subscription_id: string;
  readonly rows: readonly CellObject[];
  readonly batch_control: BatchControl;
}

export interface Change {
  readonly type: "change";
  readonly subscription_id: string;
  readonly change_type: "insert" | "update" | "delete";
  readonly rows: readonly CellObject[];
  readonly old_values?: readonly CellObject[];
  /** Commit time, milliseconds since 1970. */
  readonly ts?: number;
  readonly commit_seq?: number;
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

/** Data messages: encoded by the connection's serialization and compression. */
export type DataMessage = SubscriptionAck | InitialDataBatch | Change;

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
  | ErrorMessage;

export type ServerMessage = DataMessage | ControlMessage;
