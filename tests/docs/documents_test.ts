/**
 * Verifies that all instructions and code in the documents work. The test runs the blocks of each
 * document in order against a real server, as a reader would who copies them: shell, SQL,
 * programs, configuration, messages, and pages in Chromium. Only addresses and directories are
 * replaced.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Glob } from "bun";
import type { Browser } from "playwright-core";
import { defined } from "../../src/base/assert.ts";
import { parseConfig } from "../../src/config/mod.ts";
import { openAt } from "../support/database.ts";
import { chromiumMissing, testUnless } from "../support/requirements.ts";
import { type Schema, schemaFaults } from "../support/schema_faults.ts";
import { type ServerProcess, startServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import { launchBrowser } from "../ui/browser.ts";
import { type Block, blocksOf, ROOT, Runner, SCRIPT_RUNNER } from "./snippets.ts";

const DOCUMENTS: readonly string[] = [
  "README.md",
  ...[...new Glob("docs/**/*.md").scanSync(ROOT)].toSorted(),
];

/** Languages whose blocks are run by other tests. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  caddyfile: "tests/docs/proxies_test.ts",
  nginx: "tests/docs/proxies_test.ts",
  tsx: "tests/ui/client_examples_test.ts",
};

/** The accepted reasons for not running a block. A new reason must be added to this list. */
const UNTESTED = ["it needs podman", "it takes hours", "it takes minutes"];

/** The document about the first steps, which even a normal run tests. */
const FIRST = "README.md";

const DOCUMENT_MS_MAX = 120_000;

let browser: Browser | undefined;
let pages: Bun.Server<undefined>;
let page = "";

beforeAll(async () => {
  pages = Bun.serve({
    port: 0,
    fetch: () => new Response(page, { headers: { "Content-Type": "text/html; charset=utf-8" } }),
  });
});

afterAll(async () => {
  await browser?.close();
  await pages.stop(true);
});

/** A document, with its server and its folder, while its blocks are run. */
class DocumentRun implements AsyncDisposable {
  readonly #folder: string = mkdtempSync(join(tmpdir(), "tidemark-docs-"));
  #server: ServerProcess | undefined;
  #runner: Runner | undefined;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.stop();
    rmSync(this.#folder, { recursive: true });
  }

  async start({ isSetUp }: { isSetUp: boolean }): Promise<Runner> {
    const origins = [`http://127.0.0.1:${pages.port}`];
    this.#server = await startServer({
      config: {
        "security.cors": { allowed_origins: origins },
        storage: { allowed_roots: [this.#folder] },
      },
    });
    if (isSetUp) await this.#server.setup();
    // The directory of a stopped server, for commands that check a directory.
    mkdirSync(join(this.#folder, "data"));
    await (await openAt(join(this.#folder, "data"))).close();
    this.#runner = new Runner(this.#folder, this.#server);
    return this.#runner;
  }

  async run(block: Block, path: string): Promise<void> {
    const { directive, language, text } = block;
    if (directive?.kind === "server") {
      await this.start({ isSetUp: false });
      return;
    }
    const runner = this.#runner;
    if (runner === undefined && language !== "toml") throw new Error("There is no server yet");
    switch (language) {
      case "sh":
        return await runner?.shell(block);
      case "sql":
        return await runner?.sql(block);
      case "ts":
        return await runner?.program(block, "snippet.ts", process.execPath);
      case "js":
        return await runner?.program(block, "snippet.mjs", SCRIPT_RUNNER);
      case "html":
        return await this.#open(block, defined(runner, "a server must be running"));
      case "toml":
        // Documents never contain a secret, so one is generated.
        parseConfig(text, path, { env: { TIDEMARK_JWT_SECRET: crypto.randomUUID() } });
        return;
      case "json":
        return await this.#checkMessage(JSON.parse(text));
      default:
        throw new Error(`Nothing runs a block of language "${language}"`);
    }
  }

  /** Checks that a message or response matches its schema in the server's own OpenAPI document. */
  async #checkMessage(message: object): Promise<void> {
    const answer = await defined(this.#server, "a server must be running").get("/v1/openapi.json");
    const { components } = (await answer.json()) as {
      components: { schemas: Readonly<Record<string, Schema>> };
    };
    const name = "results" in message ? "SqlResponse" : "ClientMessage";
    const schema = components.schemas[name] ?? {};
    expect(schemaFaults(message, schema, components.schemas)).toEqual([]);
  }

  async #open(block: Block, runner: Runner): Promise<void> {
    const { directive, text } = block;
    page = runner.ofThisRun(text);
    if (directive?.kind === "shows" && directive.path !== undefined) {
      runner.save(directive.path, page);
    }
    if (chromiumMissing !== undefined) return;
    browser ??= await launchBrowser();
    const opened = await browser.newPage();
    const faults: string[] = [];
    opened.on("pageerror", (error) => faults.push(String(error)));
    await opened.goto(`http://127.0.0.1:${pages.port}/`);
    if (directive?.kind === "shows") {
      await until(
        async () => (await opened.textContent("body"))?.includes(directive.text) === true,
      );
    }
    expect(faults).toEqual([]);
    await opened.close();
  }
}

for (const path of DOCUMENTS) {
  if (blocksOf(path).every(({ language }) => language === "text")) continue;
  testUnless(path === FIRST ? undefined : onlyThorough)(
    `the snippets of ${path} work`,
    async () => {
      const blocks = blocksOf(path).filter(({ language }) => language !== "text");
      await using document = new DocumentRun();
      const startsServer = blocks.some(({ directive }) => directive?.kind === "server");
      if (!startsServer && blocks.length > 0) await document.start({ isSetUp: true });
      for (const block of blocks) {
        const { directive, language, line } = block;
        if (directive?.kind === "tested" || ELSEWHERE[language] !== undefined) continue;
        if (directive?.kind === "untested") {
          expect(UNTESTED).toContain(directive.why);
          continue;
        }
        try {
          await document.run(block, path);
        } catch (error) {
          throw new Error(`${path}:${line} does not work`, { cause: error });
        }
      }
    },
    DOCUMENT_MS_MAX,
  );
}

test("the tests that run blocks in other languages exist", () => {
  for (const path of Object.values(ELSEWHERE)) {
    expect([path, Bun.file(join(ROOT, path)).size > 0]).toEqual([path, true]);
  }
});

test("blocksOf refuses an unclosed block and an unknown directive", () => {
  const folder = mkdtempSync(join(ROOT, "tests/docs/.run-"));
  try {
    const path = join(folder, "x.md").slice(ROOT.length + 1);
    writeFileSync(join(ROOT, path), "```sh\ntrue\n");
    expect(() => blocksOf(path)).toThrow("a block is not closed");
    writeFileSync(join(ROOT, path), "<!-- snippet: maybe -->\n```sh\ntrue\n```\n");
    expect(() => blocksOf(path)).toThrow('Cannot read the directive "maybe"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
