/**
 * Reads a snapshot as a new follower does: all rows over a socket, parsing each message as JSON.
 */
import type { LoadJob, LoadResult } from "./load.ts";
import { openSocket } from "./load_socket.ts";

const BATCH_ROWS = 1000;

/** The number of batches requested ahead, so that the client does not wait for each round trip. */
const AHEAD = 8;

const SNAPSHOT_MS_MAX = 60_000;

interface Batch {
  readonly type: string;
  readonly rows?: readonly { readonly id: number }[];
  readonly batch_control?: { readonly has_more: boolean };
  readonly message?: string;
}

export async function runSnapshot(
  job: Extract<LoadJob, { kind: "snapshot" }>,
): Promise<LoadResult> {
  const { system, rowCount } = job;
  const socket = openSocket(system, system.token);
  const done = Promise.withResolvers<number>();
  let rows = 0;
  let byteCount = 0;
  let startMs = 0;
  const start = (): void => {
    startMs = performance.now();
    socket.send(system.isTidemark ? SUBSCRIBE : "snapshot");
    for (let ahead = 0; system.isTidemark && ahead < AHEAD; ahead += 1) socket.send(NEXT);
  };
  socket.addEventListener("open", () => {
    if (!system.isTidemark) start();
  });
  socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
    byteCount += data.length;
    const message = JSON.parse(data) as Batch;
    rows += message.rows?.length ?? 0;
    if (message.type === "auth_success") start();
    else if (message.type === "error") done.reject(new Error(data));
    else if (message.type === "ready" || message.batch_control?.has_more === false) {
      done.resolve(performance.now() - startMs);
    } else if (system.isTidemark && message.type === "initial_data_batch") socket.send(NEXT);
  });
  const timer = setTimeout(
    () => done.reject(new Error("Cannot measure the snapshot: it did not end in time")),
    SNAPSHOT_MS_MAX,
  );
  const tookMs = await done.promise;
  clearTimeout(timer);
  socket.close();
  if (rows !== rowCount)
    throw new Error(`Cannot trust ${system.name}: ${rows} rows of ${rowCount}`);
  return {
    seconds: tookMs / 1000,
    rate: (rows * 1000) / tookMs,
    megabytes: byteCount / 1000 / tookMs,
  };
}

const SUBSCRIBE: string = JSON.stringify({
  type: "subscribe",
  subscription: {
    id: "s",
    sql: "SELECT id, usr, body, ts FROM bench.items",
    options: { batch_size: BATCH_ROWS },
  },
});

const NEXT: string = JSON.stringify({ type: "next_batch", subscription_id: "s" });
