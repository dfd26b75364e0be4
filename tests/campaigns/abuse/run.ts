/**
 * Runs one kind of abuse against a new server. The victim starts, the abuse runs alongside it, and
 * the effects on the victim and on the server are then judged.
 */

import { chanceFromSeed } from "../../../scripts/support/chance.ts";
import { mebibytes, residentBytes } from "../../../scripts/support/memory.ts";
import { type ServerProcess, startReadyServer } from "../../support/server_process.ts";
import { ABUSES, type AbuseName } from "./abuses.ts";
import { startVictim } from "./beside.ts";
import type { VictimReport } from "./victim.ts";

/** The memory that the server may use in addition to the send queues. */
const MEMORY_BYTES_MAX = 200 * 2 ** 20;

/** The default of `websocket.send_queue_bytes`, which no abuse changes. */
const SEND_QUEUE_BYTES = 2 ** 20;

/**
 * The number of bytes of unfinished bodies or messages that the server accepts from a single
 * address.
 */
const UNFINISHED_BYTES = 2 ** 28;

/** The kinds of abuse that send unfinished bodies or messages. */
const UNFINISHED: ReadonlySet<AbuseName> = new Set(["bodies", "unfinished"]);

/** The number of sockets per user, because a user may have at most 100 subscriptions. */
const SOCKETS_PER_USER = 90;

const SAMPLE_MS = 100;

const ROW_COUNT = 20_000;

export interface AbuseOptions {
  readonly name: AbuseName;
  readonly seconds: number;
  readonly socketCount: number;
  readonly messageCount: number;
  readonly p99MsMax: number;
  readonly seed: number;
}

export interface AbuseReport {
  /** A summary of what the attack did. */
  readonly done: string;
  readonly victim: VictimReport;
  readonly memory: { readonly beforeMiB: number; readonly peakMiB: number };
  /** The server's faults, one per violated requirement; empty if there are none. */
  readonly held: readonly string[];
}

export async function runAbuse(options: AbuseOptions): Promise<AbuseReport> {
  const { name, socketCount } = options;
  await using server = await startReadyServer({
    config: {
      limits: {
        connections_per_ip: 0,
        requests_per_sec_per_ip: 0,
        auth_requests_per_sec_per_ip: 0,
      },
      auth: {
        signup: "open",
        guests: true,
        password_reset: true,
        // No process listens at this address, so notices wait and are eventually discarded.
        notice_url: "http://127.0.0.1:9/notices",
      },
    },
  });
  await fillWall(server);
  const users = Math.ceil(socketCount / SOCKETS_PER_USER);
  const tokens = await Promise.all(
    Array.from({ length: users }, (_, index) => server.createUser(`mallory_${index}`)),
  );
  const victimToken = await server.createUser("victim");

  const before = residentBytes(server.pid);
  let peak = before;
  const sampling = setInterval(() => {
    peak = Math.max(peak, residentBytes(server.pid));
  }, SAMPLE_MS);
  const victim = startVictim({ url: server.url, token: victimToken });
  await victim.ready();
  const done = await ABUSES[name]({
    ...options,
    server,
    tokens,
    chance: chanceFromSeed(options.seed),
  });
  const report = await victim.stop();
  clearInterval(sampling);

  const held = report.errors.slice(0, 5).map((error) => `the victim saw: ${error}`);
  for (const [kind, ms] of Object.entries(report.p99Ms)) {
    if (ms > options.p99MsMax) held.push(`p99 of the victim's ${kind}: ${ms.toFixed(0)} ms`);
  }
  if (report.missed > 0) held.push(`the victim never received ${report.missed} changes`);
  const heldBytes = UNFINISHED.has(name) ? UNFINISHED_BYTES : socketCount * SEND_QUEUE_BYTES;
  const bound = before + heldBytes + MEMORY_BYTES_MAX;
  if (peak > bound) held.push(`memory grew to ${mebibytes(peak)} of ${mebibytes(bound)} MiB`);
  held.push(...(await findingsOf(server)));
  return {
    done,
    victim: report,
    memory: { beforeMiB: mebibytes(before), peakMiB: mebibytes(peak) },
    held,
  };
}

/** Creates the tables that the ordinary user works with. */
export async function fillWall(server: ServerProcess): Promise<void> {
  await server.rows(
    "CREATE NAMESPACE app; CREATE TABLE app.wall (id BIGINT PRIMARY KEY, room TEXT, body TEXT) " +
      "WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC'); " +
      "CREATE TABLE app.notes (id BIGINT PRIMARY KEY, body TEXT) WITH (TYPE = 'USER')",
  );
  await server.rows(
    `INSERT INTO app.wall SELECT i, 'room ' || i % 100, REPEAT('x', 200)
     FROM GENERATE_SERIES(1, ${ROW_COUNT}) AS t (i)`,
  );
}

/**
 * Lists the server's faults that are visible after the abuse: whether it is still running, and the
 * bugs that it reported.
 */
export async function findingsOf(server: ServerProcess): Promise<string[]> {
  const found: string[] = [];
  const rows = await server.rows("SELECT COUNT(*) FROM app.wall WHERE id <= $1", {
    params: [ROW_COUNT],
  });
  if (Number(rows[0]?.[0]) !== ROW_COUNT) found.push(`rows of the wall: ${String(rows[0]?.[0])}`);
  const bugs = server.output.split("\n").filter((line) => /\berror\b/i.test(line));
  for (const line of bugs.slice(0, 5)) found.push(`the server printed: ${line}`);
  return found;
}
