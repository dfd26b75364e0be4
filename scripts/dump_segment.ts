/**
 * Prints the contents of a segment file (.seg) or a deletion vector (.dv), and checks every byte.
 */
import { bunDisk } from "../src/base/bun_disk.ts";
import { DiskError } from "../src/base/errors.ts";
import { unixMsFromSeq } from "../src/base/seq.ts";
import { DeletionVector } from "../src/storage/deletions/deletion_vector.ts";
import { ENCODING_NAMES } from "../src/storage/segment/encodings.ts";
import { SegmentReader } from "../src/storage/segment/reader.ts";
import { typeName, type Value } from "../src/types/mod.ts";
import { countOption, readArguments } from "./support/arguments.ts";
import { printLines } from "./support/dump.ts";

/** The maximum number of characters to print of a value. Longer values are truncated. */
const VALUE_CHARS_MAX = 40;

const SYSTEM_NAMES: ReadonlyMap<number, string> = new Map([
  [-1, "seq"],
  [-2, "deleted"],
  [-3, "prev"],
  [-4, "commit gap"],
  [-5, "replaced by"],
]);

/**
 * Returns the contents of a segment file or deletion vector as lines of text, with at most
 * `rowsMax` of its rows.
 */
export function* dumpLines(path: string, rowsMax: number): Generator<string> {
  if (path.endsWith(".dv")) {
    yield* deletionLines(path, rowsMax);
    return;
  }
  const byteCount = bunDisk.sizeOf(path);
  if (byteCount === undefined) throw new DiskError("ENOENT", path, "open");
  const reader = SegmentReader.open(bunDisk, path, byteCount);
  try {
    yield* segmentLines(reader, byteCount);
    for (let row = 0; row < Math.min(rowsMax, reader.rowCount); row += 1)
      yield rowLine(reader, row);
    reader.verify();
    yield "every checksum holds";
  } finally {
    reader.close();
  }
}

function* segmentLines(reader: SegmentReader, byteCount: number): Generator<string> {
  const name = `segment ${reader.segmentId} of table ${reader.tableId}`;
  yield `${name}: ${byteCount} bytes, format ${reader.format}`;
  yield `rows ${reader.rowCount}, row groups ${reader.groupCount}, owners ${reader.ownerCount}`;
  yield `seqs ${seqText(reader.minSeq)} to ${seqText(reader.maxSeq)}`;
  yield `key columns ${reader.keyColumnIds.join(", ") || "none"}`;
  for (let group = 0; group < reader.groupCount; group += 1) {
    yield `group ${group}: rows ${reader.groupStart(group)} to ${reader.groupStart(group + 1) - 1}`;
    for (const columnId of [...SYSTEM_NAMES.keys(), ...reader.columnIds]) {
      if (columnId === -5 && !reader.isHistory) continue;
      yield chunkLine(reader, columnId, group);
    }
  }
}

function chunkLine(reader: SegmentReader, columnId: number, group: number): string {
  const entry = reader.chunkEntry(columnId, group);
  if (entry === undefined) return `  column ${columnId}: none`;
  const type = reader.columnType(columnId);
  const name = SYSTEM_NAMES.get(columnId) ?? (type === undefined ? "" : typeName(type));
  const zone = entry.min <= entry.max ? `, ${entry.min} to ${entry.max}` : "";
  const nulls = entry.nullCount === 0 ? "" : `, ${entry.nullCount} NULL`;
  const encoding = ENCODING_NAMES[entry.encoding] ?? `encoding ${entry.encoding}`;
  const unpackedBytes = reader.unpackedBytes(columnId, group);
  const packed = unpackedBytes === undefined ? "" : `, zstd of ${unpackedBytes} bytes`;
  return `  column ${columnId} (${name}): ${encoding}, ${entry.byteCount} bytes at ${entry.offset}${packed}${nulls}${zone}`;
}

function rowLine(reader: SegmentReader, row: number): string {
  const columns = reader.columnIds.map(
    (columnId) => `${columnId}=${valueText(reader.valueAt(columnId, row) ?? null)}`,
  );
  const kind = reader.isTombstone(row) ? " deleted" : "";
  const prev = reader.prevAt(row);
  const replaces = prev === 0 ? "" : ` replaces ${prev}`;
  const replaced = reader.isHistory ? ` replaced by ${reader.replacingSeqAt(row)}` : "";
  const commit = reader.commitSeqAt(row);
  return `row ${row}: seq ${reader.seqAt(row)}${kind}${replaces}${replaced} commit ${commit} ${columns.join(" ")}`;
}

function* deletionLines(path: string, rowsMax: number): Generator<string> {
  const vector = DeletionVector.decode(bunDisk.readFile(path), path);
  yield `deletion vector of segment ${vector.segmentId}: ${vector.count} of ${vector.rowCount} rows`;
  const lines: string[] = [];
  vector.visitAll((row, seq) => {
    if (lines.length < rowsMax) lines.push(`row ${row}: replaced by ${seqText(seq)}`);
  });
  yield* lines;
  yield "the checksum holds";
}

function seqText(seq: number): string {
  return `${seq} (${new Date(unixMsFromSeq(seq)).toISOString()})`;
}

function valueText(value: Value): string {
  const text =
    typeof value === "bigint"
      ? String(value)
      : value instanceof Uint8Array
        ? `x'${Buffer.from(value).toString("hex")}'`
        : (JSON.stringify(value instanceof Float32Array ? [...value] : value) ?? "NULL");
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX)}…`;
}

if (import.meta.main) {
  const { options, words } = readArguments(
    { rows: countOption("the number of rows to print", 10) },
    { form: "<file>", about: "a file that ends in .seg or .dv", countMin: 1, countMax: 1 },
  );
  process.exitCode = printLines(dumpLines(words[0] ?? "", options.rows));
}
