/**
 * Tests the launcher in a separate project, with Bun standing in for Node, and a package manager
 * that only records how it is called.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENTRIES } from "../../scripts/prepare.mjs";
import { testThoroughly, testUnless } from "../support/requirements.ts";

/** A program that prints its arguments, and the signals it receives. */
const PROGRAM = `
  process.on("SIGTERM", () => { console.log("SIGTERM"); process.exit(7); });
  process.on("SIGINT", () => console.log("SIGINT"));
  console.log(JSON.stringify(process.argv.slice(2)));
  if (process.argv[2] === "stay") setTimeout(() => {}, 60_000);
  else process.exit(Number(process.argv[3] ?? 0));
`;

/**
 * A package manager that creates the files whose presence the launcher checks. It fails if another
 * installation is in progress.
 */
const INSTALLER = `
  import { appendFileSync, mkdirSync, rmdirSync, symlinkSync, writeFileSync } from "node:fs";
  mkdirSync("installing");
  await Bun.sleep(200);
  appendFileSync("calls", process.argv.slice(2).join(" ") + "\\n");
  mkdirSync("node_modules/bun/bin", { recursive: true });
  writeFileSync("node_modules/bun/package.json", JSON.stringify({ version: Bun.version }));
  try { symlinkSync(process.execPath, "node_modules/bun/bin/bun.exe"); } catch {}
  rmdirSync("installing");
`;

const LOCK = "node_modules/.tidemark-installing";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tidemark-bun-launch-"));
  for (const folder of ["scripts", "ui", "src"]) mkdirSync(join(root, folder));
  for (const name of ["launch.mjs", "prepare.mjs"]) {
    copyFileSync(join(import.meta.dir, "../../scripts", name), join(root, "scripts", name));
  }
  for (const name of ["package.json", "package-lock.json", "ui/package.json"]) {
    writeFileSync(join(root, name), "{}");
  }
  writeFileSync(join(root, "src/main.ts"), PROGRAM);
  mkdirSync(join(root, "src/backup"));
  for (const entry of ENTRIES.slice(1)) writeFileSync(join(root, entry), "export {};");
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

/** Returns the calls to the package manager that were recorded. */
function calls(): string[] {
  const path = join(root, "calls");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}

test("launch installs packages once, and again when the requirements change", async () => {
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

testThoroughly(
  "launch installs only the server's packages for the server, and the rest for other programs",
  async () => {
    writeFileSync(join(root, "package.json"), '{"devDependencies":{"typescript":"1.0.0"}}');
    writeFileSync(join(root, "scripts/test.ts"), PROGRAM);
    await outcome(launch(["x"]));
    expect(calls()).toEqual(["install --loglevel=error --omit=dev"]);
    await outcome(launch(["x"], {}, "scripts/test.ts"));
    await outcome(launch(["x"], {}, "scripts/test.ts"));
    await outcome(launch(["x"]));
    expect(calls().slice(1)).toEqual(["install --loglevel=error"]);
  },
);

testThoroughly("launch keeps installed packages for development", async () => {
  writeFileSync(join(root, "package.json"), '{"devDependencies":{"typescript":"1.0.0"}}');
  mkdirSync(join(root, "node_modules/typescript"), { recursive: true });
  await outcome(launch(["x"]));
  expect(calls()).toEqual(["install --loglevel=error"]);
});

test("launch passes on the exit code", async () => {
  expect(await outcome(launch(["x", "3"]))).toMatchObject({ code: 3 });
});

test("launch passes on signals, and treats two equal signals in quick succession as one", async () => {
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

test("launch reports that the packages cannot be installed", async () => {
  writeFileSync(join(root, "installer.mjs"), "process.exit(9)");
  const { code, stderr } = await outcome(launch(["x"]));
  expect(code).toBe(1);
  expect(stderr).toMatch(/Cannot install the packages with .*installer\.mjs install.*ended with 9/);
});

testThoroughly("launch installs once if several processes start at the same time", async () => {
  const outcomes = await Promise.all(["1", "2", "3", "4"].map((word) => outcome(launch([word]))));
  expect(outcomes.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
    ["1", "2", "3", "4"].map((word) => ({ code: 0, stdout: `["${word}"]\n` })),
  );
  expect(calls()).toHaveLength(1);
  expect(existsSync(join(root, LOCK))).toBe(false);
});

test("launch waits for a process that installs, but only as long as that process lives", async () => {
  const installing = Bun.spawn(["sleep", "60"]);
  mkdirSync(join(root, "node_modules"));
  writeFileSync(join(root, LOCK), String(installing.pid));
  const child = launch(["x"]);
  const reader = child.stderr.getReader();
  const { value } = await reader.read();
  expect(new TextDecoder().decode(value)).toContain(`Waiting for process ${installing.pid}`);
  expect(calls()).toEqual([]);
  installing.kill();
  await installing.exited;
  expect(await child.exited).toBe(0);
  expect(calls()).toHaveLength(1);
});

testThoroughly(
  "launch removes the lock of a dead process once for all waiting processes",
  async () => {
    const dead = Bun.spawn(["true"]);
    await dead.exited;
    for (const content of [String(dead.pid), "", "no number"]) {
      rmSync(join(root, "node_modules"), { recursive: true, force: true });
      rmSync(join(root, "calls"), { force: true });
      mkdirSync(join(root, "node_modules"));
      writeFileSync(join(root, LOCK), content);
      const outcomes = await Promise.all(["1", "2", "3"].map((word) => outcome(launch([word]))));
      expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0]);
      expect(calls()).toHaveLength(1);
      expect(existsSync(join(root, LOCK))).toBe(false);
    }
  },
);

test("launch releases the lock if the packages cannot be installed", async () => {
  writeFileSync(join(root, "installer.mjs"), "process.exit(9)");
  expect(await outcome(launch(["x"]))).toMatchObject({ code: 1 });
  writeFileSync(join(root, "installer.mjs"), INSTALLER);
  const { code, stderr } = await outcome(launch(["x"]));
  expect(code).toBe(0);
  expect(stderr).not.toContain("Waiting");
});

const bundles = (): string[] => readdirSync(join(root, "dist/server")).toSorted();

test("launch bundles the server once, and again when a source changes", async () => {
  await Promise.all(["1", "2", "3"].map((word) => outcome(launch([word]))));
  const [first = "", ...others] = bundles();
  expect(others).toEqual([]);
  const changed = PROGRAM.replace("process.argv.slice(2)", '["changed"]');
  writeFileSync(join(root, "src/main.ts"), changed);
  expect(await outcome(launch(["x"]))).toMatchObject({ code: 0, stdout: '["changed"]\n' });
  expect(bundles()).toHaveLength(2);
  expect(bundles()).toContain(first);
});

testThoroughly(
  "launch keeps the newest three bundles, from which servers may still run",
  async () => {
    await outcome(launch(["x"]));
    const [oldest = ""] = bundles();
    for (const number of [1, 2, 3]) {
      utimesSync(join(root, "dist/server", oldest), 1, 1);
      writeFileSync(join(root, "src/main.ts"), `${PROGRAM}// ${number}`);
      await outcome(launch(["x"]));
    }
    expect(bundles()).toHaveLength(3);
    expect(bundles()).not.toContain(oldest);
  },
);

test("launch explains why the server cannot be bundled", async () => {
  writeFileSync(join(root, "src/main.ts"), "const = 1;");
  const { code, stderr } = await outcome(launch(["x"]));
  expect(code).toBe(1);
  expect(stderr).toMatch(/error: .*\n/);
  expect(stderr).toContain("Cannot bundle the server: the bundler ended with 1");
  expect(bundles()).toEqual([]);
});

const isRoot = process.getuid?.() === 0;
const withoutRoot = testUnless(isRoot ? "root may write every folder" : undefined);

withoutRoot("launch starts the server from its sources if it cannot write the bundle", async () => {
  await outcome(launch(["x"]));
  rmSync(join(root, "dist"), { recursive: true });
  mkdirSync(join(root, "dist"), { mode: 0o555 });
  const { code, stdout, stderr } = await outcome(launch(["x"]));
  expect({ code, stdout }).toEqual({ code: 0, stdout: '["x"]\n' });
  expect(stderr).toMatch(
    /^Cannot write .*dist\/server \(EACCES\)\. The server starts from its sources/,
  );
});
