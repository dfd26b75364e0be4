/**
 * Measures the memory of idle connections and subscriptions. It opens connections to the real
 * server, logs them in, and subscribes once on each. After each step, the server collects its
 * garbage, and the function reads the server's proportional set size (PSS) without files. Opening
 * the same number of sockets to a server that does nothing shows the runtime's share.
 */
import { readFileSync } from "node:fs";
import { type ServerProcess, startServer } from "../../../tests/support/server_process.ts";

/** The number of sockets being opened at once. */
const OPENING_MAX = 50;

/**
 * The number of connections that are opened and closed before the first measurement, so that
 * one-time costs are not measured.
 */
const WARM_COUNT = 200;

const TIMES_SETTLE_MAX = 10;

/**
 * The path of the module that a server must preload so that {@linkcode settled} can measure it.
 */
export const collectPath: string = Bun.fileURLToPath(new URL("collect.ts", import.meta.url));

export interface Heap {
  readonly heapSize: number;
  readonly objectTypeCounts: Readonly<Record<string, number>>;
}

export interface IdleOptions {
  readonly connectionCount: number;
  /** The number of different queries; 1 if absent. */
  readonly queryCount?: number;
  /** True if each subscription also loads a snapshot. */
  readonly withSnapshot?: boolean;
  /** How long the runtime may take to return unused memory, in milliseconds. */
  readonly settleMs: number;
}

/** The result of a measurement, in bytes per connection. */
export interface IdleReport {
  /**
   * The number of bytes that the runtime itself uses for a socket, as measured on a server that
   * does nothing.
   */
  readonly bare: number;
  readonly connection: number;
  readonly subscription: number;
  /**
   * The number of bytes that the connection and the subscription use in addition to the bare
   * socket.
   */
  readonly together: number;
  readonly heaps: { readonly before: Heap; readonly connected: Heap; readonly subscribed: Heap };
}

export async function measureIdle(options: IdleOptions): Promise<IdleReport> {
  const { connectionCount } = options;
  const bare = await bareBytes(options);
  await using server = await startServer({
    command: [process.execPath, "--preload", collectPath, "src/main.ts"],
    config: {
      limits: { subscriptions_per_user: 0 },
      websocket: { idle_timeout_secs: 960, ping_interval_secs: 600 },
    },
  });
  await server.setup();
  await server.rows(
    "CREATE NAMESPACE app; CREATE TABLE app.t (id BIGINT PRIMARY KEY, room TEXT, body TEXT) " +
      "WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')",
  );
  const address = server.webSocketUrl;
  const warm = await openAll(address, WARM_COUNT, server.token);
  await Promise.all(warm.map((socket, index) => subscribe(socket, index, options)));
  closeAll(warm);
  await Bun.sleep(options.settleMs);

  const before = await settled(server, options);
  const sockets = await openAll(address, connectionCount, server.token);
  const connected = await settled(server, options);
  await Promise.all(sockets.map((socket, index) => subscribe(socket, index, options)));
  const subscribed = await settled(server, options);
  closeAll(sockets);
  return {
    bare,
    connection: (connected.pss - before.pss) / connectionCount,
    subscription: (subscribed.pss - connected.pss) / connectionCount,
    together: (subscribed.pss - before.pss) / connectionCount - bare,
    heaps: { before: before.heap, connected: connected.heap, subscribed: subscribed.heap },
  };
}

async function bareBytes({ connectionCount, settleMs }: IdleOptions): Promise<number> {
  const script = Bun.fileURLToPath(new URL("bare_server.ts", import.meta.url));
  const child = Bun.spawn([process.execPath, script], { stdout: "pipe" });
  try {
    const { value } = await child.stdout.getReader().read();
    const url = /http:\S+/.exec(new TextDecoder().decode(value))?.[0] ?? "";
    const address = url.replace("http", "ws");
    closeAll(await openAll(address, WARM_COUNT, ""));
    await Bun.sleep(settleMs);
    const before = pssOf(child.pid);
    const sockets = await openAll(address, connectionCount, "");
    await Bun.sleep(settleMs);
    const bytes = (pssOf(child.pid) - before) / connectionCount;
    closeAll(sockets);
    return bytes;
  } finally {
    child.kill();
  }
}

/**
 * Opens many sockets, a few at a time. If a token is given, it also waits until each is logged in.
 */
export async function openAll(address: string, count: number, token: string): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  while (sockets.length < count) {
    const length = Math.min(OPENING_MAX, count - sockets.length);
    sockets.push(
      ...(await Promise.all(
        Array.from({ length }, async () => {
          const headers = token === "" ? {} : { Authorization: `Bearer ${token}` };
          const socket = new WebSocket(address, { headers });
          await event(socket, token === "" ? "open" : "message");
          return socket;
        }),
      )),
    );
  }
  return sockets;
}

export function closeAll(sockets: readonly WebSocket[]): void {
  for (const socket of sockets) socket.close();
}

/** Subscribes, and waits until the subscription is live. */
async function subscribe(
  socket: WebSocket,
  index: number,
  { queryCount = 1, withSnapshot = false }: IdleOptions,
): Promise<void> {
  const room = index % queryCount;
  const sql = `SELECT id, body FROM app.t WHERE room = 'room ${room}'`;
  const subscription = { id: "s", sql, options: withSnapshot ? {} : null };
  socket.send(JSON.stringify({ type: "subscribe", subscription }));
  await event(socket, "message");
}

function event(socket: WebSocket, name: "open" | "message"): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(name, () => resolve(), { once: true });
    socket.addEventListener("close", ({ code }) => reject(new Error(`closed with ${code}`)));
  });
}

/** Returns the memory of the server after its garbage has been collected. */
export async function settled(
  server: ServerProcess,
  { settleMs }: Pick<IdleOptions, "settleMs">,
): Promise<{ pss: number; heap: Heap }> {
  await Bun.sleep(settleMs);
  let heap: Heap = { heapSize: 0, objectTypeCounts: {} };
  // The second collection frees the objects that were released by finalizers of the first.
  for (let round = 0; round < 2; round += 1) {
    const known = server.output.length;
    server.kill("SIGUSR2");
    const deadlineMs = Date.now() + TIMES_SETTLE_MAX * settleMs;
    let line: RegExpExecArray | null = null;
    while (line === null && Date.now() < deadlineMs) {
      await Bun.sleep(20);
      line = /collected (\{.*\})\n/.exec(server.output.slice(known));
    }
    heap = JSON.parse(line?.[1] ?? "") as Heap;
    await Bun.sleep(settleMs);
  }
  return { pss: pssOf(server.pid), heap };
}

/**
 * Returns the part of a process's proportional set size that is not backed by files, in bytes.
 * Pages backed by files are excluded. They are shared with every other process that runs the
 * program, so the measured share would change whenever such a process starts or ends.
 */
function pssOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kilobytes = ["Pss_Anon", "Pss_Shmem"].map((name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]),
  );
  return kilobytes.reduce((sum, part) => sum + part, 0) * 1024;
}
