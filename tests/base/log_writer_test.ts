/**
 * Verifies that logging resumes after its files could not be written, and that the log reports how
 * many lines are missing.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogWriter, type LogWriterOptions } from "../../src/base/log_writer.ts";
import { SEQ_EPOCH_MS } from "../../src/base/seq.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { fileMissing, testUnless } from "../support/requirements.ts";

/** Logged lines are in the file after FLUSH_MS. A failed write is retried after RETRY_MS. */
const FLUSH_MS = 200;
const RETRY_MS = 10_000;

/** A device that is always full. Not every system has this device. */
const FULL = "/dev/full";
const fullTest = testUnless(fileMissing(FULL));

let directory: string;
let path: string;
let file: string;
let clock: ManualClock;
let told: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-log-"));
  path = join(directory, "logs");
  file = join(path, "tidemark.log");
  clock = new ManualClock(SEQ_EPOCH_MS);
  told = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

function openLog(options: Partial<LogWriterOptions> = {}): LogWriter {
  return new LogWriter({
    clock,
    level: "info",
    format: "compact",
    toConsole: false,
    path,
    fileBytesMax: 1 << 20,
    filesMax: 3,
    tell: (text) => told.push(text),
    ...options,
  });
}

/** Returns the lines of a file without their times. */
function linesOf(name: string = file): string[] {
  return readFileSync(name, "utf8")
    .split("\n")
    .map((line) => line.replace(/^\S+Z /, ""));
}

test("LogWriter writes lines in order, and rotates full files", () => {
  const log = openLog({ fileBytesMax: 40 });
  for (const text of ["first", "second", "third", "fourth"]) {
    log.info(text, { of: 4 });
    clock.advance(FLUSH_MS);
  }
  expect(linesOf()).toEqual(["INFO  fourth of=4", ""]);
  expect(linesOf(`${file}.1`)).toEqual(["INFO  third of=4", ""]);
  expect(linesOf(`${file}.2`)).toEqual(["INFO  second of=4", ""]);
  expect(existsSync(`${file}.3`)).toBe(false);
  expect(told).toEqual([]);
});

test("LogWriter writes an event in the requested format", () => {
  const fields = { user: "ann", reason: "no\nsuch table", count: 3, absent: undefined };
  const written = (format: LogWriterOptions["format"]): string => {
    const log = openLog({ format, path: join(directory, format) });
    log.warn("Cannot\nread", fields);
    log.flush();
    return readFileSync(join(directory, format, "tidemark.log"), "utf8");
  };
  const time = new Date(SEQ_EPOCH_MS).toISOString();
  const margin = " ".repeat(time.length + " WARN  ".length);

  expect(written("compact")).toBe(
    `${time} WARN  Cannot read user=ann reason="no\\nsuch table" count=3\n`,
  );
  expect(written("pretty")).toBe(
    `${time} WARN  Cannot read\n${margin}user=ann\n${margin}reason="no\\nsuch table"\n${margin}count=3\n`,
  );
  expect(JSON.parse(written("json"))).toEqual({
    time,
    level: "warn",
    message: "Cannot\nread",
    user: "ann",
    reason: "no\nsuch table",
    count: 3,
  });
});

fullTest(
  "LogWriter goes on after a full disk, and says how many lines are missing since when",
  () => {
    mkdirSync(path);
    symlinkSync(FULL, file);
    const log = openLog();
    log.info("lost");
    log.info("lost too");
    clock.advance(FLUSH_MS);
    log.info("and this");
    clock.advance(FLUSH_MS);
    expect(told).toEqual([
      `2026-01-01T00:00:00.200Z Cannot write the log in ${path}: ENOSPC: no space left on device, write; lines are lost until writing succeeds again\n`,
    ]);
    rmSync(file);
    writeFileSync(file, "a line that was to");
    // No write is retried too early. After the pause, the retry happens even if no line is logged.
    clock.advance(RETRY_MS - FLUSH_MS - 1);
    expect(linesOf()).toEqual(["a line that was to"]);
    clock.advance(1);
    log.info("here again");
    clock.advance(FLUSH_MS);
    expect(linesOf()).toEqual([
      "a line that was to",
      "ERROR lines are missing here, because the log could not be written lines=3 since=2026-01-01T00:00:00.200Z",
      "INFO  here again",
      "",
    ]);
    expect(told.length).toBe(1);
    expect(clock.timerCount).toBe(0);
  },
);

fullTest("LogWriter reports each time that its files fail, and tries them again each time", () => {
  const log = openLog({ format: "json" });
  for (let round = 1; round <= 2; round += 1) {
    rmSync(file, { force: true });
    symlinkSync(FULL, file);
    log.error("lost");
    clock.advance(FLUSH_MS + 3 * RETRY_MS);
    expect(told.length).toBe(round);
    rmSync(file);
    clock.advance(RETRY_MS);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ level: "error", lines: 1 });
  }
});

test("LogWriter loses no line when its directory is removed, and creates the directory again", () => {
  const log = openLog();
  log.info("before");
  clock.advance(FLUSH_MS);
  rmSync(path, { recursive: true });
  log.info("after");
  clock.advance(FLUSH_MS);
  expect(linesOf()).toEqual(["INFO  after", ""]);
  expect(told).toEqual([]);
});

test("LogWriter starts without a directory, and writes once the directory can be created", () => {
  writeFileSync(path, "no directory");
  const log = openLog();
  expect(told.join("")).toStartWith(`2026-01-01T00:00:00.000Z Cannot write the log in ${path}: `);
  log.info("lost");
  clock.advance(FLUSH_MS);
  rmSync(path);
  clock.advance(RETRY_MS);
  expect(linesOf()).toEqual([
    "ERROR lines are missing here, because the log could not be written lines=1 since=2026-01-01T00:00:00.000Z",
    "",
  ]);
  expect(told.length).toBe(1);
});

test("LogWriter.flush tries to write the last lines at once, even after failures", () => {
  writeFileSync(path, "no directory");
  const log = openLog();
  rmSync(path);
  log.error("stopping because of a bug");
  log.flush();
  expect(linesOf().slice(1)).toEqual(["ERROR stopping because of a bug", ""]);
  expect(readdirSync(path)).toEqual(["tidemark.log"]);
});

test("LogWriter starts a new line after an incomplete line of an earlier process", () => {
  mkdirSync(path);
  writeFileSync(file, "whole\ntorn");
  const log = openLog();
  log.info("next");
  log.flush();
  expect(linesOf()).toEqual(["whole", "torn", "INFO  next", ""]);
});
