/**
 * Splits a text into tokens for text search: words, compound words, numbers, hosts, addresses and
 * paths. HTML tags and entities are skipped.
 *
 * The kinds of tokens and their boundaries are those of PostgreSQL's default parser. At each
 * position, the first pattern that matches wins. No match begins within a word.
 */

export type SearchTokenKind =
  /** A word without digits, or a part of a compound word. */
  | "word"
  /**
   * Any other token: a number, a host, a path or a word with digits. Its text is unchanged except
   * for case.
   */
  | "other";

export interface SearchToken {
  readonly kind: SearchTokenKind;
  readonly text: string;
  /** The start of the token in the text, in UTF-16 code units. */
  readonly start: number;
}

/** A segment of a text: a token, or the text between two tokens. */
export interface TextPiece {
  /**
   * - word, number, other: a token
   * - compound: a token whose parts follow
   * - tag: an HTML tag or comment
   * - mark: an entity or a protocol
   * - space: any other text
   */
  readonly kind: "word" | "number" | "other" | "compound" | "tag" | "mark" | "space";
  readonly text: string;
  /** The token; absent for a segment that searches skip. */
  readonly token?: SearchToken;
}

/**
 * All repetitions are bounded, so that no pattern can scan the whole rest of a text at each
 * position.
 */
const LABEL = String.raw`[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?`;
const HOST = String.raw`(?:${LABEL}\.){1,20}[A-Za-z]{2,63}(?![\p{L}\p{N}])(?::\d+)?`;
const LETTER = String.raw`[\p{L}\p{M}]`;
const CHARACTER = String.raw`[\p{L}\p{M}\p{N}]`;
const TAG_NAME = String.raw`[/?!]?[A-Za-z][A-Za-z0-9._-]{0,100}(?::[A-Za-z0-9]{1,100})?(?=[\s/>?])`;
const TAG = String.raw`<${TAG_NAME}(?:"[^"]{0,1000}"|'[^']{0,1000}'|[\w\s=#/:.&?%~-])*>`;
const MAILBOX = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?`;
const MAIL_HOST = String.raw`(?:[A-Za-z0-9_-]{1,63}\.){1,20}[A-Za-z]{2,63}(?![A-Za-z0-9])`;
const PATH = String.raw`\/[^\s"<>\\^\x60{|}]+`;
const FILE_START = String.raw`(?:\/\.?|~|[A-Za-z][A-Za-z0-9]{0,100}[./]|\d[A-Za-z0-9]{0,100}\/)(?=[A-Za-z0-9_])`;
const FILE = String.raw`${FILE_START}[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*`;
const WORD_WITH_LETTER = String.raw`(?=\p{N}*${LETTER})${CHARACTER}+`;

type TokenReading = "skip" | "word" | "other" | "url" | "compound";

const PATTERNS: readonly (readonly [pattern: RegExp, reading: TokenReading])[] = (
  [
    [String.raw`<!--[\s\S]{0,1000}?-->|${TAG}`, "skip"],
    [String.raw`&(?:[A-Za-z][A-Za-z0-9]{0,30}|#\d{1,10}|#[xX][0-9a-fA-F]{1,10});`, "skip"],
    [String.raw`[A-Za-z0-9]{1,20}:\/\/`, "skip"],
    [`${MAILBOX}@${MAIL_HOST}`, "other"],
    [HOST + PATH, "url"],
    [HOST, "other"],
    [String.raw`[+-]?\d+(?:\.\d+)?[eE][+-]?\d+(?!${CHARACTER})`, "other"],
    [String.raw`\d+(?:\.\d+){2,}`, "other"],
    [FILE, "other"],
    [String.raw`[+-]?\d+\.\d+(?!\.?\d)`, "other"],
    [String.raw`${WORD_WITH_LETTER}(?:-${WORD_WITH_LETTER})+`, "compound"],
    [`${LETTER}+(?!${CHARACTER})`, "word"],
    [WORD_WITH_LETTER, "other"],
    [String.raw`[+-]?\d+(?!\d|\.\d+\.\d)`, "other"],
  ] as const
).map(([source, reading]) => [new RegExp(source, "uy"), reading]);

const HAS_DIGIT = /\p{N}/u;
const STARTS = /[\p{L}\p{M}\p{N}<&+/~-]/u;

/**
 * Yields the tokens of a text in order. A compound precedes its parts, and an address precedes its
 * host and path.
 */
export function* searchTokens(text: string): Generator<SearchToken> {
  for (let at = 0; at < text.length; ) {
    const found = tokenAt(text, at);
    if (found === undefined) {
      at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
      continue;
    }
    const [matched, reading] = found;
    yield* tokensOf(matched, reading, at);
    at += matched.length;
    // A hyphen after a compound is not the sign of a following number.
    if (reading === "compound" && text[at] === "-") at += 1;
  }
}

const NUMBER = /^[+-]?\d+(?:\.\d+)*(?:[eE][+-]?\d+)?$/;

/**
 * Yields all segments of a text in order. Except for compounds, which are followed by their parts,
 * the segments make up the entire text.
 */
export function* textPieces(text: string): Generator<TextPiece> {
  let spaceFrom = 0;
  for (let at = 0; at < text.length; ) {
    const found = tokenAt(text, at);
    if (found === undefined) {
      at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
      continue;
    }
    if (spaceFrom < at) yield { kind: "space", text: text.slice(spaceFrom, at) };
    const [matched, reading] = found;
    if (reading === "skip") yield { kind: matched.startsWith("<") ? "tag" : "mark", text: matched };
    let end = at;
    for (const token of tokensOf(matched, reading, at)) {
      if (end < token.start) yield { kind: "space", text: text.slice(end, token.start) };
      const isWhole = (reading === "url" || reading === "compound") && token.text === matched;
      const kind = isWhole ? "compound" : NUMBER.test(token.text) ? "number" : token.kind;
      yield { kind, text: token.text, token };
      if (!isWhole) end = token.start + token.text.length;
    }
    at += matched.length;
    spaceFrom = at;
    if (reading === "compound" && text[at] === "-") at += 1;
  }
  if (spaceFrom < text.length) yield { kind: "space", text: text.slice(spaceFrom) };
}

function tokenAt(text: string, at: number): readonly [string, TokenReading] | undefined {
  const code = text.codePointAt(at) ?? 0;
  if (!STARTS.test(String.fromCodePoint(code))) return undefined;
  for (const [pattern, reading] of PATTERNS) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) return [match[0], reading];
  }
  return undefined;
}

function* tokensOf(text: string, reading: TokenReading, start: number): Generator<SearchToken> {
  switch (reading) {
    case "skip":
      return;
    case "url": {
      const slash = text.indexOf("/");
      yield { kind: "other", text, start };
      yield { kind: "other", text: text.slice(0, slash), start };
      yield { kind: "other", text: text.slice(slash), start: start + slash };
      return;
    }
    case "compound": {
      yield { kind: HAS_DIGIT.test(text) ? "other" : "word", text, start };
      let at = start;
      for (const part of text.split("-")) {
        yield { kind: HAS_DIGIT.test(part) ? "other" : "word", text: part, start: at };
        at += part.length + 1;
      }
      return;
    }
    case "word":
      yield { kind: "word", text, start };
      return;
    default:
      yield { kind: "other", text, start };
  }
}
