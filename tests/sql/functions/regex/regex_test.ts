/**
 * Verifies that regular expressions match as in PostgreSQL, but in linear time. The tests compare
 * random patterns, without the features that differ, with RegExp. They also run patterns that
 * would overwhelm a backtracking matcher on texts of increasing length. To repeat a failure:
 * SEED=<n> bun test tests/sql/functions
 */
import { describe, expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { matchesOf } from "../../../../src/sql/functions/regex/pattern.ts";
import { compileRegex } from "../../../../src/sql/functions/regex/regex.ts";
import { testThoroughly } from "../../../support/requirements.ts";
import { amountOf } from "../../../support/thoroughness.ts";
import { randomFrom, seedOf } from "../../../types/random.ts";
import { errorCodeOf } from "../calls.ts";

function randomPattern(random: () => number, depth: number): string {
  const pick = (items: readonly string[]): string =>
    items[Math.floor(random() * items.length)] ?? "";
  const kind = random();
  if (depth > 3 || kind < 0.4)
    return pick(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\d", "\\s"]);
  if (kind < 0.6) {
    const item = randomPattern(random, depth + 1);
    // Engines disagree on whether an empty iteration of a repetition counts.
    if (new RegExp(`^(?:${item})$`).test("")) return item;
    const isSimple = item.length === 1 || /^(?:\[[^\]]*\]|\\.)$/.test(item);
    const quantifier = pick(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{2,}"]);
    return `${isSimple ? item : `(?:${item})`}${quantifier}`;
  }
  if (kind < 0.75) return `(${randomPattern(random, depth + 1)})`;
  if (kind < 0.88) return randomPattern(random, depth + 1) + randomPattern(random, depth + 1);
  return `(?:${randomPattern(random, depth + 1)}|${randomPattern(random, depth + 1)})`;
}

/**
 * Whether the match that RegExp finds may differ from the longest match in more than its length.
 */
function isLazy(pattern: string): boolean {
  return /[*+?}]\?/.test(pattern);
}

test("test agrees with RegExp on random patterns, and exec finds no shorter match", () => {
  const seed = seedOf();
  const random = randomFrom(seed);
  for (let round = 0; round < amountOf({ usual: 1000, thorough: 4000 }); round += 1) {
    const pattern = randomPattern(random, 0);
    const text = Array.from(
      { length: Math.floor(random() * 8) },
      () => "abc1 "[Math.floor(random() * 5)],
    ).join("");
    const native = new RegExp(pattern, "s").exec(text);
    const regex = compileRegex(pattern, "");
    const what = `seed ${seed}: /${pattern}/ on "${text}"`;
    expect(regex.test(text), what).toBe(native !== null);
    const match = regex.exec(text, 0);
    expect(match === undefined, what).toBe(native === null);
    if (match === undefined || native === null) continue;
    expect(match[0], what).toBe(native.index);
    if (isLazy(pattern)) continue;
    // RegExp prefers the alternative written first; PostgreSQL prefers the longest match.
    const found = text.slice(match[0], match[1]);
    expect(found, what).toStartWith(native[0]);
    expect(found, what).toMatch(new RegExp(`^(?:${pattern})$`, "s"));
  }
});

test.each([
  ["abc", "^a.c$", "", true],
  ["ABC", "b", "i", true],
  ["ABC", "(?i)b", "", true],
  ["a\nb", "a.b", "", true],
  ["a\nb", "a.b", "n", false],
  ["a\nb", "^b", "", false],
  ["a\nb", "^b", "n", true],
  ["a\nb", "a$", "n", true],
  ["a\nb", "\\Ab", "n", false],
  ["foo bar", "\\ybar\\y", "", true],
  ["foobar", "\\ybar", "", false],
  ["foobar", "\\Ybar", "", true],
  ["foo bar", "\\bbar", "", false],
  ["foo\bbar", "\\bbar", "", true],
  ["foo\\bar", "\\Bbar", "", true],
  ["foo bar", "\\mbar\\M", "", true],
  ["a-b", "[[:punct:]]", "", true],
  ["Ünï", "^[[:alpha:]]+$", "", true],
  ["Ü", "ü", "i", true],
  ["x😀y", "^x.y$", "", true],
  ["😀", "^[😀-😂]$", "", true],
  ["a]b", "a[]]b", "", true],
  ["a^b", "a[b^]b", "", true],
  ["a-b", "a[+-]b", "", true],
  ["a\tb", "a\\tb", "", true],
  ["é", "\\u00e9", "", true],
  ["a{b", "a{b", "", true],
  ["a+b", "a\\+b", "", true],
  ["A", "[^a]", "i", false],
  ["\n", "[^a]", "n", false],
  ["aXb", "a[^[:lower:]]b", "", true],
  ["5", "[\\d\\s]", "", true],
  ["", "", "", true],
  ["", "^$", "", true],
  ["ab", "(?:a|ab)$", "", true],
] as const)("%p ~ %p with flags %p is %p", (text, pattern, flags, wanted) => {
  expect(compileRegex(pattern, flags).test(text)).toBe(wanted);
  expect(compileRegex(pattern, flags).exec(text, 0) !== undefined).toBe(wanted);
});

test.each([
  ["(", "INVALID_VALUE"],
  [")", "INVALID_VALUE"],
  ["[a", "INVALID_VALUE"],
  ["[z-a]", "INVALID_VALUE"],
  ["*a", "INVALID_VALUE"],
  ["a**", "INVALID_VALUE"],
  ["a|*", "INVALID_VALUE"],
  ["a{2,1}", "INVALID_VALUE"],
  ["a{999}", "INVALID_VALUE"],
  ["a{1", "INVALID_VALUE"],
  ["a\\", "INVALID_VALUE"],
  ["\\q", "INVALID_VALUE"],
  ["[[:nope:]]", "INVALID_VALUE"],
  ["^*", "INVALID_VALUE"],
  ["(?<n>a)", "INVALID_VALUE"],
  ["(a)\\1", "UNSUPPORTED_FEATURE"],
  ["a(?=b)", "UNSUPPORTED_FEATURE"],
  ["(?!b)a", "UNSUPPORTED_FEATURE"],
  ["(?<=b)a", "UNSUPPORTED_FEATURE"],
  ["(?<!b)a", "UNSUPPORTED_FEATURE"],
  ["((((a{255}){255}){255}){255})", "INVALID_VALUE"],
  ["(".repeat(1000), "INVALID_VALUE"],
])("the pattern %p raises %s", (pattern, code) => {
  expect(errorCodeOf(() => compileRegex(pattern, ""))).toBe(code);
});

test("the leftmost match wins, and among these the longest, or the shortest if the pattern is lazy", () => {
  const spans = (pattern: string, text: string): readonly number[] | undefined =>
    compileRegex(pattern, "").exec(text, 0)?.slice(0, 2);
  expect(spans("a|ab", "xab")).toEqual([1, 3]);
  expect(spans("ab|a", "xab")).toEqual([1, 3]);
  expect(spans("a*?b", "aab")).toEqual([0, 3]);
  expect(spans("a+?", "aaa")).toEqual([0, 1]);
  expect(spans("(?:x|)y?", "y")).toEqual([0, 1]);
});

test("matchesOf finds matches that do not overlap, and empty ones between characters", () => {
  const starts = (pattern: string, text: string): (number | undefined)[] =>
    [...matchesOf(compileRegex(pattern, ""), text, 0)].map(([start]) => start);
  expect(starts("aa", "aaaa")).toEqual([0, 2]);
  expect(starts("", "a😀")).toEqual([0, 1, 3]);
  expect(starts("a*", "baac")).toEqual([0, 1, 3, 4]);
});

test.each(["(a+)+$", "(a|aa)+$", "(.*a){12}b", "^(a?){60}a{60}$", "(x+x+)+y", "(a*)*b"])(
  "%p ends on a text made to blow up",
  (pattern) => {
    const text = `${"a".repeat(20_000)}!${"x".repeat(20_000)}`;
    const regex = compileRegex(pattern, "");
    // A matcher that tried every alternative would practically never finish.
    expect(regex.test(text)).toBe(false);
    expect(regex.exec(text.slice(0, 2000), 0) !== undefined).toBe(regex.test("a".repeat(2000)));
  },
);

test("a pattern with many states drops states instead of keeping them all", () => {
  const regex = compileRegex("(?:a|b)*a(?:a|b){14}c", "");
  const random = randomFrom(7);
  const text = Array.from({ length: 50_000 }, () => (random() < 0.5 ? "a" : "b")).join("");
  expect(regex.test(text)).toBe(false);
  expect(regex.test(`${text}c`)).toBe(text.at(-15) === "a");
});

test("no character of a text is mistaken for its end", () => {
  const regex = compileRegex("^[a-z]*$", "");
  expect(regex.test("a")).toBe(true);
  for (const character of ["\u007f", "\u0080", "\u0081", "\uffff", "😀"]) {
    expect(regex.test(`a${character}`)).toBe(false);
    expect(regex.test(`a${character}b`)).toBe(false);
  }
});

test("a search that would take too long is refused, whatever it searches for", () => {
  const text = "a".repeat(1_000_000);
  const all = compileRegex("a.*z|a", "");
  // Each match is one character long. To find it, the matcher searches the rest of the text for a
  // z in vain.
  expect(errorCodeOf(() => [...matchesOf(all, text, 0)])).toBe("LIMIT_EXCEEDED");
  const long = compileRegex("(?:a?){200}z", "");
  expect(errorCodeOf(() => long.exec(text, 0))).toBe("LIMIT_EXCEEDED");
  // The pattern can still be used after a search has failed.
  expect(all.exec("ba", 0)).toEqual([1, 2]);
  expect(long.exec("aaz", 0)).toEqual([0, 3]);
});

test("a pattern with very many groups finds all of them, more than once", () => {
  const groupCount = 400;
  const regex = compileRegex(`(?:${"(a?)".repeat(groupCount)}x)+`, "");
  const expected = [0, 5, ...[0, 1].flatMap((at) => [at, at + 1])];
  for (let round = 0; round < 2; round += 1) {
    const match = regex.exec("aaaax", 0) ?? [];
    expect(match.length).toBe(2 * (groupCount + 1));
    expect(match.slice(0, 6)).toEqual(expected);
    expect(match.slice(-2)).toEqual([4, 4]);
  }
});

test("all of 200,000 matches are found quickly", () => {
  const text = "ab".repeat(200_000);
  let count = 0;
  for (const [start, end] of matchesOf(compileRegex("(a|b)*?b", ""), text, 0)) {
    if (start !== 2 * count || end !== start + 2) break;
    count += 1;
  }
  expect(count).toBe(200_000);
});

describe("a regular expression whose search takes long is limited", () => {
  const answerOf = (search: () => unknown): string => {
    try {
      return String(search());
    } catch (error) {
      if (error instanceof DatabaseError) return error.code;
      throw error;
    }
  };

  test("a long search skips and finds non-ASCII characters like any others", () => {
    const text = "é".repeat(2_000_000);
    expect(compileRegex("(É|e)*x", "i").test(text)).toBe(false);
    expect(compileRegex("(É|e)*x", "i").test(`${text}X`)).toBe(true);
    expect(compileRegex("^(é|ü)*$", "").test(text)).toBe(true);
    expect(compileRegex("^(é|ü)*$", "").test(`${text}à`)).toBe(false);
  });

  test("a long search is refused if each character needs a new state", () => {
    const all = Array.from({ length: 200_000 }, (_, i) => String.fromCodePoint(0x1_0000 + i));
    expect(answerOf(() => compileRegex("(.|a){1,60}$x", "").test(all.join("")))).toBe(
      "LIMIT_EXCEEDED",
    );
  });

  test("a long search is refused sooner if its threads carry more groups", () => {
    const text = "ab".repeat(60_000);
    const exec = (pattern: string): string =>
      answerOf(() => compileRegex(pattern, "").exec(text, 0));
    expect(exec("(a|b)*c")).toBe("undefined");
    expect(exec(`${"(".repeat(60)}a|b${")".repeat(60)}*c`)).toBe("LIMIT_EXCEEDED");
  });

  testThoroughly("a long search also counts the matches", () => {
    const regex = compileRegex("a", "");
    const count = (length: number): string =>
      answerOf(() => [...matchesOf(regex, "a".repeat(length), 0)].length);
    expect(count(100_000)).toBe("100000");
    expect(count(1_000_000)).toBe("LIMIT_EXCEEDED");
  });
});

describe("the syntax of a regular expression is limited", () => {
  const brackets = (count: number, range: (last: string) => string): string =>
    Array.from({ length: count }, (_, i) => range(String.fromCodePoint(0x2190 + i))).join("|");

  test("a pattern may have the maximum number of characters, and is refused with one more", () => {
    const longest = `[${"a".repeat(65_534)}]`;
    expect(compileRegex(longest, "").test("a")).toBe(true);
    expect(() => compileRegex(`a${longest}`, "")).toThrow(
      "Cannot use the regular expression: it has 65537 characters, but the maximum is 65536",
    );
  });

  test("a pattern may repeat a bracket of many ranges, but contain only few different ones", () => {
    expect(
      compileRegex(
        brackets(1000, () => "[\\w.]"),
        "i",
      ).test("-."),
    ).toBe(true);
    expect(
      compileRegex(
        brackets(100, (each) => `[\\w${each}]`),
        "",
      ).test("\u2191"),
    ).toBe(true);
    const message =
      "Cannot use the regular expression: its bracket expressions contain too many character " +
      "ranges";
    expect(() =>
      compileRegex(
        brackets(1000, (each) => `[\\w${each}]`),
        "",
      ),
    ).toThrow(message);
    expect(() =>
      compileRegex(
        brackets(1000, (each) => `[!-${each}]`),
        "i",
      ),
    ).toThrow(message);
  });

  test("a pattern finds the other case of each character in a large range", () => {
    const large = compileRegex("^[!-\u{1ffff}]$", "i");
    const small = compileRegex("^[à-ý]$", "i");
    for (const character of ["à", "À", "ſ", "\u{1e900}", "\u{1e922}"]) {
      expect(large.test(character)).toBe(true);
      expect(small.test(character)).toBe(/^[àÀ]$/.test(character));
    }
    expect(compileRegex("^[à-\u024f]$", "i").test("À")).toBe(true);
    expect(compileRegex("^[à-\u024f]$", "i").test("a")).toBe(false);
  });
});
