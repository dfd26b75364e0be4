/**
 * Measures the memory that a waiting consumer costs the server: 4,000 long polls, and 4,000
 * sockets with credit. The connections are already open and have been used before, so only the
 * wait counts. Garbage is collected before each memory measurement. The same requests to a server
 * that only waits show the runtime's share.
 */
import { type ServerProcess, startServer } from "../../../tests/support/server_process.ts";
import type { Line } from "../compare/jobs.ts";
import { closeAll, collectPath, openAll, settled } from "../idle_memory/measure.ts";
import { HttpConnection } from "../systems/http_connection.ts";

const WAITS = 4000;

/** The minimum duration of a wait, in seconds. The memory is measured during this time. */
const WAIT_SECONDS = 300;

const WARM_ROUNDS = 3;

/** How long requests may take to reach the server, in milliseconds. */
const SENT_MS = 1000;

const TARGET = { atMost: 2048 };

const TOPIC = "bench.work";

export async function waitLines(settleMs: number): Promise<Line[]> {
  await using server = await startServer({
    command: [process.execPath, "--preload", collectPath, "src/main.ts"],
    config: {
      limits: { max_poll_secs: WAIT_SECONDS },
      websocket: { idle_timeout_secs: 960, ping_interval_secs: 600 },
    },
  });
  await server.setup();
  await server.rows(
    "CREATE NAMESPACE bench; CREATE TABLE bench.jobs (id BIGINT PRIMARY KEY, body TEXT); " +
      `CREATE TOPIC ${TOPIC}; ALTER TOPIC ${TOPIC} ADD SOURCE bench.jobs ON INSERT`,
  );
  const bare = await barePollBytes(settleMs);
  const polls = await longPollBytes(server, settleMs);
  const sockets = await socketBytes(server, settleMs);
  return [
    lineOf("long polls: memory of each wait", polls),
    lineOf("requests to a server that only waits: memory of each wait", bare),
    { ...lineOf("long polls: memory of each beyond that", polls - bare), target: TARGET },
    { ...lineOf("sockets: memory of each wait", sockets), target: TARGET },
  ];
}

function lineOf(what: string, bytes: number): Line {
  return {
    job: `${WAITS.toLocaleString("en")} waiting ${what}`,
    unit: "bytes",
    isRate: false,
    values: { Tidemark: bytes },
  };
}

async function barePollBytes(settleMs: number): Promise<number> {
  const script = Bun.fileURLToPath(new URL("bare_wait_server.ts", import.meta.url));
  await using server = await startServer({
    command: [process.execPath, "--preload", collectPath, script],
  });
  return await longPollBytes(server, settleMs);
}

async function longPollBytes(server: ServerProcess, settleMs: number): Promise<number> {
  const connections = await Promise.all(
    Array.from({ length: WAITS }, () => HttpConnection.open(server.url)),
  );
  const pollAll = (seconds: number): Promise<unknown>[] =>
    connections.map((connection) => {
      const asked = { topic_id: TOPIC, group_id: "polls", timeout_seconds: seconds };
      return connection.post("/v1/api/topics/consume", server.token, JSON.stringify(asked));
    });
  // The first rounds fill memory that later rounds reuse, so they run before the measurement.
  for (let round = 0; round < WARM_ROUNDS; round += 1) await Promise.all(pollAll(1));
  const before = await settled(server, { settleMs });
  const waits = Promise.allSettled(pollAll(WAIT_SECONDS));
  // The script sleeps instead of asking the server whether all requests are waiting. A query might
  // start a thread, whose memory would distort the measurement.
  await Bun.sleep(SENT_MS);
  const during = await settled(server, { settleMs });
  // Nobody needs the responses to the waiting requests, so the connections are closed at once.
  for (const connection of connections) connection.close();
  void waits;
  return (during.pss - before.pss) / WAITS;
}

async function socketBytes(server: ServerProcess, settleMs: number): Promise<number> {
  const sockets = await openAll(server.webSocketUrl, WAITS, server.token);
  for (let round = 0; round < WARM_ROUNDS; round += 1) {
    await Promise.all(sockets.map(consume));
    for (const socket of sockets) socket.send(JSON.stringify({ type: "stop", id: "c" }));
  }
  const before = await settled(server, { settleMs });
  await Promise.all(sockets.map(consume));
  const during = await settled(server, { settleMs });
  closeAll(sockets);
  return (during.pss - before.pss) / WAITS;
}

async function consume(socket: WebSocket): Promise<void> {
  const asked = { type: "consume", id: "c", topic_id: TOPIC, group_id: "sockets", credit: 10 };
  socket.send(JSON.stringify(asked));
  await messageOf(socket);
}

/**
 * Waits for the first message on a socket, which acknowledges the consumer.
 * @throws If it is any other message.
 */
function messageOf(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(
      "message",
      ({ data }) => {
        if (String(data).includes('"consume_ack"')) resolve();
        else reject(new Error(`Cannot consume: ${String(data)}`));
      },
      { once: true },
    );
  });
}
