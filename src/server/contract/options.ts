/**
 * The dependencies of the server: `main.ts` passes in the configuration keys that the server uses,
 * and the layers of an open database. The server itself opens no file except its TLS certificate.
 */
import type { Auth } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { Descriptors } from "../../base/descriptors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { ReceivedBytes } from "../../base/received_bytes.ts";
import type { LiveEngine } from "../../live/mod.ts";
import type {
  ArchiveAccess,
  FileAccess,
  MemoryPart,
  ReaderCounts,
  SqlEngine,
} from "../../sql/mod.ts";
import type { TopicConsumers, WebhookFigures } from "../../topics/mod.ts";

/** The configuration keys that the server uses, under their names in the configuration. */
export interface ServerConfig {
  readonly server: {
    readonly host: string;
    /** The port to listen on; 0 selects any free port. */
    readonly port: number;
    readonly public_origin?: string | undefined;
    readonly base_path?: string | undefined;
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
    readonly max_poll_secs: number;
  };
  readonly performance: {
    /** The time limit for a request, in seconds; 0 means no limit. */
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

/** The limits on the memory that the server uses for all clients together. */
export interface ServerMemory {
  /**
   * The limit, in bytes, for all short bodies together. A separate limit of the same size applies
   * to the first megabytes of all longer bodies.
   */
  readonly bodyBytes: number;
  /** The limit, in bytes, for longer bodies, not counting the first megabyte of each. */
  readonly largeBodyBytes: number;
  /** The limit for clients' unfinished and waiting messages. */
  readonly messageBytes: number;
  /** The limit for messages waiting for the network. */
  readonly sendQueueBytes: number;
}

/** The memory used by a component of the server, and its limit. */
export interface HeldMemory {
  readonly usedBytes: number;
  readonly allowedBytes: number;
}

/** The memory that each component of the server uses for clients. */
export interface ServerMemoryUse {
  readonly bodies: HeldMemory;
  readonly messages: HeldMemory;
  readonly sendQueues: HeldMemory;
}

/** The files of the built admin page. */
export interface UiAssets {
  /**
   * Returns the asset at a path below `/ui/`, given without a leading slash; undefined if there is
   * none.
   */
  get(path: string): UiAsset | undefined | Promise<UiAsset | undefined>;
  /**
   * Returns the HTML of the page.
   *
   * @param nonce The nonce for its styles.
   * @param basePath The path below which the browser reaches the server; empty for the root.
   */
  page(nonce: string, basePath: string): string | Promise<string>;
}

export interface UiAsset {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** Whether the name contains a hash of the content. If so, the asset never changes. */
  readonly immutable: boolean;
}

/** The client library, which the server itself delivers so that users need no package. */
export interface ClientAssets {
  /** Returns the JavaScript module; undefined if it cannot be bundled. */
  script(): Promise<ClientAsset | undefined>;
  /** Returns the TypeScript declarations of the module. */
  types(): ClientAsset;
}

export interface ClientAsset {
  readonly bytes: Uint8Array;
  /** An entity tag. It changes with the content of the file. */
  readonly tag: string;
}

/** Figures about the storage's free space, damage and failures. */
export interface StorageGauge {
  readonly freeBytes: number | undefined;
  readonly isReadOnly: boolean;
  readonly logBytes: number;
  readonly quarantinedSegments: number;
  /** The number of jobs that have failed since startup, by type. */
  readonly failedJobs: ReadonlyMap<string, number>;
}

/**
 * How many times the process has released memory since startup because it was close to its limit.
 */
export interface MemoryGivenBack {
  /** The number of full garbage collections on the event loop. */
  readonly collections: number;
  /** How many times the caches of unpacked segment data have been dropped. */
  readonly caches: number;
  /** The number of flushes started early. */
  readonly flushes: number;
}

/** The log files waiting to be archived. */
export interface ArchiveGauge {
  /** The number of full log files that are not in the archive yet, and their total size. */
  readonly files: number;
  readonly bytes: number;
  /** The number of log files that have been dropped without having been archived since startup. */
  readonly lostFiles: number;
  /** The reason why the last attempt failed; undefined if it succeeded. */
  readonly failure: string | undefined;
}

export interface ServerOptions {
  readonly config: ServerConfig;
  readonly memory: ServerMemory;
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly live: LiveEngine;
  readonly topics: TopicConsumers;
  readonly webhookFigures: () => WebhookFigures;
  readonly files: FileAccess;
  readonly exports: ArchiveAccess;
  /** The built admin page; undefined if it was not built. */
  readonly uiAssets: UiAssets | undefined;
  readonly clientAssets: ClientAssets;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The semantic version of the product. */
  readonly version: string;
  /** The date on which the server was built, as YYYY-MM-DD. */
  readonly buildDate: string;
  /**
   * Called for every unexpected error. The caller of the API receives status 500 or close code
   * 1011.
   */
  readonly onBug: OnBug;
  /** Returns the number of bugs that this process has survived. */
  readonly bugCount: () => number;
  /** Returns the archive's backlog; undefined if the log is not archived. */
  readonly archiveLag: () => ArchiveGauge | undefined;
  /** Returns whether the data directory's disk is full. */
  readonly isReadOnly: () => boolean;
  readonly storageState: () => StorageGauge;
  /** Returns how much memory each part of the process uses. */
  readonly memoryParts: () => readonly MemoryPart[];
  readonly memoryGivenBack: () => MemoryGivenBack;
  /** Returns the reader counts; undefined if every query runs on the event loop. */
  readonly readerCounts: () => ReaderCounts | undefined;
  /** Reads the number of open files and sockets; absent if the system does not limit them. */
  readonly descriptors?: (() => Descriptors) | undefined;
  /**
   * Reads how many bytes each connection has received; absent if the system does not count them.
   */
  readonly receivedBytes?: ReceivedBytes | undefined;
}
