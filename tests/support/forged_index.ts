/** Writes index files with wrong contents but valid checksums. */
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { Disk } from "../../src/base/disk.ts";
import {
  type IndexEntries,
  indexFilePieces,
  openIndexFile,
} from "../../src/storage/segment/index_file.ts";
import type { IndexFilePlace } from "../../src/storage/segment/index_header.ts";

/**
 * Rewrites the index file of a segment with 500 rows: changes its entries, and recomputes the
 * checksums.
 */
export function forgeIndex(path: string, change: (entries: IndexEntries) => void): void {
  const [, tableId = "", name = ""] = /segments\/(\d+)\/(.*)$/.exec(path) ?? [];
  const [segmentId = "", indexId = ""] = name.split(".");
  const place = {
    tableId: Number(tableId),
    segmentId: Number(segmentId),
    indexId: Number(indexId),
    rowCount: 500,
  };
  forgeIndexAt({ disk: bunDisk, path, place }, change);
}

/** Rewrites any index file: changes its entries, and recomputes the checksums. */
export function forgeIndexAt(
  { disk, path, place }: { disk: Disk; path: string; place: IndexFilePlace },
  change: (entries: IndexEntries) => void,
): void {
  const found = openIndexFile(disk, path, place);
  const { commonBytes } = found;
  const entries = { commonBytes, prefixes: found.prefixes.slice(), rows: found.rows.slice() };
  found.close();
  change(entries);
  const file = disk.open(path, {});
  try {
    file.write(Buffer.concat([...indexFilePieces(place, entries)]), 0);
  } finally {
    file.close();
  }
}
