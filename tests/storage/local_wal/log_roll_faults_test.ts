/**
 * Tests the outcome of commits when one disk operation fails while the log moves on to the next
 * file.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { dataPathsOf } from "../../../src/storage/files.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { type Fault, SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";
import { shareOf } from "../../support/thoroughness.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const PATHS = dataPathsOf(DATA_PATH);

/** The outcomes reported to the writers, by row. */
interface Told {
  readonly acknowledged: Set<number>;
  readonly refused: Set<number>;
  /** Rows whose writers were told that the outcome is unknown. */
  readonly unknown: Set<number>;
}

/** A state of the disk that the next process may find. */
interface Find {
  readonly disk: SimulatedDisk;
  /** Whether all acknowledged rows must be present. */
  readonly isWhole: boolean;
}

interface Run extends Told {
  readonly finds: readonly Find[];
  readonly isFatal: boolean;
  /** Operations on the log, each with its path. */
  readonly operations: readonly string[];
}

interface Story {
  readonly durability: "sync" | "relaxed";
  /** The number of rows per commit. A large commit spans several files. */
  readonly rowsPerCommit: number;
  /** Whether the operation keeps failing until all writers have been answered. */
  readonly lasts: boolean;
  readonly code: Fault["code"];
  /** The index of the log operation that fails; negative for none. */
  readonly nth: number;
}

/** The number of writers that commit at the same time. */
const WRITERS = 3;

/** With these options, no table is flushed. */
const OPTIONS = { walSegmentBytes: 16384, rowBytesMax: 4096, walMaxBytes: 1 << 30 };

/**
 * Runs commits that span several log files, some of them concurrently, and injects a single fault.
 */
async function tell({ code, durability, lasts, nth, rowsPerCommit }: Story): Promise<Run> {
  const disk = new SimulatedDisk();
  const told: Told = { acknowledged: new Set(), refused: new Set(), unknown: new Set() };
  const options = { ...OPTIONS, durability };
  let isFatal = false;
  const onFatal = (): void => {
    isFatal = true;
  };
  const store = await openStore({ disk, definitions: [TABLE], options, onFatal });
  const operations: string[] = [];
  disk.faultPlan = (operation, path) => {
    if (!path.startsWith(PATHS.wal) && !path.includes("/tmp/wal.")) return undefined;
    const name = `${operation} ${path.slice(DATA_PATH.length)}`;
    operations.push(name);
    const isHit = operations.length - 1 === nth;
    const isHitAgain = lasts && operations.length - 1 > nth && name === operations[nth];
    return nth >= 0 && (isHit || isHitAgain) ? { code } : undefined;
  };
  let id = 0;
  for (let round = 0; round < (rowsPerCommit === 1 ? 6 : 1); round += 1) {
    const writes: Promise<void>[] = [];
    for (let at = 0; at < WRITERS; at += 1) {
      const ids = Array.from({ length: rowsPerCommit }, () => (id += 1));
      writes.push(write(store, ids, told));
    }
    await Promise.all(writes);
  }
  disk.faultPlan = undefined;
  const finds = findsOf(disk, durability === "sync");
  if (!isFatal) {
    await write(store, [10_000], told);
    expect(told.acknowledged.has(10_000), "a log that continues accepts commits again").toBe(true);
    await store.close();
    finds.push(...findsOf(disk, true));
  }
  return { ...told, finds, isFatal, operations };
}

function findsOf(disk: SimulatedDisk, isSynced: boolean): Find[] {
  const random = new SeededRandom(7);
  return [
    { disk: disk.restart(), isWhole: true },
    { disk: disk.crash({ keep: "none" }), isWhole: isSynced },
    { disk: disk.crash({ keep: "some", random }), isWhole: isSynced },
  ];
}

async function write(store: LocalStore, ids: readonly number[], told: Told): Promise<void> {
  try {
    const rows = ids.map((id) => [id, "x".repeat(1500)]);
    await commit(store, 1, "insert", rows);
    for (const id of ids) told.acknowledged.add(id);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    const isUnknown = error.code === "COMMIT_UNKNOWN";
    for (const id of ids) (isUnknown ? told.unknown : told.refused).add(id);
  }
}

/**
 * Opens each disk that the next process may find, and compares its rows with the outcomes reported
 * to the writers.
 */
async function judge({ acknowledged, finds, refused }: Run, where: string): Promise<void> {
  for (const { disk, isWhole } of finds) {
    const store = await openStore({ disk, definitions: [TABLE], options: OPTIONS });
    const found = new Set(readRows(store, TABLE).map(([, id]) => Number(id)));
    const lost = [...acknowledged].filter((id) => isWhole && !found.has(id) && id !== 10_000);
    expect(lost, `acknowledged, and lost: ${where}`).toEqual([]);
    const invented = [...found].filter((id) => refused.has(id));
    expect(invented, `refused, and there: ${where}`).toEqual([]);
    await commit(store, 1, "insert", [[20_000, "after"]]);
    await store.close();
  }
}

const LOGS = [
  ["sync", 1],
  ["sync", 12],
  ["relaxed", 12],
  ["relaxed", 1],
] as const;

test.each(shareOf(LOGS, { oneOf: 2 }))(
  "a log that is %s loses and invents no rows if an operation fails at a new file, with %d rows per commit",
  async (durability, rowsPerCommit) => {
    const base = { durability, rowsPerCommit };
    const whole = await tell({ ...base, lasts: false, code: "EMFILE", nth: -1 });
    expect(whole.operations.filter((name) => name.startsWith("rename")).length).toBeGreaterThan(0);
    const ends = new Set<string>();
    for (const code of ["EMFILE", "ENOSPC"] as const) {
      for (const lasts of [false, true]) {
        for (const [nth, name] of shareOf([...whole.operations.entries()], { oneOf: 4 })) {
          const run = await tell({ ...base, lasts, code, nth });
          await judge(run, `${code} in ${nth}, ${name}${lasts ? ", and again" : ""}`);
          ends.add(run.isFatal ? "fatal" : run.refused.size > 0 ? "refused" : "written");
        }
      }
    }
    expect(ends.size, "a fault is fatal, or refuses commits, or does no harm").toBe(3);
  },
);

test.each(["sync", "relaxed"] as const)(
  "a log that is %s accepts commits again once there is a file descriptor for its next file",
  async (durability) => {
    const base = { durability, rowsPerCommit: 1, code: "EMFILE" as const };
    const whole = await tell({ ...base, lasts: false, nth: -1 });
    const taking = whole.operations
      .entries()
      .filter(([, name]) => /^(?:open|syncDirectory) /.test(name));
    let refusedCount = 0;
    for (const [nth, name] of taking) {
      const run = await tell({ ...base, lasts: true, nth });
      expect(run.isFatal, `${nth}, ${name}`).toBe(false);
      expect(run.unknown.size, `${nth}, ${name}`).toBe(0);
      refusedCount += run.refused.size;
      await judge(run, `${nth}, ${name}`);
    }
    expect(refusedCount).toBeGreaterThan(0);
  },
);

test("commits acknowledged after a kill at a new log file survive a later loss of power", async () => {
  const disk = new SimulatedDisk();
  const options = { ...OPTIONS, durability: "sync" as const };
  const store = await openStore({ disk, definitions: [TABLE], options });
  const left: { where: string; disk: SimulatedDisk }[] = [];
  disk.faultPlan = (operation, path) => {
    if (path.startsWith(PATHS.wal))
      left.push({ where: `${operation} ${path}`, disk: disk.restart() });
    return undefined;
  };
  for (let id = 0; store.logFiles().length < 2; id += 1) {
    await commit(store, 1, "insert", [[id, "x".repeat(1500)]]);
  }
  disk.faultPlan = undefined;
  await store.close();
  expect(left.some(({ where }) => where === `syncDirectory ${PATHS.wal}`)).toBe(true);
  for (const { where, disk: found } of left) {
    const next = await openStore({ disk: found, definitions: [TABLE], options });
    await commit(next, 1, "insert", [[20_000, "after"]]);
    const rows = readRows(next, TABLE);
    const crashed = found.crash({ keep: "none" });
    const last = await openStore({ disk: crashed, definitions: [TABLE], options });
    expect(readRows(last, TABLE), where).toEqual(rows);
    await Promise.all([next.close(), last.close()]);
  }
});

test("a log file that can neither be created nor removed refuses commits, and the log continues", async () => {
  const disk = new SimulatedDisk();
  let isFatal = false;
  const onFatal = (): void => {
    isFatal = true;
  };
  const options = { ...OPTIONS, durability: "sync" as const };
  const store = await openStore({ disk, definitions: [TABLE], options, onFatal });
  let removeCount = 0;
  disk.faultPlan = (operation, path) => {
    if (!path.startsWith(PATHS.tmp)) return undefined;
    if (operation === "write") return { code: "ENOSPC" };
    if (operation !== "remove") return undefined;
    removeCount += 1;
    return { code: "EIO" };
  };
  const told: Told = { acknowledged: new Set(), refused: new Set(), unknown: new Set() };
  for (let id = 0; told.refused.size < 2 && told.unknown.size === 0; id += 1) {
    await write(store, [id], told);
  }
  expect(removeCount, "one made ahead, and one for each roll").toBe(3);
  expect(isFatal).toBe(false);
  expect(told.unknown.size).toBe(0);
  disk.faultPlan = undefined;
  await write(store, [100], told);
  expect([...told.acknowledged]).toContain(100);
  await store.close();
});

test("a log file is listed as full only once the name of the next one is durable", async () => {
  const disk = new SimulatedDisk();
  const options = { ...OPTIONS, durability: "sync" as const };
  const store = await openStore({ disk, definitions: [TABLE], options });
  const told: Told = { acknowledged: new Set(), refused: new Set(), unknown: new Set() };
  disk.faultPlan = (operation, path) =>
    operation === "syncDirectory" && path === PATHS.wal ? { code: "EMFILE" } : undefined;
  for (let id = 0; told.refused.size < 3; id += 1) await write(store, [id], told);
  expect(told.acknowledged.size).toBeGreaterThan(3);
  expect(store.logFiles().map(({ number }) => number)).toEqual([1]);
  disk.faultPlan = undefined;
  await write(store, [100], told);
  expect([...told.acknowledged]).toContain(100);
  expect(store.logFiles().map(({ number }) => number)).toEqual([1, 2]);
  await store.close();
});
