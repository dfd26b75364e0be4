/**
 * Verifies that the profiler attributes each sample to the function of the project that was at the
 * sampled address at the time, and that it counts exits from optimised code by cause.
 */
import { expect, test } from "bun:test";
import { exitsIn } from "../../scripts/bench/profile/exits.ts";
import { JitDump } from "../../scripts/bench/profile/jit_dump.ts";
import { samplesIn } from "../../scripts/bench/profile/samples.ts";

interface Code {
  readonly start: number;
  readonly size: number;
  readonly compiledNs: number;
  readonly name: string;
}

function dumpOf(codes: readonly Code[]): Buffer {
  const records = codes.map(({ compiledNs, name, size, start }) => {
    const record = Buffer.alloc(56 + name.length + 1);
    record.writeUInt32LE(record.length, 4);
    record.writeBigUInt64LE(BigInt(compiledNs), 8);
    record.writeBigUInt64LE(BigInt(start), 32);
    record.writeBigUInt64LE(BigInt(size), 40);
    record.write(name, 56);
    return record;
  });
  return Buffer.concat([Buffer.alloc(40), ...records]);
}

const EARLY = { start: 0x1000, size: 0x2000, compiledNs: 100, name: "JSC-DFG: early#AbCd12" };
const LATE = { start: 0x2f00, size: 0x200, compiledNs: 200, name: "JSC-FTL: #late#AbCd12" };

test("JitDump returns the newest code that was at an address at that time", () => {
  const dump = new JitDump(dumpOf([EARLY, LATE]));
  expect(dump.nameAt(0x1000, 150)).toBe("DFG: early#AbCd12");
  expect(dump.nameAt(0x2fff, 150)).toBe("DFG: early#AbCd12");
  expect(dump.nameAt(0x2fff, 250)).toBe("FTL: #late#AbCd12");
  expect(dump.nameAt(0x30ff, 250)).toBe("FTL: #late#AbCd12");
  expect(dump.nameAt(0x3100, 250)).toBeUndefined();
  expect(dump.nameAt(0x1000, 99)).toBeUndefined();
  expect(dump.nameAt(0xfff, 250)).toBeUndefined();
});

test("JitDump reads the intact part of a truncated file", () => {
  const whole = dumpOf([EARLY, LATE]);
  for (let size = 0; size < whole.length; size += 1) {
    const dump = new JitDump(whole.subarray(0, size));
    expect(dump.nameAt(0x3000, 250)).not.toBe("FTL: #late#AbCd12");
  }
});

test("samplesIn assigns each sample to the nearest function of this project on the stack", () => {
  const stubs = ["FTLThunk", "Thunk", "DFGOSRExit", "InlineCache"].map((kind, index) => {
    return {
      start: 0x9000 + 16 * index,
      size: 16,
      compiledNs: 0,
      name: `JSC-${kind}: unspecified`,
    };
  });
  const text = [
    "bun 7 0.000000150:",
    "\tffffffff81a0b2c3 tcp_sendmsg ([kernel.kallsyms])",
    ...stubs.map(({ start }) => `\t            ${start.toString(16)} [unknown] (/tmp/code)`),
    "\t            2fff [unknown] (/tmp/code)",
    "",
    "Bun Pool 1 8 0.000000250:",
    "\t          2540fb [unknown] (/opt/bun.exe)",
    "",
    "bun 7 0.000000250:",
    "\t            2fff [unknown] (/tmp/code)",
    "\t            1000 [unknown] (/tmp/code)",
    "",
  ].join("\n");
  expect([...samplesIn(text, new JitDump(dumpOf([EARLY, LATE, ...stubs])))]).toEqual([
    { threadName: "bun", threadId: 7, spot: "system", nearest: "early#AbCd12" },
    { threadName: "Bun Pool 1", threadId: 8, spot: "native", nearest: undefined },
    { threadName: "bun", threadId: 7, spot: "own", nearest: "#late#AbCd12" },
  ]);
});

test("exitsIn counts exits by function, place and reason, the most frequent first", () => {
  const line = (name: string, reason: string): string =>
    `Speculation failure in ${name}#AbCd12:[0x1->0x2, FTLFunctionCall, 384 (StrictMode)] ` +
    `@ exit #7 (bc#119, ${reason}) with executeCounter = 0.0/1.0, -1000\n    GPRs: rax:0x1\n`;
  const output = line("#two", "Overflow") + line("one", "BadType") + line("#two", "Overflow");
  expect(exitsIn(output + line("", "BadCache"))).toEqual([
    { what: "FTL: #two#AbCd12 at 119: Overflow", count: 2 },
    { what: "FTL: one#AbCd12 at 119: BadType", count: 1 },
    { what: "FTL: #AbCd12 at 119: BadCache", count: 1 },
  ]);
  expect(exitsIn("nothing of the kind")).toEqual([]);
});
