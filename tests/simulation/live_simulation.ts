/**
 * Simulates writers and subscribers around the live engine, driven by a seed. Commits become
 * visible late, batches are requested or not, sockets fill and drain, connections drop and resume,
 * and history expires. An oracle keeps every version ever written, and checks each message as it
 * arrives.
 *
 * It checks these rules of the stream:
 * - Seqs ascend within a subscription, so no change arrives twice or out of order.
 * - Every change follows from its version by the change matrix, cell by cell.
 * - No version that affects the result is skipped.
 * - A snapshot is the result at its last_seq_id, and the client's rows are the result at any
 *   position.
 *
 * Versions in a STREAM table expire during the simulation. A client may or may not receive expired
 * versions.
 */
import { assert } from "../../src/base/assert.ts";
import { StateInDoubtError } from "../../src/base/bugs.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Seq } from "../../src/base/seq.ts";
import { LocalLiveEngine, SubscriptionError } from "../../src/live/mod.ts";
import type { SubscribeOptions } from "../../src/protocol/mod.ts";
import type { LivePace } from "../../src/sql/mod.ts";
import type { Commit, Store, TableWrite } from "../../src/storage/mod.ts";
import {
  KnownQueries,
  LIMITS,
  MESSAGES,
  message,
  NO_DEFINITIONS,
  RecordingSink,
  subscriber,
} from "../support/live_fixture.ts";
import type { ManualClock } from "../support/manual_clock.ts";
import { PromptedSearch } from "../support/prompted_search.ts";
import type { SeededRandom } from "../support/seeded_random.ts";
import { Ledger } from "./live_ledger.ts";
import { Client, type Message, violation } from "./simulated_client.ts";

/** The store operations that the simulated world performs itself, below the engine. */
export interface SimulatedStore {
  readonly store: Store;
  /** Makes all applied commits visible. */
  sync(): Promise<void>;
  /** Flushes or merges, which must not change any result. */
  disturb(random: SeededRandom): Promise<void>;
  /** Discards an owner's history up to the given seq or a later one. */
  discard(owner: number, upTo: Seq): Promise<void>;
}

export interface Simulation {
  readonly random: SeededRandom;
  readonly clock: ManualClock;
  readonly world: SimulatedStore;
  readonly steps: number;
  /**
   * The time to live of the rows, which makes the table a STREAM table, whose rows are only
   * inserted and deleted; absent for other tables.
   */
  readonly ttlMs?: number | undefined;
  /** Damages the messages of a socket, to show that the oracle notices the damage. */
  readonly tamper?: (messages: Message[], random: SeededRandom) => Message[];
}

export interface SimulationReport {
  readonly messages: number;
  readonly changes: number;
  readonly resumes: number;
  readonly expired: number;
  /** The trace of the run. Equal seeds give equal traces. */
  readonly trace: string;
}

const OWNERS = 3;

const KEYS = 12;

const ROOMS = ["lobby", "hall", "attic", null];

/**
 * Runs one simulation.
 *
 * @throws {StreamViolation} if a message violates the rules of the stream
 * @throws {AssertionError} if the engine has reached an impossible state
 */
export async function simulateLive(simulation: Simulation): Promise<SimulationReport> {
  const { random, clock, world, steps } = simulation;
  const state = new World(simulation);
  try {
    for (let step = 0; step < steps; step += 1) {
      await state.step();
      if (random.chance(0.3)) clock.advance(random.below(5));
    }
    await state.finish();
  } finally {
    state.stop();
  }
  assert(
    world.store.visibleSeq === world.store.appliedSeq,
    "everything must be visible at the end",
  );
  return state.report();
}

/** A pace at which rows are slow at random, so that a tick may end after any row. */
class FitfulPace implements LivePace {
  readonly #random: SeededRandom;
  readonly rows: { rowsMax: number; note(): void };
  #nowMs = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
    const rows = {
      rowsMax: 4,
      note: () => {
        rows.rowsMax = 1 + random.below(5);
      },
    };
    this.rows = rows;
  }

  monotonicMs(): number {
    this.#nowMs += this.#random.pick([0, 0.01, 5]);
    return this.#nowMs;
  }
}

class World {
  readonly #random: SeededRandom;
  readonly #world: SimulatedStore;
  readonly #engine: LocalLiveEngine;
  readonly #ledger: Ledger;
  readonly #clients: Client[] = [];
  readonly #tamper: Simulation["tamper"];
  readonly #trace = new Bun.CryptoHasher("sha1");
  #messages = 0;
  #changes = 0;
  #resumes = 0;
  #expired = 0;
  /** A bug that the engine has caught, or an error that one of its ticks threw. */
  #uncaught: { readonly error: unknown } | undefined;
  #isStopped = false;

  constructor({ random, clock, world, tamper, ttlMs }: Simulation) {
    this.#random = random;
    this.#ledger = new Ledger(clock, ttlMs);
    this.#world = world;
    this.#tamper = tamper;
    const sql = new KnownQueries();
    if (random.chance(0.3)) sql.pace = new FitfulPace(random);
    if (random.chance(0.5)) {
      sql.searchFor = (plan) =>
        new PromptedSearch({
          store: world.store,
          plan,
          takesAll: random.chance(0.8),
          nextPiece: () => (random.chance(0.05) ? "refused" : 1 + random.below(6)),
          later: (arrive) => void clock.yield().then(() => this.#take(arrive)),
        });
    }
    this.#engine = new LocalLiveEngine({
      store: world.store,
      sql,
      definitions: NO_DEFINITIONS,
      clock,
      random,
      log: silentLog,
      onBug: (error) => this.#noteBug(error),
      // Ticks are short, so that every kind of work is interrupted at some point.
      pace: random.pick([
        { tickUnits: 1, sliceUnits: 1, requestUnits: 1 },
        { tickUnits: 20, sliceUnits: 5, requestUnits: 10 },
        { tickUnits: 2048, sliceUnits: 2048, requestUnits: 16_384 },
      ]),
      ticks: {
        soon: (tick) => queueMicrotask(() => this.#take(tick)),
        later: (tick) => void clock.yield().then(() => this.#take(tick)),
      },
      limits: {
        ...LIMITS,
        // In this simulation, no client counts as too slow, whatever the clock shows after a jump.
        loadingTimeoutMs: Infinity,
        replayChangesMax: random.pick([0, 3, 10_000]),
        frameBytesMax: random.pick([2200, 8 << 20]),
      },
    });
  }

  async step(): Promise<void> {
    const random = this.#random;
    const chosen = random.below(100);
    if (chosen < 30) this.#write();
    else if (chosen < 50) await this.#world.sync();
    else if (chosen < 58 && this.#clients.length < 12) this.#open();
    else if (chosen < 70) this.#pick()?.subscription?.nextBatch();
    else if (chosen < 75) this.#breakOff();
    else if (chosen < 82) this.#reconnect();
    else if (chosen < 86) this.#fill();
    else if (chosen < 92) this.#unblock();
    else if (chosen < 94) await this.#world.disturb(random);
    else if (chosen < 95) await this.#discard();
    else await nextTurn();
    this.#receive();
  }

  /** Stops the engine's ticks, so that an abandoned run does not disturb the next one. */
  stop(): void {
    this.#isStopped = true;
  }

  async finish(): Promise<void> {
    await this.#world.sync();
    const seq = this.#world.store.visibleSeq;
    for (let round = 0; round < 5000; round += 1) {
      for (const client of this.#clients) {
        if (client.subscription === undefined) this.#resume(client);
        client.sink.room = Infinity;
        client.subscription?.drained();
        client.subscription?.nextBatch();
      }
      await nextTurn();
      this.#receive();
      if (this.#clients.every((client) => client.subscription?.position === seq)) break;
    }
    for (const client of this.#clients) {
      if (client.subscription?.position !== seq) violation("a subscription did not catch up");
      client.checkComplete(seq);
      client.subscription.close();
    }
    if (this.#engine.subscriptions().length > 0) violation("a closed subscription is remembered");
  }

  report(): SimulationReport {
    return {
      messages: this.#messages,
      changes: this.#changes,
      resumes: this.#resumes,
      expired: this.#expired,
      trace: this.#trace.digest("hex"),
    };
  }

  /** Records a bug that the engine has caught, which makes this run fail. */
  #noteBug(error: unknown): void {
    this.#uncaught ??= { error: error instanceof StateInDoubtError ? error.cause : error };
  }

  #take(engineTurn: () => void): void {
    if (this.#isStopped || this.#uncaught !== undefined) return;
    try {
      engineTurn();
    } catch (error) {
      this.#uncaught = { error };
    }
  }

  #pick(): Client | undefined {
    return this.#clients.length === 0 ? undefined : this.#random.pick(this.#clients);
  }

  /** Commits a few rows of one or two owners, each key at most once. */
  #write(): void {
    const random = this.#random;
    const owner = 1 + random.below(OWNERS);
    const keys = random.shuffle(Array.from({ length: KEYS }, (_, id) => id));
    const writes: TableWrite[] = keys.slice(0, 1 + random.below(4)).map((id) => {
      const newest = this.#ledger.newest(owner, id);
      const isLive = newest !== undefined && !newest.isDeleted;
      const row = message(
        id,
        random.pick(ROOMS),
        random.chance(0.1) ? null : random.below(10),
        random.chance(0.1) ? null : "x".repeat(random.below(60)),
      );
      if (!isLive) return { tableId: MESSAGES, owner, operation: "insert", rows: [row] };
      return this.#ledger.isStream || random.chance(0.3)
        ? { tableId: MESSAGES, owner, operation: "delete", rows: [newest.row] }
        : { tableId: MESSAGES, owner, operation: "update", rows: [row] };
    });
    const versions = writes.flatMap(({ operation, rows }) =>
      rows.map((row) => ({ isDeleted: operation === "delete", row: [...row] })),
    );
    const commit: Commit = this.#world.store.apply({ writes });
    // The seqs of a commit are consecutive unless a millisecond is used up.
    const seqs = versions.map(({ isDeleted, row }, index) => {
      return { isDeleted, row, seq: commit.firstSeq + index };
    });
    assert(seqs.at(-1)?.seq === commit.lastSeq, "the ids of a small commit must be contiguous");
    this.#ledger.add(owner, seqs, commit.lastSeq);
  }

  #open(): void {
    const client = new Client(1 + this.#random.below(OWNERS), this.#random, this.#ledger);
    this.#clients.push(client);
    this.#subscribe(client, this.#random.pick(["snapshot", "snapshot", "partial", "live"]));
  }

  #subscribe(client: Client, kind: "snapshot" | "partial" | "all" | "latest" | "live"): void {
    const position = client.position ?? 0;
    const batch_size = 1 + this.#random.below(6);
    const last_rows = kind === "partial" ? this.#random.below(8) : undefined;
    client.begin(kind, {
      lastRows: last_rows,
      position: kind === "all" || kind === "latest" ? position : 0,
      boundary: this.#world.store.visibleSeq,
    });
    const shared = this.#random.chance(0.4) ? this.#pick()?.sink : undefined;
    client.sink = shared ?? new RecordingSink();
    const taken = this.#clients.filter(({ sink }) => sink === client.sink).length;
    client.id = `s${taken < 2 ? this.#random.below(3) : taken}`;
    for (const other of this.#clients) {
      // The new subscription reuses an id of the same socket, so the old subscription ends first.
      if (other !== client && other.sink === client.sink && other.id === client.id) {
        this.#close(other);
      }
    }
    if (shared === undefined) client.sink.room = this.#random.pick([1, 3, 1000, 1000]);
    const options: Record<typeof kind, SubscribeOptions | null> = {
      snapshot: { batch_size },
      partial: { batch_size, last_rows: last_rows ?? 0 },
      all: { batch_size, from_seq_id: position },
      latest: { batch_size, from_seq_id: position, replay: "latest" },
      live: null,
    };
    const spec = {
      id: client.id,
      sql: client.query.sql,
      options: options[kind],
      ...(client.query.hasParameter === true ? { params: [client.parameter] } : {}),
    };
    try {
      client.subscription = this.#engine.subscribe({
        principal: subscriber(`user ${client.owner}`, client.owner),
        spec,
        sink: client.sink,
      });
    } catch (error) {
      if (!(error instanceof SubscriptionError)) throw error;
      if (error.response.code !== "RESUME_EXPIRED") throw error;
      this.#expired += 1;
      client.position = undefined;
      client.subscription = undefined;
    }
  }

  #breakOff(): void {
    const client = this.#pick();
    if (client === undefined) return;
    // Messages in flight may be lost when the connection breaks.
    if (this.#random.chance(0.5)) this.#receive();
    this.#close(client);
  }

  #close(client: Client): void {
    client.subscription?.close();
    client.subscription = undefined;
    const others = client.sink.drain().filter((sent) => sent.subscription_id !== client.id);
    client.sink.messages.push(...others);
    client.sink = new RecordingSink();
  }

  #reconnect(): void {
    const client = this.#clients.find(({ subscription }) => subscription === undefined);
    if (client !== undefined) this.#resume(client);
  }

  #resume(client: Client): void {
    this.#resumes += 1;
    const isWhole = client.position !== undefined && client.position > 0;
    this.#subscribe(client, isWhole ? this.#random.pick(["all", "latest"]) : "snapshot");
  }

  #fill(): void {
    const client = this.#pick();
    if (client !== undefined) client.sink.room = 1;
  }

  #unblock(): void {
    const client = this.#pick();
    if (client === undefined) return;
    client.sink.room = this.#random.pick([1, 2, 1000]);
    client.subscription?.drained();
  }

  async #discard(): Promise<void> {
    const { visibleSeq } = this.#world.store;
    const owner = 1 + this.#random.below(OWNERS);
    const versions = this.#ledger.between(owner, 0, visibleSeq);
    if (versions.length === 0) return;
    await this.#world.discard(owner, this.#random.pick(versions).seq as Seq);
  }

  #receive(): void {
    if (this.#uncaught !== undefined) throw this.#uncaught.error;
    for (const sink of new Set(this.#clients.map((client) => client.sink))) {
      const drained = sink.drain();
      const messages = this.#tamper?.(drained, this.#random) ?? drained;
      const clients = new Map(
        this.#clients.filter((client) => client.sink === sink).map((client) => [client.id, client]),
      );
      for (const sent of messages) {
        this.#messages += 1;
        if (sent.type === "change") this.#changes += 1;
        if (sent.type === "error") this.#expired += 1;
        this.#trace.update(JSON.stringify(sent));
        const client = clients.get(sent.subscription_id);
        if (client === undefined) violation(`nobody here is called ${sent.subscription_id}`);
        client.take(sent);
      }
    }
  }
}

/** Waits for one tick of the event loop, including all its microtasks. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
