/**
 * Verifies that the judge of materialised queries finds rows with a wrong `_seq`, and accepts rows
 * that merely look like an earlier row. The tests make up the states and the rows of the SELECT.
 */
import { expect, test } from "bun:test";
import type { SubscriptionAck, WireRow } from "../../../src/protocol/mod.ts";
import { Judge, type JudgedRound } from "./judge.ts";
import { type JudgedServer, Selects } from "./selects.ts";
import type { Schema } from "./tables.ts";

type Cells = readonly unknown[];

const SCHEMA: Schema = {
  tables: [{ name: "shared1", columns: [], kind: "shared" }],
  views: [],
};

const TABLES: ReadonlySet<string> = new Set(["shared1"]);

/** Answers a SELECT with the rows at the seq that is its only parameter. */
function serverWith(rowsAt: Readonly<Record<number, readonly Cells[]>>): JudgedServer {
  return {
    token: "ada",
    sql: async (_, given) => {
      const body = {
        status: "success",
        results: [{ rows: rowsAt[Number(given?.params?.[0])] ?? [] }],
      };
      return { status: 200, body } as unknown as Awaited<ReturnType<JudgedServer["sql"]>>;
    },
  };
}

const ROUND: JudgedRound = {
  lastChange: (_, seq) => seq,
  startMs: 0,
  endMs: 0,
  isRedefined: false,
  hasRow: () => false,
};

interface Case {
  readonly keys: readonly string[];
  /** The columns of the rows on the wire. The columns of the SELECT come first. */
  readonly columns: readonly string[];
  readonly before: readonly WireRow[];
  readonly rows: readonly WireRow[];
  readonly rowsAt: Readonly<Record<number, readonly Cells[]>>;
  readonly isRedefined?: boolean;
}

/** Judges a state at seq 9 that follows a state at seq 5. */
async function judged({
  before,
  columns,
  isRedefined = false,
  keys,
  rows,
  rowsAt,
}: Case): Promise<string | undefined> {
  const selects = new Selects(serverWith(rowsAt), () => SCHEMA);
  const judge = new Judge(selects, () => ({ ...ROUND, isRedefined }));
  const schema = [...columns, "_key", "_seq"].map((name) => ({ name }));
  const ack = { key_columns: keys, schema } as unknown as SubscriptionAck;
  const state = { seq: 9, rows, before: { seq: 5, rows: before }, isResumed: false };
  const sql = "SELECT a.t FROM shared1 AS a";
  const asked = { user: "ada", token: "ada", sql, params: [], tables: TABLES, way: undefined };
  return await judge.differenceOf(asked, { ack, state, isByCommit: true, isNewest: true });
}

function row(cells: WireRow, key: string, seq: number): WireRow {
  return { ...cells, _key: key, _seq: seq };
}

const CHANGED_BEFORE = /has the seq 8, but changed before/;

test("a row that existed before its seq is found by its key", async () => {
  const rows = [row({ id: 1, t: "a" }, "1", 8)];
  const found = { keys: ["id"], columns: ["id", "t"], before: [], rows };
  expect(await judged({ ...found, rowsAt: { 7: [[1, "a"]], 9: [[1, "a"]] } })).toMatch(
    CHANGED_BEFORE,
  );
  expect(await judged({ ...found, rowsAt: { 7: [[1, "b"]], 9: [[1, "a"]] } })).toBeUndefined();
});

test("a row takes the place of an equal one whose key the SELECT lacks", async () => {
  const rows = [row({ t: null, id: 2 }, "2", 8)];
  const rowsAt = { 7: [[null]], 8: [[null]], 9: [[null]] };
  const given = { keys: ["id"], columns: ["t", "id"], before: [], rows, rowsAt };
  expect(await judged(given)).toBeUndefined();
});

test("a row that changed in a column that the SELECT lacks is accepted", async () => {
  const before = [row({ id: 1, order: 1 }, "1", 5)];
  const rows = [row({ id: 1, order: 2 }, "1", 8)];
  const rowsAt = { 7: [[1]], 9: [[1]] };
  const given = { keys: ["id"], columns: ["id", "order"], before, rows, rowsAt };
  expect(await judged(given)).toBeUndefined();
  expect(await judged({ ...given, before: [] })).toMatch(CHANGED_BEFORE);
});

test("rows without a key may be equal but for a column that the SELECT lacks", async () => {
  const rows = [row({ t: "a", order: 2 }, "x", 8)];
  const rowsAt = { 7: [["a"]], 8: [["a"]], 9: [["a"]] };
  const given = { keys: [], columns: ["t", "order"], before: [], rows, rowsAt };
  expect(await judged(given)).toBeUndefined();
});

test("of equal rows without a key, a commit made as many as the SELECT has more", async () => {
  const rows = [row({ t: "a" }, "x", 8)];
  const given = { keys: [], columns: ["t"], before: [], rows };
  const one = [["a"]];
  // A row was added at seq 8, and an equal row was removed at seq 9.
  expect(await judged({ ...given, rowsAt: { 7: one, 8: [...one, ...one], 9: one } })).toBe(
    undefined,
  );
  expect(await judged({ ...given, rowsAt: { 7: one, 8: one, 9: one } })).toMatch(CHANGED_BEFORE);
});

test("a row that changed after a state has a later seq than the state", async () => {
  const rows = [row({ t: "a" }, "x", 5)];
  const given = { keys: [], columns: ["t"], before: [], rows, rowsAt: { 9: [["a"]] } };
  expect(await judged(given)).toMatch(/changed after 5 has the seq 5/);
  const older = [row({ t: "a" }, "x", 4)];
  expect(await judged({ ...given, rows: older })).toMatch(/changed after 5 has the seq 4/);
});

test("a first row has the seq of its newest table row, or one that the server has kept", async () => {
  const asked = {
    user: "ada",
    token: "ada",
    sql: "SELECT a.i, count(*) FROM shared1 AS a GROUP BY 1",
    seqSql: "SELECT a.i, count(*), max(a._seq) FROM shared1 AS a GROUP BY 1",
    params: [],
    tables: TABLES,
    way: undefined,
  };
  // The group has rows of the seqs 4 and 6. Another row of the group is removed at seq 8.
  const cellsAt = (seq: number): Cells => [1, seq < 8 ? 3 : 2];
  const server = {
    token: "ada",
    sql: async (sql: string, { params = [] }: { params?: readonly unknown[] } = {}) => {
      const cells = cellsAt(Number(params[0]));
      const rows = [sql.includes("_seq") ? [...cells, 6] : cells];
      return { status: 200, body: { status: "success", results: [{ rows }] } };
    },
  };
  const selects = new Selects(server as unknown as JudgedServer, () => SCHEMA);
  const ack = {
    key_columns: ["i"],
    schema: [{ name: "i" }, { name: "count" }],
  } as unknown as SubscriptionAck;
  const differenceWith = async (seq: number, hasRow = false) => {
    const judge = new Judge(selects, () => ({ ...ROUND, hasRow: () => hasRow }));
    const rows = [row({ i: 1, count: 2 }, "1", seq)];
    const state = { seq: 9, rows, before: undefined, isResumed: false };
    return await judge.differenceOf(asked, { ack, state, isByCommit: true, isNewest: true });
  };
  expect(await differenceWith(6)).toBeUndefined();
  expect(await differenceWith(8)).toBeUndefined();
  expect(await differenceWith(9)).toMatch(/a first row has the seq 9/);
  expect(await differenceWith(4)).toMatch(/a first row has the seq 4/);
  expect(await differenceWith(9, true)).toBeUndefined();
});

test("rows that the time changes are those of some moment since the last burst", async () => {
  const sql = "SELECT a.id FROM shared1 AS a WHERE a.ts > NOW()";
  // The SELECT returns the row until second 2, and the burst lasts from second 1.5 to second 2.5.
  const server = {
    token: "ada",
    sql: async (_: string, { params = [] }: { params?: readonly unknown[] } = {}) => {
      const rows = Date.parse(String(params[1])) < 2000 ? [[1]] : [];
      return { status: 200, body: { status: "success", results: [{ rows }] } };
    },
  };
  const selects = new Selects(server as unknown as JudgedServer, () => SCHEMA);
  const asked = { sql, params: [], user: "ada", token: "ada", tables: TABLES, way: undefined };
  const ack = { key_columns: ["id"], schema: [{ name: "id" }] } as unknown as SubscriptionAck;
  const differenceIn = async (rows: readonly WireRow[], startMs: number) => {
    const judge = new Judge(selects, () => ({ ...ROUND, startMs, endMs: 2500 }));
    const state = { seq: 9, rows, before: undefined, isResumed: false };
    return await judge.differenceOf(asked, { ack, state, isByCommit: true, isNewest: true });
  };
  const rows = [row({ id: 1 }, "1", 8)];
  expect(await differenceIn(rows, 1500)).toBeUndefined();
  expect(await differenceIn([], 1500)).toBeUndefined();
  expect(await differenceIn(rows, 2100)).toMatch(/only the follower has \[1\]/);
});
