/**
 * Implements ts_headline, which returns the part of a text that best matches a query, with the
 * words of the query marked.
 *
 * The part is chosen as in PostgreSQL. A cover is a shortest run of tokens that begins and ends
 * with a query word and matches the query. Without fragments, the headline is the cover with the
 * most query words, extended or cut to between MinWords and MaxWords so that it ends in a token
 * that is neither short nor a number. With fragments, the headline is up to MaxFragments covers,
 * each extended on both sides.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt, type TsQuery, type TsQueryWord, type TsWord } from "../../../types/mod.ts";
import { type SearchConfiguration, wordOfToken } from "./configurations.ts";
import { matchesQuery } from "./query_match.ts";
import { type TextPiece, textPieces } from "./text_parser.ts";

interface HeadlineOptions {
  readonly maxWords: number;
  readonly minWords: number;
  readonly shortWord: number;
  readonly maxFragments: number;
  readonly highlightAll: boolean;
  readonly startSel: string;
  readonly stopSel: string;
  readonly fragmentDelimiter: string;
}

const DEFAULTS: HeadlineOptions = {
  maxWords: 35,
  minWords: 15,
  shortWord: 3,
  maxFragments: 0,
  highlightAll: false,
  startSel: "<b>",
  stopSel: "</b>",
  fragmentDelimiter: " ... ",
};

/** The maximum length in bytes of StartSel, StopSel and FragmentDelimiter, as in PostgreSQL. */
const SIGN_BYTES_MAX = 32_767;

/** The maximum number of token runs to test, which bounds the time for a long text. */
const TESTS_MAX = 20_000;

/** A token or separator of the text, with the query words that it matches. */
interface TextEntry {
  readonly piece: TextPiece;
  readonly found: readonly TsQueryWord[];
  /** The position of the entry in the document, if it is a word. */
  readonly position: number;
}

/** A run of tokens from index `from` to index `to`, inclusive. */
interface TextRun {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the part of a text that best matches a query, with the matching words marked.
 * @throws {DatabaseError} INVALID_VALUE for unknown or contradictory options.
 */
export function headlineOf(
  text: string,
  query: TsQuery | undefined,
  { configuration, options }: { configuration: SearchConfiguration; options: string },
): string {
  const headline = new Headline(text, query, { configuration, ...optionsFrom(options) });
  return headline.text();
}

class Headline {
  readonly #entries: readonly TextEntry[];
  readonly #query: TsQuery | undefined;
  readonly #options: HeadlineOptions;

  constructor(
    text: string,
    query: TsQuery | undefined,
    options: HeadlineOptions & { readonly configuration: SearchConfiguration },
  ) {
    this.#options = options;
    this.#query = query === undefined ? undefined : withoutWeights(query);
    const operands = this.#query === undefined ? [] : wordsOf(this.#query);
    let position = 0;
    this.#entries = Array.from(textPieces(text), (piece): TextEntry => {
      if (piece.token === undefined) return { piece, found: [], position };
      position += 1;
      const word = wordOfToken(piece.token, options.configuration);
      const found = operands.filter(
        (operand) =>
          word !== undefined &&
          (operand.isPrefix ? word.startsWith(operand.word) : word === operand.word),
      );
      return { piece, found, position };
    });
  }

  text(): string {
    const { fragmentDelimiter, highlightAll, startSel, stopSel } = this.#options;
    const runs = this.#runs().toSorted((left, right) => left.from - right.from);
    return runs
      .map(({ from, to }) =>
        this.#entries
          .slice(from, to + 1)
          .map(({ found, piece: { kind, text } }) => {
            if (kind === "compound") return "";
            if (kind === "tag" && !highlightAll) return " ";
            return found.length > 0 ? startSel + text + stopSel : text;
          })
          .join(""),
      )
      .join(fragmentDelimiter);
  }

  #runs(): readonly TextRun[] {
    const { highlightAll, maxFragments } = this.#options;
    if (maxFragments > 0) return this.#fragments();
    if (highlightAll) return [{ from: 0, to: this.#entries.length - 1 }];
    return [this.#best() ?? this.#beginning()];
  }

  /** Returns the first MinWords words of the text, which are the headline if nothing matches. */
  #beginning(): TextRun {
    let count = 0;
    let to = -1;
    while (to + 1 < this.#entries.length && count < this.#options.minWords) {
      to += 1;
      if (this.#isWord(to)) count += 1;
    }
    return { from: 0, to };
  }

  /**
   * Returns the best cover, extended or cut to the requested length; undefined if there is no
   * cover.
   */
  #best(): TextRun | undefined {
    let best: (TextRun & { found: number; isWhole: boolean }) | undefined;
    for (const cover of this.#covers()) {
      const run = this.#fitted(cover);
      const isWhole = run.from <= cover.from && run.to >= cover.to;
      const next = { ...run, isWhole };
      const isBetter =
        best === undefined ||
        (isWhole && !best.isWhole) ||
        (isWhole === best.isWhole &&
          (next.found > best.found ||
            (next.found === best.found && !this.#isBadEnd(next.to) && this.#isBadEnd(best.to))));
      if (isBetter) best = next;
    }
    return best;
  }

  /** Extends or cuts a cover to a length between MinWords and MaxWords. */
  #fitted(cover: TextRun): TextRun & { found: number } {
    const { maxWords, minWords } = this.#options;
    let { from, to } = { from: cover.from, to: cover.from };
    const tally = { words: 0, found: 0 };
    const count = (at: number, by: number): void => {
      if (this.#isWord(at)) tally.words += by;
      if (this.#isFound(at)) tally.found += by;
    };
    let at = cover.from;
    for (; at <= cover.to && tally.words < maxWords; at += 1) {
      count(at, 1);
      to = at;
    }
    if (tally.words < maxWords) {
      for (at -= 1; at < this.#entries.length && tally.words < maxWords; at += 1) {
        if (at > cover.to) count(at, 1);
        to = at;
        if (!this.#isBadEnd(at) && tally.words >= minWords) break;
      }
      if (tally.words < minWords) {
        for (at = cover.from - 1; at >= 0; at -= 1) {
          count(at, 1);
          if (tally.words >= maxWords || (!this.#isBadEnd(at) && tally.words >= minWords)) break;
        }
        from = Math.max(at, 0);
      }
    } else {
      for (at = Math.min(at, cover.to); tally.words > minWords && this.#isBadEnd(at); at -= 1) {
        count(at, -1);
        to = at - 1;
      }
    }
    return { from, to, found: tally.found };
  }

  #fragments(): readonly TextRun[] {
    const { maxFragments, maxWords } = this.#options;
    const parts = [...this.#covers()].flatMap((cover) => this.#partsOf(cover, maxWords));
    const chosen: TextRun[] = [];
    let left = parts;
    while (chosen.length < maxFragments && left.length > 0) {
      const best = left.reduce((one, other) => {
        const isBetter =
          other.found > one.found || (other.found === one.found && other.words < one.words);
        return isBetter ? other : one;
      });
      const run = this.#stretched(best, chosen);
      chosen.push(run);
      left = left.filter((each) => each !== best && (each.to < run.from || each.from > run.to));
    }
    return chosen.length === 0 ? [this.#beginning()] : chosen;
  }

  /** Divides a cover into parts of at most MaxWords words that begin and end with query words. */
  #partsOf(cover: TextRun, maxWords: number): (TextRun & { found: number; words: number })[] {
    const parts: (TextRun & { found: number; words: number })[] = [];
    for (let from = cover.from; from <= cover.to; ) {
      while (from < cover.to && !this.#isFound(from)) from += 1;
      let words = 0;
      let found = 0;
      let end = from;
      for (; end <= cover.to && words < maxWords; end += 1) {
        if (this.#isWord(end)) words += 1;
        if (this.#isFound(end)) found += 1;
      }
      let to = cover.to;
      if (cover.to > end) {
        for (to = end; to > from && !this.#isFound(to); to -= 1) if (this.#isWord(to)) words -= 1;
      }
      parts.push({ from, to, found, words });
      from = to + 1;
    }
    return parts;
  }

  /**
   * Extends a part of a cover on both sides to MaxWords words, without overlapping parts chosen
   * earlier.
   */
  #stretched(
    { from, to, words: given }: TextRun & { words: number },
    chosen: readonly TextRun[],
  ): TextRun {
    const { maxWords } = this.#options;
    let words = given;
    if (words >= maxWords) return { from, to };
    const isFree = (at: number): boolean => !chosen.some((run) => at >= run.from && at <= run.to);
    const stretchMax = Math.floor((maxWords - words) / 2);
    let start = from;
    for (let stretch = 0; start > 0 && stretch < stretchMax && isFree(start - 1); ) {
      start -= 1;
      if (!this.#isWord(start)) continue;
      words += 1;
      stretch += 1;
    }
    for (; start < from && this.#isBadEnd(start); start += 1) if (this.#isWord(start)) words -= 1;
    let end = to;
    while (end + 1 < this.#entries.length && words < maxWords && isFree(end + 1)) {
      end += 1;
      if (this.#isWord(end)) words += 1;
    }
    while (end > to && this.#isBadEnd(end)) end -= 1;
    return { from: start, to: end };
  }

  /** Yields the shortest token runs that match the query, ordered by their start. */
  *#covers(): Generator<TextRun> {
    const query = this.#query;
    if (query === undefined) return;
    const { maxFragments, maxWords } = this.#options;
    const lengthMax = Math.max(maxWords * 10, 100) * Math.max(maxFragments, 1);
    const places = this.#entries.flatMap(({ found }, at) => (found.length > 0 ? [at] : []));
    let tests = 0;
    for (const [i, from] of places.entries()) {
      for (let j = i; j < places.length; j += 1) {
        const to = places[j] ?? from;
        if (j > i && to - from >= lengthMax) break;
        tests += 1;
        if (tests > TESTS_MAX) return;
        if (!this.#matches(query, { from, to })) continue;
        yield { from, to };
        break;
      }
    }
  }

  #matches(query: TsQuery, { from, to }: TextRun): boolean {
    const run = this.#entries.slice(from, to + 1);
    return matchesQuery(
      {
        wordsFor: (operand): readonly TsWord[] => {
          const positions = run.flatMap(({ found, position }) =>
            found.includes(operand) ? [{ at: position, weight: 0 as const }] : [],
          );
          return positions.length === 0 ? [] : [{ word: operand.word, positions }];
        },
      },
      query,
    );
  }

  #isFound(at: number): boolean {
    return (this.#entries[at]?.found.length ?? 0) > 0;
  }

  /**
   * Whether an entry of the text counts as a word. A compound does not, because its parts are
   * counted.
   */
  #isWord(at: number): boolean {
    const kind = this.#entries[at]?.piece.kind;
    return kind !== undefined && kind !== "space" && kind !== "tag" && kind !== "compound";
  }

  /**
   * Whether a headline should not end with an entry because it is a number, short, or not a word.
   */
  #isBadEnd(at: number): boolean {
    const entry = this.#entries[at];
    if (entry === undefined || entry.found.length > 0) return false;
    const { kind, text } = entry.piece;
    const isEnd = kind === "word" || kind === "other";
    return !isEnd || Buffer.byteLength(text) <= this.#options.shortWord;
  }
}

function withoutWeights(query: TsQuery): TsQuery {
  switch (query.kind) {
    case "word":
      return { ...query, weights: 0 };
    case "not":
      return { ...query, operand: withoutWeights(query.operand) };
    default:
      return { ...query, left: withoutWeights(query.left), right: withoutWeights(query.right) };
  }
}

function wordsOf(query: TsQuery): readonly TsQueryWord[] {
  if (query.kind === "word") return [query];
  if (query.kind === "not") return wordsOf(query.operand);
  return [...wordsOf(query.left), ...wordsOf(query.right)];
}

/**
 * Matches a headline option: a name, and a value that is either in double quotes or free of spaces
 * and commas.
 */
const OPTION = /\s*([A-Za-z]\w*)\s*=\s*("(?:[^"]|"")*"|[^\s,]+)\s*(?:,|$)/y;
const TRUE = /^(?:1|on|true|t|y|yes)$/i;

/** Parses headline options, such as `MaxWords = 10, StartSel = <em>`. @throws {DatabaseError} */
function optionsFrom(text: string): HeadlineOptions {
  let options = DEFAULTS;
  for (OPTION.lastIndex = 0; OPTION.lastIndex < text.trimEnd().length; ) {
    const [, name = "", given = ""] = OPTION.exec(text.trimEnd()) ?? [];
    if (name === "")
      throw invalid(
        `Cannot read ${excerpt(text)} as headline options: they must have the form name = value`,
      );
    const value = given.startsWith('"') ? given.slice(1, -1).replaceAll('""', '"') : given;
    options = withOption(options, name, value);
  }
  const { highlightAll, maxFragments, maxWords, minWords, shortWord } = options;
  if (highlightAll) return options;
  if (minWords >= maxWords || minWords <= 0 || shortWord < 0 || maxFragments < 0) {
    throw invalid(
      "Cannot create a headline: MinWords must be positive and less than MaxWords, and the " +
        "other numbers must not be negative",
    );
  }
  return options;
}

const KEYS = Object.keys(DEFAULTS) as (keyof HeadlineOptions)[];

function withOption(options: HeadlineOptions, name: string, value: string): HeadlineOptions {
  const key = KEYS.find((each) => each.toLowerCase() === name.toLowerCase());
  if (key === undefined)
    throw invalid(`Cannot use the headline option ${excerpt(name)}: it does not exist`);
  switch (typeof DEFAULTS[key]) {
    case "boolean":
      return { ...options, [key]: TRUE.test(value) };
    case "number":
      if (!/^[+-]?\d{1,9}$/.test(value)) {
        throw invalid(
          `Cannot set the headline option ${name} to ${excerpt(value)}: it must be an integer`,
        );
      }
      return { ...options, [key]: Number(value) };
    default:
      if (Buffer.byteLength(value) > SIGN_BYTES_MAX) {
        throw invalid(
          `Cannot set the headline option ${name} to a value of ${Buffer.byteLength(value)} ` +
            `bytes: the maximum is ${SIGN_BYTES_MAX}`,
        );
      }
      return { ...options, [key]: value };
  }
}

function invalid(message: string): DatabaseError {
  return new DatabaseError("INVALID_VALUE", message, {
    hint: "an example is 'MaxWords = 20, MinWords = 5, StartSel = <em>, StopSel = </em>'",
  });
}
