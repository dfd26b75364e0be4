/**
 * Verifies that the numbers stored next to rows for sorting never change the order. The tests sort
 * strings that share prefixes, end early, and mix characters of one to four bytes with unpaired
 * surrogates, and numbers beyond the range of a double, in both directions. They compare the
 * result with a sort of the values themselves.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../../../src/base/clock.ts";
import { compareCodePoints } from "../../../../src/types/mod.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { randomFrom, seedOf } from "../../../types/random.ts";

const ROWS = 3000;
const PARTS = ["", "a", "ab", "é", "ÿ", "\uffff", "😀", "\u{10ffff}", " ", "~", "\u0001", "row "];

let engine: TestEngine;
let seed = 0;
const texts: string[] = [];

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  seed = seedOf();
  const random = randomFrom(seed);
  const pick = (): string => PARTS[Math.floor(random() * PARTS.length)] ?? "";
  for (let row = 0; row < ROWS; row += 1) {
    const shared = random() < 0.5 ? "a shared start" : "";
    const length = Math.floor(random() * 9);
    texts.push(shared.slice(0, Math.floor(random() * 15)) + Array.from({ length }, pick).join(""));
  }
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, s TEXT, b BIGINT, x DOUBLE, u UUID)");
  const rows = texts.map((text, id) => {
    const number = id % 7 === 0 ? "NULL" : `${9_007_199_254_740_990 + (id % 11)}`;
    const sign = id % 2 === 0 ? "" : "-";
    return `(${id}, '${text}', ${number === "NULL" ? number : sign + number}, ${(id % 5) - 2})`;
  });
  await engine.run(`INSERT INTO t (id, s, b, x) VALUES ${rows.join(",")}`);
  await engine.run("UPDATE t SET u = md5(id::TEXT)::UUID, x = NULLIF(x, 2) WHERE id >= 0");
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

async function ids(order: string): Promise<readonly unknown[]> {
  return (await engine.rows(`SELECT id FROM t ORDER BY ${order}`)).map(([id]) => id);
}

test.each([1, -1])("texts are sorted by their code points, times %p", async (direction) => {
  const expected = [...texts.keys()].toSorted((left, right) => {
    const by = compareCodePoints(texts[left] ?? "", texts[right] ?? "");
    return by === 0 ? left - right : direction * by;
  });
  const order = direction === 1 ? "s, id" : "s DESC, id";
  expect(await ids(order), `seed ${seed}`).toEqual(expected);
});

test.each([
  ["b", "b::DECIMAL(38,0)"],
  ["x", "x::DECIMAL(10,2)"],
  ["u", "u::TEXT"],
])("%s is in the order of %s, NULL on either end", async (key, other) => {
  for (const way of ["", "DESC", "NULLS FIRST", "DESC NULLS LAST"]) {
    // The first key is the same in all rows, so the order depends on later keys, for which no
    // numbers are stored.
    expect(await ids(`${key} ${way}, id`)).toEqual(await ids(`id * 0, ${other} ${way}, id`));
    const numbered = `SELECT id FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY ${key} ${way}, id) AS n FROM t) w ORDER BY n`;
    const inWindow = (await engine.rows(numbered)).map(([id]) => id);
    expect(inWindow).toEqual([...(await ids(`${key} ${way}, id`))]);
  }
});
