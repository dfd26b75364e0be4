/**
 * Defines every configuration key: its type, default, range and meaning, in the order of the file.
 * The type of the configuration is derived from these definitions.
 *
 * A key whose feature does not exist yet accepts only its default, because accepting any other
 * value would suggest that the feature exists.
 */
import { COMMIT_BYTES_MAX } from "../base/limits.ts";
import type { LogLevel } from "../base/log.ts";
import {
  FILLED,
  flag,
  type KeyRule,
  levels,
  list,
  listOf,
  maybe,
  maybeFlag,
  number,
  text,
  whole,
  word,
} from "./key_rule.ts";
import {
  ABSOLUTE_PATH,
  ADDRESS,
  BASE_PATH,
  CLAIM_NAME,
  HOST,
  HOST_NAME,
  HTTP_URL,
  ISSUER,
  KEPT_CLAIM,
  MIME,
  NOTICE_SECRET,
  ORIGIN,
  ORIGIN_OR_ANY,
  OUTBOUND_HOST,
  SCOPE,
} from "./text_forms.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

const LATER: { readonly isUnavailable: true } = { isUnavailable: true };

export const LEVELS: readonly LogLevel[] = ["error", "warn", "info", "debug", "trace"];

const RULES = {
  server: {
    host: text("127.0.0.1", "Address on which the server listens", { form: HOST }),
    port: whole(
      2900,
      [0, 65_535],
      "Port on which the server listens; 0 chooses a free port, which the server prints when it starts",
    ),
    public_origin: maybe(
      "Origin at which browsers reach this server through a proxy, such as https://db.example.com",
      {
        form: ORIGIN,
      },
    ),
    base_path: maybe("Path at which a proxy exposes this server, such as /db", { form: BASE_PATH }),
    tls_cert: maybe("PEM file with the TLS certificate; requires tls_key"),
    tls_key: maybe("PEM file with the private key of the TLS certificate; requires tls_cert"),
    ui_enabled: flag(true, "Whether the admin page is served at /ui"),
    workers: whole(
      0,
      [0, 256],
      "Number of threads that run long queries; 0 means one per core, but at most one per 192 MiB of memory, and at most 16. While all threads are busy, a statement that has run for 5 ms has to wait for one",
    ),
    shutdown_timeout_secs: whole(
      10,
      [0, 600],
      "How long a shutdown waits for running statements to finish",
    ),
  },
  storage: {
    data_path: text(
      "./data",
      "Directory for all data; it is created if missing, and locked while the server runs",
      {
        form: FILLED,
        environment: "TIDEMARK_DATA_DIR",
      },
    ),
    durability: word(
      "sync",
      ["sync", "relaxed"],
      "When a write is acknowledged: with sync, once it is on disk; with relaxed, before that, so a crash may lose it",
    ),
    history_hours: whole(
      168,
      [1, 8760],
      "How long old row versions are kept so that clients can resume from an earlier position",
    ),
    history_max_bytes: whole(
      0,
      [0],
      "Maximum total size of old row versions, in bytes; the oldest are deleted first; 0 means no limit",
    ),
    flush_rows: whole(
      10_000,
      [1, 999_999],
      "Number of buffered row versions that triggers a flush to disk",
    ),
    flush_interval_secs: whole(
      300,
      [1, 86_399],
      "Age of the oldest buffered row that triggers a flush to disk",
    ),
    wal_segment_bytes: whole(64 * MIB, [MIB, GIB], "Size of a single write-ahead log file"),
    wal_max_bytes: whole(
      GIB,
      [4 * MIB],
      "Total size of the write-ahead log above which tables are flushed early",
    ),
    cache_bytes: whole(256 * MIB, [MIB], "Memory for the cache of uncompressed segment data", {
      share: 1 / 16,
    }),
    memtable_bytes: whole(
      512 * MIB,
      [MIB],
      "Memory for the buffered row versions of all tables together; above it, the largest tables are flushed early",
      { share: 1 / 8 },
    ),
    min_free_bytes: whole(
      64 * MIB,
      [0],
      "Free disk space below which the server accepts only reads and statements that free space",
    ),
    ballast_bytes: whole(
      32 * MIB,
      [0],
      "Disk space reserved so that DROP works even when the disk is full; 0 reserves none",
    ),
    archive_path: maybe(
      "Directory to which completed write-ahead log files are copied, for point-in-time restores",
    ),
    allowed_roots: list(
      "Directories whose subdirectories BACKUP, RESTORE and CREATE STORAGE may use",
      {
        form: ABSOLUTE_PATH,
      },
    ),
  },
  limits: {
    max_sql_bytes: whole(
      MIB,
      [KIB, 16 * MIB],
      "Maximum size in bytes of the SQL in a single request",
    ),
    max_parameter_bytes: whole(
      512 * KIB,
      [KIB, 16 * MIB],
      "Maximum size in bytes of a single parameter",
    ),
    max_parameters: whole(32_767, [1, 65_535], "Maximum number of parameters per request"),
    max_body_bytes: whole(10 * MIB, [KIB, GIB], "Maximum size in bytes of a request body", {
      share: 1 / 32,
    }),
    max_row_bytes: whole(2 * MIB, [KIB, 3 * MIB], "Maximum size in bytes of a single row"),
    max_result_rows: whole(0, [0], "Maximum number of rows in a single result; 0 means no limit"),
    max_timeout_ms: whole(
      600_000,
      [1, 86_400_000],
      "Highest timeout_ms that a request may specify",
    ),
    queries_per_sec_per_user: whole(
      0,
      [0],
      "Maximum number of SQL requests per second and user; 0 means no limit",
    ),
    requests_per_sec_per_ip: whole(
      0,
      [0],
      "Maximum number of requests per second and client address; 0 means no limit",
    ),
    connections_per_ip: whole(
      0,
      [0],
      "Maximum number of open connections per client address; 0 means no limit",
    ),
    auth_requests_per_sec_per_ip: whole(
      20,
      [0],
      "Maximum number of logins, setup requests, token refreshes and invalid tokens per second and client address; 0 means no limit",
    ),
    login_max_failures: whole(
      5,
      [0, 100],
      "Number of consecutive failures after which a login is locked; 0 means never",
    ),
    signups_per_hour: whole(
      1000,
      [0],
      "Maximum number of sign-ups and guest accounts created per hour, from all client addresses together; a single address may use up to a tenth of it; 0 means no limit",
    ),
    lockout_secs: whole(900, [1, 86_400], "How long a login stays locked after too many failures"),
    live_state_bytes: whole(
      256 * MIB,
      [MIB],
      "Maximum memory for the rows of all materialised live queries together; a single query may use up to a quarter of it",
      { share: 1 / 16 },
    ),
    subscriptions_per_user: whole(
      100,
      [0, 1_000_000],
      "Maximum number of live queries per user; 0 means no limit",
    ),
    subscriptions_per_connection: whole(
      1000,
      [1, 100_000],
      "Maximum number of live queries per connection",
    ),
    max_message_size: whole(
      MIB,
      [KIB, 16 * MIB],
      "Maximum size in bytes of a single WebSocket message from a client",
    ),
    messages_per_sec: whole(
      1000,
      [0],
      "Maximum number of WebSocket messages per second and connection; 0 means no limit",
    ),
    transaction_timeout_secs: whole(300, [1, 3600], "How long a transaction may stay open"),
    transaction_max_bytes: whole(
      100 * MIB,
      [MIB, COMMIT_BYTES_MAX],
      "Maximum number of bytes that a single transaction may write",
      { share: 1 / 16 },
    ),
    transaction_idle_secs: whole(
      60,
      [1, 3600],
      "How long a transaction that spans requests may wait for its next request before it is rolled back",
    ),
    max_transactions: whole(
      1000,
      [0, 100_000],
      "Maximum number of open transactions that span requests, for all users together; 0 means no limit",
    ),
    transactions_per_user: whole(
      20,
      [0, 100_000],
      "Maximum number of open transactions that span requests, per user; 0 means no limit",
    ),
    idempotency_ttl_secs: whole(
      600,
      [60, 86_400],
      "How long the response to a request with an idempotency_key is kept",
    ),
    idempotency_bytes_per_user: whole(
      64 * MIB,
      [0],
      "Maximum total size in bytes of the responses kept per user; 0 means no limit",
    ),
    storage_bytes_per_user: whole(
      0,
      [0],
      "Maximum total size in bytes of the rows and files of a single user; 0 means no limit",
    ),
    topic_visibility_secs: whole(
      60,
      [1, 86_400],
      "How long a consumer has to acknowledge a message from a topic before it is delivered again",
    ),
    max_poll_secs: whole(60, [1, 300], "How long a request may wait for messages from a topic"),
    require_where: flag(false, "Whether UPDATE and DELETE statements without WHERE are rejected"),
  },
  logging: {
    level: word<LogLevel>("info", LEVELS, "Least severe level that is logged", {
      environment: "TIDEMARK_LOG_LEVEL",
    }),
    logs_path: text("./logs", "Directory for the log files", {
      form: FILLED,
      environment: "TIDEMARK_LOGS_DIR",
    }),
    log_to_console: flag(true, "Whether log events are also written to stderr", {
      environment: "TIDEMARK_LOG_TO_CONSOLE",
    }),
    format: word(
      "compact",
      ["compact", "pretty", "json"],
      "Format of log events: compact writes a line of text, pretty a line per field, json a JSON object",
    ),
    targets: levels("Log levels for individual components", LATER),
    slow_query_threshold_ms: whole(
      1000,
      [0],
      "Duration in milliseconds from which an SQL request is logged as slow; 0 means never",
    ),
    max_file_bytes: whole(
      64 * MIB,
      [MIB],
      "Size at which the server starts a new log file, in bytes",
    ),
    max_files: whole(10, [1, 1000], "Number of log files to keep"),
  },
  performance: {
    request_timeout: whole(
      30,
      [0],
      "How long an SQL request may take, in seconds; 0 means no limit",
    ),
    keepalive_timeout: whole(
      75,
      [0, 255],
      "How long an idle HTTP connection stays open, in seconds",
    ),
    max_connections: whole(
      100_000,
      [1, 1_000_000],
      "Maximum number of open connections and running requests, for all clients together",
    ),
    memory_bytes: whole(
      0,
      [0],
      "Memory that the server process may use; 0 means as much as its control group and the machine allow",
    ),
    total_query_memory_bytes: whole(
      GIB,
      [16 * MIB],
      "Memory limit for all statements together; while it is exceeded, long queries wait",
      { share: 1 / 6 },
    ),
    query_memory_bytes: whole(256 * MIB, [MIB], "Maximum memory for a single statement", {
      share: 1 / 8,
    }),
    query_temporary_bytes: whole(
      32 * GIB,
      [0],
      "Maximum total size in bytes of the temporary files of a single statement; 0 allows none",
    ),
    http_compression: flag(true, "Whether HTTP responses are compressed with gzip"),
  },
  auth: {
    jwt_secret: maybe("Secret used to sign tokens; at least 32 bytes", {
      isSecret: true,
      environment: "TIDEMARK_JWT_SECRET",
    }),
    root_password: maybe("Password of the root account; the server sets it at each startup", {
      isSecret: true,
      environment: "TIDEMARK_ROOT_PASSWORD",
    }),
    allow_remote_setup: flag(false, "Whether first-time setup is allowed from other machines", {
      environment: "TIDEMARK_ALLOW_REMOTE_SETUP",
    }),
    setup_code: maybeFlag(
      "Whether first-time setup requires a one-time code that the server prints when it starts; defaults to true if server.public_origin or security.trusted_proxies is set",
    ),
    jwt_expiry_hours: number(24, [0.01, 8760], "Hours until an access token expires", {
      environment: "TIDEMARK_JWT_EXPIRY_HOURS",
    }),
    refresh_expiry_hours: number(
      168,
      [0.01, 8760],
      "Hours until a refresh token expires; at least jwt_expiry_hours",
    ),
    jwt_trusted_issuers: list(
      "Issuers whose tokens are accepted for any audience, without a section in oidc.providers",
      { form: ISSUER, environment: "TIDEMARK_JWT_TRUSTED_ISSUERS" },
    ),
    cookie_secure: flag(true, "Whether cookies are sent only over HTTPS", {
      environment: "TIDEMARK_COOKIE_SECURE",
    }),
    min_password_length: whole(8, [8, 128], "Minimum length of a password, in characters"),
    max_password_length: whole(256, [64, 1024], "Maximum length of a password, in characters"),
    enforce_password_complexity: flag(
      false,
      "Whether a password must contain an upper-case letter, a lower-case letter, a digit and a character of another kind",
    ),
    signup: word(
      "off",
      ["off", "open", "invitation"],
      "Who may create an account with the role user: nobody (off), anyone (open), or anyone with an invitation (invitation)",
    ),
    guests: flag(
      false,
      "Whether people may use the server as guests, without a login name or a password",
    ),
    guest_days: whole(
      30,
      [0, 3650],
      "Days without activity after which a guest account is deleted; 0 means never",
    ),
    own_password: flag(false, "Whether users may change their own passwords over HTTP"),
    own_deletion: flag(
      false,
      "Whether users with the role user or service may delete their own accounts",
    ),
    password_reset: flag(
      false,
      "Whether users may request an email with a link for setting a new password",
    ),
    email_login: flag(
      false,
      "Whether users may verify their email address and then log in with it",
    ),
    notice_url: maybe(
      "URL to which the server posts notices for users, such as links to be sent by email",
      {
        form: HTTP_URL,
      },
    ),
    notice_secret: maybe("Secret used to sign requests to notice_url; 16 to 256 characters", {
      form: NOTICE_SECRET,
      isSecret: true,
    }),
    notice_page: maybe("URL of the page in the application to which the links in notices point", {
      form: HTTP_URL,
    }),
    notices_in_log: flag(
      false,
      "Whether notices for users are written to the log, including the tokens in their links; for development only",
    ),
  },
  security: {
    trusted_proxies: list("Proxies whose forwarding headers are trusted, such as X-Forwarded-For", {
      form: ADDRESS,
      environment: "TIDEMARK_TRUSTED_PROXIES",
    }),
    allowed_hosts: list(
      "Host names that local-only endpoints accept in the Host header, in addition to those of the local machine",
      {
        form: HOST_NAME,
      },
    ),
    metrics_allow: list("Client addresses that may read /metrics without a token", {
      form: ADDRESS,
    }),
    webhook_hosts: list(
      "Hosts to which webhooks may send messages; a private IP address must be listed explicitly",
      {
        form: OUTBOUND_HOST,
      },
    ),
  },
  "security.cors": {
    allowed_origins: list(
      "Origins whose pages may call this server; * stands for a subdomain or a port, and * alone allows every origin",
      {
        form: ORIGIN_OR_ANY,
      },
    ),
    allow_credentials: flag(
      false,
      "Whether requests from other origins may carry cookies; not allowed if allowed_origins contains *",
    ),
    max_age: whole(3600, [0], "How long a browser may cache the response to a preflight request"),
  },
  websocket: {
    auth_timeout_secs: whole(
      10,
      [1, 60],
      "How long a client may take to authenticate after it connects",
    ),
    idle_timeout_secs: whole(
      60,
      [5, 960],
      "How long a connection may be silent before it is closed",
    ),
    ping_interval_secs: whole(
      20,
      [1, 600],
      "Interval between pings; must be less than idle_timeout_secs",
    ),
    max_frame_bytes: whole(
      8 * MIB,
      [64 * KIB, 12 * MIB],
      "Maximum size in bytes of a single message to a client",
    ),
    send_queue_bytes: whole(
      MIB,
      [64 * KIB, GIB],
      "Number of bytes queued for a client above which its subscriptions pause until it catches up",
    ),
    default_batch_size: whole(
      1000,
      [1, 100_000],
      "Number of rows in a batch, unless the client requests a different number",
    ),
    max_batch_size: whole(10_000, [1, 100_000], "Maximum number of rows in a batch"),
    loading_timeout_secs: whole(
      600,
      [10, 86_400],
      "How long a snapshot may wait for the client to send next_batch",
    ),
    replay_changes: whole(
      10_000,
      [0, 1_000_000],
      "Maximum number of missed changes that are replayed individually after a resume",
    ),
    compression: flag(true, "Whether WebSocket messages are compressed with gzip"),
  },
  files: {
    max_size_bytes: whole(25 * MIB, [KIB, GIB], "Maximum size in bytes of a single uploaded file", {
      share: 1 / 16,
    }),
    max_request_bytes: whole(
      100 * MIB,
      [KIB, GIB],
      "Maximum size in bytes of a single multipart request",
      {
        share: 1 / 16,
      },
    ),
    max_files_per_request: whole(20, [1, 1000], "Maximum number of files per request"),
    max_files_per_folder: whole(
      5000,
      [1, 1_000_000],
      "Maximum number of files per directory on disk",
    ),
    allowed_mime_types: list("Media types that may be uploaded; an empty list allows all", {
      form: MIME,
    }),
    export_keep_hours: whole(
      72,
      [1, 8760],
      "How long the archive created by EXPORT USER DATA can be downloaded",
    ),
    staging_path: maybe(
      "Directory for uploads until they are committed; defaults to {data_path}/tmp",
      LATER,
    ),
  },
  oidc: {
    auto_provision: flag(
      false,
      "Whether the server creates an account when an unknown user logs in through a provider",
    ),
    default_role: word("user", ["user"], "Role of accounts that are created automatically"),
    jwks_cache_secs: whole(
      3600,
      [60, 86_400],
      "How long the cached keys of a provider are used before they are fetched again; if that fails, up to twice as long",
    ),
    linking: flag(false, "Whether users may link their own accounts to a provider"),
  },
  cluster: {
    node_bits: whole(
      0,
      [0, 6],
      "Number of bits of _seq reserved for the node id; it can only be increased",
    ),
    node_id: whole(0, [0, 63], "Id of this node; must be less than 2 to the power of node_bits", {
      environment: "TIDEMARK_NODE_ID",
    }),
  },
};

/** The keys of each `oidc.providers.<name>` section. */
const PROVIDER_RULES = {
  issuer: maybe("Issuer of the provider's tokens; required", { form: ISSUER }),
  client_id: maybe(
    "Client id that the provider has assigned to this server; enables browser logins",
  ),
  client_secret: maybe("Client secret that the provider has assigned to this server", {
    isSecret: true,
  }),
  audience: maybe("Audience that a bearer token must name; defaults to client_id"),
  user_claim: text(
    "sub",
    "Claim that identifies the account at its first login, if the account was linked without " +
      "a subject; an email address must be verified",
    { form: CLAIM_NAME },
  ),
  label: maybe("Name of the provider on the login page; defaults to the name of its section"),
  scopes: listOf(["openid", "email"], "Scopes that a browser login requests", { form: SCOPE }),
  claims: list("Claims from the provider's tokens that CLAIM() returns", { form: KEPT_CLAIM }),
};

type ValuesOf<Section> = {
  readonly [Name in keyof Section]: Section[Name] extends KeyRule<infer Value> ? Value : never;
};

/** The frozen configuration of a server. Sections and keys have the same names as in the file. */
export type Config = {
  readonly [Name in Exclude<keyof typeof RULES, "oidc" | "security" | "security.cors">]: ValuesOf<
    (typeof RULES)[Name]
  >;
} & {
  readonly oidc: ValuesOf<typeof RULES.oidc> & {
    /** The `oidc.providers.<name>` sections, keyed by provider name. */
    readonly providers: Readonly<Record<string, ValuesOf<typeof PROVIDER_RULES>>>;
  };
  readonly security: ValuesOf<typeof RULES.security> & {
    readonly cors: ValuesOf<(typeof RULES)["security.cors"]>;
  };
  /**
   * The source of the value for each key whose value is not the default, such as "server.port".
   */
  readonly sources: ReadonlyMap<string, "file" | "environment">;
};

/** A configuration key and the rule for its values. */
export interface ConfigKey {
  /** The path of the key, for example "server.port". */
  readonly path: string;
  /** The section, for example "server" or, for a nested section, "security.cors". */
  readonly section: string;
  readonly name: string;
  readonly rule: KeyRule;
}

/** The keys of the fixed sections, keyed by path, in the order of the file. */
export const KEYS: ReadonlyMap<string, ConfigKey> = new Map(
  Object.entries(RULES).flatMap(([section, rules]) =>
    Object.entries(rules as Record<string, KeyRule>).map(([name, rule]): [string, ConfigKey] => {
      const path = `${section}.${name}`;
      return [path, { path, section, name, rule }];
    }),
  ),
);

const PROVIDER_SECTION = "oidc.providers.";

const PROVIDER_NAME = /^[a-z0-9-]{1,32}$/;

/** Returns the section of a provider; undefined if the name is not valid. */
export function providerSection(name: string): string | undefined {
  return PROVIDER_NAME.test(name) ? PROVIDER_SECTION + name : undefined;
}

/**
 * Returns the name of the provider that a section configures; undefined if the section does not
 * configure a provider.
 */
export function providerOfSection(section: string): string | undefined {
  return section.startsWith(PROVIDER_SECTION) ? section.slice(PROVIDER_SECTION.length) : undefined;
}

/** The names of the keys that configure a provider. */
export const PROVIDER_KEY_NAMES: readonly string[] = Object.keys(PROVIDER_RULES);

/**
 * Returns the keys of a provider section.
 * @param name The name of the provider, or a placeholder for it.
 */
export function providerKeys(name: string): readonly ConfigKey[] {
  const section = PROVIDER_SECTION + name;
  return Object.entries(PROVIDER_RULES as Record<string, KeyRule>).map(([key, rule]) => ({
    path: `${section}.${key}`,
    section,
    name: key,
    rule,
  }));
}

/** Returns the key with the given path. It may belong to a fixed section or to a provider. */
export function keyAt(path: string): ConfigKey | undefined {
  const provider = providerOfSection(path.slice(0, path.lastIndexOf(".")));
  if (provider === undefined) return KEYS.get(path);
  return providerKeys(provider).find((key) => key.path === path);
}

/** The names of the configuration sections. */
export const SECTIONS: readonly string[] = Object.keys(RULES);

/** Alternative names of sections. */
export const SECTION_SYNONYMS: ReadonlyMap<string, string> = new Map([["authentication", "auth"]]);

/** Alternative paths of keys, each with the actual path. */
export const KEY_SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["security.trusted_proxy_ranges", "security.trusted_proxies"],
  ["websocket.client_timeout_secs", "websocket.idle_timeout_secs"],
  ["websocket.heartbeat_interval_secs", "websocket.ping_interval_secs"],
]);

/** Keys that are accepted but have no effect. */
export const KEYS_WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "limits.default_query_limit",
  "limits.max_query_limit",
  "performance.client_request_timeout",
  "performance.client_disconnect_timeout",
]);

/** Returns whether an unknown path belongs to a feature that does not exist yet. */
export function isToCome(path: string): boolean {
  return path.startsWith("cluster.");
}
