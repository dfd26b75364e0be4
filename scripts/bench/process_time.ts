/**
 * What a process has used of the processors so far: unlike the clock, it does not see what else the
 * machine does.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Nanoseconds of all threads that there are, whether in the program or in the system. */
export function cpuNsOf(pid: number): number {
  let sum = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [running] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
    sum += Number(running);
  }
  return sum;
}
