/** Tests normal forms of text with many combining marks. */
import { expect, test } from "bun:test";
import { type NormalForm, normalized } from "../../src/types/mod.ts";
import { testThoroughly } from "../support/requirements.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";

const FORMS: readonly NormalForm[] = ["NFC", "NFD", "NFKC", "NFKD"];

test("marks in any order have the normal forms of the runtime", () => {
  const marks: string[] = [];
  for (let code = 0x300; code < 0x1f000; code += 1) {
    const mark = String.fromCodePoint(code);
    if (/\p{M}/u.test(mark)) marks.push(mark);
  }
  const random = new SeededRandom(1290);
  for (let round = 0; round < amountOf({ usual: 100, thorough: 500 }); round += 1) {
    const count = random.below(120);
    const most = round % 2 === 0 ? marks.length : 60;
    const run = Array.from({ length: count }, () => {
      if (random.below(60) === 0) return "é";
      return marks[random.below(most)] ?? "";
    });
    const text = `x${run.join("")}`;
    for (const form of FORMS) {
      expect(normalized(text, form), JSON.stringify(text)).toBe(text.normalize(form));
    }
  }
});

/** The time per mark must not grow with the number of marks. */
const MARKS = amountOf({ usual: 15_000, thorough: 100_000 });

testThoroughly(
  "many thousands of marks on one letter are normalized and compared",
  async () => {
    await using engine = await TestEngine.open();
    const letter = `a${"\u0301\u0323".repeat(MARKS / 2)}`;
    for (const form of FORMS) {
      expect(normalized(letter, form)).toHaveLength(form.endsWith("C") ? MARKS : MARKS + 1);
    }
    await engine.run(`CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE t (id INT PRIMARY KEY, a TEXT COLLATE "de-x-icu", b TEXT COLLATE nocase UNIQUE)`);
    const composed = normalized(letter, "NFC");
    for (const [id, text] of [letter, composed, "b"].entries()) {
      const params = [id, text, id === 1 ? null : text];
      await engine.run("INSERT INTO t VALUES ($1, $2, $3)", { params });
    }
    expect(await engine.rows("SELECT id FROM t ORDER BY a")).toEqual([[0], [1], [2]]);
    expect(
      await engine.rows("SELECT id FROM t WHERE b = upper(normalize($1))", { params: [letter] }),
    ).toEqual([[0]]);
    const { error } = await engine.ask(`CREATE USER '${letter}' PASSWORD 'x'`);
    expect(error?.code).toBe("INVALID_NAME");
  },
  20_000,
);
