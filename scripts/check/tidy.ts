/**
 * Checks project rules that no other tool covers. Each file has a header that says why the file
 * exists, is short enough, contains nothing unfinished, and has comments no wider than its code,
 * because the formatter does not wrap comments. Each type in `src` has a unique name. Tests that
 * inject faults quote lines of source code, and those lines must exist.
 */
import { Glob } from "bun";
import { stalePlantedFaults } from "../../tests/campaigns/fuzz_live/planted_faults.ts";
import { staleReaderFaults } from "../../tests/campaigns/readers/faults.ts";
import { staleFaults } from "../../tests/support/injected_faults.ts";
import { readOptions } from "../support/arguments.ts";

const FILE_BYTES_MAX = 40 * 1024;

const COLUMNS_MAX = 100;

/**
 * Matches a line that contains only a comment. The groups are the comment's marker and its text.
 */
const COMMENT = /^(\s*(?:\/\/|\/\*\*|\*(?!\/)) ?)(.*)$/;

/**
 * Matches text in a fixed layout, such as tables, byte formats and commands, which cannot be
 * wrapped.
 */
const DRAWN = /^ {3}|\S {2,}\S|[─│┌┐└┘├┤┬┴▲▼◄]/;

interface Rule {
  readonly pattern: RegExp;
  readonly advice: string;
}

/**
 * The rules, each of which applies to single lines. The patterns are written so that they do not
 * match themselves.
 */
const RULES: readonly Rule[] = [
  { pattern: /\bTO[D]O(?!\(#\d+\))/, advice: "add its issue number in round brackets" },
  { pattern: /\b(?:FIX[M]E|XX[X]|HAC[K])\b/, advice: "fix it, or open an issue" },
  {
    pattern: /\b(?:test|it|describe)\.on[l]y\(/,
    advice: "remove it, so that the other tests run too",
  },
  { pattern: /\bassert\(.*[`]/, advice: "give assert a plain string: it is built on every call" },
  { pattern: /@ts-(?:ign[o]re|noch[e]ck)/, advice: "use @ts-expect-error and say why" },
  { pattern: /^\s*\/\/\s*[-=*#─]{4}/, advice: "no section banners: split the file instead" },
];

/**
 * Lists the faults of a file, as "<line>: <what to do>". Tests may be long, because a complete
 * table of cases is no harder to read.
 */
export function untidyIn(path: string, source: string): string[] {
  const found: string[] = [];
  if (!/^(?:#!.*\n)?\/\*\*/.test(source)) found.push("1: begin with /** why this file exists */");
  const isBounded = !path.startsWith("tests/");
  if (isBounded && source.length > FILE_BYTES_MAX)
    found.push(`1: split it: over ${FILE_BYTES_MAX} bytes`);
  for (const [index, line] of source.split("\n").entries()) {
    for (const { pattern, advice } of RULES) {
      if (pattern.test(line)) found.push(`${index + 1}: ${advice}`);
    }
    if (isTooWide(line)) found.push(`${index + 1}: break the comment at ${COLUMNS_MAX} columns`);
  }
  return found;
}

/**
 * Returns true if a comment line is too wide and contains an earlier space at which it could be
 * wrapped.
 */
function isTooWide(line: string): boolean {
  if (line.length <= COLUMNS_MAX) return false;
  const [, mark = "", text = ""] = COMMENT.exec(line) ?? [];
  if (text === "" || DRAWN.test(text)) return false;
  return /\S /.test(text.slice(0, COLUMNS_MAX + 1 - mark.length).replace(/^[- ]+/, ""));
}

/** Matches a type declaration at the top level of a file. */
const TYPE = /^(?:export )?(?:abstract )?(?:type|interface|class) (\w+)/gm;

/**
 * Lists the type names that several files declare, as "<name>: <paths>". A reader who encounters a
 * type name should not have to find out which declaration it refers to.
 */
export function repeatedTypes(sources: ReadonlyMap<string, string>): string[] {
  const pathsByName = new Map<string, Set<string>>();
  for (const [path, source] of sources) {
    for (const [, name = ""] of source.matchAll(TYPE)) {
      pathsByName.set(name, (pathsByName.get(name) ?? new Set()).add(path));
    }
  }
  return [...pathsByName]
    .filter(([, paths]) => paths.size > 1)
    .map(
      ([name, paths]) =>
        `the type ${name} needs a different name in each of ${[...paths].join(", ")}`,
    );
}

if (import.meta.main) {
  readOptions({});
  let fileCount = 0;
  const sources = new Map<string, string>();
  for await (const path of new Glob("{src,tests,scripts}/**/*.{ts,mjs}").scan()) {
    fileCount += 1;
    const source = await Bun.file(path).text();
    if (path.startsWith("src/")) sources.set(path, source);
    for (const finding of untidyIn(path, source)) {
      process.stdout.write(`${path}:${finding}\n`);
      process.exitCode = 1;
    }
  }
  for (const finding of [
    ...repeatedTypes(sources),
    ...staleFaults(),
    ...staleReaderFaults(),
    ...stalePlantedFaults(),
  ]) {
    process.stdout.write(`${finding}\n`);
    process.exitCode = 1;
  }
  if (fileCount === 0) throw new Error("Cannot check tidiness: no file found");
}
