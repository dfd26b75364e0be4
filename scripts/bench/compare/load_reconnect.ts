/**
 * Reconnects a thousand clients at once, each from its own position in the change history.
 * Measures the time until all of them have received the changes that they missed and are live
 * again.
 */
import type { LoadJob, LoadResult } from "./load.ts";
import { openSocket } from "./load_socket.ts";

const RECONNECT_MS_MAX = 60_000;

interface Batch {
  readonly type: string;
  readonly rows?: readonly { readonly id: number }[];
  readonly batch_control?: { readonly has_more: boolean };
}

export async function runReconnect(
  job: Extract<LoadJob, { kind: "reconnect" }>,
): Promise<LoadResult> {
  const startMs = performance.now();
  const took = await Promise.all(
    Array.from({ length: job.clientCount }, () => reconnect(job, startMs)),
  );
  return { seconds: Math.max(...took) / 1000 };
}

/**
 * Closes a client's connection, and connects again.
 * @returns The time until the client was live again, in milliseconds.
 */
function reconnect(
  { system, fromSeq, missedCount }: Extract<LoadJob, { kind: "reconnect" }>,
  startMs: number,
): Promise<number> {
  const done = Promise.withResolvers<number>();
  const timer = setTimeout(() => {
    done.reject(new Error("Cannot measure the reconnect: the subscription was not live in time"));
  }, RECONNECT_MS_MAX);
  const socket = openSocket(system, system.token);
  let rowCount = 0;
  socket.addEventListener("open", () => {
    const sql = "SELECT id, usr, body, ts FROM bench.feed";
    const subscription = { id: "f", sql, options: { from_seq_id: fromSeq } };
    socket.send(JSON.stringify({ type: "subscribe", subscription }));
  });
  socket.addEventListener("close", ({ code }) => done.reject(new Error(`closed with ${code}`)));
  socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
    const message = JSON.parse(data) as Batch;
    if (message.type === "error") done.reject(new Error(data));
    if (message.type !== "initial_data_batch") return;
    rowCount += message.rows?.length ?? 0;
    if (message.batch_control?.has_more === true) {
      socket.send(JSON.stringify({ type: "next_batch", subscription_id: "f" }));
    } else if (rowCount < missedCount) {
      done.reject(new Error(`Cannot trust the resume: ${rowCount} rows of ${missedCount}`));
    } else {
      clearTimeout(timer);
      done.resolve(performance.now() - startMs);
    }
  });
  return done.promise;
}
