/**
 * Parses the output of `perf script`: samples with their stacks. Each sample is attributed to the
 * nearest function on its stack that belongs to this project.
 *
 *     bun.exe 1234 11702.115563397:
 *             ffffffff81a0b2c3 tcp_sendmsg ([kernel.kallsyms])
 *                      2540fb6 [unknown] (/…/bun.exe)
 *                 7fd2dba00912 [unknown] (/tmp/…)          ◄ compiled code
 */
import type { JitDump } from "./jit_dump.ts";

/**
 * The kind of code that was running: compiled code of this project, the runtime, or the system.
 */
export type Spot = "own" | "native" | "system";

export interface Sample {
  readonly threadName: string;
  readonly threadId: number;
  readonly spot: Spot;
  /**
   * The nearest function of this project on the stack, as "name#a1B2c3"; undefined if there is
   * none.
   */
  readonly nearest: string | undefined;
}

interface Frame {
  readonly address: number;
  readonly isSystem: boolean;
  readonly isCompiled: boolean;
}

const HEAD = /^(.+?)\s+(\d+)\s+(\d+)\.(\d{9}):/;
const FRAME = /^\s+([0-9a-f]+) .*\(([^()]*)\)$/;

/**
 * Matches the stubs that the runtime places between functions. Their time counts towards the
 * caller.
 */
const STUB = /^(?:\w*Thunk|\w*OSR(?:Exit|Entry)|InlineCache)/;

/**
 * Matches the compiler tier in front of a function name. Versions of a function from several tiers
 * count as one.
 */
const TIER = /^\w+: /;

export function* samplesIn(text: string, dump: JitDump): Generator<Sample> {
  for (const block of text.split("\n\n")) {
    const [first = "", ...lines] = block.trimStart().split("\n");
    const head = HEAD.exec(first);
    if (head === null) continue;
    const frames = lines.flatMap((line): Frame[] => {
      const [, address = "", object = ""] = FRAME.exec(line) ?? [];
      if (address === "") return [];
      const isSystem = object.startsWith("[kernel");
      const isCompiled = !isSystem && !/bun|\.so|vdso/.test(object);
      return [{ address: Number.parseInt(address, 16), isSystem, isCompiled }];
    });
    const [, threadName = "", threadId = "", seconds = "", fraction = ""] = head;
    const atNs = Number(seconds) * 1e9 + Number(fraction);
    const [top] = frames;
    if (top === undefined) continue;
    const nearest = frames
      .filter(({ isCompiled }) => isCompiled)
      .map(({ address }) => dump.nameAt(address, atNs))
      .find((name) => name !== undefined && !STUB.test(name));
    const spot = top.isSystem ? "system" : top.isCompiled ? "own" : "native";
    const name = nearest?.replace(TIER, "");
    yield { threadName, threadId: Number(threadId), spot, nearest: name };
  }
}
