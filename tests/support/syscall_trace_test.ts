/**
 * Verifies that the check of system call traces finds each kind of wrong order, so that it can be
 * trusted.
 */
import { expect, test } from "bun:test";
import { orderFaults, parseTrace } from "./syscall_trace.ts";

const WRITE = '10 pwrite64(5</d/wal/1.wal>, "..m1..", 6, 0) = 6';
const SYNC = "11 fdatasync(5</d/wal/1.wal>) = 0";
const SYNC_BEGINS = "11 fdatasync(5</d/wal/1.wal> <unfinished ...>";
const SYNC_ENDS = "11 <... fdatasync resumed>) = 0";
const OPEN = '10 openat(AT_FDCWD</>, "/d/wal/1.wal", O_RDWR|O_DSYNC|O_CLOEXEC) = 5</d/wal/1.wal>';
const WRITE_BEGINS = '11 pwrite64(5</d/wal/1.wal>, "..m1..", 6, 0 <unfinished ...>';
const WRITE_ENDS = "11 <... pwrite64 resumed>) = 6";
const ANSWER = '10 sendto(7<socket:[99]>, "HTTP m1", 7, MSG_NOSIGNAL, NULL, 0) = 7';

function faultsOf(...lines: string[]): string[] {
  return orderFaults(parseTrace(lines.join("\n")), ["m1"], (path) => path.endsWith(".wal"));
}

test("orderFaults accepts a write, then a sync, then the response, even with calls of other threads in between", () => {
  expect(faultsOf(WRITE, SYNC, ANSWER)).toEqual([]);
  expect(faultsOf(WRITE, SYNC_BEGINS, '12 read(3</x>, "", 1) = 1', SYNC_ENDS, ANSWER)).toEqual([]);
});

test("orderFaults accepts a write through a descriptor that syncs, then the response", () => {
  expect(faultsOf(OPEN, WRITE, ANSWER)).toEqual([]);
  expect(faultsOf(OPEN, WRITE_BEGINS, '12 read(3</x>, "", 1) = 1', WRITE_ENDS, ANSWER)).toEqual([]);
});

test.each([
  ["an answer during a write through", [OPEN, WRITE_BEGINS, ANSWER, WRITE_ENDS], "before its sync"],
  ["a failed write through", [OPEN, WRITE.replace("= 6", "= -1 EIO (error)"), ANSWER], "sync"],
  ["a descriptor without the flag", [OPEN.replace("|O_DSYNC", ""), WRITE, ANSWER], "sync"],
  [
    "a descriptor that was opened again without the flag",
    [OPEN, OPEN.replace("|O_DSYNC", ""), WRITE, ANSWER],
    "sync",
  ],
  ["no sync", [WRITE, ANSWER], "before its sync"],
  ["a sync before the write", [SYNC, WRITE, ANSWER], "before its sync"],
  [
    "a sync that began before the write",
    [SYNC_BEGINS, WRITE, SYNC_ENDS, ANSWER],
    "before its sync",
  ],
  ["an answer during the sync", [WRITE, SYNC_BEGINS, ANSWER, SYNC_ENDS], "before its sync"],
  ["an answer before the sync", [WRITE, ANSWER, SYNC], "before its sync"],
  ["a sync of another file", [WRITE, SYNC.replace("1.wal", "2.wal"), ANSWER], "before its sync"],
  ["a failed sync", [WRITE, SYNC.replace("= 0", "= -1 EIO (Input/output error)"), ANSWER], "sync"],
  ["no write", [SYNC, ANSWER], "never written"],
  ["no answer", [WRITE, SYNC], "not answered"],
])("orderFaults finds %s", (_name, lines, wanted) => {
  expect(faultsOf(...lines)).toEqual([expect.stringContaining(wanted)]);
});
