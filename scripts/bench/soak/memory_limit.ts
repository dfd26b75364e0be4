/**
 * Limits the memory of a process. If this process may create a control group below its own, the
 * limit works like that of a container: file pages count too, and the system kills a process that
 * needs more. Otherwise, the limit applies to the address space, with an allowance for the memory
 * that is mapped but untouched just after the process has started. Allocations beyond the limit
 * fail.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface MemoryLimit extends Disposable {
  readonly description: string;
  /** The command and arguments to put in front of the command of the limited process. */
  readonly wrapper: readonly string[];
  /** Applies the memory limit to a process that has started. */
  hold(pid: number): void;
}

const GROUPS = "/sys/fs/cgroup";

export function openMemoryLimit(bytes: number): MemoryLimit {
  const mebibytes = Math.round(bytes / 2 ** 20);
  const group = makeGroup(bytes);
  if (group === undefined) {
    return {
      description: `${mebibytes} MiB of address space`,
      wrapper: [],
      hold: (pid) => limitAddresses(pid, bytes),
      [Symbol.dispose]: () => undefined,
    };
  }
  return {
    description: `a control group of ${mebibytes} MiB`,
    wrapper: ["sh", "-c", `echo $$ > ${join(group, "cgroup.procs")} && exec "$@"`, "sh"],
    hold: () => undefined,
    // The control group can be removed only after all its processes have ended.
    [Symbol.dispose]: () => rmdirSync(group),
  };
}

/** Creates a control group, and returns its directory; undefined if none can be created. */
function makeGroup(bytes: number): string | undefined {
  const own = readFileSync("/proc/self/cgroup", "utf8");
  const old = /^\d+:(?:\S+,)?memory(?:,\S+)?:(\/.*)$/m.exec(own)?.[1];
  const parent =
    old === undefined
      ? join(GROUPS, /^0::(\/.*)$/m.exec(own)?.[1] ?? "")
      : join(GROUPS, "memory", old);
  const group = join(parent, `tidemark-soak-${process.pid}`);
  try {
    mkdirSync(group);
    const file = old === undefined ? "memory.max" : "memory.limit_in_bytes";
    writeFileSync(join(group, file), String(bytes));
    return group;
  } catch {
    // The error can be ignored. If this process may not create groups here, or groups cannot limit
    // memory, the caller limits the address space instead.
    if (existsSync(group)) rmdirSync(group);
    return undefined;
  }
}

function limitAddresses(pid: number, bytes: number): void {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const [mapped, held] = ["VmSize", "VmRSS"].map(
    (name) => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]),
  );
  const most = (mapped ?? 0) - (held ?? 0) + bytes;
  const done = Bun.spawnSync(["prlimit", "--pid", String(pid), `--as=${most}`]);
  if (!done.success) throw new Error(`Cannot limit the memory: ${done.stderr.toString()}`);
}
