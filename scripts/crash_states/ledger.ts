/**
 * What the store was told in one story, as plain lists of row versions, and what a store that was
 * opened after a crash has of it.
 *
 * Of a table with a time to live, what may have expired may be there or not, what must have expired
 * must not be there, and the rest is held to what holds for every table.
 */
import { type Seq, seqFromUnixMs, unixMsFromSeq } from "../../src/base/seq.ts";
import type { Commit, LocalStore, TableDefinition, TableWrite } from "../../src/storage/mod.ts";
import { type Row, type Value, valuesOf } from "../../src/types/mod.ts";
import { readChanges } from "../../tests/support/store_fixture.ts";

interface Version {
  readonly seq: number;
  readonly commitSeq: number;
  readonly prev: number;
  /** Of a table without a key its seq. */
  readonly key: Value;
  readonly isDeleted: boolean;
  readonly row: Row;
  /** Infinity for the newest version of its key. */
  replacedBy: number;
}

interface Partition {
  readonly tableId: number;
  readonly owner: number;
  versions: Version[];
}

/** What a crash must leave: everything up to here, and nothing that was never applied. */
export interface Claims {
  readonly ackedSeq: number;
  readonly appliedSeq: number;
  /** The latest that any clock has ever shown, and what this one shows. */
  readonly latestMs: number;
  readonly nowMs: number;
}

export class Ledger {
  readonly #partitions = new Map<string, Partition>();

  /** Notes a batch in the order in which it was applied; its commit has the seqs of its rows. */
  note(writes: readonly TableWrite[], { lastSeq, seqs }: Commit, isKeyed: boolean): void {
    let index = 0;
    for (const { tableId, owner, operation, rows } of writes) {
      const { versions } = this.#partition(tableId, owner);
      for (const row of rows) {
        const seq = seqs?.[index] ?? 0;
        index += 1;
        const key = isKeyed ? (row[0] ?? null) : seq;
        const found = versions.findLast((version) => version.key === key);
        // What an insert finds alive has expired, and the key is as if it had never been.
        const isFree = operation === "insert" && found?.isDeleted === false;
        const before = isFree ? undefined : found;
        if (before !== undefined) before.replacedBy = seq;
        const isDeleted = operation === "delete";
        const prev = before?.seq ?? 0;
        const times = { seq, commitSeq: lastSeq, prev, replacedBy: Infinity };
        versions.push({ ...times, key, isDeleted, row });
      }
    }
  }

  /** Rows that are live now. */
  live(tableId: number, owner: number): Row[] {
    return this.#partition(tableId, owner)
      .versions.filter(({ isDeleted, replacedBy }) => !isDeleted && replacedBy === Infinity)
      .map(({ row }) => row);
  }

  /** Forgets a commit that was taken back. */
  takeBack(commitSeq: number): void {
    for (const partition of this.#partitions.values()) {
      const gone = partition.versions.filter((version) => version.commitSeq === commitSeq);
      if (gone.length === 0) continue;
      const seqs = new Set(gone.map(({ seq }) => seq));
      partition.versions = partition.versions.filter(({ seq }) => !seqs.has(seq));
      for (const version of partition.versions) {
        if (seqs.has(version.replacedBy)) version.replacedBy = Infinity;
      }
    }
  }

  /** Forgets the commits above a seq, which a crash has undone. */
  cutAbove(seq: number): void {
    for (const partition of this.#partitions.values()) {
      partition.versions = partition.versions.filter(({ commitSeq }) => commitSeq <= seq);
      for (const version of partition.versions) {
        if (version.replacedBy > seq) version.replacedBy = Infinity;
      }
    }
  }

  /**
   * Up to which seq a store should have every commit. The newest one, if it was not acknowledged,
   * may have lost its last part alone: the log then names its seqs, and all of it counts for
   * nothing.
   */
  reach(
    store: LocalStore,
    definitions: readonly TableDefinition[],
    { ackedSeq, appliedSeq }: Claims,
  ): number {
    // Parts of a commit that was taken back may reach further, and say nothing.
    const upTo = this.#wholeCommitsUpTo(Math.min(store.visibleSeq, appliedSeq));
    let newest: { version: Version; partition: Partition } | undefined;
    for (const partition of this.#partitions.values()) {
      for (const version of partition.versions) {
        const { commitSeq, seq } = version;
        if (commitSeq > upTo || commitSeq < (newest?.version.commitSeq ?? 0)) continue;
        const isFirst = newest?.version.commitSeq !== commitSeq || seq < newest.version.seq;
        if (isFirst) newest = { version, partition };
      }
    }
    if (newest === undefined || newest.version.commitSeq <= ackedSeq) return upTo;
    const { owner, tableId } = newest.partition;
    const table = definitions.find((definition) => definition.tableId === tableId);
    if (table === undefined) return upTo;
    const after = newest.version.seq - 1;
    const isThere = readChanges(store, table, { owner, after, batchRows: 1000 }).length > 0;
    return isThere ? upTo : after;
  }

  /** The first thing in which a store differs from what it must have; undefined when it agrees. */
  difference(
    store: LocalStore,
    definitions: readonly TableDefinition[],
    claims: Claims,
  ): string | undefined {
    const { visibleSeq } = store;
    const { ackedSeq } = claims;
    if (visibleSeq < ackedSeq) return `lost: it ends at ${visibleSeq}, acknowledged ${ackedSeq}`;
    const upTo = this.reach(store, definitions, claims);
    for (const table of definitions) {
      for (const owner of [0, 1, 2]) {
        const versions = versionsUpTo(this.#partition(table.tableId, owner), upTo);
        const expected = { table, owner, versions, expiry: expiryOf(store, table, claims) };
        const found =
          historyDifference(store, { ...expected, ackedSeq }) ??
          rowsDifference(store, { ...expected, upTo: visibleSeq }) ??
          rowsDifference(store, { ...expected, upTo: middleOf(versions) });
        if (found !== undefined) return `${found} (table ${table.tableId}, owner ${owner})`;
      }
    }
    return undefined;
  }

  /**
   * Lowers a seq that lies within a commit, of which the log has the first parts and not the last.
   */
  #wholeCommitsUpTo(seq: number): number {
    let upTo = seq;
    for (const { versions } of this.#partitions.values()) {
      for (const version of versions) {
        if (version.commitSeq > seq && version.seq <= upTo) upTo = version.seq - 1;
      }
    }
    return upTo;
  }

  #partition(tableId: number, owner: number): Partition {
    const name = `${tableId} ${owner}`;
    let partition = this.#partitions.get(name);
    if (partition === undefined) {
      partition = { tableId, owner, versions: [] };
      this.#partitions.set(name, partition);
    }
    return partition;
  }
}

/** The versions of a partition as they are when nothing above a seq ever was. */
function versionsUpTo({ versions }: Partition, upTo: number): Version[] {
  const kept: Version[] = [];
  for (const version of versions) {
    if (version.commitSeq > upTo) continue;
    const replacedBy = version.replacedBy <= upTo ? version.replacedBy : Infinity;
    kept.push({ ...version, replacedBy });
  }
  return kept;
}

interface Expected {
  readonly table: TableDefinition;
  readonly owner: number;
  readonly versions: readonly Version[];
  readonly expiry: Expiry;
}

/** Up to where row versions must be gone, and up to where they may be; both 0 without expiry. */
interface Expiry {
  readonly certainSeq: number;
  readonly possibleSeq: number;
}

/** Ids never go back, so the newest one tells how late it has been at least. */
function expiryOf(store: LocalStore, { ttlMs }: TableDefinition, claims: Claims): Expiry {
  if (ttlMs === undefined) return { certainSeq: 0, possibleSeq: 0 };
  const upTo = (nowMs: number): number => seqFromUnixMs(nowMs - ttlMs + 1) - 1;
  return {
    certainSeq: upTo(Math.max(claims.nowMs, unixMsFromSeq(store.visibleSeq))),
    possibleSeq: upTo(Math.max(claims.latestMs, unixMsFromSeq(store.issueSeq()))),
  };
}

/** Every version is there as it was written, and no other. */
function historyDifference(
  store: LocalStore,
  { table, owner, versions, expiry, ackedSeq }: Expected & { ackedSeq: number },
): string | undefined {
  const found = new Map(
    readChanges(store, table, { owner, batchRows: 1000 }).map((change) => [change.seq, change]),
  );
  for (const { seq, commitSeq, prev, isDeleted, row } of versions) {
    const change = found.get(seq);
    if (change === undefined) {
      if (seq <= expiry.possibleSeq) continue;
      return `${commitSeq <= ackedSeq ? "lost" : "torn"}: version ${seq}`;
    }
    found.delete(seq);
    if (seq <= expiry.certainSeq) return `expired: version ${seq} is there`;
    // An insert may have found a tombstone expired as well.
    const isPrev = change.prev === prev || (table.ttlMs !== undefined && change.prev === 0);
    const isSame = change.commitSeq === commitSeq && isPrev && change.isDeleted === isDeleted;
    if (!isSame || !isRow(change.row, { row, table })) return `invented: version ${seq} is altered`;
  }
  for (const seq of found.keys()) return `invented: version ${seq}`;
  return undefined;
}

/** The newest version of each key, tombstones too, and nothing that was replaced. */
function rowsDifference(
  store: LocalStore,
  { table, owner, versions, expiry, upTo }: Expected & { upTo: number },
): string | undefined {
  const scan = store.scan(table.tableId, {
    owner,
    upTo: upTo as Seq,
    after: 0 as Seq,
    columnIds: [-1],
    withTombstones: true,
    batchRows: 1000,
  });
  const seqs: Value[] = [];
  for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
    const [column] = batch.columns;
    if (column !== undefined) seqs.push(...valuesOf(column));
  }
  scan.close();
  const isThere = new Set(seqs);
  const expected = versions.filter(
    ({ seq, replacedBy }) =>
      seq <= upTo && replacedBy > upTo && (seq > expiry.possibleSeq || isThere.has(seq)),
  );
  const keys = new Set(expected.map(({ key }) => key));
  if (keys.size !== expected.length) return `altered: at ${upTo} a key has two rows`;
  for (const [index, { seq }] of expected.entries()) {
    if (seqs[index] !== seq) return `altered: at ${upTo} row ${index} is not ${seq}`;
  }
  return seqs.length === expected.length ? undefined : `altered: at ${upTo} a row came back`;
}

function isRow(found: Row, { row, table }: { row: Row; table: TableDefinition }): boolean {
  return table.columns.every(
    ({ missing }, index) => found[index] === (index < row.length ? row[index] : missing),
  );
}

function middleOf(versions: readonly Version[]): number {
  return versions[versions.length >> 1]?.commitSeq ?? 0;
}
