/**
 * Tests the resumption of materialised queries: a subscriber that returns receives the difference
 * between its rows and those of the SELECT.
 */
import { describe, expect, test } from "bun:test";
import { COMMITS, cellsOf, current, database, follow, run, sorted, useRooms } from "./rooms.ts";

useRooms();

describe("a live query resumes with what has changed", () => {
  const JOIN =
    "SELECT m.id, r.name, m.text FROM app.rooms r JOIN app.messages m ON m.room = r.id ORDER BY m.id";

  test.each([
    ["a join", JOIN],
    ["groups", "SELECT room, count(*), sum(stars) FROM app.messages GROUP BY room"],
    [
      "values alone",
      "SELECT text, stars FROM app.messages UNION ALL SELECT name, id FROM app.rooms",
    ],
    ["a view", "SELECT name, count(*) FROM app.open_rooms GROUP BY name"],
    [
      "WITH",
      "WITH m AS (SELECT room FROM app.messages) SELECT count(*) FROM m JOIN m n ON m.room = n.room",
    ],
  ])("%s: the net difference from a position to now", async (_, sql) => {
    await run("CREATE VIEW app.open_rooms AS SELECT id, name FROM app.rooms");
    const held = await current(follow(sql));
    const position = Number(held.seq);
    held.subscription?.close();
    for (const commit of COMMITS) {
      await run(commit);
      const resumed = follow(sql, { held, options: { from_seq_id: position, batch_size: 2 } });
      expect(resumed.messages[0]).toMatchObject({
        type: "subscription_ack",
        batch_control: { status: "loading", last_seq_id: position },
      });
      await current(resumed);
      resumed.subscription?.close();
      const expected = await run(sql);
      const width = expected[0]?.length ?? 0;
      const got = cellsOf(resumed).map((row) => row.slice(0, width));
      expect([commit, sorted(got)]).toEqual([commit, sorted(expected)]);
    }
  });

  test("a resume sends only what changed, deletes as changes, and then later changes", async () => {
    const held = await current(follow(JOIN));
    held.subscription?.close();
    await run(
      "DELETE FROM app.messages WHERE id = 10; UPDATE app.messages SET text = 'x' WHERE id = 11",
    );
    const resumed = await current(
      follow(JOIN, { held, options: { from_seq_id: Number(held.seq) } }),
    );
    expect(resumed.messages.slice(1)).toMatchObject([
      { type: "change", change_type: "delete", old_values: [{ id: 10 }], commit_end: false },
      {
        type: "initial_data_batch",
        rows: [{ id: 11, text: "x" }],
        batch_control: { status: "ready" },
      },
    ]);
    await run("UPDATE app.messages SET text = 'y' WHERE id = 11");
    await current(resumed);
    expect(resumed.changes.at(-1)).toMatchObject({ change_type: "update", rows: [{ text: "y" }] });
  });

  test("a position from before an ALTER, or an impossible one, is refused", async () => {
    const held = await current(follow(JOIN));
    const position = Number(held.seq);
    const resume = (from: number): unknown => follow(JOIN, { options: { from_seq_id: from } });
    expect(() => resume(position + 1e9)).toThrow("the position is above the newest _seq");
    await run("ALTER TABLE app.rooms ADD COLUMN more INT");
    expect(() => resume(position)).toThrow(
      "Table app.rooms has been altered; subscribe without from_seq_id",
    );
    await run(
      "DROP TABLE app.rooms; CREATE SHARED TABLE app.rooms (id INT PRIMARY KEY, name TEXT)",
    );
    expect(() => resume(position)).toThrow("are no longer kept; subscribe without from_seq_id");
    const whole = await current(follow(JOIN, { options: { from_seq_id: 0 } }));
    expect(whole.rows).toEqual([]);
  });

  test("a resumed query whose rows change by time takes a new snapshot", async () => {
    const sql = "SELECT table_name FROM system.tables ORDER BY 1";
    const seq = database.store.visibleSeq;
    expect(() => follow(sql, { options: { from_seq_id: seq } })).toThrow("are no longer kept");
  });
});
