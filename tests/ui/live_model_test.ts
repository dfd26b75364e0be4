/**
 * Tests the rows of the live view and the checks on its changes, with every possible mismatch
 * between a change and the current rows.
 */
import { expect, test } from "bun:test";
import type { LiveEvent } from "../../src/client/mod.ts";
import type { ChangeMessage, SchemaField, WireRow } from "../../src/protocol/mod.ts";
import { LiveModel } from "../../ui/src/live_model.ts";

const SCHEMA: readonly SchemaField[] = [
  { name: "id", data_type: "BigInt", index: 0, flags: ["pk"] },
  { name: "v", data_type: "Text", index: 1 },
  { name: "_seq", data_type: "BigInt", index: 2 },
];

function start(resumedFrom?: number, schema = SCHEMA): LiveEvent {
  return { type: "start", schema, resumedFrom };
}

function row(id: number, v: string, seq: number): WireRow {
  return { id, v, _seq: seq };
}

function rows(list: readonly WireRow[], isReplay = false): LiveEvent {
  return { type: "rows", rows: list, isReplay };
}

function change(
  type: ChangeMessage["change_type"],
  list: readonly WireRow[],
  olds: readonly WireRow[] = [],
): LiveEvent {
  return {
    type: "change",
    isReplay: false,
    change: {
      type: "change",
      subscription_id: "s",
      change_type: type,
      rows: list,
      old_values: olds,
      ts: 1000,
    },
  };
}

function modelOf(...events: LiveEvent[]): LiveModel {
  const model = new LiveModel(100);
  for (const event of events) model.apply(event, 0);
  return model;
}

function texts(model: LiveModel): unknown[] {
  return model.rows().map(({ cells }) => cells[1]);
}

test("rows are shown newest first, and changed rows keep their position", () => {
  const model = modelOf(
    start(),
    rows([row(1, "a", 1), row(2, "b", 2)]),
    change("insert", [row(3, "c", 3)]),
    change("update", [row(1, "A", 4)], [{ id: 1, v: "a", _seq: 1 }]),
  );
  expect(texts(model)).toEqual(["c", "b", "A"]);
  expect(model.counts()).toMatchObject({ rows: 3, changes: 2, missed: 0 });
});

test("a deleted row is shown a moment longer, and may reappear", () => {
  const gone = change("delete", [], [row(1, "a", 3)]);
  const model = modelOf(start(), rows([row(1, "a", 1), row(2, "b", 2)]), gone);
  expect(texts(model)).toEqual(["b", "a"]);
  expect(model.counts().rows).toBe(1);
  expect(model.sweep(500)).toBe(700);
  model.apply(change("insert", [row(1, "again", 4)]), 600);
  expect(model.sweep(5000)).toBeUndefined();
  expect(texts(model)).toEqual(["b", "again"]);
  model.apply(change("delete", [], [row(2, "b", 5)]), 5000);
  expect(model.sweep(6200)).toBeUndefined();
  expect(texts(model)).toEqual(["again"]);
  expect(model.counts().missed).toBe(0);
});

test.each([
  [
    "an update of a version that is not held",
    change("update", [row(1, "x", 9)], [{ id: 1, _seq: 5 }]),
  ],
  ["an update of a row that is not held", change("update", [row(7, "x", 9)], [{ id: 7, _seq: 5 }])],
  ["an insert over a row that is held", change("insert", [row(1, "x", 9)])],
  ["a deletion of a row that is not held", change("delete", [], [row(7, "x", 9)])],
])("%s counts as one missed", (_name, event) => {
  const model = modelOf(start(), rows([row(1, "a", 1)]), event);
  expect(model.counts().missed).toBe(1);
});

test("changes to rows beyond the maximum number do not count as missed", () => {
  const model = new LiveModel(2);
  model.apply(start(), 0);
  model.apply(rows([row(1, "a", 1), row(2, "b", 2)]), 0);
  model.apply(change("insert", [row(3, "c", 3)]), 0);
  model.apply(change("update", [row(1, "A", 4)], [{ id: 1, _seq: 1 }]), 0);
  model.apply(change("delete", [], [row(2, "b", 5)]), 0);
  expect(model.counts()).toMatchObject({ missed: 0, isPartial: true });
  expect(texts(model)).toEqual(["A", "c"]);
});

test("a resume keeps the rows and counts its changes, whereas a restart reads the rows again", () => {
  const model = modelOf(start(), rows([row(1, "a", 1)]), { type: "status", status: "ready" });
  model.apply(start(1), 0);
  model.apply(rows([row(1, "b", 2), row(2, "c", 3)], true), 0);
  model.apply(change("update", [row(2, "d", 4)], [{ id: 2, _seq: 3 }]), 0);
  model.apply({ type: "status", status: "ready" }, 0);
  expect(texts(model)).toEqual(["d", "b"]);
  expect(model.counts()).toMatchObject({ resumes: 1, replayed: 3, resumedFrom: 1, missed: 0 });
  model.apply(start(), 0);
  model.apply(rows([row(5, "e", 9)]), 0);
  expect(texts(model)).toEqual(["e"]);
  expect(model.counts().isRestarted).toBe(true);
});

test("without a key, all rows are distinct, and a deletion is matched by content", () => {
  const schema = SCHEMA.map(({ data_type, index, name }) => ({ data_type, index, name }));
  const model = modelOf(
    start(undefined, schema),
    rows([row(1, "a", 1), row(1, "a", 2), row(2, "b", 3)]),
    change("delete", [], [{ ...row(1, "a", 9), _deleted: true }]),
  );
  model.sweep(5000);
  expect(model.rows().map(({ seq }) => seq)).toEqual([3, 2]);
  expect(model.counts().missed).toBe(0);
});

test("latencies are measured when a change is drawn, and omitted while the page was not visible", () => {
  const model = modelOf(start());
  expect(model.counts().p50).toBeUndefined();
  for (const [index, atMs] of [1010, 1020, 1100].entries()) {
    model.apply(change("insert", [row(index, "x", index + 1)]), 0);
    expect(model.painted(atMs, { isMeasured: true })).toBe(true);
  }
  model.apply(change("insert", [row(9, "x", 9)]), 0);
  expect(model.painted(9000, { isMeasured: false })).toBe(false);
  expect(model.painted(9000, { isMeasured: true })).toBe(false);
  expect(model.counts()).toMatchObject({ p50: 20, p99: 100 });
});
