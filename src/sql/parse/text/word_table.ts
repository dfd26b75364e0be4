/**
 * Looks up words in a fixed list, ignoring case, without creating strings.
 *
 * The hash of a word is computed while the word is read. The table uses open addressing by this
 * hash, and never changes.
 */

/** The number of slots per word. A high number keeps probes short. */
const SLOTS_PER_WORD = 8;

/**
 * Adds a character to the hash of a word, which starts at 0. Setting bit 5 ignores the case of
 * letters, and makes no other two identifier characters equal.
 */
export function foldIntoHash(hash: number, code: number): number {
  return (Math.imul(hash, 31) + (code | 32)) | 0;
}

export class WordTable {
  /** The words of the table in lower case, without duplicates. */
  readonly words: readonly string[];
  /** For each slot, 0 if it is free, or the index in `words` plus 1. */
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

  /**
   * Returns the index of the word at [start, end), or -1 if it is not in the table.
   *
   * @param hash The word's hash, as `foldIntoHash` computes it.
   */
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
