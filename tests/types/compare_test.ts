/**
 * Verifies that each type has a total order, and that keys are equal if and only if their values
 * are equal.
 */
import { expect, test } from "bun:test";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  codePointLength,
  comparatorFor,
  compareCodePoints,
  DATE,
  type DataType,
  DOUBLE,
  decimalType,
  groupKeyMakerFor,
  groupKeyOf,
  INET,
  INT,
  INTERVAL,
  JSONB,
  MONEY,
  NUMERIC,
  sliceCodePoints,
  sortKeyOf,
  TEXT,
  TIMETZ,
  typeName,
  UUID,
  valueFromText,
} from "../../src/types/mod.ts";

/** Values in ascending order, as text. The strings in an inner list represent equal values. */
const ORDERS: readonly (readonly [DataType, readonly (readonly string[])[]])[] = [
  [BOOLEAN, [["false"], ["true"]]],
  [INT, [["-1"], ["0", "-0"], ["2"], ["10"]]],
  [
    BIGINT,
    [
      ["-9223372036854775808"],
      ["-1"],
      ["9007199254740991"],
      ["9007199254740993"],
      ["9223372036854775807"],
    ],
  ],
  [DOUBLE, [["-1e300"], ["-0.5"], ["0", "-0"], ["1e-300"], ["1e300"]]],
  [
    decimalType(38, 2),
    [["-99999999999999999999"], ["-0.01"], ["0"], ["1.10", "1.1"], ["99999999999999999999.99"]],
  ],
  [TEXT, [[""], ["A"], ["a"], ["ab"], ["b"], ["é"], ["\uffee"], ["😀"]]],
  [DATE, [["0001-01-01"], ["1969-12-31"], ["1970-01-01"], ["9999-12-31"]]],
  [
    UUID,
    [
      ["00000000-0000-0000-0000-000000000001"],
      ["0fffffff-0000-0000-0000-000000000000"],
      ["a0000000-0000-0000-0000-000000000000"],
    ],
  ],
  [BYTES, [[""], ["\\x00"], ["\\x0000"], ["\\x7f"], ["\\x80"], ["\\xff"]]],
  [
    INTERVAL,
    [
      ["-1 day"],
      ["0"],
      ["23:59:59"],
      ["1 day", "24:00:00"],
      ["1 month", "30 days"],
      ["1 year", "360 days"],
    ],
  ],
  [
    JSONB,
    [
      ["[]"],
      ["null"],
      ['""'],
      ['"a"'],
      ['"a\\u0001"'],
      ['"ab"'],
      ["-1e30"],
      ["-1.05"],
      ["-1"],
      ["0"],
      ["1", "1.0"],
      ["false"],
      ["true"],
      ["[true]"],
      ["[[]]"],
      ["[1,2]", "[1, 2.00]"],
      ["[1,3]"],
      ["{}"],
      ['{"b":1}'],
      ['{"a":1,"b":2}', '{"b":2,"a":1}'],
      ['{"a":1,"b":[]}'],
    ],
  ],
  [{ kind: "embedding", dimensions: 2 }, [["[0,0]", "[-0,0]"], ["[0,1]"], ["[1,0]"]]],
  [
    { kind: "array", element: INT },
    [["{}"], ["{1}"], ["{1,2}"], ["{1,NULL}"], ["{2}"], ["{NULL}"]],
  ],
  [NUMERIC, [["-Infinity"], ["-10.5"], ["-10"], ["0"], ["0.1", "0.10"], ["9"], ["NaN"]]],
  [MONEY, [["-$2.00"], ["$9.00"], ["$10.00"]]],
  [INET, [["9.0.0.0/8"], ["9.0.0.1/8"], ["10.0.0.0/8"], ["10.0.0.1"], ["192.168.0.1"], ["::1"]]],
  [TIMETZ, [["09:00:00+02"], ["08:00:00+00"], ["10:00:00-02"]]],
  [
    { kind: "array", element: INTERVAL },
    [["{}"], ["{2 hours}"], ["{1 day}", "{24:00}"], ["{1 day,1 day}"], ["{NULL}"]],
  ],
  [{ kind: "array", element: TEXT }, [["{a,b}"], ['{"a,b"}'], ["{ab}"]]],
];

test.each(ORDERS.map(([type, groups]) => [typeName(type), groups, type] as const))(
  "%s has a total order, and keys that agree with it",
  (_, groups, type) => {
    const compare = comparatorFor(type);
    const flat = groups.flatMap((texts, rank) =>
      texts.map((text) => ({ rank, text, value: valueFromText(type, text) })),
    );
    for (const left of flat) {
      for (const right of flat) {
        const wanted = Math.sign(left.rank - right.rank);
        const what = `${left.text} and ${right.text}`;
        expect(Math.sign(compare(left.value, right.value)), what).toBe(wanted);
        const keys = [sortKeyOf(type, left.value), sortKeyOf(type, right.value)] as const;
        expect(Math.sign(compareCodePoints(...keys)), what).toBe(wanted);
        const isSameKey = groupKeyOf(type, left.value) === groupKeyOf(type, right.value);
        expect(isSameKey, what).toBe(wanted === 0);
      }
    }
  },
);

test("groupKeyMakerFor is undefined exactly if values are their own keys", () => {
  expect(groupKeyMakerFor(INT)).toBeUndefined();
  expect(groupKeyMakerFor(TEXT)).toBeUndefined();
  expect(groupKeyMakerFor(JSONB)?.("1.0")).toBe("1");
});

test("compareCodePoints compares as UTF-8 bytes do", () => {
  const texts = ["", "a", "z", "é", "\ud7ff", "\ue000", "\uffff", "😀", "a😀", "a\uffff", "𐀀"];
  for (const left of texts) {
    for (const right of texts) {
      const wanted = Math.sign(Buffer.compare(Buffer.from(left), Buffer.from(right)));
      expect(Math.sign(compareCodePoints(left, right)), `${left} ${right}`).toBe(wanted);
    }
  }
});

test("lengths and slices count code points", () => {
  expect(codePointLength("a😀é")).toBe(3);
  expect(sliceCodePoints("a😀é", 1, 2)).toBe("😀");
  expect(sliceCodePoints("abc", -2, 2)).toBe("ab");
  expect(sliceCodePoints("a😀", -1, -1)).toBe("");
});
