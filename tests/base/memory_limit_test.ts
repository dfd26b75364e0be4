/**
 * Verifies that the memory limit of the process is the smallest of all system limits, wherever
 * their files are. A file that cannot be read sets no limit. The tests use copies of Linux files
 * as seen by containers, services and plain shells.
 */
import { expect, test } from "bun:test";
import { totalmem } from "node:os";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { findMemoryLimit, type MemoryLimit } from "../../src/base/memory_limit.ts";

const MIB = 2 ** 20;
const MACHINE = 16 * 1024 * MIB;
const UNLIMITED_V1 = "9223372036854771712\n";
const V2_MOUNT = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate";

function found(files: Readonly<Record<string, string>>): MemoryLimit {
  const readFile = (path: string): Uint8Array => {
    const text = files[path];
    if (text === undefined) throw new DiskError("ENOENT", path, "open");
    return new TextEncoder().encode(text);
  };
  return findMemoryLimit({ disk: { readFile }, machineBytes: MACHINE });
}

test("findMemoryLimit returns the memory of the machine if there is no other limit", () => {
  const machine = { bytes: MACHINE, source: "the machine's memory" };
  expect(found({})).toEqual(machine);
  const group = { "/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": V2_MOUNT };
  expect(found({ ...group, "/sys/fs/cgroup/memory.max": "max\n" })).toEqual(machine);
  expect(found({ ...group, "/sys/fs/cgroup/memory.max": "" })).toEqual(machine);
  const above = String(MACHINE + 1);
  expect(found({ ...group, "/sys/fs/cgroup/memory.max": above })).toEqual(machine);
});

test("findMemoryLimit returns the smallest limit of a version 2 control group and its parents", () => {
  const files = {
    "/proc/self/cgroup": "0::/app.slice/tide mark.service\n",
    "/proc/self/mountinfo": `22 1 8:1 / / rw - ext4 /dev/sda1 rw\n${V2_MOUNT}\n`,
    "/sys/fs/cgroup/app.slice/tide mark.service/memory.max": `${900 * MIB}\n`,
    "/sys/fs/cgroup/app.slice/tide mark.service/memory.high": "max\n",
    "/sys/fs/cgroup/app.slice/memory.max": `${1000 * MIB}\n`,
  };
  const own = "memory.max of /sys/fs/cgroup/app.slice/tide mark.service";
  expect(found(files)).toEqual({ bytes: 900 * MIB, source: own });
  expect(found({ ...files, "/sys/fs/cgroup/app.slice/memory.max": String(800 * MIB) })).toEqual({
    bytes: 800 * MIB,
    source: "memory.max of /sys/fs/cgroup/app.slice",
  });
  const high = "/sys/fs/cgroup/app.slice/tide mark.service/memory.high";
  expect(found({ ...files, [high]: String(700 * MIB) })).toEqual({
    bytes: 700 * MIB,
    source: "memory.high of /sys/fs/cgroup/app.slice/tide mark.service",
  });
});

test("findMemoryLimit reads the container's own control group at the root of the mount", () => {
  // With version 2 in a control group namespace, the path reveals nothing.
  const inner = { "/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": V2_MOUNT };
  const limit = { bytes: 512 * MIB, source: "memory.max of /sys/fs/cgroup" };
  expect(found({ ...inner, "/sys/fs/cgroup/memory.max": String(512 * MIB) })).toEqual(limit);
  // A process that joined a control group namespace from outside sees a path above its root.
  const joined = { ...inner, "/proc/self/cgroup": "0::/../../user.slice\n" };
  expect(found({ ...joined, "/sys/fs/cgroup/memory.max": String(512 * MIB) })).toEqual(limit);
  // With version 1 of control groups, the path is the host's, and only its last part is mounted.
  const old = {
    "/proc/self/cgroup": "5:pids:/docker/abc\n4:cpu,memory:/docker/abc/worker\n0::/docker/abc\n",
    "/proc/self/mountinfo":
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,cpu,memory",
  };
  const own = "/sys/fs/cgroup/memory/worker/memory.limit_in_bytes";
  const root = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
  expect(found({ ...old, [own]: UNLIMITED_V1, [root]: `${256 * MIB}\n` })).toEqual({
    bytes: 256 * MIB,
    source: "memory.limit_in_bytes of /sys/fs/cgroup/memory",
  });
  expect(found({ ...old, [own]: `${128 * MIB}\n`, [root]: UNLIMITED_V1 }).bytes).toBe(128 * MIB);
  // The limit is also found without a namespace, and in a directory whose name needs an escape.
  const spaced = {
    "/proc/self/cgroup": "4:memory:/elsewhere\n",
    "/proc/self/mountinfo": "35 31 0:32 /docker /sys/fs/c\\040g rw - cgroup cgroup rw,memory",
    "/sys/fs/c g/memory.limit_in_bytes": String(64 * MIB),
  };
  expect(found(spaced).bytes).toBe(64 * MIB);
});

test("findMemoryLimit skips control groups of other controllers", () => {
  const files = {
    "/proc/self/cgroup": "4:memory:/a\n3:cpu:/a\n1:name=systemd:/a\n",
    "/proc/self/mountinfo": "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
    "/sys/fs/cgroup/cpu/a/memory.limit_in_bytes": "1",
  };
  expect(found(files).bytes).toBe(MACHINE);
});

test("findMemoryLimit leaves room for mapped files in a limited address space", () => {
  const files = {
    "/proc/self/status": "VmSize:\t  409600 kB\nVmRSS:\t   30720 kB\n",
    "/proc/self/limits": `Max address space         ${800 * MIB}            unlimited            bytes\n`,
  };
  const source = `the limit on the address space, ${800 * MIB}`;
  expect(found(files)).toEqual({ bytes: 330 * MIB, source });
  const unlimited = "Max address space         unlimited            unlimited            bytes\n";
  expect(found({ ...files, "/proc/self/limits": unlimited }).bytes).toBe(MACHINE);
  expect(found({ "/proc/self/limits": files["/proc/self/limits"] }).bytes).toBe(MACHINE);
});

test("findMemoryLimit finds the memory limit of this machine", () => {
  const { bytes } = findMemoryLimit({ disk: bunDisk, machineBytes: totalmem() });
  expect(bytes).toBeGreaterThan(64 * MIB);
  expect(bytes).toBeLessThanOrEqual(totalmem());
});
