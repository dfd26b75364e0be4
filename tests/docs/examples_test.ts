/**
 * Verifies that every example works when it is started as examples/README.md describes. The
 * scripts run to completion against a real server. A thorough run also uses the pages in Chromium,
 * bundles the React example from its sources, and installs its packages and builds it with Vite.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { defined } from "../../src/base/assert.ts";
import {
  chromiumMissing,
  programMissing,
  testThoroughly,
  testUnless,
} from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import { launchBrowser } from "../ui/browser.ts";
import { exampleCommand } from "./example_commands.ts";
import { ROOT } from "./snippets.ts";

const TEST_MS_MAX = 180_000;

const browserMissing = onlyThorough ?? chromiumMissing;

let server: ServerProcess;
let browser: Browser | undefined;
let pages: Bun.Server<undefined>;
/** Returns the file that the page server sends for a path. */
let served: (path: string) => Bun.BunFile;

beforeAll(async () => {
  pages = Bun.serve({
    port: 0,
    fetch: ({ url }) => {
      const { pathname } = new URL(url);
      const file = served(pathname === "/" ? "index.html" : pathname.slice(1));
      return file.size === 0 ? new Response("", { status: 404 }) : new Response(file);
    },
  });
  const origins = [`http://127.0.0.1:${pages.port}`];
  server = await startReadyServer({ config: { "security.cors": { allowed_origins: origins } } });
  if (browserMissing === undefined) browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  await pages.stop(true);
  await server.stop();
});

async function run(command: readonly string[], cwd: string = ROOT): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, TIDEMARK_URL: server.url },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TEST_MS_MAX,
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect([command.join(" "), code, code === 0 ? "" : errors]).toEqual([command.join(" "), 0, ""]);
  return output;
}

test(
  "the script example writes, reads and follows rows",
  async () => {
    const output = await run(exampleCommand("node"));
    expect(output).toContain("✓ read the tutorial  ✓ write an app  ✓ run it");
    expect(output).toEndWith("3 tasks are done\n");
  },
  TEST_MS_MAX,
);

testThoroughly(
  "the agent example writes for its users, each of whom sees only their own steps",
  async () => {
    const lines = (await run(exampleCommand("agent"))).trimEnd().split("\n");
    const seen = (user: string): string[] =>
      lines.filter((line) => line.startsWith(`${user} sees`));
    const steps = (question: string): string[] =>
      ["reads the question", "looks things up", "writes the answer"].map(
        (step) => `the agent ${step} (${question})`,
      );
    expect(seen("carol")).toEqual(
      steps("why is the sky blue?").map((step) => `carol sees: ${step}`),
    );
    expect(seen("dave")).toEqual(steps("when is high tide?").map((step) => `dave sees: ${step}`));
    expect(lines).toHaveLength(6);
  },
  TEST_MS_MAX,
);

testThoroughly(
  "the summarizer example writes one summary for each article, even if it is killed repeatedly",
  async () => {
    const command = [...exampleCommand("summarizer")];
    // Kills the example either after some milliseconds or, if undefined, right after a commit but
    // before the client receives the acknowledgement.
    const kills = [100, undefined, 200, undefined, 300, undefined];
    for (const afterMs of kills) {
      const child = Bun.spawn(command, {
        cwd: ROOT,
        env: { ...process.env, TIDEMARK_URL: server.url },
        stdout: "pipe",
        stderr: "ignore",
      });
      if (afterMs === undefined) {
        for await (const chunk of child.stdout) {
          if (new TextDecoder().decode(chunk).includes("summarized")) break;
        }
      } else await Bun.sleep(afterMs);
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(await run(command)).toEndWith("every article has a summary\n");
    for (const user of ["erin", "frank"]) {
      const sql = `EXECUTE AS USER '${user}' (SELECT article_id, text FROM press.summaries ORDER BY article_id)`;
      expect(await server.rows(sql)).toEqual(
        [1, 2, 3, 4, 5].map((id) => [id, `Article ${id} of ${user} is long.`]),
      );
    }
  },
  TEST_MS_MAX,
);

testUnless(programMissing("python3", "python3"))(
  "the Python script logs in, writes, reads and follows",
  async () => {
    expect(await run(exampleCommand("python"))).toBe(
      "high tide: 3.4 m\n1 row, and now live\ninsert: 3.1 m\n",
    );
  },
  TEST_MS_MAX,
);

async function open(query: string): Promise<Page> {
  const page = await defined(browser, "Chromium must be installed").newPage();
  await page.goto(`http://127.0.0.1:${pages.port}/${query}`);
  return page;
}

testUnless(browserMissing)(
  "the page asks for a password, and shows messages in every window",
  async () => {
    served = (path) => Bun.file(join(ROOT, "examples/page", path));
    const windows = [];
    for (const _ of [1, 2]) {
      const page = await open(`?server=${encodeURIComponent(server.url)}`);
      await page.getByPlaceholder("User").fill("ada");
      await page.getByPlaceholder("Password").fill("wrong");
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByText("wrong", { exact: false }).first().waitFor();
      await page.getByPlaceholder("Password").fill("correct horse 9");
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByPlaceholder("Message").waitFor();
      windows.push(page);
    }
    const [first, second] = windows;
    await first?.getByPlaceholder("Message").fill("<b>hello</b>");
    await first?.getByRole("button", { name: "Send" }).click();
    for (const page of [first, second]) await page?.getByText("ada: <b>hello</b>").waitFor();
  },
  TEST_MS_MAX,
);

/** Checks that a built React example counts votes. */
async function expectVotes(folder: string, built: string): Promise<void> {
  served = (path) => Bun.file(join(folder, built, path));
  await server.rows("DROP NAMESPACE IF EXISTS bar CASCADE");
  const page = await open("");
  await page.getByText("0 votes").waitFor();
  await page.getByRole("button", { name: "tea" }).click();
  await page.getByText("1 votes").waitFor();
  await server.rows("INSERT INTO bar.votes (choice) VALUES ('tea')");
  await until(async () => (await page.getByRole("button", { name: "tea: 2" }).count()) === 1);
  await page.close();
}

testUnless(browserMissing)(
  "the React example compiles, and every window shows the votes",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-react-"));
    try {
      cpSync(join(ROOT, "examples/react"), folder, { recursive: true });
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
      await run([process.execPath, "get_client.mjs"], folder);
      expect(
        await run([process.execPath, "node_modules/typescript/bin/tsc", "-p", "."], folder),
      ).toBe("");
      await Bun.build({
        entrypoints: [join(folder, "index.html")],
        outdir: join(folder, "built"),
        define: { __SERVER__: JSON.stringify(server.url) },
      });
      await expectVotes(folder, "built");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  TEST_MS_MAX,
);

const viteMissing = browserMissing ?? programMissing("npm", "npm");

testUnless(viteMissing)(
  "the React example is built by Vite",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-vite-"));
    try {
      cpSync(join(ROOT, "examples/react"), folder, { recursive: true });
      await run(["npm", "install", "--no-audit", "--no-fund"], folder);
      await run(["npm", "run", "build"], folder);
      await expectVotes(folder, "dist");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  TEST_MS_MAX,
);
