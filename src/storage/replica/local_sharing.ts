/**
 * Shares the tables of a local store with readers in other threads, and pins the files that these
 * readers use.
 */
import type { SeqGenerator } from "../../base/seq.ts";
import type { SeqEra, SeqTimes } from "../../base/seq_times.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { ShareBounds, TableShares } from "../contract/shared_tables.ts";
import type { SharingStore } from "../contract/store.ts";
import type { StoredTable } from "../table/table.ts";
import { historyFor, KnownTables } from "./table_sharing.ts";

export interface LocalSharingParts {
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly files: { segmentPath(entry: SegmentEntry): string };
  readonly seqs: Pick<SeqGenerator, "agedSeq">;
  readonly times: Pick<SeqTimes, "eras">;
}

export class LocalSharing implements SharingStore<KnownTables> {
  readonly #parts: LocalSharingParts;

  constructor(parts: LocalSharingParts) {
    this.#parts = parts;
  }

  get seqEras(): readonly SeqEra[] {
    return this.#parts.times.eras;
  }

  newSharing(): KnownTables {
    return new KnownTables();
  }

  share(known: KnownTables, tableIds: readonly number[], bounds: ShareBounds): TableShares {
    const { files, seqs, tables } = this.#parts;
    // A table dropped in the meantime is not shared. The reader then reports that it no longer
    // exists.
    const found = tableIds.flatMap((tableId) => tables.get(tableId)?.requireAvailable() ?? []);
    const segments = found.flatMap((table) => table.segments);
    // Damage must be detected before the store records which data the reader has.
    for (const segment of segments) if (!segment.entry.quarantined) segment.requireDeletions();
    for (const table of found) segments.push(...historyFor(table, bounds));
    const shared = found.map((table) =>
      known.share(table, {
        ...bounds,
        expiredSeqOf: (each) => each.expiredSeq(seqs),
        pathOf: (entry) => files.segmentPath(entry),
      }),
    );
    for (const segment of segments) segment.pin();
    return {
      tables: shared,
      noteDamage(error) {
        for (const segment of segments) segment.noteIfDamaged(error);
      },
      release() {
        for (const segment of segments.splice(0)) segment.unpin();
      },
    };
  }
}
