/**
 * Verifies that, on SIGHUP, the real process reloads the settings that can change and continues
 * its log in a new file, and that it ignores SIGUSR1 and SIGUSR2.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { type ServerProcess, startReadyServer, startServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const hasOpenssl = Bun.which("openssl") !== null;

function rewrite(server: ServerProcess, from: string, to: string): void {
  const text = readFileSync(server.configPath, "utf8");
  expect(text).toContain(from);
  writeFileSync(server.configPath, text.replace(from, to));
}

/** Waits until the process has printed a text `count` times. */
async function printed(server: ServerProcess, what: string, count = 1): Promise<void> {
  await until(() => server.output.split(what).length - 1 >= count);
}

const DONE = "SIGHUP: reopened the log files";

test("SIGHUP continues the log in a new file, reloads its level and reports other changed keys", async () => {
  await using server = await startReadyServer({ config: { logging: { level: "error" } } });
  const file = join(server.directory, "logs/tidemark.log");
  writeFileSync(file, "rotated\n");
  renameSync(file, `${file}-20261128`);
  rewrite(server, 'level = "error"', 'level = "debug"');
  rewrite(
    server,
    "port = 0",
    "port = 0\nshutdown_timeout_secs = 7\ntls_cert = '/c'\ntls_key = '/k'",
  );
  server.kill("SIGHUP");
  await printed(server, "take effect only after a restart");
  expect(server.output).toMatch(
    /INFO .*SIGHUP: reopened the log files, and reread the settings .*logging\.level=debug/,
  );
  expect(server.output).toMatch(
    /WARN .*keys="server.tls_cert, server.tls_key, server.shutdown_timeout_secs"/,
  );
  await until(
    () =>
      existsSync(file) && readFileSync(file, "utf8").includes("take effect only after a restart"),
  );
  expect(readFileSync(`${file}-20261128`, "utf8")).toBe("rotated\n");
  const shown =
    "SELECT name, value, source FROM system.settings WHERE name IN ('logging.level', 'server.shutdown_timeout_secs') ORDER BY name";
  expect(await server.rows(shown)).toEqual([
    ["logging.level", "debug", "file"],
    ["server.shutdown_timeout_secs", "10", "default"],
  ]);
  // A setting that has already been reloaded does not count as changed the second time. The other
  // settings still require a restart.
  rewrite(server, "shutdown_timeout_secs = 7\n", "");
  rewrite(server, "tls_cert = '/c'\ntls_key = '/k'\n", "");
  server.kill("SIGHUP");
  await printed(server, DONE, 2);
  expect(server.output.split("take effect only after a restart")).toHaveLength(2);
  server.kill("SIGTERM");
  expect(await server.exited()).toBe(0);
});

test("SIGHUP logs a broken or missing configuration and keeps the old one", async () => {
  await using server = await startReadyServer();
  rewrite(server, "port = 0", "prot = 0");
  server.kill("SIGHUP");
  await printed(server, DONE);
  expect(server.output).toMatch(
    /ERROR cannot reread the configuration; the old settings still apply reason=".*unknown key/,
  );
  rmSync(server.configPath);
  server.kill("SIGHUP");
  await printed(server, DONE, 2);
  expect(server.output).toMatch(/ERROR .*old settings still apply reason=".*config.toml.*ENOENT/);
  expect(await server.rows("SELECT 1")).toEqual([[1]]);
});

test("SIGUSR1 and SIGUSR2 are ignored, with one log line each", async () => {
  await using server = await startReadyServer();
  for (const signal of ["SIGUSR1", "SIGUSR2", "SIGUSR1", "SIGUSR2"] as const) {
    server.kill(signal);
    await printed(server, `signal=${signal}`);
    expect(await server.rows("SELECT 1")).toEqual([[1]]);
  }
  expect(server.output.split("ignored a signal")).toHaveLength(3);
});

describe.skipIf(!hasOpenssl)("SIGHUP reloads the TLS certificate", () => {
  test("SIGHUP uses a new certificate for new connections, while open connections and running requests continue", async () => {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-tls-"));
    const [cert, key] = [join(directory, "c.pem"), join(directory, "k.pem")];
    makeCertificate("first", { cert, key });
    await using server = await startServer({
      config: { server: { tls_cert: cert, tls_key: key } },
    });
    const port = Number(new URL(server.url).port);
    expect(await nameOn(port)).toBe("first");
    const socket = await openSocket(port);

    server.kill("SIGHUP");
    await printed(server, "certificate=unchanged");

    // The certificate changes while a client has sent half of a request.
    makeCertificate("second", { cert, key: join(directory, "next.pem") });
    server.kill("SIGHUP");
    await printed(server, "certificate=kept");
    expect(server.output).toMatch(
      /ERROR cannot use the new TLS files; the old certificate is still in use reason=".*does not belong to/,
    );
    expect(await nameOn(port)).toBe("first");

    renameSync(join(directory, "next.pem"), key);
    server.kill("SIGHUP");
    await printed(server, 'certificate="replaced, valid until ');
    expect(await nameOn(port)).toBe("second");
    socket.send(JSON.stringify({ type: "ping", id: "p" }));
    expect(await socket.next()).toMatchObject({ type: "pong", id: "p" });
    const health = await fetch(`https://127.0.0.1:${port}/health/live`, UNCHECKED);
    expect(health.status).toBe(200);
    server.kill("SIGTERM");
    expect(await server.exited()).toBe(0);
    rmSync(directory, { recursive: true });
  });
});

const UNCHECKED = { tls: { rejectUnauthorized: false } };

function makeCertificate(name: string, { cert, key }: { cert: string; key: string }): void {
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const args = ["req", "-x509", ...ec, "-days", "2", "-subj", `/CN=${name}`];
  const { exitCode } = Bun.spawnSync(["openssl", ...args, "-keyout", key, "-out", cert]);
  expect(exitCode).toBe(0);
}

/** Returns the name in the certificate that the server presents to a new connection. */
function nameOn(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

interface OpenSocket {
  send(text: string): void;
  next(): Promise<unknown>;
}

async function openSocket(port: number): Promise<OpenSocket> {
  const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/ws`, UNCHECKED);
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  return {
    send: (text) => socket.send(text),
    next: () =>
      new Promise((resolve) => {
        socket.addEventListener("message", ({ data }) => resolve(JSON.parse(String(data))), {
          once: true,
        });
      }),
  };
}
