/**
 * Verifies that the machine's memory is divided among the parts of the server, and that a
 * configuration that needs more is refused or reported.
 */
import { expect, test } from "bun:test";
import { MEMORY_BYTES_MIN } from "../../src/config/memory.ts";
import { ConfigError, parseConfig, readerCountMax, settingsOf } from "../../src/config/mod.ts";
import { serverMemory } from "../../src/layer_limits.ts";
import { QUIET } from "./read_config.ts";

test("parseConfig uses the detected memory if the configured limit is absent or 0", () => {
  const memory = { bytes: 512 * 1024 ** 2, source: "memory.max of /sys/fs/cgroup" };
  const memoryOf = (toml: string): unknown =>
    parseConfig(toml, "config.toml", { env: QUIET, memory }).config.performance.memory_bytes;
  expect(memoryOf("")).toBe(memory.bytes);
  expect(memoryOf("performance.memory_bytes = 0")).toBe(memory.bytes);
  expect(memoryOf("performance.memory_bytes = 300000000")).toBe(300_000_000);
});

test("parseConfig refuses less memory than startup needs, whether detected or configured", () => {
  const least = MEMORY_BYTES_MIN;
  const faults = (toml: string, bytes: number): readonly string[] => {
    const memory = { bytes, source: "memory.max of /sys/fs/cgroup" };
    try {
      return parseConfig(toml, "config.toml", { env: QUIET, memory }).warnings;
    } catch (error) {
      if (error instanceof ConfigError) return error.faults;
      throw error;
    }
  };
  expect(faults("", least)).toEqual([]);
  expect(faults("", least - 1)).toEqual([
    `config.toml: the process may use only ${least - 1} bytes of memory, according to memory.max of /sys/fs/cgroup, but needs at least ${least}: raise that limit`,
  ]);
  expect(faults(`performance.memory_bytes = ${least}`, least)).toEqual([]);
  expect(faults("performance.memory_bytes = 134217728", 2 ** 40)).toEqual([
    `config.toml:1:13: performance.memory_bytes is 134217728, but must be at least ${least}, ` +
      "or 0 to detect the limit",
  ]);
  // A value above the detected memory is accepted with a warning.
  expect(faults(`performance.memory_bytes = ${least + 1}`, least)).toEqual([
    `config.toml:1:13: performance.memory_bytes is ${least + 1}, but the process may use only ${least} bytes, according to memory.max of /sys/fs/cgroup`,
  ]);
});

const MIB = 1024 ** 2;

function withMemory(mib: number, toml = ""): ReturnType<typeof parseConfig> {
  const memory = { bytes: mib * MIB, source: "a test" };
  return parseConfig(toml, "config.toml", { env: QUIET, memory });
}

test("parseConfig divides memory in whole MiB, and gives each part only what it needs on a large machine", () => {
  const budgets = (mib: number, toml = ""): readonly number[] => {
    const { files, limits, performance, storage } = withMemory(mib, toml).config;
    return [
      performance.total_query_memory_bytes,
      performance.query_memory_bytes,
      storage.memtable_bytes,
      storage.cache_bytes,
      limits.transaction_max_bytes,
      files.max_request_bytes,
      files.max_size_bytes,
      limits.max_body_bytes,
    ].map((bytes) => bytes / MIB);
  };
  const large = [1024, 256, 512, 256, 100, 100, 25, 10];
  expect(budgets(192)).toEqual([16, 12, 12, 6, 6, 6, 6, 3]);
  expect(budgets(256)).toEqual([26, 20, 20, 10, 10, 10, 10, 5]);
  expect(budgets(512)).toEqual([69, 52, 52, 26, 26, 26, 25, 10]);
  expect(budgets(2048)).toEqual([325, 244, 244, 122, 100, 100, 25, 10]);
  expect(budgets(8192)).toEqual(large);
  expect(budgets(512, "performance.memory_bytes = 8589934592")).toEqual(large);
  // An explicitly configured value takes precedence over the default.
  const set = "storage = { cache_bytes = 104857600 }\nlimits = { max_body_bytes = 20971520 }";
  expect(budgets(512, set)).toEqual([69, 52, 52, 100, 26, 26, 25, 20]);
});

test("all memory limits together fit into 512 MiB, along with the runtime", () => {
  const { config } = withMemory(512);
  const { performance, storage } = config;
  const server = serverMemory(config);
  const parts = [
    performance.total_query_memory_bytes,
    storage.memtable_bytes,
    // Readers may keep parts of segments in memory, up to another half of the cache size.
    1.5 * storage.cache_bytes,
    // This budget covers both short and long bodies.
    2 * server.bodyBytes,
    server.largeBodyBytes,
    server.messageBytes,
    server.sendQueueBytes,
    // Each thread has its own heap: the readers, the inspector, a flush and a merge.
    (readerCountMax(performance.memory_bytes) + 3) * 25 * MIB,
  ];
  const sum = parts.reduce((total, part) => total + part, 0);
  expect(sum).toBeLessThanOrEqual((512 - 96) * 0.95 * MIB);
});

test("readerCountMax grows with the memory, starting at one", () => {
  const counts = [192, 256, 480, 512, 1024, 4096].map((mib) => readerCountMax(mib * MIB));
  expect(counts).toEqual([1, 1, 2, 2, 4, 20]);
});

test("parseConfig warns about budgets whose sum exceeds the memory, and names them", () => {
  const cache = "storage.cache_bytes = 268435456";
  const both = `${cache}\nperformance.total_query_memory_bytes = 268435457`;
  expect(withMemory(512, cache).warnings).toEqual([]);
  expect(withMemory(512, both).warnings).toEqual([
    "config.toml: performance.memory_bytes is 536870912, but the following keys together " +
      "allow 536870913 bytes: performance.total_query_memory_bytes, storage.cache_bytes",
  ]);
  expect(withMemory(513, both).warnings).toEqual([]);
  expect(withMemory(512, "server.workers = 10").warnings).toEqual([]);
  expect(withMemory(512, "server.workers = 11").warnings).toEqual([
    "config.toml: performance.memory_bytes is 536870912, but the following keys together " +
      "allow 553648128 bytes: server.workers",
  ]);
});

test("settingsOf shows the value of a computed default and what it depends on", () => {
  const settings = settingsOf(withMemory(512, "storage.cache_bytes = 1048576").config);
  const shown = (path: string): unknown => settings.find(({ name }) => name === path);
  expect(shown("storage.cache_bytes")).toMatchObject({
    value: "1048576",
    defaultValue: "27262976",
    source: "file",
    description:
      "Memory for the cache of uncompressed segment data; defaults to 1/16 of (performance.memory_bytes - 100663296), but at most 268435456",
  });
  expect(shown("storage.memtable_bytes")).toMatchObject({ value: "54525952", source: "default" });
  expect(shown("performance.memory_bytes")).toMatchObject({
    value: "536870912",
    defaultValue: "0",
  });
});
