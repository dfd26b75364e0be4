/**
 * Finds words of a text in a fixed list, whatever the case of their letters, and makes no string.
 *
 * Whoever reads a word folds its characters into a hash on the way; the table is open addressing by
 * that hash and never changes.
 */

/** Slots of a table: several for each word, so that searches are short. */
const SLOTS_PER_WORD = 8;

/**
 * The hash of a word is built from its characters in order, from 0. Bit 5 folds the case of
 * letters; no two characters of identifiers but those meet by it.
 */
export function foldIntoHash(hash: number, code: number): number {
  return (Math.imul(hash, 31) + (code | 32)) | 0;
}

export class WordTable {
  /** In lower case, each once. */
  readonly words: readonly string[];
  /** 0 is free, else 1 + the index in `words`. */
  readonly #slots: Int16Array;
  readonly #mask: number;

  constructor(words: readonly string[]) {
    this.words = words;
    const size = 2 ** Math.ceil(Math.log2(words.length * SLOTS_PER_WORD));
    this.#slots = new Int16Array(size);
    this.#mask = size - 1;
    for (const [index, word] of words.entries()) {
      let hash = 0;
      for (let i = 0; i < word.length; i++) hash = foldIntoHash(hash, word.charCodeAt(i));
      let slot = hash & this.#mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & this.#mask;
      this.#slots[slot] = index + 1;
    }
  }

  /** The index of the word at [start, end), of which `hash` is the hash; -1 when there is none. */
  indexAt(text: string, start: number, end: number, hash: number): number {
    let slot = hash & this.#mask;
    for (let entry = this.#slots[slot] ?? 0; entry !== 0; entry = this.#slots[slot] ?? 0) {
      const word = this.words[entry - 1] ?? "";
      if (word.length === end - start && equalsFolded(text, start, word)) return entry - 1;
      slot = (slot + 1) & this.#mask;
    }
    return -1;
  }
}

function equalsFolded(text: string, start: number, word: string): boolean {
  for (let i = 0; i < word.length; i++) {
    if ((text.charCodeAt(start + i) | 32) !== (word.charCodeAt(i) | 32)) return false;
  }
  return true;
}
