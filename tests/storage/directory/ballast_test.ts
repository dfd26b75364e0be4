/**
 * Tests that the ballast can be released while it is being allocated. The next attempt allocates
 * the whole ballast, in a file of its own.
 */
import { expect, test } from "bun:test";
import { silentLog } from "../../../src/base/log.ts";
import { Ballast } from "../../../src/storage/directory/ballast.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { failNth, SimulatedDisk } from "../../support/simulated_disk.ts";

const PATH = "/data/ballast";
const BYTES = 1000;

function ballastOn(disk: SimulatedDisk): Ballast {
  disk.makeDirectory("/data");
  const clock = new ManualClock();
  return new Ballast({ bytes: BYTES, clock, disk, log: silentLog, path: PATH });
}

/**
 * Waits until an attempt to allocate the ballast has written its pieces and started to sync them.
 */
async function piecesWritten(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

for (const wait of ["piece", "sync"] as const) {
  test(`Ballast.take owns its file although an earlier attempt was abandoned in its ${wait}`, async () => {
    const disk = new SimulatedDisk();
    const ballast = ballastOn(disk);
    disk.holdsSyncs = true;
    const first = ballast.take();
    if (wait === "sync") await piecesWritten();
    ballast.release();
    const second = ballast.take();
    await piecesWritten();
    expect(disk.syncCount).toBe(wait === "sync" ? 2 : 1);
    disk.releaseSyncs();
    await Promise.all([first, second]);
    expect(ballast.missingBytes).toBe(0);
    expect(disk.sizeOf(PATH)).toBe(BYTES);
    ballast.release();
    expect(ballast.missingBytes).toBe(BYTES);
    expect(disk.exists(PATH)).toBe(false);
  });
}

test("Ballast.take is not abandoned because of the failure of an earlier attempt", async () => {
  const disk = new SimulatedDisk();
  const ballast = ballastOn(disk);
  disk.holdsSyncs = true;
  disk.faultPlan = failNth("sync", 1, { code: "EIO" });
  const first = ballast.take();
  await piecesWritten();
  ballast.release();
  const second = ballast.take();
  await piecesWritten();
  disk.releaseSyncs();
  await Promise.all([first, second]);
  expect(ballast.missingBytes).toBe(0);
  expect(disk.sizeOf(PATH)).toBe(BYTES);
});

test("Ballast.take that is released leaves nothing, and nothing is allocated", async () => {
  const disk = new SimulatedDisk();
  const ballast = ballastOn(disk);
  disk.holdsSyncs = true;
  const taking = ballast.take();
  await piecesWritten();
  expect(ballast.missingBytes).toBe(0);
  ballast.release();
  disk.releaseSyncs();
  await taking;
  expect(ballast.missingBytes).toBe(BYTES);
  expect(disk.exists(PATH)).toBe(false);
});
