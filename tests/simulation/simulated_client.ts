/**
 * A client in the simulation of live queries. It checks each message on arrival against the
 * ledger: the order, the cells, and the rows that the client has afterwards.
 */
import { defined } from "../../src/base/assert.ts";
import type { LiveSubscription } from "../../src/live/mod.ts";
import type {
  ChangeMessage,
  DataMessage,
  ErrorMessage,
  InitialDataBatch,
  WireRow,
} from "../../src/protocol/mod.ts";
import type { Row } from "../../src/types/mod.ts";
import { isInResult, RecordingSink } from "../support/live_fixture.ts";
import type { SeededRandom } from "../support/seeded_random.ts";
import type { Ledger, Version } from "./live_ledger.ts";

export type Message = DataMessage | ErrorMessage;

export const QUERIES: readonly {
  sql: string;
  hasParameter?: boolean;
  wire: (row: Row) => WireRow;
}[] = [
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

/** The error for a message that violates the rules of the stream. */
export class StreamViolation extends Error {
  constructor(what: string) {
    super(`the stream is wrong: ${what}`);
    this.name = "StreamViolation";
  }
}

export function violation(what: string): never {
  throw new StreamViolation(what);
}

/** A subscriber that checks everything it receives. */
export class Client {
  readonly owner: number;
  readonly query: (typeof QUERIES)[number];
  readonly parameter: string;
  readonly rows = new Map<number, WireRow>();
  /** The client's connection, which other clients may share. */
  sink = new RecordingSink();
  id = "";
  subscription: LiveSubscription | undefined;
  /** The position from which the client may resume. */
  position: number | undefined;
  #ledger: Ledger;
  #kind: "snapshot" | "partial" | "all" | "latest" | "live" = "snapshot";
  /** The highest seq received so far. */
  #highSeq = 0;
  /** The seq up to which the client has accounted for every version. */
  #checkedSeq = 0;
  /**
   * The seq of the loaded rows, or an upper bound of their seqs. If loading is interrupted and
   * resumed, the rows reflect different seqs until the client has reached this seq.
   */
  #aheadSeq = 0;
  #isReady = false;
  /**
   * Whether the client began with only some of the rows. It remains true if the client resumes.
   */
  #isPartial = false;
  /**
   * How many of the newest rows the client requested; undefined for all rows, or without a
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

  /** Checks that the client's rows equal the result at a seq. */
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

  /** Checks that a result contains the requested number of newest rows. */
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

  /**
   * Checks that each version below `seq` that is still unaccounted for leaves the result
   * unchanged.
   */
  #passOver(seq: number): void {
    for (const version of this.#ledger.between(this.owner, this.#checkedSeq, seq - 1)) {
      if (this.#ledger.hasExpired(version.isDeleted ? (version.before ?? version) : version))
        continue;
      const effect = this.#effectOf(version);
      if (effect !== undefined) violation(`the ${effect.type} of ${version.seq} was missed`);
    }
  }

  /** Checks the client's final state, once the engine has nothing left to send. */
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
