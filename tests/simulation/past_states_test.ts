/**
 * Verifies that FOR SYSTEM_TIME AS OF returns exactly the state after the last commit at or before
 * any seq or time, or reports that its history is gone. Random inserts, updates, deletes, upserts
 * and transactions change two tables through SQL, one of which contains rows of two users. The
 * test flushes, merges, discards history and restarts at random. A model computes each state from
 * the statements alone. Each injected fault must be found. To repeat a failure: SEED=<n> bun test
 * <this file>
 */
import { expect, test } from "bun:test";
import { ManualClock } from "../support/manual_clock.ts";
import { PAST_FAULTS } from "../support/past_faults.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { type EngineOptions, TestEngine } from "../support/sql_engine.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";

const STEPS = 60;
const KEYS = 30;
const HOUR_MS = 3_600_000;

/** A user's rows in a table: each key with its value. */
type Rows = ReadonlyMap<number, number>;

/** The rows of the SHARED table, and each user's rows in the USER table. */
type State = Readonly<Record<"shared" | "root" | "alice", Rows>>;

interface KnownState {
  /** The last seq of the commit after which the tables had this state. */
  readonly seq: number;
  readonly ms: number;
  readonly state: State;
}

const PLACES: readonly EngineOptions[] = [
  { readsElsewhere: false },
  { readsElsewhere: true },
  { divides: true },
];

type Change = (state: State, at: keyof State) => { sql: string; rows: Rows };

class PastSimulation {
  readonly #random: SeededRandom;
  readonly #clock = new ManualClock();
  readonly #engine: TestEngine;
  readonly #states: KnownState[] = [];
  #state: State = { shared: new Map(), root: new Map(), alice: new Map() };
  /** The number of reads in all, and of reads whose history had already been discarded. */
  readonly counts = { read: 0, gone: 0 };

  private constructor(seed: number, engine: TestEngine, clock: ManualClock) {
    this.#random = new SeededRandom(seed);
    this.#engine = engine;
    this.#clock = clock;
  }

  static async run(seed: number): Promise<PastSimulation["counts"]> {
    const clock = new ManualClock();
    const place = PLACES[seed % PLACES.length];
    await using engine = await TestEngine.open({ clock, ...place });
    await engine.run(
      "CREATE NAMESPACE app; CREATE USER alice WITH INTERNAL ROLE dba;" +
        "CREATE TABLE app.shared (id INT PRIMARY KEY, v INT) WITH (DELETED_RETENTION_HOURS = 2);" +
        "CREATE INDEX ON app.shared (v);" +
        "CREATE USER TABLE app.own (id INT PRIMARY KEY, v INT) WITH (DELETED_RETENTION_HOURS = 2)",
    );
    const simulation = new PastSimulation(seed, engine, clock);
    await simulation.#live();
    return simulation.counts;
  }

  async #live(): Promise<void> {
    this.#note();
    for (let step = 0; step < STEPS; step += 1) {
      const choice = this.#random.below(100);
      const table = this.#random.pick(["app.shared", "app.own"]);
      if (choice < 45) await this.#change(1);
      else if (choice < 60) await this.#change(this.#random.between(2, 5));
      else if (choice < 70) await this.#engine.run(`STORAGE FLUSH TABLE ${table}`);
      else if (choice < 77) await this.#engine.run(`STORAGE COMPACT TABLE ${table}`);
      else if (choice < 84) this.#clock.advance(this.#random.below(HOUR_MS));
      else if (choice < 87) await this.#engine.restart();
      else await this.#check();
    }
    for (let left = 3; left > 0; left -= 1) await this.#check();
  }

  #note(): void {
    const { store } = this.#engine.database;
    const seq = store.visibleSeq;
    // After a restart, seqs may be ahead of the clock.
    this.#states.push({ seq, ms: store.commitMs(seq), state: this.#state });
  }

  /** Commits several statements of the same user together. */
  async #change(statementCount: number): Promise<void> {
    const user = this.#random.pick(["root", "alice"] as const);
    const texts: string[] = [];
    for (let left = statementCount; left > 0; left -= 1) {
      const at = this.#random.pick(["shared", user] as const);
      const { rows, sql } = this.#random.pick(this.#changes)(this.#state, at);
      texts.push(sql);
      this.#state = { ...this.#state, [at]: rows };
    }
    const sql = statementCount === 1 ? texts.join("") : `BEGIN; ${texts.join("; ")}; COMMIT`;
    this.#engine.userId = user;
    await this.#engine.run(sql);
    this.#engine.userId = "root";
    this.#note();
    this.#clock.advance(this.#random.below(3));
  }

  readonly #changes: readonly Change[] = [
    (state, at) => {
      const rows = new Map(state[at]);
      const fresh = [...this.#keys()].filter((id) => !rows.has(id));
      for (const id of fresh) rows.set(id, id);
      const values = fresh.map((id) => `(${id}, ${id})`).join(", ");
      return {
        rows,
        sql: fresh.length === 0 ? "SELECT 1" : `INSERT INTO ${tableOf(at)} VALUES ${values}`,
      };
    },
    (state, at) => {
      const rows = new Map(state[at]);
      const keys = [...this.#keys()];
      for (const id of keys) rows.set(id, (rows.get(id) ?? 0) + 100);
      const values = keys.map((id) => `(${id}, 100)`).join(", ");
      const conflict = "ON CONFLICT (id) DO UPDATE SET v = own.v + 100".replace("own", nameOf(at));
      return { rows, sql: `INSERT INTO ${tableOf(at)} VALUES ${values} ${conflict}` };
    },
    (state, at) => {
      const rest = this.#random.below(4);
      const rows = new Map([...state[at]].map(([id, v]) => [id, id % 4 === rest ? v + 1 : v]));
      return { rows, sql: `UPDATE ${tableOf(at)} SET v = v + 1 WHERE id % 4 = ${rest}` };
    },
    (state, at) => {
      const gone = new Set(this.#keys());
      const rows = new Map([...state[at]].filter(([id]) => !gone.has(id)));
      return { rows, sql: `DELETE FROM ${tableOf(at)} WHERE id IN (${[...gone].join(", ")})` };
    },
  ];

  #keys(): Set<number> {
    const count = this.#random.between(1, KEYS / 3);
    return new Set(Array.from({ length: count }, () => this.#random.below(KEYS)));
  }

  /** Reads both tables as of two random times. */
  async #check(): Promise<void> {
    const user = this.#random.pick(["root", "alice"] as const);
    const shared = this.#moment();
    const own = this.#random.chance(0.5) ? shared : this.#moment();
    const rows = { shared: shared.state.shared, own: own.state[user] };
    const { expected, from } = this.#random.pick(READS)(rows, this.#random.below(KEYS));
    const sql = from
      .replace("SHARED", `app.shared FOR SYSTEM_TIME AS OF ${shared.text}`)
      .replace("OWN", `app.own FOR SYSTEM_TIME AS OF ${own.text}`);
    const isGone = (): boolean =>
      (from.includes("SHARED") && this.#isGone("app.shared", "root", shared.seq)) ||
      (from.includes("OWN") && this.#isGone("app.own", user, own.seq));
    const wasGone = isGone();
    this.#engine.userId = user;
    const { error, results } = await this.#engine.ask(sql);
    this.#engine.userId = "root";
    // A background merge may discard the history while the statement runs.
    const mayBeGone = error === undefined ? wasGone : isGone();
    const answer = error === undefined ? results.at(-1)?.rows : error.code;
    expect([sql, answer]).toEqual([sql, mayBeGone ? "HISTORY_TOO_OLD" : expected]);
    this.counts[mayBeGone ? "gone" : "read"] += 1;
  }

  /** Returns a random time as a string, together with the state of the tables at that time. */
  #moment(): KnownState & { readonly text: string } {
    const known = this.#random.pick(this.#states);
    if (this.#random.chance(0.2)) {
      const ms = known.ms + this.#random.between(-1, 1);
      const state = this.#states.findLast((each) => each.ms <= ms) ?? EMPTY;
      if (ms <= this.#clock.nowMs()) {
        return { ...state, text: `TIMESTAMPTZ '${new Date(ms).toISOString()}'` };
      }
    }
    const seq = Math.max(0, known.seq - this.#random.below(12));
    const state = this.#states.findLast((each) => each.seq <= seq) ?? EMPTY;
    return { ...state, seq, text: String(seq) };
  }

  /** Whether the store has discarded versions that belong to the state at a seq. */
  #isGone(table: string, userId: string, seq: number): boolean {
    const { catalog, store } = this.#engine.database;
    const [namespace = "", name = ""] = table.split(".");
    const entry = catalog.table(namespace, name);
    const owner = name === "shared" ? 0 : catalog.accounts.ownerNumber(userId);
    return seq < store.earliestSeq(entry?.tableId ?? 0, owner ?? -1);
  }
}

const EMPTY: KnownState = {
  seq: 0,
  ms: 0,
  state: { shared: new Map(), root: new Map(), alice: new Map() },
};

function nameOf(at: keyof State): string {
  return at === "shared" ? "shared" : "own";
}

function tableOf(at: keyof State): string {
  return `app.${nameOf(at)}`;
}

interface Read {
  readonly from: string;
  readonly expected: readonly (readonly unknown[])[];
}

/** Queries, each with a function that computes its result from the rows of both tables. */
const READS: readonly ((
  rows: { readonly shared: Rows; readonly own: Rows },
  key: number,
) => Read)[] = [
  ({ shared }) => ({ from: "SELECT id, v FROM SHARED ORDER BY id", expected: sorted(shared) }),
  ({ own }) => ({ from: "SELECT id, v FROM OWN ORDER BY v + 0, id", expected: byValue(own) }),
  ({ shared }, key) => ({
    from: `SELECT v FROM SHARED WHERE id = ${key}`,
    expected: shared.has(key) ? [[shared.get(key)]] : [],
  }),
  ({ own }, key) => ({
    from: `SELECT id, v FROM OWN WHERE id IN (${key}, ${key + 1}, 3) ORDER BY id`,
    expected: sorted(own).filter(([id]) => id === key || id === key + 1 || id === 3),
  }),
  ({ shared }, key) => ({
    from: `SELECT id, v FROM SHARED WHERE v = ${key} ORDER BY id`,
    expected: sorted(shared).filter(([, v]) => v === key),
  }),
  ({ shared }) => ({
    from: "SELECT id, v FROM SHARED ORDER BY v, id LIMIT 5",
    expected: byValue(shared).slice(0, 5),
  }),
  ({ own }) => ({
    from: "SELECT count(*), coalesce(sum(v), 0), max(id) FROM OWN",
    expected: [
      [own.size, [...own.values()].reduce((sum, v) => sum + v, 0), sorted(own).at(-1)?.[0] ?? null],
    ],
  }),
  ({ own, shared }) => ({
    from: "SELECT s.id, s.v, o.v FROM SHARED s LEFT JOIN OWN o ON o.id = s.id ORDER BY 1",
    expected: sorted(shared).map(([id, v]) => [id, v, own.get(id) ?? null]),
  }),
  ({ own, shared }) => ({
    from: "SELECT id FROM SHARED WHERE id NOT IN (SELECT id FROM OWN) ORDER BY id",
    expected: sorted(shared).flatMap(([id]) => (own.has(id) ? [] : [[id]])),
  }),
];

function sorted(rows: Rows): (readonly [number, number])[] {
  return [...rows].toSorted(([left], [right]) => left - right);
}

function byValue(rows: Rows): (readonly [number, number])[] {
  return sorted(rows).toSorted(([, left], [, right]) => left - right);
}

async function simulate(seed: number): Promise<PastSimulation["counts"]> {
  try {
    return await PastSimulation.run(seed);
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
}

const firstSeed = seedOf(1);
const seedCount = process.env["SEED"] === undefined ? amountOf({ usual: 1, thorough: 20 }) : 1;

test("earlier states are as the statements left them, at any seq and time", async () => {
  const counts = { read: 0, gone: 0 };
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
    const { gone, read } = await simulate(seed);
    counts.read += read;
    counts.gone += gone;
  }
  expect(counts.read).toBeGreaterThan(counts.gone);
}, 600_000);

for (const { fault, injected, name, of } of shareOf(PAST_FAULTS, { oneOf: 10 })) {
  test(`the simulation finds ${fault}`, async () => {
    const known = Object.getOwnPropertyDescriptor(of, name);
    let failure: unknown;
    Object.defineProperty(of, name, { configurable: true, ...injected });
    try {
      for (let seed = 1; seed <= 30 && failure === undefined; seed += 1) {
        failure = await simulate(seed).then(
          () => undefined,
          (error: unknown) => error,
        );
      }
    } finally {
      Object.defineProperty(of, name, known ?? {});
    }
    expect(failure).toBeInstanceOf(Error);
  }, 300_000);
}
