/**
 * What the server is built from: `main.ts` hands it the keys of the configuration that it reads,
 * and the layers of an open database. The server itself opens no file but those of its TLS
 * certificate.
 */
import type { Auth } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { Descriptors } from "../../base/descriptors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { ReceivedBytes } from "../../base/received_bytes.ts";
import type { LiveEngine } from "../../live/mod.ts";
import type { FileAccess, ReaderCounts, SqlEngine } from "../../sql/mod.ts";
import type { ArchiveGauge, StorageGauge } from "./metrics.ts";

/** The keys of the configuration that the server reads, named as the configuration names them. */
export interface ServerConfig {
  readonly server: {
    readonly host: string;
    /** 0 takes any free port. */
    readonly port: number;
    readonly public_origin?: string | undefined;
    readonly tls_cert?: string | undefined;
    readonly tls_key?: string | undefined;
    readonly ui_enabled: boolean;
    readonly shutdown_timeout_secs: number;
  };
  readonly limits: {
    readonly max_sql_bytes: number;
    readonly max_parameter_bytes: number;
    readonly max_parameters: number;
    readonly max_body_bytes: number;
    readonly max_timeout_ms: number;
    readonly queries_per_sec_per_user: number;
    readonly requests_per_sec_per_ip: number;
    readonly connections_per_ip: number;
    readonly max_message_size: number;
    readonly messages_per_sec: number;
  };
  readonly performance: {
    /** Seconds; 0 is no limit. */
    readonly request_timeout: number;
    readonly keepalive_timeout: number;
    readonly max_connections: number;
    readonly http_compression: boolean;
  };
  readonly auth: {
    readonly allow_remote_setup: boolean;
    readonly cookie_secure: boolean;
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
    readonly compression: boolean;
  };
  readonly files: {
    readonly max_size_bytes: number;
    readonly max_request_bytes: number;
    readonly max_files_per_request: number;
    readonly allowed_mime_types: readonly string[];
  };
  readonly cluster: {
    readonly node_id: number;
  };
}

/** The built admin page. */
export interface UiAssets {
  /** An asset by its path below `/ui/`, without a leading slash; undefined when there is none. */
  get(path: string): UiAsset | undefined | Promise<UiAsset | undefined>;
  /** The HTML of the page, its style nonce filled in. */
  page(nonce: string): string | Promise<string>;
}

export interface UiAsset {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** The name holds a hash of the content, so that it never changes. */
  readonly immutable: boolean;
}

/** The client that the server delivers to users without a package. */
export interface ClientAssets {
  /** The module; undefined if it cannot be bundled. */
  script(): Promise<ClientAsset | undefined>;
  /** The TypeScript declarations of the module. */
  types(): ClientAsset;
}

export interface ClientAsset {
  readonly bytes: Uint8Array;
  /** Changes with the content. */
  readonly tag: string;
}

export interface ServerOptions {
  readonly config: ServerConfig;
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly live: LiveEngine;
  readonly files: FileAccess;
  /** Undefined when the page was not built. */
  readonly uiAssets: UiAssets | undefined;
  readonly clientAssets: ClientAssets;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Semantic version of the product. */
  readonly version: string;
  /** YYYY-MM-DD. */
  readonly buildDate: string;
  /** Told of every error that is no expected failure; the caller has got a 500 or a 1011. */
  readonly onBug: OnBug;
  /** The number of bugs that this process survived. */
  readonly bugCount: () => number;
  /** Gives undefined when the log is not archived. */
  readonly archiveLag: () => ArchiveGauge | undefined;
  /** Whether the disk has no room for more. */
  readonly isReadOnly: () => boolean;
  readonly storageState: () => StorageGauge;
  /** Gives undefined if every query runs on the event loop. */
  readonly readerCounts: () => ReaderCounts | undefined;
  /** Reads the number of open files and sockets; absent if the system does not limit them. */
  readonly descriptors?: (() => Descriptors) | undefined;
  /** Reads what each connection has received; absent if the system does not count it. */
  readonly receivedBytes?: ReceivedBytes | undefined;
}
