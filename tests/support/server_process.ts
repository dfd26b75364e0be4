/**
 * Runs the real server as its users do, either from the bundle of `npm start` or as an executable.
 * The server runs in a separate process on a free port, with its data in a temporary directory.
 * Tests of wire behaviour use it, and so do the torture and measurement scripts.
 *
 * The process sees only the parts of the caller's environment that it needs to run, and it does
 * not outlive the caller.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { preparedServer } from "../../scripts/prepare.mjs";
import type { SchemaField } from "../../src/protocol/mod.ts";

const ROOT: string = join(import.meta.dir, "../..");

/** The executable that a complete test run compiles; otherwise undefined. */
export const COMPILED: string | undefined = process.env["TIDEMARK_TEST_PROGRAM"];

/** How long the compilation may take beside the first tests. */
const COMPILE_MS_MAX = 1_800_000;

if (COMPILED !== undefined) await appearance(COMPILED);

/**
 * Waits until there is a file. While this module is loaded, the time limits of tests do not run.
 * @throws If the file does not appear in time.
 */
async function appearance(path: string): Promise<void> {
  const deadlineMs = performance.now() + COMPILE_MS_MAX;
  while (!existsSync(path)) {
    if (performance.now() > deadlineMs) throw new Error(`Cannot start the server: no ${path}`);
    await Bun.sleep(20);
  }
}

let bundled: string | undefined;

/**
 * Returns the command that starts a server: the executable if there is one, otherwise the bundle.
 */
export function serverCommand(): readonly string[] {
  return COMPILED === undefined ? bundleCommand() : [COMPILED];
}

/**
 * Returns the command that starts a server from the bundle. Unlike an executable, the bundle can
 * preload modules, and its messages name npm commands.
 *
 * @param flags The flags of the runtime.
 */
export function bundleCommand(flags: readonly string[] = []): readonly string[] {
  bundled ??= preparedServer(process.execPath);
  return [process.execPath, ...flags, bundled];
}

/**
 * Whether this process is a test run. A script, in contrast, measures a server without changes.
 */
const isTest: boolean = process.env["NODE_ENV"] === "test";

/**
 * Configures small log files. Startup fills every log file with zeros, which takes half of the
 * startup time at the default size.
 */
const SMALL_LOG = { wal_segment_bytes: 4 * 1024 * 1024 };

/** The environment for a server whose memory is measured: without the settings of test workers. */
export const AS_FOR_USERS = {
  BUN_JSC_thresholdForOptimizeAfterWarmUp: undefined,
  BUN_JSC_useFTLJIT: undefined,
  MIMALLOC_PURGE_DELAY: undefined,
} as const;

/**
 * A server of a test runs most functions only a few times, so it optimises them later than usual,
 * which saves an eighth of its processor time.
 */
const LATE_OPTIMISATION = { BUN_JSC_thresholdForOptimizeAfterWarmUp: "4000" };

/** The maximum time that a server may take to print its address before it counts as failed. */
const START_MS_MAX = 60_000;

/** The maximum time that a test waits for output that follows the address. */
const OUTPUT_MS_MAX = 60_000;

export type ConfigValue = string | number | boolean | readonly string[];

/** Maps the name of each section, dotted if nested, to its keys. */
export type ConfigSections = Readonly<Record<string, Readonly<Record<string, ConfigValue>>>>;

export interface ServerOptions {
  /**
   * The configuration, merged over the settings that tests themselves need: a free local port, and
   * paths in the temporary directory.
   */
  config?: ConfigSections;
  /** Environment variables to add. A value of `undefined` removes an inherited variable. */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * A prefix for the command, as in `["strace", "-f", …]`. The started process is then that of the
   * prefix.
   */
  wrapper?: readonly string[];
  /** The command to run instead of the usual one. */
  command?: readonly string[];
}

/** An entry of `results` in the response to SQL statements. */
export interface SqlEntry {
  readonly schema?: readonly SchemaField[];
  readonly rows?: readonly (readonly unknown[])[];
  readonly row_count: number;
  readonly message?: string;
  readonly as_user: string;
  readonly last_seq?: number | null;
  readonly notices?: readonly string[];
}

export interface SqlError {
  readonly code: string;
  readonly message: string;
  readonly reason?: string;
  readonly position?: number;
  readonly hint?: string;
  readonly statement?: number;
  readonly retry_after_seconds?: number;
}

export interface SqlBody {
  readonly status: "success" | "error";
  readonly results: readonly SqlEntry[];
  readonly took: number;
  readonly error?: SqlError;
}

export interface SqlAnswer {
  readonly status: number;
  readonly body: SqlBody;
  readonly headers: Headers;
}

export interface SqlOptions {
  params?: readonly unknown[];
  namespace?: string;
  /** The caller's token; by default, that of the administrator created by `setup()`. */
  token?: string;
  /** Additional fields of the request body. */
  fields?: Readonly<Record<string, unknown>>;
}

export interface Login {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_at: string;
  readonly refresh_expires_at: string;
  readonly admin_ui_access: boolean;
  readonly user: { readonly id: string; readonly role: string; readonly email: string | null };
}

/** The administrator created by `setup()`. All test users have the password below. */
export const ADMIN = "ada";
export const PASSWORD = "correct horse 9";

const running = new Set<ServerProcess>();
const directories = new Set<string>();
process.on("exit", () => {
  for (const server of running) server.kill("SIGKILL");
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** Starts a server on a new data directory, and waits until it listens. */
export function startServer(options: ServerOptions = {}): Promise<ServerProcess> {
  return startWith(options, () => undefined);
}

/**
 * Starts a server that is set up, with its administrator logged in. In a test run, the server
 * starts on a copy of a data directory that is set up only once per process, because the three
 * password hashes of a setup take as long as starting the server.
 */
export async function startReadyServer(options: ServerOptions = {}): Promise<ServerProcess> {
  if (!isTest || needsOwnSetup(options)) return await startSetUp(options);
  const { dataPath, token } = await (readyData ??= makeReadyData());
  const server = await startWith(options, (made) => {
    cpSync(dataPath, made.dataPath, { recursive: true });
  });
  server.token = token;
  return server;
}

interface ReadyData {
  readonly dataPath: string;
  /** The administrator's token, valid for the default of 24 hours. */
  readonly token: string;
}

let readyData: Promise<ReadyData> | undefined;

/** Sets up a server and kills it, which leaves the rows of its internal tables only in its log. */
async function makeReadyData(): Promise<ReadyData> {
  const server = await startSetUp({});
  server.kill("SIGKILL");
  await server.exited();
  return { dataPath: server.dataPath, token: server.token };
}

/**
 * Whether a server must not start on a copy of another server's data. Its settings may determine
 * how data is created or tokens are signed, or its program may have a different clock or injected
 * faults.
 */
function needsOwnSetup({ command, config = {}, env = {}, wrapper }: ServerOptions): boolean {
  const isDifferent = command !== undefined || wrapper !== undefined;
  const isConfigured =
    "auth" in config || Object.keys(config["storage"] ?? {}).some((key) => key !== "allowed_roots");
  return (
    isDifferent || isConfigured || Object.keys(env).some((name) => name.startsWith("TIDEMARK_"))
  );
}

async function startSetUp(options: ServerOptions): Promise<ServerProcess> {
  const server = await startServer(options);
  try {
    await server.setup();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

/** Starts a server in a new directory, which the caller may fill beforehand. */
async function startWith(
  options: ServerOptions,
  fill: (server: ServerProcess) => void,
): Promise<ServerProcess> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-"));
  const server = new ServerProcess(directory, options);
  try {
    fill(server);
    await server.start();
  } catch (error) {
    directories.delete(directory);
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
  return server;
}

export class ServerProcess {
  /** The directory for the configuration, the data and the logs. `stop()` removes it. */
  readonly directory: string;
  readonly configPath: string;
  /** The administrator's token; empty until an administrator exists. */
  token = "";
  readonly #options: ServerOptions;
  #child: Bun.Subprocess<"ignore", "pipe", "pipe"> | undefined;
  #output = "";
  #url = "";

  constructor(directory: string, options: ServerOptions) {
    this.directory = directory;
    this.configPath = join(directory, "config.toml");
    this.#options = options;
    directories.add(directory);
    mkdirSync(this.directory, { recursive: true });
    writeFileSync(this.configPath, tomlFromSections(this.#sections()));
  }

  /** The base URL, without a trailing slash. A restart may change it. */
  get url(): string {
    return this.#url;
  }

  get webSocketUrl(): string {
    return `${this.#url.replace(/^http/, "ws")}/v1/ws`;
  }

  get dataPath(): string {
    return join(this.directory, "data");
  }

  get pid(): number {
    return this.#started().pid;
  }

  /** Everything that the current process has written to stdout and stderr, in order of arrival. */
  get output(): string {
    return this.#output;
  }

  /** Starts the process. @throws If the process exits before it listens, or prints no address. */
  async start(): Promise<void> {
    const { wrapper = [], command = serverCommand(), env = {} } = this.#options;
    this.#output = "";
    this.#child = Bun.spawn([...wrapper, ...command, this.configPath], {
      cwd: ROOT,
      env: { ...inheritedEnvironment(), ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    running.add(this);
    const address = Promise.withResolvers<string>();
    void this.#read(this.#child.stdout, address.resolve);
    void this.#read(this.#child.stderr, address.resolve);
    const timer = setTimeout(() => this.kill("SIGKILL"), START_MS_MAX);
    const ended = this.#child.exited.then((code) => {
      throw new Error(`Cannot start the server: it ended with ${code}\n${this.#output}`);
    });
    try {
      this.#url = await Promise.race([address.promise, ended]);
    } catch (error) {
      running.delete(this);
      throw error;
    } finally {
      clearTimeout(timer);
      // Ignores an exit that comes after the address, because it is not a failure to start.
      ended.catch(() => undefined);
    }
  }

  /** Creates the first administrator, and logs in with that account. */
  async setup(): Promise<Login> {
    const answer = await this.post("/v1/api/auth/setup", {
      user: ADMIN,
      password: PASSWORD,
      root_password: "battery staple 7",
    });
    if (!answer.ok) throw new Error(`Cannot set up: ${answer.status} ${await answer.text()}`);
    const login = await this.login(ADMIN);
    this.token = login.access_token;
    return login;
  }

  async login(user: string, password: string = PASSWORD): Promise<Login> {
    const answer = await this.post("/v1/api/auth/login", { user, password });
    if (!answer.ok) throw new Error(`Cannot log ${user} in: ${await answer.text()}`);
    return (await answer.json()) as Login;
  }

  /** Creates a user, and logs in with that account. Returns the access token. */
  async createUser(user: string, role = "user"): Promise<string> {
    await this.rows(`CREATE USER '${user}' WITH PASSWORD '${PASSWORD}' ROLE ${role}`);
    return (await this.login(user)).access_token;
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.#url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.#url}${path}`, { headers, redirect: "manual" });
  }

  /** Runs statements. A refusal is returned like any other response. */
  async sql(text: string, options: SqlOptions = {}): Promise<SqlAnswer> {
    const { params, namespace, token = this.token, fields = {} } = options;
    const body: Record<string, unknown> = { sql: text, ...fields };
    if (params !== undefined) body["params"] = params;
    if (namespace !== undefined) body["namespace_id"] = namespace;
    const answer = await this.post("/v1/api/sql", body, { Authorization: `Bearer ${token}` });
    return {
      status: answer.status,
      headers: answer.headers,
      body: (await answer.json()) as SqlBody,
    };
  }

  /** Runs statements that must succeed. Returns the rows of the last one. */
  async rows(text: string, options: SqlOptions = {}): Promise<readonly (readonly unknown[])[]> {
    const { body } = await this.sql(text, options);
    if (body.status !== "success") {
      throw new Error(`Cannot run ${text.slice(0, 200)}: ${JSON.stringify(body.error)}`);
    }
    return body.results.at(-1)?.rows ?? [];
  }

  /**
   * Reads a metric without running a statement, because some metrics would count that statement.
   */
  async metric(name: string): Promise<number> {
    const answer = await this.get("/metrics", { Authorization: `Bearer ${this.token}` });
    const lines = (await answer.text()).split("\n");
    const line = lines.find((each) => each.startsWith(`${name} `));
    if (line === undefined) throw new Error(`/metrics has no ${name}`);
    return Number(line.slice(name.length + 1));
  }

  /** Waits until the process's output matches. @throws If it does not match in time. */
  async outputHas(pattern: RegExp): Promise<void> {
    const deadlineMs = Date.now() + OUTPUT_MS_MAX;
    while (!pattern.test(this.#output)) {
      if (Date.now() > deadlineMs) throw new Error(`No ${String(pattern)} in:\n${this.#output}`);
      await Bun.sleep(10);
    }
  }

  /** Sends a signal if the process is running. */
  kill(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Describes whether the process is running or how it ended. */
  get condition(): string {
    const { exitCode, signalCode } = this.#started();
    if (exitCode === null && signalCode === null) return "running";
    return `ended with ${signalCode ?? exitCode}`;
  }

  /** Waits for the process to exit. @returns Its exit code, or 128 + n after signal n. */
  async exited(): Promise<number> {
    const code = await this.#started().exited;
    running.delete(this);
    return code;
  }

  /** Ends the process, by default with SIGTERM, and starts it again on the same data. */
  async restart(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.kill(signal);
    await this.exited();
    await this.start();
  }

  /** Keeps the directory for inspection after this script ends. */
  keepDirectory(): void {
    directories.delete(this.directory);
  }

  /** Ends the process and removes its directory. */
  async stop(): Promise<void> {
    this.kill("SIGKILL");
    await this.exited();
    directories.delete(this.directory);
    rmSync(this.directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #started(): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    if (this.#child === undefined) throw new Error("Cannot use the server: it was not started");
    return this.#child;
  }

  async #read(stream: ReadableStream<Uint8Array>, onAddress: (url: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#output += decoder.decode(chunk, { stream: true });
      const url = /https?:\/\/[^\s"']+?:\d+(?=[\s/"'])/.exec(this.#output)?.[0];
      if (url !== undefined) onAddress(url);
    }
  }

  #sections(): ConfigSections {
    const given = this.#options.config ?? {};
    const needed: ConfigSections = {
      server: { host: "127.0.0.1", port: 0, ui_enabled: false },
      storage: { data_path: this.dataPath, ballast_bytes: 0, ...(isTest ? SMALL_LOG : {}) },
      logging: { logs_path: join(this.directory, "logs") },
    };
    const names = new Set([...Object.keys(needed), ...Object.keys(given)]);
    return Object.fromEntries([...names].map((n) => [n, { ...needed[n], ...given[n] }]));
  }
}

/**
 * Returns the environment variables that every program needs, without any that could configure the
 * server. In a test run, they include the settings of test workers, which save processor time.
 */
function inheritedEnvironment(): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "LANG", "TZ", ...Object.keys(AS_FOR_USERS)];
  const inherited = names.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), ...(isTest ? LATE_OPTIMISATION : {}) };
}

/**
 * Returns configuration sections as TOML. Strings, numbers, booleans and lists have the same form
 * as in JSON.
 */
export function tomlFromSections(sections: ConfigSections): string {
  return Object.entries(sections)
    .map(([section, keys]) => {
      const lines = Object.entries(keys).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
      return [`[${section}]`, ...lines, ""].join("\n");
    })
    .join("\n");
}
