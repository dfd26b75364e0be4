/**
 * Reads the processor time that a process has used so far. Other work on the machine affects
 * wall-clock times, but not these.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Returns nanoseconds, summed over all current threads, in user and in kernel mode. */
export function cpuNsOf(pid: number): number {
  let sum = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [running] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
    sum += Number(running);
  }
  return sum;
}
