/**
 * Every key of the configuration: its type, default, range and meaning, in the order of the file.
 *
 * A key whose feature is not there yet takes its default only: accepting another value would
 * promise what does not happen.
 */
import { isIPv6 } from "node:net";
import { COMMIT_BYTES_MAX } from "../base/limits.ts";
import type { LogLevel } from "../base/log.ts";
import { rangeFromText } from "../server/mod.ts";
import type { Config, KeyRule, TextForm } from "./shape.ts";

type SectionRules<Section> = { readonly [Name in keyof Section]: KeyRule<Section[Name]> };

type Rules = {
  readonly [Name in Exclude<keyof Config, "security" | "sources">]: SectionRules<Config[Name]>;
} & {
  readonly security: SectionRules<Omit<Config["security"], "cors">>;
  readonly "security.cors": SectionRules<Config["security"]["cors"]>;
};

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

const FILLED: TextForm = { pattern: /\S/, expected: "text that is not empty" };
const HOST: TextForm = {
  pattern: /^[^\s/]+$/,
  isFitting: (host) => !host.includes(":") || isIPv6(host.replace(/^\[(.*)\]$/, "$1")),
  expected: "an address or a name without scheme and port, like 127.0.0.1, ::1 or localhost",
};
const ORIGIN: TextForm = {
  pattern: /^https?:\/\/(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i,
  expected: "like https://db.example.com or http://127.0.0.1:2900",
};
const ORIGIN_OR_ANY: TextForm = {
  pattern: new RegExp(`^\\*$|${ORIGIN.pattern.source}`, "i"),
  expected: `an origin ${ORIGIN.expected}, or *`,
};
const ADDRESS: TextForm = {
  pattern: /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]*)(?:\/\d{1,3})?$/i,
  isFitting: (range) => rangeFromText(range) !== undefined,
  expected: "an IP address or a range like 10.0.0.0/8",
};
const ABSOLUTE_PATH: TextForm = {
  pattern: /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+\/?$/,
  expected: "an absolute path below /, like /var/backups, without . and ..",
};
const HOST_NAME: TextForm = { pattern: /^[a-z0-9.-]{1,253}$/i, expected: "a host name" };
const MIME: TextForm = {
  pattern: /^[a-z0-9!#$&^_.+-]+\/(?:\*|[a-z0-9!#$&^_.+-]+)$/i,
  expected: "a media type like image/png or image/*",
};

const LATER: { readonly isUnavailable: true } = { isUnavailable: true };

export const LEVELS: readonly LogLevel[] = ["error", "warn", "info", "debug", "trace"];

const RULES: Rules = {
  server: {
    host: text("127.0.0.1", "Address to listen on", { form: HOST }),
    port: whole(2900, [0, 65_535], "Port to listen on; 0 takes any free one, which is printed"),
    public_origin: maybe("Own origin as browsers see it behind a proxy", { form: ORIGIN }),
    tls_cert: maybe("PEM file of the certificate; with tls_key"),
    tls_key: maybe("PEM file of the private key; with tls_cert"),
    ui_enabled: flag(true, "Whether /ui answers"),
    workers: whole(
      0,
      [0, 256],
      "Threads that run long queries; 0 is one for each core, 16 at most",
    ),
    shutdown_timeout_secs: whole(10, [0, 600], "How long running statements have at shutdown"),
  },
  storage: {
    data_path: text("./data", "Directory of all data; made if missing, locked while in use", {
      form: FILLED,
      environment: "TIDEMARK_DATA_DIR",
    }),
    durability: word("sync", ["sync", "relaxed"], "relaxed answers before the disk does"),
    history_hours: whole(168, [1, 8760], "How long replaced rows stay readable for resume"),
    history_max_bytes: whole(0, [0], "Bytes of history; the oldest goes first; 0 is off"),
    flush_rows: whole(10_000, [1, 999_999], "Buffered row versions that start a flush"),
    flush_interval_secs: whole(300, [1, 86_399], "Age of the oldest buffered row at a flush"),
    wal_segment_bytes: whole(64 * MIB, [MIB, GIB], "Size of one file of the log"),
    wal_max_bytes: whole(GIB, [4 * MIB], "Size of the log above which tables are flushed early"),
    cache_bytes: whole(256 * MIB, [MIB], "Memory for unpacked parts of segments"),
    min_free_bytes: whole(64 * MIB, [0], "Free disk space below which the server only reads"),
    ballast_bytes: whole(32 * MIB, [0], "Reserve that lets DROP run on a full disk; 0 is none"),
    archive_path: maybe("Where full log files are kept for restores to a point in time"),
    allowed_roots: list("Directories below which BACKUP, RESTORE and CREATE STORAGE may name one", {
      form: ABSOLUTE_PATH,
    }),
  },
  limits: {
    max_sql_bytes: whole(MIB, [KIB, 16 * MIB], "Bytes of one SQL text"),
    max_parameter_bytes: whole(512 * KIB, [KIB, 16 * MIB], "Bytes of one parameter"),
    max_parameters: whole(32_767, [1, 65_535], "Parameters of one request"),
    max_body_bytes: whole(10 * MIB, [KIB, GIB], "Bytes of a request body"),
    max_row_bytes: whole(2 * MIB, [KIB, 3 * MIB], "Bytes of one row"),
    max_result_rows: whole(0, [0], "Rows of one result; 0 is no limit"),
    max_timeout_ms: whole(600_000, [1, 86_400_000], "Longest timeout_ms of a request"),
    queries_per_sec_per_user: whole(0, [0], "SQL requests a second of one user; 0 is no limit"),
    requests_per_sec_per_ip: whole(0, [0], "Requests a second of one address; 0 is no limit"),
    connections_per_ip: whole(0, [0], "Open connections of one address; 0 is no limit"),
    auth_requests_per_sec_per_ip: whole(
      20,
      [0],
      "Logins, setups, refreshes and failed tokens a second of one address; 0 is no limit",
    ),
    login_max_failures: whole(5, [0, 100], "Failed logins in a row that lock; 0 is never"),
    lockout_secs: whole(900, [1, 86_400], "How long a login stays locked"),
    subscriptions_per_user: whole(100, [0, 1_000_000], "Live queries of one user; 0 is no limit"),
    subscriptions_per_connection: whole(1000, [1, 100_000], "Live queries of one connection"),
    max_message_size: whole(MIB, [KIB, 16 * MIB], "Bytes of one WebSocket message of a client"),
    messages_per_sec: whole(
      1000,
      [0],
      "WebSocket messages a second of one connection; 0 is no limit",
    ),
    transaction_timeout_secs: whole(300, [1, 3600], "How long a transaction may stay open"),
    transaction_max_bytes: whole(
      100 * MIB,
      [MIB, COMMIT_BYTES_MAX],
      "Bytes that one transaction may write",
    ),
    idempotency_ttl_secs: whole(600, [60, 86_400], "How long answers are kept by key"),
    idempotency_bytes_per_user: whole(
      64 * MIB,
      [0],
      "Bytes of kept answers for one user; 0 means no limit",
    ),
    storage_bytes_per_user: whole(
      0,
      [0],
      "Bytes of the rows and files of one user; 0 means no limit",
    ),
    topic_visibility_secs: whole(60, [1, 86_400], "How long a consumer has to ack", LATER),
    max_poll_secs: whole(60, [1, 300], "Longest wait of a topic poll", LATER),
    require_where: flag(false, "Whether UPDATE and DELETE without WHERE are refused"),
  },
  logging: {
    level: word("info", LEVELS, "Least important level that is written", {
      environment: "TIDEMARK_LOG_LEVEL",
    }),
    logs_path: text("./logs", "Directory of log files", {
      form: FILLED,
      environment: "TIDEMARK_LOGS_DIR",
    }),
    log_to_console: flag(true, "Whether the log goes to stderr too", {
      environment: "TIDEMARK_LOG_TO_CONSOLE",
    }),
    format: word(
      "compact",
      ["compact", "pretty", "json"],
      "How an event looks: a line of text, a line for each of its fields, or JSON",
    ),
    targets: { type: "levels", initial: {}, description: "Levels of single components", ...LATER },
    slow_query_threshold_ms: whole(
      1000,
      [0],
      "Requests of SQL that take as long or longer are logged; 0 is off",
    ),
    max_file_bytes: whole(64 * MIB, [MIB], "Size at which a log file is rolled"),
    max_files: whole(10, [1, 1000], "Log files kept"),
  },
  performance: {
    request_timeout: whole(30, [0], "Seconds that all of a request of SQL may take; 0 is no limit"),
    keepalive_timeout: whole(75, [0, 255], "Seconds until an idle HTTP connection is closed"),
    max_connections: whole(
      100_000,
      [1, 1_000_000],
      "Open connections and running requests of all clients",
    ),
    total_query_memory_bytes: whole(
      GIB,
      [16 * MIB],
      "Memory of all statements together; above it long queries wait",
    ),
    query_memory_bytes: whole(256 * MIB, [MIB], "Memory of one statement"),
    query_temporary_bytes: whole(
      32 * GIB,
      [0],
      "Disk for what one statement holds beyond its memory; 0 is none",
    ),
    http_compression: flag(true, "Whether answers are packed by gzip"),
  },
  auth: {
    jwt_secret: maybe("Key that signs tokens, 32 bytes or more", {
      isSecret: true,
      environment: "TIDEMARK_JWT_SECRET",
    }),
    root_password: maybe("Password of root, set at each start", {
      isSecret: true,
      environment: "TIDEMARK_ROOT_PASSWORD",
    }),
    allow_remote_setup: flag(false, "Whether first-time setup is open to other machines", {
      environment: "TIDEMARK_ALLOW_REMOTE_SETUP",
    }),
    jwt_expiry_hours: {
      type: "number",
      initial: 24,
      min: 0.01,
      max: 8760,
      description: "Hours until an access token expires",
      environment: "TIDEMARK_JWT_EXPIRY_HOURS",
    },
    refresh_expiry_hours: {
      type: "number",
      initial: 168,
      min: 0.01,
      max: 8760,
      description: "Hours until a refresh token expires; not below jwt_expiry_hours",
    },
    jwt_trusted_issuers: list("Issuers whose tokens are taken without a provider section", {
      ...LATER,
      environment: "TIDEMARK_JWT_TRUSTED_ISSUERS",
    }),
    cookie_secure: flag(true, "Whether cookies go over https only", {
      environment: "TIDEMARK_COOKIE_SECURE",
    }),
    min_password_length: whole(8, [8, 128], "Shortest password, in characters"),
    max_password_length: whole(256, [64, 1024], "Longest password, in characters"),
    enforce_password_complexity: flag(
      false,
      "Whether a password needs upper case, lower case, a digit and another character",
    ),
  },
  security: {
    trusted_proxies: list("Proxies whose forwarding headers are believed", {
      form: ADDRESS,
      environment: "TIDEMARK_TRUSTED_PROXIES",
    }),
    allowed_hosts: list("Names of Host that local-only endpoints take", { form: HOST_NAME }),
    metrics_allow: list("Addresses that may read /metrics without a token", { form: ADDRESS }),
  },
  "security.cors": {
    allowed_origins: list("Origins of other sites that browsers may call from, or *", {
      form: ORIGIN_OR_ANY,
    }),
    allow_credentials: flag(false, "Whether such calls carry cookies; not with *"),
    max_age: whole(3600, [0], "Seconds that a browser remembers a preflight"),
  },
  websocket: {
    auth_timeout_secs: whole(3, [1, 60], "How long a connection has to authenticate"),
    idle_timeout_secs: whole(60, [5, 960], "How long a connection may be silent"),
    ping_interval_secs: whole(20, [1, 600], "Time between pings; below idle_timeout_secs"),
    max_frame_bytes: whole(8 * MIB, [64 * KIB, 12 * MIB], "Bytes of one message to a client"),
    send_queue_bytes: whole(MIB, [64 * KIB, GIB], "Bytes queued before a client has to catch up"),
    default_batch_size: whole(1000, [1, 100_000], "Rows of a batch when a client does not say"),
    max_batch_size: whole(10_000, [1, 100_000], "Rows of a batch at most"),
    loading_timeout_secs: whole(600, [10, 86_400], "How long a snapshot may wait for next_batch"),
    replay_changes: whole(10_000, [0, 1_000_000], "Changes replayed one by one after a resume"),
    compression: flag(true, "Whether messages are packed by gzip"),
  },
  files: {
    max_size_bytes: whole(25 * MIB, [KIB, GIB], "Bytes of one file"),
    max_request_bytes: whole(100 * MIB, [KIB, GIB], "Bytes of one multipart request"),
    max_files_per_request: whole(20, [1, 1000], "Files of one request"),
    max_files_per_folder: whole(5000, [1, 1_000_000], "Files in one directory on disk"),
    allowed_mime_types: list("Media types that may be uploaded; empty is all", { form: MIME }),
    staging_path: maybe("Where uploads lie before their commit; by default {data_path}/tmp", LATER),
  },
  oidc: {
    auto_provision: flag(false, "Whether unknown users of a provider get an account", LATER),
    default_role: word("user", ["user"], "Role of such accounts", LATER),
    jwks_cache_secs: whole(3600, [60, 86_400], "How long keys of a provider are kept", LATER),
  },
  cluster: {
    node_bits: whole(0, [0, 6], "Bits of _seq that hold the node; never lowered"),
    node_id: whole(0, [0, 63], "This node, below 2 to the power of node_bits", {
      environment: "TIDEMARK_NODE_ID",
    }),
  },
};

/** A key with its rule. */
export interface Key {
  /** "server.port". */
  readonly path: string;
  /** "server"; "security.cors" for the nested one. */
  readonly section: string;
  readonly name: string;
  readonly rule: KeyRule;
}

/** Every key by its path, in the order above. */
export const KEYS: ReadonlyMap<string, Key> = new Map(
  Object.entries(RULES).flatMap(([section, rules]) =>
    Object.entries(rules as Record<string, KeyRule>).map(([name, rule]): [string, Key] => {
      const path = `${section}.${name}`;
      return [path, { path, section, name, rule }];
    }),
  ),
);

/** Sections by their name. */
export const SECTIONS: readonly string[] = Object.keys(RULES);

/** Other names of a section. */
export const SECTION_SYNONYMS: ReadonlyMap<string, string> = new Map([["authentication", "auth"]]);

/** Other names of keys, by path. */
export const KEY_SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["security.trusted_proxy_ranges", "security.trusted_proxies"],
  ["websocket.client_timeout_secs", "websocket.idle_timeout_secs"],
  ["websocket.heartbeat_interval_secs", "websocket.ping_interval_secs"],
]);

/** Keys that are taken and change nothing. */
export const KEYS_WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "limits.default_query_limit",
  "limits.max_query_limit",
  "performance.client_request_timeout",
  "performance.client_disconnect_timeout",
]);

/** Whether a path that is no key belongs to a feature that is still to come. */
export function isToCome(path: string): boolean {
  return (
    path === "oidc.providers" || path.startsWith("oidc.providers.") || path.startsWith("cluster.")
  );
}

type Extra = Pick<KeyRule, "form" | "environment" | "isSecret" | "isUnavailable">;

function text(initial: string, description: string, extra: Extra = {}): KeyRule<string> {
  return { type: "text", initial, description, ...extra };
}

/** Text that may be absent. */
function maybe(description: string, extra: Extra = {}): KeyRule<string | undefined> {
  return { type: "text", initial: undefined, description, form: FILLED, ...extra };
}

function word<Word extends string>(
  initial: Word,
  words: readonly Word[],
  description: string,
  extra: Extra = {},
): KeyRule<Word> {
  return { type: "text", initial, words, description, ...extra };
}

/** A whole number; without an upper bound it may be as large as a number holds exactly. */
function whole(
  initial: number,
  [min, max = Number.MAX_SAFE_INTEGER]: readonly [min: number, max?: number],
  description: string,
  extra: Extra = {},
): KeyRule<number> {
  return { type: "whole", initial, min, max, description, ...extra };
}

function flag(initial: boolean, description: string, extra: Extra = {}): KeyRule<boolean> {
  return { type: "boolean", initial, description, ...extra };
}

function list(description: string, extra: Extra = {}): KeyRule<readonly string[]> {
  return { type: "list", initial: [], description, ...extra };
}
