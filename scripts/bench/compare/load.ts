/**
 * Generates load from a separate process, so that it takes no time from the server being measured.
 * It reads a job as JSON from stdin, runs it, and prints the result as JSON.
 *
 *     echo '{"kind":"insert","system":{…},"clientCount":64,…}' | bun scripts/bench/compare/load.ts
 */

import type { MeasuredSystem } from "../systems/measured_system.ts";
import { fanOutCapacity, fanOutLatency } from "./load_fan_out.ts";
import { runReconnect } from "./load_reconnect.ts";
import { runBulk, runRequests } from "./load_requests.ts";
import { runRooms } from "./load_rooms.ts";
import { runSnapshot } from "./load_snapshot.ts";

export type LoadJob =
  | {
      readonly kind: "insert" | "point";
      readonly system: MeasuredSystem;
      readonly clientCount: number;
      readonly seconds: number;
      /** For inserts, the id of the first row. For point reads, the highest id to read. */
      readonly id: number;
    }
  | {
      readonly kind: "bulk";
      readonly system: MeasuredSystem;
      readonly id: number;
      readonly rowCount: number;
      readonly batchRows: number;
    }
  | { readonly kind: "snapshot"; readonly system: MeasuredSystem; readonly rowCount: number }
  | {
      readonly kind: "latency" | "capacity";
      readonly system: MeasuredSystem;
      readonly topic: "same" | "own";
      readonly subscriberCount: number;
      /**
       * In the latency job, the number of writes offered per second. In the capacity job, the
       * number of writes in flight at once.
       */
      readonly rate: number;
      readonly seconds: number;
      readonly id: number;
    }
  | {
      readonly kind: "rooms";
      readonly system: MeasuredSystem;
      readonly connectionCount: number;
      readonly perConnection: number;
      /** The number of writes per second. */
      readonly rate: number;
      readonly seconds: number;
      readonly id: number;
      /** The id of the server process whose processor time is measured. */
      readonly serverPid: number;
    }
  | {
      readonly kind: "reconnect";
      readonly system: MeasuredSystem;
      readonly clientCount: number;
      readonly fromSeq: number;
      readonly missedCount: number;
    };

/** The measured figures, keyed by name. Their names depend on the job. */
export type LoadResult = Readonly<Record<string, number>>;

if (import.meta.main) {
  const job = (await Bun.stdin.json()) as LoadJob;
  process.stdout.write(`${JSON.stringify(await run(job))}\n`);
  process.exit(0);
}

function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case "insert":
    case "point":
      return runRequests(job);
    case "bulk":
      return runBulk(job);
    case "snapshot":
      return runSnapshot(job);
    case "latency":
      return fanOutLatency(job);
    case "capacity":
      return fanOutCapacity(job);
    case "rooms":
      return runRooms(job);
    case "reconnect":
      return runReconnect(job);
  }
}
