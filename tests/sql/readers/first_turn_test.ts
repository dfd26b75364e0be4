/**
 * Tests statements that begin on the event loop. Each test advances the clock so that a time slice
 * is over at the first check.
 */
import { expect, test } from "bun:test";
import { HeldReaders } from "../../support/held_readers.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

class RunningClock extends ManualClock {
  /** The time by which each check advances the clock, in milliseconds. */
  msPerLook = 0;
  #passedMs = 0;

  override monotonicMs(): number {
    this.#passedMs += this.msPerLook;
    return super.monotonicMs() + this.#passedMs;
  }
}

test("a statement begins in a reader if it took long in one, but not if only its first time slice did", async () => {
  const clock = new RunningClock();
  const readers = new HeldReaders();
  await using engine = await TestEngine.open({
    clock,
    config: "server.workers = 1",
    heldReaders: readers,
    readsElsewhere: true,
    takesAll: false,
  });
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 5)");
  const sql = "SELECT sum(v) FROM t";
  /** Runs the query, and returns how often it was sent to a reader. */
  const jobs = async (ms: { readonly here: number; readonly there: number }): Promise<number> => {
    const before = readers.jobCount;
    clock.msPerLook = ms.here;
    // This call runs the first time slice of the query, on the event loop.
    const rows = engine.rows(sql);
    clock.msPerLook = ms.there;
    expect(await rows).toEqual([[5]]);
    clock.msPerLook = 0;
    return readers.jobCount - before;
  };
  const quick = { here: 0, there: 0 };
  expect(await jobs(quick)).toBe(0);
  expect(await jobs({ here: 10, there: 0 })).toBe(1);
  expect(await jobs(quick)).toBe(0);
  expect(await jobs({ here: 10, there: 10 })).toBe(1);
  expect(await jobs(quick)).toBe(1);
  // The query was fast in the reader, so it is not sent there again.
  expect(await jobs(quick)).toBe(0);
});
