/**
 * What a start finds: the manifest's segments, and above each table's flushed seq the commits of
 * the log.
 *
 *     1 manifest     → segments, opened at first touch; not those of tables without a definition
 *     2 high water   → how far the log must reach at least
 *     3 log          → from the oldest file that some table still needs: memtables, keys and
 *                      replacements above the flushed seq, but not of damaged segments, which are
 *                      quarantined
 *     4 sweep        → the manifest lets go of tables without a definition; files that no entry of
 *                      it names go to lost+found/; log files from before the first one that it
 *                      names, and old names of recycled ones, are removed
 *     5 seqs         → the next one is above everything that was found
 *
 * A torn tail of the log is cut and told with its offset. A missing file, an invalid frame before a
 * valid one, or below the high water, is damage: the server refuses to start, and names file and
 * offset. So nothing is swept before the log was read.
 */
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { SEQ_ZERO, type Seq } from "../base/seq.ts";
import type { Manifest, ManifestState, SegmentEntry } from "./contract/manifest.ts";
import type { TableDefinition } from "./contract/store.ts";
import { sweepSegments } from "./data_directory.ts";
import type { DataPaths } from "./directory/file_names.ts";
import type { LocalStoreOptions } from "./local_store_options.ts";
import { onlyTableOf } from "./local_wal/format.ts";
import { type HighWaterFile, openHighWater } from "./local_wal/high_water.ts";
import { WriteReader } from "./local_wal/logged_writes.ts";
import { type LoggedCommit, missingBeginning, readWal, type WalEnd } from "./local_wal/reader.ts";
import type { Storages } from "./storages.ts";
import { LowWater } from "./table/history.ts";
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
  /** Highest seq of a row version that was found. */
  readonly visibleSeq: Seq;
  /** No seq at or below this is issued again. */
  readonly lastSeq: Seq;
}

/** @throws {CorruptionError} If the log has lost commits that were acknowledged. */
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
  let commitCount = 0;
  let replayedSeq = 0;
  const replay = new Replay(tables, replayedBytesMax);
  const firstFile = state.firstLogFile ?? 0;
  const end = readWal({ disk, paths, log, highWaterSeq, firstFile }, (commit) => {
    commitCount += 1;
    replayedSeq = commit.lastSeq;
    requireCatalogAsNew(commit, catalogSeq);
    replay.add(commit);
  });
  const missing = missingBeginning(paths, end, state.firstLogFile);
  if (missing !== undefined) throw missing;
  // What is refused above is left as it was found.
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
  const lastSeq = Math.max(visibleSeq, highWaterSeq, catalogSeq) as Seq;
  if (commitCount > 0) {
    log.info("read the log", { commits: commitCount, files: end.files.length, visibleSeq });
  }
  return { tables, end, highWater, visibleSeq, lastSeq };
}

/** What the manifest lists of tables that have a definition. */
function stateOf(definitions: readonly TableDefinition[], listed: ManifestState): ManifestState {
  const known = new Set(definitions.map(({ tableId }) => tableId));
  return {
    ...listed,
    segments: listed.segments.filter(({ tableId }) => known.has(tableId)),
    tables: listed.tables.filter(({ tableId }) => known.has(tableId)),
  };
}

/** Has the manifest let go of what is not kept. */
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
  log.warn("let go of tables that have no definition", { count: tableIds.size });
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
    const segments = (entries.get(tableId) ?? [])
      .toSorted((left, right) => left.minSeq - right.minSeq)
      .map((entry) => new OpenSegment(entry, files));
    const progress = {
      flushedSeq: known?.flushedSeq ?? SEQ_ZERO,
      lowWater: new LowWater(known?.lowWaterSeq, known?.ownerLowWaters),
      lastFlushedAtMs: known?.lastFlushedAtMs === 0 ? undefined : known?.lastFlushedAtMs,
    };
    tables.set(tableId, new StoredTable(definition, { segments, progress }));
  }
  return tables;
}

/** The catalog is never behind the log, but when somebody put an older one in its place. */
function requireCatalogAsNew({ frames, lastSeq }: LoggedCommit, catalogSeq: Seq): void {
  for (const { catalogSeq: writtenUnder, path } of frames) {
    if (writtenUnder <= catalogSeq) continue;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot replay ${path}: commit ${lastSeq} was written under definition ${writtenUnder}, and the catalog ends at ${catalogSeq}: it is missing, or older than the log`,
      { hint: "put back the catalog that belongs to this log" },
    );
  }
}

/** Puts the commits of the log back into the tables that need them. */
class Replay {
  readonly #writes = new WriteReader();
  readonly #tables = new Map<number, TableReplay>();

  constructor(tables: ReadonlyMap<number, StoredTable>, memtableBytesMax: number | undefined) {
    for (const [tableId, table] of tables) {
      this.#tables.set(tableId, new TableReplay(table, memtableBytesMax));
    }
  }

  add({ frames, lastSeq }: LoggedCommit): void {
    // A part is worth nothing without the parts before it, so the file of the first one counts.
    const commit = { commitSeq: lastSeq, firstLogFile: frames[0]?.fileNumber };
    for (const frame of frames) {
      // Of a bulk load the log still has much that is in segments: its rows are not even walked
      // over.
      const only = onlyTableOf(frame);
      if (only !== undefined && this.#flushedSeqOf(only) >= frame.lastSeq) continue;
      this.#writes.read(frame, (head) => {
        const table = this.#tables.get(head.tableId);
        table?.begin(head, commit);
        return table;
      });
    }
  }

  /** A table that the catalog does not know was dropped. */
  #flushedSeqOf(tableId: number): number {
    return this.#tables.get(tableId)?.skipsUpTo ?? Infinity;
  }
}
