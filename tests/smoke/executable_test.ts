/**
 * Verifies that the server works when compiled to a single file, without the separate files that
 * it otherwise needs: it serves the admin page and starts its threads.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linuxMissing, testUnless } from "../support/requirements.ts";
import { COMPILED, type ServerProcess, startReadyServer } from "../support/server_process.ts";

const ROOT: string = join(import.meta.dir, "../..");

const BUILD_MS_MAX = 300_000;

let directory: string;
let program: string;
let server: ServerProcess;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-executable-"));
  program = COMPILED ?? build();
  const config = { server: { ui_enabled: true }, storage: { allowed_roots: [directory] } };
  server = await startReadyServer({ command: [program], config });
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

test("the compiled server serves the admin page and everything that the page loads", async () => {
  const page = await server.get("/ui");
  expect(page.status).toBe(200);
  const [, script = ""] = /src="([^"]+\.js)"/.exec(await page.text()) ?? [];
  const loaded = await fetch(new URL(script, `${server.url}/ui/`));
  expect([loaded.status, (await loaded.text()).length > 10_000]).toEqual([200, true]);
});

testUnless(linuxMissing)("it reads a configuration from an open descriptor", () => {
  const { exitCode, stderr } = Bun.spawnSync(
    ["bash", "-c", `exec "$0" <(echo 'server.prot = 1')`, program],
    { env: { PATH: process.env["PATH"] ?? "" } },
  );
  expect(stderr.toString()).toMatch(/unknown key "prot"/);
  expect(exitCode).toBe(1);
});

test("the help of the compiled server uses its own name", () => {
  const help = Bun.spawnSync([program, "--help"]).stdout.toString();
  expect(help).toContain("\n  tidemark config.toml ");
  expect(help).not.toContain("npm");
});

test("the compiled server flushes and merges in its own threads", async () => {
  await server.rows("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v TEXT)");
  for (const id of [1, 2, 3]) {
    await server.rows(`INSERT INTO app.t VALUES (${id}, 'row ${id}')`);
    const [job] = await server.rows("STORAGE FLUSH TABLE app.t");
    expect(job?.[2]).toBe("completed");
  }
  const [job] = await server.rows("STORAGE COMPACT TABLE app.t");
  expect(job?.[5]).toBe("3 segments merged, 0 old row versions discarded");
  expect(await server.rows("SELECT id, v FROM app.t ORDER BY id")).toEqual([
    [1, "row 1"],
    [2, "row 2"],
    [3, "row 3"],
  ]);
});

test("the compiled server restores to a point in its own thread", async () => {
  const base = join(directory, "base");
  const [job] = await server.rows(`BACKUP DATABASE TO '${base}'`);
  const seq = /_seq (\d+)$/.exec(String(job?.[5]))?.[1];
  const [restored] = await server.rows(`RESTORE DATABASE FROM '${base}' TO SEQ ${seq}`);
  expect(restored?.slice(1, 3)).toEqual(["restore", "completed"]);
});
