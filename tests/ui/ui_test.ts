/**
 * Tests the admin page as users experience it: the real server process and a real Chromium. Every
 * test ends by checking for console errors, policy violations, and requests to other hosts.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Locator } from "playwright-core";
import { chromiumMissing, describeUnless, testThoroughly } from "../support/requirements.ts";
import { ADMIN, PASSWORD, type ServerProcess, startServer } from "../support/server_process.ts";
import {
  accessibilityFaults,
  animatedShadows,
  backgroundColour,
  clipboardText,
  figure,
  launchBrowser,
  logIn,
  openPage,
  openWorkbench as openWorkbenchOf,
  runSql,
  TEST_MS_MAX,
  until,
  type WatchedPage,
  writeSql,
} from "./browser.ts";
import { openForm, openRights, sectionOf } from "./rights_page.ts";

async function cellsOf(row: Locator): Promise<string[]> {
  return row.getByRole("gridcell").allInnerTexts();
}

/** The part of the element types that this test uses, which the server's types do not include. */
interface Overflowing {
  readonly scrollWidth: number;
  readonly clientWidth: number;
}

/** Whether one element lies completely within another, to within a pixel. */
async function isInside(inner: Locator, outer: Locator): Promise<boolean> {
  const [box, frame] = await Promise.all([inner.boundingBox(), outer.boundingBox()]);
  if (box === null || frame === null) return false;
  const isWithinX = box.x >= frame.x - 1 && box.x + box.width <= frame.x + frame.width + 1;
  const isWithinY = box.y >= frame.y - 1 && box.y + box.height <= frame.y + frame.height + 1;
  return isWithinX && isWithinY;
}

describeUnless(chromiumMissing)("the admin page", () => {
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

  const openWorkbench = (options?: Parameters<typeof openWorkbenchOf>[2]): Promise<WatchedPage> =>
    openWorkbenchOf(browser, server, options);

  test(
    "setup refuses a weak password next to its field, and then leads to the first rows",
    async () => {
      await using fresh = await startServer({ config: { server: { ui_enabled: true } } });
      const { close, faults, page } = await openPage(browser, fresh);
      await page.getByLabel("Your user name").fill(ADMIN);
      await page.getByLabel("Your password").fill("password");
      await page.getByLabel("Password for root").fill("battery staple 7");
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.getByRole("button", { name: "Set up" }).click();
      await page.getByRole("alert").waitFor();
      expect(await page.getByLabel("Your password").getAttribute("aria-invalid")).toBe("true");
      expect(faults({ exceptStatus: 400 })).toEqual([]);

      const late = await openPage(browser, fresh);
      await late.page.getByLabel("Your user name").fill("eve");
      await late.page.getByLabel("Your password").fill(PASSWORD);
      await late.page.getByLabel("Password for root").fill("battery staple 7");
      await page.getByLabel("Your password").fill(PASSWORD);
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Run" }).waitFor();
      await late.page.keyboard.press("Enter");
      await late.page.getByText("already been set up").waitFor();
      await late.page.getByRole("heading", { name: "Log in" }).waitFor();
      expect(late.faults({ exceptStatus: 409 })).toEqual([]);
      await late.close();
      // The table list next to the editor is longer than the page, and scrolls separately.
      expect(await page.evaluate("document.documentElement.scrollHeight <= innerHeight")).toBe(
        true,
      );
      // The editor has the focus and contains an example.
      await page.keyboard.press("ControlOrMeta+Enter");
      await page.getByRole("tab", { name: "4 · 4 rows", selected: true }).waitFor();
      expect(await page.getByRole("columnheader").allInnerTexts()).toContain("station\nPK TEXT");
      expect(await page.getByRole("gridcell", { name: "Brest", exact: true }).count()).toBe(1);
      await page.getByRole("tab", { name: "1", exact: true }).click();
      await page.keyboard.press("ArrowRight");
      await page.getByRole("tab", { name: "2", selected: true }).waitFor();
      await writeSql(page, "-- not to be lost");
      await page.getByRole("button", { name: "Show tides" }).click();
      await page.getByRole("tab", { name: "1 · 4 rows", selected: true }).waitFor();
      await page.keyboard.press("ControlOrMeta+z");
      await page.getByText("-- not to be lost").waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "login refuses a wrong password and a user without rights, and a reload keeps the session",
    async () => {
      await server.createUser("bob");
      const { close, faults, page } = await openPage(browser, server);
      await logIn(page, ADMIN, "not the password");
      await page.getByRole("alert").waitFor();
      expect(faults({ exceptStatus: 401 })).toEqual([]);
      await logIn(page, "bob", PASSWORD);
      await page.getByText("for administrators").waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);

      await logIn(page, ADMIN, PASSWORD);
      await page.getByText("ada · dba").waitFor();
      const stored = await page.evaluate<string>("JSON.stringify({ ...localStorage })");
      expect(stored).toBe('{"tidemark.session":"1"}');
      await page.reload();
      await page.getByText("ada · dba").waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { name: "Log in" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "Log in" }).waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "results show one tab per statement, NULL, times as text, exact integers and twenty thousand rows",
    async () => {
      const values = Array.from({ length: 20_000 }, (_, index) => `(${index + 1})`).join();
      await server.rows("CREATE TABLE shop.numbers (n BIGINT PRIMARY KEY)");
      await server.rows(`INSERT INTO shop.numbers VALUES ${values}`);
      const { close, faults, page } = await openWorkbench();
      await runSql(
        page,
        "SELECT NULL AS nothing, '' AS empty, 9223372036854775807 AS big, " +
          "TIMESTAMP '2026-11-21 10:00:00.25' AS at, X'0aff' AS bytes, 'مرحبا' AS text;\n" +
          "SELECT n FROM shop.numbers ORDER BY n",
      );
      await page.getByRole("tab", { name: "2 · 1,000+ rows", selected: true }).waitFor();
      const grid = page.getByRole("grid");
      expect(await grid.getAttribute("aria-rowcount")).toBe("-1");
      await grid.focus();
      await page.keyboard.press("Control+End");
      await page.getByRole("gridcell", { name: "20000", exact: true }).waitFor();
      expect(await grid.getAttribute("aria-rowcount")).toBe("20001");
      expect(await page.getByRole("row").count()).toBeLessThan(80);
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("ControlOrMeta+c");
      await page.getByText("Copied").waitFor();
      expect(await clipboardText(page)).toBe("19999");

      await page.getByRole("tab", { name: "1 · 1 row" }).click();
      expect(await cellsOf(page.getByRole("row").nth(1))).toEqual([
        "NULL",
        "",
        "9223372036854775807",
        "2026-11-21 10:00:00.25",
        "\\x0aff",
        "مرحبا",
      ]);
      expect(await page.locator(".cell.null").count()).toBe(1);
      expect(await page.getByText(/1 row · took .* · as ada/).count()).toBe(1);
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "an error marks its position and keeps what ran before it, and names are completed",
    async () => {
      const { close, faults, page } = await openWorkbench({ colorScheme: "dark" });
      await runSql(
        page,
        "CREATE TABLE shop.items (id BIGINT PRIMARY KEY, label TEXT);\nSELECT 1;\nSELECT lable\n  FROM shop.items",
      );
      await page.getByRole("alert").waitFor();
      expect(await page.getByText("line 3, column 8").count()).toBe(1);
      // All statements were bound before any of them ran, so the error has left nothing behind
      // except a mark in the editor.
      expect(await page.locator(".cm-lintRange-error").innerText()).toBe("lable");
      await page.getByRole("button", { name: "Copy error" }).click();
      await page.getByText("Copied").waitFor();
      const copied = await clipboardText(page);
      expect(copied).toContain("INVALID_SQL");
      expect(copied).toContain("SELECT lable");
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(faults({ exceptStatus: 400 })).toEqual([]);

      await runSql(page, "SELECT 1; SELECT 1 / 0");
      await page.getByRole("tab", { name: "2 · failed", selected: true }).waitFor();
      await page.getByRole("tab", { name: "1 · 1 row" }).waitFor();
      expect(await page.getByText("division_by_zero").count()).toBe(1);
      faults({ exceptStatus: 400 });

      await runSql(
        page,
        "CREATE TABLE IF NOT EXISTS shop.items (id BIGINT PRIMARY KEY, label TEXT)",
      );
      await page.getByRole("button", { name: "Show items" }).waitFor();
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.type("SELECT * FROM shop.it");
      // The mouse is used because the editor ignores keys for a moment after the list appears.
      await page.getByRole("option", { name: "items" }).click();
      await page.keyboard.press("ControlOrMeta+Enter");
      await page.getByRole("tab", { name: "1 · 0 rows" }).waitFor();

      await runSql(page, "SELECT 1;".repeat(60));
      const last = page.getByRole("tab", { name: "60 · 1 row", selected: true });
      await last.waitFor();
      expect(await isInside(last, page.getByRole("tablist"))).toBe(true);

      await page.getByLabel("Colours").selectOption("light");
      expect(await backgroundColour(page)).toBe("rgb(243, 246, 248)");
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "by keyboard, the current cell scrolls into view, Enter shows all of it, and no run takes the focus",
    async () => {
      await server.rows("CREATE TABLE shop.wide (id BIGINT PRIMARY KEY, a TEXT, b TEXT, c TEXT)");
      const values = Array.from(
        { length: 40 },
        (_, index) => `(${index}, 'exactly so long', '${"b".repeat(80)}', '${"c".repeat(80)}')`,
      );
      await server.rows(`INSERT INTO shop.wide VALUES ${values.join()}`);
      const { close, faults, page } = await openWorkbench({
        viewport: { width: 700, height: 700 },
      });
      await runSql(page, "SELECT id, a, b, c FROM shop.wide");
      const grid = page.getByRole("grid");
      await grid.waitFor();
      const isCut = (name: string): Promise<boolean> =>
        page
          .getByRole("gridcell", { name })
          .first()
          .evaluate<boolean, Overflowing>((cell) => cell.scrollWidth > cell.clientWidth);
      expect(await isCut("exactly so long")).toBe(false);
      await grid.focus();
      for (let presses = 0; presses < 20; presses += 1) await page.keyboard.press("ArrowDown");
      for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press("ArrowRight");
      const cell = page.locator(".cell.current");
      expect(await until(() => isInside(cell, grid), Boolean)).toBe(true);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog", { name: "c, row 21" }).waitFor();
      expect(await page.getByRole("dialog").innerText()).toContain("c".repeat(80));
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.locator("[role=grid]:focus").waitFor();
      await page.keyboard.press("Home");
      expect(await until(() => isInside(cell, grid), Boolean)).toBe(true);

      await writeSql(page, "SELECT count(*) FROM generate_series(1, 1000000000)");
      await page.getByRole("button", { name: "Run" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Stop" }).waitFor();
      const run = page.locator("button:focus", { hasText: "Run" });
      await run.waitFor();
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.getByText("Stopped after 0 rows").waitFor();
      await run.waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "typed text survives the end of a session, but not a logout, and an outdated list of tables says so",
    async () => {
      await using own = await startServer({ config: { server: { ui_enabled: true } } });
      await own.setup();
      await own.createUser("eve", "dba");
      const { close, faults, page } = await openPage(browser, own);
      await logIn(page, "eve", PASSWORD);
      await page.locator("summary", { hasText: "system" }).click();
      await page.getByRole("button", { name: "Show users", exact: true }).waitFor();
      await writeSql(page, "SELECT 'typed'");
      await own.rows("ALTER USER eve SET PASSWORD 'other horse 10'");
      await page.keyboard.press("ControlOrMeta+Enter");
      await page.getByText("Your session has ended").waitFor();
      expect(faults({ exceptStatus: 401 })).toEqual([]);
      await logIn(page, "eve", "other horse 10");
      await page.getByText("SELECT 'typed'").waitFor();

      await page.locator("summary", { hasText: "system" }).click();
      await page.getByRole("button", { name: "Show users", exact: true }).waitFor();
      await page.route("**/v1/api/sql", (route) => route.abort());
      await page.getByRole("button", { name: "Reload the list" }).click();
      await page.getByText("could not be loaded").waitFor();
      expect(await page.getByRole("button", { name: "Show users", exact: true }).count()).toBe(1);
      await page.unroute("**/v1/api/sql");
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("gridcell", { name: "typed" }).waitFor();
      await page.getByText("could not be loaded").waitFor({ state: "detached" });
      expect(faults().filter((text) => !text.includes("ERR_FAILED"))).toEqual([]);

      // A log is shown from its end, where the newest event is eve's login.
      await page.getByRole("button", { name: "Show audit_log" }).click();
      await page.getByRole("tab", { name: /^1 · \d+ rows$/, selected: true }).waitFor();
      expect((await cellsOf(page.getByRole("row").nth(1))).slice(2, 4)).toEqual(["eve", "login"]);

      await page.getByRole("button", { name: "Log out" }).click();
      await logIn(page, "eve", "other horse 10");
      await page.getByText("watch the rows move").waitFor();
      expect(await page.getByText("SELECT 'typed'").count()).toBe(0);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "live rows appear, change and disappear, a pause holds them, and a lost connection is resumed",
    async () => {
      await server.rows(
        "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, item TEXT); " +
          "INSERT INTO shop.orders VALUES (1, 'tea'), (2, 'salt')",
      );
      const { close, faults, page } = await openWorkbench({ reducedMotion: "reduce" });
      await writeSql(page, "SELECT id, item FROM shop.orders LIMIT 500;");
      await page.getByRole("switch", { name: "Live" }).click();
      await page.locator(".status", { hasText: "Live" }).waitFor();
      await page.getByRole("gridcell", { name: "tea" }).waitFor();

      await server.rows("INSERT INTO shop.orders VALUES (3, 'rice')");
      const first = page.getByRole("row").nth(1);
      expect(
        await until(
          () => cellsOf(first),
          (cells) => cells[1] === "rice",
        ),
      ).toContain("rice");
      const latency = (): Promise<string> => figure(page, "Commit → screen p50");
      expect(await until(latency, (text) => text !== "–")).toMatch(/^[\d.]+ m?s$/);
      // Reduced motion is requested, so a static bar replaces the flash.
      const shadows = await animatedShadows(first);
      expect(shadows).toHaveLength(2);
      expect(new Set(shadows).size).toBe(1);
      expect(shadows[0]).toContain("inset");
      await server.rows("UPDATE shop.orders SET item = 'mint' WHERE id = 1");
      await page.getByRole("gridcell", { name: "mint" }).waitFor();
      await server.rows("DELETE FROM shop.orders WHERE id = 2");
      await page.getByRole("gridcell", { name: "salt" }).waitFor({ state: "detached" });

      await page.getByRole("button", { name: "Pause" }).click();
      await server.rows("INSERT INTO shop.orders VALUES (4, 'oil')");
      await page.getByText("1 change held").waitFor();
      expect(await page.getByRole("gridcell", { name: "oil" }).count()).toBe(0);
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("gridcell", { name: "oil" }).waitFor();

      await page.getByRole("button", { name: "Disconnect for" }).click();
      await page.locator(".status", { hasText: "Offline" }).waitFor();
      await server.rows(
        "INSERT INTO shop.orders VALUES (5, 'figs'); " +
          "UPDATE shop.orders SET item = 'dates' WHERE id = 5; " +
          "DELETE FROM shop.orders WHERE id = 3; UPDATE shop.orders SET item = 'ghee' WHERE id = 4",
      );
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.getByText("4 changes replayed").waitFor();
      await page.getByRole("gridcell", { name: "rice" }).waitFor({ state: "detached" });
      const shown = await page.getByRole("gridcell").allInnerTexts();
      expect(shown.filter((text) => /^[a-z]+$/.test(text)).toSorted()).toEqual([
        "dates",
        "ghee",
        "mint",
      ]);
      expect(await figure(page, "Rows")).toBe("3");
      expect(await figure(page, "Missed")).toBe("0");
      expect(await figure(page, "Doubled")).toBe("0");
      expect(await figure(page, "Resumes")).toBe("1");
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "live refuses queries that cannot be followed, and follows the next query",
    async () => {
      await server.rows("CREATE TABLE shop.prices (id BIGINT PRIMARY KEY, cents BIGINT)");
      const { close, faults, page } = await openWorkbench();
      await writeSql(page, "SELECT id FROM shop.prices WHERE random() < 1");
      await page.getByRole("switch", { name: "Live" }).click();
      await page.getByRole("alert").waitFor();
      expect(await page.getByRole("alert").innerText()).toContain("UNSUPPORTED");
      await runSql(page, "SELECT * FROM shop.prices");
      await page.locator(".status", { hasText: "Live" }).waitFor();
      await server.rows("INSERT INTO shop.prices VALUES (1, 100)");
      await page.getByRole("gridcell", { name: "100", exact: true }).waitFor();
      await server.rows("ALTER TABLE shop.prices ADD COLUMN note TEXT");
      await page.getByText("The rows were reloaded, because the table was altered").waitFor();
      await page.getByRole("columnheader", { name: "note" }).waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await server.rows("UPDATE shop.prices SET cents = 200");
      await page.getByText("1 change held").waitFor();
      await server.rows("DROP TABLE shop.prices");
      await page.locator(".status", { hasText: "Ended" }).waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("gridcell", { name: "200", exact: true }).waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  testThoroughly(
    "live follows a query with a join, groups and an order",
    async () => {
      await server.rows(`CREATE SHARED TABLE shop.kinds (id INT PRIMARY KEY, name TEXT);
        CREATE SHARED TABLE shop.goods (id INT PRIMARY KEY, kind INT);
        INSERT INTO shop.kinds VALUES (1, 'cups'), (2, 'pans');
        INSERT INTO shop.goods VALUES (1, 1)`);
      const { close, faults, page } = await openWorkbench();
      await writeSql(
        page,
        "SELECT k.name, count(g.id) * 100 AS n FROM shop.kinds k LEFT JOIN shop.goods g ON g.kind = k.id GROUP BY k.name ORDER BY n DESC LIMIT 1",
      );
      await page.getByRole("switch", { name: "Live" }).click();
      await page.getByRole("gridcell", { name: "cups", exact: true }).waitFor();
      await server.rows("INSERT INTO shop.goods VALUES (2, 2), (3, 2)");
      await page.getByRole("gridcell", { name: "pans", exact: true }).waitFor();
      await page.getByRole("gridcell", { name: "200", exact: true }).waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "policies are created, shown and dropped on the page about rights, and a refusal is shown",
    async () => {
      await server.rows(
        "CREATE NAMESPACE chat; CREATE TABLE chat.messages (id INT PRIMARY KEY, author TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED')",
      );
      const { close, faults, page } = await openRights(browser, server);
      const policies = sectionOf(page, "Policies");
      await policies.getByText("No policies yet.").waitFor();
      const form = await openForm(policies, "Create policy");
      await form.getByLabel("Name").fill("authors");
      await form.getByLabel("Command").selectOption("ALL");
      await form.getByRole("checkbox", { name: "user" }).check();
      await form.getByLabel(/^USING/).fill("autor = CURRENT_USER()");
      expect(await form.getByRole("group", { name: "SQL statement to be run" }).innerText()).toBe(
        'CREATE POLICY "authors" ON "chat"."messages" FOR ALL TO user\n  USING (autor = CURRENT_USER())',
      );
      await form.getByRole("button", { name: "Create policy" }).click();
      await form.getByRole("alert").filter({ hasText: "autor" }).waitFor();
      expect(faults({ exceptStatus: 400 })).toEqual([]);
      await form.getByLabel(/^USING/).fill("author = CURRENT_USER()");
      await form.getByRole("button", { name: "Create policy" }).click();
      const row = policies.getByRole("row", { name: /^chat\.messages authors ALL/ });
      await row.getByText("in effect").waitFor();
      expect(await server.rows("SELECT policy_name, roles FROM system.policies")).toEqual([
        ["authors", "user"],
      ]);
      // A change made by somebody else appears without further action.
      await server.rows("CREATE POLICY all_read ON chat.messages FOR SELECT USING (TRUE)");
      await policies.getByRole("row", { name: /all_read/ }).waitFor();
      // The form shows the current policy and the statement that would change it.
      const changing = await openForm(policies, "Change policy");
      await changing.getByLabel("Policy").selectOption("authors ON chat.messages");
      expect(await changing.getByRole("checkbox", { name: "user" }).isChecked()).toBe(true);
      const using = changing.getByLabel(/^USING/);
      expect(await using.inputValue()).toContain("author");
      await changing.getByLabel("service").check();
      await using.fill("autor = 'eve'");
      await changing.getByRole("button", { name: "Change policy" }).click();
      await changing.getByRole("alert").filter({ hasText: "autor" }).waitFor();
      expect(faults({ exceptStatus: 400 })).toEqual([]);
      await using.fill("author = 'eve'");
      expect(
        await changing.getByRole("group", { name: "SQL statement to be run" }).innerText(),
      ).toBe(
        'ALTER POLICY "authors" ON "chat"."messages" TO user, service\n  USING (author = \'eve\')',
      );
      await changing.getByRole("button", { name: "Change policy" }).click();
      await policies.getByRole("row", { name: /authors ALL public author = 'eve'/ }).waitFor();
      await changing.getByLabel("Policy").selectOption("all_read ON chat.messages");
      expect(await changing.getByRole("checkbox", { name: "user" }).isChecked()).toBe(false);
      await row.getByRole("button", { name: "Drop authors" }).click();
      await row.getByRole("button", { name: "Do you really want to drop authors?" }).click();
      await row.waitFor({ state: "detached" });
      expect(await server.rows("SELECT policy_name FROM system.policies")).toEqual([["all_read"]]);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );
});
