/**
 * Verifies that strings decoded together equal strings decoded one by one. The tests use random
 * text, with and without characters beyond ASCII, including NULL and empty strings, and read any
 * part of a vector.
 */
import { expect, test } from "bun:test";
import { slice, textsOf, type Utf8Vector, type Value, valuesOf } from "../../src/types/mod.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const WORDS = ["", "tide", "moon", "ümlaut", "潮", "🌊", "shore line"];

function vectorOf(texts: readonly (string | null)[]): Utf8Vector {
  const offsets = new Uint32Array(texts.length + 1);
  const parts = texts.map((text) => Buffer.from(text ?? ""));
  for (const [row, part] of parts.entries()) offsets[row + 1] = (offsets[row] ?? 0) + part.length;
  const nulls = Uint8Array.from(texts, (text) => (text === null ? 1 : 0));
  return { kind: "utf8", length: texts.length, bytes: Buffer.concat(parts), offsets, nulls };
}

test("textsOf returns the same as valuesOf, for any part of a vector", () => {
  const random = new SeededRandom(7);
  for (let round = 0; round < 300; round += 1) {
    const wordCount = round % 2 === 0 ? 3 : WORDS.length;
    const texts = Array.from({ length: 1 + random.below(40) }, () =>
      random.below(5) === 0 ? null : (WORDS[random.below(wordCount)] ?? ""),
    );
    const start = random.below(texts.length);
    const part = slice(vectorOf(texts), start, start + random.below(texts.length - start + 1));

    expect(part.kind, `round ${round}`).toBe("utf8");
    if (part.kind === "utf8")
      expect<readonly Value[]>(textsOf(part), `round ${round}`).toEqual(valuesOf(part));
  }
});
