/**
 * Bodies of the HTTP endpoints, in the words of the wire contract.
 */
import type { SchemaField } from "./messages.ts";

/** `POST /v1/api/sql`. */
export interface SqlRequestBody {
  readonly sql: string;
  readonly params?: readonly (null | boolean | number | string)[] | null;
  readonly namespace_id?: string | null;
  readonly timeout_ms?: number | null;
  readonly check?: boolean | null;
  readonly idempotency_key?: string | null;
}

/** One entry of `results`, one per statement. */
export interface StatementEntry {
  /** With `rows`, for statements that yield rows. */
  readonly schema?: readonly SchemaField[];
  readonly rows?: readonly (readonly unknown[])[];
  readonly row_count: number;
  readonly message?: string;
  readonly as_user: string;
  readonly last_seq?: number | null;
  /** Effects of the statement that may be unintended. */
  readonly notices?: readonly string[];
}

/** The inner `error` of shape B; in shapes A and C its optional fields stand at top level. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  /** 0-based UTF-16 offset into the `sql` of the request. */
  readonly position?: number;
  readonly hint?: string;
  /** 0-based index of the failing statement. */
  readonly statement?: number;
  readonly reason?: string;
  readonly retry_after_seconds?: number;
  /** For 413. */
  readonly max_bytes?: number;
  readonly size_bytes?: number;
  /** For RESUME_EXPIRED. */
  readonly earliest_seq?: number;
  /** For admins only. */
  readonly details?: string;
}

/** Shape B, and the success of `POST /v1/api/sql`. */
export interface SqlResponseBody {
  readonly results: readonly StatementEntry[];
  readonly status: "success" | "error";
  /** Milliseconds, 3 decimals. */
  readonly took: number;
  readonly error?: ErrorBody;
}

/** Shape A. */
export interface PlainErrorBody {
  readonly error: string;
  readonly message: string;
  readonly retry_after_seconds?: number;
  /** For 413. */
  readonly max_bytes?: number;
  readonly size_bytes?: number;
  /** For `weak_password`: which field of the request. */
  readonly field?: string;
}

/** `GET /v1/api/auth/status`. */
export interface AuthStatusBody {
  readonly needs_setup: boolean;
  readonly message: string;
  readonly oidc_providers: readonly {
    readonly name: string;
    readonly label: string;
    readonly login_url: string;
  }[];
}

/** `POST /v1/api/auth/setup`. */
export interface SetupRequestBody {
  readonly user: string;
  readonly password: string;
  readonly root_password: string;
  readonly email?: string | null;
}

/** `POST /v1/api/auth/login`. */
export interface LoginRequestBody {
  readonly user: string;
  readonly password: string;
}

/** `POST /v1/api/auth/refresh`; the token may come by header or cookie instead. */
export interface RefreshRequestBody {
  readonly refresh_token?: string | null;
}

/** `POST /v1/api/auth/logout`. */
export interface LogoutRequestBody {
  /** Every session of the user, not only this one. */
  readonly all?: boolean;
}

export interface UserBody {
  readonly id: string;
  readonly role: string;
  readonly email: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What a setup made. */
export interface SetupBody {
  readonly user: UserBody;
  readonly message: string;
}

/** Login and refresh. */
export interface LoginBody {
  readonly access_token: string;
  readonly expires_at: string;
  readonly refresh_token: string;
  readonly refresh_expires_at: string;
  readonly user: UserBody;
  readonly admin_ui_access: boolean;
}

/** `GET /v1/api/auth/me`. */
export interface MeBody {
  readonly user: UserBody;
  readonly admin_ui_access: boolean;
}

/** Logout. */
export interface MessageBody {
  readonly message: string;
}

/** `GET /health` and `GET /v1/api/healthcheck`. */
export interface HealthBody {
  readonly status: "healthy";
  readonly api_version: "v1";
  readonly version: string;
  readonly build_date: string;
}

/** `GET /health/live`. */
export interface AliveBody {
  readonly status: "alive";
}

/** `GET /health/ready`. */
export interface ReadinessBody {
  readonly status: "ready" | "draining";
  /** Present while the disk has no room for more than reads, DELETE and DROP. */
  readonly read_only?: true;
}

/** `GET /v1/api/cluster/health`. */
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
