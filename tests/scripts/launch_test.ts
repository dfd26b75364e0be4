/**
 * The launcher, under Bun in the part of Node, in a project of its own with a package manager that
 * only writes down that it was called.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Says what it was started with, and what reaches it. */
const PROGRAM = `
  process.on("SIGTERM", () => { console.log("SIGTERM"); process.exit(7); });
  process.on("SIGINT", () => console.log("SIGINT"));
  console.log(JSON.stringify(process.argv.slice(2)));
  if (process.argv[2] === "stay") setTimeout(() => {}, 60_000);
  else process.exit(Number(process.argv[3] ?? 0));
`;

/** Makes what an installation makes, as far as the launcher looks at it. */
const INSTALLER = `
  import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
  appendFileSync("calls", process.argv.slice(2).join(" ") + "\\n");
  mkdirSync("node_modules/bun/bin", { recursive: true });
  writeFileSync("node_modules/bun/package.json", JSON.stringify({ version: Bun.version }));
  try { symlinkSync(process.execPath, "node_modules/bun/bin/bun.exe"); } catch {}
`;

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tidemark-bun-launch-"));
  for (const folder of ["scripts", "ui", "src"]) mkdirSync(join(root, folder));
  copyFileSync(join(import.meta.dir, "../../scripts/launch.mjs"), join(root, "scripts/launch.mjs"));
  for (const name of ["package.json", "package-lock.json", "ui/package.json"]) {
    writeFileSync(join(root, name), "{}");
  }
  writeFileSync(join(root, "src/main.ts"), PROGRAM);
  writeFileSync(join(root, "src/allocator.json"), '{"KEPT_MS":"10","HOLES_MS":"20"}');
  writeFileSync(join(root, "installer.mjs"), INSTALLER);
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function launch(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program = "src/main.ts",
): Bun.Subprocess<"ignore", "pipe", "pipe"> {
  return Bun.spawn([process.execPath, "scripts/launch.mjs", program, ...args], {
    cwd: root,
    env: { ...process.env, ...env, npm_execpath: join(root, "installer.mjs") },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function outcome(
  child: Bun.Subprocess<"ignore", "pipe", "pipe">,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** The calls of the package manager so far. */
function calls(): string[] {
  const path = join(root, "calls");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}

test("launch installs once, and again when the demands change", async () => {
  expect(await outcome(launch(["a b", "0"]))).toMatchObject({
    code: 0,
    stdout: '["a b","0"]\n',
    stderr: expect.stringContaining("Installing"),
  });
  expect(calls()).toHaveLength(1);
  expect(await outcome(launch(["x"]))).toMatchObject({ code: 0, stderr: "" });
  expect(calls()).toHaveLength(1);
  writeFileSync(join(root, "package-lock.json"), '{"changed":true}');
  await outcome(launch(["x"]));
  expect(calls()).toHaveLength(2);
});

test("launch installs only the server's packages for the server, and the rest for other programs", async () => {
  writeFileSync(join(root, "package.json"), '{"devDependencies":{"typescript":"1.0.0"}}');
  writeFileSync(join(root, "scripts/test.ts"), PROGRAM);
  await outcome(launch(["x"]));
  expect(calls()).toEqual(["install --loglevel=error --omit=dev"]);
  await outcome(launch(["x"], {}, "scripts/test.ts"));
  await outcome(launch(["x"], {}, "scripts/test.ts"));
  await outcome(launch(["x"]));
  expect(calls().slice(1)).toEqual(["install --loglevel=error"]);
});

test("launch keeps installed packages for development", async () => {
  writeFileSync(join(root, "package.json"), '{"devDependencies":{"typescript":"1.0.0"}}');
  mkdirSync(join(root, "node_modules/typescript"), { recursive: true });
  await outcome(launch(["x"]));
  expect(calls()).toEqual(["install --loglevel=error"]);
});

test("launch gives the settings of the allocator, but for those that are there", async () => {
  const program = "console.log(process.env.KEPT_MS, process.env.HOLES_MS)";
  writeFileSync(join(root, "src/main.ts"), program);
  const { stdout } = await outcome(launch([], { HOLES_MS: "5" }));
  expect(stdout).toBe("10 5\n");
});

test("launch passes on the exit code", async () => {
  expect(await outcome(launch(["x", "3"]))).toMatchObject({ code: 3 });
});

test("launch passes on signals, and takes two of a kind at once for one", async () => {
  const child = launch(["stay"]);
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const until = async (part: string): Promise<void> => {
    while (!text.includes(part)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`Expected "${part}" in "${text}"`);
      text += decoder.decode(value);
    }
  };
  await until("stay");
  child.kill("SIGINT");
  await until("SIGINT");
  child.kill("SIGINT");
  child.kill("SIGTERM");
  await until("SIGTERM");
  expect(await child.exited).toBe(7);
  expect(text.match(/SIGINT/g)).toHaveLength(1);
});

test("launch says so when the packages cannot be installed", async () => {
  writeFileSync(join(root, "installer.mjs"), "process.exit(9)");
  const { code, stderr } = await outcome(launch(["x"]));
  expect(code).toBe(1);
  expect(stderr).toMatch(/Cannot install the packages with .*installer\.mjs install.*ended with 9/);
});
