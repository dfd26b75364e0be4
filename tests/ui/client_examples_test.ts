/**
 * Verifies that the examples in docs/client.md work unchanged, except for the server's address:
 * the page and the React hook in a real Chromium, and the script in Node.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { defined } from "../../src/base/assert.ts";
import { chromiumMissing, programMissing, testUnless } from "../support/requirements.ts";
import { runNode } from "../support/run_node.ts";
import { runToEnd } from "../support/run_to_end.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import { launchBrowser } from "./browser.ts";

const ROOT: string = join(import.meta.dir, "../..");
const GUIDE: string = readFileSync(join(ROOT, "docs/client.md"), "utf8");
const browserMissing = onlyThorough ?? chromiumMissing;

const WRITTEN_URL = "http://127.0.0.1:2900";

/**
 * A page that uses the guide's hook under React's StrictMode, which mounts each component twice.
 */
const APP = `
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { useLive } from "./use_live.ts";

function Messages() {
  const [without, setWithout] = useState("");
  const { error, rows } = useLive<{ id: number; text: string }>(
    "SELECT id, text FROM chat.messages WHERE text <> $1", without);
  return <>
    <button onClick={() => setWithout("first")}>Without the first</button>
    <p>{error?.message}</p>
    <ul>{rows.map(({ id, text }) => <li key={id}>{text}</li>)}</ul>
  </>;
}

const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<StrictMode><Messages /></StrictMode>);
`;

let folder: string;
let pages: Bun.Server<undefined>;
let server: ServerProcess;
let browser: Browser | undefined;
const served = new Map<string, { text: string; type: string }>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-guide-"));
  pages = Bun.serve({
    port: 0,
    fetch: ({ url }) => {
      const { text, type } = served.get(new URL(url).pathname) ?? { text: "", type: "text/plain" };
      return new Response(text, { headers: { "Content-Type": type } });
    },
  });
  const origins = [`http://127.0.0.1:${pages.port}`];
  server = await startReadyServer({ config: { "security.cors": { allowed_origins: origins } } });
  await server.rows(
    "CREATE NAMESPACE chat; CREATE TABLE chat.messages (id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), text TEXT)",
  );
  for (const [path, name] of [
    ["client.js", "client.js"],
    ["client.d.ts", "client.d.ts"],
    ["client.js", "client.mjs"],
  ] as const) {
    writeFileSync(join(folder, name), await (await server.get(`/v1/${path}`)).text());
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  if (browserMissing === undefined) browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  await pages.stop(true);
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Returns the guide's first example in a given language. */
function example(language: string): string {
  const found = new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, "m").exec(GUIDE);
  const text = found?.[1] ?? "";
  expect(text).toContain(WRITTEN_URL);
  return text.replaceAll(WRITTEN_URL, server.url);
}

interface Opened {
  readonly page: Page;
  /** The warnings and errors that appeared on the browser's console. */
  readonly faults: string[];
  readonly sockets: string[];
  /** The pings that the client has sent to check its connection. */
  readonly pings: string[];
}

async function open(html: string): Promise<Opened> {
  served.set("/", { text: html, type: "text/html; charset=utf-8" });
  const page = await defined(browser, "Chromium must be installed").newPage();
  const faults: string[] = [];
  const sockets: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  const pings: string[] = [];
  page.on("websocket", (socket) => {
    sockets.push(socket.url());
    socket.on("framesent", ({ payload }) => {
      if (String(payload).includes('"type":"ping"')) pings.push(String(payload));
    });
  });
  await page.goto(`http://127.0.0.1:${pages.port}/`);
  return { page, faults, sockets, pings };
}

async function shows(page: Page, ...texts: string[]): Promise<void> {
  await until(async () => (await page.locator("li").allTextContents()).join() === texts.join());
}

async function insert(text: string): Promise<void> {
  await server.rows("INSERT INTO chat.messages (text) VALUES ($1)", { params: [text] });
}

testUnless(browserMissing)("the page shows the rows that it and others write", async () => {
  await server.rows("DELETE FROM chat.messages");
  const { faults, page, sockets } = await open(example("html"));
  await until(() => sockets.length === 1);
  await page.getByRole("textbox").fill("hello");
  await page.getByRole("button").click();
  await shows(page, "hello");
  await insert("<b>again</b>");
  await shows(page, "hello", "<b>again</b>");
  await server.rows("DELETE FROM chat.messages WHERE text = 'hello'");
  await shows(page, "<b>again</b>");
  expect([faults, sockets.length]).toEqual([[], 1]);
  await page.close();
});

testUnless(browserMissing)(
  "the page checks its connection at once when the network or the visitor is back",
  async () => {
    const { page, pings, sockets } = await open(example("html"));
    await shows(page, "<b>again</b>");
    expect(pings).toEqual([]);
    for (const [index, event] of [
      'window.dispatchEvent(new Event("online"))',
      'window.dispatchEvent(new Event("pageshow"))',
      'document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))',
    ].entries()) {
      await page.evaluate(event);
      await until(() => pings.length === index + 1);
    }
    expect(sockets).toHaveLength(1);
    await page.close();
  },
);

const LOGIN = 'auth: { user: "ada", password: "correct horse 9" }';

/**
 * The forms in which each hook is tested. A hook with a token needs no login first, so its socket
 * is requested while React is mounting.
 */
const HOOKS: [string, (hook: string) => string][] = [
  ["compiles, and follows", (hook) => hook],
  ["with a token follows", (hook) => hook.replace(LOGIN, `auth: { token: "${server.token}" }`)],
];

for (const [name, change] of HOOKS) {
  testUnless(browserMissing)(
    `the React hook ${name} over one socket in StrictMode, without a warning`,
    async () => {
      await server.rows("DELETE FROM chat.messages");
      await insert("first");
      const hook = example("tsx");
      expect(hook).toContain(LOGIN);
      writeFileSync(join(folder, "use_live.ts"), change(hook));
      writeFileSync(join(folder, "main.tsx"), APP);
      await expectCompiles();
      const built = await Bun.build({
        entrypoints: [join(folder, "main.tsx")],
        target: "browser",
        // Selects React's development build, which mounts everything twice.
        define: { "process.env.NODE_ENV": '"development"' },
      });
      const [script] = built.outputs;
      served.set("/main.js", { text: (await script?.text()) ?? "", type: "text/javascript" });
      const { faults, page, sockets } = await open(
        '<!doctype html><title>React</title><div id="root"></div><script type="module" src="/main.js"></script>',
      );
      await shows(page, "first");
      await insert("second");
      await shows(page, "first", "second");
      await page.getByRole("button").click();
      await shows(page, "second");
      expect(faults.filter((text) => !text.includes("React DevTools"))).toEqual([]);
      expect(sockets).toHaveLength(1);
      await page.close();
    },
  );
}

async function expectCompiles(): Promise<void> {
  const compilerOptions = {
    strict: true,
    target: "ES2022",
    module: "Preserve",
    moduleResolution: "Bundler",
    lib: ["ES2022", "DOM"],
    types: [],
    jsx: "react-jsx",
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  };
  const project = join(folder, "tsconfig.json");
  writeFileSync(project, JSON.stringify({ compilerOptions, files: ["main.tsx"] }));
  const { stdout } = await runToEnd(["node_modules/typescript/bin/tsc", "-p", project]);
  expect(stdout).toBe("");
}

testUnless(programMissing("node", "nodejs"))(
  "the script runs in Node and prints the rows that it wrote",
  async () => {
    writeFileSync(join(folder, "script.mjs"), example("js"));
    const { stderr, stdout } = await runNode(join(folder, "script.mjs"));
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT\S+Z \/start \[ 'new', 'mobile' \]\n$/);
  },
);
