/**
 * Verifies that the README works word for word in a fresh clone, both on a machine with only Node
 * and npm and on a machine with only Bun. A folder of links simulates the machine: it contains the
 * usual system commands, git, curl, and one of the two runtimes. Only the port is changed.
 *
 * The test installs the packages twice, so only a thorough run does it.
 */
import { expect } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Missing, programMissing, testUnless } from "../support/requirements.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { blocksOf, ROOT } from "./snippets.ts";

const TEST_MS_MAX = 600_000;

/**
 * The time limit of a step, in milliseconds. The longest step installs all packages from the
 * network.
 */
const STEP_MS_MAX = 300_000;

const LOOK_MS = 50;

const SYSTEM =
  "basename bash cat cp curl dirname env git grep gzip ls mkdir mv readlink rm sed sh sleep tar uname";

/** Matches the variables that describe this machine's network access. */
const NETWORK = /proxy$|_cert|^cert|_ca_|_cainfo$|_bundle$|^npm_config_registry$/i;

interface Machine {
  readonly programs: readonly (readonly [name: string, path: string])[];
  /** The README's commands that start the server on such a machine. */
  readonly start: string;
  readonly app: string;
  readonly demo: string;
}

const NODE: Machine = {
  programs: ["node", "npm", "npx"].map((name) => [name, Bun.which(name) ?? ""]),
  start: "npm start config.toml",
  app: "npx bun app.mjs",
  demo: "npm run demo",
};

const BUN: Machine = {
  programs: [["bun", process.execPath]],
  start: "bun run start config.toml",
  app: "bun app.mjs",
  demo: "bun run demo",
};

function missing(): Missing {
  return (
    onlyThorough ??
    programMissing("npm", "npm") ??
    programMissing("git", "git") ??
    programMissing("curl", "curl")
  );
}

function freePort(): number {
  using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  return server.port;
}

/**
 * Creates the folder of commands that simulates the machine. Returns the machine's environment.
 */
function environmentOf(
  { programs }: Machine,
  folder: string,
  port: number,
): Record<string, string> {
  const commands = join(folder, "commands");
  const home = join(folder, "home");
  for (const path of [commands, home]) mkdirSync(path);
  const usual = SYSTEM.split(" ").map((name) => [name, Bun.which(name) ?? ""] as const);
  for (const [name, path] of [...usual, ...programs]) symlinkSync(path, join(commands, name));
  const network = Object.entries(process.env).flatMap(([name, value]) =>
    NETWORK.test(name) && value !== undefined ? [[name, value] as const] : [],
  );
  return {
    ...Object.fromEntries(network),
    HOME: home,
    PATH: commands,
    TIDEMARK_SERVER_PORT: String(port),
  };
}

/**
 * A command with all the processes that it starts. The processes are tracked because npm and npx
 * do not end all processes that they start.
 */
class Command {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #collected: Promise<unknown>;
  output = "";

  constructor(text: string, options: { cwd: string; env: Record<string, string> }) {
    this.#child = Bun.spawn(["bash", "-c", text], {
      ...options,
      detached: true,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const streams = [this.#child.stdout, this.#child.stderr];
    this.#collected = Promise.all(streams.map((stream) => this.#collect(stream)));
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const part of stream) this.output += decoder.decode(part, { stream: true });
  }

  /**
   * Waits until the output contains a text.
   * @throws If the command exits before that.
   */
  async shows(text: string): Promise<void> {
    const deadlineMs = performance.now() + STEP_MS_MAX;
    while (this.#child.exitCode === null && !this.output.includes(text)) {
      if (performance.now() > deadlineMs) break;
      await Bun.sleep(LOOK_MS);
    }
    expect(this.output).toContain(text);
  }

  /**
   * Waits for the command to exit, and returns its output.
   * @throws If the command fails.
   */
  async succeeds(): Promise<string> {
    const code = await this.#child.exited;
    await this.#collected;
    expect({ code, output: this.output }).toMatchObject({ code: 0 });
    return this.output;
  }

  /** Sends a signal to every process of the command, and waits until the output ends. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode === null) process.kill(-this.#child.pid, signal);
    await this.#child.exited;
    await this.#collected;
  }
}

async function followReadme(machine: Machine): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-fresh-"));
  const port = freePort();
  const options = { cwd: join(folder, "tidemark"), env: environmentOf(machine, folder, port) };
  const cloned = Bun.spawnSync(["git", "clone", "-q", ROOT, options.cwd]);
  expect(cloned.stderr.toString()).toBe("");
  const readme = readFileSync(join(options.cwd, "README.md"), "utf8").replaceAll(/\s+/g, " ");
  for (const command of [machine.start, machine.app, machine.demo])
    expect(readme).toContain(command);
  const blocks = blocksOf("README.md").map(({ language, text }) => ({
    language,
    text: text.replaceAll("2900", String(port)),
  }));
  const [, setup, client] = blocks.filter(({ language }) => language === "sh");
  const server = new Command(machine.start, options);
  try {
    // The first start installs the packages.
    await server.shows("listening  ");
    expect(existsSync(join(options.cwd, "node_modules/typescript"))).toBe(false);
    const answer = await new Command(setup?.text ?? "", options).succeeds();
    expect(answer).toContain("Setup complete");
    await new Command(client?.text ?? "", options).succeeds();
    const app = blocks.find(({ language }) => language === "js")?.text ?? "";
    writeFileSync(join(options.cwd, "app.mjs"), app);
    const running = new Command(machine.app, options);
    await running.shows("hello");
    await running.stop("SIGTERM");
    const separator = machine.demo.startsWith("npm") ? " --" : "";
    const demo = `${machine.demo}${separator} --url http://127.0.0.1:${port}`;
    expect(await new Command(demo, options).succeeds()).toContain("missed 0, doubled 0");
  } finally {
    await server.stop("SIGINT");
    rmSync(folder, { recursive: true, force: true });
  }
}

testUnless(missing())(
  "README works on a machine with only Node and npm",
  () => followReadme(NODE),
  TEST_MS_MAX,
);

testUnless(missing())(
  "README works on a machine with only Bun",
  () => followReadme(BUN),
  TEST_MS_MAX,
);
