/**
 * Checks that the files and folders named in the documents exist, so that no reader looks for a
 * name that has moved.
 *
 * A path begins at the root or at `src/`. Between backticks, every word that begins with a folder
 * of either, or ends like a code file, is a path. In a drawing, only a word that begins with such
 * a folder counts, because a drawing may shorten names. Braces expand to each of their parts, and
 * `mod.ts` matches the `mod.ts` of any folder.
 */
import { readdirSync } from "node:fs";
import { Glob } from "bun";
import { readOptions } from "../support/arguments.ts";

const DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/**/*.md"];

/** Matches a code block, which may be a drawing, or inline code. */
const QUOTED = /^```[^\n]*\n([\s\S]*?)^```|`([^`]+)`/gm;

const WORD = /^[\w.*{},-]+(?:\/[\w.*{},-]+)*\/?$/;

/**
 * Lists the paths named in a document, with braces expanded. A path begins with one of the given
 * `folders`.
 */
export function pathsIn(document: string, folders: ReadonlySet<string>): string[] {
  const found: string[] = [];
  for (const [, drawn, inLine] of document.matchAll(QUOTED)) {
    for (const piece of (drawn ?? inLine ?? "").split(/\s+/)) {
      const word = piece.replace(/^\(/, "").replace(/[.,;:)]+$/, "");
      if (!WORD.test(word) || word === "mod.ts") continue;
      const isFile = inLine !== undefined && word.endsWith(".ts");
      const isBelow = word.includes("/") && folders.has(word.slice(0, word.indexOf("/")));
      if (isFile || isBelow) found.push(...expanded(word));
    }
  }
  return found;
}

function expanded(path: string): string[] {
  const [, before = "", parts, behind = ""] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(path) ?? [];
  if (parts === undefined) return [path];
  return parts.split(",").flatMap((part) => expanded(`${before}${part}${behind}`));
}

/** Lists the paths named in a document that do not exist. */
export function missingFrom(document: string, folders: ReadonlySet<string>): string[] {
  return pathsIn(document, folders).filter((path) => !isThere(path));
}

/** Returns true if a path exists, with or without a file extension. */
function isThere(path: string): boolean {
  const bare = path.replace(/\/$/, "");
  const asked = [bare, `${bare}.ts`].flatMap((it) => [it, `src/${it}`]);
  return asked.some((pattern) => {
    const [first] = new Glob(pattern).scanSync({ onlyFiles: false, dot: true });
    return first !== undefined;
  });
}

function foldersIn(path: string): string[] {
  const entries = readdirSync(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

if (import.meta.main) {
  readOptions({});
  const folders = new Set([...foldersIn("."), ...foldersIn("src")]);
  // The folders in .gitignore are created by programs, so they do not exist in a clean checkout.
  for (const line of (await Bun.file(".gitignore").text()).split("\n")) {
    folders.delete(line.replaceAll("/", ""));
  }
  let pathCount = 0;
  for (const pattern of DOCUMENTS) {
    for (const name of new Glob(pattern).scanSync()) {
      const document = await Bun.file(name).text();
      pathCount += pathsIn(document, folders).length;
      for (const path of missingFrom(document, folders)) {
        process.stdout.write(`${name}: no file or folder "${path}" at the root or in src\n`);
        process.exitCode = 1;
      }
    }
  }
  // The check must not pass because it found nothing to check.
  if (pathCount === 0) throw new Error("Cannot check the documents: no path found");
}
