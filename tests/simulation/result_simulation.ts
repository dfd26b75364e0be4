/**
 * Simulates materialised queries, driven by a seed. Commits overlap, time passes, sockets fill and
 * drain, connections drop and resume, and the store flushes and restarts, all at random. The disk
 * and the clock are simulated, and everything runs in one thread, so the same seed gives the same
 * messages in the same order.
 *
 * It checks these rules:
 * - Each complete state is the result of the SELECT at its seq.
 * - Once no work is left, each client has the rows of the SELECT, even if only time has changed
 *   them.
 * - A user who sees only some rows, because of policies or a view with its owner's rights, has the
 *   rows of the query with these conditions written out.
 * - A client that applies the messages as they arrive never meets a change that cannot be applied.
 * - A delete has the reason `expired` only if its row was old enough.
 */
import { type Chance, chanceFromSeed } from "../../scripts/support/chance.ts";
import type { Principal } from "../../src/auth/mod.ts";
import { defined } from "../../src/base/assert.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import type { Seq } from "../../src/base/seq.ts";
import type { ChangeMessage } from "../../src/protocol/mod.ts";
import type { ResultPlan } from "../../src/sql/mod.ts";
import { commitOf } from "../campaigns/fuzz_live/commits.ts";
import { fuzzQueryOf } from "../campaigns/fuzz_live/queries.ts";
import { type FollowedTable, makeSchema, tableOf } from "../campaigns/fuzz_live/tables.ts";
import { ForwardingDisk } from "../support/forwarding_disk.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { principalFor } from "../support/principal_for.ts";
import {
  type FollowedState,
  type PlantedFault,
  ResultFollower,
} from "../support/result_follower.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { TestEngine } from "../support/sql_engine.ts";
import {
  RULED_SCHEMA,
  RULED_USERS,
  type RuledQuery,
  ruledCommitOf,
  ruledQueryOf,
} from "./ruled_queries.ts";
import { StreamViolation } from "./simulated_client.ts";

const QUERIES = 6;

/** Queries with rows that change over time, on a table whose timestamps are around the present. */
const CLOCK_QUERIES: readonly string[] = [
  "SELECT id FROM timed AS a WHERE at > now() - INTERVAL '2 seconds'",
  "SELECT kind, count(*) FROM timed AS a WHERE at <= now() GROUP BY kind",
  "SELECT id, at > now() AS is_ahead FROM timed AS a ORDER BY at DESC, id LIMIT 3",
];

/** The time to live of rows in the table `brief`, in seconds. */
const TTL_SECONDS = 2;

/** Queries on a shared STREAM table, whose rows expire. */
const STREAM_QUERIES: readonly string[] = [
  "SELECT id, at FROM brief AS a WHERE kind < 3 ORDER BY id",
  "SELECT a.id, b.kind, a.at FROM brief AS a JOIN timed AS b ON b.id = a.id",
  "SELECT kind, count(*) FROM brief AS a GROUP BY kind",
  "SELECT a.id FROM timed AS a WHERE NOT EXISTS (SELECT 1 FROM brief AS b WHERE b.id = a.id)",
  "SELECT id, at, rank() OVER (ORDER BY kind) FROM brief AS a",
];

/** The number of simulation steps between two comparisons of the clients with the SELECT. */
const STEPS_PER_LOOK = 40;

/**
 * The maximum number of event loop ticks in which all pending work must finish. A join of 100,000
 * rows takes several thousand.
 */
const TURNS_MAX = 20_000;

export interface ResultSimulationOptions {
  readonly steps: number;
  /** Damages the messages that a client receives, to show that the oracle notices the damage. */
  readonly fault?: PlantedFault | undefined;
}

export interface ResultSimulationReport {
  readonly messages: number;
  readonly states: number;
  readonly resumes: number;
  /** The trace of the run. Equal seeds give equal traces. */
  readonly trace: string;
}

interface Client {
  readonly sql: string;
  /** The client's query and user, if that user is not root. */
  readonly ruled: RuledQuery | undefined;
  readonly params: readonly (string | number | null)[];
  readonly readsClock: boolean;
  /**
   * Whether the query reads a STREAM table, so that rows may expire while the clients are being
   * compared with the SELECT.
   */
  readonly readsStream: boolean;
  readonly states: FollowedState[];
  follower: ResultFollower;
}

/** Runs one simulation. @throws {StreamViolation} */
export async function simulateResults(
  seed: number,
  { fault, steps }: ResultSimulationOptions,
): Promise<ResultSimulationReport> {
  const clock = new ManualClock();
  await using engine = await TestEngine.open({ clock, disk: new DiskWithCatalog() });
  const world = new ResultWorld(engine, clock, { seed, fault });
  return await world.live(steps);
}

/** A disk that also knows the catalog's file, which SQLite writes directly to the real disk. */
class DiskWithCatalog extends ForwardingDisk {
  constructor() {
    super(new SimulatedDisk());
  }

  override sizeOf(path: string): number | undefined {
    return path.endsWith("/catalog.sqlite") ? Bun.file(path).size : super.sizeOf(path);
  }
}

class ResultWorld {
  readonly #engine: TestEngine;
  readonly #clock: ManualClock;
  readonly #chance: Chance;
  readonly #fault: PlantedFault | undefined;
  readonly #trace = new Bun.CryptoHasher("sha1");
  readonly #clients: Client[] = [];
  #tables: readonly FollowedTable[] = [];
  #pending: Promise<unknown>[] = [];
  #messages = 0;
  #states = 0;
  #resumes = 0;

  constructor(
    engine: TestEngine,
    clock: ManualClock,
    { fault, seed }: { seed: number; fault: PlantedFault | undefined },
  ) {
    this.#engine = engine;
    this.#clock = clock;
    this.#chance = chanceFromSeed(seed);
    this.#fault = fault;
  }

  async live(steps: number): Promise<ResultSimulationReport> {
    await this.#begin();
    for (let step = 1; step <= steps; step += 1) {
      await this.#step();
      if (step % STEPS_PER_LOOK === 0 || step === steps) await this.#look();
    }
    for (const { follower } of this.#clients) {
      follower.subscription?.close();
      this.#note(follower);
    }
    const trace = this.#trace.digest("hex");
    return { messages: this.#messages, states: this.#states, resumes: this.#resumes, trace };
  }

  async #begin(): Promise<void> {
    const run = async (sql: string): Promise<void> => {
      await this.#engine.run(sql, { namespace: "fuzz" });
    };
    await run("CREATE NAMESPACE fuzz");
    await run("CREATE SHARED TABLE timed (id INT PRIMARY KEY, kind INT, at TIMESTAMPTZ)");
    await run(
      `CREATE STREAM TABLE brief (id INT PRIMARY KEY, kind INT, at TIMESTAMPTZ DEFAULT now()) WITH (TTL_SECONDS = ${TTL_SECONDS}, ACCESS_LEVEL = 'PUBLIC')`,
    );
    for (const sql of RULED_SCHEMA) await run(sql);
    const { tables, views } = await makeSchema(run, this.#chance);
    this.#tables = tables;
    const sources = { chance: this.#chance, tables: tables.map(tableOf), views };
    const clockQuery = this.#chance.pick(CLOCK_QUERIES);
    this.#follow(clockQuery, []);
    this.#follow(this.#chance.pick(STREAM_QUERIES), []);
    for (const user of RULED_USERS) {
      const ruled = ruledQueryOf(this.#chance, user);
      this.#follow(ruled.sql, [], ruled);
    }
    for (let count = 0; count < QUERIES; count += 1) {
      const { parameters, sql } = fuzzQueryOf(sources);
      this.#follow(sql, parameters[0] ?? []);
    }
  }

  #follow(sql: string, params: Client["params"], ruled?: RuledQuery): void {
    const plan = this.#planOf({ sql, params, ruled });
    if (plan === undefined) return;
    const states: FollowedState[] = [];
    const { readsClock } = plan;
    const readsStream = STREAM_QUERIES.includes(sql);
    const follower = this.#followerOf(states);
    const client: Client = { sql, params, ruled, readsClock, readsStream, states, follower };
    this.#clients.push(client);
    this.#subscribe(client, undefined);
  }

  #followerOf(states: FollowedState[], held?: ResultFollower): ResultFollower {
    const onState = (state: FollowedState): void => void states.push(state);
    return new ResultFollower({
      onState,
      fault: this.#fault,
      ...(held === undefined ? {} : { held }),
    });
  }

  #principalOf({ ruled }: Pick<Client, "ruled">): Principal {
    const { database, principal } = this.#engine;
    return ruled === undefined ? principal : principalFor(database, ruled.userId);
  }

  #planOf({
    params,
    ruled,
    sql,
  }: Pick<Client, "params" | "ruled" | "sql">): ResultPlan | undefined {
    const { database } = this.#engine;
    const principal = this.#principalOf({ ruled });
    try {
      const asked = { sql, params: params.map(parameterOf), namespace: "fuzz" };
      const planned = database.sql.planFollowed(principal, asked);
      return planned.way === "result" ? planned.plan : undefined;
    } catch (error) {
      // The generator produces some queries that the server refuses.
      if (error instanceof DatabaseError) return undefined;
      throw error;
    }
  }

  #subscribe(client: Client, from: number | undefined): void {
    const { follower, params, sql } = client;
    const { database } = this.#engine;
    const principal = this.#principalOf(client);
    const options = from === undefined ? {} : { options: { from_seq_id: from } };
    const spec = { id: "q", sql, params, namespace_id: "fuzz", ...options };
    follower.subscription = database.live.subscribe({ principal, spec, sink: follower });
  }

  async #step(): Promise<void> {
    const chance = this.#chance;
    const client = chance.pick(this.#clients);
    const choice = chance.below(100);
    if (choice < 40) this.#commit();
    else if (choice < 65) await this.#turns(1 + chance.below(4));
    else if (choice < 80) this.#clock.advance(chance.pick([1, 3, 40, 900]));
    else if (choice < 86) client.follower.isFull = true;
    else if (choice < 92) client.follower.drain();
    else if (choice < 97) this.#reconnect(client);
    else if (choice < 99) {
      this.#pending.push(
        this.#engine.ask(`STORAGE FLUSH TABLE ${chance.pick(this.#tables).name}`, {
          namespace: "fuzz",
        }),
      );
    } else await this.#restart();
  }

  #commit(): void {
    const chance = this.#chance;
    const timed =
      `INSERT INTO timed SELECT n, n % 3, now() + (n - 15) * INTERVAL '0.2 seconds' ` +
      `FROM generate_series(${chance.below(20)}, ${20 + chance.below(9)}) AS g(n) ` +
      "ON CONFLICT (id) DO UPDATE SET at = excluded.at";
    const brief = chance.pick([
      `INSERT INTO brief (id, kind) SELECT n, n % 5 FROM generate_series(${chance.below(9)}, ${9 + chance.below(9)}) AS g(n) ON CONFLICT (id) DO UPDATE SET at = now()`,
      `DELETE FROM brief WHERE id % 4 = ${chance.below(4)}`,
      `UPDATE brief SET kind = kind + 1, at = now() WHERE id = ${chance.below(18)}`,
    ]);
    const sql = chance.pick([
      timed,
      brief,
      brief,
      ruledCommitOf(chance),
      ruledCommitOf(chance),
      ...Array.from({ length: 5 }, () => commitOf(this.#tables, chance)),
    ]);
    this.#pending.push(this.#engine.ask(sql, { namespace: "fuzz" }));
  }

  #reconnect(client: Client): void {
    const held = client.follower;
    held.subscription?.close();
    this.#note(held);
    const from = held.failure === undefined && !client.readsClock ? held.seq : undefined;
    client.follower = this.#followerOf(client.states, from === undefined ? undefined : held);
    if (from !== undefined) this.#resumes += 1;
    this.#subscribe(client, from);
  }

  async #restart(): Promise<void> {
    await this.#finish();
    for (const { follower } of this.#clients) follower.subscription?.close();
    await this.#engine.restart();
    for (const client of this.#clients) this.#reconnect(client);
  }

  async #turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await this.#clock.yield();
  }

  async #finish(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    await Promise.all(pending);
  }

  /** Waits until all work is done, and then compares the clients with the SELECT. */
  async #look(): Promise<void> {
    await this.#finish();
    for (const { follower } of this.#clients) follower.drain();
    await this.#catchUp();
    for (const client of this.#clients) {
      const plan = this.#judgingPlanOf(client);
      if (plan === undefined) continue;
      await this.#judge(client, plan);
      if (client.follower.failure !== undefined) this.#reconnect(client);
    }
  }

  /**
   * Returns the plan of a SELECT that yields the rows a client should have. Its conditions include
   * the policies that apply to the client's user.
   */
  #judgingPlanOf(client: Client): ResultPlan | undefined {
    const { params, ruled } = client;
    if (ruled === undefined) return this.#planOf(client);
    const plan = this.#planOf({ sql: ruled.writtenOut, params, ruled: undefined });
    return defined(plan, "a query with its policies written out must be followed as a whole");
  }

  async #catchUp(): Promise<void> {
    const { visibleSeq } = this.#engine.database.store;
    for (let turn = 0; turn < TURNS_MAX; turn += 1) {
      await this.#clock.yield();
      if (
        this.#clients.every(
          ({ follower }) => follower.failure !== undefined || isAt(follower, visibleSeq),
        )
      ) {
        return;
      }
      // A query pauses after each evaluation until the clock has advanced.
      this.#clock.advance(1);
    }
    const late = this.#clients.find(({ follower }) => !isAt(follower, visibleSeq));
    throw new StreamViolation(`does not reach ${visibleSeq}: ${late?.sql}`);
  }

  async #judge(
    { follower, params, readsClock, readsStream, sql, states }: Client,
    plan: ResultPlan,
  ): Promise<void> {
    for (const state of states.splice(0)) {
      this.#states += 1;
      // The exact time for which the server computed a time-dependent state is unknown.
      if (readsClock) continue;
      const wanted = await selected(plan, state.seq as Seq);
      if (wanted === undefined || wanted === rowsText(plan, state.rows)) continue;
      throw new StreamViolation(
        `another state at ${state.seq}: ${sql} with ${JSON.stringify(params)}`,
      );
    }
    let wanted = await selected(plan, undefined);
    // A row that changes or expires as time passes arrives only after its query's pause.
    const turnsMax = readsClock || readsStream ? TURNS_MAX : 0;
    for (let turn = 0; turn < turnsMax; turn += 1) {
      if (follower.failure !== undefined || wanted === rowsText(plan, follower.rows)) break;
      await this.#clock.yield();
      this.#clock.advance(1);
      wanted = await selected(plan, undefined);
    }
    if (follower.failure === undefined) {
      if (wanted === rowsText(plan, follower.rows) || wanted === undefined) return;
      throw new StreamViolation(`the final state differs: ${sql} with ${JSON.stringify(params)}`);
    }
    // A query ends if evaluating it fails on a row. The SELECT must also have failed at that time,
    // or fail now.
    const isOfRow = follower.failure.code === "CONVERSION_ERROR";
    if (wanted !== undefined && !isOfRow) {
      throw new StreamViolation(`ended with ${follower.failure.message}: ${sql}`);
    }
  }

  #note({ messages }: ResultFollower): void {
    this.#messages += messages.length;
    for (const message of messages.splice(0)) {
      this.#trace.update(textOf(message));
      requireOldEnough(message);
    }
  }
}

/**
 * Checks the expired rows in a message.
 * @throws {StreamViolation} if a message reports a row as expired before its time
 */
function requireOldEnough(message: object): void {
  const { old_values: olds = [], reason, ts = 0 } = message as Partial<ChangeMessage>;
  if (reason === undefined) return;
  for (const { at } of olds) {
    const writtenMs = typeof at === "number" ? at / 1000 : Number.NaN;
    if (at !== undefined && !(ts - writtenMs >= 1000 * TTL_SECONDS)) {
      throw new StreamViolation(`expired too early: ${textOf(message)}`);
    }
  }
}

function parameterOf(value: string | number | null): string | { number: string } | null {
  return typeof value === "number" ? { number: String(value) } : value;
}

function isAt(follower: ResultFollower, seq: number): boolean {
  return (follower.subscription?.position ?? 0) >= seq && follower.isComplete;
}

async function selected(plan: ResultPlan, at: Seq | undefined): Promise<string | undefined> {
  try {
    const { rows } = await plan.evaluate(at).result;
    // The seq of a row's last change may come after the row's fields.
    return sortedText(rows.map((row) => row.slice(0, plan.fields.length)));
  } catch (error) {
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

function rowsText({ fields }: ResultPlan, rows: FollowedState["rows"]): string {
  return sortedText(rows.map((row) => fields.map(({ name }) => row[name] ?? null)));
}

function sortedText(rows: readonly (readonly unknown[])[]): string {
  return rows.map(textOf).toSorted().join("\n");
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, cell: unknown) =>
    typeof cell === "bigint" ? String(cell) : cell,
  );
}
