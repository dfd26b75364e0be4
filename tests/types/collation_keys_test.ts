/**
 * Verifies that two strings have the same collation key if, and only if, their collation considers
 * them equal.
 */
import { expect, test } from "bun:test";
import { groupKeyOf, type IcuRules, withCollation } from "../../src/types/mod.ts";
import { shareOf } from "../support/thoroughness.ts";

const WORDS = [
  ..."aAáÁäÄbBßẞæÆøØœŒđłǆþſiıİIjĲ0123٣½²①ⅣﬁﬀŀŁ".split(""),
  ..."αΑάΆςσΣйЙиИёЁїґあアｱが漢字한글กเแ".split(""),
  ..."เกก กเก กกเ ss SS ae AE oe l· L· a\u0308 o\u0338 и\u0306 กเ เก fi 1⁄2 IV a\u0301\u0323 a\u0323\u0301".split(
    " ",
  ),
  ..."\u200d \u0001 - _ ' . \u00ad".split(" "),
];

test.each(shareOf(["base", "case", "accent", "variant"] as const, { oneOf: 2 }))(
  "the keys of strings whose %s differences count are equal if the strings are",
  (sensitivity) => {
    const rules: IcuRules = { locale: "en", sensitivity, isDeterministic: false };
    const type = withCollation({ kind: "text" }, { kind: "icu", name: "x", ...rules });
    const { compare } = new Intl.Collator("en", { sensitivity });
    const words = WORDS.flatMap((word) => [word, `${word}x`, `e${word}`]);
    const keys = words.map((word) => groupKeyOf(type, word));
    expect(keys.map((key) => groupKeyOf(type, String(key)))).toEqual(keys);
    for (const [i, left] of words.entries()) {
      for (let j = i; j < words.length; j += 1) {
        const right = words[j] ?? "";
        const isEqual = compare(left, right) === 0;
        if (isEqual === (keys[i] === keys[j])) continue;
        expect({ left, right, haveOneKey: !isEqual }).toEqual({ left, right, haveOneKey: isEqual });
      }
    }
  },
);

test("a key of text with a sequence that has an order of its own is refused", () => {
  const rules: IcuRules = { locale: "en", sensitivity: "accent", isDeterministic: false };
  const type = withCollation({ kind: "text" }, { kind: "icu", name: "x", ...rules });
  expect(() => groupKeyOf(type, "a\u2e90")).toThrow("that the collation sorts as a unit");
});
