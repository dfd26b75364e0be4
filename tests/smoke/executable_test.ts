/**
 * The server compiled to one file does what only files beside it do otherwise: it serves the admin
 * page, and starts its threads.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ALLOCATOR_SETTINGS } from "../../src/allocator.ts";
import { linuxMissing, testUnless } from "../support/requirements.ts";
import { COMPILED, type ServerProcess, startReadyServer } from "../support/server_process.ts";

const ROOT: string = join(import.meta.dir, "../..");

const BUILD_MS_MAX = 120_000;

let directory: string;
let program: string;
let server: ServerProcess;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-executable-"));
  program = COMPILED ?? build();
  const config = { server: { ui_enabled: true }, storage: { allowed_roots: [directory] } };
  // Users start it without the settings of its allocator, so it begins anew with them.
  const env = Object.fromEntries(Object.keys(ALLOCATOR_SETTINGS).map((name) => [name, undefined]));
  server = await startReadyServer({ command: [program], config, env });
}, BUILD_MS_MAX);

function build(): string {
  const built = Bun.spawnSync([process.execPath, "scripts/build.ts", "--out", directory], {
    cwd: ROOT,
    stdout: "ignore",
    stderr: "pipe",
  });
  if (!built.success) throw new Error(`Cannot build: ${built.stderr.toString()}`);
  return join(directory, `tidemark-${process.platform}-${process.arch}`);
}

afterAll(async () => {
  await server.stop();
  rmSync(directory, { recursive: true });
});

test("it serves the admin page and what the page loads", async () => {
  const page = await server.get("/ui");
  expect(page.status).toBe(200);
  const [, script = ""] = /src="([^"]+\.js)"/.exec(await page.text()) ?? [];
  const loaded = await fetch(new URL(script, `${server.url}/ui/`));
  expect([loaded.status, (await loaded.text()).length > 10_000]).toEqual([200, true]);
});

testUnless(linuxMissing)("it has begun anew as itself", () => {
  const partsOf = (file: string): string[] =>
    readFileSync(`/proc/${server.pid}/${file}`, "utf8").split("\0");
  const wanted = Object.entries(ALLOCATOR_SETTINGS).map(([name, value]) => `${name}=${value}`);
  expect(partsOf("environ")).toEqual(expect.arrayContaining(wanted));
  expect(partsOf("cmdline").slice(1, -1)).toEqual([server.configPath]);
});

testUnless(linuxMissing)("it reads a configuration that is open already", () => {
  const { exitCode, stderr } = Bun.spawnSync(
    ["bash", "-c", `exec "$0" <(echo 'server.prot = 1')`, program],
    { env: { PATH: process.env["PATH"] ?? "" } },
  );
  expect(stderr.toString()).toMatch(/unknown key "prot"/);
  expect(exitCode).toBe(1);
});

test("its help calls it by its name", () => {
  const help = Bun.spawnSync([program, "--help"]).stdout.toString();
  expect(help).toContain("\n  tidemark config.toml ");
  expect(help).not.toContain("npm");
});

test("it flushes and merges in threads of its own", async () => {
  await server.rows("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v TEXT)");
  for (const id of [1, 2, 3]) {
    await server.rows(`INSERT INTO app.t VALUES (${id}, 'row ${id}')`);
    const [job] = await server.rows("STORAGE FLUSH TABLE app.t");
    expect(job?.[2]).toBe("completed");
  }
  const [job] = await server.rows("STORAGE COMPACT TABLE app.t");
  expect(job?.[5]).toBe("3 segment(s) merged, 0 old row version(s) discarded");
  expect(await server.rows("SELECT id, v FROM app.t ORDER BY id")).toEqual([
    [1, "row 1"],
    [2, "row 2"],
    [3, "row 3"],
  ]);
});

test("it brings a restore to a point in a thread of its own", async () => {
  const base = join(directory, "base");
  const [job] = await server.rows(`BACKUP DATABASE TO '${base}'`);
  const seq = /_seq (\d+)$/.exec(String(job?.[5]))?.[1];
  const [restored] = await server.rows(`RESTORE DATABASE FROM '${base}' TO SEQ ${seq}`);
  expect(restored?.slice(1, 3)).toEqual(["restore", "completed"]);
});
