/**
 * Verifies that a process with few file descriptors limits its connections so that enough
 * descriptors remain for files, and that the log, `/metrics` and `system.stats` report this.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { SocketClient } from "../support/client.ts";
import { fileMissing, testUnless } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

/** A command that limits the file descriptors of the process, as a shell would. */
const WRAPPER = ["bash", "-c", 'ulimit -n 64; exec "$@"', "bash"];

test.skipIf(!existsSync("/proc/self/fd"))(
  "out of descriptors, accepting pauses, open connections continue, and recovery is logged",
  async () => {
    await using server = await startReadyServer({ wrapper: WRAPPER });
    await server.rows("CREATE SHARED TABLE default.t (id INT PRIMARY KEY)");
    const socket = await SocketClient.connect(server.url, { token: server.token });
    await socket.expect("auth_success");
    socket.send({ type: "subscribe", subscription: { id: "s", sql: "SELECT * FROM default.t" } });
    await socket.expect("subscription_ack");
    await socket.expect("initial_data_batch");
    const load = [1, 2, 3].map((n) =>
      server.sql(`INSERT INTO default.t SELECT g FROM generate_series(${n}00001, ${n}10000) g`),
    );

    const port = Number(new URL(server.url).port);
    const idle = Array.from({ length: 100 }, () => connect(port, "127.0.0.1"));
    for (const one of idle) one.on("error", () => undefined);
    await server.outputHas(
      /ERROR not accepting new connections: only a few file descriptors .*max=64/,
    );
    for (const { body } of await Promise.all(load)) expect(body.error).toBeUndefined();
    socket.send({ type: "ping", id: "p" });
    while ((await socket.next()).type !== "pong");
    await endAll(idle);
    await server.outputHas(/INFO {2}accepting connections again: file descriptors are available/);

    expect(await server.rows("SELECT count(*) FROM default.t")).toEqual([[30_000]]);
    const stats =
      "SELECT metric_name, metric_value FROM system.stats WHERE metric_name LIKE '%accept%' ORDER BY 1";
    expect(await server.rows(stats)).toEqual([
      ["tidemark_accept_paused", "0"],
      ["tidemark_accept_pauses_total", "1"],
    ]);
    const metrics = await server.get("/metrics", { Authorization: `Bearer ${server.token}` });
    expect(await metrics.text()).toMatch(/^process_max_fds 64$/m);
    await server.restart("SIGKILL");
    expect(await server.rows("SELECT count(*) FROM default.t")).toEqual([[30_000]]);
    await until(async () => (await server.get("/health/live")).ok);
  },
);

testUnless(fileMissing("/proc/self/fd") ?? onlyThorough)(
  "without descriptors for as many reader threads as wanted, queries run on fewer, with one warning",
  async () => {
    await using server = await startReadyServer({
      wrapper: WRAPPER,
      config: { server: { workers: 100 } },
    });
    await server.rows(
      "CREATE SHARED TABLE default.t (id INT PRIMARY KEY);" +
        "INSERT INTO default.t SELECT g FROM generate_series(1, 20000) g",
    );
    // The queries sleep in their readers, so they take no processor time.
    const long = "SELECT count(pg_sleep(0.0001)), pg_sleep(150) FROM generate_series(1, 3000)";
    const running = Array.from({ length: 14 }, () =>
      server.sql(long, { fields: { timeout_ms: 150_000 } }),
    );
    await server.outputHas(
      /WARN {2}cannot start a reader thread; queries will run on fewer threads/,
    );
    expect(server.output.match(/cannot start a reader thread/g)).toHaveLength(1);
    const listed = "SELECT query_id FROM system.queries WHERE sql LIKE 'SELECT count%'";
    for (const [id] of await server.rows(listed)) await server.rows(`KILL QUERY '${String(id)}'`);
    for (const { body } of await Promise.all(running)) expect(body.error?.reason).toBe("cancelled");
    expect(server.output).toMatch(/wanted=100/);
    expect(await server.rows("SELECT count(*), max(id) FROM default.t")).toEqual([
      [20_000, 20_000],
    ]);
  },
);

async function endAll(sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await until(() => sockets.every(({ closed }) => closed));
}
