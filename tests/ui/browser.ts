/**
 * A real Chromium for the tests of the admin page, and a page that writes down everything it must
 * not do: errors on the console, broken rules of the content security policy, requests to others.
 */
import { readFileSync } from "node:fs";
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { CHROMIUM } from "../support/requirements.ts";
import { ADMIN, PASSWORD, type ServerProcess } from "../support/server_process.ts";

const ACTION_MS_MAX = 5000;

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--no-first-run",
      "--disable-dev-shm-usage",
    ],
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** What went wrong since the last call. A refused statement is an error for the console too. */
  readonly faults: (options?: { exceptStatus?: number }) => string[];
  readonly close: () => Promise<void>;
}

/** Opens the admin page of a server in a browser profile of its own. */
export async function openPage(
  browser: Browser,
  server: ServerProcess,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    ...options,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  page.setDefaultTimeout(ACTION_MS_MAX);
  let faults: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  const { host } = new URL(server.url);
  const check = (url: string): void => {
    const isOwn = url.startsWith("data:") || new URL(url).host === host;
    if (!isOwn) faults.push(`request to ${url}`);
  };
  page.on("request", (request) => check(request.url()));
  page.on("websocket", (socket) => check(socket.url()));
  await page.goto(`${server.url}/ui`);
  return {
    page,
    faults({ exceptStatus } = {}) {
      const found = faults.filter((text) => !text.includes(`a status of ${exceptStatus} (`));
      faults = [];
      return found;
    },
    close: () => context.close(),
  };
}

/** Opens the page with the first administrator logged in. */
export async function openWorkbench(
  browser: Browser,
  server: ServerProcess,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const watched = await openPage(browser, server, options);
  await logIn(watched.page, ADMIN, PASSWORD);
  await watched.page.getByRole("button", { name: "Run" }).waitFor();
  return watched;
}

/** Polls until the answer is the expected one, or until the time is up. */
export async function until<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 8000;
  for (;;) {
    const value = await read();
    if (isDone(value) || Date.now() > deadline) return value;
    await Bun.sleep(20);
  }
}

export function figure(page: Page, name: string): Promise<string> {
  return page.locator(".figure", { hasText: name }).locator("dd").innerText();
}

/** Replaces the text of the editor as a paste does, all at once. */
export async function writeSql(page: Page, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: "SQL" });
  await editor.press("ControlOrMeta+a");
  await editor.evaluate((element, pasted) => {
    const { ClipboardEvent, DataTransfer } = globalThis as unknown as BrowserScope;
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    (element as unknown as EventTarget).dispatchEvent(event);
  }, text);
}

/** What is used here of browsers, whose types are not those of the server. */
interface BrowserScope {
  readonly DataTransfer: new () => { setData(type: string, text: string): void };
  readonly ClipboardEvent: new (type: string, options: object) => Event;
}

interface AnimatedElement {
  getAnimations(): { effect: { getKeyframes(): { boxShadow: string }[] } }[];
}

export function clipboardText(page: Page): Promise<string> {
  return page.evaluate<string>("navigator.clipboard.readText()");
}

export function backgroundColour(page: Page): Promise<string> {
  return page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
}

/** The shadows between which an element is moving now. */
export function animatedShadows(element: Locator): Promise<string[]> {
  return element.evaluate((animated) =>
    (animated as unknown as AnimatedElement)
      .getAnimations()
      .flatMap(({ effect }) => effect.getKeyframes().map(({ boxShadow }) => boxShadow)),
  );
}

export async function runSql(page: Page, text: string): Promise<void> {
  await writeSql(page, text);
  await page.keyboard.press("ControlOrMeta+Enter");
}

export async function logIn(page: Page, user: string, password: string): Promise<void> {
  await page.getByLabel("User name").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

const axe = readFileSync(
  Bun.resolveSync("axe-core/axe.min.js", `${import.meta.dir}/../../ui`),
  "utf8",
);

/** What axe finds wrong with what the page shows now, as "<rule>: <element>". */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return await page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
}
