/**
 * Tests the backward search through the versions of a key, which a replay may spread over several
 * ticks.
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import { LatestChanges } from "../../../src/live/replay/latest_changes.ts";
import type { TableWrite } from "../../../src/storage/mod.ts";
import type { Row } from "../../../src/types/mod.ts";
import { ANN, liveFixture, MESSAGES, message } from "../../support/live_fixture.ts";
import { programFor, tickOf } from "../../support/live_parts.ts";

const LOBBY = "SELECT * FROM chat.messages WHERE room = 'lobby'";

test("LatestChanges abandons a walk if its version is gone when the next batch is read", () => {
  const { sql, store } = liveFixture();
  const write = (operation: TableWrite["operation"], row: Row): Seq =>
    store.write({ tableId: MESSAGES, owner: 1, operation, rows: [row] }).lastSeq;
  const position = write("insert", message(9, "hall"));
  write("insert", message(1, "hall"));
  for (let n = 0; n < 50; n += 1) write("update", message(1, "hall", n));
  const newest = write("update", message(1, "hall", 50));
  write("insert", message(2, "lobby"));
  const program = programFor(sql.planLive(ANN, { sql: LOBBY, params: [] }));
  const latest = new LatestChanges();
  const read = (after: Seq, units: number): number | undefined => {
    const boundary = store.visibleSeq;
    const scan = store.changes(MESSAGES, {
      owner: 1,
      after,
      upTo: boundary,
      columnIds: program.storedColumnIds,
    });
    const batch = defined(scan.next(), "there must be changes");
    scan.close();
    const budget = tickOf(units);
    return latest.changesFrom(batch, { store, program, position, after, boundary, budget })
      ?.rowCount;
  };

  expect(read((newest - 1) as Seq, 40)).toBe(0);
  expect(latest.isWalking).toBe(true);
  // The version at which the search began has expired in the meantime.
  expect(read(newest, 40)).toBe(1);
  expect(latest.isWalking).toBe(false);
});
