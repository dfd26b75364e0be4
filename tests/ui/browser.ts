/**
 * Provides a real Chromium for tests of the admin page. Its pages record every forbidden event:
 * console errors, content security policy violations, and requests to other hosts.
 */
import { readFileSync } from "node:fs";
import {
  type Browser,
  type BrowserContext,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { CHROMIUM } from "../support/requirements.ts";
import { ADMIN, PASSWORD, type ServerProcess } from "../support/server_process.ts";

/**
 * The time limit of an action, far more than any action takes, so that even on a busy machine only
 * a missing response causes a failure.
 */
const ACTION_MS_MAX = 20_000;

/**
 * The time limit of a test. It is longer than the limit of an action, so that a failure names the
 * action.
 */
export const TEST_MS_MAX = 120_000;

/**
 * Chromium features that are switched off. The last four would each start at least one process per
 * window that no test needs, which takes two thirds of a new window's processor time. The other
 * features are switched off by Playwright, too, but its own list has no effect alongside this
 * list.
 */
const DISABLED_FEATURES = [
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "ThirdPartyStoragePartitioning",
  "SpareRendererForSitePerProcess",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "WebUIOmniboxPopup",
];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--no-first-run",
      "--disable-dev-shm-usage",
      // Fewer processes use less processor time.
      "--in-process-gpu",
      "--no-zygote",
      `--disable-features=${DISABLED_FEATURES.join(",")}`,
    ],
  });
}

export interface WatchedPage {
  readonly page: Page;
  /**
   * Returns the faults recorded since the last call. The console also reports refused statements
   * as errors; `exceptStatus` leaves out the errors with the given HTTP status.
   */
  readonly faults: (options?: { exceptStatus?: number }) => string[];
  readonly close: () => Promise<void>;
}

/** A server, or the path below which a proxy offers it. */
type Served = Pick<ServerProcess, "url">;

/** Opens a server's admin page in its own browser profile. */
export async function openPage(browser: Browser, server: Served): Promise<WatchedPage> {
  const context = await newProfile(browser);
  const watched = await watchedPage(context, server);
  await watched.page.goto(`${server.url}/ui`);
  return { ...watched, close: () => context.close() };
}

function newProfile(browser: Browser): Promise<BrowserContext> {
  return browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
}

async function watchedPage(context: BrowserContext, server: Served): Promise<WatchedPage> {
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
  return {
    page,
    faults({ exceptStatus } = {}) {
      const found = faults.filter((text) => !text.includes(`a status of ${exceptStatus} (`));
      faults = [];
      return found;
    },
    close: () => page.close(),
  };
}

/** The browser profile of each server, in which the server's first administrator is logged in. */
const profiles = new WeakMap<Served, Promise<BrowserContext>>();

interface WorkbenchOptions {
  readonly colorScheme?: "dark";
  readonly reducedMotion?: "reduce";
  readonly viewport?: { readonly width: number; readonly height: number };
}

/**
 * Opens the page with the first administrator logged in and without stored settings. All
 * workbenches of a server share a profile, because a new profile would compile the page and log in
 * again, which takes ten times as long.
 */
export async function openWorkbench(
  browser: Browser,
  server: Served,
  { colorScheme, reducedMotion, viewport }: WorkbenchOptions = {},
): Promise<WatchedPage> {
  let profile = profiles.get(server);
  if (profile === undefined) profiles.set(server, (profile = newProfile(browser)));
  const watched = await watchedPage(await profile, server);
  const { page } = watched;
  await page.emulateMedia({
    ...(colorScheme === undefined ? {} : { colorScheme }),
    ...(reducedMotion === undefined ? {} : { reducedMotion }),
  });
  if (viewport !== undefined) await page.setViewportSize(viewport);
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Storage.clearDataForOrigin", {
    origin: new URL(server.url).origin,
    storageTypes: "local_storage",
  });
  await page.goto(`${server.url}/ui`);
  const run = page.getByRole("button", { name: "Run" });
  const name = page.getByLabel("User name");
  await run.or(name).waitFor();
  if (await name.isVisible()) await logIn(page, ADMIN, PASSWORD);
  await run.waitFor();
  return watched;
}

/**
 * Reads a value repeatedly until it is as expected or the time limit is reached. Returns the last
 * value.
 */
export async function until<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + ACTION_MS_MAX;
  for (;;) {
    const value = await read();
    if (isDone(value) || Date.now() > deadline) return value;
    await Bun.sleep(20);
  }
}

export function figure(page: Page, name: string): Promise<string> {
  return page.locator(".figure", { hasText: name }).locator("dd").innerText();
}

/** Replaces the editor's text in a single step, as pasting does. */
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

/**
 * The part of the browser's types that this file uses, which the server's types do not include.
 */
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

/** Returns the shadows at the start and the end of an element's current animation. */
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

/**
 * Returns the faults that axe finds on the page in its current state, each as "<rule>: <element>".
 */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return await page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
}
