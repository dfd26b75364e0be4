/**
 * Recovers a store at startup: opens the segments listed in the manifest, and replays the logged
 * commits above each table's flushed seq.
 *
 *     1 manifest     → lists segments, which are opened on first use. Segments of tables without a
 *                      definition are left out.
 *     2 high water   → determines the seq that the log must reach at least.
 *     3 log          → is read from the oldest file that some table still needs. Rows above the
 *                      flushed seq go into memtables, key indexes and deletion vectors. A damaged
 *                      segment gets no replacements: it is quarantined.
 *     4 sweep        → The manifest drops tables without a definition. Files that no entry names
 *                      move to lost+found/. Log files before the first file that the manifest
 *                      names, and old names of recycled log files, are removed.
 *     5 seqs         → The next seq is above every seq that was found.
 *
 * A torn tail of the log is truncated, and its offset is logged. A missing file, an invalid frame
 * before a valid one, and an invalid frame below the high-water mark are damage: the server
 * refuses to start, and reports the file and the offset. Unlisted files are therefore swept only
 * after the log has been read.
 */
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { SEQ_ZERO, type Seq } from "../base/seq.ts";
import type { Manifest, ManifestState, SegmentEntry } from "./contract/manifest.ts";
import type { TableDefinition } from "./contract/table_definition.ts";
import { sweepSegments } from "./data_directory.ts";
import type { DataPaths } from "./directory/file_names.ts";
import type { LocalStoreOptions } from "./local_store_options.ts";
import { onlyTableOf } from "./local_wal/format.ts";
import { type HighWaterFile, openHighWater } from "./local_wal/high_water.ts";
import { WriteReader } from "./local_wal/logged_writes.ts";
import { type LoggedCommit, missingBeginning, readWal, type WalEnd } from "./local_wal/reader.ts";
import type { Storages } from "./storages.ts";
import { LowWatermark } from "./table/history.ts";
import { OpenSegment, type SegmentFiles } from "./table/open_segment.ts";
import { StoredTable } from "./table/table.ts";
import { TableReplay } from "./table_replay.ts";

export interface RecoveryOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly log: Log;
  readonly manifest: Manifest;
  readonly definitions: readonly TableDefinition[];
  readonly files: SegmentFiles;
  readonly storages: Storages;
  readonly options: Pick<LocalStoreOptions, "replayedBytesMax">;
}

export interface Recovered {
  readonly tables: Map<number, StoredTable>;
  readonly end: WalEnd;
  readonly highWater: HighWaterFile;
  /** The highest seq of any recovered row version. */
  readonly visibleSeq: Seq;
  /** The highest seq that may have been issued. New seqs are above it. */
  readonly lastSeq: Seq;
}

/** Recovers a store. @throws {CorruptionError} If the log has lost acknowledged commits. */
export function recover(options: RecoveryOptions): Recovered {
  const { disk, paths, log, manifest, definitions, files, storages } = options;
  const { replayedBytesMax } = options.options;
  const listed = manifest.load();
  const state = stateOf(definitions, listed);
  const tables = tablesOf(definitions, state, files);
  const noteAllFaults = (): void => {
    for (const table of tables.values()) table.noteFaults(storages);
  };
  noteAllFaults();
  storages.onFault = noteAllFaults;
  const { file: highWater, value: highWaterSeq } = openHighWater(disk, paths.highWater);
  const catalogSeq = manifest.highestSeq();
  const undone = manifest.undoneSeqs();
  let commitCount = 0;
  let replayedSeq = 0;
  const replay = new Replay(tables, replayedBytesMax);
  const firstFile = state.firstLogFile ?? 0;
  const end = readWal({ disk, paths, log, highWaterSeq, firstFile }, (commit) => {
    commitCount += 1;
    replayedSeq = commit.lastSeq;
    if (isUndone(commit, undone)) return;
    requireCatalogAsNew(commit, catalogSeq);
    replay.add(commit);
  });
  const missing = missingBeginning(paths, end, state.firstLogFile);
  if (missing !== undefined) throw missing;
  // Files are changed only after all checks, because a refused directory must stay unchanged.
  letGo(manifest, { listed, kept: state, log });
  for (const { path, now } of end.staleNames) {
    log.warn("removed the old name of a recycled log file", { path, now });
    disk.remove(path);
  }
  for (const path of end.outdated) disk.remove(path);
  sweepSegments(disk, paths, { entries: state.segments, log });
  storages.sweep(paths, state.segments);
  let flushedSeq = 0;
  for (const { progress } of tables.values())
    flushedSeq = Math.max(flushedSeq, progress.flushedSeq);
  const visibleSeq = Math.max(replayedSeq, flushedSeq, end.lastSeq, SEQ_ZERO) as Seq;
  const lastSeq = Math.max(visibleSeq, highWaterSeq, catalogSeq, ...undone) as Seq;
  if (commitCount > 0) {
    log.info("read the log", { commits: commitCount, files: end.files.length, visibleSeq });
  }
  return { tables, end, highWater, visibleSeq, lastSeq };
}

/** Whether a commit was rolled back along with the definitions under which it was written. */
function isUndone({ frames }: LoggedCommit, undoneSeqs: ReadonlySet<number>): boolean {
  return undoneSeqs.size > 0 && frames.some(({ catalogSeq }) => undoneSeqs.has(catalogSeq));
}

/** Returns the manifest's entries for tables that have a definition. */
function stateOf(definitions: readonly TableDefinition[], listed: ManifestState): ManifestState {
  const known = new Set(definitions.map(({ tableId }) => tableId));
  return {
    ...listed,
    segments: listed.segments.filter(({ tableId }) => known.has(tableId)),
    tables: listed.tables.filter(({ tableId }) => known.has(tableId)),
  };
}

/** Removes from the manifest the tables that no longer have a definition. */
function letGo(
  manifest: Manifest,
  { listed, kept, log }: { listed: ManifestState; kept: ManifestState; log: Log },
): void {
  const segments = new Set(listed.segments).difference(new Set(kept.segments));
  const tables = new Set(listed.tables).difference(new Set(kept.tables));
  if (segments.size === 0 && tables.size === 0) return;
  const tableIds = new Set([...segments, ...tables].map(({ tableId }) => tableId));
  manifest.publish({
    removeTableIds: [...tableIds],
    removeSegmentIds: [...segments].map(({ segmentId }) => segmentId),
  });
  log.warn("removed tables without a definition from the manifest", { count: tableIds.size });
}

function tablesOf(
  definitions: readonly TableDefinition[],
  state: ManifestState,
  files: SegmentFiles,
): Map<number, StoredTable> {
  const entries = Map.groupBy(state.segments, ({ tableId }: SegmentEntry) => tableId);
  const tables = new Map<number, StoredTable>();
  for (const definition of definitions) {
    const { tableId } = definition;
    const known = state.tables.find((table) => table.tableId === tableId);
    const all = (entries.get(tableId) ?? [])
      .toSorted((left, right) => left.minSeq - right.minSeq)
      .map((entry) => new OpenSegment(entry, files));
    const segments = all.filter(({ isHistory }) => !isHistory);
    const history = all.filter(({ isHistory }) => isHistory);
    const progress = {
      flushedSeq: known?.flushedSeq ?? SEQ_ZERO,
      lowWatermark: new LowWatermark(known?.lowWaterSeq, known?.ownerLowWaters),
      lastFlushedAtMs: known?.lastFlushedAtMs === 0 ? undefined : known?.lastFlushedAtMs,
    };
    tables.set(tableId, new StoredTable(definition, { segments, history, progress }));
  }
  return tables;
}

/**
 * Checks that the catalog is at least as new as the log. It can be older only if it was replaced
 * by an older copy.
 */
function requireCatalogAsNew({ frames, lastSeq }: LoggedCommit, catalogSeq: Seq): void {
  for (const { catalogSeq: writtenUnder, path } of frames) {
    if (writtenUnder <= catalogSeq) continue;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot replay ${path}: commit ${lastSeq} was written with definition ${writtenUnder}, ` +
        `but the catalog ends at ${catalogSeq}, so the catalog is missing or older than the log`,
      { hint: "restore the catalog that belongs to this log" },
    );
  }
}

/** Replays the commits of the log into the tables that need them. */
class Replay {
  readonly #writes = new WriteReader();
  readonly #tables = new Map<number, TableReplay>();

  constructor(tables: ReadonlyMap<number, StoredTable>, memtableBytesMax: number | undefined) {
    for (const [tableId, table] of tables) {
      this.#tables.set(tableId, new TableReplay(table, memtableBytesMax));
    }
  }

  add({ frames, lastSeq }: LoggedCommit): void {
    // A part of a commit is useless without the parts before it, so the log file of the first part
    // is recorded.
    const commit = { commitSeq: lastSeq, firstLogFile: frames[0]?.fileNumber };
    for (const frame of frames) {
      // Much of a bulk load may still be in the log although it is already in segments. All rows
      // of a frame with such a load are skipped at once.
      const only = onlyTableOf(frame);
      if (only !== undefined && this.#flushedSeqOf(only) >= frame.lastSeq) continue;
      this.#writes.read(frame, (head) => {
        const table = this.#tables.get(head.tableId);
        table?.begin(head, commit);
        return table;
      });
    }
  }

  /**
   * Returns a table's flushed seq; Infinity for a dropped table, which is no longer in the
   * catalog.
   */
  #flushedSeqOf(tableId: number): number {
    return this.#tables.get(tableId)?.skipsUpTo ?? Infinity;
  }
}
