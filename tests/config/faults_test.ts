/**
 * Verifies that an invalid configuration is refused as a whole, with every fault and its position.
 */
import { expect, test } from "bun:test";
import { keyPositions } from "../../src/config/positions.ts";
import { configOf, faultsOf, QUIET, warningsOf } from "./read_config.ts";

test("parseConfig reports file, line and column, and the probable intention", () => {
  const table: readonly [toml: string, fault: string][] = [
    [
      "[server]\n  prot = 1",
      'config.toml:2:3: unknown key "prot" in [server]; did you mean "port"?',
    ],
    ["\n[sever]\n", "config.toml:2:2: unknown section [sever]; did you mean [server]?"],
    [
      "port = 1",
      'config.toml:1:1: unknown key "port" outside any section; did you mean "port" in [server]?',
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
    ["server = 5", "config.toml:1:1: [server] must be a section, but is set as a key"],
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
      "config.toml:2:1: server.host is a whole number, but must be an IP address or a host name " +
        "without a scheme or port, such as 127.0.0.1, ::1 or localhost",
    ],
    [
      "[server]\nui_enabled = 1",
      "config.toml:2:1: server.ui_enabled is a whole number, but must be true or false",
    ],
    [
      "[server.host]\na = 1",
      "config.toml:1:9: server.host is a table, but must be an IP address or a host name without a " +
        "scheme or port, such as 127.0.0.1, ::1 or localhost",
    ],
    [
      "[security]\nallowed_hosts = 'a'",
      "config.toml:2:1: security.allowed_hosts is a string, but must be a list of strings, " +
        "each of them a host name",
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
      "config.toml:2:1: storage.cache_bytes is a whole number too large for 53 bits, but must " +
        "be a whole number from 1048576",
    ],
    [
      "[storage]\ncache_bytes = inf",
      "config.toml:2:1: storage.cache_bytes is infinite or NaN, but must be a whole number " +
        "from 1048576",
    ],
    [
      "[security]\ntrusted_proxies = ['10.0.0.0/99']",
      'config.toml:2:1: security.trusted_proxies is ["10.0.0.0/99"], but must be a list of ' +
        "strings, each of them an IP address or a range such as 10.0.0.0/8",
    ],
    [
      "[security]\nmetrics_allow = ['::1', '300.1.1.1']",
      'config.toml:2:1: security.metrics_allow is ["::1","300.1.1.1"], but must be a list of ' +
        "strings, each of them an IP address or a range such as 10.0.0.0/8",
    ],
    [
      "[storage]\nallowed_roots = ['/']",
      'config.toml:2:1: storage.allowed_roots is ["/"], but must be a list of strings, each of them an ' +
        "absolute path below /, such as /var/backups, without . or .. segments",
    ],
    [
      "[websocket]\ndefault_batch_size = 10001",
      "config.toml:2:1: websocket.default_batch_size is 10001, but must be at most 10000, " +
        "the value of websocket.max_batch_size",
    ],
    [
      "[websocket]\nmax_batch_size = 999",
      "config.toml:2:1: websocket.max_batch_size is 999, but must be at least 1000, " +
        "the value of websocket.default_batch_size",
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
    "config.toml:9:1: auth.refresh_expiry_hours is 24, but must be at least 48, " +
      "the value of auth.jwt_expiry_hours",
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
    "an IP address or a host name without a scheme or port, such as 127.0.0.1, ::1 or localhost";
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

test("parseConfig never repeats a secret in a fault", () => {
  const faults = faultsOf(
    "[auth]\nroot_password = 'password1'\njwt_secret = ['hunter2hunter2']",
    {},
  );

  expect(faults.length).toBeGreaterThan(1);
  expect(faults.join()).not.toContain("password1");
  expect(faults.join()).not.toContain("hunter2");
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
