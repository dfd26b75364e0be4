/**
 * Checks that comments, documents and messages consist of whole sentences. A sentence without a
 * main clause ("Of a row, its place.", "Who may read it.") makes sense only to a reader who
 * already knows the code.
 *
 * The check does not parse grammar, so it looks at how sentences begin rather than at their
 * clauses. It ignores questions, code, drawings and table cells. A prefix limits the report to
 * some folders; `--list` prints every hit even while the count is within its bound.
 */
import { Glob } from "bun";
import { flag, readArguments } from "../support/arguments.ts";

/** The maximum share of sentences that may open without a main clause. */
const OPENINGS_SHARE_MAX = 0.01;

const FILES = [
  "{src,tests,scripts}/**/*.{ts,mjs}",
  "ui/src/**/*.{ts,tsx}",
  "*.md",
  "{docs,examples}/**/*.md",
];

/** The test file of this check. It quotes faulty sentences, so the check must not read it. */
const PLANTED = "tests/scripts/check_test.ts";

/** The relative words that must never open a sentence other than a question. */
const RELATIVE = /^(?:(?:And|But|Or) )?(?:[Ww]hat|[Ww]ho|[Ww]hom|[Ww]hose|[Ww]hich)(?:ever)?\b/;

/**
 * Matches "Those" as a noun: "Those of a table" and "Those that fail" have no clear subject,
 * whereas "Those rows are gone" names its subject.
 */
const THOSE = /^Those (?:of|that|which|who|whom|whose|in|with|without|for|to|from|by|at|on|it)\b/;

/**
 * Matches "Of" at the beginning of a sentence. Only a partitive such as "Of the three, one is
 * kept" is acceptable, because it divides a set that has been named.
 */
const OF = /^Of\b(?! course\b)/;
const PARTITIVE = /^Of (?:the|these|those|all|both|its|their|our|two|three)\b/;

/**
 * Matches subordinate openings. A sentence may begin with one only if a main clause follows after
 * a comma.
 */
const SUBORDINATE =
  /^(?:Where|As(?! (?:many|much|few|long|soon|far)\b)|With|Without|So that|So as|For wh(?:o|om|at|ich)|Because|Than|Like|Unlike|Except)\b/;

/**
 * The start of a main clause: a comma or colon and two words, the first of which must not continue
 * a list or begin another subordinate clause.
 */
const MAIN_CLAUSE = /[,:] (?!(?:and|or|nor|which|who|whose|where|as|so|but not|not) )\S+ \S+/;

/**
 * Matches phrases that do not make clear which person or thing they refer to, wherever they occur
 * in a sentence.
 */
const PHRASES: readonly RegExp[] = [
  /\b(?:[Ff]or|[Tt]o|[Bb]y|[Oo]f|[Ff]rom|[Ww]ith|than|like) who\b/,
  /\bthose of (?:whom|who|which|what)\b/i,
  /\bh(?:ang|angs|anging|ung) on\b(?! to)/i,
  /\b(?:can|could) be that\b/i,
];

/** Matches the comments, strings and regular expressions of a source file, in reading order. */
const TOKENS =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|(?<=(?:[(,=:[!&|?{};>]|\breturn)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g;

/** Matches text in a fixed layout, such as tables, byte formats and commands. */
const DRAWN = /^ {3}|\S {3,}\S|[─│┌┐└┘├┤┬┴▲▼◄→]|^\s*\|/;

const ITEM = /^\s*(?:[-*]|\d+[.)]|\(\d+\)) +|^#+ +/;
const TAG = /^@(?:param \S+|\w+(?: \{[^}]*\})*) */;

export interface Sentence {
  readonly line: number;
  readonly text: string;
}

export interface Hit extends Sentence {
  readonly kind: "opening" | "phrase";
}

/**
 * Splits the prose of a file into sentences. A name that ends in `.md` marks a document, in which
 * all text is prose; in a source file, only comments and messages are.
 */
export function sentencesIn(path: string, source: string): Sentence[] {
  if (path.endsWith(".md")) return sentencesOf(withoutFences(source).split("\n"), 1);
  const found: Sentence[] = [];
  const lineOf = lineCounter(source);
  let comment: string[] = [];
  let commentLine = 0;
  for (const { 0: token, index } of source.matchAll(TOKENS)) {
    const line = lineOf(index);
    const goesOn = token.startsWith("//") && line === commentLine + comment.length;
    if (comment.length > 0 && !goesOn) {
      found.push(...sentencesOf(comment, commentLine));
      comment = [];
    }
    if (token.startsWith("//")) {
      if (comment.length === 0) commentLine = line;
      comment.push(token.replace(/^\/\/+ ?/, ""));
    } else if (token.startsWith("/*")) {
      found.push(...sentencesOf(linesOfBlock(token), line));
    } else if (!token.startsWith("/")) {
      const isTestName = /\b(?:test|it|describe)(?:\.\w+(?:\([^)]*\))?)?\(\s*$/.test(
        source.slice(Math.max(0, index - 80), index),
      );
      found.push(...sentencesOfMessage(token.slice(1, -1), line, isTestName));
    }
  }
  return [...found, ...sentencesOf(comment, commentLine)];
}

/**
 * Returns a function that maps an offset to its line number. It must be called with ascending
 * offsets.
 */
function lineCounter(source: string): (offset: number) => number {
  let line = 1;
  let at = 0;
  return (offset) => {
    for (; at < offset; at += 1) if (source.charCodeAt(at) === 10) line += 1;
    return line;
  };
}

function linesOfBlock(token: string): string[] {
  const inner = token.replace(/^\/\*+/, "").replace(/\s*\*+\/$/, "");
  return inner.split("\n").map((line) => line.replace(/^\s*\* ?|^ /, ""));
}

/** Blanks the lines of code blocks, so that all other lines keep their numbers. */
function withoutFences(document: string): string {
  return document.replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]+/g, ""));
}

/** Joins lines into paragraphs, and splits the paragraphs into sentences. */
function sentencesOf(lines: readonly string[], firstLine: number): Sentence[] {
  const found: Sentence[] = [];
  let paragraph: { line: number; text: string }[] = [];
  function end(): void {
    found.push(...splitParagraph(paragraph));
    paragraph = [];
  }
  for (const [index, raw] of lines.entries()) {
    const isDrawn = DRAWN.test(raw);
    const begins = ITEM.test(raw) || TAG.test(raw);
    if (raw.trim() === "" || isDrawn || begins) end();
    if (raw.trim() === "" || isDrawn) continue;
    const text = capitalized(raw.replace(ITEM, "").replace(TAG, ""), begins);
    paragraph.push({ line: firstLine + index, text });
  }
  end();
  return found;
}

function splitParagraph(parts: readonly { line: number; text: string }[]): Sentence[] {
  const found: Sentence[] = [];
  let open: { line: number; text: string } | undefined;
  for (const { line, text } of parts) {
    const pieces = withoutCode(text.trim()).split(/(?<=[.!?]["')*_]*) +(?=[A-Z`"(*_])/);
    for (const piece of pieces) {
      if (open !== undefined && !/[.!?]["')*_]*$/.test(open.text)) open.text += ` ${piece}`;
      else {
        if (open !== undefined) found.push(open);
        open = { line, text: piece };
      }
    }
  }
  if (open !== undefined && open.text !== "") found.push(open);
  return found;
}

/**
 * Replaces each piece of code in a sentence with a single word, so that code does not affect the
 * rules for openings.
 */
function withoutCode(text: string): string {
  return text.replace(/`[^`]*`/g, "`it`").replace(/\b(?:e\.g|i\.e|etc|vs)\./g, "$&,");
}

/**
 * Returns the sentences of a message: a string of at least three words that begins like a
 * sentence.
 */
function sentencesOfMessage(raw: string, line: number, isTestName: boolean): Sentence[] {
  const text = raw.replace(/\$\{[^}]*\}/g, "it").replace(/\\n[\s\S]*$/, "");
  const isProse = isTestName || /^[A-Z][a-z]*['’]?[a-z]* [a-z`"]/.test(text);
  if (text.split(/\s+/).length < 3) return [];
  if (!isProse) return PHRASES.some((phrase) => phrase.test(text)) ? [{ line, text }] : [];
  return splitParagraph([{ line, text: capitalized(text, isTestName) }]);
}

function capitalized(text: string, wanted: boolean): string {
  return wanted ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
}

/** Returns true if a sentence opens with a relative or subordinate word and has no main clause. */
export function isHeadless(sentence: string): boolean {
  const text = sentence.replace(/^["'(*_]+/, "");
  if (/\?["')*_]*$/.test(text)) return false;
  if (RELATIVE.test(text) || THOSE.test(text)) return true;
  const outside = text.replace(/\([^)]*\)/g, "");
  if (OF.test(text)) return !(PARTITIVE.test(text) && MAIN_CLAUSE.test(outside));
  return SUBORDINATE.test(text) && !MAIN_CLAUSE.test(outside);
}

/** Lists the sentences of a file that open without a main clause, and its unclear phrases. */
export function hitsIn(sentences: readonly Sentence[]): Hit[] {
  return sentences.flatMap((sentence): Hit[] => [
    ...(isHeadless(sentence.text) ? [{ ...sentence, kind: "opening" as const }] : []),
    ...(PHRASES.some((phrase) => phrase.test(sentence.text))
      ? [{ ...sentence, kind: "phrase" as const }]
      : []),
  ]);
}

async function main(): Promise<void> {
  const { options, words: prefixes } = readArguments(
    { list: flag("lists all findings, even if their number is allowed") },
    { form: "<path prefix> …", about: "the files to check; by default all", countMin: 0 },
  );
  const lines: string[] = [];
  const counts = { sentence: 0, opening: 0, phrase: 0 };
  for (const pattern of FILES) {
    for await (const path of new Glob(pattern).scan()) {
      if (path === PLANTED) continue;
      if (prefixes.length > 0 && !prefixes.some((prefix) => path.startsWith(prefix))) continue;
      const sentences = sentencesIn(path, await Bun.file(path).text());
      counts.sentence += sentences.length;
      for (const { kind, line, text } of hitsIn(sentences)) {
        counts[kind] += 1;
        lines.push(`${path}:${line}: ${kind}: ${text}`);
      }
    }
  }
  // The check must not pass because it found nothing to check.
  if (counts.sentence === 0) throw new Error("Cannot check the language: no sentence found");
  const openingsMax = OPENINGS_SHARE_MAX * counts.sentence;
  const passes = counts.opening <= openingsMax && counts.phrase === 0;
  if (!passes || options.list)
    process.stdout.write(
      `${lines.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true })).join("\n")}\n`,
    );
  const share = ((100 * counts.opening) / counts.sentence).toFixed(1);
  process.stdout.write(
    `${counts.sentence} sentences, ${counts.opening} headless openings (${share} %), ` +
      `${counts.phrase} phrases\n`,
  );
  process.exitCode = passes ? 0 : 1;
}

if (import.meta.main) await main();
