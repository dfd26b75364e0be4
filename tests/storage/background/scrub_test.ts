/**
 * Verifies that segments are read about once a week to find damage, whether or not anything else
 * reads them.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../../src/base/clock.ts";
import { dataPathsOf } from "../../../src/storage/files.ts";
import { JobList, type LocalStore } from "../../../src/storage/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const OTHER = defineTable(2, [{ kind: "int" }]);
const PATHS = dataPathsOf(DATA_PATH);
const WEEK_HOURS = 168;
/** The time between two scrubs of the same segment, in hours. */
const PERIOD_HOURS = 151;

interface World {
  readonly store: LocalStore;
  readonly manifest: MemoryManifest;
  readonly clock: ManualClock;
  readonly disk: SimulatedDisk;
  readonly jobs: JobList;
}

/**
 * Returns three segments of one table, the first with a deletion vector, and one segment of
 * another table.
 */
async function world(): Promise<World> {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  const jobs = new JobList(clock);
  const manifest = new MemoryManifest();
  const definitions = [TABLE, OTHER];
  const store = await openStore({ clock, disk, manifest, definitions, jobs });
  for (const id of [1, 2, 3]) {
    await commit(store, 1, "insert", [[id, "a"]]);
    if (id === 3) await commit(store, 1, "update", [[1, "b"]]);
    await store.flush(1);
  }
  await commit(store, 2, "insert", [[1]]);
  await store.flush(2);
  return { store, manifest, clock, disk, jobs };
}

/** Advances the clock hour by hour. In each hour, runs a scrub and then calls `after`. */
async function pass(
  hours: number,
  { store, clock, jobs }: World,
  after: () => void = () => {},
): Promise<void> {
  for (let hour = 0; hour < hours; hour += 1) {
    clock.advance(HOUR_MS);
    store.scrub();
    await Promise.all(jobs.all().map(({ ended }) => ended));
    // A scrub ends slightly later than the job that it lists.
    await clock.yield();
    after();
  }
}

test("every segment is read within a week, each in its hour", async () => {
  const all = await world();
  const opened: string[] = [];
  let openedBefore = 0;
  let most = 0;
  all.disk.faultPlan = (operation, path) => {
    if (operation === "open" && path.endsWith(".seg")) opened.push(path);
    return undefined;
  };
  await pass(PERIOD_HOURS, all, () => {
    most = Math.max(most, opened.length - openedBefore);
    openedBefore = opened.length;
  });
  const paths = ["1/1.seg", "1/2.seg", "1/3.seg", "2/4.seg"].map(
    (name) => `${PATHS.segments}/${name}`,
  );
  expect(opened.toSorted()).toEqual(paths);
  expect(most).toBe(1);
  const scrubs = all.jobs.all().filter(({ kind }) => kind === "scrub");
  expect(scrubs.map(({ message, status }) => [status, message])).toEqual(
    paths.map(() => ["completed", "1 of 1 segment read, 0 damaged"]),
  );
  await all.store.close();
});

test.each(["1.seg", "1.1.dv"])(
  "damage to %s is found, and only its segment is removed",
  async (name) => {
    const all = await world();
    const { disk, store } = all;
    disk.damage(`${PATHS.segments}/1/${name}`, 40);
    await pass(PERIOD_HOURS, all);
    const statuses = store.segments().map(({ segmentId, status }) => `${segmentId} ${status}`);
    // The deletion vector in memory is intact, so it is written to disk again.
    const first = name === "1.seg" ? "1 quarantined" : "1 live";
    expect(statuses).toEqual([first, "2 live", "3 live", "4 live"]);
    expect(readRows(store, OTHER).length).toBe(1);
    const messages = all.jobs.all().map(({ message }) => message);
    expect(messages).toContain("1 of 1 segment read, 1 damaged");
    await store.close();
  },
);

test("hours without a scrub are made up for, and a clock that is set back does no harm", async () => {
  const all = await world();
  let openCount = 0;
  all.disk.faultPlan = (operation, path) => {
    if (operation === "open" && path.endsWith(".seg")) openCount += 1;
    return undefined;
  };
  all.clock.advance(10 * WEEK_HOURS * HOUR_MS);
  await pass(1, all);
  expect(openCount).toBe(4);
  all.clock.setWall(all.clock.nowMs() - 5 * HOUR_MS);
  await pass(PERIOD_HOURS, all);
  expect(openCount).toBe(8);
  await all.store.close();
});

test("a server that runs only in the daytime and not at weekends also reads segments due at night", async () => {
  const { clock, disk, manifest, store } = await world();
  await store.close();
  const hourOfWeek = (): number => Math.floor(clock.nowMs() / HOUR_MS) % WEEK_HOURS;
  const isOn = (): boolean =>
    hourOfWeek() < 5 * 24 && hourOfWeek() % 24 >= 9 && hourOfWeek() % 24 < 18;
  const read = new Set<string>();
  let isReading = false;
  disk.faultPlan = (operation, path) => {
    if (isReading && operation === "open" && path.endsWith(".seg")) read.add(path);
    return undefined;
  };
  for (let day = 0; day < 7 * 7; day += 1) {
    while (!isOn()) clock.advance(HOUR_MS);
    const jobs = new JobList(clock);
    const definitions = [TABLE, OTHER];
    const today = await openStore({ clock, disk, manifest, definitions, jobs });
    isReading = true;
    while (isOn()) await pass(1, { clock, disk, jobs, manifest, store: today });
    isReading = false;
    await today.close();
  }
  expect(read.size).toBe(4);
});

test("a segment that cannot be opened does not keep others from being read, but fails its job", async () => {
  const all = await world();
  const { clock, disk, jobs, store } = all;
  clock.advance(WEEK_HOURS * HOUR_MS);
  disk.faultPlan = (operation, path) =>
    operation === "open" && path.endsWith("/1.seg") ? { code: "EMFILE" } : undefined;
  disk.damage(`${PATHS.segments}/1/3.seg`, 40);
  store.scrub();
  const scrub = jobs.all().find(({ kind }) => kind === "scrub");
  await scrub?.ended;
  const message = "3 of 4 segments read, 1 damaged";
  expect(scrub).toMatchObject({ status: "failed", message, error: { code: "EMFILE" } });
  const statuses = store.segments().map(({ segmentId, status }) => `${segmentId} ${status}`);
  expect(statuses).toEqual(["1 live", "2 live", "3 quarantined", "4 live"]);
  await store.close();
});

test("a scrub that is killed, or whose store is closed, stops reading", async () => {
  for (const how of ["killed", "closed"]) {
    const all = await world();
    const { clock, disk, jobs, store } = all;
    clock.advance(WEEK_HOURS * HOUR_MS);
    const opened: string[] = [];
    disk.faultPlan = (operation, path) => {
      if (operation === "open" && path.endsWith(".seg")) opened.push(path);
      return undefined;
    };
    store.scrub();
    const job = jobs.all().find(({ kind }) => kind === "scrub");
    if (how === "killed" && job !== undefined) job.isCancelled = true;
    else await store.close();
    await job?.ended;
    expect([job?.status, opened.length]).toEqual(["cancelled", 1]);
    await store.close();
  }
});
