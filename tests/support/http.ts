/**
 * Runs the real server in-process, on a free port, with real HTTP and WebSocket, a real catalog,
 * real authentication, and the real live engine over the model store. Scripted responses replace
 * the SQL engine, because server tests do not depend on the results of SQL.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AccountSettings,
  Auth,
  type OidcSettings,
  type Principal,
} from "../../src/auth/mod.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import { loadClient } from "../../src/client_assets.ts";
import { LocalLiveEngine } from "../../src/live/mod.ts";
import {
  type RunningServer,
  type ServerConfig,
  type ServerOptions,
  startServer,
} from "../../src/server/mod.ts";
import type { FileAccess, SqlEngine, SqlRequest, SqlResponse } from "../../src/sql/mod.ts";
import { KnownQueries, LIMITS, messagesTable } from "./live_fixture.ts";
import { ModelStore } from "./model_store.ts";
import { NO_TOPICS, NO_WEBHOOKS } from "./no_topics.ts";

/** Sections of the configuration, each of which overrides the tests' defaults. */
export type ConfigChange = { readonly [S in keyof ServerConfig]?: Partial<ServerConfig[S]> };

/** The default settings of the protocol, with a free local port. */
const DEFAULTS: ServerConfig = {
  server: {
    host: "127.0.0.1",
    port: 0,
    ui_enabled: true,
    shutdown_timeout_secs: 10,
  },
  limits: {
    max_sql_bytes: 1048576,
    max_parameter_bytes: 524288,
    max_parameters: 32767,
    max_body_bytes: 10485760,
    max_timeout_ms: 600000,
    queries_per_sec_per_user: 0,
    requests_per_sec_per_ip: 0,
    connections_per_ip: 0,
    max_message_size: 1048576,
    messages_per_sec: 1000,
    max_poll_secs: 60,
  },
  performance: {
    request_timeout: 30,
    keepalive_timeout: 75,
    max_connections: 100000,
    http_compression: true,
  },
  auth: { allow_remote_setup: false, cookie_secure: true },
  security: {
    trusted_proxies: [],
    allowed_hosts: [],
    metrics_allow: [],
    cors: { allowed_origins: [], allow_credentials: false, max_age: 3600 },
  },
  websocket: {
    auth_timeout_secs: 10,
    idle_timeout_secs: 60,
    ping_interval_secs: 20,
    max_frame_bytes: 8388608,
    send_queue_bytes: 1048576,
    compression: true,
  },
  files: {
    max_size_bytes: 26214400,
    max_request_bytes: 104857600,
    max_files_per_request: 20,
    allowed_mime_types: [],
  },
  cluster: { node_id: 0 },
};

/** The memory settings of a large machine. */
const MEMORY: ServerOptions["memory"] = {
  bodyBytes: 512 * 2 ** 20,
  largeBodyBytes: 800 * 2 ** 20,
  messageBytes: 512 * 2 ** 20,
  sendQueueBytes: 2 ** 30,
};

/** The state of a disk that has free space, no damage and no failures. */
const HEALTHY_STORAGE: ReturnType<ServerOptions["storageState"]> = {
  freeBytes: 1e12,
  isReadOnly: false,
  logBytes: 0,
  quarantinedSegments: 0,
  failedJobs: new Map(),
};

/** Returns a complete configuration that includes the changes of a test. */
export function serverConfig(change: ConfigChange = {}): ServerConfig {
  return {
    server: { ...DEFAULTS.server, ...change.server },
    limits: { ...DEFAULTS.limits, ...change.limits },
    performance: { ...DEFAULTS.performance, ...change.performance },
    auth: { ...DEFAULTS.auth, ...change.auth },
    security: { ...DEFAULTS.security, ...change.security },
    websocket: { ...DEFAULTS.websocket, ...change.websocket },
    files: { ...DEFAULTS.files, ...change.files },
    cluster: { ...DEFAULTS.cluster, ...change.cluster },
  };
}

export type SqlScript = (
  request: SqlRequest,
  principal: Principal,
) => SqlResponse | Promise<SqlResponse>;

/** An SQL engine that returns the responses set by a test, and records the requests. */
class ScriptedSql implements SqlEngine {
  readonly requests: SqlRequest[] = [];
  readonly #script: SqlScript;
  readonly #queries = new KnownQueries();

  constructor(script: SqlScript) {
    this.#script = script;
  }

  async execute(principal: Principal, request: SqlRequest): Promise<SqlResponse> {
    this.requests.push(request);
    return await this.#script(request, principal);
  }

  openTransaction(): never {
    throw new Error("a script has no transactions");
  }

  transaction(): never {
    throw new Error("a script has no transactions");
  }

  endTransaction(): never {
    throw new Error("a script has no transactions");
  }

  /** Scripted statements end by themselves, so there is nothing to stop. */
  shutDown(): number {
    return 0;
  }

  planFollowed(
    ...request: Parameters<SqlEngine["planFollowed"]>
  ): ReturnType<SqlEngine["planFollowed"]> {
    return this.#queries.planFollowed(...request);
  }

  planLive(...request: Parameters<SqlEngine["planLive"]>): ReturnType<SqlEngine["planLive"]> {
    return this.#queries.planLive(...request);
  }
}

export interface TestServer {
  readonly url: string;
  readonly server: RunningServer;
  /** The options with which the server was created. */
  readonly options: ServerOptions;
  readonly catalog: CatalogDatabase;
  readonly auth: Auth;
  readonly store: ModelStore;
  /** The requests to the SQL engine, in order. */
  readonly requests: readonly SqlRequest[];
  /**
   * The errors reported as bugs. A test that expects no bugs must check that the list is empty.
   */
  readonly bugs: readonly unknown[];
  readonly directory: string;
  /** Returns the access token of a user, who is created on first use. "ada" is a DBA. */
  token(userId?: string): Promise<string>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Sends `POST /v1/api/sql` as ada. */
  sql(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  close(): Promise<void>;
}

export interface TestServerOptions {
  config?: ConfigChange;
  script?: SqlScript;
  /** Parts of the server to replace. */
  parts?: Partial<ServerOptions>;
  /** Creates the server's access to files; if omitted, the server has none. */
  files?: (world: { catalog: CatalogDatabase; store: ModelStore }) => FileAccess;
}

const PASSWORD = "correct horse 9";

const nothing: SqlScript = () => ({ results: [{ rowCount: 0, asUser: "ada" }] });

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-server-"));
  const clock = systemClock;
  const random = systemRandom;
  const log = silentLog;
  const catalog = CatalogDatabase.open({ path: join(directory, "catalog.sqlite"), clock, log });
  const auth = new Auth({
    catalog,
    clock,
    random,
    log,
    settings: authSettings(),
    onAudit: () => undefined,
    onNotice: () => undefined,
  });
  const store = new ModelStore(clock);
  store.defineTable(messagesTable());
  const sql = new ScriptedSql(options.script ?? nothing);
  const bugs: unknown[] = [];
  const live = new LocalLiveEngine({
    store,
    sql,
    definitions: catalog,
    clock,
    random,
    log,
    onBug: (error) => bugs.push(error),
    limits: LIMITS,
  });
  const made: ServerOptions = {
    config: serverConfig(options.config),
    memory: MEMORY,
    auth,
    sql,
    live,
    topics: NO_TOPICS,
    webhookFigures: () => NO_WEBHOOKS,
    files: options.files?.({ catalog, store }) ?? { open: noFiles, openById: noFiles },
    exports: { open: noFiles },
    uiAssets: undefined,
    clientAssets: loadClient(silentLog),
    clock,
    random,
    log,
    version: "1.2.3",
    buildDate: "2026-11-21",
    onBug: (error) => bugs.push(error),
    bugCount: () => bugs.length,
    archiveLag: () => undefined,
    isReadOnly: () => false,
    storageState: () => HEALTHY_STORAGE,
    memoryParts: () => [],
    memoryGivenBack: () => ({ collections: 0, caches: 0, flushes: 0 }),
    readerCounts: () => undefined,
    ...options.parts,
  };
  const server = startServer(made);
  const url = `http://127.0.0.1:${server.port}`;
  const users = new Users({ auth, catalog });
  return {
    url,
    server,
    options: made,
    catalog,
    auth,
    store,
    requests: sql.requests,
    bugs,
    directory,
    token: (userId = "ada") => users.token(userId),
    fetch: (path, init) => fetch(url + path, { redirect: "manual", ...init }),
    async sql(body, headers = {}) {
      const token = await users.token("ada");
      return await fetch(`${url}/v1/api/sql`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${token}`,
          "Content-Type": "application/json",
          ...headers,
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
    },
    async close() {
      await server.stop();
      catalog.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Runs a test with a server, and then closes the server. @throws If the server has encountered a
 * bug.
 */
export async function withServer(
  options: TestServerOptions,
  use: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await startTestServer(options);
  try {
    await use(server);
    if (server.bugs.length > 0) throw new AggregateError(server.bugs, "The server reported bugs");
  } finally {
    await server.close();
  }
}

function noFiles(): never {
  throw new Error("Cannot open a file: this test has none");
}

/** The account settings of a configuration that contains none. */
export const NO_ACCOUNTS: AccountSettings = {
  signUp: "off",
  hasGuests: false,
  guestDays: 30,
  mayChangePassword: false,
  mayDeleteAccount: false,
  hasPasswordReset: false,
  isEmailLogin: false,
  signUpsPerHour: 1000,
};

/** The settings of a configuration whose only issuer is the server itself. */
export const NO_PROVIDERS: OidcSettings = {
  providers: [],
  trustedIssuers: [],
  autoProvisions: false,
  defaultRole: "user",
  mayLink: false,
  keysFreshSeconds: 3600,
};

export function authSettings(): ConstructorParameters<typeof Auth>[0]["settings"] {
  return {
    jwtSecret: new TextEncoder().encode("a secret of more than thirty-two bytes"),
    accessLifetimeSeconds: 3600,
    refreshLifetimeSeconds: 7200,
    allowRemoteSetup: false,
    rootPassword: undefined,
    passwordPolicy: { lengthMin: 8, lengthMax: 256, isComplex: false },
    attemptsPerSecond: 0,
    loginFailuresMax: 0,
    lockoutSeconds: 900,
    hasSetupCode: false,
    accounts: NO_ACCOUNTS,
    oidc: NO_PROVIDERS,
  };
}

const CALLER = { address: "127.0.0.1", isLocal: true };

/** Logs users in. Each user is created on first use. */
class Users {
  readonly #auth: Auth;
  readonly #catalog: CatalogDatabase;
  readonly #tokens = new Map<string, Promise<string>>();

  constructor({ auth, catalog }: { auth: Auth; catalog: CatalogDatabase }) {
    this.#auth = auth;
    this.#catalog = catalog;
  }

  token(userId: string): Promise<string> {
    const known = this.#tokens.get(userId);
    if (known !== undefined) return known;
    const token = this.#logIn(userId);
    this.#tokens.set(userId, token);
    return token;
  }

  async #logIn(userId: string): Promise<string> {
    if (this.#auth.status().needs_setup) {
      const setup = { user: "ada", password: PASSWORD, root_password: "battery staple 7" };
      await this.#auth.setup(setup, CALLER);
    }
    if (this.#catalog.accounts.user(userId) === undefined) {
      const passwordHash = this.#catalog.accounts.user("ada")?.passwordHash ?? "";
      const role = userId.startsWith("service") ? "service" : "user";
      this.#catalog.accounts.create({ userId, role, authType: "password", passwordHash });
      this.#catalog.accounts.ownerNumber(userId, { create: true });
    }
    const login = await this.#auth.login({ user: userId, password: PASSWORD }, CALLER);
    return login.access_token;
  }
}
