/** Finds its way on the admin page's page about rights, for tests. */
import type { Browser, Locator, Page } from "playwright-core";
import { openWorkbench, type WatchedPage } from "./browser.ts";

export function sectionOf(page: Page, name: string): Locator {
  return page.getByRole("region", { name });
}

export async function openForm(section: Locator, title: string): Promise<Locator> {
  await section.locator("summary", { hasText: title }).click();
  const form = section.getByRole("form", { name: title });
  await form.waitFor();
  return form;
}

/** Opens the page about rights, with the first administrator logged in. */
export async function openRights(
  browser: Browser,
  server: Parameters<typeof openWorkbench>[1],
  options?: Parameters<typeof openWorkbench>[2],
): Promise<WatchedPage> {
  const watched = await openWorkbench(browser, server, options);
  await watched.page.getByRole("link", { name: "Rights" }).click();
  await watched.page.getByRole("heading", { name: "Rights", level: 2 }).waitFor();
  return watched;
}
