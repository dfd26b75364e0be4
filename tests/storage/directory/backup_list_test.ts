/** Tests the description of a file that differs from its entry in a backup's file list. */
import { expect, test } from "bun:test";
import { listedFault } from "../../../src/storage/files.ts";

test("listedFault compares the length first, then the checksum if it is known", () => {
  const file = { path: "wal/1.wal", bytes: 10, crc: 7 };
  const said = (found: Parameters<typeof listedFault>[2]): string | undefined =>
    listedFault(file, "b/wal/1.wal", found)?.message;
  expect(said({ bytes: 10 })).toBeUndefined();
  expect(said({ bytes: 10, crc: 7 })).toBeUndefined();
  expect([
    said({ bytes: undefined }),
    said({ bytes: 9 }),
    said({ bytes: 11, crc: 7 }),
    said({ bytes: 10, crc: 8 }),
  ]).toEqual([
    "Cannot read b/wal/1.wal at byte 0: the file is missing, although backup.json lists it",
    "Cannot read b/wal/1.wal at byte 9: the file has 9 bytes instead of 10",
    "Cannot read b/wal/1.wal at byte 10: the file has 11 bytes instead of 10",
    "Cannot read b/wal/1.wal at byte 0: the file does not match its checksum in backup.json",
  ]);
});
