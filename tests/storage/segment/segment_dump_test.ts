/** Tests the script that prints segment files and deletion vectors. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dumpLines } from "../../../scripts/dump_segment.ts";
import { CorruptionError } from "../../../src/base/errors.ts";
import { vectorFromValues } from "../../../src/types/mod.ts";
import { encodeSegment, type SegmentInput } from "../../support/encoded_segment.ts";
import { noDeletions } from "../../support/segment_files.ts";

const directory = mkdtempSync(join(tmpdir(), "tidemark-dump-"));
afterAll(() => rmSync(directory, { recursive: true }));

const INPUT: SegmentInput = {
  segmentId: 3,
  tableId: 7,
  keyColumnIds: [1],
  columns: [
    {
      columnId: 1,
      type: { kind: "bigint" },
      vector: vectorFromValues({ kind: "bigint" }, [5, 2n ** 60n]),
    },
    {
      columnId: 2,
      type: { kind: "text" },
      vector: vectorFromValues({ kind: "text" }, ["x".repeat(99), null]),
    },
    {
      columnId: 3,
      type: { kind: "bytes" },
      vector: vectorFromValues({ kind: "bytes" }, [new Uint8Array([10, 11]), null]),
    },
  ],
  owners: Float64Array.from([0, 0]),
  seqs: Float64Array.from([4096, 8192]),
  prevs: Float64Array.from([0, 4096]),
  commitSeqs: Float64Array.from([4096, 8193]),
  deleted: Uint8Array.from([0, 1]),
};

const segment = encodeSegment(INPUT);

test("dumpLines prints the seq that replaced each row of a history segment", () => {
  const path = join(directory, "5.seg");
  const replacingSeqs = Float64Array.from([8192, 8192]);
  writeFileSync(path, encodeSegment({ ...INPUT, isHistory: true, replacingSeqs }));
  const text = [...dumpLines(path, 2)].join("\n");
  expect(text).toContain("format 4");
  expect(text).toContain("column -5 (replaced by): ");
  expect(text).toContain("row 0: seq 4096 replaced by 8192 commit 4096 1=5");
  expect(text).toContain("row 1: seq 8192 deleted replaces 4096 replaced by 8192 commit 8193");
});

test("dumpLines prints the contents of a segment", () => {
  const path = join(directory, "3.seg");
  writeFileSync(path, segment);
  const text = [...dumpLines(path, 2)].join("\n");
  for (const part of [
    `segment 3 of table 7: ${segment.length} bytes`,
    "seqs 4096 (2026-01-01T00:00:00.001Z) to 8192",
    "column 1 (bigint): wide",
    "column 2 (text): dictionary",
    ", 1 NULL",
    "row 0: seq 4096 commit 4096 1=5",
    "row 1: seq 8192 deleted replaces 4096 commit 8193 1=1152921504606846976 2=null 3=null",
    "3=x'0a0b'",
    "every checksum holds",
  ]) {
    expect(text).toContain(part);
  }
});

test("dumpLines prints the contents of a deletion vector", () => {
  const path = join(directory, "3.1.dv");
  const vector = noDeletions({ segmentId: 3, rowCount: 9 });
  vector.replace(4, 12_288);
  vector.replace(5, 12_289);
  writeFileSync(path, vector.encode());
  expect([...dumpLines(path, 1)]).toEqual([
    "deletion vector of segment 3: 2 of 9 rows",
    "row 4: replaced by 12288 (2026-01-01T00:00:00.003Z)",
    "the checksum holds",
  ]);
});

test("dumpLines throws CorruptionError for a damaged chunk, after the preceding lines", () => {
  const path = join(directory, "4.seg");
  const damaged = segment.slice();
  damaged[64] = (damaged[64] ?? 0) ^ 1;
  writeFileSync(path, damaged);
  expect(() => [...dumpLines(path, 0)]).toThrow(CorruptionError);
});
