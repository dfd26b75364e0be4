/**
 * Verifies that every row can be reached in results too long for a page, and that few rows are
 * fetched unnecessarily.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Locator } from "playwright-core";
import { chromiumMissing, describeUnless } from "../support/requirements.ts";
import { type ServerProcess, startServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { launchBrowser, openWorkbench, runSql, TEST_MS_MAX, until } from "./browser.ts";

/** A query that returns far more rows than anybody would read. */
const ENDLESS = "SELECT n, repeat('x', 1000) FROM generate_series(1, 3000000) AS g (n)";

/**
 * The part of the DOM types that this test uses, because the server's types do not include the
 * DOM.
 */
interface Scrolling {
  scrollTop: number;
  readonly scrollHeight: number;
}

/** Returns the text of the first cell in each drawn row. */
function drawn(grid: Locator): Promise<string[]> {
  return grid.locator('[aria-colindex="1"][role=gridcell]').allInnerTexts();
}

/**
 * Moves the scroll bar to a fraction of its length, and returns the first cell of each drawn row.
 * The bar is moved repeatedly, as in a drag, because the end of the previous scroll may undo a
 * single move.
 */
async function drawnAfterDrag(grid: Locator, share: number): Promise<string[]> {
  await grid.evaluate<void, number, Scrolling>((element, part) => {
    element.scrollTop = element.scrollHeight * part;
  }, share);
  return await drawn(grid);
}

describeUnless(onlyThorough ?? chromiumMissing)("long results", () => {
  let browser: Browser;
  let server: ServerProcess;

  beforeAll(async () => {
    [browser, server] = await Promise.all([
      launchBrowser(),
      startServer({ config: { server: { ui_enabled: true } } }),
    ]);
    await server.setup();
  }, TEST_MS_MAX);

  afterAll(async () => {
    await browser.close();
    await server.stop();
  });

  /** Returns the statements still running on the server. */
  const running = (): Promise<readonly (readonly unknown[])[]> =>
    server.rows("SELECT query_id FROM system.queries WHERE sql LIKE '%gener' || 'ate_series%'");

  test(
    "few rows are fetched at first, more while scrolling, and all for a file, in one run",
    async () => {
      await server.rows("CREATE NAMESPACE long; CREATE TABLE long.log (id BIGINT PRIMARY KEY)");
      const { close, faults, page } = await openWorkbench(browser, server);
      const sent: number[] = [];
      page.on("request", (request) => {
        if (request.postData()?.includes("generate_series") === true) sent.push(sent.length);
      });
      const rows = "SELECT n, repeat('x', 200) AS x FROM generate_series(1, 120000) AS g (n)";
      await runSql(page, `INSERT INTO long.log VALUES (1); ${rows}`);
      await page.getByRole("tab", { name: "2 · 1,000+ rows", selected: true }).waitFor();
      await page.getByText("1,000 rows loaded; scroll down to load more").waitFor();
      const grid = page.getByRole("grid");
      expect(await grid.getAttribute("aria-rowcount")).toBe("-1");
      await grid.evaluate<void, Scrolling>((element) => {
        element.scrollTop = element.scrollHeight;
      });
      await page.getByText("2,000 rows loaded").waitFor();

      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Export CSV" }).click();
      const text = await Bun.file(await (await download).path()).text();
      const lines = text.trimEnd().split("\r\n");
      expect(lines.length).toBe(120_001);
      expect(lines[0]).toBe("n,x");
      expect(lines.at(-1)).toBe(`120000,${"x".repeat(200)}`);
      await page.getByRole("tab", { name: "2 · 120,000 rows", selected: true }).waitFor();
      // No statement has run twice: the first statement has inserted only one row.
      expect(sent).toHaveLength(1);
      expect(await server.rows("SELECT count(*) FROM long.log")).toEqual([[1]]);

      // The server ends an unfinished run when the next run starts.
      await runSql(page, ENDLESS);
      await page.getByText("1,000 rows loaded").waitFor();
      expect(await until(running, ({ length }) => length === 1)).toHaveLength(1);
      await runSql(page, "SELECT 1 AS one");
      await page.getByRole("tab", { name: "1 · 1 row" }).waitFor();
      expect(await until(running, ({ length }) => length === 0)).toEqual([]);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "a statement that the server ends before it was read completely is not a failure, and its rows stay",
    async () => {
      const { close, faults, page } = await openWorkbench(browser, server);
      await runSql(page, ENDLESS);
      await page.getByText("1,000 rows loaded").waitFor();
      const [row] = await until(running, ({ length }) => length === 1);
      await server.rows(`KILL QUERY '${String(row?.[0])}'`);
      await page.getByRole("button", { name: "Load all" }).click();
      await page.getByText(/The server ended the statement after [\d,]+ rows/).waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
      await page.getByRole("tab", { name: /^1 · / }).click();
      await page.getByRole("gridcell", { name: "1", exact: true }).waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "every row of a table higher than a browser can draw can be reached",
    async () => {
      const { close, faults, page } = await openWorkbench(browser, server);
      await runSql(page, "SELECT n FROM generate_series(1, 1300000) AS g (n)");
      const grid = page.getByRole("grid");
      await grid.waitFor();
      await grid.focus();
      await page.keyboard.press("Control+End");
      await page.getByRole("gridcell", { name: "1300000", exact: true }).waitFor();
      await page.keyboard.press("ArrowUp");
      expect(await page.locator(".cell.current").innerText()).toBe("1299999");

      // The wheel moves row by row, although one pixel of the scroll bar represents many rows.
      const before = await drawn(grid);
      await grid.hover();
      await page.mouse.wheel(0, -280);
      const wanted = String(Number(before[0]) - 10);
      expect(
        (
          await until(
            () => drawn(grid),
            (rows) => rows[0] === wanted,
          )
        )[0],
      ).toBe(wanted);

      // A long drag moves in proportion to the bar, and the end of the bar is the end of the rows.
      const middle = await until(
        () => drawnAfterDrag(grid, 0.5),
        (rows) => Math.abs(Number(rows[0]) - 650_000) < 1000,
      );
      expect(Math.abs(Number(middle[0]) - 650_000)).toBeLessThan(1000);
      const end = await until(
        () => drawnAfterDrag(grid, 1),
        (rows) => rows.includes("1300000"),
      );
      expect(end).toContain("1300000");
      await page.keyboard.press("Control+Home");
      await page.getByRole("gridcell", { name: "1", exact: true }).waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );
});
