/**
 * Computes the keys of text under nondeterministic collations: two strings have the same key if,
 * and only if, the collation considers them equal.
 *
 * The runtime does not offer ICU's own sort keys, only its comparison. A key is therefore a
 * representative of all strings that are equal: each character is replaced by the first character,
 * by code point, that ICU considers equal to it, by the characters that it is composed of, or by
 * nothing if the collation ignores it. The comparison decides about each replacement of a
 * character, and about each key as a whole.
 *
 *     secondary strength     "Straße"  →  "STRAßE"      "ﬁx"  →  "FIX"      "あア"  →  "ああ"
 *     primary strength       "Straße"  →  "STRASSE"     "Crème"  →  "CREME"
 *
 * Replacing characters one by one is exact only if no sequence of characters has a weight of its
 * own. This holds for the root collation, except for the vowels of Thai, Lao and Tai Viet that are
 * written before their consonant: ICU compares them the same way before and after it. The key of a
 * key is the key itself, so keys and other strings can be compared by their keys. Languages that
 * add sequences of their own can be used only with deterministic collations.
 */
import { DatabaseError } from "../base/errors.ts";
import type { IcuRules } from "./collation.ts";
import { normalized, withSortedMarks } from "./normalized_text.ts";

/** The languages that compare text by the root collation. */
const ROOT_LANGUAGES: ReadonlySet<string> = new Set([
  "de",
  "en",
  "fr",
  "ga",
  "id",
  "it",
  "ms",
  "nl",
  "pt",
  "sw",
  "zu",
]);

/** Returns the reason why a collation with these rules has no keys; undefined if it has keys. */
export function reasonAgainstKeys({ ignoresPunctuation, locale }: IcuRules): string | undefined {
  const { baseName, collation, language, numeric, region } = new Intl.Locale(locale);
  if (numeric === true) return "the collation compares digits as numbers";
  if (ignoresPunctuation === true) return "the collation ignores punctuation";
  const isRoot = collation === undefined || collation === "standard";
  const isPlain = ROOT_LANGUAGES.has(language) && !(language === "fr" && region === "CA");
  return isRoot && isPlain
    ? undefined
    : `some letters of the language ${baseName} consist of several characters`;
}

/** Returns the key of a string. @throws {DatabaseError} UNSUPPORTED_FEATURE */
export function collationKeyOf(rules: IcuRules, collator: Intl.Collator, text: string): string {
  const { sensitivity } = rules;
  let letters = tables.get(sensitivity);
  if (letters === undefined) {
    letters = new LetterTable(collator);
    tables.set(sensitivity, letters);
  }
  return letters.keyOf(text);
}

/** The letter tables of the root collation, keyed by sensitivity. */
const tables = new Map<IcuRules["sensitivity"], LetterTable>();

/**
 * A Thai, Lao, New Tai Lue or Tai Viet consonant followed by a vowel that is usually written
 * before it.
 */
const WRITTEN_AFTER =
  /[\u0e01-\u0e2e][\u0e40-\u0e44](?![\u0e01-\u0e2e])|[\u0e81-\u0eae\u0edc-\u0edf][\u0ec0-\u0ec4](?![\u0e81-\u0eae\u0edc-\u0edf])|[\u1980-\u19ab][\u19b5-\u19b7\u19ba](?![\u1980-\u19ab])|[\uaa80-\uaaaf][\uaab5\uaab6\uaab9\uaabb\uaabc](?![\uaa80-\uaaaf])/g;

/** Matches the Catalan letter that consists of two characters, an L and a middle dot. */
const MIDDLE_DOT = /([lL])\u00b7/g;

/**
 * Characters that equal strings not covered by the letter tables: CJK radicals, some of which
 * equal ideographs, and Arabic marks on a space.
 */
const REFUSED = /[\u2e80-\u2ef3\ufc5e-\ufc63]|[\u{16ff0}-\u{16fff}]/u;

/**
 * Matches letters that equal several letters, at least if only differences between letters matter.
 */
const SEQUENCES = new RegExp(
  "^[" +
    "\\u00c6\\u00d8\\u00df\\u00e6\\u00f8\\u0110\\u0111\\u0126\\u0127\\u0141\\u0142\\u0152\\u0153\\u018d" +
    "\\u01be\\u01f1-\\u01f3\\u0238\\u0239\\u02a3-\\u02a5\\u02a7-\\u02ab\\u03cf\\u03d7\\u05ef-\\u05f2" +
    "\\u0675-\\u0678\\u09ce\\u0c5c\\u0c5d\\u0cdd\\u0d4e\\u0d54-\\u0d56\\u0d7a\\u0d7b\\u0d7d-\\u0d7f" +
    "\\u0f00\\u103f\\u16ee-\\u16f0\\u191d\\u191e\\u19de\\u19df\\u1a54\\u1b4c\\u1d7a\\u1dd5-\\u1dd7" +
    "\\u1ded\\u1df0\\u1df2-\\u1df4\\u1e9e\\u1efa\\u1efb\\u2025\\u2026\\u20a7\\u2120\\u2122\\u214d" +
    "\\u2161-\\u2163\\u2165-\\u2168\\u216a\\u216b\\u2171-\\u2173\\u2175-\\u2178\\u217a\\u217b" +
    "\\u2469-\\u2473\\u2488-\\u249b\\u24eb-\\u24f4\\u24fe\\u2ce4\\u2df5\\u3006\\u3032\\u3034\\u303c" +
    "\\u309f\\u30ff\\u324a-\\u324f\\u3251-\\u3259\\u325b-\\u325f\\u32b1-\\u32b4\\u32b6-\\u32be" +
    "\\u32c0-\\u32c8\\u32ca\\u32cb\\u3300-\\u331f\\u3321-\\u3342\\u3344-\\u3346\\u3349-\\u334f" +
    "\\u3351-\\u3353\\u3355\\u3357\\u3362-\\u3370\\u3373\\u3378-\\u337a\\u3385-\\u3387\\u3392-\\u3394" +
    "\\u33ab\\u33ac\\u33b9\\u33bf\\u33c8\\u33cb\\u33cd\\u33ce\\u33d7\\u33da\\u33e0-\\u33e8" +
    "\\u33ea-\\u33f2\\u33f4-\\u33fc\\u33fe\\ua613-\\ua61f\\ua676\\ua728\\ua729\\ua732-\\ua73d\\ua74e" +
    "\\ua74f\\ua760\\ua761\\ua7a0-\\ua7a9\\ua7c0\\ua7c1\\uab66\\uab67\\ufb00-\\ufb06\\ufbdd\\ufbea" +
    "\\ufbeb\\ufbee-\\ufbfb\\ufc00-\\ufc02\\ufc04-\\ufc5a\\ufc64-\\ufc67\\ufc69-\\ufc8f\\ufc91-\\ufcd8" +
    "\\ufcda-\\ufcf1\\ufcf5-\\ufd3b\\ufd3d\\ufd50-\\ufd57\\ufd59\\ufd5c-\\ufd5e\\ufd60-\\ufd63\\ufd66" +
    "\\ufd68\\ufd69\\ufd6b-\\ufd6e\\ufd70\\ufd72\\ufd73\\ufd76\\ufd77\\ufd79\\ufd7d\\ufd7f" +
    "\\ufd81-\\ufd84\\ufd86\\ufd88-\\ufd8f\\ufd93-\\ufd96\\ufd98\\ufd99\\ufd9c-\\ufda2\\ufda6" +
    "\\ufda8-\\ufdac\\ufdae\\ufdaf\\ufdb3-\\ufdb5\\ufdb8-\\ufdbb\\ufdbd-\\ufdc0\\ufdc2-\\ufdc7\\ufdf4" +
    "\\ufdf7\\ufdf9\\ufdfc\\ufef5-\\ufefc\\u{10780}\\u{10787}-\\u{1078a}\\u{10790}\\u{10799}" +
    "\\u{1079a}\\u{107ab}-\\u{107ae}\\u{10f27}\\u{10ff6}\\u{1df12}\\u{1df17}\\u{1df19}\\u{1df1c}" +
    "\\u{1f100}\\u{1f12d}\\u{1f12e}\\u{1f14a}\\u{1f14c}\\u{1f14d}\\u{1f14f}\\u{1f16a}-\\u{1f16c}" +
    "\\u{1f18b}-\\u{1f19b}\\u{1f19d}-\\u{1f1a4}\\u{1f1a6}\\u{1f1a7}\\u{1f1aa}-\\u{1f1ac}\\u{1f200}" +
    "\\u{1f201}" +
    "]$",
  "u",
);

/**
 * Ranges of characters that equal no other character, each given by its first and last code point:
 * ideographs, Hangul syllables, surrogates and private-use characters.
 */
const DISTINCT: readonly (readonly [number, number])[] = [
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0xd800, 0xf8ff],
  [0x17000, 0x18d7f],
  [0x1b170, 0x1b2ff],
  [0x20000, 0xdffff],
  [0xf0000, 0x10ffff],
];

const UNASSIGNED = /\p{Cn}/u;

/**
 * A character that ICU sorts after every letter, which makes `prefix + LAST` the end of a range.
 */
const LAST = "\uffff";

interface Replacements {
  /** Maps each character to its replacement. Characters that stay the same are not in the map. */
  readonly replaced: ReadonlyMap<string, string>;
  /** Matches decomposed letters that ICU compares as a whole; undefined if there are none. */
  readonly whole: RegExp | undefined;
}

const NOTHING: Replacements = { replaced: new Map(), whole: undefined };

class LetterTable {
  readonly #collator: Intl.Collator;
  readonly #ascii: readonly string[];
  readonly #joinsMiddleDot: boolean;
  #replaced: Replacements | undefined;

  constructor(collator: Intl.Collator) {
    this.#collator = collator;
    this.#joinsMiddleDot = this.#areEqual("l\u00b7", "l");
    const all = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
    this.#ascii = all.map((each) => {
      if (this.#areEqual(each, "")) return "";
      return all.find((other) => this.#areEqual(other, each)) ?? each;
    });
  }

  keyOf(text: string): string {
    let key = "";
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code >= 128) return this.#longKeyOf(text);
      key += this.#ascii[code] ?? "";
    }
    return key;
  }

  #longKeyOf(text: string): string {
    this.#replaced ??= this.#read();
    const key = this.#replacedIn(text);
    if (this.#areEqual(key, text) && !REFUSED.test(text)) return key;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot compare ${JSON.stringify(text.slice(0, 40))} with a nondeterministic collation: ` +
        "it contains characters that the collation sorts as a unit",
      { hint: "use a deterministic collation" },
    );
  }

  #replacedIn(text: string): string {
    const { replaced, whole } = this.#replaced ?? NOTHING;
    let form = normalized(text, "NFD");
    if (whole !== undefined) form = form.replace(whole, (each) => each.normalize("NFC"));
    let key = "";
    for (const each of form) key += replaced.get(each) ?? each;
    if (this.#joinsMiddleDot) key = key.replace(MIDDLE_DOT, "$1");
    key = key.replace(WRITTEN_AFTER, ([consonant = "", vowel = ""]) => vowel + consonant);
    return normalized(key, "NFD");
  }

  #areEqual(left: string, right: string): boolean {
    return this.#collator.compare(withSortedMarks(left), withSortedMarks(right)) === 0;
  }

  /** Compares all characters with one another, and returns their replacements. */
  #read(): Replacements {
    const replaced = new Map<string, string>();
    const letters: string[] = [];
    const composites: string[] = [];
    for (const letter of comparedLetters()) {
      if (letter.normalize("NFD") === letter) letters.push(letter);
      else composites.push(letter);
    }
    // A compatibility form that equals its plain form need not be compared with other letters.
    const forms: [string, string][] = [];
    const plain = letters.filter((letter) => {
      const form = letter.normalize("NFKD");
      if (form === letter || !this.#areEqual(form, letter)) return true;
      forms.push([letter, form]);
      return false;
    });
    plain.sort(this.#collator.compare);
    this.#replaceEqual(plain, replaced);
    this.#replaceSequences(plain, replaced);
    for (const [letter, form] of forms) replaced.set(letter, replacedIn(form, replaced));
    this.#replaced = { replaced, whole: undefined };
    // Letters with marks may have a weight of their own, as the Cyrillic short i does.
    const ownWeight = [...composites, ...letters].filter(
      (letter) => !this.#areEqual(this.#replacedIn(letter), letter),
    );
    for (const letter of ownWeight) replaced.delete(letter);
    this.#replaceEqual(ownWeight.toSorted(this.#collator.compare), replaced);
    const whole = ownWeight
      .map((letter) => letter.normalize("NFD"))
      .filter((form) => form.normalize("NFC") !== form);
    const pattern = whole.length === 0 ? undefined : new RegExp(whole.join("|"), "gu");
    this.#replaced = { replaced, whole: pattern };
    for (const [letter, form] of forms) replaced.set(letter, this.#replacedIn(form));
    return this.#replaced;
  }

  /** Maps each letter that equals other letters to the first of them in sorted order. */
  #replaceEqual(sorted: readonly string[], into: Map<string, string>): void {
    for (let start = 0; start < sorted.length; ) {
      const letter = sorted[start] ?? "";
      let end = start + 1;
      while (end < sorted.length && this.#areEqual(sorted[end] ?? "", letter)) end += 1;
      const equal = sorted.slice(start, end);
      const isIgnored = this.#areEqual(letter, "");
      const first = equal.reduce((one, other) => (codeOf(other) < codeOf(one) ? other : one));
      const replacement = isIgnored ? "" : first;
      for (const each of equal) if (each !== replacement) into.set(each, replacement);
      start = end;
    }
  }

  /**
   * Maps each letter that equals a sequence of letters to that sequence. An example is `æ`, which
   * equals `ae` at primary strength. Such a letter sorts between its first letter and all strings
   * that begin with it.
   */
  #replaceSequences(sorted: readonly string[], into: Map<string, string>): void {
    const firsts = sorted.filter((letter) => !into.has(letter));
    const sequences = new Map<string, string>();
    for (const [at, letter] of firsts.entries()) {
      if (!SEQUENCES.test(letter)) continue;
      const starts = firsts.slice(Math.max(0, at - STARTS_MAX), at).toReversed();
      const sequence = this.#sequenceOf(letter, { firsts, starts, prefix: "" });
      if (sequence !== undefined) sequences.set(letter, sequence);
    }
    for (const [letter, sequence] of sequences) into.set(letter, replacedIn(sequence, sequences));
    for (const [letter, first] of into) into.set(letter, replacedIn(first, sequences));
  }

  /**
   * Returns the sequence of letters, beginning with `prefix`, that equals a letter; undefined if
   * there is none.
   */
  #sequenceOf(
    letter: string,
    {
      firsts,
      prefix,
      starts,
    }: { firsts: readonly string[]; prefix: string; starts: readonly string[] },
  ): string | undefined {
    const { compare } = this.#collator;
    if (prefix.length >= SEQUENCE_MAX) return undefined;
    for (const start of starts) {
      const begun = prefix + start;
      if (compare(begun, letter) >= 0 || compare(begun + LAST, letter) <= 0) continue;
      let low = 0;
      let high = firsts.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (compare(begun + (firsts[middle] ?? ""), letter) < 0) low = middle + 1;
        else high = middle;
      }
      const next = firsts[low];
      if (next !== undefined && next !== letter && compare(begun + next, letter) === 0) {
        return begun + next;
      }
      const nearest = firsts.slice(Math.max(0, low - NEAREST_MAX), low).toReversed();
      const longer = this.#sequenceOf(letter, { firsts, prefix: begun, starts: nearest });
      if (longer !== undefined) return longer;
    }
    return undefined;
  }
}

/** Yields the assigned characters that may equal other characters. */
function* comparedLetters(): Generator<string> {
  let from = 0;
  for (const [first, last] of DISTINCT) {
    for (let code = from; code < first; code += 1) {
      const letter = String.fromCodePoint(code);
      if (!UNASSIGNED.test(letter)) yield letter;
    }
    from = last + 1;
  }
}

/**
 * The maximum length, in UTF-16 code units, of a sequence of letters that equals a single letter.
 */
const SEQUENCE_MAX = 4;

/** How many of the letters that sort before a letter are tried as the start of its sequence. */
const STARTS_MAX = 200;

/** How many letters are tried as the next letter of a sequence. */
const NEAREST_MAX = 4;

function replacedIn(text: string, replaced: ReadonlyMap<string, string>): string {
  let result = "";
  for (const each of text.normalize("NFD")) result += replaced.get(each) ?? each;
  return result;
}

function codeOf(letter: string): number {
  return letter.codePointAt(0) ?? 0;
}
