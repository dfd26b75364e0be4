/** Follows queries on a Tidemark server with many subscriptions, spread over several sockets. */
import type { ServerMessage } from "../../../src/protocol/mod.ts";
import type { ServerProcess } from "../../../tests/support/server_process.ts";

/** The number of subscriptions that may wait for their first rows at the same time. */
const LOADING_MAX = 50;

export interface Subscribed {
  readonly sql: string;
  readonly params?: readonly unknown[];
}

type FollowedRow = Readonly<Record<string, unknown>>;

export interface FollowOptions {
  readonly count: number;
  readonly socketCount: number;
  /** Returns the query for the n-th subscription. */
  readonly queryOf: (index: number) => Subscribed;
  /** Receives the new or changed rows of the n-th subscription. */
  readonly onRows: (index: number, rows: readonly FollowedRow[]) => void;
}

export interface Followers {
  /** The number of change messages received so far. */
  readonly changeCount: number;
  close(): void;
}

/** Subscribes to all queries. Resolves once every subscription has received its first rows. */
export async function followTidemark(
  server: ServerProcess,
  { count, onRows, queryOf, socketCount }: FollowOptions,
): Promise<Followers> {
  let changeCount = 0;
  const loaded = new Map<number, () => void>();
  let failure: string | undefined;
  const receive = (message: ServerMessage): void => {
    if (!("type" in message)) return;
    if (message.type === "error") failure ??= JSON.stringify(message);
    if (message.type !== "initial_data_batch" && message.type !== "change") return;
    const index = Number(message.subscription_id);
    if (message.type === "change") changeCount += 1;
    else loaded.get(index)?.();
    if (message.rows.length > 0) onRows(index, message.rows);
  };
  const sockets: WebSocket[] = [];
  for (let number = 0; number < socketCount; number += 1) {
    sockets.push(await openSocket(server, receive));
  }
  for (let first = 0; first < count; first += LOADING_MAX) {
    const length = Math.min(LOADING_MAX, count - first);
    await Promise.all(
      Array.from({ length }, (_, system) => {
        const index = first + system;
        const { params = [], sql } = queryOf(index);
        const subscription = { id: String(index), sql, params, namespace_id: "bench" };
        const socket = sockets[index % socketCount];
        const isLoaded = new Promise<void>((resolve) => loaded.set(index, resolve));
        socket?.send(JSON.stringify({ type: "subscribe", subscription }));
        return isLoaded;
      }),
    );
    if (failure !== undefined) throw new Error(`Cannot follow: ${failure}`);
  }
  return {
    get changeCount() {
      if (failure !== undefined) throw new Error(`Cannot continue to follow: ${failure}`);
      return changeCount;
    },
    close: () => {
      for (const socket of sockets) socket.close();
    },
  };
}

async function openSocket(
  server: ServerProcess,
  receive: (message: ServerMessage) => void,
): Promise<WebSocket> {
  const headers = { Authorization: `Bearer ${server.token}` };
  const socket = new WebSocket(`${server.webSocketUrl}?compress=false`, { headers });
  socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
    receive(JSON.parse(data) as ServerMessage);
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve());
    socket.addEventListener("error", () => reject(new Error("Cannot open a socket")));
  });
  return socket;
}
