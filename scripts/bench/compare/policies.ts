/**
 * Measures the cost of a policy that checks membership, in three cases: a request that reads a row
 * by its key, a scan in which every row is permitted, and a message to many followers. Each is
 * compared with the same query on a PUBLIC table. In the last case, that query contains the
 * condition itself.
 *
 * All figures are processor time, and both sides of a comparison take turns in short slices, so
 * that other work on the machine affects both alike.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import { openAt, SMALL_FILES } from "../../../tests/support/database.ts";
import { principalFor } from "../../../tests/support/principal_for.ts";
import { startReadyServer } from "../../../tests/support/server_process.ts";
import { median } from "../../support/statistics.ts";
import type { Line } from "./jobs.ts";
import { cpuNsOf } from "./process_time.ts";

/** The user who reads the tables, and who is a member of every room. */
const READER = "reader";

const ROOMS = 1000;

/** The number of members of a room besides the reader. */
const MEMBERS = 10;

const MEMBERSHIP =
  "EXISTS (SELECT 1 FROM bench.members m WHERE m.room = {t}.room AND m.user_id = CURRENT_USER())";

/** The number of initial comparisons that warm up the compilers and are not counted. */
const WARM_COMPARISONS = 4;

export interface PolicyOptions {
  /** Whether the job uses fewer rows and followers, for a quick look at the figures. */
  readonly isQuick: boolean;
}

/** The parts of the benchmark, keyed by name. Each opens its own database. */
export const POLICY_JOBS: Readonly<Record<string, (options: PolicyOptions) => Promise<Line[]>>> = {
  requests: ({ isQuick }) => requestLines(isQuick ? 10_000 : 100_000),
  scans: ({ isQuick }) => scanLines(isQuick ? 20_000 : 200_000),
  messages: ({ isQuick }) => messageLines(isQuick ? 1000 : 10_000),
};

/** Returns the statements that create and fill the tables. Only the table `ruled` has a policy. */
function tables(rowCount: number): readonly string[] {
  const columns = "id INT PRIMARY KEY, room INT, n INT, body TEXT";
  const rows = `SELECT n, n % ${ROOMS}, n, 'message ' || n FROM generate_series(1, ${rowCount}) AS g(n)`;
  return [
    "CREATE NAMESPACE bench",
    "CREATE TABLE bench.members (room INT, user_id TEXT, PRIMARY KEY (room, user_id)) WITH (ACCESS_LEVEL = 'PUBLIC')",
    `INSERT INTO bench.members SELECT room, 'u' || (room * ${MEMBERS} + k) FROM generate_series(0, ${ROOMS - 1}) AS g(room), generate_series(0, ${MEMBERS - 1}) AS h(k)`,
    `INSERT INTO bench.members SELECT room, '${READER}' FROM generate_series(0, ${ROOMS - 1}) AS g(room)`,
    `CREATE TABLE bench.open (${columns}) WITH (ACCESS_LEVEL = 'PUBLIC')`,
    `CREATE TABLE bench.ruled (${columns}) WITH (ACCESS_LEVEL = 'RESTRICTED')`,
    `CREATE POLICY members ON bench.ruled USING (${MEMBERSHIP.replace("{t}", "ruled")})`,
    `INSERT INTO bench.open ${rows}`,
    `INSERT INTO bench.ruled ${rows}`,
    "STORAGE FLUSH TABLE bench.open",
    "STORAGE FLUSH TABLE bench.ruled",
  ];
}

interface Compared {
  /** The median cost without policies, in microseconds. */
  readonly open: number;
  readonly ruled: number;
  /** The median ratio of `ruled` to `open` over all comparisons. */
  readonly ratio: number;
}

/** Measures the tables without and with a policy alternately: open, ruled, ruled, open. */
async function compared(
  count: number,
  measure: (table: "open" | "ruled") => Promise<number>,
): Promise<Compared> {
  const open: number[] = [];
  const ruled: number[] = [];
  const ratios: number[] = [];
  for (let turn = -WARM_COMPARISONS; turn < count; turn += 1) {
    const first = await measure("open");
    const second = (await measure("ruled")) + (await measure("ruled"));
    const both = first + (await measure("open"));
    if (turn < 0) continue;
    open.push(both / 2);
    ruled.push(second / 2);
    ratios.push(second / both);
  }
  return { open: median(open), ruled: median(ruled), ratio: median(ratios) };
}

const REQUESTS_PER_SLICE = 200;
const CLIENTS = 8;

/** Compares the cost of HTTP requests that read a row by its key, with and without a policy. */
async function requestLines(rowCount: number): Promise<Line[]> {
  await using server = await startReadyServer({ config: { logging: { level: "warn" } } });
  const token = await server.createUser(READER);
  for (const sql of tables(rowCount)) await server.rows(sql);
  let next = 0;
  const slice = async (table: "open" | "ruled"): Promise<number> => {
    const sql = `SELECT id, body FROM bench.${table} WHERE id = $1`;
    const before = cpuNsOf(server.pid);
    const client = async (): Promise<void> => {
      for (let sent = 0; sent < REQUESTS_PER_SLICE / CLIENTS; sent += 1) {
        next += 1;
        const rows = await server.rows(sql, { token, params: [1 + ((next * 7919) % rowCount)] });
        if (rows.length !== 1) throw new Error(`Cannot read ${table}: ${rows.length} rows`);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    return (cpuNsOf(server.pid) - before) / 1000 / REQUESTS_PER_SLICE;
  };
  const { open, ratio, ruled } = await compared(60, slice);
  const job = "SELECT by key over HTTP";
  return [
    timeLine(`${job}: processor time`, open),
    timeLine(`${job} under a policy by membership: processor time`, ruled),
    {
      ...timeLine(`${job}: more with the policy`, (ratio - 1) * 100),
      unit: "%",
      target: { atMost: 30 },
    },
  ];
}

/** Runs a function on a database opened in-process, then closes and removes the database. */
async function withDatabase<Result>(
  rowCount: number,
  use: (database: Database, reader: Principal) => Promise<Result>,
): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const config = `storage.durability = "relaxed"\nlimits.subscriptions_per_user = 0\nlimits.subscriptions_per_connection = 100000\n${SMALL_FILES}`;
  const database = await openAt(directory, { config });
  const root = principalFor(database, "root");
  for (const sql of [...tables(rowCount), `CREATE USER ${READER} INTERNAL`]) {
    await run(database, root, sql);
  }
  try {
    return await use(database, principalFor(database, READER));
  } finally {
    await database.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function run(database: Database, principal: Principal, sql: string): Promise<unknown> {
  const { error, results } = await database.sql.execute(principal, { sql, params: [] });
  if (error !== undefined) throw error;
  return results.at(-1)?.rows?.[0]?.[0];
}

/** Returns the processor time that this process spends on `work`, in microseconds. */
async function cpuUsOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { system, user } = process.cpuUsage(before);
  return system + user;
}

/** Compares the cost of scans and of reads by key, without HTTP. */
async function scanLines(rowCount: number): Promise<Line[]> {
  return await withDatabase(rowCount, async (database, reader) => {
    const scanned = await compared(20, (table) =>
      cpuUsOf(async () => {
        const found = await run(database, reader, `SELECT sum(n) FROM bench.${table}`);
        if (Number(found) !== (rowCount * (rowCount + 1)) / 2) throw new Error("rows are missing");
      }),
    );
    const job = `scan of ${rowCount.toLocaleString("en")} permitted rows`;
    return [
      timeLine(`${job}: processor time`, scanned.open),
      timeLine(`${job} under a policy by membership: processor time`, scanned.ruled),
      {
        ...timeLine(
          `${job}: more with the policy for each row`,
          ((scanned.ruled - scanned.open) * 1000) / rowCount,
        ),
        unit: "ns",
        target: { atMost: 1000 },
      },
    ];
  });
}

const MESSAGES_PER_SLICE = 20;
const WAIT_MS_MAX = 600_000;

/**
 * Compares the cost of messages to a single room while many followers each read their own rooms.
 */
async function messageLines(followerCount: number): Promise<Line[]> {
  return await withDatabase(ROOMS, async (database) => {
    const root = principalFor(database, "root");
    for (let first = 0; first < followerCount; first += 500) {
      const users = Array.from({ length: 500 }, (_, i) => `CREATE USER u${first + i} INTERNAL`);
      await run(database, root, users.join("; "));
    }
    const counts = { ready: 0, delivered: 0 };
    for (const table of ["open", "ruled"] as const) {
      const condition = table === "open" ? ` WHERE ${MEMBERSHIP.replace("{t}", "open")}` : "";
      const sql = `SELECT id, room, body FROM bench.${table}${condition}`;
      for (let index = 0; index < followerCount; index += 1) {
        follow(database, { user: `u${index}`, id: `${table}${index}`, sql }, counts);
      }
      await reached(() => counts.ready, followerCount * (table === "open" ? 1 : 2));
    }
    let nextId = ROOMS;
    const slice = async (table: "open" | "ruled"): Promise<number> => {
      const before = counts.delivered;
      const spent = await cpuUsOf(async () => {
        for (let sent = 0; sent < MESSAGES_PER_SLICE; sent += 1) {
          nextId += 1;
          const room = (nextId * 7919) % Math.min(ROOMS, followerCount / MEMBERS);
          await run(
            database,
            root,
            `INSERT INTO bench.${table} VALUES (${nextId}, ${room}, 0, 'hello')`,
          );
        }
        await reached(() => counts.delivered, before + MESSAGES_PER_SLICE * MEMBERS);
      });
      return spent / MESSAGES_PER_SLICE;
    };
    const { open, ratio, ruled } = await compared(12, slice);
    const job = `message to ${MEMBERS} of ${followerCount.toLocaleString("en")} followers`;
    return [
      timeLine(`${job}, the condition written out: processor time`, open),
      timeLine(`${job}, under a policy by membership: processor time`, ruled),
      {
        ...timeLine(`${job}: the policy against the condition written out`, ratio),
        unit: "times",
        target: { atMost: 2 },
      },
    ];
  });
}

/** Waits until a count has reached `wanted`. @throws If the count does not reach it in time. */
async function reached(count: () => number, wanted: number): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  while (count() < wanted) {
    if (performance.now() > deadlineMs) throw new Error(`Only ${count()} of ${wanted} have come`);
    await Bun.sleep(1);
  }
}

/**
 * Subscribes a user. Counts the changed rows that arrive, and the subscriptions that have loaded
 * all their rows.
 */
function follow(
  database: Database,
  { id, sql, user }: { readonly id: string; readonly sql: string; readonly user: string },
  counts: { ready: number; delivered: number },
): void {
  const subscription = database.live.subscribe({
    principal: principalFor(database, user),
    spec: { id, sql },
    sink: {
      connectionId: id,
      queuedBytes: 0,
      send({ message }) {
        if (message.type === "change") counts.delivered += message.rows.length;
        else {
          if (message.batch_control.has_more) queueMicrotask(() => subscription.nextBatch());
          else counts.ready += 1;
        }
        return true;
      },
      end: () => undefined,
    },
  });
}

function timeLine(job: string, value: number): Line {
  return { job, unit: "µs", isRate: false, values: { Tidemark: value } };
}
