/**
 * Measures how a statement affects other clients: one client inserts row after row, and another
 * follows the table that receives these rows.
 */
import { SocketClient } from "../../../tests/support/client.ts";
import type { ServerProcess } from "../../../tests/support/server_process.ts";
import { percentile } from "../../support/statistics.ts";

/** The pause between the response to an INSERT and the next INSERT, in milliseconds. */
const PAUSE_MS = 5;

export interface Figures {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Probe {
  /** Discards the measurements so far. */
  begin(): void;
  /** Returns the measurements since `begin`, including waits that have not ended yet. */
  take(): { readonly insert: Figures; readonly delivery: Figures };
  end(): Promise<void>;
}

/** Starts inserting rows and following them. */
export async function beginProbe(server: ServerProcess): Promise<Probe> {
  const client = await SocketClient.connect(server.url, { token: server.token });
  client.send({
    type: "subscribe",
    subscription: { id: "probe", sql: "SELECT id, sent FROM f.victim WHERE id > 0" },
  });
  const inserts: number[] = [];
  const deliveries: number[] = [];
  const state = { isEnding: false };
  let sentMs = 0;
  let number = 0;

  async function write(): Promise<void> {
    while (!state.isEnding) {
      number += 1;
      sentMs = performance.now();
      const answer = await server.sql(`INSERT INTO f.victim VALUES (${number}, ${sentMs})`);
      if (answer.body.status !== "success") throw new Error(JSON.stringify(answer.body.error));
      inserts.push(performance.now() - sentMs);
      sentMs = 0;
      await Bun.sleep(PAUSE_MS);
    }
  }

  async function follow(): Promise<void> {
    while (!state.isEnding) {
      const message = await client.next().catch(() => undefined);
      // A wait that has not ended is still included in the figures, so a silent server cannot hide
      // its delay.
      if (message === undefined) continue;
      if (message.type !== "change") continue;
      for (const { sent } of message.rows) deliveries.push(performance.now() - Number(sent));
    }
  }

  const writing = write();
  const following = follow();
  return {
    begin() {
      inserts.length = 0;
      deliveries.length = 0;
    },
    take() {
      const waiting = sentMs === 0 ? [] : [performance.now() - sentMs];
      return {
        insert: figuresOf([...inserts, ...waiting]),
        delivery: figuresOf([...deliveries, ...waiting]),
      };
    },
    async end() {
      state.isEnding = true;
      await writing;
      client.close();
      await following;
    },
  };
}

function figuresOf(values: readonly number[]): Figures {
  const sorted = values.toSorted((left, right) => left - right);
  const [p50, p99] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
  return { count: sorted.length, p50, p99, max: sorted.at(-1) ?? 0 };
}
