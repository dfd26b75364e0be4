/** Verifies that the check of links finds broken ones, using documents in a separate directory. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anchorsOf, brokenLinks, linksIn } from "../../scripts/check/links.ts";

test("linksIn ignores addresses, code and drawings", () => {
  const text = "[a](b.md) [c](https://x.org) `[d](e)` [f](#g)\n```text\n[h](i)\n```\n";
  expect(linksIn(text)).toEqual(["b.md", "#g"]);
});

test("anchorsOf names headings as GitHub does, with a number for repeated ones", () => {
  expect([...anchorsOf("# A b\n## `c` & d_e: 1\n## A b\n```sh\n# no heading\n```\n")]).toEqual([
    "a-b",
    "c--d_e-1",
    "a-b-1",
  ]);
});

test("brokenLinks finds only the missing file and the missing heading", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-links-"));
  try {
    writeFileSync(join(folder, "b.md"), "# There\n");
    const path = join(folder, "a.md");
    writeFileSync(
      path,
      "# Own\n[1](b.md) [2](b.md#there) [3](#own) [4](c.md) [5](b.md#not) [6](#no)\n",
    );
    expect(brokenLinks(path)).toEqual(["c.md", "b.md#not", "#no"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
