/** Writes inverted index files with wrong contents but valid checksums. */
import { bunDisk } from "../../src/base/bun_disk.ts";
import { openTermFile, TermFileWriter } from "../../src/storage/segment/term_file.ts";
import { TermPart, TermPartBuilder } from "../../src/storage/segment/term_part.ts";

/**
 * Returns the terms of an index over a segment with 500 rows. Each row gets the terms that
 * `termsOf` returns, whatever the row really contains.
 */
export function termPartOf(termsOf: (row: number) => readonly string[]): Uint8Array {
  const builder = new TermPartBuilder(0);
  for (let row = 0; row < 500; row += 1) builder.add(termsOf(row));
  return builder.finished().bytes;
}

/**
 * Rewrites the inverted index file of a segment with 500 rows, with valid checksums.
 *
 * @param change Changes the bytes of the only part, or returns other bytes.
 */
export function forgeTerms(path: string, change: (part: Uint8Array) => Uint8Array): void {
  const [, tableId = "", segmentId = "", indexId = ""] =
    /segments\/(\d+)\/(\d+)\.(\d+)\.idx$/.exec(path) ?? [];
  const place = {
    tableId: Number(tableId),
    segmentId: Number(segmentId),
    indexId: Number(indexId),
    rowCount: 500,
  };
  const found = openTermFile(bunDisk, path, place);
  const [part] = found.parts;
  if (part === undefined) throw new Error(`${path} has no part`);
  const changed = change(part.bytes.slice());
  found.close();
  const file = bunDisk.open(path, {});
  file.truncate(0);
  const writer = new TermFileWriter(file, place);
  for (const _ of writer.add(new TermPart(changed)));
  writer.finish();
  file.close();
}
