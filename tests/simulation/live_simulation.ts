/**
 * Simulates writers and subscribers around the live engine, driven by a seed: commits that become
 * visible late, batches that are requested or not, sockets that fill and drain, connections that
 * drop and resume, and history that expires. An oracle keeps every version ever written and checks
 * each message as it arrives.
 *
 * It checks these rules of the stream:
 * - seqs ascend within a subscription, so no change arrives twice or out of order;
 * - every change follows from its version by the change matrix, cell by cell;
 * - no version that affects the result is skipped;
 * - a snapshot is the result at its last_seq_id, and the client's rows are the result at any
 *   position.
 *
 * Versions of a STREAM table expire in the meantime. A client may or may not receive expired
 * versions.
 */

import { assert, defined } from "../../src/base/assert.ts";
import { StateInDoubtError } from "../../src/base/bugs.ts";
import { silentLog } from "../../src/base/log.ts";
import { type Seq, seqFromUnixMs } from "../../src/base/seq.ts";
import { type LiveSubscription, LocalLiveEngine, SubscriptionError } from "../../src/live/mod.ts";
import type {
  ChangeMessage,
  DataMessage,
  ErrorMessage,
  InitialDataBatch,
  SubscribeOptions,
  WireRow,
} from "../../src/protocol/mod.ts";
import type { LivePace } from "../../src/sql/mod.ts";
import type { Commit, Store, TableWrite } from "../../src/storage/mod.ts";
import type { Row } from "../../src/types/mod.ts";
import {
  isInResult,
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

/** The operations that the world requires of the store below the engine. */
export interface SimulatedStore {
  readonly store: Store;
  /** Makes all applied commits visible. */
  sync(): Promise<void>;
  /** Performs an operation that must not change any result: a flush or a merge. */
  disturb(random: SeededRandom): Promise<void>;
  /** Discards an owner's history up to a seq, or up to a later one. */
  discard(owner: number, upTo: Seq): Promise<void>;
}

export interface Simulation {
  readonly random: SeededRandom;
  readonly clock: ManualClock;
  readonly world: SimulatedStore;
  readonly steps: number;
  /**
   * The time to live of a STREAM table, whose rows are inserted and deleted; absent for other
   * tables.
   */
  readonly ttlMs?: number | undefined;
  /** Damages the messages of a socket, to show that the oracle notices. */
  readonly tamper?: (messages: Message[], random: SeededRandom) => Message[];
}

export interface SimulationReport {
  readonly messages: number;
  readonly changes: number;
  readonly resumes: number;
  readonly expired: number;
  /** The trace of the run, which is the same for the same seed. */
  readonly trace: string;
}

export type Message = DataMessage | ErrorMessage;

const OWNERS = 3;
const KEYS = 12;
const ROOMS = ["lobby", "hall", "attic", null];

const QUERIES: readonly { sql: string; hasParameter?: boolean; wire: (row: Row) => WireRow }[] = [
  { sql: "SELECT * FROM chat.messages", wire: whole },
  { sql: "SELECT * FROM chat.messages WHERE room = 'lobby'", wire: whole },
  { sql: "SELECT * FROM chat.messages WHERE room = $1", hasParameter: true, wire: whole },
  {
    sql: "SELECT n * 2 AS twice FROM chat.messages WHERE n > 5",
    wire: ([id, , n]) => ({ twice: n === null ? null : Number(n) * 2, id: Number(id) }),
  },
  {
    sql: "SELECT id, body FROM chat.messages",
    wire: ([id, , , body]) => ({ id: Number(id), body: body as string | null }),
  },
];

function whole([id, room, n, body]: Row): WireRow {
  return {
    id: Number(id),
    room: room as string | null,
    n: n as number | null,
    body: body as string | null,
  };
}

interface Version {
  readonly seq: number;
  readonly commitSeq: number;
  readonly id: number;
  readonly isDeleted: boolean;
  readonly row: Row;
  readonly before: Version | undefined;
}

/** The ledger of every version of every owner, in order. */
class Ledger {
  readonly #byOwner = new Map<number, Version[]>();
  readonly #newest = new Map<string, Version>();
  readonly #clock: ManualClock;
  readonly #ttlMs: number | undefined;

  constructor(clock: ManualClock, ttlMs: number | undefined) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  get isStream(): boolean {
    return this.#ttlMs !== undefined;
  }

  hasExpired({ seq }: { seq: number }): boolean {
    if (this.#ttlMs === undefined) return false;
    return seq < seqFromUnixMs(this.#clock.nowMs() - this.#ttlMs + 1);
  }

  add(
    owner: number,
    seqs: Iterable<{ seq: number; isDeleted: boolean; row: Row }>,
    commitSeq: number,
  ) {
    for (const { seq, isDeleted, row } of seqs) {
      const id = Number(row[0]);
      const before = this.newest(owner, id);
      const version = { seq, commitSeq, id, isDeleted, row, before };
      this.#newest.set(`${owner}/${id}`, version);
      this.of(owner).push(version);
    }
  }

  of(owner: number): Version[] {
    let versions = this.#byOwner.get(owner);
    if (versions === undefined) this.#byOwner.set(owner, (versions = []));
    return versions;
  }

  /** Returns the newest version of a key, or undefined if it has expired. */
  newest(owner: number, id: number): Version | undefined {
    const newest = this.#newest.get(`${owner}/${id}`);
    return newest === undefined || this.hasExpired(newest) ? undefined : newest;
  }

  at(owner: number, seq: number): Version | undefined {
    const version = this.of(owner)[this.#countBelow(owner, seq)];
    return version?.seq === seq ? version : undefined;
  }

  between(owner: number, after: number, upTo: number): Version[] {
    if (upTo <= after) return [];
    const end = this.#countBelow(owner, upTo + 1);
    return this.of(owner).slice(this.#countBelow(owner, after + 1), end);
  }

  /** Returns the live rows at a seq, by id. */
  rowsAt(owner: number, seq: number): Map<number, Version> {
    const rows = new Map<number, Version>();
    for (const version of this.of(owner)) {
      if (version.seq > seq) break;
      if (version.isDeleted) rows.delete(version.id);
      else rows.set(version.id, version);
    }
    return rows;
  }

  /** Returns how many versions of an owner lie below a seq. */
  #countBelow(owner: number, seq: number): number {
    const versions = this.of(owner);
    let low = 0;
    let high = versions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((versions[middle]?.seq ?? Infinity) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A violation found by the oracle. */
export class StreamViolation extends Error {
  constructor(what: string) {
    super(`the stream is wrong: ${what}`);
    this.name = "StreamViolation";
  }
}

function violation(what: string): never {
  throw new StreamViolation(what);
}

/** A subscriber that checks everything it receives. */
class Client {
  readonly owner: number;
  readonly query: (typeof QUERIES)[number];
  readonly parameter: string;
  readonly rows = new Map<number, WireRow>();
  /** The client's connection, which others may share. */
  sink = new RecordingSink();
  id = "";
  subscription: LiveSubscription | undefined;
  /** The position from which it may resume. */
  position: number | undefined;
  #ledger: Ledger;
  #kind: "snapshot" | "partial" | "all" | "latest" | "live" = "snapshot";
  /** The highest received seq. */
  #highSeq = 0;
  /** Every version up to this seq has been accounted for. */
  #checkedSeq = 0;
  /**
   * The seq of the loaded rows, or the highest seq that they may have reached. If loading is
   * interrupted and resumed, the rows come from different seqs until the client has reached this
   * seq.
   */
  #aheadSeq = 0;
  #isReady = false;
  /** True if the client began with only some of the rows. Resuming does not change that. */
  #isPartial = false;
  /**
   * The number of newest rows that the client requested; undefined for all rows, or without a
   * snapshot.
   */
  #lastRows: number | undefined;

  constructor(owner: number, random: SeededRandom, ledger: Ledger) {
    this.owner = owner;
    this.#ledger = ledger;
    this.query = random.pick(QUERIES);
    this.parameter = random.pick(["lobby", "hall", "attic"]);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  begin(
    kind: "snapshot" | "partial" | "all" | "latest" | "live",
    {
      position,
      boundary,
      lastRows,
    }: { position: number; boundary: number; lastRows: number | undefined },
  ): void {
    this.#kind = kind;
    this.#lastRows = lastRows;
    this.#isReady = false;
    this.#highSeq = position;
    this.#checkedSeq = position;
    if (kind === "all" || kind === "latest") return;
    this.rows.clear();
    this.#aheadSeq = boundary;
    this.#isPartial = kind !== "snapshot";
  }

  take(sent: Message): void {
    switch (sent.type) {
      case "subscription_ack":
        this.#takeAck(sent.batch_control);
        break;
      case "initial_data_batch":
        this.#takeBatch(sent);
        break;
      case "change":
        this.#takeChange(sent);
        break;
      case "error":
        if (sent.code !== "RESUME_EXPIRED") violation(`ended with ${sent.code}: ${sent.message}`);
        this.position = undefined;
        this.subscription = undefined;
        this.#isReady = false;
    }
  }

  /** Checks that the client's rows are the result at a seq. */
  checkHeld(seq: number): void {
    if (seq < this.#aheadSeq) return;
    const expected = new Map<number, WireRow>();
    for (const [id, version] of this.#ledger.rowsAt(this.owner, seq)) {
      if (this.#ledger.hasExpired(version)) continue;
      if (this.#matches(version)) expected.set(id, this.#wire(version));
    }
    for (const [id, row] of this.rows) {
      if (this.#ledger.hasExpired({ seq: Number(row["_seq"]) })) this.rows.delete(id);
    }
    if (this.#isPartial) {
      for (const [id, row] of this.rows) {
        if (!isSame(row, expected.get(id))) violation(`row ${id} is not what it was at ${seq}`);
      }
      return;
    }
    if (this.rows.size !== expected.size) {
      violation(`${this.rows.size} rows are held and ${expected.size} were there at ${seq}`);
    }
    for (const [id, row] of expected) {
      if (!isSame(row, this.rows.get(id))) violation(`row ${id} is not what it was at ${seq}`);
    }
  }

  #takeAck(control: InitialDataBatch["batch_control"]): void {
    if (control.has_more) return;
    this.#isReady = true;
    this.position = defined(
      control.last_seq_id ?? undefined,
      "live delivery must begin at a boundary",
    );
    this.#checkedSeq = this.position;
  }

  #takeBatch({ rows, batch_control }: InitialDataBatch): void {
    if (this.#isReady) violation("a batch came after the last one");
    const lastSeq = defined(batch_control.last_seq_id ?? undefined, "a batch must have a position");
    for (const row of rows) {
      const seq = this.#ascend(row);
      if (batch_control.status === "ready" && seq > lastSeq) violation("a row above the boundary");
      if (this.#kind === "all") this.#passOver(seq);
      this.rows.set(Number(row["id"]), row);
      const version = this.#versionAt(seq);
      if (!isSame(row, this.#wire(version))) violation(`the row at ${seq} is another`);
      if (!this.#matches(version)) violation(`the row at ${seq} does not match`);
      this.#checkedSeq = this.#kind === "all" ? seq : this.#checkedSeq;
    }
    this.position = lastSeq;
    if (batch_control.status !== "ready") return;
    if (this.#kind === "all") this.#passOver(lastSeq + 1);
    this.#isReady = true;
    this.#checkedSeq = lastSeq;
    this.#highSeq = Math.max(this.#highSeq, lastSeq);
    this.checkHeld(lastSeq);
    if (this.#lastRows !== undefined) this.#checkNewest(this.#lastRows, lastSeq);
  }

  /** Checks that a result contains the newest rows, as many as requested. */
  #checkNewest(count: number, seq: number): void {
    const all = [...this.#ledger.rowsAt(this.owner, seq).values()]
      .filter((version) => this.#matches(version) && !this.#ledger.hasExpired(version))
      .toSorted((left, right) => left.seq - right.seq);
    const newest = all.slice(Math.max(0, all.length - count)).map((version) => version.seq);
    const held = [...this.rows.values()].map((row) => Number(row["_seq"]));
    if (!isSame(held, newest)) violation(`${held.join()} are not the newest ${count} rows`);
  }

  #takeChange(change: ChangeMessage): void {
    if (!this.#isReady && this.#kind !== "all" && this.#kind !== "latest") {
      violation("a change arrived while the snapshot was loading");
    }
    const count = Math.max(change.rows.length, change.old_values?.length ?? 0);
    if (count === 0) violation("a change of nothing");
    for (let index = 0; index < count; index += 1) {
      const row = change.rows[index];
      const old = change.old_values?.[index];
      const seq = this.#ascend(defined(row ?? old, "a change must have a row"));
      const isNet = this.#kind === "latest" && !this.#isReady;
      if (!isNet) this.#passOver(seq);
      const version = this.#versionAt(seq);
      if (change.commit_seq !== version.commitSeq) violation(`commit_seq of ${seq} is another`);
      if (isNet) {
        if (change.change_type !== "delete") violation("a net effect is a row or a delete");
      } else {
        const expected = this.#effectOf(version);
        const actual = { type: change.change_type, row, old };
        if (!isSame(actual, expected)) {
          violation(`${JSON.stringify(actual)} should be ${JSON.stringify(expected)}`);
        }
        this.#checkedSeq = seq;
      }
      if (change.change_type === "delete") this.rows.delete(version.id);
      else this.rows.set(version.id, defined(row, "an insert or update must have a row"));
    }
    if (this.#kind !== "latest" || this.#isReady) this.position = this.#highSeq;
  }

  #ascend(row: WireRow): number {
    const seq = Number(row["_seq"]);
    if (seq <= this.#highSeq) violation(`${seq} came after ${this.#highSeq}`);
    this.#highSeq = seq;
    if (this.#kind === "latest" && !this.#isReady) this.#aheadSeq = Math.max(this.#aheadSeq, seq);
    return seq;
  }

  /** Checks that each unaccounted version below `seq` leaves the result unchanged. */
  #passOver(seq: number): void {
    for (const version of this.#ledger.between(this.owner, this.#checkedSeq, seq - 1)) {
      if (this.#ledger.hasExpired(version.isDeleted ? (version.before ?? version) : version))
        continue;
      const effect = this.#effectOf(version);
      if (effect !== undefined) violation(`the ${effect.type} of ${version.seq} was missed`);
    }
  }

  /** Checks the client once the engine has nothing left to send. */
  checkComplete(seq: number): void {
    this.#passOver(seq + 1);
    this.checkHeld(seq);
  }

  #versionAt(seq: number): Version {
    const version = this.#ledger.at(this.owner, seq);
    return version ?? violation(`${seq} was never written for owner ${this.owner}`);
  }

  #matches(version: Version | undefined): boolean {
    if (version === undefined || version.isDeleted) return false;
    return isInResult(this.query.sql, version.row, this.parameter);
  }

  #wire(version: Version): WireRow {
    return { ...this.query.wire(version.row), _seq: version.seq };
  }

  #effectOf(version: Version) {
    const isNew = this.#matches(version);
    const isOld = this.#matches(version.before);
    if (isNew && isOld) {
      const before = this.#wire(defined(version.before, "a matching old row must exist"));
      const row = this.#wire(version);
      const changed = Object.entries(before).filter(
        ([name, cell]) => name === "id" || name === "_seq" || cell !== row[name],
      );
      return { type: "update", row, old: Object.fromEntries(changed) };
    }
    if (isNew) return { type: "insert", row: this.#wire(version), old: undefined };
    if (!isOld) return undefined;
    const last = this.#wire(defined(version.before, "a matching old row must exist"));
    return { type: "delete", row: undefined, old: { ...last, _seq: version.seq, _deleted: true } };
  }
}

function isSame(left: unknown, right: unknown): boolean {
  return Bun.deepEquals(left, right);
}

/**
 * Runs one simulation.
 *
 * @throws {StreamViolation} If the stream is wrong. @throws {AssertionError} If the engine reached
 * an impossible state.
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

/** A pace in which rows are slow at random, so that a tick may end after any row. */
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
  /** A bug in the engine, or an error that one of its ticks threw. */
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
        // No client in this simulation counts as too slow, whatever the clock shows after a jump.
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

  /** Records a bug that the engine contained. It makes this run fail. */
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

  /** Writes one commit of a few rows of one or two owners, each key at most once. */
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
    // The ids of one commit are consecutive unless a millisecond is used up.
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
      // The id is already in use, so the old subscription ends first.
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
    // Messages in flight may be lost with the connection.
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

/** Waits for one tick of the event loop, with all its microtasks. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
