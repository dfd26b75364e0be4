/**
 * Verifies that the state of a query is judged by the SELECT after the last commit to the query's
 * tables.
 */
import { expect, test } from "bun:test";
import { CommitLedger, changedTables, readTables } from "./commit_ledger.ts";
import type { Schema, View } from "./tables.ts";

function view(name: string, query: string): View {
  return { name, query, columns: [] };
}

const SCHEMA: Schema = {
  tables: [],
  views: [
    view("vw1", "SELECT a.id FROM ruled2 AS a"),
    view("vw2", "SELECT a.id FROM vw1 AS a JOIN shared1 AS b ON b.id = a.id"),
  ],
};

test("a query reads the tables of its views and policies, and the rows of its own user", () => {
  const tablesOf = (sql: string): string[] => [...readTables(sql, "bob", SCHEMA)].toSorted();
  expect(tablesOf("SELECT a.id FROM shared1 AS a")).toEqual(["shared1"]);
  expect(tablesOf("SELECT a.id FROM vw2 AS a")).toEqual(["guests", "ruled2", "shared1"]);
  expect(tablesOf("SELECT a.id FROM own3 AS a")).toEqual(["own3 of bob"]);
});

test("a commit changes the target of each statement", () => {
  const tablesOf = (sql: string): string[] => [...changedTables(sql, "bob")].toSorted();
  const upsert = "INSERT INTO shared1 VALUES (1) ON CONFLICT (id) DO UPDATE SET i = 2";
  expect(tablesOf(upsert)).toContain("shared1");
  expect(tablesOf(upsert)).not.toContain("own2 of bob");
  const parts = `WITH c AS (DELETE FROM own2 RETURNING id) MERGE INTO shared1 AS w USING c ON w.id = c.id`;
  expect(tablesOf(`BEGIN; ${parts}; UPDATE guests SET room = 1; COMMIT`)).toEqual([
    "guests",
    "own2 of bob",
    "shared1",
  ]);
});

test("a state is that of the last commit to one of the tables", () => {
  const ledger = new CommitLedger();
  const [first, second] = [new Set(["shared1"]), new Set(["shared2"])];
  const both = first.union(second);
  ledger.begin(10);
  // The responses to overlapping commits arrive in any order.
  ledger.add([
    { seq: 30, tables: second },
    { seq: 20, tables: first },
  ]);
  const changesOf = (tables: ReadonlySet<string>, seqs: readonly number[]): number[] =>
    seqs.map((seq) => ledger.lastChange(tables, seq));
  expect(changesOf(first, [10, 19, 20, 30, 35])).toEqual([10, 10, 20, 20, 20]);
  expect(changesOf(second, [20, 30, 35])).toEqual([10, 30, 30]);
  expect(changesOf(both, [15, 25, 35])).toEqual([10, 20, 30]);
  ledger.add([{ seq: 40, tables: first }]);
  expect(changesOf(first, [39, 40])).toEqual([20, 40]);
  // Before the list begins, no commit is known.
  expect(ledger.lastChange(first, 5)).toBe(5);
});

test("without a complete list, each seq may have rows of its own", () => {
  const ledger = new CommitLedger();
  const tables = new Set(["shared1"]);
  expect([ledger.isComplete, ledger.lastChange(tables, 7)]).toEqual([false, 7]);
  ledger.begin(10);
  ledger.add([{ seq: 20, tables }]);
  ledger.lose();
  expect([ledger.isComplete, ledger.lastChange(tables, 25)]).toEqual([false, 25]);
  ledger.begin(30);
  expect([ledger.isComplete, ledger.lastChange(tables, 35)]).toEqual([true, 30]);
});
