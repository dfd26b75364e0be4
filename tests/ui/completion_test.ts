/**
 * Verifies that the editor offers the right names in the right order at the cursor. A vertical bar
 * marks the cursor in these tests.
 */
import { expect, test } from "bun:test";
import { completionAt } from "../../ui/src/completion.ts";
import type { ListedTable } from "../../ui/src/listed_table.ts";

function tableOf(namespace: string, name: string, columns: string): ListedTable {
  return {
    namespace,
    name,
    columns: columns.split(" ").map((column) => ({ name: column, type: "TEXT" })),
  };
}

const LISTED: readonly ListedTable[] = [
  tableOf("air", "airports", "code city"),
  tableOf("air", "flights", "date delay delivered_at origin destination"),
  tableOf("air", "Flight Plans", "id Remark"),
  tableOf("air", "order", "id total"),
  tableOf("default", "notes", "id note"),
  tableOf("system", "flights_seen", "id delayed"),
];

function offered(marked: string, { isAsked = false } = {}): ReturnType<typeof completionAt> {
  const cursor = marked.indexOf("|");
  return completionAt(marked.replace("|", ""), cursor, { isAsked, listed: LISTED });
}

function labels(marked: string, options = {}): string[] {
  return (offered(marked, options)?.options ?? []).map(({ label }) => label);
}

/** Returns the editor's text after the first completion option has been accepted. */
function taken(marked: string): string {
  const result = offered(marked);
  const text = marked.replace("|", "");
  const [option] = result?.options ?? [];
  const apply = typeof option?.apply === "string" ? option.apply : (option?.label ?? "");
  return text.slice(0, result?.from) + apply + text.slice(result?.to ?? result?.from);
}

test.each([
  ["SELECT * FROM air.flights WHERE del|", ["delay", "delivered_at"]],
  ["SELECT * FROM air.flights WHERE delay > 5 AND ori|", ["origin"]],
  ["SELECT del| FROM air.flights", ["delay", "delivered_at"]],
  ["SELECT * FROM air.flights ORDER BY des|", ["destination"]],
  ["SELECT * FROM air.flights GROUP BY origin, des|", ["destination"]],
  ["SELECT count(*) FROM air.flights HAVING max(del|", ["delay", "delivered_at"]],
  ["UPDATE air.flights SET del|", ["delay", "delivered_at"]],
  ["UPDATE air.flights SET delay = 0, ori|", ["origin"]],
  ["UPDATE air.flights SET delay = 0 WHERE ori|", ["origin"]],
  ["DELETE FROM air.flights WHERE del|", ["delay", "delivered_at"]],
  ["INSERT INTO air.flights (del|", ["delay", "delivered_at"]],
  ["INSERT INTO air.flights (origin, del|", ["delay", "delivered_at"]],
  ["SELECT * FROM air.flights f JOIN air.airports a ON a.co|", ["code"]],
  ["SELECT * FROM air.flights f JOIN air.airports a ON f.ori|", ["origin"]],
  ["SELECT * FROM air.flights AS f, air.airports a WHERE ci|", ["city"]],
  ["SELECT flights.del| FROM air.flights", ["delay", "delivered_at"]],
  ["SELECT air.flights.del|", ["delay", "delivered_at"]],
  ['SELECT * FROM air."Flight Plans" WHERE rem|', ["Remark"]],
  ['SELECT * FROM air."Flight Plans" p WHERE p."Re|', ["Remark"]],
  ["SELECT * FROM notes WHERE no|", ["note"]],
  ["SELECT 1; SELECT * FROM air.flights WHERE del|; SELECT * FROM notes", ["delay"]],
  ["SELECT * FROM notes WHERE id IN (SELECT del| FROM air.flights)", ["delay"]],
  ["SELECT * FROM notes -- DELETE FROM air.airports\nWHERE no|", ["note"]],
  ["WITH late AS (SELECT * FROM air.flights WHERE del|", ["delay", "delivered_at"]],
])("columns come first: %s", (marked, expected) => {
  expect(labels(marked).slice(0, expected.length)).toEqual(expected);
});

test.each([
  ["SELECT * FROM fli|", ["air.flights", "air.Flight Plans", "system.flights_seen"]],
  ["SELECT * FROM air|", ["air.airports", "air.flights"]],
  ["SELECT * FROM notes, fli|", ["air.flights"]],
  ["SELECT * FROM notes JOIN fli|", ["air.flights"]],
  ["SELECT * FROM notes LEFT JOIN air|", ["air.airports"]],
  ["UPDATE fli|", ["air.flights"]],
  ["INSERT INTO fli|", ["air.flights"]],
  ["DELETE FROM no|", ["notes"]],
  ["DROP TABLE fli|", ["air.flights"]],
  ["SELECT * FROM air.fli|", ["flights", "Flight Plans"]],
  ['SELECT * FROM "Fli|', ["air.flights", "air.Flight Plans"]],
  ["WITH late AS (SELECT 1) SELECT * FROM la|", ["late"]],
])("tables come first: %s", (marked, expected) => {
  expect(labels(marked).slice(0, expected.length)).toEqual(expected);
});

test.each([
  ["del|", "DELETE"],
  ["SELECT * FROM air.flights wh|", "WHERE"],
  ["SELECT * FROM air.flights o|", "OF"],
  ["SELECT * FROM air.flights ORDER BY delay d|", "DATE"],
  ["SELECT delay fr|", "FROM"],
])("grammar keywords come first where a name is not expected: %s", (marked, expected) => {
  expect(labels(marked)).toContain(expected);
  expect(labels(marked)[0]).toBe(labels(marked)[0]?.toUpperCase());
});

test("names are written as the grammar requires", () => {
  expect(taken("SELECT * FROM flight p|")).toBe("SELECT * FROM flight PARTITION");
  expect(taken("SELECT * FROM fli|")).toBe("SELECT * FROM air.flights");
  expect(taken("SELECT * FROM air.ord|")).toBe('SELECT * FROM air."order"');
  expect(taken('SELECT * FROM air."Flight P|"')).toBe('SELECT * FROM air."Flight Plans"');
  expect(taken('SELECT rem| FROM air."Flight Plans"')).toBe(
    'SELECT "Remark" FROM air."Flight Plans"',
  );
  // A column name that occurs in both tables must be qualified.
  expect(labels("SELECT i| FROM notes n JOIN air.order o ON true").slice(0, 2)).toEqual([
    "n.id",
    "o.id",
  ]);
});

test("nothing is offered in strings, comments and numbers, or automatically without a prefix", () => {
  for (const marked of ["SELECT 'del|'", "-- del|", "/* del| */ SELECT 1", "SELECT 1de|"]) {
    expect(offered(marked)).toBeNull();
  }
  expect(offered("SELECT * FROM |")).toBeNull();
  expect(labels("SELECT * FROM |", { isAsked: true })[0]).toBe("air.airports");
});
