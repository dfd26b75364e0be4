/**
 * Checks that the files and folders that the documents name are there, so that who follows a name
 * after something has moved does not look in vain.
 *
 * A path begins at the root or at `src/`. Of text between backticks, every word that begins with a
 * folder of either, or ends like a file of code, is one; of a drawing, only the former, since it
 * may shorten names. Braces stand for each of their parts, and `mod.ts` for that of any folder.
 */
import { readdirSync } from "node:fs";
import { Glob } from "bun";

const DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/** A drawing or code; otherwise what stands in a line. */
const QUOTED = /^```[^\n]*\n([\s\S]*?)^```|`([^`]+)`/gm;

const WORD = /^[\w.*{},-]+(?:\/[\w.*{},-]+)*\/?$/;

/**
 * Lists the paths that a document names, braces expanded. `folders` are those a path begins with.
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

/** Lists those that lead nowhere. */
export function missingFrom(document: string, folders: ReadonlySet<string>): string[] {
  return pathsIn(document, folders).filter((path) => !isThere(path));
}

/** Whether a path, with or without the ending of its file, is there. */
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
  const folders = new Set([...foldersIn("."), ...foldersIn("src")]);
  for (const name of DOCUMENTS) {
    const document = await Bun.file(name).text();
    // A checker that finds nothing to check must not pass.
    if (pathsIn(document, folders).length === 0) throw new Error(`Cannot check ${name}: no path`);
    for (const path of missingFrom(document, folders)) {
      process.stdout.write(`${name}: no file or folder "${path}" at the root or in src\n`);
      process.exitCode = 1;
    }
  }
}
