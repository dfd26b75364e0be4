/**
 * Verifies that the admin page works in a new user's first minutes: the example, the first live
 * view, a cancelled run, and the table list.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { chromiumMissing, describeUnless } from "../support/requirements.ts";
import { type ServerProcess, startServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import {
  figure,
  launchBrowser,
  openWorkbench,
  runSql,
  TEST_MS_MAX,
  until,
  writeSql,
} from "./browser.ts";

/** The interval at which the page requests the table list, in milliseconds. */
const LIST_MS = 5000;

/**
 * A script that computes the contrast between the text of NULL cells and each highlight colour of
 * their rows.
 */
const NULL_CONTRASTS = `(() => {
  const luminance = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((byte) => {
      const part = byte / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const cell = document.querySelector(".cell.null");
  const text = luminance(getComputedStyle(cell).color);
  return ["insert", "update", "delete"].map((kind) => {
    const probe = document.body.appendChild(document.createElement("p"));
    probe.style.setProperty("background-color", "var(--flash-" + kind + ")");
    const ground = luminance(getComputedStyle(probe).backgroundColor);
    probe.remove();
    return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
  });
})()`;

function editorHeight(page: Page): Promise<number> {
  return page.evaluate<number>('document.querySelector(".editor").offsetHeight');
}

describeUnless(onlyThorough ?? chromiumMissing)("the first minutes with the admin page", () => {
  let browser: Browser;
  let server: ServerProcess;

  beforeAll(async () => {
    [browser, server] = await Promise.all([
      launchBrowser(),
      startServer({ config: { server: { ui_enabled: true } } }),
    ]);
    await server.setup();
    await server.rows("CREATE NAMESPACE shop");
  }, TEST_MS_MAX);

  afterAll(async () => {
    await browser.close();
    await server.stop();
  });

  test(
    "the example goes live with one click, changes by itself, and can run any number of times",
    async () => {
      const { close, faults, page } = await openWorkbench(browser, server);
      const live = page.getByRole("switch", { name: "Live" });
      await live.click();
      await page.locator(".status", { hasText: "Live" }).waitFor();
      await page.getByRole("gridcell", { name: "Dover" }).waitFor();
      const changes = (): Promise<string> => figure(page, "Changes");
      expect(Number(await until(changes, (text) => Number(text) >= 2))).toBeGreaterThanOrEqual(2);
      expect(await figure(page, "Missed")).toBe("0");

      await live.click();
      for (let runs = 0; runs < 2; runs += 1) {
        await page.getByRole("button", { name: "Run" }).click();
        await page.getByRole("tab", { name: "4 · 4 rows", selected: true }).waitFor();
      }
      await live.click();
      await page.locator(".status", { hasText: "Live" }).waitFor();
      expect(Number(await until(changes, (text) => Number(text) >= 1))).toBeGreaterThanOrEqual(1);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "live finds the query in a text, and reports a text without a query",
    async () => {
      await server.rows("CREATE TABLE shop.cups (id BIGINT PRIMARY KEY, tea TEXT)");
      const { close, faults, page } = await openWorkbench(browser, server);
      await writeSql(
        page,
        "SELECT id FROM shop.cups;\nSELECT tea FROM shop.cups;\nINSERT INTO shop.cups VALUES (1, 'mint');",
      );
      const live = page.getByRole("switch", { name: "Live" });
      await live.click();
      await page.locator(".status", { hasText: "Live" }).waitFor();
      await page.locator(".followed", { hasText: "SELECT tea FROM shop.cups" }).waitFor();
      // Following a query does not run the rest of the editor's text, so nothing has been
      // inserted.
      expect(await server.rows("SELECT count(*) FROM shop.cups")).toEqual([[0]]);
      await runSql(page, "INSERT INTO shop.cups VALUES (2, NULL)");
      await page.getByRole("alert").waitFor();
      expect(await page.getByRole("alert").innerText()).toContain("no query to follow");

      await runSql(page, "SELECT id, tea FROM shop.cups");
      await page.locator(".status", { hasText: "Live" }).waitFor();
      await server.rows("INSERT INTO shop.cups VALUES (3, NULL)");
      await page.locator(".cell.null").waitFor();
      for (const theme of ["light", "dark"]) {
        await page.getByLabel("Colours").selectOption(theme);
        for (const contrast of await page.evaluate<number[]>(NULL_CONTRASTS)) {
          expect(contrast).toBeGreaterThan(4.5);
        }
      }
      expect(await page.locator(".figure .good").count()).toBe(2);
      await server.rows("DROP TABLE shop.cups");
      await page.locator(".status", { hasText: "Ended" }).waitFor();
      expect(await page.locator(".figure .good").count()).toBe(0);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "a stopped run does not count as a failure, and the error of a single statement has no number",
    async () => {
      const { close, faults, page } = await openWorkbench(browser, server);
      await runSql(page, "SELECT count(*) FROM generate_series(1, 1000000000)");
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("Stopped after 0 rows").waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
      expect(await page.getByRole("tab", { name: "stopped" }).count()).toBe(1);

      await runSql(page, "SELECT * FROM shop.nowhere;");
      await page.getByRole("alert").waitFor();
      expect(await page.getByRole("alert").innerText()).not.toContain("Statement 1");
      await runSql(page, "SELECT 1; SELECT * FROM shop.nowhere");
      expect(
        await until(
          () => page.getByRole("alert").innerText(),
          (text) => text.includes("Statement 2"),
        ),
      ).toContain("Statement 2");
      expect(faults({ exceptStatus: 400 })).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "the server's views are collapsed, and the editor is as high as its text",
    async () => {
      await server.rows("CREATE TABLE shop.jars (id BIGINT PRIMARY KEY)");
      const { close, faults, page } = await openWorkbench(browser, server);
      await page.getByRole("button", { name: "Show jars" }).waitFor();
      const users = page.getByRole("button", { name: "Show users", exact: true });
      expect(await users.count()).toBe(0);
      await page.locator("summary", { hasText: "system" }).click();
      await users.waitFor();

      await writeSql(page, "SELECT 1");
      const low = await editorHeight(page);
      await writeSql(page, "SELECT 1,\n".repeat(10));
      const higher = await editorHeight(page);
      await writeSql(page, "SELECT 1,\n".repeat(400));
      const highest = await editorHeight(page);
      expect(low).toBeLessThan(higher);
      expect(higher).toBeLessThan(highest);
      expect(await page.evaluate<number>("innerHeight")).toBeGreaterThan(highest / 0.65);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "the text survives a reload, and its address can be shared and navigated, without passwords",
    async () => {
      await server.rows("CREATE TABLE shop.links (id BIGINT PRIMARY KEY)");
      const { close, faults, page } = await openWorkbench(browser, server);
      await runSql(page, "SELECT 'one' AS first");
      await page.getByRole("gridcell", { name: "one", exact: true }).waitFor();
      await runSql(page, "SELECT 'two' AS second");
      await page.getByRole("gridcell", { name: "two", exact: true }).waitFor();
      await writeSql(page, "SELECT 'three & 100%' -- ü");
      const isThree = (): Promise<boolean> => page.evaluate("location.hash.includes('three')");
      expect(await until(isThree, Boolean)).toBe(true);
      await page.reload();
      await page.getByText("SELECT 'three & 100%' -- ü").waitFor();
      await page.goBack();
      await page.getByText("SELECT 'two' AS second").waitFor();
      await page.goBack();
      await page.getByText("SELECT 'one' AS first").waitFor();
      // Opening an address does not run the statements in it.
      expect(await page.getByRole("grid").count()).toBe(0);

      await writeSql(page, "SELECT id FROM shop.links");
      await page.getByRole("switch", { name: "Live" }).click();
      await page.locator(".status", { hasText: "Live" }).waitFor();
      const address = page.url();
      expect(address).toContain("#/live?q=SELECT%20id");
      const other = await page.context().newPage();
      await other.goto(address);
      await other.locator(".status", { hasText: "Live" }).waitFor();
      await other.close();

      await writeSql(page, "CREATE USER eve WITH PASSWORD 'very secret 1' ROLE user");
      const kept = (): Promise<string> =>
        page.evaluate("location.hash + JSON.stringify({ ...localStorage })");
      expect(await until(kept, (text) => text.includes("eve"))).toContain("eve");
      expect(await kept()).not.toContain("secret");

      // If the address has no text, the editor shows the stored text.
      await writeSql(page, "SELECT 'remembered'");
      expect(await until(kept, (text) => text.includes("remembered"))).toContain("remembered");
      await page.goto("about:blank");
      await page.goto(`${server.url}/ui`);
      await page.getByText("SELECT 'remembered'").waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { name: "Log in" }).waitFor();
      expect(await kept()).toBe("{}");
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "tables appear and disappear automatically, whoever creates or drops them",
    async () => {
      const { close, faults, page } = await openWorkbench(browser, server);
      // From here on, the page's timers fire when the test advances the clock, as well as by
      // themselves.
      await page.clock.install();
      await page.reload();
      await page.getByRole("button", { name: "Run" }).waitFor();
      await runSql(page, "CREATE TABLE shop.own (id BIGINT PRIMARY KEY)");
      await page.getByRole("button", { name: "Show own" }).waitFor();
      await server.rows("CREATE TABLE shop.elsewhere (id BIGINT PRIMARY KEY)");
      const elsewhere = page.getByRole("button", { name: "Show elsewhere" });
      await page.clock.fastForward(LIST_MS);
      await elsewhere.waitFor();
      await server.rows("DROP TABLE shop.elsewhere");
      await page.clock.fastForward(LIST_MS);
      await elsewhere.waitFor({ state: "detached" });
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "the page sorts a live query with ORDER BY as far as it can",
    async () => {
      await server.rows(
        "CREATE TABLE shop.bids (id BIGINT PRIMARY KEY, who TEXT, cents DECIMAL(8,2)); " +
          "INSERT INTO shop.bids VALUES (1, 'ann', 9.50), (2, 'bob', 10.00), (3, 'cy', NULL)",
      );
      const { close, faults, page } = await openWorkbench(browser, server);
      const names = (): Promise<string[]> =>
        page.locator('[aria-colindex="1"][role=gridcell]').allInnerTexts();
      await writeSql(page, "SELECT who, cents FROM shop.bids ORDER BY cents DESC NULLS LAST, id;");
      await page.getByRole("switch", { name: "Live" }).click();
      await page.locator(".status", { hasText: "Live" }).waitFor();
      await page.getByText("This page sorts the rows by cents DESC NULLS LAST, id").waitFor();
      expect(await until(names, ({ length }) => length === 3)).toEqual(["bob", "ann", "cy"]);
      await server.rows("INSERT INTO shop.bids VALUES (4, 'dee', 9.75)");
      expect(await until(names, ({ length }) => length === 4)).toEqual(["bob", "dee", "ann", "cy"]);
      await server.rows("UPDATE shop.bids SET cents = 11 WHERE id = 1");
      expect(await until(names, ([first]) => first === "ann")).toEqual(["ann", "bob", "dee", "cy"]);

      await runSql(page, "SELECT who, cents FROM shop.bids ORDER BY cents LIMIT 2");
      await page.getByText("This page sorts the rows by cents.").waitFor();
      expect(await until(names, ({ length }) => length === 2)).toEqual(["dee", "bob"]);
      await server.rows("DELETE FROM shop.bids WHERE id = 4");
      expect(await until(names, ([first]) => first === "bob")).toEqual(["bob", "ann"]);

      await runSql(page, "SELECT who FROM shop.bids ORDER BY length(who)");
      await page.getByText("The rows are not sorted; the newest come first").waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );
});
