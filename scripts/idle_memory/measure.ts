/**
 * Opens connections to the real server, logs them in, and subscribes once on each; after each step
 * the server collects its garbage, and its proportional set size (PSS) is read, but for files. The
 * same number of sockets to a server that does nothing says what of it is the runtime's.
 */
import { readFileSync } from "node:fs";
import { type ServerProcess, startServer } from "../../tests/support/server_process.ts";

/** How many sockets are being opened at once. */
const OPENING_MAX = 50;

/** Connections that come and go before the first look, so that what is made once is there. */
const WARM_COUNT = 200;

const TIMES_SETTLE_MAX = 10;

export interface Heap {
  readonly heapSize: number;
  readonly objectTypeCounts: Readonly<Record<string, number>>;
}

export interface IdleOptions {
  readonly connectionCount: number;
  /** How many different queries there are; 1 unless given. */
  readonly queryCount?: number;
  /** Asks for a snapshot instead of changes alone. */
  readonly withSnapshot?: boolean;
  /** How long the runtime may take to give back what it has no use for. */
  readonly settleMs: number;
}

/** Bytes for each connection. */
export interface IdleReport {
  /** Of the runtime's socket alone. */
  readonly bare: number;
  readonly connection: number;
  readonly subscription: number;
  /** Connection and subscription beyond the bare socket. */
  readonly together: number;
  readonly heaps: { readonly before: Heap; readonly connected: Heap; readonly subscribed: Heap };
}

export async function measureIdle(options: IdleOptions): Promise<IdleReport> {
  const { connectionCount } = options;
  const bare = await bareBytes(options);
  const preload = Bun.fileURLToPath(new URL("collect.ts", import.meta.url));
  await using server = await startServer({
    command: [process.execPath, "--preload", preload, "src/main.ts"],
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

/** Opens sockets, a few at a time; with a token each waits until it is logged in. */
async function openAll(address: string, count: number, token: string): Promise<WebSocket[]> {
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

function closeAll(sockets: readonly WebSocket[]): void {
  for (const socket of sockets) socket.close();
}

/** Subscribes and waits until changes would come. */
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

/** What the server holds once its garbage is gone. */
async function settled(
  server: ServerProcess,
  { settleMs }: IdleOptions,
): Promise<{ pss: number; heap: Heap }> {
  await Bun.sleep(settleMs);
  let heap: Heap = { heapSize: 0, objectTypeCounts: {} };
  // The second collection frees what the first one's finalizers let go.
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
 * Bytes of its proportional set size that lie in no file: pages of the program itself are shared
 * with whoever else runs it, so that what others start and stop would be counted.
 */
function pssOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kilobytes = ["Pss_Anon", "Pss_Shmem"].map((name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]),
  );
  return kilobytes.reduce((sum, part) => sum + part, 0) * 1024;
}
