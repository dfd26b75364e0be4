/**
 * Measures what a subscription costs the server while nothing happens.
 *
 *     bun scripts/idle_memory.ts [--connections 5000] [--queries 1] [--snapshot] [--objects]
 *
 * Opens connections to the real server, logs them in, and subscribes once on each; after each step
 * the server collects its garbage, and its proportional set size (PSS) is read. The same number of
 * sockets to a server that does nothing says what of it is the runtime's. `--queries` is how many
 * different queries there are, `--snapshot` asks for a snapshot instead of changes alone, and
 * `--objects` shows which kinds of object grew with the subscriptions.
 */
import { readFileSync } from "node:fs";
import { type ServerProcess, startServer } from "../tests/support/server_process.ts";
import { readOptions } from "./support/arguments.ts";

/** How many sockets are being opened at once. */
const OPENING_MAX = 50;

/** How long the runtime may take to give back what it has no use for. */
const SETTLE_MS = 8000;

const COUNTED_MIN = 0.5;

const HERE = new URL("./idle_memory/", import.meta.url);

interface Heap {
  readonly heapSize: number;
  readonly objectTypeCounts: Readonly<Record<string, number>>;
}

const options = readOptions(["connections", "queries"], ["snapshot", "objects"]);
const connections = options.count("connections", 5000);
const queries = options.count("queries", 1);

const bare = await bareBytes();
process.stdout.write(`bare socket of the runtime: ${bare.toFixed(0)} bytes\n`);
await measure();
process.exit();

async function measure(): Promise<void> {
  const preload = Bun.fileURLToPath(new URL("collect.ts", HERE));
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
  const warm = await openAll(address, 200, server.token);
  await Promise.all(warm.map((socket, index) => subscribe(socket, index)));
  for (const socket of warm) socket.close();
  await Bun.sleep(SETTLE_MS);

  const before = await settled(server);
  const sockets = await openAll(address, connections, server.token);
  const connected = await settled(server);
  await Promise.all(sockets.map((socket, index) => subscribe(socket, index)));
  const subscribed = await settled(server);
  const perConnection = (connected.pss - before.pss) / connections;
  const perSubscription = (subscribed.pss - connected.pss) / connections;
  process.stdout.write(
    `${connections} connections, ${queries} queries: a connection ${perConnection.toFixed(0)} bytes, ` +
      `its subscription ${perSubscription.toFixed(0)} more; together ` +
      `${(perConnection + perSubscription - bare).toFixed(0)} beyond the bare socket ` +
      `(objects of JavaScript: ${((subscribed.heap.heapSize - before.heap.heapSize) / connections).toFixed(0)})\n`,
  );
  if (!options.has("objects")) return;
  printGrowth("a connection", before.heap, connected.heap);
  printGrowth("a subscription", connected.heap, subscribed.heap);
}

function printGrowth(what: string, before: Heap, after: Heap): void {
  process.stdout.write(`objects of ${what}:\n`);
  const grown = Object.entries(after.objectTypeCounts)
    .map(
      ([kind, count]) =>
        [kind, (count - (before.objectTypeCounts[kind] ?? 0)) / connections] as const,
    )
    .filter(([, count]) => count >= COUNTED_MIN)
    .toSorted(([, left], [, right]) => right - left);
  for (const [kind, count] of grown) process.stdout.write(`  ${count.toFixed(1)} ${kind}\n`);
}

async function bareBytes(): Promise<number> {
  const script = Bun.fileURLToPath(new URL("bare_server.ts", HERE));
  const child = Bun.spawn([process.execPath, script], { stdout: "pipe" });
  try {
    const { value } = await child.stdout.getReader().read();
    const url = /http:\S+/.exec(new TextDecoder().decode(value))?.[0] ?? "";
    const address = url.replace("http", "ws");
    const warm = await openAll(address, 200, "");
    for (const socket of warm) socket.close();
    await Bun.sleep(SETTLE_MS);
    const before = pssOf(child.pid);
    await openAll(address, connections, "");
    await Bun.sleep(SETTLE_MS);
    return (pssOf(child.pid) - before) / connections;
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

/** Subscribes and waits until changes would come. */
async function subscribe(socket: WebSocket, index: number): Promise<void> {
  const room = index % queries;
  const sql = `SELECT id, body FROM app.t WHERE room = 'room ${room}'`;
  const subscription = { id: "s", sql, options: options.has("snapshot") ? {} : null };
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
async function settled(server: ServerProcess): Promise<{ pss: number; heap: Heap }> {
  await Bun.sleep(SETTLE_MS);
  let heap: Heap = { heapSize: 0, objectTypeCounts: {} };
  // The second collection frees what the first one's finalizers let go.
  for (let round = 0; round < 2; round += 1) {
    const known = server.output.length;
    server.kill("SIGUSR2");
    const deadlineMs = Date.now() + 10 * SETTLE_MS;
    let line: RegExpExecArray | null = null;
    while (line === null && Date.now() < deadlineMs) {
      await Bun.sleep(20);
      line = /collected (\{.*\})\n/.exec(server.output.slice(known));
    }
    heap = JSON.parse(line?.[1] ?? "") as Heap;
    await Bun.sleep(SETTLE_MS);
  }
  return { pss: pssOf(server.pid), heap };
}

function pssOf(pid: number): number {
  const kilobytes = /^Pss:\s+(\d+) kB/m.exec(
    readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"),
  )?.[1];
  return Number(kilobytes) * 1024;
}
