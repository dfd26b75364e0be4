/**
 * Checks that the links between documents lead to an existing file and to an existing heading.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { readOptions } from "../support/arguments.ts";

const DOCUMENTS = ["*.md", "{docs,examples}/**/*.md"];

/** Matches code blocks and inline code, where brackets do not form links. */
const CODE = /^```[^\n]*\n[\s\S]*?^```|`[^`\n]*`/gm;

const LINK = /\]\(([^)\s]+)\)/g;

/**
 * Lists the targets of a document's links, both in other documents and within the document itself.
 */
export function linksIn(document: string): string[] {
  const targets = [...document.replaceAll(CODE, "").matchAll(LINK)].map(
    ([, target = ""]) => target,
  );
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** Returns the anchors of a document's headings, as GitHub generates them. */
export function anchorsOf(document: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of document
    .replaceAll(/^```[\s\S]*?^```/gm, "")
    .matchAll(/^#+ (.+)$/gm)) {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
    let name = anchor;
    for (let count = 1; anchors.has(name); count += 1) name = `${anchor}-${count}`;
    anchors.add(name);
  }
  return anchors;
}

/** Lists the links of the document at `path` whose targets do not exist. */
export function brokenLinks(path: string): string[] {
  return linksIn(readFileSync(path, "utf8")).filter((link) => {
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : join(dirname(path), file);
    if (!existsSync(target)) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(target, "utf8")).has(anchor);
  });
}

if (import.meta.main) {
  readOptions({});
  const paths = DOCUMENTS.flatMap((pattern) => Array.from(new Glob(pattern).scanSync()));
  if (paths.length === 0) throw new Error("Cannot check links: no document found");
  for (const path of paths) {
    for (const link of brokenLinks(path)) {
      process.stdout.write(`${path}: the link "${link}" leads nowhere\n`);
      process.exitCode = 1;
    }
  }
}
