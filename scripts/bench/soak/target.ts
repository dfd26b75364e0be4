/**
 * Defines the target of a soak: Tidemark or the front end of a peer, each in separate processes.
 * The memory and processor time of these processes are measured by Linux.
 */
import { readdirSync, readFileSync } from "node:fs";

/** A server under soak test, with the operations of the workload that every server supports. */
export interface SoakTarget extends AsyncDisposable {
  readonly name: string;
  /** Creates a table for the load: `id BIGINT PRIMARY KEY, room INT, author TEXT, body TEXT`. */
  makeTable(table: string): Promise<void>;
  /** Returns the name by which statements refer to a table. */
  nameOf(table: string): string;
  /** Changes rows, and sends them to the followers of the table. @throws {RefusedStatement} */
  change(table: string, sql: string): Promise<void>;
  /** Runs a query. @throws {RefusedStatement} */
  query(sql: string): Promise<readonly unknown[]>;
  /** Starts following a table. Resolves once changes will arrive. */
  follow(table: string): Promise<SoakFollower>;
  /** Returns the ids of the processes to measure. */
  pids(): readonly number[];
}

export interface SoakFollower {
  /** The number of messages received so far. */
  readonly messageCount: number;
  close(): void;
}

/** The error for a statement whose response reports an error. */
export class RefusedStatement extends Error {}

/**
 * Returns the memory of processes, in bytes. Pages shared by several processes are divided among
 * them.
 */
export function heldBytes(pids: readonly number[]): number {
  if (pids.length === 1) return kilobytes(`/proc/${pids[0]}/status`, "VmRSS") * 1024;
  return pids.reduce((sum, pid) => sum + kilobytes(`/proc/${pid}/smaps_rollup`, "Pss"), 0) * 1024;
}

/** Returns the processor time that processes have used, in milliseconds. */
export function processorMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    // The program's name, which is in parentheses, may contain any characters.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "").split(" ");
    return sum + 10 * (Number(fields[12]) + Number(fields[13]));
  }, 0);
}

/** Returns a process and all its descendants. */
export function familyOf(root: number): readonly number[] {
  const family = [root];
  const parents = new Map(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), kilobytes(`/proc/${name}/status`, "PPid")]),
  );
  for (const pid of family) {
    for (const [child, parent] of parents) if (parent === pid) family.push(child);
  }
  return family;
}

/** Reads a figure from a Linux status file; 0 if the process has ended or has no such figure. */
function kilobytes(path: string, name: string): number {
  try {
    return Number(
      new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? 0,
    );
  } catch {
    // A process may end while its file is read.
    return 0;
  }
}
