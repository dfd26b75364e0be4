/**
 * Keeps the ledger of a sequence of operations: the changes that were passed to the store, as
 * plain lists of row versions. The ledger also determines how many of these changes are in a store
 * opened after a crash.
 *
 * In a table with a time to live, rows that may have expired may be present or absent, rows that
 * must have expired must be gone, and all other rows follow the rules of every table.
 */
import { type Seq, seqFromUnixMs, unixMsFromSeq } from "../../../src/base/seq.ts";
import {
  type Commit,
  type LocalStore,
  SEQ_COLUMN_ID,
  type TableDefinition,
  type TableWrite,
  type TermQuery,
} from "../../../src/storage/mod.ts";
import { type Row, type Value, valuesOf } from "../../../src/types/mod.ts";
import { readChanges, readRows } from "../../support/store_fixture.ts";

interface Version {
  readonly seq: number;
  readonly commitSeq: number;
  readonly prev: number;
  /** The key of the row or, in a table without a key, its seq. */
  readonly key: Value;
  readonly isDeleted: boolean;
  readonly row: Row;
  /** The seq of the next version with the same key; Infinity for the newest version. */
  replacedBy: number;
}

interface Partition {
  readonly tableId: number;
  readonly owner: number;
  versions: Version[];
}

/**
 * The bounds on the state after a crash: all commits up to certain seqs must be present, and
 * commits that were never applied must be absent.
 */
export interface Claims {
  readonly ackedSeq: number;
  readonly appliedSeq: number;
  /** The latest time that any clock has shown, and the time that the current clock shows. */
  readonly latestMs: number;
  readonly nowMs: number;
}

export class Ledger {
  readonly #partitions = new Map<string, Partition>();

  /**
   * Records a batch. Batches must be recorded in the order in which they were applied. The seqs of
   * a batch are the seqs of its rows.
   */
  note(writes: readonly TableWrite[], { lastSeq, seqs }: Commit, isKeyed: boolean): void {
    let index = 0;
    for (const { tableId, owner, operation, rows } of writes) {
      const { versions } = this.#partition(tableId, owner);
      for (const row of rows) {
        const seq = seqs?.[index] ?? 0;
        index += 1;
        const key = isKeyed ? (row[0] ?? null) : seq;
        const found = versions.findLast((version) => version.key === key);
        // For an insert, the key of an expired row counts as free.
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

  /** Lists the rows that are currently live. */
  live(tableId: number, owner: number): Row[] {
    return this.#partition(tableId, owner)
      .versions.filter(({ isDeleted, replacedBy }) => !isDeleted && replacedBy === Infinity)
      .map(({ row }) => row);
  }

  /** Removes a commit that was rolled back. */
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

  /** Removes the commits above a seq, because a crash has undone them. */
  cutAbove(seq: number): void {
    for (const partition of this.#partitions.values()) {
      partition.versions = partition.versions.filter(({ commitSeq }) => commitSeq <= seq);
      for (const version of partition.versions) {
        if (version.replacedBy > seq) version.replacedBy = Infinity;
      }
    }
  }

  /**
   * Returns the seq up to which a store should contain every commit. If the newest commit was not
   * acknowledged, only its last part may be lost: the log then contains its seqs, but the whole
   * commit counts as absent.
   */
  reach(
    store: LocalStore,
    definitions: readonly TableDefinition[],
    { ackedSeq, appliedSeq }: Claims,
  ): number {
    // Parts of a rolled-back commit may have higher seqs, but such seqs prove nothing.
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

  /**
   * Returns the first difference between a store and its expected contents; undefined if there is
   * none.
   */
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
          rowsDifference(store, { ...expected, upTo: middleOf(versions) }) ??
          indexDifference(store, table, owner);
        if (found !== undefined) return `${found} (table ${table.tableId}, owner ${owner})`;
      }
    }
    return undefined;
  }

  /**
   * Lowers a seq that falls within a commit to a seq before that commit, because the last part of
   * the commit is missing from the log.
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

/** Returns a partition's versions as if no version above a seq had been written. */
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

/**
 * The bounds on expiry: versions up to `certainSeq` must be gone, and versions up to `possibleSeq`
 * may be gone. Both are 0 if rows do not expire.
 */
interface Expiry {
  readonly certainSeq: number;
  readonly possibleSeq: number;
}

/** Ids never decrease, so the newest id gives a lower bound on the time. */
function expiryOf(store: LocalStore, { ttlMs }: TableDefinition, claims: Claims): Expiry {
  if (ttlMs === undefined) return { certainSeq: 0, possibleSeq: 0 };
  const upTo = (nowMs: number): number => seqFromUnixMs(nowMs - ttlMs + 1) - 1;
  return {
    certainSeq: upTo(Math.max(claims.nowMs, unixMsFromSeq(store.visibleSeq))),
    possibleSeq: upTo(Math.max(claims.latestMs, unixMsFromSeq(store.issueSeq()))),
  };
}

/** Checks that each index finds the same rows as a scan. */
function indexDifference(
  store: LocalStore,
  table: TableDefinition,
  owner: number,
): string | undefined {
  const { visibleSeq: upTo } = store;
  const scanned = readRows(store, table, { owner, upTo }).map(([seq]) => Number(seq));
  for (const { expressions, indexId } of table.indexes ?? []) {
    // Every row has at least one term, because its key is a number, and each number has trigrams.
    const isInverted = expressions?.some(({ terms }) => terms !== undefined) === true;
    const read = { owner, upTo, columnIds: [SEQ_COLUMN_ID] };
    const scan = isInverted
      ? store.scanChosen(table.tableId, { ...read, choice: { kind: "terms", indexId, query: ANY } })
      : store.scanIndex(table.tableId, { ...read, indexId, spans: [{}], isDescending: false });
    if (scan === undefined) return `index ${indexId} cannot be read`;
    const found: number[] = [];
    for (let batch = scan.next(100); batch !== undefined; batch = scan.next(100)) {
      for (const column of batch.columns) found.push(...valuesOf(column).map(Number));
    }
    scan.close();
    const isSame = found.toSorted((a, b) => a - b).join() === scanned.join();
    if (!isSame) return `index ${indexId} finds ${found.length} rows, a scan ${scanned.length}`;
  }
  return undefined;
}

/** A query that finds every row with at least one term. */
const ANY: TermQuery = { kind: "term", term: "", isPrefix: true };

/**
 * Checks that every version is present as it was written, and that there are no other versions.
 */
function historyDifference(
  store: LocalStore,
  { table, owner, versions, expiry, ackedSeq }: Expected & { ackedSeq: number },
): string | undefined {
  // The changes include tombstones that were moved to history before their keys were written
  // again.
  const changes = readChanges(store, table, { owner, batchRows: 1000, prevsAfter: 0 });
  const found = new Map(changes.map((change) => [change.seq, change]));
  for (const { seq, commitSeq, prev, isDeleted, row } of versions) {
    const change = found.get(seq);
    if (change === undefined) {
      if (seq <= expiry.possibleSeq) continue;
      return `${commitSeq <= ackedSeq ? "lost" : "torn"}: version ${seq}`;
    }
    found.delete(seq);
    if (seq <= expiry.certainSeq) return `expired: version ${seq} is there`;
    // An insert may also have found an expired tombstone.
    const isPrev = change.prev === prev || (table.ttlMs !== undefined && change.prev === 0);
    const isSame = change.commitSeq === commitSeq && isPrev && change.isDeleted === isDeleted;
    if (!isSame || !isRow(change.row, { row, table })) return `invented: version ${seq} is altered`;
  }
  for (const seq of found.keys()) return `invented: version ${seq}`;
  return undefined;
}

/**
 * Checks that the store has the newest version of each key, including tombstones, and no version
 * that was replaced.
 */
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
