/** Tests which memory pages of the program are released and which are kept. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import {
  type MemoryRange,
  pageRelease,
  releaseProgramPages,
} from "../../src/base/program_pages.ts";
import { linuxMissing, testUnless } from "../support/requirements.ts";

const MAPS = `00400000-01a40000 r--p 00000000 fe:00 531 /app/tidemark
01a40000-0684a000 r-xp 01838000 fe:00 531                            /app/tidemark
0684a000-06abc000 rw-p 06641000 fe:00 531                            /app/tidemark
7f1a00000000-7f1a00001000 r-xp 00000000 fe:00 77                     /usr/lib/libc.so.6
7ffc0000-7ffc1000 r-xp 00000000 00:00 0                              [vdso]
`;

function released(readFile: (path: string) => Uint8Array): MemoryRange[] {
  const ranges: MemoryRange[] = [];
  const release = (range: MemoryRange): void => void ranges.push(range);
  releaseProgramPages({ disk: { readFile }, path: "/app/tidemark", release });
  return ranges;
}

test("releaseProgramPages releases program code, but neither data nor libraries", () => {
  expect(released(() => new TextEncoder().encode(MAPS))).toEqual([
    { address: 0x01a4_0000, bytes: 0x0684_a000 - 0x01a4_0000 },
  ]);
});

test("releaseProgramPages releases nothing if the system does not list its memory", () => {
  const refuse = (path: string): never => {
    throw new DiskError("ENOENT", path, "read");
  };
  expect(released(refuse)).toEqual([]);
});

testUnless(linuxMissing)("a process continues with fewer pages of its program", () => {
  const fileKib = (): number =>
    Number(/RssFile:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
  const before = fileKib();
  const release = pageRelease();
  if (release === undefined) throw new Error("Cannot test without a C library");
  releaseProgramPages({ disk: bunDisk, path: process.execPath, release });
  expect(fileKib()).toBeLessThan(before - 4096);
});
