/**
 * Judges a subscription by the ledger, using the acknowledged versions and the query's meaning in
 * plain TypeScript. It shares no code with the server.
 *
 * Events wait until the ledger is complete up to them. A pointer walks the partition's versions,
 * each exactly once, in step with the events that report them:
 *
 *     missed          a version changed the result and no event reported it
 *     doubled         a sequence id came a second time on one connection
 *     out of order    a sequence id came after a higher one
 *     above boundary  a row of a snapshot was newer than the boundary of that snapshot
 *     unlike          the client's rows differ from the result of SELECT at the same seq
 *     wrong           anything else: another type, other cells, an id never written
 */
import type { Partition, Version } from "./ledger.ts";
import type { Cells, Followed } from "./queries.ts";

export type Mode = "snapshot" | "last_rows" | "live" | "all" | "latest";

export interface WireChange {
  readonly change_type: string;
  readonly rows: readonly Cells[];
  readonly old_values?: readonly Cells[];
  readonly commit_seq?: number;
}

/** An event that arrived over the socket. */
export type ReaderEvent =
  | {
      readonly kind: "begin";
      readonly mode: Mode;
      /** The position from which the reader resumed, exclusive. */
      readonly position: number;
      readonly lastRows?: number;
    }
  | { readonly kind: "ack"; readonly fields: readonly string[]; readonly boundary: number | null }
  | {
      readonly kind: "batch";
      readonly rows: readonly Cells[];
      readonly lastSeq: number;
      readonly isLast: boolean;
    }
  | { readonly kind: "change"; readonly change: WireChange }
  /** A pong, confirming that everything up to this seq has been sent. */
  | { readonly kind: "position"; readonly seq: number };

export interface Faults {
  missed: number;
  doubled: number;
  outOfOrder: number;
  aboveBoundary: number;
  unlike: number;
  wrong: number;
}

export function noFaults(): Faults {
  return { missed: 0, doubled: 0, outOfOrder: 0, aboveBoundary: 0, unlike: 0, wrong: 0 };
}

/**
 * The maximum number of findings that are described in words. Further findings are only counted.
 */
const FINDINGS_MAX = 5;

export class Judge {
  readonly faults: Faults = noFaults();
  readonly findings: string[] = [];
  /** The rows that the client currently holds, by key. */
  readonly held: Map<number, Cells> = new Map();
  changeCount: number = 0;
  snapshotRowCount = 0;
  readonly #followed: Followed;
  readonly #partition: Partition;
  #events: ReaderEvent[] = [];
  #mode: Mode = "live";
  #isReady = false;
  /** True if the client's first rows were only part of the result. */
  #isPartial = false;
  #lastRows = 0;
  #hasDeletedField = false;
  #position = 0;
  /** The index of the first version for which no event has accounted. */
  #pointer = 0;
  /**
   * The highest sequence id received on this connection, and the set of all sequence ids received.
   */
  #highSeq = 0;
  #seen = new Set<number>();
  /** The rows and deletes in the current snapshot or net replay, by key. */
  #loaded = new Map<number, { seq: number; isRow: boolean }>();

  constructor(followed: Followed, partition: Partition) {
    this.#followed = followed;
    this.#partition = partition;
  }

  add(event: ReaderEvent): void {
    this.#events.push(event);
  }

  get waitingCount(): number {
    return this.#events.length;
  }

  /** Judges the events for which the ledger is complete. */
  judge(completeSeq: number): void {
    let done = 0;
    for (const event of this.#events) {
      if (neededSeq(event) > completeSeq) break;
      this.#take(event);
      done += 1;
    }
    this.#events = this.#events.slice(done);
  }

  /** Finishes judging, once everything up to `seq` must have arrived. */
  finish(seq: number): void {
    if (!this.#isReady) this.#find("wrong", "the subscription never became ready");
    this.#passTo(seq + 1);
    const expected = new Map(
      this.#partition
        .rowsAt(seq)
        .filter((version) => this.#keeps(version))
        .map((version) => [version.row.id, this.#wire(version)]),
    );
    for (const [id, row] of this.held) {
      if (!isSame(row, expected.get(id)))
        this.#find("wrong", `the view has different cells in row ${id}`);
    }
    if (this.#isPartial) return;
    for (const id of expected.keys()) {
      if (!this.held.has(id)) this.#find("wrong", `the view lacks row ${id}`);
    }
  }

  /**
   * Compares the rows that the client holds with the rows from a SELECT of the same query at the
   * same seq.
   */
  compareWith(selected: readonly Cells[]): void {
    const byId = new Map(selected.map((row) => [Number(row["id"]), row]));
    for (const [id, row] of this.held) {
      if (!isSame(row, byId.get(id))) {
        const both = `${JSON.stringify(row)} instead of ${JSON.stringify(byId.get(id))}`;
        this.#find("unlike", `row ${id}: ${both}`);
      }
    }
    if (this.#isPartial) return;
    for (const id of byId.keys()) {
      if (!this.held.has(id)) this.#find("unlike", `the view lacks row ${id}`);
    }
  }

  #take(event: ReaderEvent): void {
    switch (event.kind) {
      case "begin":
        this.#begin(event);
        break;
      case "ack":
        this.#hasDeletedField = event.fields.includes("_deleted");
        if (this.#mode === "live") this.#beginLive(event.boundary);
        break;
      case "batch":
        this.#takeBatch(event);
        break;
      case "change":
        this.#takeChange(event.change);
        break;
      case "position":
        if (this.#isReady) this.#passTo(event.seq + 1);
    }
  }

  #begin({ mode, position, lastRows = 0 }: ReaderEvent & { kind: "begin" }): void {
    // The boundary of an interrupted snapshot is not known, so versions are checked from the
    // position at which the client resumes.
    const wasSnapshot = this.#mode === "snapshot" || this.#mode === "last_rows";
    const isResume = mode === "all" || mode === "latest";
    if (isResume && wasSnapshot && !this.#isReady) {
      this.#pointer = this.#partition.indexAfter(position);
    }
    if (isResume && this.#isReady) this.#passTo(position + 1);
    this.#mode = mode;
    this.#isReady = false;
    this.#position = position;
    this.#highSeq = position;
    this.#seen = new Set();
    this.#loaded = new Map();
    if (isResume) return;
    this.held.clear();
    this.#lastRows = lastRows;
    this.#isPartial = mode !== "snapshot";
  }

  #beginLive(boundary: number | null): void {
    if (boundary === null)
      this.#find("wrong", "the acknowledgement of a live-only subscription has no position");
    this.#pointer = this.#partition.indexAfter(boundary ?? 0);
    this.#isReady = true;
  }

  #takeBatch({ rows, lastSeq, isLast }: ReaderEvent & { kind: "batch" }): void {
    if (this.#isReady) this.#find("wrong", "a batch arrived after the last one");
    for (const row of rows) {
      this.snapshotRowCount += 1;
      const seq = this.#ascend(row);
      if (isLast && seq > lastSeq) this.#find("aboveBoundary", `${seq} is above ${lastSeq}`);
      if (this.#mode === "all") this.#passTo(seq);
      const version = this.#versionAt(seq);
      if (version === undefined) continue;
      if (!this.#keeps(version)) this.#find("wrong", `row ${seq} does not match the filter`);
      if (!isSame(row, this.#wire(version))) this.#find("wrong", `row ${seq} has other cells`);
      if (this.#mode === "all") this.#pointer += 1;
      this.held.set(version.row.id, row);
      this.#loaded.set(version.row.id, { seq, isRow: true });
    }
    if (!isLast) return;
    if (this.#mode === "all") this.#passTo(lastSeq + 1);
    else if (this.#mode === "latest") this.#checkNetEffect(lastSeq);
    else this.#checkSnapshot(lastSeq);
    this.#isReady = true;
    this.#loaded = new Map();
  }

  #takeChange(change: WireChange): void {
    if (!this.#isReady && this.#mode !== "all" && this.#mode !== "latest") {
      this.#find("wrong", "a change arrived while the snapshot was loading");
    }
    const count = Math.max(change.rows.length, change.old_values?.length ?? 0);
    for (let index = 0; index < count; index += 1) {
      this.changeCount += 1;
      this.#takeOne(change, index);
    }
  }

  #takeOne(change: WireChange, index: number): void {
    const row = change.rows[index];
    const old = change.old_values?.[index];
    const seq = this.#ascend(row ?? old ?? {});
    const isNet = this.#mode === "latest" && !this.#isReady;
    if (!isNet) this.#passTo(seq);
    const version = this.#versionAt(seq);
    if (version === undefined) return;
    if (isNet) {
      if (change.change_type !== "delete")
        this.#find("wrong", `the change ${seq} is not a net effect`);
      this.#loaded.set(version.row.id, { seq, isRow: false });
    } else if (this.#partition.versions[this.#pointer] === version) {
      this.#pointer += 1;
      this.#compare({ type: change.change_type, row, old }, version);
    }
    if (row === undefined) this.held.delete(version.row.id);
    else this.held.set(version.row.id, row);
  }

  #compare(actual: Effect, version: Version): void {
    const expected = this.#effectOf(version);
    if (isSame(actual, expected)) return;
    const both = `${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`;
    this.#find("wrong", `${version.seq}: ${both}`);
  }

  #ascend(row: Cells): number {
    const seq = Number(row["_seq"]);
    if (seq <= this.#highSeq) {
      if (this.#seen.has(seq)) this.#find("doubled", `${seq} came twice`);
      else this.#find("outOfOrder", `${seq} came after ${this.#highSeq}`);
    }
    this.#highSeq = Math.max(this.#highSeq, seq);
    this.#seen.add(seq);
    return seq;
  }

  /**
   * Moves past the versions below `seq`. Each of them that would have changed the result was
   * missed.
   */
  #passTo(seq: number): void {
    const { versions } = this.#partition;
    for (;;) {
      const version = versions[this.#pointer];
      if (version === undefined || version.seq >= seq) return;
      this.#pointer += 1;
      const effect = this.#effectOf(version);
      if (effect !== undefined) this.#find("missed", `the ${effect.type} of ${version.seq}`);
    }
  }

  #checkSnapshot(boundary: number): void {
    let expected = this.#partition.rowsAt(boundary).filter((version) => this.#keeps(version));
    if (this.#mode === "last_rows") expected = expected.slice(-this.#lastRows);
    for (const { row, seq } of expected) {
      const loaded = this.#loaded.get(row.id);
      if (loaded?.seq !== seq)
        this.#find("missed", `row ${row.id} with seq ${seq} is missing from the snapshot`);
      this.#loaded.delete(row.id);
    }
    for (const { seq } of this.#loaded.values()) {
      this.#find("wrong", `${seq} is not in the result at ${boundary}`);
    }
    this.#pointer = this.#partition.indexAfter(boundary);
  }

  /**
   * Checks that each key that has changed since the position arrived once: as a row with its
   * newest version, or as a single delete.
   */
  #checkNetEffect(boundary: number): void {
    const { versions } = this.#partition;
    const from = this.#partition.indexAfter(this.#position);
    const upTo = this.#partition.indexAfter(boundary);
    const byKey = new Map<number, Version[]>();
    for (const version of versions.slice(from, upTo)) {
      const ofKey = byKey.get(version.row.id);
      if (ofKey === undefined) byKey.set(version.row.id, [version]);
      else ofKey.push(version);
    }
    for (const [id, ofKey] of byKey) this.#checkKey(ofKey, this.#loaded.get(id));
    for (const [id, { seq }] of this.#loaded) {
      if (!byKey.has(id)) this.#find("wrong", `${seq} has not changed since ${this.#position}`);
    }
    this.#pointer = upTo;
  }

  #checkKey(ofKey: readonly Version[], loaded: { seq: number; isRow: boolean } | undefined): void {
    const newest = ofKey.at(-1);
    if (newest === undefined) return;
    const wasHeld = this.#keeps(ofKey[0]?.before);
    const isRow = this.#keeps(newest);
    if (loaded === undefined) {
      if (isRow || wasHeld) this.#find("missed", `the net effect of ${newest.seq}`);
    } else if (loaded.seq !== newest.seq || loaded.isRow !== isRow) {
      this.#find("wrong", `${loaded.seq} is not the net effect of ${newest.seq}`);
    } else if (!isRow && !wasHeld && !ofKey.some((version) => this.#keeps(version))) {
      this.#find("wrong", `${loaded.seq} deletes a row that never matched`);
    }
  }

  #versionAt(seq: number): Version | undefined {
    const version = this.#partition.versions[this.#partition.indexAfter(seq) - 1];
    if (version?.seq === seq) return version;
    this.#find("wrong", `${seq} was never written`);
    return undefined;
  }

  #keeps(version: Version | undefined): boolean {
    return version !== undefined && !version.isDeleted && this.#followed.query.keeps(version.row);
  }

  #wire({ row, seq }: Version): Cells {
    const cells = { ...this.#followed.query.shows(row), id: row.id, _seq: seq };
    return this.#hasDeletedField ? { ...cells, _deleted: false } : cells;
  }

  #effectOf(version: Version): Effect | undefined {
    const { before } = version;
    const isNew = this.#keeps(version);
    if (before === undefined || !this.#keeps(before)) {
      return isNew ? { type: "insert", row: this.#wire(version), old: undefined } : undefined;
    }
    const last = this.#wire(before);
    if (!isNew) {
      const old = { ...last, _seq: version.seq, _deleted: true };
      return { type: "delete", row: undefined, old };
    }
    const row = this.#wire(version);
    const changed = Object.entries(last).filter(
      ([name, cell]) => name === "id" || name === "_seq" || cell !== row[name],
    );
    return { type: "update", row, old: Object.fromEntries(changed) };
  }

  #find(fault: keyof Faults, what: string): void {
    this.faults[fault] += 1;
    if (this.findings.length < FINDINGS_MAX) {
      this.findings.push(`${this.#followed.name}: ${fault}: ${what}`);
    }
  }
}

interface Effect {
  readonly type: string;
  readonly row: Cells | undefined;
  readonly old: Cells | undefined;
}

/** Returns the seq up to which the ledger must be complete before an event can be judged. */
function neededSeq(event: ReaderEvent): number {
  switch (event.kind) {
    case "begin":
      return event.position;
    case "ack":
      return event.boundary ?? 0;
    case "batch":
      return Math.max(event.lastSeq, ...event.rows.map((row) => Number(row["_seq"])));
    case "change":
      return Math.max(
        0,
        ...event.change.rows.map((row) => Number(row["_seq"])),
        ...(event.change.old_values ?? []).map((row) => Number(row["_seq"])),
      );
    case "position":
      return event.seq;
  }
}

function isSame(left: unknown, right: unknown): boolean {
  return Bun.deepEquals(left, right);
}
