/**
 * Checks the rules of the house that no other tool knows: each file says why it exists, stays
 * small, holds nothing unfinished, and has comments as narrow as its code, which the formatter
 * leaves as they are.
 */
import { Glob } from "bun";

const FILE_BYTES_MAX = 24 * 1024;

const COLUMNS_MAX = 100;

/** A line that is comment from its beginning: what marks it, and its text. */
const COMMENT = /^(\s*(?:\/\/|\/\*\*|\*(?!\/)) ?)(.*)$/;

/** Text that is drawn, as tables, bytes of a format and commands are, and cannot be broken. */
const DRAWN = /^ {3}|\S {2,}\S|[─│┌┐└┘├┤┬┴▲▼◄]/;

interface Rule {
  readonly pattern: RegExp;
  readonly advice: string;
}

/** Looked for line by line. The patterns are written so that they do not find themselves. */
const RULES: readonly Rule[] = [
  { pattern: /\bTO[D]O(?!\(#\d+\))/, advice: "add its issue number in round brackets" },
  { pattern: /\b(?:FIX[M]E|XX[X]|HAC[K])\b/, advice: "mend it, or open an issue" },
  { pattern: /\b(?:test|it|describe)\.on[l]y\(/, advice: "let the other tests run too" },
  { pattern: /\bassert\(.*[`]/, advice: "give assert a plain string: it is built on every call" },
  { pattern: /@ts-(?:ign[o]re|noch[e]ck)/, advice: "use @ts-expect-error and say why" },
  { pattern: /^\s*\/\/\s*[-=*#─]{4}/, advice: "no section banners: split the file instead" },
];

/**
 * Lists what is untidy in one file, as "<line>: <what to do>". Tests may be long, since a table of
 * cases is not harder to read for being complete.
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

/** Whether a comment goes beyond the last column, and has a blank before it where it could end. */
function isTooWide(line: string): boolean {
  if (line.length <= COLUMNS_MAX) return false;
  const [, mark = "", text = ""] = COMMENT.exec(line) ?? [];
  if (text === "" || DRAWN.test(text)) return false;
  return /\S /.test(text.slice(0, COLUMNS_MAX + 1 - mark.length).replace(/^[- ]+/, ""));
}

if (import.meta.main) {
  let fileCount = 0;
  for await (const path of new Glob("{src,tests,scripts}/**/*.{ts,mjs}").scan()) {
    fileCount += 1;
    for (const finding of untidyIn(path, await Bun.file(path).text())) {
      process.stdout.write(`${path}:${finding}\n`);
      process.exitCode = 1;
    }
  }
  if (fileCount === 0) throw new Error("Cannot check tidiness: no file found");
}
