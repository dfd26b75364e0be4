/**
 * Verifies that a snapshot is the same whether another thread or the main thread finds its rows,
 * whatever happens while rows are in transit between them. A search returns rows only when the
 * test permits it.
 */
import { expect, test } from "bun:test";
import type { SearchRange } from "../../../src/sql/mod.ts";
import {
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  queryTexts,
  type RecordingSink,
  settle,
} from "../../support/live_fixture.ts";
import { PromptedSearch } from "../../support/prompted_search.ts";
import { shareOf } from "../../support/thoroughness.ts";

const LOBBY = "SELECT * FROM chat.messages WHERE room = 'lobby'";
const COMPUTED = "SELECT n * 2 AS twice FROM chat.messages WHERE n > 5";

interface Searched {
  readonly fixture: LiveFixture;
  readonly searches: PromptedSearch[];
  /** Delivers the pieces that have been requested, until none are left. */
  readonly arrive: () => Promise<void>;
  readonly ranges: () => SearchRange[];
  readonly openCount: () => number;
}

interface Choices {
  readonly takesAll?: boolean;
  readonly nextPiece?: () => number | "refused";
}

/** Returns an engine that lets another thread search for the rows of its plans. */
function searched({ nextPiece = () => 2, takesAll = true }: Choices = {}): Searched {
  const fixture = liveFixture();
  const searches: PromptedSearch[] = [];
  const waiting: (() => void)[] = [];
  fixture.sql.searchFor = (plan) => {
    const search = new PromptedSearch({
      store: fixture.store,
      plan,
      takesAll,
      nextPiece,
      later: (arrive) => waiting.push(arrive),
    });
    searches.push(search);
    return search;
  };
  const arrive = async (): Promise<void> => {
    await settle();
    while (waiting.length > 0) {
      for (const each of waiting.splice(0)) each();
      await settle();
    }
  };
  return {
    fixture,
    searches,
    arrive,
    ranges: () => searches.flatMap(({ ranges }) => ranges),
    openCount: () => searches.reduce((sum, search) => sum + search.openCount, 0),
  };
}

function fill({ store }: LiveFixture, count: number): void {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const rows = numbers.map((id) => message(id, id % 2 === 0 ? "lobby" : "hall", id, `text ${id}`));
  store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
}

function ids(sink: RecordingSink): unknown[] {
  return sink.batches().map(({ rows }) => rows.map((row) => row["id"]));
}

const SEARCHES = queryTexts().flatMap((sql) =>
  [undefined, 0, 1, 3, 40].map((last) => [sql, last] as const),
);

test.each(shareOf(SEARCHES, { oneOf: 3 }))(
  "%s, last rows %p: found elsewhere as here",
  async (sql, lastRows) => {
    for (const batchSize of [1, 3, 7, 1000]) {
      for (const piece of [1, 2, 1000]) {
        const { arrive, fixture, openCount, ranges } = searched({ nextPiece: () => piece });
        fill(fixture, 20);
        const options = {
          batch_size: batchSize,
          ...(lastRows === undefined ? {} : { last_rows: lastRows }),
        };
        const params = sql.endsWith("$1") ? ["lobby"] : [];
        const there = fixture.open(sql, options, { params });
        await arrive();
        fixture.sql.searchFor = undefined;
        fixture.sql.schemaVersion = 2;
        const here = fixture.open(sql, options, { params });
        for (let batch = 0; batch < 21; batch += 1) {
          there.subscription.nextBatch();
          here.subscription.nextBatch();
          await arrive();
        }
        expect(there.sink.messages).toEqual(here.sink.messages);
        expect(there.subscription.state).toBe(here.subscription.state);
        expect(ranges().length).toBeGreaterThan(0);
        expect(openCount()).toBe(0);
      }
    }
  },
);

test("rows that are written while others are in transit arrive as changes", async () => {
  const { arrive, fixture } = searched();
  fill(fixture, 6);
  const boundary = fixture.store.visibleSeq;
  const { sink, subscription } = fixture.open(LOBBY, { batch_size: 2 });
  fixture.store.write({
    tableId: MESSAGES,
    owner: 1,
    operation: "update",
    rows: [message(4, "lobby", 0, "changed"), message(6, "hall", 0)],
  });
  await arrive();
  subscription.nextBatch();
  await arrive();
  expect(ids(sink)).toEqual([[2, 4], [6]]);
  expect(sink.batches().at(-1)?.batch_control.last_seq_id).toBe(boundary);
  expect(sink.changes().map(({ change_type: type }) => type)).toEqual(["update", "delete"]);
});

test("a requested batch begins after the previous one, and asks for one extra row", async () => {
  const { arrive, fixture, ranges } = searched({ nextPiece: () => 1000 });
  fill(fixture, 20);
  const { sink, subscription } = fixture.open(LOBBY, { batch_size: 4 });
  await arrive();
  expect(subscription.state).toBe("loading");
  subscription.nextBatch();
  await arrive();
  const [first, second] = sink.batches();
  const upTo = fixture.store.visibleSeq;
  expect(ranges()).toEqual([
    { after: 0, upTo, rowsMax: 5, isOfSeqs: false },
    { after: first?.batch_control.last_seq_id, upTo, rowsMax: 5, isOfSeqs: false },
  ] as SearchRange[]);
  expect(second?.rows).toHaveLength(4);
});

test("a snapshot is read on this thread until a batch spends a long time on rows that it does not return", async () => {
  const { arrive, fixture, ranges } = searched({ takesAll: false, nextPiece: () => 1000 });
  let nowMs = 0;
  // Each group of rows takes a millisecond.
  fixture.sql.pace = {
    rows: { rowsMax: 1, note: () => undefined },
    monotonicMs: () => (nowMs += 0.5),
  };
  fill(fixture, 60);
  const { sink } = fixture.open("SELECT id FROM chat.messages WHERE 12 / n > 1", {
    batch_size: 1000,
  });
  await arrive();
  expect(ids(sink)).toEqual([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]]);
  expect(ranges()).toHaveLength(1);
  // The search skips the rows that the main thread has already read.
  expect(ranges()[0]?.after).toBeGreaterThan(0);
});

test("a snapshot with fast batches is read on this thread to the end", async () => {
  const { arrive, fixture, ranges } = searched({ takesAll: false });
  fill(fixture, 2000);
  const { sink, subscription } = fixture.open(LOBBY, { batch_size: 100 });
  for (let batch = 0; batch < 10; batch += 1) {
    subscription.nextBatch();
    await arrive();
  }
  expect(sink.batches()).toHaveLength(10);
  expect(ranges()).toEqual([]);
});

test.each([0, 1, 3])(
  "rows that are refused after %p pieces are read on this thread",
  async (pieces) => {
    let left = pieces;
    const { arrive, fixture, openCount, ranges } = searched({
      nextPiece: () => {
        left -= 1;
        return left < 0 ? "refused" : 2;
      },
    });
    fill(fixture, 20);
    const { sink, subscription } = fixture.open(LOBBY, { batch_size: 1000 });
    await arrive();
    expect(ids(sink)).toEqual([[2, 4, 6, 8, 10, 12, 14, 16, 18, 20]]);
    expect(subscription.state).toBe("following");
    expect(ranges()).toHaveLength(1);
    expect(openCount()).toBe(0);
  },
);

test("rows found for a plan that has been replaced are dropped", async () => {
  const { arrive, fixture, openCount, searches } = searched();
  fill(fixture, 6);
  const { sink } = fixture.open(LOBBY, { batch_size: 1000 });
  await settle();
  fixture.sql.schemaVersion = 2;
  fixture.engine.tableChanged(MESSAGES);
  await arrive();
  expect(ids(sink)).toEqual([[2, 4, 6]]);
  expect(searches.map(({ ranges }) => ranges.length)).toEqual([1, 1]);
  expect(openCount()).toBe(0);
});

test("a change to definitions that ends the subscription ends its search", async () => {
  const { arrive, fixture, openCount } = searched();
  fill(fixture, 6);
  const { sink } = fixture.open(LOBBY);
  await settle();
  expect(openCount()).toBe(1);
  fixture.sql.mayRead = false;
  fixture.engine.tableChanged(MESSAGES);
  expect(openCount()).toBe(0);
  await arrive();
  expect(sink.batches()).toEqual([]);
  expect(sink.errors()).toHaveLength(1);
});

test.each(["waiting", "with rows at hand"])("unsubscribe, %s, ends the search", async (when) => {
  const { arrive, fixture, openCount } = searched({ nextPiece: () => 1 });
  fill(fixture, 6);
  const { sink, subscription } = fixture.open(LOBBY, when === "waiting" ? {} : { batch_size: 1 });
  if (when !== "waiting") await arrive();
  else await settle();
  subscription.nextBatch();
  subscription.close();
  expect(openCount()).toBe(0);
  await arrive();
  expect(sink.batches()).toHaveLength(when === "waiting" ? 0 : 1);
});

test("a full socket releases the search, and the rows follow once the socket has drained", async () => {
  const { arrive, fixture, openCount } = searched();
  fill(fixture, 8);
  const { sink, subscription } = fixture.open(LOBBY, { batch_size: 1 });
  await arrive();
  subscription.nextBatch();
  await settle();
  expect(openCount()).toBe(1);
  // Another live query on the same connection fills the socket's buffer.
  sink.room = 1;
  fixture.open("SELECT id, body FROM chat.messages", null, { id: "other", sink });
  await arrive();
  expect(openCount()).toBe(0);
  expect(ids(sink)).toEqual([[2]]);
  sink.room = Infinity;
  subscription.drained();
  await arrive();
  for (const _ of [1, 2]) {
    subscription.nextBatch();
    await arrive();
  }
  expect(ids(sink)).toEqual([[2], [4], [6], [8]]);
});

test("an error of the filter on the other thread ends the subscription after the preceding rows", async () => {
  const { arrive, fixture, openCount } = searched();
  const rows = [message(1, "lobby", 1), message(2, "lobby", 2), message(3, "lobby", 0)];
  for (const row of rows) {
    fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows: [row] });
  }
  const { sink } = fixture.open("SELECT id FROM chat.messages WHERE 12 / n > 1");
  await arrive();
  expect(sink.errors().map(({ message: text }) => text)).toEqual([
    expect.stringContaining("Cannot divide by zero"),
  ]);
  expect(openCount()).toBe(0);
});

test("rows whose fields take long are created over many ticks, but found once", async () => {
  const { arrive, fixture, ranges } = searched({ nextPiece: () => 1000 });
  let nowMs = 0;
  fixture.sql.pace = {
    rows: { rowsMax: 1, note: () => undefined },
    monotonicMs: () => (nowMs += 10),
  };
  fill(fixture, 12);
  const { sink } = fixture.open(COMPUTED);
  await arrive();
  while (sink.batches().length === 0) await arrive();
  expect(sink.batches()[0]?.rows.map((row) => row["twice"])).toEqual([12, 14, 16, 18, 20, 22, 24]);
  expect(ranges()).toHaveLength(1);
});
