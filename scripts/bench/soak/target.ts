/**
 * Defines the target of a soak test: Tidemark or the front end of a peer, each in separate
 * processes. Linux reports the memory and processor time of these processes.
 */
import { readdirSync, readFileSync } from "node:fs";

/** A server under soak test. Every target supports these operations of the workload. */
export interface SoakTarget extends AsyncDisposable {
  readonly name: string;
  /** Creates a table for the load: `id BIGINT PRIMARY KEY, room INT, author TEXT, body TEXT`. */
  makeTable(table: string): Promise<void>;
  /** Returns the name by which statements refer to a table. */
  nameOf(table: string): string;
  /**
   * Runs a statement that changes rows, and delivers the changed rows to the table's followers.
   * @throws {RefusedStatement}
   */
  change(table: string, sql: string): Promise<void>;
  /** Runs a query. @throws {RefusedStatement} */
  query(sql: string): Promise<readonly unknown[]>;
  /** Starts following a table. Resolves once the follower is set to receive changes. */
  follow(table: string): Promise<SoakFollower>;
  /** Returns the ids of the processes whose memory and processor time count. */
  pids(): readonly number[];
}

export interface SoakFollower {
  /** The number of messages received so far. */
  readonly messageCount: number;
  close(): void;
}

/** The server answered a statement with an error. */
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
    // The second field is the program's name in parentheses, which may contain any characters.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "").split(" ");
    return sum + 10 * (Number(fields[12]) + Number(fields[13]));
  }, 0);
}

/** Returns the ids of a process and all its descendants. */
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

/**
 * Reads a figure from a Linux status file. Returns 0 if the process has ended or its file has no
 * such figure.
 */
function kilobytes(path: string, name: string): number {
  try {
    return Number(
      new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? 0,
    );
  } catch {
    // The process may have ended while its file was being read.
    return 0;
  }
}
