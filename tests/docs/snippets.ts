/**
 * Finds the fenced blocks of a document, and determines how each is run.
 *
 *     <!-- snippet: shows "hello" -->      a directive for the block after it; see `Directive`
 *     ```html
 *     …
 *     ```
 *
 * A block in an unknown language is an error, so that no snippet is skipped unnoticed.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundleCommand, type ServerProcess } from "../support/server_process.ts";

export const ROOT: string = join(import.meta.dir, "../..");

/** The first Node version that has WebSockets, which live queries need. */
const NODE_MIN = 22;

/** The program that runs scripts: Node, or Bun if Node is missing or too old for live queries. */
export const SCRIPT_RUNNER: string = nodeMajor() >= NODE_MIN ? "node" : process.execPath;

function nodeMajor(): number {
  if (Bun.which("node") === null) return 0;
  const version = Bun.spawnSync(["node", "--version"]).stdout.toString();
  return Number(/^v(\d+)/.exec(version)?.[1] ?? 0);
}

/** The server address that the documents use. */
const WRITTEN_ADDRESS = "127.0.0.1:2900";

/**
 * The directories named in the documents, each with the name of its replacement inside a test
 * run's folder.
 */
const WRITTEN_PATHS: readonly (readonly [written: string, name: string])[] = [
  ["/var/backups", "backups"],
  ["/mnt/nvme/tidemark", "nvme"],
];

/** The time limit of a command from the documents, in milliseconds. */
const COMMAND_MS_MAX = 60_000;

const BLOCK = /^(?:<!-- snippet: (.+?) -->\n)?```([a-z]*)\n([\s\S]*?)^```$/gm;

export type Directive =
  /** A different test runs the block. */
  | { readonly kind: "tested"; readonly by: string }
  /** No test can run the block in this environment. */
  | { readonly kind: "untested"; readonly why: string }
  /** The block starts the server that later blocks use. */
  | { readonly kind: "server" }
  /** The block contains a statement that the server refuses. */
  | { readonly kind: "refused" }
  /** The command runs until it has printed the text, and is then killed. */
  | { readonly kind: "until"; readonly text: string }
  /** The page shows the text. It is also saved under the path, for later commands. */
  | { readonly kind: "shows"; readonly text: string; readonly path?: string };

export interface Block {
  readonly language: string;
  readonly text: string;
  readonly directive: Directive | undefined;
  /** The number of the block's first line, counted from 1. */
  readonly line: number;
}

/** Returns the blocks of a document, in order. */
export function blocksOf(path: string): readonly Block[] {
  const document = readFileSync(join(ROOT, path), "utf8");
  const fences = document.split("\n").filter((line) => line.startsWith("```")).length;
  const blocks = [...document.matchAll(BLOCK)].map((match): Block => {
    const [, directive, language = "", text = ""] = match;
    return {
      language,
      text,
      directive: directive === undefined ? undefined : directiveFrom(directive),
      line: document.slice(0, match.index).split("\n").length,
    };
  });
  if (fences !== blocks.length * 2) throw new Error(`Cannot read ${path}: a block is not closed`);
  return blocks;
}

function directiveFrom(text: string): Directive {
  const [, by] = /^tested by (\S+)$/.exec(text) ?? [];
  if (by !== undefined) {
    if (!existsSync(join(ROOT, by))) throw new Error(`Cannot find the test ${by}`);
    return { kind: "tested", by };
  }
  const [, why] = /^untested, because (.+)$/.exec(text) ?? [];
  if (why !== undefined) return { kind: "untested", why };
  if (text === "starts the server") return { kind: "server" };
  if (text === "is refused") return { kind: "refused" };
  const [, until] = /^runs until "(.+)"$/.exec(text) ?? [];
  if (until !== undefined) return { kind: "until", text: until };
  const [, path, shown] = /^(?:as (\S+), )?shows "(.+)"$/.exec(text) ?? [];
  if (shown !== undefined) {
    return { kind: "shows", text: shown, ...(path === undefined ? {} : { path }) };
  }
  throw new Error(`Cannot read the directive "${text}"`);
}

/** Runs the code blocks of a document in a separate folder. */
export class Runner {
  readonly #folder: string;
  readonly #server: ServerProcess;

  constructor(folder: string, server: ServerProcess) {
    this.#folder = folder;
    this.#server = server;
    const bin = join(folder, "bin");
    mkdirSync(bin, { recursive: true });
    for (const [, name] of WRITTEN_PATHS) mkdirSync(join(folder, name), { recursive: true });
    // In the folder, `npm start -- verify ./data` runs the server program.
    const npm = `#!/bin/sh\nshift\n[ "$1" = "--" ] && shift\nexec ${bundleCommand().join(" ")} "$@"\n`;
    writeFileSync(join(bin, "npm"), npm, { mode: 0o755 });
    writeFileSync(join(folder, "config.toml"), "");
    writeFileSync(join(folder, "state.sh"), "");
  }

  /** Replaces the addresses and paths in a block with those of this test run. */
  ofThisRun(text: string): string {
    const address = this.#server.url.replace(/^http:\/\//, "");
    let changed = text.replaceAll(WRITTEN_ADDRESS, address);
    for (const [written, name] of WRITTEN_PATHS) {
      changed = changed.replaceAll(written, join(this.#folder, name));
    }
    // The port in the document may already be in use, so a free one is chosen.
    return changed.replace("http.server 8000", "http.server 0");
  }

  /** Runs a shell block. Its variables and functions remain defined in later blocks. */
  async shell({ directive, text }: Block): Promise<void> {
    const script = [
      ". ./state.sh",
      "set -eu",
      this.ofThisRun(text),
      "{ declare -f; declare -p api token; } > state.sh 2>/dev/null || true",
    ].join("\n");
    const until = directive?.kind === "until" ? directive.text : undefined;
    const output = await this.#command(["bash", "-c", script], until);
    const isRefused = /"status": ?"error"|"error": ?["{]/.test(output);
    if (isRefused !== (directive?.kind === "refused")) {
      throw new Error(isRefused ? `Refused: ${output}` : `Not refused: ${output}`);
    }
  }

  /** Writes a program to a file and runs it. */
  async program({ directive, text }: Block, name: string, command: string): Promise<void> {
    writeFileSync(join(this.#folder, name), this.ofThisRun(text));
    const until = directive?.kind === "until" ? directive.text : undefined;
    await this.#command([command, name], until);
  }

  /** Saves a file where the document tells its readers to save it. */
  save(path: string, text: string): void {
    const file = join(this.#folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Runs statements as the administrator. */
  async sql({ text }: Block): Promise<void> {
    const { token } = await this.#login();
    await this.#server.rows(this.ofThisRun(text), { token });
  }

  async #login(): Promise<{ token: string }> {
    return { token: (await this.#server.login("ada")).access_token };
  }

  /**
   * Returns the output of a command.
   * @throws If the command fails, or does not print `until` in time.
   */
  async #command(command: readonly string[], until: string | undefined): Promise<string> {
    const child = Bun.spawn([...command], {
      cwd: this.#folder,
      env: {
        ...process.env,
        PATH: [join(this.#folder, "bin"), dirname(process.execPath), process.env["PATH"]].join(":"),
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: COMMAND_MS_MAX,
      killSignal: "SIGKILL",
      // The separate process group makes it possible to end the shell together with the processes
      // that it has started.
      detached: true,
    });
    const errors = new Response(child.stderr).text();
    let output = "";
    let isSeen = false;
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      output += decoder.decode(chunk, { stream: true });
      if (until === undefined || !output.includes(until)) continue;
      isSeen = true;
      process.kill(-child.pid, "SIGKILL");
    }
    const code = await child.exited;
    if (until === undefined ? code === 0 : isSeen) return output;
    throw new Error(`${command.join(" ")} ended with ${code}:\n${output}${await errors}`);
  }
}
