/**
 * Tests ACK between BEGIN and COMMIT: the commit writes the acknowledgement exactly once.
 *
 * A model of the topics layer writes its acknowledgements to a test table, so that a test can
 * check whether they are part of the commit.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { BATCH_ROWS_MAX } from "../../../src/base/limits.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { ModelTopics } from "../../support/model_topics.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

const SHARED_OWNER = 0;

let clock: ManualClock;
let engine: TestEngine;
let topics: ModelTopics;
let topicId: number;
/** The number of acknowledgements recorded in the group's row. */
let written: number;

beforeEach(async () => {
  clock = new ManualClock();
  engine = await TestEngine.open({ clock });
  topics = new ModelTopics();
  engine.database.topics = topics;
  await engine.run(`
    CREATE TABLE effects (id INT PRIMARY KEY, note TEXT);
    CREATE TABLE acks (k TEXT PRIMARY KEY, n INT);
    CREATE TOPIC feed`);
  topicId = engine.database.catalog.topic("default", "feed")?.topicId ?? -1;
  const tableId = engine.database.catalog.table("default", "acks")?.tableId ?? -1;
  for (let count = 0; count < 8; count += 1) topics.publish(topicId);
  written = 0;
  topics.writesOf = ({ group }) => {
    const operation = written === 0 ? "insert" : "update";
    return [{ tableId, owner: SHARED_OWNER, operation, rows: [[group, written + 1]] }];
  };
  topics.onDone = () => {
    written += 1;
  };
});
afterEach(async () => {
  expect(topics.openAcks).toBe(0);
  await engine[Symbol.asyncDispose]();
});

/**
 * Runs SQL that sleeps between ACK and COMMIT, and does other work in the meantime. Returns the
 * error message of the SQL.
 */
async function failureOf(sql: string, meanwhile: () => Promise<void>): Promise<string | undefined> {
  const { timerCount } = clock;
  const answer = engine.ask(sql);
  await until(() => clock.timerCount > timerCount);
  await meanwhile();
  clock.advance(1000);
  return (await answer).error?.code;
}

const isAcked = (offset: number): boolean => topics.isAcked({ topicId, group: "g", offset });

test("the effect and the acknowledgement are one commit", async () => {
  const [, inserted, acked, committed] = await engine.run(
    "BEGIN; INSERT INTO effects VALUES ($1, 'x'); ACK feed GROUP $2 OFFSETS ($3); COMMIT",
    { params: [1, "g", 0] },
  );
  expect(inserted?.rowCount).toBe(1);
  expect(acked?.rows).toEqual([["default.feed", "g", 0, 0]]);
  expect(isAcked(0)).toBe(true);
  const [[effectSeq] = []] = await engine.rows("SELECT _seq FROM effects");
  const [[ackSeq] = []] = await engine.rows("SELECT _seq FROM acks");
  expect(committed?.lastSeq).toBe(Number(effectSeq));
  expect(Number(effectSeq) - Number(ackSeq)).toBe(1);
});

test("a rollback, a failure and the end of the request leave the messages unacknowledged", async () => {
  await engine.run("BEGIN; ACK feed GROUP 'g' OFFSETS (0); ROLLBACK");
  expect(
    await engine.failure("BEGIN; ACK feed GROUP 'g' OFFSETS (0); SELECT 1 / 0; COMMIT"),
  ).toStartWith("DIVISION_BY_ZERO@3");
  expect(await engine.failure("BEGIN; ACK feed GROUP 'g' OFFSETS (0)")).toStartWith(
    "TRANSACTION_OPEN",
  );
  expect(isAcked(0)).toBe(false);
  expect(await engine.rows("SELECT * FROM acks")).toEqual([]);
  await engine.run("BEGIN; INSERT INTO effects VALUES (1, 'x'); COMMIT");
  expect(isAcked(0)).toBe(false);
});

test("a message that was already acknowledged makes the transaction fail, and its effect is not repeated", async () => {
  const text =
    "BEGIN; INSERT INTO effects (id) VALUES ($1); ACK feed GROUP 'g' OFFSETS (0, 1); COMMIT";
  await engine.run(text, { params: [1] });
  expect(await engine.failure(text, { params: [2] })).toStartWith("ALREADY_ACKNOWLEDGED@3");
  expect(await engine.failure("BEGIN; ACK feed GROUP 'g' OFFSETS (1, 2); COMMIT")).toStartWith(
    "ALREADY_ACKNOWLEDGED@2",
  );
  expect(await engine.failure("BEGIN; ACK feed GROUP 'g' UPTO OFFSET 1; COMMIT")).toStartWith(
    "ALREADY_ACKNOWLEDGED@2",
  );
  await engine.run("BEGIN; ACK feed GROUP 'g' UPTO OFFSET 2; COMMIT");
  expect(await engine.rows("SELECT id FROM effects")).toEqual([[1]]);
});

test("a message that another consumer acknowledges between ACK and COMMIT makes the commit fail", async () => {
  const failure = await failureOf(
    "BEGIN; INSERT INTO effects VALUES (1, 'x'); ACK feed GROUP 'g' OFFSETS (0); SELECT PG_SLEEP(1); COMMIT",
    async () => {
      await engine.run(
        "BEGIN; INSERT INTO effects VALUES (2, 'other'); ACK feed GROUP 'g' OFFSETS (0); COMMIT",
      );
    },
  );
  expect(failure).toBe("ALREADY_ACKNOWLEDGED");
  expect(await engine.rows("SELECT id FROM effects")).toEqual([[2]]);
});

test("consumers of one group do not conflict, because the row of the group is written at the commit", async () => {
  const failure = await failureOf(
    "BEGIN; SELECT count(*) FROM effects; INSERT INTO effects VALUES (1, 'x'); ACK feed GROUP 'g' OFFSETS (0); SELECT PG_SLEEP(1); COMMIT",
    async () => {
      await engine.run(
        "BEGIN; INSERT INTO effects VALUES (2, 'other'); ACK feed GROUP 'g' OFFSETS (1); COMMIT",
      );
    },
  );
  expect(failure).toBeUndefined();
  expect(isAcked(0) && isAcked(1)).toBe(true);
  expect(await engine.rows("SELECT id FROM effects ORDER BY id")).toEqual([[1], [2]]);
  expect(await engine.rows("SELECT n FROM acks")).toEqual([[2]]);
});

test("a conflict of rows also undoes the acknowledgement", async () => {
  await engine.run("INSERT INTO effects VALUES (1, 'old')");
  const failure = await failureOf(
    "BEGIN; UPDATE effects SET note = 'mine' WHERE id = 1; ACK feed GROUP 'g' OFFSETS (0); SELECT PG_SLEEP(1); COMMIT",
    async () => {
      await engine.run("UPDATE effects SET note = 'new' WHERE id = 1");
    },
  );
  expect(failure).toBe("SERIALIZATION_FAILURE");
  expect(isAcked(0)).toBe(false);
  expect(await engine.rows("SELECT * FROM acks")).toEqual([]);
});

test("several ACKs of a group count as one if they have the same form", async () => {
  await engine.run(
    "BEGIN; ACK feed GROUP 'g' OFFSETS (3); ACK feed GROUP 'g' OFFSETS (1, 0); ACK feed GROUP 'h' UPTO OFFSET 1; ACK feed GROUP 'h' UPTO OFFSET 0; COMMIT",
  );
  expect([0, 1, 2, 3].map(isAcked)).toEqual([true, true, false, true]);
  expect(topics.isAcked({ topicId, group: "h", offset: 1 })).toBe(true);
  expect(
    await engine.failure(
      "BEGIN; ACK feed GROUP 'g' OFFSETS (5); ACK feed GROUP 'g' UPTO OFFSET 6; COMMIT",
    ),
  ).toStartWith("INVALID_OPERATION@3");
});

test("a transaction that only reads acknowledges nothing", async () => {
  expect(
    await engine.failure("BEGIN READ ONLY; ACK feed GROUP 'g' OFFSETS (0); COMMIT"),
  ).toStartWith("INVALID_OPERATION@2");
});

test("a topic that is dropped between ACK and COMMIT makes the commit fail", async () => {
  const failure = await failureOf(
    "BEGIN; INSERT INTO effects VALUES (1, 'x'); ACK feed GROUP 'g' OFFSETS (0); SELECT PG_SLEEP(1); COMMIT",
    async () => {
      topics.isDropped = true;
    },
  );
  expect(failure).toBe("OBJECT_NOT_FOUND");
  expect(await engine.rows("SELECT * FROM effects")).toEqual([]);
});

test("a long transaction also acknowledges with its commit", async () => {
  const rows = Array.from({ length: BATCH_ROWS_MAX + 1 }, (_, id) => `(${id}, 'x')`).join(", ");
  await engine.run(
    `BEGIN; INSERT INTO effects VALUES ${rows}; ACK feed GROUP 'g' OFFSETS (0); COMMIT`,
  );
  expect(isAcked(0)).toBe(true);
  expect(await engine.rows("SELECT count(*) FROM effects")).toEqual([[BATCH_ROWS_MAX + 1]]);
  expect(await engine.rows("SELECT n FROM acks")).toEqual([[1]]);
  const again = rows.replaceAll("'x'", "'y'");
  const failure = await engine.failure(
    `BEGIN; INSERT INTO effects VALUES ${again} ON CONFLICT (id) DO UPDATE SET note = EXCLUDED.note; ACK feed GROUP 'g' OFFSETS (0); COMMIT`,
  );
  expect(failure).toStartWith("ALREADY_ACKNOWLEDGED");
  expect(await engine.rows("SELECT count(*) FROM effects WHERE note = 'y'")).toEqual([[0]]);
});

test("a request with an idempotency key acknowledges once, and a repeat gets the same response", async () => {
  const idempotency = { key: "m0", digest: "d" };
  const text = "BEGIN; INSERT INTO effects VALUES (1, 'x'); ACK feed GROUP 'g' OFFSETS (0); COMMIT";
  const first = await engine.ask(text, { idempotency });
  expect(first.error).toBeUndefined();
  const second = await engine.ask(text, { idempotency });
  expect(second.isReplayed).toBe(true);
  expect(second.results).toEqual(first.results);
  const alone = await engine.ask("ACK feed GROUP 'g' OFFSETS (1)", {
    idempotency: { key: "m1", digest: "d" },
  });
  expect(alone.error).toBeUndefined();
  expect(isAcked(1)).toBe(true);
  const repeated = await engine.ask("ACK feed GROUP 'g' OFFSETS (1)", {
    idempotency: { key: "m1", digest: "d" },
  });
  expect(repeated.isReplayed).toBe(true);
});
