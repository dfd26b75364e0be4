/**
 * Verifies that a configuration is read from the file, the environment and the defaults, each value
 * with its source, and that the shipped file works.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { authSettingsFrom, type Config, parseConfig, settingsOf } from "../../src/config/mod.ts";
import { configOf, type Environment, faultsOf, QUIET, SECRET, warningsOf } from "./read_config.ts";

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

test("parseConfig freezes its result", () => {
  const config = configOf("[security.cors]\nallowed_origins = ['https://a.b']");

  for (const part of [config, config.server, config.security, config.security.cors]) {
    expect(Object.isFrozen(part)).toBeTrue();
  }
  expect(Object.isFrozen(config.security.cors.allowed_origins)).toBeTrue();
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
  expect(() => parse({ TIDEMARK_JWT_SECRET_FILE: "/none" })).toThrow(
    "cannot read the file named by TIDEMARK_JWT_SECRET_FILE: ENOENT",
  );
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
      "environment: TIDEMARK_SERVER_PORT_FILE is ignored: the file /run/port is empty",
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
    "config.toml:2:1: limits.max_query_limit has no effect; remove it",
    "config.toml:4:1: performance.client_request_timeout has no effect; remove it",
  ]);
  expect(warningsOf("storage.durability = 'relaxed'")[0]).toContain(
    'storage.durability is "relaxed"',
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
    "config.toml:3:1: websocket.client_timeout_secs sets websocket.idle_timeout_secs, which " +
      "is already set; remove one of the two",
  ]);
  expect(faultsOf("auth.cookie_secure = true\nauthentication.cookie_secure = true")).toHaveLength(
    1,
  );
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

test("authSettingsFrom passes the configuration keys on to auth", () => {
  const config = configOf("auth.jwt_expiry_hours = 0.5\nlimits.lockout_secs = 7");

  expect(authSettingsFrom(config, new Uint8Array(32))).toMatchObject({
    accessLifetimeSeconds: 1800,
    refreshLifetimeSeconds: 168 * 3600,
    lockoutSeconds: 7,
    passwordPolicy: { lengthMin: 8, lengthMax: 256, isComplex: false },
  });
});
