/** Tests how system errors are explained to someone at a terminal. */
import { expect, test } from "bun:test";
import { textWithHint } from "../../src/base/command_output.ts";
import { reasonOfCode, unreadableText } from "../../src/base/disk_reasons.ts";
import {
  CorruptionError,
  DatabaseError,
  DiskError,
  UnreadableError,
} from "../../src/base/errors.ts";

test("textWithHint explains common system errors", () => {
  const text = (code: string): string => textWithHint(new DiskError(code, "/data/LOCK", "lock"));
  expect(text("EROFS")).toBe(
    "Cannot lock /data/LOCK: EROFS; the file system is read-only; mount it as writable, or use a different one",
  );
  for (const code of ["EACCES", "EIO", "EMFILE", "ENOENT", "ENOSPC", "ENOTDIR"]) {
    expect(text(code)).toBe(`Cannot lock /data/LOCK: ${code}; ${reasonOfCode(code)}`);
  }
  for (const code of ["EXDEV", "toString"]) {
    expect(text(code)).toBe(`Cannot lock /data/LOCK: ${code}`);
  }
  expect(textWithHint(new DatabaseError("DISK_FULL", "Cannot write", { hint: "make room" }))).toBe(
    "Cannot write; make room",
  );
});

test("textWithHint names the commands for damaged data by the name under which the program was started", () => {
  const damage = new CorruptionError("/data/wal/0000000001.wal", 96, "its checksum does not match");
  const message = "Cannot read /data/wal/0000000001.wal at byte 96: its checksum does not match";
  expect(textWithHint(damage)).toBe(
    `${message}; tidemark verify lists the damage, and tidemark repair shows what can be repaired`,
  );
  expect(textWithHint(damage, "npm start --")).toBe(
    `${message}; npm start -- verify lists the damage, and npm start -- repair shows what can be repaired`,
  );
  expect(textWithHint(new UnreadableError("/data/x", "EACCES"))).toBe(
    `Cannot read /data/x at byte 0: the disk reports EACCES; ${reasonOfCode("EACCES")}`,
  );
});

test("unreadableText completes a sentence about a file, with the reason if it is known", () => {
  expect(unreadableText("ENOENT")).toBe(
    "cannot be read (ENOENT): there is no such file or directory",
  );
  expect(unreadableText("EXDEV")).toBe("cannot be read (EXDEV)");
});
