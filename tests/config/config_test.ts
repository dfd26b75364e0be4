/**
 * Verifies that a configuration is accepted or refused as a whole, with every fault and its
 * position, and that the shipped file works.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MEMORY_BYTES_MIN } from "../../src/config/memory.ts";
import {
  authSettingsFrom,
  type Config,
  ConfigError,
  changedKeys,
  parseConfig,
  readerCountMax,
  settingsOf,
} from "../../src/config/mod.ts";
import { keyPositions } from "../../src/config/positions.ts";
import { serverMemory } from "../../src/layer_limits.ts";

const SECRET = "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj";
const QUIET = { TIDEMARK_JWT_SECRET: SECRET };
type Environment = Readonly<Record<string, string>>;

function configOf(toml: string, env: Environment = {}): Config {
  return parseConfig(toml, "config.toml", { env: { ...QUIET, ...env } }).config;
}

/** Returns the faults, one per line; empty if there are none. */
function faultsOf(toml: string, env: Environment = QUIET): readonly string[] {
  try {
    parseConfig(toml, "config.toml", { env });
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

function warningsOf(toml: string, env: Environment = QUIET): readonly string[] {
  return parseConfig(toml, "config.toml", { env }).warnings;
}

test("parseConfig of an empty file gives every key its default from the reference", () => {
  const reference: Readonly<Record<string, unknown>> = {
    "server.host": "127.0.0.1",
    "server.port": 2900,
    "server.public_origin": undefined,
    "server.base_path": undefined,
    "server.tls_cert": undefined,
    "server.tls_key": undefined,
    "server.ui_enabled": true,
    "server.workers": 0,
    "server.shutdown_timeout_secs": 10,
    "storage.data_path": "./data",
    "storage.durability": "sync",
    "storage.history_hours": 168,
    "storage.history_max_bytes": 0,
    "storage.flush_rows": 10000,
    "storage.flush_interval_secs": 300,
    "storage.wal_segment_bytes": 67108864,
    "storage.wal_max_bytes": 1073741824,
    "storage.cache_bytes": 268435456,
    "storage.memtable_bytes": 536870912,
    "storage.min_free_bytes": 67108864,
    "storage.ballast_bytes": 33554432,
    "storage.archive_path": undefined,
    "storage.allowed_roots": [],
    "limits.max_sql_bytes": 1048576,
    "limits.max_parameter_bytes": 524288,
    "limits.max_parameters": 32767,
    "limits.max_body_bytes": 10485760,
    "limits.max_row_bytes": 2097152,
    "limits.max_result_rows": 0,
    "limits.max_timeout_ms": 600000,
    "limits.queries_per_sec_per_user": 0,
    "limits.requests_per_sec_per_ip": 0,
    "limits.connections_per_ip": 0,
    "limits.auth_requests_per_sec_per_ip": 20,
    "limits.login_max_failures": 5,
    "limits.lockout_secs": 900,
    "limits.live_state_bytes": 268435456,
    "limits.subscriptions_per_user": 100,
    "limits.subscriptions_per_connection": 1000,
    "limits.max_message_size": 1048576,
    "limits.messages_per_sec": 1000,
    "limits.transaction_timeout_secs": 300,
    "limits.transaction_idle_secs": 60,
    "limits.max_transactions": 1000,
    "limits.transactions_per_user": 20,
    "limits.transaction_max_bytes": 104857600,
    "limits.idempotency_ttl_secs": 600,
    "limits.idempotency_bytes_per_user": 67_108_864,
    "limits.storage_bytes_per_user": 0,
    "limits.topic_visibility_secs": 60,
    "limits.max_poll_secs": 60,
    "limits.require_where": false,
    "logging.level": "info",
    "logging.logs_path": "./logs",
    "logging.log_to_console": true,
    "logging.format": "compact",
    "logging.targets": {},
    "logging.slow_query_threshold_ms": 1000,
    "logging.max_file_bytes": 67108864,
    "logging.max_files": 10,
    "performance.request_timeout": 30,
    "performance.keepalive_timeout": 75,
    "performance.max_connections": 100000,
    "performance.memory_bytes": 64 * 1024 ** 3,
    "performance.total_query_memory_bytes": 1073741824,
    "performance.query_memory_bytes": 268435456,
    "performance.query_temporary_bytes": 34359738368,
    "performance.http_compression": true,
    "auth.jwt_secret": undefined,
    "auth.root_password": undefined,
    "auth.allow_remote_setup": false,
    "auth.jwt_expiry_hours": 24,
    "auth.refresh_expiry_hours": 168,
    "auth.jwt_trusted_issuers": [],
    "auth.cookie_secure": true,
    "auth.min_password_length": 8,
    "auth.max_password_length": 256,
    "auth.enforce_password_complexity": false,
    "auth.setup_code": undefined,
    "auth.signup": "off",
    "auth.guests": false,
    "auth.guest_days": 30,
    "auth.own_password": false,
    "auth.own_deletion": false,
    "auth.password_reset": false,
    "auth.email_login": false,
    "auth.notice_url": undefined,
    "auth.notice_secret": undefined,
    "auth.notice_page": undefined,
    "auth.notices_in_log": false,
    "limits.signups_per_hour": 1000,
    "security.trusted_proxies": [],
    "security.allowed_hosts": [],
    "security.metrics_allow": [],
    "security.webhook_hosts": [],
    "security.cors.allowed_origins": [],
    "security.cors.allow_credentials": false,
    "security.cors.max_age": 3600,
    "websocket.auth_timeout_secs": 10,
    "websocket.idle_timeout_secs": 60,
    "websocket.ping_interval_secs": 20,
    "websocket.max_frame_bytes": 8388608,
    "websocket.send_queue_bytes": 1048576,
    "websocket.default_batch_size": 1000,
    "websocket.max_batch_size": 10000,
    "websocket.loading_timeout_secs": 600,
    "websocket.replay_changes": 10000,
    "websocket.compression": true,
    "files.export_keep_hours": 72,
    "files.max_size_bytes": 26214400,
    "files.max_request_bytes": 104857600,
    "files.max_files_per_request": 20,
    "files.max_files_per_folder": 5000,
    "files.allowed_mime_types": [],
    "files.staging_path": undefined,
    "oidc.auto_provision": false,
    "oidc.default_role": "user",
    "oidc.jwks_cache_secs": 3600,
    "oidc.linking": false,
    "cluster.node_bits": 0,
    "cluster.node_id": 0,
  };
  const { config } = parseConfig("", "config.toml", {});
  const found = Object.fromEntries(
    settingsOf(config).map(({ name }) => [
      name,
      name.split(".").reduce<unknown>((value, key) => (value as Config)[key as "auth"], config),
    ]),
  );

  expect(found).toEqual(reference);
  expect(Object.keys(found)).toEqual(expect.arrayContaining(Object.keys(reference)));
});

test("parseConfig reads the shipped file, in which every key has its default", () => {
  const text = readFileSync(join(import.meta.dir, "../../config.toml"), "utf8");
  const { config, warnings } = parseConfig(text, "config.toml", {});
  const { sources: _fromFile, ...values } = config;
  const { sources: _none, ...defaults } = parseConfig("", "config.toml", {}).config;

  expect(values).toEqual(defaults);
  expect(warnings).toEqual([]);
});

test("parseConfig accepts the lines for a first page once they are uncommented", () => {
  const text = readFileSync(join(import.meta.dir, "../../config.toml"), "utf8");
  const uncommented = text.replaceAll(/^# (allowed_origins|allow_credentials)/gm, "$1");
  const { cors } = parseConfig(uncommented, "config.toml", {}).config.security;
  expect(cors.allowed_origins).toEqual(["http://localhost:5173"]);
  expect(cors.allow_credentials).toBe(true);
});

test("parseConfig uses the detected memory if the configured limit is absent or 0", () => {
  const memory = { bytes: 512 * 1024 ** 2, source: "memory.max of /sys/fs/cgroup" };
  const memoryOf = (toml: string): unknown =>
    parseConfig(toml, "config.toml", { env: QUIET, memory }).config.performance.memory_bytes;
  expect(memoryOf("")).toBe(memory.bytes);
  expect(memoryOf("performance.memory_bytes = 0")).toBe(memory.bytes);
  expect(memoryOf("performance.memory_bytes = 300000000")).toBe(300_000_000);
});

test("parseConfig refuses less memory than startup needs, whether detected or configured", () => {
  const least = MEMORY_BYTES_MIN;
  const faults = (toml: string, bytes: number): readonly string[] => {
    const memory = { bytes, source: "memory.max of /sys/fs/cgroup" };
    try {
      return parseConfig(toml, "config.toml", { env: QUIET, memory }).warnings;
    } catch (error) {
      if (error instanceof ConfigError) return error.faults;
      throw error;
    }
  };
  expect(faults("", least)).toEqual([]);
  expect(faults("", least - 1)).toEqual([
    `config.toml: the process may use ${least - 1} bytes of memory, according to memory.max of /sys/fs/cgroup, but needs at least ${least}: raise that limit`,
  ]);
  expect(faults(`performance.memory_bytes = ${least}`, least)).toEqual([]);
  expect(faults("performance.memory_bytes = 134217728", 2 ** 40)).toEqual([
    `config.toml:1:13: performance.memory_bytes is 134217728, but must be at least ${least}, ` +
      "or 0 to detect it",
  ]);
  // A value above the detected memory is accepted with a warning.
  expect(faults(`performance.memory_bytes = ${least + 1}`, least)).toEqual([
    `config.toml:1:13: performance.memory_bytes is ${least + 1}, but the process may use only ${least}, according to memory.max of /sys/fs/cgroup`,
  ]);
});

const MIB = 1024 ** 2;

function withMemory(mib: number, toml = ""): ReturnType<typeof parseConfig> {
  const memory = { bytes: mib * MIB, source: "a test" };
  return parseConfig(toml, "config.toml", { env: QUIET, memory });
}

test("parseConfig divides memory in whole MiB, and gives each part only what it needs on a large machine", () => {
  const budgets = (mib: number, toml = ""): readonly number[] => {
    const { files, limits, performance, storage } = withMemory(mib, toml).config;
    return [
      performance.total_query_memory_bytes,
      performance.query_memory_bytes,
      storage.memtable_bytes,
      storage.cache_bytes,
      limits.transaction_max_bytes,
      files.max_request_bytes,
      files.max_size_bytes,
      limits.max_body_bytes,
    ].map((bytes) => bytes / MIB);
  };
  const large = [1024, 256, 512, 256, 100, 100, 25, 10];
  expect(budgets(192)).toEqual([16, 12, 12, 6, 6, 6, 6, 3]);
  expect(budgets(256)).toEqual([26, 20, 20, 10, 10, 10, 10, 5]);
  expect(budgets(512)).toEqual([69, 52, 52, 26, 26, 26, 25, 10]);
  expect(budgets(2048)).toEqual([325, 244, 244, 122, 100, 100, 25, 10]);
  expect(budgets(8192)).toEqual(large);
  expect(budgets(512, "performance.memory_bytes = 8589934592")).toEqual(large);
  // An explicitly configured value takes precedence over the default.
  const set = "storage = { cache_bytes = 104857600 }\nlimits = { max_body_bytes = 20971520 }";
  expect(budgets(512, set)).toEqual([69, 52, 52, 100, 26, 26, 25, 20]);
});

test("all memory limits together fit into 512 MiB, along with the runtime", () => {
  const { config } = withMemory(512);
  const { performance, storage } = config;
  const server = serverMemory(config);
  const parts = [
    performance.total_query_memory_bytes,
    storage.memtable_bytes,
    // Readers may keep parts of segments in memory, up to another half of the cache size.
    1.5 * storage.cache_bytes,
    // This budget covers both short and long bodies.
    2 * server.bodyBytes,
    server.largeBodyBytes,
    server.messageBytes,
    server.sendQueueBytes,
    // Each thread has its own heap: the readers, the inspector, a flush and a merge.
    (readerCountMax(performance.memory_bytes) + 3) * 25 * MIB,
  ];
  const sum = parts.reduce((total, part) => total + part, 0);
  expect(sum).toBeLessThanOrEqual((512 - 96) * 0.95 * MIB);
});

test("readerCountMax grows with the memory, starting at one", () => {
  const counts = [192, 256, 480, 512, 1024, 4096].map((mib) => readerCountMax(mib * MIB));
  expect(counts).toEqual([1, 1, 2, 2, 4, 20]);
});

test("parseConfig warns about budgets whose sum exceeds the memory, and names them", () => {
  const cache = "storage.cache_bytes = 268435456";
  const both = `${cache}\nperformance.total_query_memory_bytes = 268435457`;
  expect(withMemory(512, cache).warnings).toEqual([]);
  expect(withMemory(512, both).warnings).toEqual([
    "config.toml: performance.memory_bytes is 536870912, but these keys allow a total of 536870913: performance.total_query_memory_bytes, storage.cache_bytes",
  ]);
  expect(withMemory(513, both).warnings).toEqual([]);
  expect(withMemory(512, "server.workers = 10").warnings).toEqual([]);
  expect(withMemory(512, "server.workers = 11").warnings).toEqual([
    "config.toml: performance.memory_bytes is 536870912, but these keys allow a total of 553648128: server.workers",
  ]);
});

test("settingsOf shows the value of a computed default and what it depends on", () => {
  const settings = settingsOf(withMemory(512, "storage.cache_bytes = 1048576").config);
  const shown = (path: string): unknown => settings.find(({ name }) => name === path);
  expect(shown("storage.cache_bytes")).toMatchObject({
    value: "1048576",
    defaultValue: "27262976",
    source: "file",
    description:
      "Memory that caches unpacked parts of segments; by default 1/16 of performance.memory_bytes minus 100663296, at most 268435456",
  });
  expect(shown("storage.memtable_bytes")).toMatchObject({ value: "54525952", source: "default" });
  expect(shown("performance.memory_bytes")).toMatchObject({
    value: "536870912",
    defaultValue: "0",
  });
});

test("parseConfig freezes its result", () => {
  const config = configOf("[security.cors]\nallowed_origins = ['https://a.b']");

  for (const part of [config, config.server, config.security, config.security.cors]) {
    expect(Object.isFrozen(part)).toBeTrue();
  }
  expect(Object.isFrozen(config.security.cors.allowed_origins)).toBeTrue();
});

test("parseConfig reports file, line and column, and the probable intention", () => {
  const table: readonly [toml: string, fault: string][] = [
    [
      "[server]\n  prot = 1",
      'config.toml:2:3: unknown key "prot" in [server]; did you mean "port"?',
    ],
    ["\n[sever]\n", "config.toml:2:2: unknown section [sever]; did you mean [server]?"],
    [
      "port = 1",
      'config.toml:1:1: unknown key "port" outside of a section; did you mean "port" in [server]?',
    ],
    [
      "[server]\ndata_path = 'x'",
      'config.toml:2:1: unknown key "data_path" in [server]; did you mean "data_path" in [storage]?',
    ],
    ["[server]\nqqqqqqqqqq = 1", 'config.toml:2:1: unknown key "qqqqqqqqqq" in [server]'],
    ["[zzzzzzzz]", "config.toml:1:2: unknown section [zzzzzzzz]"],
    ["server.prot = 1", 'config.toml:1:8: unknown key "prot" in [server]; did you mean "port"?'],
    [
      "server = { host = '127.0.0.1', prot = 1 }",
      'config.toml:1:32: unknown key "prot" in [server]; did you mean "port"?',
    ],
    [
      "[security]\ncors = { alow_credentials = true }",
      'config.toml:2:10: unknown key "alow_credentials" in [security.cors]; did you mean "allow_credentials"?',
    ],
    [
      '[server]\n"prot" = 1',
      'config.toml:2:1: unknown key "prot" in [server]; did you mean "port"?',
    ],
    ["server = 5", "config.toml:1:1: [server] is not a section, but must be one"],
    [
      "[server]\nport = 'x'",
      "config.toml:2:1: server.port is a string, but must be a whole number from 0 to 65535",
    ],
    [
      "[server]\nport = 2900.5",
      "config.toml:2:1: server.port is a number with a fraction, but must be a whole number " +
        "from 0 to 65535",
    ],
    [
      "[server]\nhost = 1",
      "config.toml:2:1: server.host is a whole number, but must be an address or a name " +
        "without a scheme or port, such as 127.0.0.1, ::1 or localhost",
    ],
    [
      "[server]\nui_enabled = 1",
      "config.toml:2:1: server.ui_enabled is a whole number, but must be true or false",
    ],
    [
      "[server.host]\na = 1",
      "config.toml:1:9: server.host is a table, but must be an address or a name without a " +
        "scheme or port, such as 127.0.0.1, ::1 or localhost",
    ],
    [
      "[security]\nallowed_hosts = 'a'",
      "config.toml:2:1: security.allowed_hosts is a string, but must be a list of strings, " +
        "each a host name",
    ],
    [
      "[storage]\ndurability = 'fast'",
      'config.toml:2:1: storage.durability is "fast", but must be one of "sync", "relaxed"',
    ],
    [
      "[storage]\ndata_path = 2020-01-01",
      "config.toml:2:1: storage.data_path is a date, but must be a non-empty string",
    ],
    [
      "[storage]\ncache_bytes = 9e99",
      "config.toml:2:1: storage.cache_bytes is a whole number of more than 53 bits, but must " +
        "be a whole number from 1048576",
    ],
    [
      "[storage]\ncache_bytes = inf",
      "config.toml:2:1: storage.cache_bytes is not a finite number, but must be a whole number " +
        "from 1048576",
    ],
    [
      "[security]\ntrusted_proxies = ['10.0.0.0/99']",
      'config.toml:2:1: security.trusted_proxies is ["10.0.0.0/99"], but must be a list of ' +
        "strings, each an IP address or a range like 10.0.0.0/8",
    ],
    [
      "[security]\nmetrics_allow = ['::1', '300.1.1.1']",
      'config.toml:2:1: security.metrics_allow is ["::1","300.1.1.1"], but must be a list of ' +
        "strings, each an IP address or a range like 10.0.0.0/8",
    ],
    [
      "[storage]\nallowed_roots = ['/']",
      'config.toml:2:1: storage.allowed_roots is ["/"], but must be a list of strings, each an ' +
        "absolute path below /, like /var/backups, without . and ..",
    ],
    [
      "[websocket]\ndefault_batch_size = 10001",
      "config.toml:2:1: websocket.default_batch_size is 10001, but must not be above " +
        "websocket.max_batch_size, 10000",
    ],
    [
      "[websocket]\nmax_batch_size = 999",
      "config.toml:2:1: websocket.max_batch_size is 999, but must not be below " +
        "websocket.default_batch_size, 1000",
    ],
    ["[server]\nport = ", "config.toml:2:8: invalid value"],
    ["[server\n", "config.toml:1:8: "],
  ];
  for (const [toml, fault] of table) {
    const [found = ""] = faultsOf(toml);
    if (fault.endsWith(": ")) expect(found, toml).toStartWith(fault);
    else expect(found, toml).toBe(fault);
  }
});

test("parseConfig reports all faults at once, in the order of the file", () => {
  const toml = `
[limits]
max_row_bytes = 1
[server]
prot = 1
port = 70000
[auth]
jwt_expiry_hours = 48
refresh_expiry_hours = 24
`;
  expect(faultsOf(toml, { ...QUIET, TIDEMARK_COOKIE_SECURE: "maybe" })).toEqual([
    "config.toml:3:1: limits.max_row_bytes is 1, but must be a whole number from 1024 to 3145728",
    'config.toml:5:1: unknown key "prot" in [server]; did you mean "port"?',
    "config.toml:6:1: server.port is 70000, but must be a whole number from 0 to 65535",
    'environment: TIDEMARK_COOKIE_SECURE is "maybe", but must be true or false',
    "config.toml:9:1: auth.refresh_expiry_hours is 24, but must not be below " +
      "auth.jwt_expiry_hours, 48",
  ]);
});

test("parseConfig enforces each range at its ends, below and above", () => {
  const ranges: readonly [key: string, min: number, max: number][] = [
    ["server.port", 0, 65535],
    ["server.shutdown_timeout_secs", 0, 600],
    ["storage.history_hours", 1, 8760],
    ["storage.flush_rows", 1, 999999],
    ["storage.flush_interval_secs", 1, 86399],
    ["limits.max_sql_bytes", 1024, 16777216],
    ["limits.max_parameters", 1, 65535],
    ["limits.max_body_bytes", 1024, 1073741824],
    ["limits.login_max_failures", 0, 100],
    ["limits.lockout_secs", 1, 86400],
    ["limits.subscriptions_per_user", 0, 1000000],
    ["limits.subscriptions_per_connection", 1, 100000],
    ["limits.max_timeout_ms", 1, 86400000],
    ["logging.max_files", 1, 1000],
    ["performance.keepalive_timeout", 0, 255],
    ["performance.max_connections", 1, 1000000],
    ["auth.min_password_length", 8, 128],
    ["auth.max_password_length", 64, 1024],
    ["auth.guest_days", 0, 3650],
    ["websocket.auth_timeout_secs", 1, 60],
    ["websocket.max_frame_bytes", 65536, 12582912],
    ["websocket.replay_changes", 0, 1000000],
    ["files.max_files_per_request", 1, 1000],
    ["cluster.node_bits", 0, 6],
  ];
  const countOf = (key: string, value: number): number => faultsOf(`${key} = ${value}`).length;
  for (const [key, min, max] of ranges) {
    expect([countOf(key, min - 1), countOf(key, max + 1)], key).toEqual([1, 1]);
    expect([countOf(key, min), countOf(key, max)], key).toEqual([0, 0]);
  }
  const batchFaults = (rows: number): number =>
    faultsOf(`websocket.max_batch_size = 100000\nwebsocket.default_batch_size = ${rows}`).length;
  expect([0, 1, 100_000, 100_001].map(batchFaults)).toEqual([1, 0, 0, 1]);
  expect(countOf("auth.jwt_expiry_hours", 0.009)).toBe(1);
  expect(countOf("auth.jwt_expiry_hours", 0.01)).toBe(0);
});

test("parseConfig enforces the rules that connect several keys", () => {
  const bad: readonly [toml: string, key: string][] = [
    ["websocket.idle_timeout_secs = 20", "websocket.idle_timeout_secs"],
    ["websocket.ping_interval_secs = 60", "websocket.idle_timeout_secs"],
    ["files.max_size_bytes = 104857601", "files.max_size_bytes"],
    ["files.max_request_bytes = 26214399", "files.max_request_bytes"],
    ["websocket.default_batch_size = 10001", "websocket.default_batch_size"],
    ["websocket.max_batch_size = 999", "websocket.max_batch_size"],
    ["storage.wal_max_bytes = 268435455", "storage.wal_max_bytes"],
    ["storage.wal_segment_bytes = 4194303", "storage.wal_segment_bytes"],
    ["auth.min_password_length = 128\nauth.max_password_length = 64", "auth.max_password_length"],
    [
      "security.cors.allow_credentials = true\nsecurity.cors.allowed_origins = ['*']",
      "security.cors.allow_credentials",
    ],
    ["server.tls_cert = 'a.pem'", "server.tls_cert"],
    ["server.tls_key = 'a.pem'", "server.tls_key"],
    ["cluster.node_id = 1", "cluster.node_id"],
    ["cluster.node_bits = 2\ncluster.node_id = 4", "cluster.node_id"],
    ["auth.root_password = 'password1'", "auth.root_password"],
  ];
  for (const [toml, key] of bad) {
    const faults = faultsOf(toml);
    expect(faults, toml).toHaveLength(1);
    expect(faults[0], toml).toContain(`: ${key} is `);
  }
  const good =
    "server = { tls_cert = 'a', tls_key = 'b' }\ncluster.node_bits = 2\ncluster.node_id = 3\nauth.root_password = 'battery staple 7'\nsecurity.cors.allowed_origins = ['*']";
  expect(faultsOf(good)).toEqual([]);
});

test("parseConfig refuses features that are not available yet, but accepts their defaults", () => {
  const later = [
    "logging.targets = { live = 'debug' }",
    "cluster.peers = ['a']",
    "cluster.enabled = true",
  ];
  for (const toml of later) {
    const faults = faultsOf(toml);
    expect(faults, toml).toHaveLength(1);
    expect(faults[0], toml).toContain("is not available yet");
  }
  expect(faultsOf("storage.allowed_roots = []\nlogging.targets = {}")).toEqual([]);
  for (const variable of ["TIDEMARK_CLUSTER_PEERS", "TIDEMARK_FILES_STAGING_PATH"]) {
    const [fault] = faultsOf("", { ...QUIET, [variable]: "x" });
    expect(fault, variable).toContain(`${variable} is not available yet`);
  }
});

test("parseConfig reads the OpenID Connect providers, with a default for each key", () => {
  const toml = `
[oidc]
auto_provision = true
[oidc.providers.google]
issuer = "https://accounts.google.com"
client_id = "db"
[oidc.providers.my-idp]
issuer = "http://localhost:8080/realms/a"
audience = "api"
claims = ["groups"]
label = "Ours"`;
  const env = {
    ...QUIET,
    TIDEMARK_OIDC_PROVIDERS_GOOGLE_CLIENT_SECRET: "s3cret",
    TIDEMARK_OIDC_PROVIDERS_MY_IDP_SCOPES: "openid, profile",
    TIDEMARK_OIDC_PROVIDERS_THIRD_ISSUER_FILE: "/issuer",
  };
  const readFile = (): string => "https://third.example.com\n";
  const { config, warnings } = parseConfig(toml, "c.toml", { env, readFile });
  expect(config.oidc.providers).toEqual({
    google: {
      issuer: "https://accounts.google.com",
      client_id: "db",
      client_secret: "s3cret",
      audience: undefined,
      user_claim: "sub",
      label: undefined,
      scopes: ["openid", "email"],
      claims: [],
    },
    "my-idp": {
      issuer: "http://localhost:8080/realms/a",
      client_id: undefined,
      client_secret: undefined,
      audience: "api",
      user_claim: "sub",
      label: "Ours",
      scopes: ["openid", "profile"],
      claims: ["groups"],
    },
    third: expect.objectContaining({ issuer: "https://third.example.com" }),
  });
  expect(warnings).toEqual([expect.stringContaining("oidc.providers.third.audience is not set")]);
  const shown = settingsOf(config).filter(({ name }) => name.startsWith("oidc.providers.google."));
  expect(shown.find(({ name }) => name.endsWith("client_secret"))).toMatchObject({
    value: "***",
    source: "environment",
    category: "oidc.providers.google",
  });
  const { oidc } = authSettingsFrom(config, new Uint8Array(32));
  expect(oidc.providers[0]).toMatchObject({ audience: "db", label: "google" });
  const other = parseConfig(toml.replace("Ours", "Other"), "c.toml", { env, readFile }).config;
  expect(changedKeys(config, other)).toEqual(["oidc.providers.my-idp.label"]);
  const fewer = parseConfig("", "c.toml", { env: QUIET }).config;
  expect(changedKeys(config, fewer)).toContain("oidc.providers.google.issuer");
});

test.each([
  ["a = 1", "[oidc.providers.a] is not a section"],
  ["a.issuer = 5", "oidc.providers.a.issuer is a whole number, but must be the URL"],
  ["a.issuer = 'http://idp.example.com'", "oidc.providers.a.issuer is"],
  ["a.issuer = 'https://u:p@idp.example.com'", "oidc.providers.a.issuer is"],
  ["a.issuer = 'https://idp.example.com/?a=b'", "oidc.providers.a.issuer is"],
  ["a.issuer = 'idp.example.com'", "oidc.providers.a.issuer is"],
  ["a.client_id = 'x'", "oidc.providers.a.issuer is missing"],
  [
    "a = { issuer = 'https://a.b', client_secret = 'x', audience = 'x' }",
    "client_secret is set alone",
  ],
  ["a = { issuer = 'https://a.b', client_id = 'x', scopes = ['email'] }", 'must contain "openid"'],
  [
    "a = { issuer = 'https://a.b', client_id = 'x', claims = ['role'] }",
    "other than iss, sub, role and email",
  ],
  [
    "a = { issuer = 'https://a.b', client_id = 'x', isuer = 'y' }",
    'unknown key "isuer" in [oidc.providers.a]; did you mean "issuer"?',
  ],
  ["A.issuer = 'https://a.b'", "must have a name of 1 to 32 characters"],
  [
    "a = { issuer = 'https://a.b', client_id = 'x' }\nb = { issuer = 'https://a.b', client_id = 'y' }",
    "is also that of oidc.providers.a",
  ],
])("parseConfig refuses the provider %s", (toml, expected) => {
  const faults = faultsOf(`[oidc.providers]\n${toml}`);
  expect(faults).toEqual([expect.stringContaining(expected)]);
});

test("parseConfig refuses providers that are not sections, and trusted issuers without TLS", () => {
  expect(faultsOf("oidc.providers = 5")[0]).toContain("[oidc.providers] is not a section");
  const [fault] = faultsOf("auth.jwt_trusted_issuers = ['http://a.b']");
  expect(fault).toContain("auth.jwt_trusted_issuers is");
  expect(faultsOf("auth.jwt_trusted_issuers = ['https://a.b', 'http://127.0.0.1:9/x']")).toEqual(
    [],
  );
});

test("parseConfig gives precedence to the environment over the file, and to short names over long ones", () => {
  const toml = "[server]\nport = 1\n[storage]\ndata_path = 'file'\n[logging]\nlevel = 'warn'";

  expect(configOf(toml).server.port).toBe(1);
  expect(configOf(toml, { TIDEMARK_SERVER_PORT: "2" }).server.port).toBe(2);
  expect(configOf(toml, { TIDEMARK_SERVER_PORT: "" }).server.port).toBe(1);
  expect(configOf(toml, { TIDEMARK_STORAGE_DATA_PATH: "long" }).storage.data_path).toBe("long");
  const both = { TIDEMARK_STORAGE_DATA_PATH: "long", TIDEMARK_DATA_DIR: "short" };
  expect(configOf(toml, both).storage.data_path).toBe("short");
  expect(configOf(toml, { TIDEMARK_LOG_LEVEL: "debug" }).logging.level).toBe("debug");
  expect(configOf("", { TIDEMARK_JWT_EXPIRY_HOURS: "0.5" }).auth.jwt_expiry_hours).toBe(0.5);
  expect(
    configOf("", { TIDEMARK_AUTHENTICATION_COOKIE_SECURE: "no" }).auth.cookie_secure,
  ).toBeFalse();
  const cors = { TIDEMARK_SECURITY_CORS_ALLOWED_ORIGINS: "https://a.b, http://c.d:81 ," };
  expect(configOf("", cors).security.cors.allowed_origins).toEqual([
    "https://a.b",
    "http://c.d:81",
  ]);
});

test("parseConfig reads booleans from the environment in every spelling", () => {
  const isUiOn = (text: string): boolean =>
    configOf("", { TIDEMARK_SERVER_UI_ENABLED: text }).server.ui_enabled;

  for (const text of ["true", "1", "yes", "on", "TRUE", "On"])
    expect(isUiOn(text), text).toBeTrue();
  for (const text of ["false", "0", "no", "off", "NO"]) expect(isUiOn(text), text).toBeFalse();
  for (const [variable, text] of [
    ["TIDEMARK_SERVER_UI_ENABLED", "2"],
    ["TIDEMARK_SERVER_PORT", "29x"],
    ["TIDEMARK_SERVER_PORT", "1.5"],
    ["TIDEMARK_SERVER_PORT", "99999999999999999999"],
    ["TIDEMARK_JWT_EXPIRY_HOURS", "1e3"],
    ["TIDEMARK_LOGGING_TARGETS", "live=loud"],
    ["TIDEMARK_TRUSTED_PROXIES", "10.0.0.1,nonsense"],
  ] as const) {
    expect(faultsOf("", { ...QUIET, [variable]: text }), `${variable}=${text}`).toHaveLength(1);
  }
});

test("parseConfig reads values from the files that _FILE variables name", () => {
  const readFile = (path: string): string => {
    if (path === "/run/secret") return `${SECRET}\n`;
    throw new Error("ENOENT");
  };
  const parse = (env: Environment): Config =>
    parseConfig("", "config.toml", { env, readFile }).config;

  expect(parse({ TIDEMARK_JWT_SECRET_FILE: "/run/secret" }).auth.jwt_secret).toBe(SECRET);
  expect(parse({ TIDEMARK_AUTH_JWT_SECRET_FILE: "/run/secret" }).auth.jwt_secret).toBe(SECRET);
  expect(() => parse({ TIDEMARK_JWT_SECRET_FILE: "/none" })).toThrow("cannot be read: ENOENT");
  const both = { TIDEMARK_JWT_SECRET_FILE: "/run/secret", TIDEMARK_JWT_SECRET: SECRET };
  expect(() => parse(both)).toThrow("are both set");
});

test("parseConfig treats a _FILE variable with an empty file as unset, and warns", () => {
  for (const text of ["", "\n", "\r\n"]) {
    const env = { ...QUIET, TIDEMARK_SERVER_PORT_FILE: "/run/port" };
    const { config, warnings } = parseConfig("server.port = 1", "config.toml", {
      env,
      readFile: () => text,
    });
    expect(config.server.port).toBe(1);
    expect(warnings).toEqual([
      "environment: TIDEMARK_SERVER_PORT_FILE names /run/port, which is empty, and counts as unset",
    ]);
  }
  expect(warningsOf("", { ...QUIET, TIDEMARK_SERVER_PORT_FILE: "" })).toEqual([]);
});

test("parseConfig warns about unknown variables and about keys without effect", () => {
  expect(warningsOf("", { ...QUIET, TIDEMARK_SERVER_PROT: "1", OTHER: "x" })).toEqual([
    "environment: unknown variable TIDEMARK_SERVER_PROT; did you mean TIDEMARK_SERVER_PORT?",
  ]);
  expect(
    warningsOf("[limits]\nmax_query_limit = 5\n[performance]\nclient_request_timeout = 'x'"),
  ).toEqual([
    "config.toml:2:1: limits.max_query_limit has no effect",
    "config.toml:4:1: performance.client_request_timeout has no effect",
  ]);
  expect(warningsOf("storage.durability = 'relaxed'")[0]).toContain(
    "storage.durability is relaxed",
  );
});

test("parseConfig accepts synonyms, and refuses a key that is set twice by means of one", () => {
  const toml = `
[authentication]
cookie_secure = false
[security]
trusted_proxy_ranges = ["10.0.0.0/8", "::1"]
[websocket]
client_timeout_secs = 30
heartbeat_interval_secs = 9
`;
  const { auth, security, websocket } = configOf(toml);
  expect(auth.cookie_secure).toBeFalse();
  expect(security.trusted_proxies).toEqual(["10.0.0.0/8", "::1"]);
  expect([websocket.idle_timeout_secs, websocket.ping_interval_secs]).toEqual([30, 9]);
  expect(faultsOf("[websocket]\nidle_timeout_secs = 30\nclient_timeout_secs = 30")).toEqual([
    "config.toml:3:1: websocket.client_timeout_secs sets websocket.idle_timeout_secs a second time",
  ]);
  expect(faultsOf("auth.cookie_secure = true\nauthentication.cookie_secure = true")).toHaveLength(
    1,
  );
});

test("parseConfig requires a good secret for non-local addresses, and warns about a weak one on local ones", () => {
  for (const secret of [
    "",
    "short",
    "secret",
    "a".repeat(64),
    "replace-by-at-least-32-random-bytes",
  ]) {
    const env = secret === "" ? {} : { TIDEMARK_JWT_SECRET: secret };
    for (const host of ["0.0.0.0", "::", "192.168.0.9"]) {
      const faults = faultsOf(`server.host = '${host}'`, env);
      expect(faults, `${host} ${secret}`).toHaveLength(1);
      expect(faults[0]).toContain("openssl rand");
      if (secret.length > 8) expect(faults[0]).not.toContain(secret);
    }
    expect(faultsOf("", env)).toEqual([]);
    // Without a configured secret, startup reports the warning, because only startup knows whether
    // a secret is stored.
    expect(warningsOf("", env)).toHaveLength(secret === "" ? 0 : 1);
  }
  expect(faultsOf("server.host = '0.0.0.0'")).toEqual([]);
});

test("parseConfig refuses a host that contains a scheme or a port before it asks for a secret", () => {
  const expected =
    "an address or a name without a scheme or port, such as 127.0.0.1, ::1 or localhost";
  for (const host of [
    "",
    " ",
    "http://0.0.0.0",
    "https://db.example.com:2900",
    "0.0.0.0:80",
    "localhost:2900",
    "[::1]:2900",
    "db.example.com/",
    "::1::",
    "fe:80",
  ]) {
    expect(faultsOf(`server.host = '${host}'`, {}), host).toEqual([
      `config.toml:1:8: server.host is "${host}", but must be ${expected}`,
    ]);
  }
  for (const host of [
    "0.0.0.0",
    "::",
    "::1",
    "[::1]",
    "::ffff:127.0.0.1",
    "2001:db8::1",
    "fe80::1%eth0",
    "localhost",
    "db_1.example.com",
  ]) {
    expect(configOf(`server.host = '${host}'`).server.host).toBe(host);
  }
});

test("settingsOf names the source of each value and hides secrets", () => {
  const config = configOf("[server]\nport = 2901\n[auth]\nroot_password = 'battery staple 7'", {
    TIDEMARK_LOG_LEVEL: "debug",
  });
  const settings = settingsOf(config);
  const rowOf = (name: string): unknown => {
    const row = settings.find((setting) => setting.name === name);
    return row === undefined ? undefined : [row.value, row.defaultValue, row.source, row.category];
  };

  expect(rowOf("server.port")).toEqual(["2901", "2900", "file", "server"]);
  expect(rowOf("logging.level")).toEqual(["debug", "info", "environment", "logging"]);
  expect(rowOf("security.cors.max_age")).toEqual(["3600", "3600", "default", "security.cors"]);
  expect(rowOf("storage.allowed_roots")).toEqual(["[]", "[]", "default", "storage"]);
  expect(rowOf("auth.root_password")).toEqual(["***", "", "file", "auth"]);
  expect(JSON.stringify(settings)).not.toContain("battery");
  expect(JSON.stringify(settings)).not.toContain(SECRET);
  expect(settings.every(({ description }) => description !== "")).toBeTrue();
});

test("parseConfig never repeats a secret in a fault", () => {
  const faults = faultsOf(
    "[auth]\nroot_password = 'password1'\njwt_secret = ['hunter2hunter2']",
    {},
  );

  expect(faults.length).toBeGreaterThan(1);
  expect(faults.join()).not.toContain("password1");
  expect(faults.join()).not.toContain("hunter2");
});

test("authSettingsFrom passes the configuration keys on to auth", () => {
  const config = configOf("auth.jwt_expiry_hours = 0.5\nlimits.lockout_secs = 7");

  expect(authSettingsFrom(config, new Uint8Array(32))).toMatchObject({
    accessLifetimeSeconds: 1800,
    refreshLifetimeSeconds: 168 * 3600,
    lockoutSeconds: 7,
    passwordPolicy: { lengthMin: 8, lengthMax: 256, isComplex: false },
  });
});

test("keyPositions finds keys next to every form of value that could hide one", () => {
  const toml = `
# [comment]
[ server ] # x = 1
a = "b = 1 # [no]"
b = 'c = 1'
c = """
d = 1
[no]"""
e = [ # f = 1
  "g = 1", [1, 2], { h = 1 },
]
  "quoted key" = 1
k . l = 2
[["list"]]
m = 1979-05-27T07:32:00Z
`;
  const at = (path: string): string | undefined => {
    const position = keyPositions(toml).get(path);
    return position === undefined ? undefined : `${position.line}:${position.column}`;
  };

  expect(at("server")).toBe("3:3");
  expect(["a", "b", "c", "e", "e.h"].map((key) => at(`server.${key}`))).toEqual([
    "4:1",
    "5:1",
    "6:1",
    "9:1",
    "10:22",
  ]);
  expect(at("server.quoted key")).toBe("12:3");
  expect([at("server.k"), at("server.k.l")]).toEqual(["13:1", "13:5"]);
  expect([at("list"), at("list.m")]).toEqual(["14:3", "15:1"]);
  expect(["x", "d", "no", "f", "g", "server.d", "comment"].map(at)).toEqual(
    Array(7).fill(undefined),
  );
});
