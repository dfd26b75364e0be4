/** Tests the job list: it finds open jobs, and keeps some of the jobs that have ended. */
import { expect, test } from "bun:test";
import { Bugs, inDoubt } from "../../../src/base/bugs.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import { JobList, runJob } from "../../../src/storage/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";

test("openOf returns the started job of a kind and a table until it has ended", async () => {
  const jobs = new JobList(new ManualClock());
  jobs.begin({ kind: "flush", tableId: 1 });
  expect(jobs.openOf("flush", 1)).toBeUndefined();
  const job = jobs.begin({ kind: "flush", tableId: 1, createdBy: "root" });
  expect(jobs.openOf("flush", 1)).toBe(job);
  expect(jobs.openOf("flush", 2)).toBeUndefined();
  expect(jobs.openOf("compact", 1)).toBeUndefined();
  expect(jobs.openOf("flush", undefined)).toBeUndefined();
  job.end({ status: "completed" });
  expect(jobs.openOf("flush", 1)).toBeUndefined();
  await job.ended;
  const next = jobs.begin({ kind: "flush", tableId: 1, createdBy: "root" });
  await job.ended;
  expect(jobs.openOf("flush", 1)).toBe(next);
});

test("endedAbove waits only for the jobs of layers above the store", async () => {
  const jobs = new JobList(new ManualClock());
  jobs.begin({ kind: "flush", tableId: 1 });
  await jobs.endedAbove();
  for (const kind of ["backup", "restore", "purge"] as const) {
    const job = jobs.begin({ kind });
    const over = jobs.endedAbove();
    await Promise.resolve();
    expect(Bun.peek.status(over), kind).toBe("pending");
    job.end({ status: "cancelled" });
    await over;
  }
});

test("begin drops the oldest ended jobs beyond a thousand, and none that is open", async () => {
  const jobs = new JobList(new ManualClock());
  const begun = Array.from({ length: 1500 }, (_, tableId) =>
    jobs.begin({ kind: "flush", tableId, createdBy: "root" }),
  );
  expect(jobs.all()).toHaveLength(1500);
  for (const job of begun.slice(100).toReversed()) job.end({ status: "completed" });
  await begun[100]?.ended;
  const last = jobs.begin({ kind: "compact", tableId: 1, createdBy: "root" });
  const kept = jobs.all();
  expect(kept).toHaveLength(1000);
  expect(kept.slice(0, 100)).toEqual(begun.slice(0, 100));
  expect(kept).toContain(last);
  expect(jobs.find(begun[1499]?.jobId ?? "")).toBeUndefined();
});

test("runJob fails a job with a bug, which is counted, and passes on errors of unknown outcome", async () => {
  const bugs = new Bugs(silentLog);
  const jobs = new JobList(new ManualClock(), {
    onBug: (error, what, fields) => bugs.contain(error, what, fields),
  });
  const thrown = [
    new TypeError("an injected fault"),
    new DatabaseError("DISK_FULL", "no room"),
    inDoubt(new TypeError("an injected fault")),
  ];
  const ended = thrown.map(async (error) => {
    const job = jobs.begin({ kind: "merge" });
    const work = async (): Promise<never> => {
      throw error;
    };
    try {
      await runJob(job, work);
      return [job.status, job.error?.message, "goes on"];
    } catch {
      return [job.status, job.error?.message, "stops the process"];
    }
  });
  const byBug =
    "Cannot finish the job (merge): it failed because of a bug in the server; the server's " +
    "log has the details";
  expect(await Promise.all(ended)).toEqual([
    ["failed", byBug, "goes on"],
    ["failed", "no room", "goes on"],
    ["failed", byBug, "stops the process"],
  ]);
  expect(bugs.count).toBe(1);
});
