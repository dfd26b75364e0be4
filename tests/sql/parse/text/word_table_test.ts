/** Verifies that a word table finds its words in upper or lower case, and finds nothing else. */
import { expect, test } from "bun:test";
import { foldIntoHash, WordTable } from "../../../../src/sql/parse/text/word_table.ts";

const WORDS = ["select", "from", "where", "nfc", "nfd", "system_time"];

function hashOf(word: string): number {
  let hash = 0;
  for (let at = 0; at < word.length; at += 1) hash = foldIntoHash(hash, word.charCodeAt(at));
  return hash;
}

function indexOf(table: WordTable, text: string, start = 0, end: number = text.length): number {
  return table.indexAt(text, start, end, hashOf(text.slice(start, end)));
}

test("indexAt finds each word in any case, even inside a text", () => {
  const table = new WordTable(WORDS);
  for (const [index, word] of WORDS.entries()) {
    expect(indexOf(table, word)).toBe(index);
    expect(indexOf(table, word.toUpperCase())).toBe(index);
    expect(indexOf(table, `(${word})`, 1, 1 + word.length)).toBe(index);
  }
});

test("indexAt returns -1 for anything that is not a word: a part of one, a longer one or another one", () => {
  const table = new WordTable(WORDS);
  for (const text of ["selec", "selects", "name", "x", "system$time"]) {
    expect(indexOf(table, text)).toBe(-1);
  }
});

test("indexAt compares the letters if only the hash is the same", () => {
  const table = new WordTable(["ab"]);
  expect(indexOf(table, "ab")).toBe(0);
  expect(table.indexAt("cd", 0, 2, hashOf("ab"))).toBe(-1);
});
