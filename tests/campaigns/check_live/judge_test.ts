/**
 * Verifies that the live stream checker can be trusted: it finds each kind of fault in an
 * otherwise sound stream, and no fault in a sound stream.
 */
import { expect, test } from "bun:test";
import { type Faults, Judge, noFaults, type ReaderEvent, type WireChange } from "./judge.ts";
import { Ledger, type Row } from "./ledger.ts";
import type { Cells, Followed } from "./queries.ts";

const LOBBY: Followed = {
  name: "lobby",
  table: "board",
  user: "ann",
  begins: "snapshot",
  query: {
    sql: "SELECT body FROM live.board WHERE room = 'lobby'",
    keeps: ({ room }) => room === "lobby",
    shows: ({ body }) => ({ body }),
  },
};

function row(id: number, room: string, body: string): Row {
  return { id, room, n: null, body };
}

/** Returns a ledger with seqs 1 to 9: two rows before the snapshot, and the rest after it. */
function ledger(): Ledger {
  const written = new Ledger();
  const versions: [Row, boolean][] = [
    [row(1, "lobby", "a"), false],
    [row(2, "hall", "b"), false],
    [row(3, "lobby", "c"), false],
    [row(1, "lobby", "d"), false],
    [row(2, "lobby", "e"), false],
    [row(3, "hall", "f"), false],
    [row(4, "hall", "g"), false],
    [row(1, "lobby", "d"), true],
    [row(1, "lobby", "h"), false],
  ];
  for (const [index, [each, isDeleted]] of versions.entries()) {
    written.begin("board")([{ seq: index + 1, isDeleted, row: each }]);
  }
  written.close();
  return written;
}

function cells(id: number, body: string, seq: number): Cells {
  return { id, body, _seq: seq };
}

function change(change_type: string, rows: Cells[], old_values?: Cells[]): ReaderEvent {
  const told: WireChange = {
    change_type,
    rows,
    ...(old_values === undefined ? {} : { old_values }),
  };
  return { kind: "change", change: told };
}

const SOUND: readonly ReaderEvent[] = [
  { kind: "begin", mode: "snapshot", position: 0 },
  { kind: "ack", fields: ["body", "id", "_seq"], boundary: null },
  { kind: "batch", rows: [cells(1, "a", 1), cells(3, "c", 3)], lastSeq: 3, isLast: true },
  change("update", [cells(1, "d", 4)], [{ id: 1, body: "a", _seq: 1 }]),
  change("insert", [cells(2, "e", 5)]),
  change("delete", [], [{ ...cells(3, "c", 6), _deleted: true }]),
  change("delete", [], [{ ...cells(1, "d", 8), _deleted: true }]),
  change("insert", [cells(1, "h", 9)]),
  { kind: "position", seq: 9 },
];

function judged(events: readonly ReaderEvent[]): Faults {
  const written = ledger();
  written.settle();
  const judge = new Judge(LOBBY, written.partition("board"));
  for (const event of events) judge.add(event);
  judge.judge(Infinity);
  judge.finish(9);
  return judge.faults;
}

const NONE: Faults = noFaults();

test("a sound stream has no faults", () => {
  expect(judged(SOUND)).toEqual(NONE);
});

test("a sound resume has no faults, whether it replays all changes or their net effect", () => {
  const until = SOUND.slice(0, 4);
  const all: ReaderEvent[] = [
    { kind: "begin", mode: "all", position: 4 },
    { kind: "ack", fields: ["body", "id", "_seq"], boundary: 4 },
    { kind: "batch", rows: [cells(2, "e", 5)], lastSeq: 5, isLast: false },
    change("delete", [], [{ ...cells(3, "c", 6), _deleted: true }]),
    change("delete", [], [{ ...cells(1, "d", 8), _deleted: true }]),
    { kind: "batch", rows: [], lastSeq: 8, isLast: true },
    change("insert", [cells(1, "h", 9)]),
  ];
  expect(judged([...until, ...all])).toEqual(NONE);
  const latest: ReaderEvent[] = [
    { kind: "begin", mode: "latest", position: 4 },
    { kind: "ack", fields: ["body", "id", "_seq"], boundary: 4 },
    { kind: "batch", rows: [cells(2, "e", 5)], lastSeq: 4, isLast: false },
    change("delete", [], [{ ...cells(3, "c", 6), _deleted: true }]),
    { kind: "batch", rows: [cells(1, "h", 9)], lastSeq: 9, isLast: true },
  ];
  expect(judged([...until, ...latest])).toEqual(NONE);
  expect(judged([...until, ...latest.toSpliced(3, 1)]).missed).toBe(1);
});

test.each([3, 4, 5, 6, 7])("the judge finds a miss if event %d is lost", (index) => {
  expect(judged(SOUND.toSpliced(index, 1)).missed).toBe(1);
});

test.each([3, 4, 5, 6, 7])("the judge finds a duplicate if event %d arrives twice", (index) => {
  expect(judged([...SOUND.slice(0, index + 1), ...SOUND.slice(index)]).doubled).toBe(1);
});

test.each([3, 4, 5, 6])(
  "the judge finds a wrong order if event %d arrives after the next one",
  (index) => {
    const [first, second] = SOUND.slice(index, index + 2);
    if (first === undefined || second === undefined) throw new Error("there are two events");
    expect(judged(SOUND.toSpliced(index, 2, second, first)).outOfOrder).toBe(1);
  },
);

test("the judge finds a snapshot row above the boundary, and a missing row", () => {
  const rows = [cells(1, "d", 4), cells(3, "c", 3)];
  const above = SOUND.with(2, { kind: "batch", rows, lastSeq: 3, isLast: true });
  expect(judged(above).aboveBoundary).toBe(1);
  const short = SOUND.with(2, { kind: "batch", rows: rows.slice(1), lastSeq: 3, isLast: true });
  expect(judged(short).missed).toBe(1);
});

test.each<[string, ReaderEvent]>([
  ["another type", change("insert", [cells(1, "d", 4)])],
  ["another cell", change("update", [cells(1, "x", 4)], [{ id: 1, body: "a", _seq: 1 }])],
  ["another old cell", change("update", [cells(1, "d", 4)], [{ id: 1, body: "x", _seq: 1 }])],
  ["no old cell", change("update", [cells(1, "d", 4)], [{ id: 1, _seq: 1 }])],
])("%s is wrong", (_what, damaged) => {
  expect(judged(SOUND.with(3, damaged)).wrong).toBeGreaterThanOrEqual(1);
});

test("a change to a row that does not match or was never written counts as wrong", () => {
  expect(judged(SOUND.toSpliced(6, 0, change("insert", [cells(4, "g", 7)]))).wrong).toBeGreaterThan(
    0,
  );
  expect(judged([...SOUND, change("insert", [cells(5, "z", 10)])]).wrong).toBeGreaterThan(0);
});

test("a change that arrives while a snapshot loads counts as wrong", () => {
  const early = SOUND.toSpliced(2, 2, ...SOUND.slice(2, 4).toReversed());
  expect(judged(early).wrong).toBeGreaterThan(0);
});

test("a position ahead of the delivered changes counts as a miss", () => {
  const events = SOUND.toSpliced(4, 0, { kind: "position", seq: 5 });
  expect(judged(events).missed).toBe(1);
});

test("the ledger is complete up to the last acknowledgement before the oldest pending statement", () => {
  const written = new Ledger();
  written.begin("board")([{ seq: 5, isDeleted: false, row: row(1, "a", "b") }]);
  const late = written.begin("board");
  written.begin("board")([{ seq: 9, isDeleted: false, row: row(2, "a", "b") }]);
  expect(written.completeSeq).toBe(5);
  written.settle();
  expect(written.partition("board").versions.map(({ seq }) => seq)).toEqual([5]);
  late([{ seq: 7, isDeleted: true, row: row(1, "a", "b") }]);
  expect(written.completeSeq).toBe(9);
  written.settle();
  expect(written.partition("board").versions.map(({ seq }) => seq)).toEqual([5, 7, 9]);
});
