/** Runs the real Tidemark server under a soak test, optionally with a memory limit. */
import { type ServerOptions, startReadyServer } from "../../../tests/support/server_process.ts";
import { openMemoryLimit } from "./memory_limit.ts";
import { RefusedStatement, type SoakFollower, type SoakTarget } from "./target.ts";

const NAMESPACE = "soak";

/** The subscription id that every follower uses on its own socket. */
const SUBSCRIPTION = "f";

/**
 * Starts a server for the load.
 * @param limitBytes The server's memory limit; 0 for none.
 */
export async function startTidemark(
  limitBytes: number,
  options: ServerOptions = {},
): Promise<SoakTarget> {
  await using opened = new AsyncDisposableStack();
  const limit = limitBytes === 0 ? undefined : opened.use(openMemoryLimit(limitBytes));
  const server = opened.use(await startReadyServer({ ...options, wrapper: limit?.wrapper ?? [] }));
  limit?.hold(server.pid);
  await server.rows(`CREATE NAMESPACE ${NAMESPACE}`);
  const closing = opened.move();

  async function run(sql: string): Promise<readonly unknown[]> {
    const { body } = await server.sql(sql);
    if (body.error === undefined) return body.results.at(-1)?.rows ?? [];
    throw new RefusedStatement(`${body.error.code}: ${body.error.message}`);
  }
  return {
    name: limit === undefined ? "Tidemark" : `Tidemark in ${limit.description}`,
    async makeTable(table) {
      await run(
        `CREATE SHARED TABLE ${NAMESPACE}.${table} ` +
          "(id BIGINT PRIMARY KEY, room INT, author TEXT, body TEXT)",
      );
    },
    nameOf: (table) => `${NAMESPACE}.${table}`,
    async change(_table, sql) {
      await run(sql);
    },
    query: run,
    follow: (table) => {
      const sql = `SELECT id, room, author, body FROM ${NAMESPACE}.${table}`;
      const subscription = { id: SUBSCRIPTION, sql, options: {} };
      return openFollower(`${server.webSocketUrl}?compress=false`, {
        headers: { Authorization: `Bearer ${server.token}` },
        message: JSON.stringify({ type: "subscribe", subscription }),
        beginsAfter: "message",
      });
    },
    pids: () => [server.pid],
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/**
 * Opens a socket that follows a table. After each batch of rows, it requests the next one.
 * @param options.message The message that starts the subscription.
 */
export async function openFollower(
  url: string,
  {
    beginsAfter,
    headers,
    message,
  }: { beginsAfter: "message" | "open"; headers: Record<string, string>; message: string },
): Promise<SoakFollower> {
  const socket = new WebSocket(url, { headers });
  let messageCount = 0;
  const begun = Promise.withResolvers<void>();
  socket.addEventListener(beginsAfter, () => begun.resolve(), { once: true });
  socket.addEventListener("close", ({ code }) => {
    begun.reject(new Error(`Cannot follow: closed with ${code}`));
  });
  await begun.promise;
  socket.addEventListener("message", ({ data }) => {
    messageCount += 1;
    if (String(data).includes('"has_more":true')) {
      socket.send(JSON.stringify({ type: "next_batch", subscription_id: SUBSCRIPTION }));
    }
  });
  socket.send(message);
  return {
    get messageCount() {
      return messageCount;
    },
    close: () => socket.close(),
  };
}
