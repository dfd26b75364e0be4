/**
 * Makes readers of a server fail: the server process and its threads preload this file, which
 * inserts calls into the code of readers. The server's own code knows nothing of it.
 *
 * A call fails once, in the way that the file of READER_FAULT names: one of the threads that come
 * by takes the file, and fails. PLANT names a fault of the event loop instead, which the campaign
 * has to find.
 */
import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { isMainThread, threadId } from "node:worker_threads";

export const FAULT_KINDS = ["end", "throw", "throw later", "no memory", "hang"] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** The places of the calls: the file below `src/`, and the line that follows the call. */
const STAGES: Readonly<Record<string, readonly [file: string, line: string]>> = {
  plan: ["sql/readers/query_reader.ts", "const { rowCounts } = source;"],
  tables: ["sql/readers/query_reader.ts", "const ledger = new JobLedger(job, clock);"],
  rows: [
    "sql/readers/query_reader.ts",
    "if (batch.rowCount > 0) sender.send(batch, columnCount, ledger);",
  ],
  asking: ["sql/readers/query_reader.ts", 'this.#post({ kind: "ask", number, question });'],
  spilling: ["sql/spill/temporary_files.ts", "this.#open.add(spilled);"],
};

export const STAGE_NAMES: readonly string[] = Object.keys(STAGES);

/** The contents of the control file. */
export interface ReaderFault {
  readonly stage: string;
  readonly kind: FaultKind;
}

/** Faults that the campaign has to find: a text in a file below `src/`, and its replacement. */
export const PLANTS: Readonly<Record<string, readonly [file: string, from: string, to: string]>> = {
  pinned: [
    "storage/replica/local_sharing.ts",
    "for (const segment of segments.splice(0)) segment.unpin();",
    "segments.length = 0;",
  ],
  gone: ["sql/readers/reader_pool.ts", "this.#readers[place] = undefined;", ""],
  hung: ["sql/readers/running_job.ts", "const HUNG_MS = 2000;", "const HUNG_MS = Infinity;"],
  lost: [
    "sql/readers/running_job.ts",
    "this.#queue.push(message);",
    "if (Math.random() < 0.98) this.#queue.push(message);",
  ],
  unanswered: ["sql/readers/reader.ts", "job?.fail(job.reasonToEnd() ??", "void (job?.plan ??"],
  files: ["sql/readers/reader_pool.ts", "cleanUp?.(number)", "undefined"],
};

const SOURCE = join(import.meta.dir, "../../src");
const THREADS = join(SOURCE, "threads/message_thread.ts");

const control = process.env["READER_FAULT"];
if (control !== undefined) plant(control);

function plant(path: string): void {
  Object.assign(globalThis, {
    meetReaderFault(stage: string): void {
      // The event loop runs some of the same code.
      const fault = isMainThread ? undefined : taken(path, stage);
      if (fault !== undefined) fail(fault.kind);
    },
  });
  const planted = PLANTS[process.env["PLANT"] ?? ""];
  Bun.plugin({
    name: "faults of readers",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path: file }) => {
        let text = readFileSync(file, "utf8");
        for (const [stage, [inFile, line]] of Object.entries(STAGES)) {
          if (file !== join(SOURCE, inFile)) continue;
          text = replaced(text, line, `meetReaderFault(${JSON.stringify(stage)}); ${line}`);
        }
        if (file === THREADS) {
          const preload = JSON.stringify(import.meta.path);
          text = replaced(text, "(entry.href)", `(entry.href, { preload: ${preload} })`);
        }
        if (planted !== undefined && file === join(SOURCE, planted[0])) {
          text = replaced(text, planted[1], planted[2]);
        }
        return { contents: text, loader: "ts" };
      });
    },
  });
}

function replaced(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`Cannot plant: "${from}" is not there once`);
  return text.replace(from, to);
}

/** The fault that waits, if it is of this stage; only one thread gets it. */
function taken(path: string, stage: string): ReaderFault | undefined {
  try {
    const fault = JSON.parse(readFileSync(path, "utf8")) as ReaderFault;
    if (fault.stage !== stage) return undefined;
    renameSync(path, `${path}.${threadId}`);
    return fault;
  } catch {
    // There is none, or another thread was faster.
    return undefined;
  }
}

function fail(kind: FaultKind): void {
  switch (kind) {
    case "end":
      return process.exit(3);
    case "throw":
      throw new TypeError("a fault of the campaign");
    case "throw later":
      setTimeout(() => {
        throw new Error("a fault of the campaign, later");
      }, 0);
      break;
    case "no memory":
      // A typed array for which there is no room fails like this.
      new Float64Array(2 ** 40).fill(1);
      break;
    case "hang":
      for (;;) Atomics.load(ENDLESS, 0);
  }
}

const ENDLESS = new Int32Array(new SharedArrayBuffer(4));
