/**
 * Implements the English stemmer of the Snowball project (Porter 2), written from its description:
 * https://snowballstem.org/algorithms/english/stemmer.html
 *
 * Each step looks for the longest of its suffixes that the word ends in. If that suffix lies
 * outside the region that the step requires, the step changes nothing.
 */

/** Words whose stems do not follow from the rules of the stemmer. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map([
  ["skis", "ski"],
  ["skies", "sky"],
  ["dying", "die"],
  ["lying", "lie"],
  ["tying", "tie"],
  ["idly", "idl"],
  ["gently", "gentl"],
  ["ugly", "ugli"],
  ["early", "earli"],
  ["only", "onli"],
  ["singly", "singl"],
  ...["sky", "news", "howe", "atlas", "cosmos", "bias", "andes"].map(
    (word) => [word, word] as const,
  ),
]);

/** Words that are not shortened further once a plural ending has been removed. */
const COMPLETE: ReadonlySet<string> = new Set(
  "inning outing canning herring earring proceed exceed succeed".split(" "),
);

/**
 * Prefixes that are exceptions to the rule for the first region of a word. The region begins
 * directly after the prefix.
 */
const BEGINNINGS = ["gener", "commun", "arsen"];

const VOWEL = /[aeiouy]/;
const DOUBLE = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;

/**
 * Suffixes and their replacements. A longer suffix is listed before any suffix that it ends with.
 */
type Endings = readonly (readonly [ending: string, instead: string])[];

const STEP_2: Endings = [
  ["ization", "ize"],
  ["ational", "ate"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["iveness", "ive"],
  ["tional", "tion"],
  ["biliti", "ble"],
  ["lessli", "less"],
  ["entli", "ent"],
  ["ation", "ate"],
  ["alism", "al"],
  ["aliti", "al"],
  ["ousli", "ous"],
  ["iviti", "ive"],
  ["fulli", "ful"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["abli", "able"],
  ["izer", "ize"],
  ["ator", "ate"],
  ["alli", "al"],
  ["bli", "ble"],
  ["ogi", "og"],
  ["li", ""],
];

const STEP_3: Endings = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["alize", "al"],
  ["icate", "ic"],
  ["iciti", "ic"],
  ["ative", ""],
  ["ical", "ic"],
  ["ness", ""],
  ["ful", ""],
];

const STEP_4 = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic".split(
  " ",
);

/** Returns the stem of a lower-case English word. */
export function englishStem(word: string): string {
  if (word.length <= 2) return word;
  return EXCEPTIONS.get(word) ?? new Stemming(word).stem();
}

class Stemming {
  /** The word. A capital Y marks a y that is a consonant. */
  #word: string;
  readonly #first: number;
  readonly #second: number;

  constructor(word: string) {
    this.#word = withConsonantY(word.startsWith("'") ? word.slice(1) : word);
    const beginning = BEGINNINGS.find((each) => this.#word.startsWith(each));
    this.#first = beginning?.length ?? regionAfter(this.#word, 0);
    this.#second = regionAfter(this.#word, this.#first);
  }

  stem(): string {
    this.#word = this.#word.replace(/'(?:s'?)?$/, "");
    this.#plural();
    if (!COMPLETE.has(this.#word)) {
      this.#past();
      this.#finalY();
      this.#step2();
      this.#step3();
      this.#step4();
      this.#step5();
    }
    return this.#word.replaceAll("Y", "y");
  }

  #cut(length: number, instead = ""): void {
    this.#word = this.#word.slice(0, this.#word.length - length) + instead;
  }

  #isIn(region: number, ending: string): boolean {
    return this.#word.length - ending.length >= region;
  }

  #plural(): void {
    const word = this.#word;
    if (word.endsWith("sses")) this.#cut(2);
    else if (word.endsWith("ied") || word.endsWith("ies")) this.#cut(word.length > 4 ? 2 : 1);
    else if (word.endsWith("us") || word.endsWith("ss")) return;
    else if (word.endsWith("s") && VOWEL.test(word.slice(0, -2))) this.#cut(1);
  }

  #past(): void {
    const ending = /(?:eedly|eed|ingly|edly|ing|ed)$/.exec(this.#word)?.[0];
    if (ending === undefined) return;
    if (ending.startsWith("ee")) {
      if (this.#isIn(this.#first, ending)) this.#cut(ending.length, "ee");
      return;
    }
    if (!VOWEL.test(this.#word.slice(0, -ending.length))) return;
    this.#cut(ending.length);
    if (/(?:at|bl|iz)$/.test(this.#word)) this.#word += "e";
    else if (DOUBLE.test(this.#word)) this.#cut(1);
    else if (this.#word.length <= this.#first && endsInShortSyllable(this.#word)) this.#word += "e";
  }

  #finalY(): void {
    if (/.[^aeiouy][yY]$/.test(this.#word)) this.#cut(1, "i");
  }

  #step2(): void {
    const found = STEP_2.find(([ending]) => this.#word.endsWith(ending));
    if (found === undefined) return;
    const [ending, instead] = found;
    if (!this.#isIn(this.#first, ending)) return;
    const before = this.#word.at(-ending.length - 1) ?? "";
    if (ending === "ogi" && before !== "l") return;
    if (ending === "li" && !"cdeghkmnrt".includes(before)) return;
    this.#cut(ending.length, instead);
  }

  #step3(): void {
    const found = STEP_3.find(([ending]) => this.#word.endsWith(ending));
    if (found === undefined) return;
    const [ending, instead] = found;
    if (!this.#isIn(ending === "ative" ? this.#second : this.#first, ending)) return;
    this.#cut(ending.length, instead);
  }

  #step4(): void {
    const ending = STEP_4.find((each) => this.#word.endsWith(each));
    if (ending === undefined || !this.#isIn(this.#second, ending)) return;
    if (ending === "ion" && !/[st]ion$/.test(this.#word)) return;
    this.#cut(ending.length);
  }

  #step5(): void {
    const rest = this.#word.slice(0, -1);
    if (this.#word.endsWith("e")) {
      const isSafe = this.#isIn(this.#first, "e") && !endsInShortSyllable(rest);
      if (this.#isIn(this.#second, "e") || isSafe) this.#word = rest;
    } else if (this.#word.endsWith("ll") && this.#isIn(this.#second, "l")) {
      this.#word = rest;
    }
  }
}

/** Replaces each consonant y, at the start of the word or after a vowel, with Y. */
function withConsonantY(word: string): string {
  let marked = "";
  for (let at = 0; at < word.length; at += 1) {
    const letter = word.charAt(at);
    const isConsonant = letter === "y" && (at === 0 || VOWEL.test(marked.charAt(at - 1)));
    marked += isConsonant ? "Y" : letter;
  }
  return marked;
}

/** Returns the start of a region: the position after the first consonant that follows a vowel. */
function regionAfter(word: string, from: number): number {
  for (let at = from + 1; at < word.length; at += 1) {
    if (VOWEL.test(word.charAt(at - 1)) && !VOWEL.test(word.charAt(at))) return at + 1;
  }
  return word.length;
}

function endsInShortSyllable(word: string): boolean {
  return /(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$/.test(word);
}
