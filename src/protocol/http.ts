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

export interface UserBody {
  readonly id: string;
  readonly role: string;
  readonly email: string | null;
  readonly created_at: string;
  readonly updated_at: string;
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

/** `GET /health` and `GET /v1/api/healthcheck`. */
export interface HealthBody {
  readonly status: "healthy";
  readonly api_version: "v1";
  readonly version: string;
  readonly build_date: string;
}
