/**
 * Builds a new index for existing rows while other statements write.
 *
 *     building   flushes, merges and memtables maintain the index from now on; a job writes the
 *                index file of each older segment
 *     checking   new duplicates are refused; the builder reads all rows once in index order, and
 *                a duplicate among them fails the build
 *     ready      the caller marks the index as ready in the definition
 *
 * The files are published one segment at a time. An interrupted build resumes with the segments
 * that have no file yet.
 */
import { asOneChange } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import { shownKey } from "../commit/conflicts.ts";
import type { Job } from "../contract/job_list.ts";
import { SHARED_OWNER } from "../contract/table_definition.ts";
import { findDuplicate } from "../read/index_scan.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { memIndexOf, refusesRows, type TableIndex } from "../table/table_index.ts";
import { ownersOf } from "../table/table_stats.ts";
import { PendingSegments, type SegmentTools } from "./pending_segments.ts";

/** The number of memtable rows added to an index in one step. */
const MEMORY_ROWS_PER_STEP = 2048;

/**
 * The share of a unique index's build that remains once all its files have been written: checking
 * for duplicate keys.
 */
const CHECK_SHARE = 0.5;

export type IndexBuildTools = Omit<SegmentTools, "isCancelled">;

export interface IndexBuild {
  readonly table: StoredTable;
  readonly indexId: number;
  readonly job: Job;
  readonly isClosing: () => boolean;
}

/**
 * Builds the missing files of an index and marks the index as complete. Returns false if the build
 * was cancelled or the index no longer exists.
 *
 * @throws {DatabaseError} DATA_DAMAGED if a segment is quarantined. @throws {DiskError}
 */
export async function buildIndex(build: IndexBuild, given: IndexBuildTools): Promise<boolean> {
  const { job, table } = build;
  const tools = { ...given, isCancelled: () => isCancelled(build) };
  const pause = pauser(tools.clock);
  for (;;) {
    const index = indexOf(build);
    if (index === undefined || tools.isCancelled()) return false;
    const todo = table.segments.filter((segment) => !hasFile(segment, index));
    const [segment] = todo;
    if (segment === undefined) break;
    segment.requireReadable();
    const done = table.segments.length - todo.length;
    const share = refusesRows(index.stored) ? CHECK_SHARE : 1;
    job.advance(
      (share * done) / table.segments.length,
      `${done} of ${table.segments.length} segments`,
    );
    if (!(await makeFile({ table, segment, index, tools }))) return false;
  }
  const index = indexOf(build);
  if (index === undefined || !refusesRows(index.stored)) return index !== undefined;
  for (const memtable of table.memtables()) {
    while (!memIndexOf(memtable, index).catchUpSome(MEMORY_ROWS_PER_STEP)) await pause();
    if (tools.isCancelled()) return false;
  }
  return true;
}

/**
 * Checks that no two live rows have the same key in a unique index, up to the seq from which new
 * duplicates are refused. Returns false if the check was cancelled or the index no longer exists.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, EXCLUSION_VIOLATION
 */
export async function checkIndex(
  build: IndexBuild & { readonly upTo: () => number; readonly expiredSeq: number },
  { clock }: Pick<IndexBuildTools, "clock">,
): Promise<boolean> {
  const { expiredSeq, job, table, upTo } = build;
  const pause = pauser(clock);
  const owners = ownersOf(table);
  for (const [at, owner] of owners.entries()) {
    const index = indexOf(build);
    if (index === undefined || isCancelled(build)) return false;
    const steps = findDuplicate(table, index, { owner, upTo: upTo(), after: expiredSeq });
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done === true) {
        if (step.value !== undefined) throw duplicate(table, index, { owner, key: step.value });
        break;
      }
      job.advance(
        CHECK_SHARE + ((1 - CHECK_SHARE) * (at + step.value)) / owners.length,
        `checked the rows of ${at} out of ${owners.length} owners`,
      );
      await pause();
      if (isCancelled(build)) {
        steps.return(undefined);
        return false;
      }
    }
  }
  return true;
}

/**
 * Creates the error for a duplicate key or an overlapping range. The message does not show keys of
 * a USER table, because the check also covers other users' rows.
 */
function duplicate(
  { definition }: StoredTable,
  { order, stored }: TableIndex,
  { key, owner }: { readonly key: Parameters<typeof shownKey>[1]; readonly owner: number },
): DatabaseError {
  if (stored.isExclusion === true) {
    const shown = owner === SHARED_OWNER ? shownKey(order.columns, key) : "one of a user's rows";
    return new DatabaseError(
      "EXCLUSION_VIOLATION",
      `Cannot create exclusion constraint "${stored.name}" on ${definition.name}: ${shown} ` +
        "overlaps another row",
      { hint: "change or delete one of the two rows" },
    );
  }
  const found =
    owner === SHARED_OWNER
      ? `several rows have ${shownKey(order.columns, key)}`
      : "a user has several rows with the same key";
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot create unique index "${stored.name}" on ${definition.name}: ${found}`,
    { hint: "change or delete these rows, except for one of them" },
  );
}

interface FileParts {
  readonly table: StoredTable;
  readonly segment: OpenSegment;
  readonly index: TableIndex;
  readonly tools: SegmentTools;
}

/** Writes the index file for one segment. Returns false if the work was cancelled. */
async function makeFile({ index, segment, table, tools }: FileParts): Promise<boolean> {
  const { entry } = segment;
  const { indexId } = index.stored;
  tools.files.requireThere(entry.home, [segment]);
  const pending = new PendingSegments(tools, { tableId: table.tableId, home: entry.home });
  segment.pin();
  try {
    const [output] = pending.indexOutputs(entry.segmentId, [index]);
    if (output === undefined) return false;
    const source = { path: tools.files.segmentPath(entry), entry };
    const isWritten = await tools.segmentWork.index({ source, output }, () => tools.isCancelled());
    if (!isWritten) return false;
    await pending.syncIndexes([output]);
    return await table.publishing.run(async () => {
      // A merge has replaced the segment and has written the index file of the merged segment.
      if (segment.isDropped) return true;
      if (tools.isCancelled()) return false;
      await pending.moveIntoPlace(table.allSegments);
      if (tools.isCancelled()) return false;
      asOneChange(() => {
        const indexIds = [...(segment.entry.indexIds ?? []), indexId];
        pending.publish({ changeSegments: [{ ...segment.listedEntry, indexIds }] });
        segment.entry = { ...segment.entry, indexIds };
        segment.closeIndex(indexId);
      });
      return true;
    });
  } catch (error) {
    segment.noteIfDamaged(error);
    throw error;
  } finally {
    pending.discard();
    segment.unpin();
  }
}

/**
 * Removes the files of indexes that are no longer defined, and their entries in the manifest. If
 * the manifest entry of a segment cannot be changed now, its index files stay until the segment is
 * removed.
 */
export function removeIndexFiles(
  table: StoredTable,
  { files, manifest }: Pick<SegmentTools, "files" | "manifest">,
): void {
  const defined = new Set(table.indexes.map(({ stored }) => stored.indexId));
  for (const segment of table.segments) {
    const gone = segment.entry.indexIds?.filter((id) => !defined.has(id)) ?? [];
    if (gone.length === 0) continue;
    const before = segment.entry;
    const kept = before.indexIds?.filter((id) => defined.has(id)) ?? [];
    const changed = { ...segment.listedEntry, indexIds: kept };
    asOneChange(() => {
      manifest.publish({ changeSegments: [changed] });
      segment.entry = { ...before, indexIds: kept };
    });
    for (const id of gone) {
      segment.closeIndex(id);
      files.removeFile(files.indexPath(before, id));
    }
  }
}

function hasFile({ entry }: OpenSegment, { stored }: TableIndex): boolean {
  return entry.indexIds?.includes(stored.indexId) === true;
}

function indexOf({ indexId, table }: IndexBuild): TableIndex | undefined {
  return table.indexes.find(({ stored }) => stored.indexId === indexId);
}

function isCancelled({ isClosing, job, table }: IndexBuild): boolean {
  return isClosing() || table.isDropped || job.isCancelled;
}
