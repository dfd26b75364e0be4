/**
 * Tests consumers that write the effect of a message and its acknowledgement in one transaction.
 * Each effect exists exactly once, whatever consumers and the server do in the meantime.
 */
import { expect, test } from "bun:test";
import { ManualClock } from "../support/manual_clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";

const SEEDS = amountOf({ usual: 1, thorough: 20 });
const MESSAGES = 60;
const VISIBILITY_MS = 60_000;

let redelivered = 0;
let refused = 0;

/** The offsets of the messages that a consumer has received but not yet processed. */
type Held = Set<number>;

class Consumers {
  readonly #engine: TestEngine;
  readonly #clock: ManualClock;
  readonly #random: SeededRandom;
  readonly #held: Held[] = Array.from({ length: 5 }, () => new Set());
  /**
   * The number of transactions refused because another consumer had already finished the message.
   */
  refused = 0;
  redelivered = 0;

  constructor(engine: TestEngine, clock: ManualClock, random: SeededRandom) {
    this.#engine = engine;
    this.#clock = clock;
    this.#random = random;
  }

  async step(): Promise<void> {
    const held = this.#random.pick(this.#held);
    const what = this.#random.between(0, 9);
    if (what <= 3) await this.#fetch(held);
    else if (what <= 7) await this.#work(held);
    else if (what === 8) this.#clock.advance(this.#random.between(0, 2 * VISIBILITY_MS));
    // A consumer that crashes forgets its messages.
    else held.clear();
  }

  async #fetch(held: Held): Promise<void> {
    const rows = await this.#engine.rows(
      "CONSUME FROM work GROUP 'g' FROM EARLIEST LIMIT 4 NO ACK",
    );
    for (const [, , offset, , , , , , deliveries] of rows) {
      held.add(Number(offset));
      if (Number(deliveries) > 1) this.redelivered += 1;
    }
  }

  async #work(held: Held): Promise<void> {
    const done = [...held].slice(0, this.#random.between(1, 3));
    if (done.length === 0) return;
    for (const offset of done) held.delete(offset);
    const rows = done.map((offset) => `(SNOWFLAKE_ID(), ${offset})`).join(", ");
    const ack = `ACK work GROUP 'g' OFFSETS (${done.join(", ")})`;
    const { error } = await this.#engine.ask(
      `BEGIN; INSERT INTO effects VALUES ${rows}; ${ack}; COMMIT`,
    );
    if (error?.code === "ALREADY_ACKNOWLEDGED") this.refused += 1;
    else expect(error?.message).toBeUndefined();
  }
}

test.each(Array.from({ length: SEEDS }, (_, seed) => seed))(
  "seed %i: each message has one effect, though consumers crash and come late",
  async (seed) => {
    const clock = new ManualClock();
    const random = new SeededRandom(seed);
    await using engine = await TestEngine.open({ clock });
    await engine.run(`
      CREATE TABLE jobs (id INT PRIMARY KEY);
      CREATE TABLE effects (id BIGINT PRIMARY KEY, job INT);
      CREATE TOPIC work;
      ALTER TOPIC work ADD SOURCE jobs ON INSERT`);
    const ids = Array.from({ length: MESSAGES }, (_, id) => `(${id})`).join(", ");
    await engine.run(`INSERT INTO jobs VALUES ${ids}`);
    const consumers = new Consumers(engine, clock, random);
    const done = async (): Promise<number> => {
      const [[count] = []] = await engine.rows("SELECT count(DISTINCT job) FROM effects");
      return Number(count);
    };
    for (let step = 1; (await done()) < MESSAGES; step += 1) {
      expect(step).toBeLessThan(20_000);
      await consumers.step();
      if (step % 200 === 0) await engine.restart();
    }
    expect(await engine.rows("SELECT count(*) FROM effects")).toEqual([[MESSAGES]]);
    redelivered += consumers.redelivered;
    refused += consumers.refused;
    expect(await engine.rows("SELECT last_acked_offset FROM system.topic_offsets")).toEqual([
      [MESSAGES - 1],
    ]);
  },
);

test("redelivered messages whose effects were already committed are refused", () => {
  expect(redelivered).toBeGreaterThan(0);
  expect(refused).toBeGreaterThan(0);
});
