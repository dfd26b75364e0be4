/**
 * Determines how much memory the process may use. This is the smallest of the machine's memory,
 * the limits of the process's control group and of the groups that enclose it, and the limit on
 * its address space.
 *
 * The limit of a control group covers all memory that the process touches; above the limit, the
 * system kills the process. Version 2 groups have `memory.max`, and `memory.high`, above which the
 * system slows down the process; version 1 groups have `memory.limit_in_bytes`.
 * `/proc/self/cgroup` and `/proc/self/mountinfo` together show where the group's directory is: a
 * container often sees its own group as the root of the mount.
 *
 * A limit on the address space also covers reserved memory, and at startup the runtime has already
 * reserved much more memory than it uses. Memory, mapped files and thread stacks share the rest of
 * that limit.
 */
import type { Disk } from "./disk.ts";
import { DiskError } from "./errors.ts";

/** The amount of memory that the process may use. */
export interface MemoryLimit {
  readonly bytes: number;
  /** The source of the limit, for example "memory.max of /sys/fs/cgroup/app.slice". */
  readonly source: string;
}

export interface MemoryLimitOptions {
  /** Reads `/proc` and `/sys`, which exist only on Linux. */
  readonly disk: Pick<Disk, "readFile">;
  readonly machineBytes: number;
}

/** The share of the address space still free at startup that the process may use for memory. */
const ADDRESS_SPACE_SHARE = 3 / 4;

/** The names of the files that contain the memory limits of a control group, by version. */
const GROUP_FILES = { 1: ["memory.limit_in_bytes"], 2: ["memory.max", "memory.high"] } as const;

interface GroupMount {
  readonly version: 1 | 2;
  /** The path of the control group whose directory is mounted at `point`. */
  readonly root: string;
  readonly point: string;
}

export function findMemoryLimit({ disk, machineBytes }: MemoryLimitOptions): MemoryLimit {
  const machine = { bytes: machineBytes, source: "the machine's memory" };
  return [...groupLimits(disk), ...addressSpaceLimit(disk)].reduce(
    (least, limit) => (limit.bytes < least.bytes ? limit : least),
    machine,
  );
}

/**
 * Returns the memory limits of the process's control group and of the groups that enclose it, as
 * far as the process can see them.
 */
function groupLimits(disk: MemoryLimitOptions["disk"]): MemoryLimit[] {
  const groups = textOf(disk, "/proc/self/cgroup");
  return groupMounts(textOf(disk, "/proc/self/mountinfo")).flatMap(({ version, root, point }) => {
    const group = groupOf(groups, version);
    if (group === undefined) return [];
    return directoriesOf(group, { root, point }).flatMap((directory) =>
      GROUP_FILES[version].flatMap((name) => {
        // In control groups of version 2, "max" means that there is no limit. In version 1, the
        // largest possible number of pages means the same.
        const text = textOf(disk, `${directory}/${name}`).trim();
        return /^\d+$/.test(text)
          ? [{ bytes: Number(text), source: `${name} of ${directory}` }]
          : [];
      }),
    );
  });
}

/**
 * Returns the path of the process's control group. The lines have the form "4:memory:/a/b" or, in
 * version 2, "0::/a/b".
 */
function groupOf(text: string, version: 1 | 2): string | undefined {
  for (const line of text.split("\n")) {
    const [, number, controllers = "", path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    const isIt =
      version === 2
        ? number === "0" && controllers === ""
        : controllers.split(",").includes("memory");
    if (isIt) return path;
  }
  return undefined;
}

/** Returns the mount points of the control groups that may limit memory. */
function groupMounts(text: string): GroupMount[] {
  return text.split("\n").flatMap((line): GroupMount[] => {
    const [mount = "", system = ""] = line.split(" - ");
    const [, , , root = "", point = ""] = mount.split(" ").map(unescaped);
    const [kind, , options = ""] = system.split(" ");
    if (kind === "cgroup2") return [{ version: 2, root, point }];
    const isMemory = kind === "cgroup" && options.split(",").includes("memory");
    return isMemory ? [{ version: 1, root, point }] : [];
  });
}

/**
 * Decodes a path in which spaces and similar characters are encoded as a backslash and three octal
 * digits.
 */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_all, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/**
 * Returns the directories of a control group and of the groups that enclose it, up to the mount
 * point.
 */
function directoriesOf(group: string, { point, root }: Omit<GroupMount, "version">): string[] {
  const prefix = root === "/" ? "" : root;
  const isBelow = group === prefix || group.startsWith(`${prefix}/`);
  const names = isBelow ? group.slice(prefix.length).split("/") : [];
  // The control group is outside the mount, so only the directory of the mount point is known.
  if (names.includes("..")) return [point];
  const inner = names.filter((name) => name !== "");
  return Array.from({ length: inner.length + 1 }, (_, count) =>
    [point, ...inner.slice(0, inner.length - count)].join("/"),
  );
}

function addressSpaceLimit(disk: MemoryLimitOptions["disk"]): MemoryLimit[] {
  const limits = textOf(disk, "/proc/self/limits");
  const limit = Number(/^Max address space\s+(\d+)/m.exec(limits)?.[1]);
  const status = textOf(disk, "/proc/self/status");
  const [reserved, resident] = ["VmSize", "VmRSS"].map(
    (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024,
  );
  if (reserved === undefined || resident === undefined) return [];
  const bytes = Math.floor(resident + Math.max(0, limit - reserved) * ADDRESS_SPACE_SHARE);
  if (Number.isNaN(bytes)) return [];
  return [{ bytes, source: `the limit on the address space, ${limit}` }];
}

/** Reads a file. Returns an empty string if it does not exist or cannot be read. */
function textOf(disk: MemoryLimitOptions["disk"], path: string): string {
  try {
    return new TextDecoder().decode(disk.readFile(path));
  } catch (error) {
    // A limit that cannot be read counts as absent. The other limits still apply.
    if (error instanceof DiskError) return "";
    throw error;
  }
}
