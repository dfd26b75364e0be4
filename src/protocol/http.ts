/** Defines the types of the bodies that HTTP endpoints receive and return. */
import type { SchemaField } from "./messages.ts";

/** The request body of `POST /v1/api/sql`. */
export interface SqlRequestBody {
  readonly sql: string;
  readonly params?: readonly (null | boolean | number | string)[] | null;
  readonly namespace_id?: string | null;
  readonly timeout_ms?: number | null;
  readonly check?: boolean | null;
  readonly idempotency_key?: string | null;
}

/** The request body of `POST /v1/api/transactions`. */
export interface TransactionRequestBody {
  readonly namespace_id?: string | null;
  readonly isolation?: "snapshot" | null;
  readonly read_only?: boolean | null;
  readonly timeout_ms?: number | null;
}

/** The request body of `POST /v1/api/transactions/{id}/commit`. */
export interface TransactionCommitRequestBody {
  readonly idempotency_key?: string | null;
}

/** A transaction that spans several requests. */
export interface TransactionBody {
  readonly transaction_id: string;
  readonly state: "open" | "failed" | "committed" | "rolled_back" | "unknown";
  /** The deadline of an open transaction, in RFC 3339 format. */
  readonly expires_at?: string;
  readonly idle_timeout_ms?: number;
  /** The commit position of a committed transaction; null if the transaction changed no rows. */
  readonly last_seq?: number | null;
  /** Why the transaction has ended. */
  readonly reason?: string;
}

/** An entry of `results`, which contains one entry per statement. */
export interface StatementEntry {
  /**
   * The columns of `rows`. Both `schema` and `rows` are present only for statements that return
   * rows.
   */
  readonly schema?: readonly SchemaField[];
  readonly rows?: readonly (readonly unknown[])[];
  readonly row_count: number;
  readonly message?: string;
  readonly as_user: string;
  readonly last_seq?: number | null;
  /** Messages about effects of the statement that may be unintended. */
  readonly notices?: readonly string[];
}

/**
 * The `error` object in a response to SQL (shape B). Error responses of shapes A and C have its
 * optional fields at the top level.
 */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  /** The 0-based UTF-16 offset into the `sql` of the request. */
  readonly position?: number;
  readonly hint?: string;
  /** The 0-based index of the failing statement. */
  readonly statement?: number;
  readonly reason?: string;
  readonly retry_after_seconds?: number;
  /** The maximum size of a body, in bytes; set for status 413. */
  readonly max_bytes?: number;
  readonly size_bytes?: number;
  /**
   * The earliest seq at which the state is still known; set for RESUME_EXPIRED and
   * `history_too_old`.
   */
  readonly earliest_seq?: number;
  /** Details that are sent only to administrators. */
  readonly details?: string;
}

/** The response to `POST /v1/api/sql`: the results of statements, or an error (shape B). */
export interface SqlResponseBody {
  readonly results: readonly StatementEntry[];
  readonly status: "success" | "error";
  /** How long the request took, in milliseconds with 3 decimal places. */
  readonly took: number;
  readonly error?: ErrorBody;
}

/** An error response with all its fields at the top level (shape A). */
export interface PlainErrorBody {
  readonly error: string;
  readonly message: string;
  readonly retry_after_seconds?: number;
  /** The maximum size of a body, in bytes; set for status 413. */
  readonly max_bytes?: number;
  readonly size_bytes?: number;
  /** The request field to which a `weak_password` error refers. */
  readonly field?: string;
}

/** An error response of a topic endpoint (shape C). */
export interface TopicErrorBody {
  /** The human-readable error message. */
  readonly error: string;
  readonly code: string;
  readonly hint?: string;
  readonly retry_after_seconds?: number;
  /** The maximum size of a body, in bytes; set for status 413. */
  readonly max_bytes?: number;
  readonly size_bytes?: number;
}

/** Where a group starts reading a partition. Keywords and names are case-insensitive. */
export type TopicStartBody =
  | string
  | { readonly Offset: number }
  /** A time in Unix milliseconds. */
  | { readonly Timestamp: number };

/** The request body of `POST /v1/api/topics/consume`. */
export interface TopicConsumeRequestBody {
  readonly topic_id: string;
  readonly group_id: string;
  readonly start?: TopicStartBody | null;
  readonly limit?: number | null;
  readonly partition_id?: number | null;
  readonly timeout_seconds?: number | null;
  readonly ordered?: boolean | null;
}

export interface TopicMessageBody {
  readonly topic_id: string;
  readonly partition_id: number;
  readonly offset: number;
  /** The payload: Base64-encoded JSON over HTTP, plain JSON text over a WebSocket. */
  readonly payload: string;
  readonly key: string | null;
  readonly timestamp_ms: number;
  readonly user?: string;
  readonly op: "Insert" | "Update" | "Delete";
  readonly deliveries: number;
}

export interface TopicConsumeBody {
  readonly messages: readonly TopicMessageBody[];
  readonly next_offset: number;
  readonly has_more: boolean;
}

/** The request body of `POST /v1/api/topics/ack`. Either `upto_offset` or `offsets` is required. */
export interface TopicAckRequestBody {
  readonly topic_id: string;
  readonly group_id: string;
  readonly upto_offset?: number | null;
  readonly offsets?: readonly number[] | null;
  readonly partition_id?: number | null;
}

export interface TopicAckBody {
  readonly success: true;
  /**
   * The highest offset such that all messages up to it have been acknowledged; -1 if there is
   * none.
   */
  readonly acknowledged_offset: number;
}

/** The request body of `POST /v1/api/topics/nack`. */
export interface TopicNackRequestBody {
  readonly topic_id: string;
  readonly group_id: string;
  readonly offsets: readonly number[];
  /** The delay before the messages are delivered again, in milliseconds; defaults to 0. */
  readonly delay_ms?: number | null;
  readonly partition_id?: number | null;
}

export interface TopicNackBody {
  readonly success: true;
}

/** The response to `GET /v1/api/auth/status`. */
export interface AuthStatusBody {
  readonly needs_setup: boolean;
  readonly message: string;
  /** Whether setup requires `setup_code`, which the server printed at startup. */
  readonly setup_code_required: boolean;
  readonly oidc_providers: readonly {
    readonly name: string;
    readonly label: string;
    readonly login_url: string;
  }[];
}

/** The request body of `POST /v1/api/auth/setup`. */
export interface SetupRequestBody {
  readonly user: string;
  readonly password: string;
  readonly root_password: string;
  readonly email?: string | null;
  /** The setup code that the server printed at startup. */
  readonly setup_code?: string | null;
}

/** The request body of `POST /v1/api/auth/signup`. */
export interface SignUpRequestBody {
  /** The login name; may be absent if `email` serves as the login name. */
  readonly user?: string | null;
  readonly password: string;
  readonly email?: string | null;
  /** The invitation code that permits the sign-up. */
  readonly invitation?: string | null;
}

/** The request body of `POST /v1/api/auth/password`. */
export interface PasswordRequestBody {
  readonly password: string;
  readonly new_password: string;
}

/** The request body of `POST /v1/api/auth/delete`. */
export interface DeleteRequestBody {
  /** The password of the account; absent if it has none. */
  readonly password?: string | null;
  /**
   * The code from a new login through a provider; required if the account has no password and its
   * session began more than five minutes ago.
   */
  readonly code?: string;
  readonly verifier?: string;
}

/** The request body of `POST /v1/api/auth/oidc/token`. */
export interface ProviderCodeRequestBody {
  /** The code returned by the login. It works once, within a minute. */
  readonly code: string;
  /** The PKCE verifier. Its SHA-256 hash was sent when the login began. */
  readonly verifier: string;
}

/** The provider logins linked to the caller's account. */
export interface AccountLinksBody {
  readonly links: readonly {
    /** The configured name of the provider. */
    readonly provider: string;
    readonly subject: string;
    readonly label: string;
  }[];
}

export interface ProviderUnlinkRequestBody {
  readonly provider: string;
  readonly subject: string;
  /** The password of the account; absent if it has none. */
  readonly password?: string | null;
}

/** The request body of `POST /v1/api/auth/oidc/link`. */
export interface ProviderLinkRequestBody extends ProviderCodeRequestBody {
  /** The password of the account; absent if it has none. */
  readonly password?: string | null;
  /**
   * The code from a login that is already linked to the account; required if the account has no
   * password.
   */
  readonly own_code?: string;
  readonly own_verifier?: string;
}

/** The request body of `POST /v1/api/auth/reset_link`. */
export interface ResetLinkRequestBody {
  /** The user's login name or email address. */
  readonly user: string;
}

/** The request body of `POST /v1/api/auth/reset`. */
export interface ResetRequestBody {
  readonly token: string;
  readonly password: string;
}

/** The request body of `POST /v1/api/auth/email`. */
export interface EmailRequestBody {
  readonly password: string;
  /** The user's new email address. */
  readonly email: string;
}

/** The request body of `POST /v1/api/auth/verify`. */
export interface VerifyRequestBody {
  readonly token: string;
}

/** The request body of `POST /v1/api/auth/login`. */
export interface LoginRequestBody {
  readonly user: string;
  readonly password: string;
}

/**
 * The request body of `POST /v1/api/auth/refresh`. The token may be sent in a header or a cookie
 * instead.
 */
export interface RefreshRequestBody {
  readonly refresh_token?: string | null;
}

/** The request body of `POST /v1/api/auth/logout`. */
export interface LogoutRequestBody {
  /** Whether to end all of the user's sessions, not only this one. */
  readonly all?: boolean;
}

export interface UserBody {
  readonly id: string;
  readonly role: string;
  readonly email: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The response to `POST /v1/api/auth/setup`. */
export interface SetupBody {
  readonly user: UserBody;
  readonly message: string;
}

/** The response to a login or a refresh. */
export interface LoginBody {
  readonly access_token: string;
  readonly expires_at: string;
  readonly refresh_token: string;
  readonly refresh_expires_at: string;
  readonly user: UserBody;
  readonly admin_ui_access: boolean;
}

/** The response to `GET /v1/api/auth/me`. */
export interface MeBody {
  readonly user: UserBody;
  readonly admin_ui_access: boolean;
}

/** The response to a request whose only result is a message. */
export interface MessageBody {
  readonly message: string;
}

/** The response to `GET /health` and `GET /v1/api/healthcheck`. */
export interface HealthBody {
  readonly status: "healthy";
  readonly api_version: "v1";
  readonly version: string;
  readonly build_date: string;
}

/** The response to `GET /health/live`. */
export interface AliveBody {
  readonly status: "alive";
}

/** The response to `GET /health/ready`. */
export interface ReadinessBody {
  readonly status: "ready" | "draining";
  /** Set while the disk has only enough space for reads, DELETE and DROP. */
  readonly read_only?: true;
}

/** The response to `GET /v1/api/cluster/health`. */
export interface ClusterHealthBody {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly version: string;
  readonly build_date: string;
  readonly is_cluster_mode: boolean;
  readonly cluster_id: string;
  readonly node_id: number;
  readonly is_leader: boolean;
  readonly total_groups: number;
  readonly groups_leading: number;
  readonly current_term: number;
  readonly last_applied: number | null;
  readonly millis_since_quorum_ack: number | null;
  readonly nodes: readonly ClusterNodeBody[];
}

export interface ClusterNodeBody {
  readonly node_id: number;
  readonly role: "leader" | "follower" | "learner" | "candidate";
  readonly status: "active" | "offline" | "joining" | "catching_up" | "unknown";
  readonly api_addr: string;
  readonly is_self: boolean;
  readonly is_leader: boolean;
  readonly replication_lag: number | null;
  readonly catchup_progress_pct: number | null;
  readonly hostname: string | null;
  readonly memory_usage_mb: number | null;
  readonly cpu_usage_percent: number | null;
  readonly uptime_seconds: number | null;
  readonly uptime_human: string | null;
}
