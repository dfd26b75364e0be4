/** Writes index files that are wrong, although their checksums are right. */
import { writeFileSync } from "node:fs";
import { bunDisk } from "../../src/base/bun_disk.ts";
import {
  type IndexEntries,
  indexFilePieces,
  openIndexFile,
} from "../../src/storage/segment/index_file.ts";

/**
 * Rewrites the index file of a segment with 500 rows with other entries, under right checksums.
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
  const found = openIndexFile(bunDisk, path, place);
  const { commonBytes } = found;
  const entries = { commonBytes, prefixes: found.prefixes.slice(), rows: found.rows.slice() };
  found.close();
  change(entries);
  writeFileSync(path, Buffer.concat([...indexFilePieces(place, entries)]));
}
