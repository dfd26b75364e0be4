/**
 * Tests how the server starts. If it refuses to start, it prints one clear message on stderr,
 * exits with code 1, and has no side effects.
 */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SocketClient } from "../support/client.ts";
import { fileMissing, testThoroughly, testUnless } from "../support/requirements.ts";
import { type Run, runCommandToEnd, runToEnd } from "../support/run_to_end.ts";
import {
  bundleCommand,
  type ConfigSections,
  serverCommand,
  startReadyServer,
  startServer,
  tomlFromSections,
} from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

const ROOT = join(import.meta.dir, "../..");
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-start-"));
  folders.push(folder);
  return folder;
}

/** The environment of every process in these tests. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "",
};

/** Runs the program in a separate environment. */
function run(args: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  return runCommandToEnd([...serverCommand(), ...args], { ...ENVIRONMENT, ...env });
}

/** Runs the server from its bundle, where messages name npm commands. */
function runBundle(args: readonly string[]): Promise<Run> {
  return runCommandToEnd([...bundleCommand(), ...args], ENVIRONMENT);
}

/** Creates a configuration file with the given sections. Its paths are used by no other test. */
function configFile(text: string): string {
  const folder = newFolder();
  const path = join(folder, "config.toml");
  const paths: ConfigSections = {
    storage: { data_path: join(folder, "data") },
    logging: { logs_path: join(folder, "logs") },
  };
  const hasStorage = text.includes("[storage]");
  writeFileSync(path, `${text}\n${hasStorage ? "" : tomlFromSections(paths)}`);
  return path;
}

/**
 * Creates a module that makes every store fail to open with an error that only a bug could cause.
 */
function injectedFault(): string {
  const path = join(newFolder(), "bug.ts");
  const store = JSON.stringify(join(ROOT, "src/storage/mod.ts"));
  writeFileSync(
    path,
    `import { LocalStore } from ${store};
     LocalStore.open = () => { throw new TypeError("an injected fault"); };`,
  );
  return path;
}

function expectRefusal({ code, stderr }: Run, ...wanted: (string | RegExp)[]): void {
  for (const part of wanted) expect(stderr).toMatch(part);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(code).toBe(1);
}

describe("the server does not start if it cannot serve, and says why", () => {
  test("the server does not start without a configuration file", async () => {
    expectRefusal(await run([]), /config/i);
  });

  test("the server does not start with a missing configuration file", async () => {
    expectRefusal(await run(["/nowhere/config.toml"]), "/nowhere/config.toml");
  });

  test("the server does not start on a directory that it cannot use, and says why", async () => {
    const folder = newFolder();
    const path = join(folder, "config.toml");
    writeFileSync(join(folder, "file"), "");
    writeFileSync(path, tomlFromSections({ storage: { data_path: join(folder, "file/data") } }));
    const part = "a part of the path is a file, but must be a directory";
    expectRefusal(await run([path]), "ENOTDIR", part);
    expect((await run([folder])).stderr).toContain(
      "cannot be read (EISDIR): the path is a directory, but must be a file",
    );
  });

  test("the server does not start with a file that is not TOML", async () => {
    const path = configFile("[server\nport = 1");
    expectRefusal(await run([path]), path);
  });

  // The tests of parseConfig check each message. This test checks that the server reports all
  // faults and does not start.
  test("the server does not start with faults in the configuration, and names all of them", async () => {
    const text = `
[server]
prot = 0
port = 70000
workers = 1.5
host = 1
[sever]
port = 0
[cluster]
raft_port = 1
[auth]
root_password = "short"
[limits]
max_sql_byte = 5`;
    expectRefusal(
      await run([configFile(text)]),
      /:3:1: .*prot.*did you mean.*port/,
      /:4:\d+: .*port.*65535/,
      /:5:\d+: .*workers/,
      /:6:\d+: .*host/,
      /sever.*did you mean.*server/,
      /cluster.*not available yet/,
      /root_password/,
      /max_sql_byte/,
    );
  });

  test("the server does not start with an invalid address range", async () => {
    const text = '[server]\nport = 0\n[security]\ntrusted_proxies = ["10.0.0.0/99"]';
    expectRefusal(
      await run([configFile(text)]),
      /^Cannot start Tidemark:\n.*config.toml:4:1: security.trusted_proxies is \["10.0.0.0\/99"\]/,
    );
  });

  test("the server does not start on a network address without a valid secret", async () => {
    const path = configFile('[server]\nhost = "0.0.0.0"\nport = 0\n[auth]\njwt_secret = "short"');
    expectRefusal(await run([path]), /jwt_secret/, /make one|openssl/);
  });

  test("the server does not start with an environment variable that cannot be read", async () => {
    const env = { TIDEMARK_SERVER_PORT: "many" };
    expectRefusal(await run([configFile("")], env), "TIDEMARK_SERVER_PORT");
  });

  test("the server does not start on a data directory in use, and the other server is not disturbed", async () => {
    await using server = await startReadyServer();
    const holder = `Cannot open ${server.dataPath}: another process is using it (pid ${server.pid})`;
    expectRefusal(await run([server.configPath]), holder);
    expect(await server.rows("SELECT 1")).toEqual([[1]]);
  });

  test("the server does not start on a catalog of a newer version, and says which version reads it", async () => {
    const path = configFile("[server]\nport = 0");
    const catalogPath = join(path, "../data/catalog.sqlite");
    mkdirSync(join(path, "../data"));
    const catalog = new Database(catalogPath);
    catalog.run("CREATE TABLE made (by TEXT)");
    catalog.run("PRAGMA application_id = 1413762379");
    catalog.run("PRAGMA user_version = 99");
    catalog.close();
    expectRefusal(await run([path]), /version 99.*; use the newer version of Tidemark/);
  });

  testThoroughly(
    "the server does not start on a damaged catalog or log, and names the commands that examine it",
    async () => {
      const hint =
        "; npm start -- verify lists the damage, and npm start -- repair shows what can be " +
        "repaired";
      await using server = await startReadyServer();
      await server.rows("CREATE TABLE default.t (id INT PRIMARY KEY)");
      for (const row of [1, 2]) await server.rows(`INSERT INTO default.t VALUES (${row})`);
      server.kill("SIGKILL");
      await server.exited();
      for (const name of ["catalog.sqlite", "wal/0000000001.wal"]) {
        const path = join(server.dataPath, name);
        const whole = readFileSync(path);
        writeFileSync(path, Buffer.from(whole).fill(0x55, 0, 64));
        const refused = await runBundle([server.configPath]);
        expectRefusal(refused, `Cannot start Tidemark on ${server.dataPath}: Cannot read ${path}`);
        expect(refused.stderr.trimEnd()).toEndWith(hint);
        writeFileSync(path, whole);
      }
    },
  );

  testThoroughly(
    "the server does not start if it encounters a bug, which is logged and has a separate exit code",
    async () => {
      const path = configFile("");
      const { code, stdout } = await runToEnd(
        ["--preload", injectedFault(), "src/main.ts", path],
        ENVIRONMENT,
      );
      expect({ code, stdout }).toEqual({ code: 70, stdout: "" });
      const log = readFileSync(join(dirname(path), "logs/tidemark.log"), "utf8");
      expect(log).toMatch(/stopping because of a bug.*TypeError: an injected fault/);
    },
  );

  test("the server does not start on a port in use", async () => {
    await using server = await startServer();
    const { port } = new URL(server.url);
    expectRefusal(await run([configFile(`[server]\nport = ${port}`)]), port);
  });
});

describe("startup errors refer to the configuration", () => {
  const secret = '[auth]\njwt_secret = "a secret for the network, with 32 bytes and more"';

  test("the error names the configured host if it is not an address", async () => {
    const path = configFile(`[server]\nhost = "192.0.2.1"\nport = 0\n${secret}`);
    expectRefusal(await run([path]), /cannot listen on .*server\.host is "192\.0\.2\.1"/);
  });

  testThoroughly(
    "the error names the configured host if it is a name without an address",
    async () => {
      const path = configFile(`[server]\nhost = "nowhere.invalid"\nport = 0\n${secret}`);
      expectRefusal(await run([path]), /cannot listen on .*server\.host is "nowhere\.invalid"/);
    },
  );

  test("the error names the configured TLS file that cannot be used", async () => {
    const path = configFile('[server]\nport = 0\ntls_cert = "/no/c.pem"\ntls_key = "/no/k.pem"');
    expectRefusal(await run([path]), "server.tls_cert /no/c.pem cannot be read (ENOENT)");
  });
});

describe("a started server explains itself", () => {
  test("the server prints --help and --version", async () => {
    const help = await run(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    for (const part of ["config.toml", "verify <data_path>", "repair <data_path>"]) {
      expect(help.stdout).toContain(part);
    }
    const { code, stdout } = await run(["--version"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\d+\.\d+\.\d+/);
  });

  testThoroughly(
    "the server explains the usage of a command by the name with which it was called",
    async () => {
      for (const command of ["verify", "repair", "restore"]) {
        const usage = `usage: npm start -- ${command} <`;
        expect(await runBundle([command, "--help"])).toMatchObject({
          code: 0,
          stdout: expect.stringContaining(usage),
        });
      }
      expect((await runBundle(["verify"])).stderr).toContain("usage: npm start -- verify <");
    },
  );

  test("the server validates the configuration with --check, and starts nothing", async () => {
    expect(await run(["--check", configFile("[server]\nport = 0")])).toMatchObject({ code: 0 });
    const refused = await run([configFile("[server]\nprot = 0"), "--check"]);
    expectRefusal(refused, /^Cannot check the configuration:\n.*prot/);
  });

  testThoroughly(
    "the server with --check refuses the files that startup would refuse, in the same words",
    async () => {
      const folder = newFolder();
      const toml = tomlFromSections({
        server: { port: 0, tls_cert: "/no/c.pem", tls_key: "/no/k.pem" },
        storage: { data_path: join(folder, "data"), archive_path: join(folder, "archive") },
        logging: { logs_path: join(folder, "logs") },
      });
      const path = configFile(toml);
      const both = await run(["--check", path]);
      const [archive = "", tls = ""] = both.stderr.trimEnd().split("\n");
      expectRefusal(both, `storage.archive_path names ${folder}/archive, but there is no such`);
      expect(tls).toContain("cannot use TLS: server.tls_cert /no/c.pem cannot be read (ENOENT)");
      expect(both.stdout).not.toContain("is valid");
      expect((await run([path])).stderr).toContain(archive);
      // An archive that the server can write to is left unchanged.
      mkdirSync(join(folder, "archive"));
      expect(await run(["--check", path])).toMatchObject({ code: 1, stderr: `${tls}\n` });
      expect(readdirSync(join(folder, "archive"))).toEqual([]);
      expect((await run([path])).stderr).toContain(tls);
    },
  );

  test("the server exits with 2 and its help for an unknown command, and starts nothing", async () => {
    const { code, stderr, stdout } = await run([configFile("[server]\nport = 0"), "chekc"]);
    expect(stderr).toMatch(/unexpected argument "chekc"\n\nTidemark .*verify <data_path>/s);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test("the shipped configuration is valid", async () => {
    expect(await run(["--check", "config.toml"])).toMatchObject({ code: 0 });
  });

  test("the server prints version, data directory, address and the next steps", async () => {
    await using server = await startServer({ config: { auth: { min_password_length: 12 } } });
    // The address is used as soon as it is printed, before the remaining lines.
    await server.outputHas(/first SQL/);
    expect(server.output).toMatch(/\d+\.\d+\.\d+/);
    expect(server.output).toContain(server.dataPath);
    expect(server.output).toContain(server.url);
    expect(server.output).toMatch(/set-?up/i);
    expect(server.output).toContain('"password":"<at least 12>","root_password":"<at least 12>"');
  });

  test.each(shareOf([true, false], { oneOf: 2 }))(
    "the server prints the address of its admin UI if it has one: %p",
    async (hasUi) => {
      await using server = await startServer({ config: { server: { ui_enabled: hasUi } } });
      await server.outputHas(/first SQL/);
      const before = server.output;
      expect(before).toMatch(/next {7}first-time setup:.*\n +curl /);
      await server.setup();
      await server.restart();
      await server.outputHas(/next {7}log in .*\n {2}first SQL/);
      expect(server.output).toContain(`POST ${server.url}/v1/api/auth/login`);
      for (const text of [before, server.output]) expect(/UI|\/ui/.test(text)).toBe(hasUi);
    },
  );

  testThoroughly("the server continues after its console is closed", async () => {
    const child = Bun.spawn([...serverCommand(), configFile("server.port = 0")], {
      cwd: ROOT,
      env: ENVIRONMENT,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    try {
      const reader = child.stdout.getReader();
      const decoder = new TextDecoder();
      let printed = "";
      let url: string | undefined;
      while (url === undefined) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`It ended without an address:\n${printed}`);
        printed += decoder.decode(value, { stream: true });
        url = /http:\/\/[\d.]+:\d+(?=\s)/.exec(printed)?.[0];
      }
      await Promise.all([reader.cancel(), child.stderr.cancel()]);
      const answer = await fetch(`${url}/v1/api/auth/setup`, {
        method: "POST",
        body: '{"user":"ada","password":"correct horse 9","root_password":"battery staple 7"}',
      });
      expect(answer.status).toBe(200);
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("the server warns about relaxed durability, and logs a missing secret at level info", async () => {
    await using server = await startReadyServer({
      config: { storage: { durability: "relaxed" } },
    });
    await server.outputHas(/ WARN .*relaxed/i);
    expect(
      server.output.match(/INFO  auth.jwt_secret is not set: the server creates a secret/g),
    ).toHaveLength(1);
    expect(server.output).not.toMatch(/WARN .*secret|warning .*secret/);
    // The log file also contains each line once. The last lines reach the file only when the
    // server stops.
    server.kill("SIGTERM");
    await server.exited();
    const log = readFileSync(join(server.directory, "logs/tidemark.log"), "utf8");
    expect(log.match(/INFO .*secret is not set/g) ?? []).toHaveLength(1);
    expect(log.match(/WARN .*durability is "relaxed"/g) ?? []).toHaveLength(1);
    const { stdout } = await run(["--check", server.configPath]);
    expect(stdout).toContain(
      "secret is not set: tokens are signed with the secret stored in the data directory",
    );
  });

  testThoroughly(
    "the server prefers the environment to the file, and reads a value from a file",
    async () => {
      const folder = newFolder();
      writeFileSync(join(folder, "secret"), "a secret from a file, with 32 bytes and more");
      await using server = await startServer({
        config: { limits: { max_sql_bytes: 2048 } },
        env: {
          TIDEMARK_LIMITS_MAX_SQL_BYTES: "1024",
          TIDEMARK_JWT_SECRET_FILE: join(folder, "secret"),
        },
      });
      await server.setup();
      const { status } = await server.sql(`SELECT '${"x".repeat(1500)}'`);
      expect(status).toBe(400);
    },
  );

  test("the server keeps users, tables, rows and tokens across a restart", async () => {
    await using server = await startReadyServer();
    await server.rows(
      "CREATE TABLE default.t (id INT PRIMARY KEY); INSERT INTO default.t VALUES (1)",
    );
    await server.restart();
    expect(await server.rows("SELECT id FROM default.t")).toEqual([[1]]);
    await server.restart("SIGKILL");
    expect(await server.rows("SELECT id FROM default.t")).toEqual([[1]]);
  });
});

testUnless(fileMissing("/dev/full"))(
  "a command whose result could not be printed does not end as if it had one",
  async () => {
    const path = configFile("");
    for (const args of [["--help"], ["--version"], ["--check", path]]) {
      const child = Bun.spawn([...serverCommand(), ...args], {
        cwd: ROOT,
        env: ENVIRONMENT,
        stdin: "ignore",
        stdout: Bun.file("/dev/full"),
        stderr: "pipe",
      });
      const stderr = await new Response(child.stderr).text();
      expect({ code: await child.exited, stderr }, args.join(" ")).toEqual({
        code: 70,
        stderr: "Cannot print the result: ENOSPC: no space left on device, write\n",
      });
    }
  },
);

test("verify and repair refuse a directory in use, and run once the server has stopped", async () => {
  await using server = await startReadyServer();
  await server.rows("CREATE TABLE default.t (id INT PRIMARY KEY)");
  for (const command of ["verify", "repair"]) {
    const { code, stderr } = await run([command, server.dataPath]);
    const holder = `another process is using it (pid ${server.pid})`;
    expect(stderr).toContain(`Cannot ${command} ${server.dataPath}: ${holder}`);
    expect(code).toBe(2);
  }
  expect(await server.rows("SELECT 1")).toEqual([[1]]);
  server.kill("SIGTERM");
  await server.exited();
  for (const command of ["verify", "repair"]) {
    const { code, stdout, stderr } = await run([command, server.dataPath]);
    expect(stdout).toMatch(`${server.dataPath} is sound`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  }
  const { code, stdout } = await run(["verify", "/nowhere"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
});

describe("SIGTERM and SIGINT stop the server", () => {
  testThoroughly("SIGTERM stops it cleanly as soon as it reports that it listens", async () => {
    const preload = join(newFolder(), "end_when_listening.ts");
    writeFileSync(
      preload,
      `const write = process.stdout.write.bind(process.stdout);
      process.stdout.write = (text) => {
        const isTaken = write(text);
        if (String(text).includes("listening")) process.kill(process.pid, "SIGTERM");
        return isTaken;
      };`,
    );
    const command = bundleCommand(["--preload", preload]);
    await using server = await startServer({ command });
    expect(await server.exited()).toBe(0);
  });

  test.each(shareOf(["SIGTERM", "SIGINT"] as const, { oneOf: 2 }))(
    "%s ends the server with 0, and sockets with 1001",
    async (signal) => {
      await using server = await startReadyServer();
      await server.rows("CREATE TABLE default.t (id INT PRIMARY KEY)");
      const socket = await SocketClient.connect(server.url, { token: server.token });
      await socket.expect("auth_success");
      const subscription = { id: "s", sql: "SELECT * FROM default.t", options: null };
      socket.send({ type: "subscribe", subscription });
      await socket.expect("subscription_ack");
      server.kill(signal);
      expect(await socket.closed()).toMatchObject({ code: 1001 });
      expect(await server.exited()).toBe(0);
    },
  );
});

describe("the server ends statements that run beyond the stop timeout", () => {
  const ENDLESS = "SELECT count(*) FROM generate_series(1, 9000000000)";
  const config = { server: { shutdown_timeout_secs: 0 } };

  test("statements beyond the stop timeout get status 503 and are rolled back, and the log counts them", async () => {
    await using server = await startReadyServer({ config });
    await server.rows("CREATE TABLE default.t (id INT PRIMARY KEY)");
    const asked = [
      server.sql(ENDLESS),
      server.sql(`BEGIN; INSERT INTO default.t VALUES (1); ${ENDLESS}; COMMIT`),
    ];
    const running = "SELECT 1 FROM system.queries WHERE sql NOT LIKE '%system.queries%'";
    await until(async () => (await server.rows(running)).length === 2);
    server.kill("SIGTERM");
    for (const { body, headers, status } of await Promise.all(asked)) {
      expect(status).toBe(503);
      expect(headers.get("Retry-After")).toBe("5");
      expect(body.error).toMatchObject({ code: "SHUTTING_DOWN", retry_after_seconds: 5 });
    }
    expect(await server.exited()).toBe(0);
    expect(server.output).toMatch(/WARN .*shutdown_timeout_secs.*count=2/);
    await server.start();
    expect(await server.rows("SELECT id FROM default.t")).toEqual([]);
  });

  testThoroughly(
    "statements beyond the stop timeout are reported at the end of a response that has begun",
    async () => {
      await using server = await startReadyServer({ config });
      const answer = await server.post(
        "/v1/api/sql",
        { sql: "SELECT g FROM generate_series(1, 9000000000) g" },
        { Authorization: `Bearer ${server.token}` },
      );
      server.kill("SIGTERM");
      const text = await answer.text();
      expect(text.slice(text.lastIndexOf('"error":'))).toContain('"code":"SHUTTING_DOWN"');
      expect(await server.exited()).toBe(0);
    },
  );
});

describe("the server identifies remote callers", () => {
  const outsideMissing =
    outsideAddress() === undefined ? "this machine has no address besides loopback" : undefined;
  testUnless(outsideMissing)("may not set up or ask for health", async () => {
    const secret = "a secret for the network, with 32 bytes and more";
    await using server = await startServer({
      config: { server: { host: "0.0.0.0" }, auth: { jwt_secret: secret } },
    });
    const base = server.url.replace(/\/\/[^:]+/, `//${outsideAddress()}`);
    expect((await fetch(`${base}/v1/api/healthcheck`)).status).toBe(403);
    const answer = await fetch(`${base}/v1/api/auth/setup`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"user":"eve","password":"correct horse 9","root_password":"correct horse 9"}',
    });
    expect(answer.status).toBe(403);
    expect((await fetch(`${base}/v1/api/auth/status`)).status).toBe(200);
  });
});

/** Returns an address of this machine other than loopback. */
function outsideAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === "IPv4" && !address.internal)?.address;
}
