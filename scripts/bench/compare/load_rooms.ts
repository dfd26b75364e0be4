/**
 * Measures the server's processor time per change under many subscriptions with `WHERE room_id =
 * $1`. Changes arrive at a steady rate, and each matches ten subscriptions.
 */
import { HttpConnection } from "../systems/http_connection.ts";
import { sqlRequest } from "../systems/measured_system.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { arrivalOf } from "./load_fan_out.ts";
import { openFollowers } from "./load_socket.ts";
import { cpuNsOf } from "./process_time.ts";

/** How long changes run before they are counted, in seconds, to warm up the compilers. */
const WARM_SECONDS = 1;

const INSERT = "INSERT INTO bench.rooms (id, room_id, body) VALUES ($1, $2, $3)";

export async function runRooms(job: Extract<LoadJob, { kind: "rooms" }>): Promise<LoadResult> {
  const { system, connectionCount, perConnection, rate, seconds, serverPid } = job;
  const matching = 10;
  const roomCount = (connectionCount * perConnection) / matching;
  let deliveredCount = 0;
  await openFollowers(connectionCount, (index) => ({
    system,
    token: system.token,
    messages: Array.from({ length: perConnection }, (_, number) =>
      followRoom(`s${number}`, (index * perConnection + number) % roomCount),
    ),
    onMessage: () => {
      deliveredCount += 1;
    },
  }));
  const connection = await HttpConnection.open(system.url);
  const writeCount = Math.round((WARM_SECONDS + seconds) * rate);
  const warmCount = WARM_SECONDS * rate;
  const startMs = performance.now();
  let startNs = 0;
  for (let index = 0; index < writeCount; index += 1) {
    await Bun.sleep(Math.max(0, startMs + (index * 1000) / rate - performance.now()));
    if (index === warmCount) startNs = cpuNsOf(serverPid);
    const { path, body } = sqlRequest(INSERT, [job.id + index, (index * 7919) % roomCount, "tide"]);
    const answer = await connection.post(path, system.token, body);
    if (answer.status !== 200)
      throw new Error(
        `Cannot measure changes: the server answered ${answer.status} ${answer.body}`,
      );
  }
  const expected = writeCount * matching;
  await arrivalOf(() => deliveredCount, expected);
  const cpuUs = (cpuNsOf(serverPid) - startNs) / 1000;
  return { cost: cpuUs / (writeCount - warmCount), lost: expected - deliveredCount };
}

function followRoom(id: string, room: number): string {
  const sql = "SELECT id, body FROM bench.rooms WHERE room_id = $1";
  return JSON.stringify({
    type: "subscribe",
    subscription: { id, sql, params: [room], options: null },
  });
}
