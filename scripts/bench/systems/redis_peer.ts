/**
 * Uses Redis as a relay would: a stream that Redis syncs before it responds, and a PUBLISH in the
 * same pipeline. The published message is sent to the sockets after that sync.
 */
import { join } from "node:path";
import type { Publish, Relay } from "./front.ts";

const START_MS_MAX = 10_000;

export interface Redis {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts a server on a socket in `directory`. Returns undefined if Redis is not installed. */
export async function startRedis(directory: string): Promise<Redis | undefined> {
  const program = Bun.which("redis-server");
  if (program === null) return undefined;
  const path = join(directory, "redis.sock");
  const settings = ["--port", "0", "--unixsocket", path, "--dir", directory];
  const durability = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  // With this option, the kernel kills the server when its parent is killed.
  const command = ["setpriv", "--pdeathsig=KILL", program, ...settings, ...durability];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  process.on("exit", () => child.kill("SIGKILL"));
  const url = `redis+unix://${path}`;
  await untilItAnswers(url, child);
  return {
    url,
    pid: child.pid,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

export async function openRedis(url: string, publish: Publish): Promise<Relay> {
  const writer = new Bun.RedisClient(url);
  const listener = new Bun.RedisClient(url);
  await Promise.all([writer.connect(), listener.connect()]);
  await listener.subscribe("changes", (payload) => {
    const end = payload.indexOf(" ");
    publish(payload.slice(0, end), payload.slice(end + 1));
  });
  return {
    async insertAndPublish(item, topic) {
      const text = JSON.stringify(item);
      const to = topic === "own" ? `own:${item.usr}` : "same";
      // Redis receives the commands issued in the same tick as one write, so they share one sync.
      await Promise.all([
        writer.send("XADD", ["feed", "*", "row", text]),
        writer.publish("changes", `${to} ${text}`),
      ]);
    },
  };
}

async function untilItAnswers(url: string, child: Bun.Subprocess): Promise<void> {
  const deadlineMs = performance.now() + START_MS_MAX;
  for (;;) {
    const client = new Bun.RedisClient(url, { autoReconnect: false });
    try {
      await client.connect();
      return;
    } catch (error) {
      if (child.exitCode !== null || performance.now() > deadlineMs) {
        throw new Error("Cannot start Redis", { cause: error });
      }
      await Bun.sleep(50);
    } finally {
      client.close();
    }
  }
}
