/**
 * Verifies that the notation of the statement reference is parsed correctly. The tests collect the
 * sentences that a piece of notation generates, and compare them with the complete list of
 * possible ones.
 */
import { expect, test } from "bun:test";
import { Sentences } from "../../scripts/reference/syntax.ts";

function sentencesOf(syntax: string, rules: Readonly<Record<string, string>> = {}): string[] {
  const made = new Sentences(new Map(Object.entries(rules)), 1);
  return [...new Set(Array.from({ length: 200 }, () => made.next(syntax)))].toSorted();
}

test("Sentences writes words unchanged, and samples for names", () => {
  expect(sentencesOf("DROP TABLE table")).toEqual(["DROP TABLE app.t"]);
});

test("Sentences omits optional parts, and chooses among alternatives", () => {
  expect(sentencesOf("A [ B | C ] { D | E F }")).toEqual([
    "A B D",
    "A B E F",
    "A C D",
    "A C E F",
    "A D",
    "A E F",
  ]);
});

test("Sentences repeats the preceding element after commas or blanks", () => {
  expect(sentencesOf("( column [, …] )")).toEqual(["( a )", "( a , a )"]);
  expect(sentencesOf("[ X ] …")).toEqual(["", "X", "X X"]);
});

test("Sentences expands a named rule, and keeps a comma attached to its word", () => {
  expect(sentencesOf("pair", { pair: "( item, item )", item: "{ 1 | 2 }" })).toHaveLength(4);
});

test("Sentences refuses an unknown name, an open bracket, and a rule that contains itself", () => {
  expect(() => sentencesOf("nonsense")).toThrow(
    'Cannot write "nonsense": it has neither a rule nor a sample',
  );
  expect(() => sentencesOf("[ A")).toThrow('Cannot read syntax: no "]"');
  expect(() => sentencesOf("A ]")).toThrow('Cannot read syntax: surplus "]"');
  expect(() => sentencesOf("loop", { loop: "A loop" })).toThrow("a rule contains itself");
});
