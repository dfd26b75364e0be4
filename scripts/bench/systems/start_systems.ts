/**
 * Starts the servers that a benchmark measures: Tidemark, and the peers behind their front ends.
 * All of them end with the script, even if the script fails.
 */
import { cpSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../../../tests/support/postgres.ts";
import { ServerProcess, startReadyServer } from "../../../tests/support/server_process.ts";
import { claimsOf, signToken } from "./bearer.ts";
import { type MeasuredSystem, TIDEMARK_DEFINITIONS } from "./measured_system.ts";
import { startRedis } from "./redis_peer.ts";

/** The secret that signs the bearer tokens. Tidemark and all front ends verify tokens with it. */
const SECRET = "a secret for the bench alone, 32 bytes or more";

const PORT_MS_MAX = 20_000;

/** The number of CREATE USER statements per request. */
const USERS_PER_REQUEST = 250;

export interface MeasuredSystems extends AsyncDisposable {
  readonly tidemark: MeasuredSystem;
  readonly peers: readonly MeasuredSystem[];
  /** The systems that can only relay rows: Redis, if it is installed. */
  readonly relays: readonly MeasuredSystem[];
  /** The process that runs `tidemark`, for measuring and restarting it. */
  readonly server: ServerProcess;
  readonly postgresUrl: string;
  /** A directory in which a benchmark may create files. */
  readonly directory: string;
}

export async function startSystems(userCount: number): Promise<MeasuredSystems> {
  const directory = await mkdtemp(join(tmpdir(), "tidemark-bench-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  const { system: tidemark, server } = await startTidemark(userCount);
  const shared = { token: tidemark.token, userTokens: tidemark.userTokens };
  const postgres = await startPostgres();
  const redis = await startRedis(directory);
  const fronts = [
    await startFront("PostgreSQL", ["postgres", postgres.url, SECRET]),
    await startFront("SQLite", ["sqlite", join(directory, "sqlite.db"), SECRET]),
  ];
  const relays = redis ? [await startFront("Redis", ["redis", redis.url, SECRET])] : [];
  if (redis === undefined) process.stderr.write("Redis is skipped because it is not installed\n");
  const systemOf = ({ name, url }: Front): MeasuredSystem => ({
    name,
    isTidemark: false,
    url,
    ...shared,
  });
  return {
    tidemark,
    peers: fronts.map(systemOf),
    relays: relays.map(systemOf),
    server,
    postgresUrl: postgres.url,
    directory,
    async [Symbol.asyncDispose]() {
      for (const { stop } of [...fronts, ...relays]) await stop();
      await redis?.stop();
      await postgres.stop();
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Starts a second server on a copy of a server's data, with a single reader for long-running
 * queries.
 */
export async function startOneReader(server: ServerProcess): Promise<ServerProcess> {
  server.kill("SIGTERM");
  await server.exited();
  const second = new ServerProcess(`${server.directory}-one-reader`, {
    config: { auth: { jwt_secret: SECRET }, server: { workers: 1 } },
  });
  cpSync(server.dataPath, second.dataPath, { recursive: true });
  await server.start();
  await second.start();
  second.token = server.token;
  return second;
}

/** Starts a server that accepts the tokens signed by `makeUsers`. */
export function startSecretServer(
  env: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  return startReadyServer({
    config: {
      auth: { jwt_secret: SECRET },
      limits: { subscriptions_per_user: 100_000 },
    },
    env,
  });
}

/**
 * Starts a Tidemark server without any peers, and creates the tables for all jobs.
 * @param env The environment variables of the server process.
 */
export async function startTidemark(
  userCount: number,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly system: MeasuredSystem; readonly server: ServerProcess }> {
  const server = await startSecretServer(env);
  await server.rows(TIDEMARK_DEFINITIONS);
  const userTokens = await makeUsers(server, userCount);
  const { token, url } = server;
  return { system: { name: "Tidemark", isTidemark: true, url, token, userTokens }, server };
}

/**
 * Creates users, and returns a signed token for each, like those that a login returns. The users
 * have no passwords, because hashing a thousand passwords would take a minute.
 */
export async function makeUsers(server: ServerProcess, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `u${index}`);
  for (let first = 0; first < count; first += USERS_PER_REQUEST) {
    const some = names.slice(first, first + USERS_PER_REQUEST);
    await server.rows(some.map((name) => `CREATE USER '${name}' INTERNAL`).join("; "));
  }
  const pattern = claimsOf(await server.createUser("pattern"));
  return names.map((name) => {
    const id = Bun.randomUUIDv7();
    return signToken({ ...pattern, sub: name, jti: id, sid: id }, SECRET);
  });
}

export interface Front {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the front end of a peer in a separate process.
 * @param args The kind of peer, its address, and the secret that verifies tokens.
 */
export async function startFront(name: string, args: readonly string[]): Promise<Front> {
  // The front end ends when its stdin is closed, either by `stop` or because this process ends.
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "front.ts"), ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const timer = setTimeout(() => child.kill(), PORT_MS_MAX);
  const { value } = await reader.read();
  clearTimeout(timer);
  reader.releaseLock();
  if (value === undefined) throw new Error(`Cannot start the front of ${name}`);
  return {
    name,
    url: `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`,
    pid: child.pid,
    async stop() {
      await child.stdin.end();
      await child.exited;
    },
  };
}
