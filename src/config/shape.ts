/**
 * The configuration as the rest of the server sees it: sections and keys named as in the file.
 *
 * What each key means, its default and its range are in `keys.ts`, key by key.
 */
import type { LogLevel } from "../base/log.ts";

/** The frozen configuration of a server. */
export interface Config {
  readonly server: {
    readonly host: string;
    readonly port: number;
    readonly public_origin: string | undefined;
    readonly tls_cert: string | undefined;
    readonly tls_key: string | undefined;
    readonly ui_enabled: boolean;
    readonly workers: number;
    readonly shutdown_timeout_secs: number;
  };
  readonly storage: {
    readonly data_path: string;
    readonly durability: "sync" | "relaxed";
    readonly history_hours: number;
    readonly history_max_bytes: number;
    readonly flush_rows: number;
    readonly flush_interval_secs: number;
    readonly wal_segment_bytes: number;
    readonly wal_max_bytes: number;
    readonly cache_bytes: number;
    readonly min_free_bytes: number;
    readonly ballast_bytes: number;
    readonly archive_path: string | undefined;
    readonly allowed_roots: readonly string[];
  };
  readonly limits: {
    readonly max_sql_bytes: number;
    readonly max_parameter_bytes: number;
    readonly max_parameters: number;
    readonly max_body_bytes: number;
    readonly max_row_bytes: number;
    readonly max_result_rows: number;
    readonly max_timeout_ms: number;
    readonly queries_per_sec_per_user: number;
    readonly requests_per_sec_per_ip: number;
    readonly connections_per_ip: number;
    readonly auth_requests_per_sec_per_ip: number;
    readonly login_max_failures: number;
    readonly lockout_secs: number;
    readonly subscriptions_per_user: number;
    readonly subscriptions_per_connection: number;
    readonly max_message_size: number;
    readonly messages_per_sec: number;
    readonly transaction_timeout_secs: number;
    readonly transaction_max_bytes: number;
    readonly idempotency_ttl_secs: number;
    readonly idempotency_bytes_per_user: number;
    readonly storage_bytes_per_user: number;
    readonly topic_visibility_secs: number;
    readonly max_poll_secs: number;
    readonly require_where: boolean;
  };
  readonly logging: {
    readonly level: LogLevel;
    readonly logs_path: string;
    readonly log_to_console: boolean;
    readonly format: "compact" | "pretty" | "json";
    readonly targets: Readonly<Record<string, LogLevel>>;
    readonly slow_query_threshold_ms: number;
    readonly max_file_bytes: number;
    readonly max_files: number;
  };
  readonly performance: {
    readonly request_timeout: number;
    readonly keepalive_timeout: number;
    readonly max_connections: number;
    readonly total_query_memory_bytes: number;
    readonly query_memory_bytes: number;
    /** 0 puts nothing on disk. */
    readonly query_temporary_bytes: number;
    readonly http_compression: boolean;
  };
  readonly auth: {
    readonly jwt_secret: string | undefined;
    readonly root_password: string | undefined;
    readonly allow_remote_setup: boolean;
    readonly jwt_expiry_hours: number;
    readonly refresh_expiry_hours: number;
    readonly jwt_trusted_issuers: readonly string[];
    readonly cookie_secure: boolean;
    readonly min_password_length: number;
    readonly max_password_length: number;
    readonly enforce_password_complexity: boolean;
  };
  readonly security: {
    readonly trusted_proxies: readonly string[];
    readonly allowed_hosts: readonly string[];
    readonly metrics_allow: readonly string[];
    readonly cors: {
      readonly allowed_origins: readonly string[];
      readonly allow_credentials: boolean;
      readonly max_age: number;
    };
  };
  readonly websocket: {
    readonly auth_timeout_secs: number;
    readonly idle_timeout_secs: number;
    readonly ping_interval_secs: number;
    readonly max_frame_bytes: number;
    readonly send_queue_bytes: number;
    readonly default_batch_size: number;
    readonly max_batch_size: number;
    readonly loading_timeout_secs: number;
    readonly replay_changes: number;
    readonly compression: boolean;
  };
  readonly files: {
    readonly max_size_bytes: number;
    readonly max_request_bytes: number;
    readonly max_files_per_request: number;
    readonly max_files_per_folder: number;
    readonly allowed_mime_types: readonly string[];
    /** Undefined stands for `{data_path}/tmp`. */
    readonly staging_path: string | undefined;
  };
  readonly oidc: {
    readonly auto_provision: boolean;
    readonly default_role: "user";
    readonly jwks_cache_secs: number;
  };
  readonly cluster: {
    readonly node_bits: number;
    readonly node_id: number;
  };
  /** Where a key ("server.port") got its value from, for those that do not have the default. */
  readonly sources: ReadonlyMap<string, "file" | "environment">;
}

/** A form that text must have, with the words that say so. */
export interface TextForm {
  readonly pattern: RegExp;
  /** What a pattern cannot tell of text that it matches. */
  readonly isFitting?: (text: string) => boolean;
  /** Reads behind "should be". */
  readonly expected: string;
}

type RuleType = "text" | "whole" | "number" | "boolean" | "list" | "levels";

/** What a key takes. */
export interface KeyRule<Value = unknown> {
  readonly type: RuleType;
  readonly initial: Value;
  readonly description: string;
  /** Inclusive bounds of numbers. */
  readonly min?: number;
  readonly max?: number;
  /** The only words that text may be. */
  readonly words?: readonly string[];
  /** Of text, or of each item of a list. */
  readonly form?: TextForm;
  /** Never shown, neither in messages nor in settings. */
  readonly isSecret?: boolean;
  /** The feature is not there yet: only the default is taken. */
  readonly isUnavailable?: boolean;
  /** Environment variable beside the long form. */
  readonly environment?: string;
}
