/**
 * The text search configurations. A configuration decides which words of a text are kept, and in
 * which form.
 *
 * `simple` keeps every token in lower case. `english` removes stop words and reduces all other
 * words to their stems.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt, TS_POSITION_MAX, TS_WORD_BYTES_MAX } from "../../../types/mod.ts";
import { englishStem } from "./english_stemmer.ts";
import { type SearchToken, searchTokens } from "./text_parser.ts";

export type SearchConfiguration = "simple" | "english";

const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself " +
    "she her hers herself it its itself they them their theirs themselves what which who whom " +
    "this that these those am is are was were be been being have has had having do does did " +
    "doing a an the and but if or because as until while of at by for with about against between " +
    "into through during before after above below to from up down in out on off over under again " +
    "further then once here there when where why how all any both each few more most other some " +
    "such no nor not only own same so than too very s t can will just don should now"
  ).split(" "),
);

/** The text search configuration for calls that do not name one. */
export const DEFAULT_CONFIGURATION: SearchConfiguration = "english";

/**
 * Returns the text search configuration with the given name. @throws {DatabaseError}
 * OBJECT_NOT_FOUND
 */
export function configurationOf(name: string): SearchConfiguration {
  const known = name
    .trim()
    .toLowerCase()
    .replace(/^pg_catalog\./, "");
  if (known === "simple" || known === "english") return known;
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot use the text search configuration ${excerpt(name)}: it does not exist`,
    { hint: "the available configurations are 'simple' and 'english'" },
  );
}

/** A token of a document, and the word to which a configuration reduces it. */
export interface FoundWord {
  readonly token: SearchToken;
  /** The word; undefined for a stop word, which counts as a position but is not kept. */
  readonly word: string | undefined;
  /** The position of the word in the text, counted from 1, at most TS_POSITION_MAX. */
  readonly position: number;
}

/** Yields the words of a text. Words that are too long for a tsvector are skipped. */
export function* foundWords(
  text: string,
  configuration: SearchConfiguration,
): Generator<FoundWord> {
  let position = 0;
  for (const token of searchTokens(text)) {
    const lower = token.text.toLowerCase();
    const isLong = lower.length * 3 > TS_WORD_BYTES_MAX;
    if (isLong && Buffer.byteLength(lower) > TS_WORD_BYTES_MAX) continue;
    position += 1;
    const word = wordOfToken(token, configuration);
    yield { token, word, position: Math.min(position, TS_POSITION_MAX) };
  }
}

/** Returns the word to which a configuration reduces a token; undefined for a stop word. */
export function wordOfToken(
  { kind, text }: Pick<SearchToken, "kind" | "text">,
  configuration: SearchConfiguration,
): string | undefined {
  const lower = text.toLowerCase();
  return configuration === "english" && kind === "word" ? stemmed(lower) : lower;
}

/** The names of PostgreSQL's dictionaries, with the configurations that use them. */
const DICTIONARIES: ReadonlyMap<string, SearchConfiguration> = new Map([
  ["simple", "simple"],
  ["english_stem", "english"],
]);

/**
 * Returns the words that a dictionary produces from a token; an empty list for a stop word.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND
 */
export function wordsOfDictionary(name: string, text: string): readonly string[] {
  const configuration = DICTIONARIES.get(name.trim().replace(/^pg_catalog\./, ""));
  if (configuration === undefined) {
    throw new DatabaseError(
      "OBJECT_NOT_FOUND",
      `Cannot find the text search dictionary ${excerpt(name)}`,
      { hint: "the available dictionaries are simple and english_stem" },
    );
  }
  const word = wordOfToken({ kind: "word", text }, configuration);
  return word === undefined ? [] : [word];
}

function stemmed(word: string): string | undefined {
  return STOP_WORDS.has(word) ? undefined : englishStem(word);
}
