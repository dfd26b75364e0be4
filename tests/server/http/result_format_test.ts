/**
 * Verifies that results in JSON, NDJSON and CSV have the same bytes whether they are written in
 * one piece or in many.
 */
import { expect, spyOn, test } from "bun:test";
import type { SchemaField } from "../../../src/protocol/mod.ts";
import {
  csvPieces,
  formatFromAccept,
  isLarge,
  jsonBody,
  jsonPieces,
  ndjsonPieces,
} from "../../../src/server/http/result_format.ts";
import type { StatementResult } from "../../../src/sql/mod.ts";

const SCHEMA = [
  { name: "id", data_type: "BigInt", index: 0, flags: ["pk", "nn", "uq"] },
  { name: "text, quoted", data_type: "Text", index: 1 },
] as const;

function selected(rows: readonly (readonly unknown[])[]): StatementResult {
  return { schema: SCHEMA, rows, rowCount: rows.length, asUser: "ada" };
}

const INSERTED: StatementResult = {
  rowCount: 1,
  message: "Inserted 1 row(s)",
  asUser: "ada",
  lastSeq: 114809241600002,
};

test("jsonBody writes the result of an INSERT", () => {
  expect(jsonBody([INSERTED], { tookMs: 1.402 })).toBe(
    '{"results":[{"row_count":1,"message":"Inserted 1 row(s)","as_user":"ada","last_seq":114809241600002}],"status":"success","took":1.402}',
  );
});

test("jsonBody names the user of each statement, escaped where necessary", () => {
  for (const asUser of ["ada", "grace@x.org", 'a "b"', "", "zoë", "a\nb", "ada"]) {
    for (const told of [{ message: "Inserted 1 row(s)" }, {}]) {
      const body = jsonBody([{ rowCount: 1, ...told, asUser, lastSeq: 5 }], { tookMs: 1 });
      const [entry] = (JSON.parse(body) as { results: unknown[] }).results;
      expect(entry).toEqual({ row_count: 1, ...told, as_user: asUser, last_seq: 5 });
    }
  }
});

test("a notice is in the entry of its statement, and in the last line of NDJSON", () => {
  const notices = ['Column "at" contains 1970'];
  const body = jsonBody([{ ...INSERTED, notices }, INSERTED], { tookMs: 1 });
  const { results } = JSON.parse(body) as { results: { notices?: unknown }[] };
  expect(results.map((entry) => entry.notices)).toEqual([notices, undefined]);
  const lines = [...ndjsonPieces({ ...selected([]), notices }, () => 1)].join("").split("\n");
  expect(lines[1]).toBe(
    `{"status":"success","row_count":0,"notices":${JSON.stringify(notices)},"took":1.000}`,
  );
});

test("jsonPieces write the same text as jsonBody", () => {
  const rows = Array.from({ length: 5000 }, (_, id) => [id, `row ${id}`]);
  const error = { code: "INTERNAL_ERROR", message: "Statement 4: no" };
  const cases: StatementResult[][] = [
    [],
    [INSERTED],
    [selected([])],
    [selected([[1, null]]), INSERTED],
    [INSERTED, selected(rows), { ...INSERTED, lastSeq: null }, selected(rows.slice(0, 2048))],
  ];
  for (const results of cases) {
    for (const ending of [{ tookMs: 0.5 }, { tookMs: 7, error }]) {
      const whole = jsonBody(results, ending);
      expect([...jsonPieces(results, () => ending)].join("")).toBe(whole);
      JSON.parse(whole);
    }
  }
});

test("jsonPieces and csvPieces hold a bounded number of rows each", () => {
  const rows = Array.from({ length: 100_000 }, (_, id) => [id, "x"]);
  const longest = Math.max(...[...csvPieces(selected(rows))].map((piece) => piece.length));
  expect(longest).toBeLessThan(40_000);
  expect(isLarge([selected(rows)])).toBe(true);
  expect(isLarge([selected(rows.slice(0, 10)), INSERTED])).toBe(false);
});

test("jsonPieces write short rows together, and long rows separately", () => {
  const short = Array.from({ length: 2000 }, (_, id) => [id, "x"]);
  const long = Array.from({ length: 40 }, (_, id) => [id, "y".repeat(200_000)]);
  const rows = [...short, ...long, ...short];
  const stringify = spyOn(JSON, "stringify");
  let pieces: string[];
  let callCount: number;
  try {
    pieces = [...jsonPieces([selected(rows)], () => ({ tookMs: 1 }))];
    callCount = stringify.mock.calls.length;
  } finally {
    stringify.mockRestore();
  }
  expect(pieces.join("")).toBe(jsonBody([selected(rows)], { tookMs: 1 }));
  expect(callCount).toBeLessThan(300);
  // The first long rows share a group with the short rows before them.
  expect(pieces.filter((piece) => piece.length > 500_000).length).toBeLessThan(2);
});

test("a duration has three decimals in each format", () => {
  for (const [tookMs, text] of [
    [1.23456, "1.235"],
    [0, "0.000"],
    [12, "12.000"],
  ] as const) {
    expect(jsonBody([], { tookMs })).toEndWith(`"took":${text}}`);
    const lines = [...ndjsonPieces(selected([]), () => tookMs)];
    expect(lines.join("")).toEndWith(`"took":${text}}\n`);
  }
});

test("ndjsonPieces begin with the schema and end with the status", () => {
  const lines = [
    ...ndjsonPieces(
      selected([
        [1, "a"],
        [2, null],
      ]),
      () => 3,
    ),
  ]
    .join("")
    .split("\n");
  expect(lines.map((line) => (line === "" ? "" : JSON.parse(line)))).toEqual([
    { schema: SCHEMA, as_user: "ada" },
    [1, "a"],
    [2, null],
    { status: "success", row_count: 2, took: 3 },
    "",
  ]);
});

test("csvPieces quote as RFC 4180 requires, and distinguish NULL from empty text", () => {
  const rows = [
    [1, "plain"],
    [2, null],
    [3, ""],
    [4, 'say "hi", twice\r\n'],
    ["9007199254740993", true],
    [1.5, [1, 2]],
  ];
  expect([...csvPieces(selected(rows))].join("")).toBe(
    'id,"text, quoted"\r\n' +
      "1,plain\r\n" +
      "2,\r\n" +
      '3,""\r\n' +
      '4,"say ""hi"", twice\r\n"\r\n' +
      "9007199254740993,true\r\n" +
      '1.5,"[1,2]"\r\n',
  );
});

test("csvPieces write dates and times in ISO 8601, whereas JSON contains numbers", () => {
  const schema: SchemaField[] = ["Date", "Time", "Timestamp", "DateTime", "BigInt"].map(
    (data_type, index) => ({ name: data_type.toLowerCase(), data_type, index }),
  );
  const rows = [
    [20_484, 52_200_000_000, 1_769_869_800_000_000, 1_769_869_800_123_456, 1],
    [-1, 0, -1, "253402300799999999", 2],
    [null, null, null, null, null],
  ];
  const result = { schema, rows, rowCount: rows.length, asUser: "ada" };
  expect([...csvPieces(result)].join("")).toBe(
    "date,time,timestamp,datetime,bigint\r\n" +
      "2026-01-31,14:30:00,2026-01-31T14:30:00,2026-01-31T14:30:00.123456Z,1\r\n" +
      "1969-12-31,00:00:00,1969-12-31T23:59:59.999999,9999-12-31T23:59:59.999999Z,2\r\n" +
      ",,,,\r\n",
  );
  expect(jsonBody([result], { tookMs: 1 })).toContain("[20484,52200000000,1769869800000000,");
});

test.each<[string | null, string]>([
  [null, "json"],
  ["*/*", "json"],
  ["application/json", "json"],
  ["text/html", "json"],
  ["text/csv", "csv"],
  ["TEXT/CSV; charset=utf-8", "csv"],
  ["application/x-ndjson", "ndjson"],
  ["application/x-ndjson, application/json;q=0.9", "ndjson"],
  ["application/json;q=0.5, text/csv;q=0.8", "csv"],
  ["text/csv;q=0", "json"],
  ["application/json, text/csv", "json"],
])("formatFromAccept %p is %s", (accept, format) => {
  expect(formatFromAccept(accept)).toBe(format as ReturnType<typeof formatFromAccept>);
});
