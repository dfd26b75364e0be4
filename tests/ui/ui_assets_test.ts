/**
 * Verifies that the admin page is built completely at the first request, and contains nothing from
 * other hosts.
 */
import { expect, test } from "bun:test";
import { defined } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import { loadUi } from "../../src/ui_assets.ts";

test("the page refers to permanent assets that exist, and carries its nonce", async () => {
  const ui = defined(loadUi(silentLog), "the packages of the page must be installed");
  const page = await ui.page("n0nce", "/db");
  expect(page).toContain('nonce="n0nce"');
  expect(page).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);
  const names = [...page.matchAll(/"\/db\/ui\/([^"]+)"/g)].map(([, name]) => name ?? "");
  expect(names.map((name) => name.split(".").at(-1))).toEqual(["css", "js"]);
  for (const name of names) {
    const asset = defined(await ui.get(name), "an asset that the page names must exist");
    expect(asset.immutable).toBe(true);
    expect(name).toMatch(/-[a-z0-9]{8}\./);
    // An asset that the page names includes neither the editor nor the grid, which are loaded
    // later.
    expect(asset.bytes.length).toBeLessThan(300_000);
    // Assets refer to one another by relative paths, so they load below any path.
    expect(new TextDecoder().decode(asset.bytes)).not.toContain("/ui/");
  }
  expect(await ui.get("nothing.js")).toBeUndefined();
});
