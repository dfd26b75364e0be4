/**
 * Defines the benchmark that `--only live_sql` runs: live queries with joins, groups and windows,
 * compared with the usual alternatives, and the cost of changes under such queries.
 */
import { type ServerProcess, startReadyServer } from "../../../tests/support/server_process.ts";
import type { Line } from "../compare/jobs.ts";
import { cpuNsOf } from "../compare/process_time.ts";
import { collectPath } from "../idle_memory/measure.ts";
import { besideBulk, bytesOfFollower, type Changes, costUnder, fill, follow } from "./costs.ts";
import { measurePeer, PEER_MS_MAX, PEERS } from "./peers.ts";
import { measureRooms, type RoomsFigures, type RoomsLoad } from "./rooms.ts";
import { tidemarkRooms } from "./rooms_systems.ts";
import type { Subscribed } from "./tidemark_followers.ts";

export interface LiveSqlOptions {
  readonly seconds: number;
  /** Whether the job uses a smaller load, for a quick look at the figures. */
  readonly isQuick: boolean;
}

const TOP_TEN = "SELECT id, player, score FROM scores ORDER BY score DESC, id LIMIT 10";

const ORDERS_OF_USER =
  "SELECT o.id, i.id AS item, p.name, i.quantity FROM orders o " +
  "JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id WHERE o.user_id = $1";

type Job = (options: LiveSqlOptions) => Promise<Line[]>;

/** The parts of the benchmark, keyed by name. Each starts its own servers. */
export const LIVE_SQL_JOBS: Readonly<Record<string, Job>> = {
  "room lists": roomLines,
  "top ten": (options) => onServer((server) => topTenLines(server, options)),
  groups: (options) => onServer((server) => groupLines(server, options)),
  parameters: (options) =>
    onServer(async (server) => [
      ...(await parameterLines(server, options)),
      ...(await bulkLines(server, options)),
    ]),
};

async function onServer(job: (server: ServerProcess) => Promise<Line[]>): Promise<Line[]> {
  await using server = await benchServer();
  return await job(server);
}

async function benchServer(): Promise<ServerProcess> {
  const server = await startReadyServer({
    command: [process.execPath, "--preload", collectPath, "src/main.ts"],
    config: {
      limits: {
        subscriptions_per_user: 0,
        subscriptions_per_connection: 2000,
        messages_per_sec: 0,
      },
      logging: { level: "warn" },
    },
  });
  await server.rows("CREATE NAMESPACE bench");
  return server;
}

async function roomLines({ isQuick, seconds }: LiveSqlOptions): Promise<Line[]> {
  const userCount = isQuick ? 100 : 1000;
  const load: RoomsLoad = { userCount, seconds, rate: 200 };
  const figures = new Map<string, RoomsFigures>([["Tidemark", await ownRooms(load)]]);
  const notes: Record<string, string> = {};
  for (const peer of PEERS) {
    const measured = await measurePeer(peer, load);
    if (measured !== undefined) figures.set(peer.name, measured);
    else notes[peer.name] = `none in ${PEER_MS_MAX / 1000} s`;
  }
  const job = `room list, ${userCount.toLocaleString("en")} users in 200 rooms`;
  const line = (what: string, unit: string, figure: keyof RoomsFigures): Line => ({
    job: `${job}: ${what}`,
    unit,
    isRate: figure === "rate",
    // The notes explain missing figures. A processor time needs no note, because it is never
    // measured for a peer.
    ...(figure !== "cpuUs" && { notes }),
    values: Object.fromEntries(
      [...figures].flatMap(([name, { [figure]: value }]) => {
        return value === undefined ? [] : [[name, value]];
      }),
    ),
  });
  return [
    { ...line("write → delivered p50 at 200/s", "ms", "p50"), target: { atMost: 3 } },
    { ...line("write → delivered p99 at 200/s", "ms", "p99"), target: { atMost: 25 } },
    line("processor time of a message at 200/s", "µs", "cpuUs"),
    line("sustained", "messages/s", "rate"),
    { ...line("lost", "deliveries", "lost"), target: { atMost: 0 } },
  ];
}

async function ownRooms(load: RoomsLoad): Promise<RoomsFigures> {
  await using server = await benchServer();
  const system = await tidemarkRooms(server);
  return await measureRooms({ ...system, cpuNs: () => cpuNsOf(server.pid) }, load);
}

async function topTenLines(server: ServerProcess, options: LiveSqlOptions): Promise<Line[]> {
  const count = options.isQuick ? 100_000 : 1_000_000;
  const followerCount = options.isQuick ? 100 : 1000;
  await fill(server, {
    name: "scores",
    columns: "id INT PRIMARY KEY, player TEXT, score INT",
    values: "n, 'player ' || n, n",
    count,
  });
  await server.rows("CREATE INDEX scores_score ON scores (score)", { namespace: "bench" });
  const changes: Changes = {
    rate: options.isQuick ? 200 : 1000,
    seconds: options.seconds,
    // No change affects the ten highest scores, because only lower-ranked rows change and their
    // new scores are low.
    changeOf: (index) => ({
      sql: "UPDATE scores SET score = $1 WHERE id = $2",
      params: [index % 1000, (index * 7919) % (count - 1000)],
    }),
  };
  const plain = { sql: `SELECT id, score FROM scores WHERE score > ${2 * count}` };
  const beside = await costUnder(server, { count: followerCount, queryOf: () => plain }, changes);
  const top = await costUnder(
    server,
    { count: followerCount, queryOf: () => ({ sql: TOP_TEN }) },
    changes,
  );
  const job = `top 10 of ${count.toLocaleString("en")} scores, ${followerCount.toLocaleString("en")} followers`;
  return [
    cpuLine(`${job}: processor time of a change outside the window`, top.cpuUs),
    cpuLine("the same change under followers of the table's rows", beside.cpuUs),
    ratioLine(`${job}, against rows of the table`, top.cpuUs / beside.cpuUs, 2),
    rateLine(`${job}: updates`, top.rate),
  ];
}

async function groupLines(server: ServerProcess, options: LiveSqlOptions): Promise<Line[]> {
  const costs: number[] = [];
  const counts = [10_000, options.isQuick ? 100_000 : 1_000_000];
  for (const count of counts) {
    await fill(server, {
      name: "sales",
      columns: "id INT PRIMARY KEY, shop INT, amount INT",
      values: "n, n % 10000, n % 97",
      count,
    });
    const sql = "SELECT shop, count(*) AS n, sum(amount) AS total FROM sales GROUP BY shop";
    const changes: Changes = {
      rate: 100,
      seconds: options.seconds,
      changeOf: (index) => ({
        sql: "UPDATE sales SET amount = $1 WHERE id = $2",
        params: [index, (index * 7919) % count],
      }),
    };
    costs.push((await costUnder(server, { count: 1, queryOf: () => ({ sql }) }, changes)).cpuUs);
  }
  const [few = Number.NaN, many = Number.NaN] = costs;
  const [, manyCount = 0] = counts;
  const job = `10,000 groups over ${manyCount.toLocaleString("en")} rows`;
  return [
    cpuLine(`${job}: processor time of a change`, many),
    cpuLine("10,000 groups over 10,000 rows: processor time of a change", few),
    ratioLine(`${job}, against 10,000 rows`, many / few, 1.5),
  ];
}

function ordersOf(user: number): Subscribed {
  return { sql: ORDERS_OF_USER, params: [user] };
}

async function parameterLines(server: ServerProcess, options: LiveSqlOptions): Promise<Line[]> {
  const followerCount = options.isQuick ? 1000 : 10_000;
  // Enough users for twice the number of followers, because memory is measured while the number of
  // followers doubles.
  const userCount = 2 * followerCount;
  await fill(server, {
    name: "products",
    columns: "id INT PRIMARY KEY, name TEXT",
    values: "n, 'product ' || n",
    count: 1000,
  });
  await fill(server, {
    name: "orders",
    columns: "id INT PRIMARY KEY, user_id INT",
    values: `n, n % ${userCount}`,
    count: 2 * userCount,
  });
  await fill(server, {
    name: "items",
    columns: "id INT PRIMARY KEY, order_id INT, product_id INT, quantity INT",
    values: `n, n % ${2 * userCount}, n % 1000, 1`,
    count: 4 * userCount,
  });
  for (const index of ["orders (user_id)", "items (order_id)", "items (product_id)"]) {
    await server.rows(`CREATE INDEX ON ${index}`, { namespace: "bench" });
  }
  const changes = (users: number): Changes => ({
    rate: 100,
    seconds: options.seconds,
    changeOf: (index) => ({
      sql: "UPDATE items SET quantity = $1 WHERE id = $2",
      params: [index, ((index * 7919) % users) + userCount * (index % 4)],
    }),
  });
  const few = await costUnder(server, { count: 10, queryOf: ordersOf }, changes(10));
  // No user has such a high number, so these queries return no rows.
  const nobodys = (index: number): Subscribed => ordersOf(userCount + index);
  const empty = await bytesOfFollower(server, { count: followerCount, queryOf: nobodys });
  const full = await bytesOfFollower(server, { count: followerCount, queryOf: ordersOf });
  const many = await costUnder(
    server,
    { count: followerCount, queryOf: ordersOf },
    changes(followerCount),
  );
  const job = `orders of a user, ${followerCount.toLocaleString("en")} followers`;
  return [
    cpuLine(`${job}: processor time of a change that touches one`, many.cpuUs),
    cpuLine("orders of a user, 10 followers: processor time of such a change", few.cpuUs),
    ratioLine(`${job}, against 10`, many.cpuUs / few.cpuUs, 2),
    { ...memoryLine(`${job}: memory of each without rows`, empty.all), target: { atMost: 2 } },
    { ...memoryLine(`${job}: objects of each without rows`, empty.objects), target: { atMost: 2 } },
    memoryLine(`${job}: memory of each with four rows`, full.all),
    memoryLine(`${job}: objects of each with four rows`, full.objects),
  ];
}

async function bulkLines(server: ServerProcess, options: LiveSqlOptions): Promise<Line[]> {
  const count = options.isQuick ? 10_000 : 100_000;
  await server.rows(
    "CREATE TABLE log (id INT PRIMARY KEY, text TEXT) WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')",
    { namespace: "bench" },
  );
  const changes = (first: number): Changes => ({
    rate: 200,
    seconds: options.seconds,
    changeOf: (index) => ({
      sql: "INSERT INTO log VALUES ($1, 'text')",
      params: [first + index],
    }),
  });
  let first = 0;
  const next = (): Changes => {
    first += 1_000_000;
    return changes(first);
  };
  const sql =
    "SELECT p.name, sum(i.quantity) AS sold FROM items i JOIN products p ON p.id = i.product_id GROUP BY p.name";
  const { alone, beside } = await withFollower(server, sql, async () => {
    const changing = next();
    const offset = { n: 0 };
    return await besideBulk(server, {
      bulk: `INSERT INTO items SELECT 1000000 + n, n, n % 1000, 1 FROM generate_series(1, ${count}) AS g(n)`,
      changes: { ...changing, changeOf: () => changing.changeOf((offset.n += 1)) },
    });
  });
  const job = `INSERT beside a commit of ${count.toLocaleString("en")} rows into a joined table`;
  return [
    { job: `${job}: p99`, unit: "ms", isRate: false, values: { Tidemark: beside.p99 } },
    {
      job: "the same INSERT alone: p99",
      unit: "ms",
      isRate: false,
      values: { Tidemark: alone.p99 },
    },
    ratioLine(`${job}, against alone`, beside.p99 / alone.p99, 2),
  ];
}

async function withFollower<Result>(
  server: ServerProcess,
  sql: string,
  run: () => Promise<Result>,
): Promise<Result> {
  const followers = await follow(server, { count: 1, queryOf: () => ({ sql }) });
  try {
    return await run();
  } finally {
    followers.close();
  }
}

function cpuLine(job: string, us: number): Line {
  return { job, unit: "µs", isRate: false, values: { Tidemark: us } };
}

function memoryLine(job: string, bytes: number): Line {
  return { job, unit: "KB", isRate: false, values: { Tidemark: bytes / 1000 } };
}

function rateLine(job: string, rate: number): Line {
  return { job, unit: "changes/s", isRate: true, values: { Tidemark: rate } };
}

function ratioLine(job: string, ratio: number, atMost: number): Line {
  return { job, unit: "times", isRate: false, values: { Tidemark: ratio }, target: { atMost } };
}
