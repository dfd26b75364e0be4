/**
 * Makes a server's readers fail. The server process and its threads preload this file, which
 * inserts calls into the reader code. The server's own code does not refer to this file.
 *
 * A call fails once, in the way that the file named by READER_FAULT specifies: the first thread
 * that reaches the call takes the file and fails. INJECTED_FAULT instead names a fault of the event
 * loop, which the campaign has to find.
 */
import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { isMainThread, threadId } from "node:worker_threads";

export const FAULT_KINDS = ["end", "throw", "throw later", "no memory", "hang"] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/**
 * The positions of the calls: the file below `src/`, and the line before which the call is
 * inserted.
 */
const STAGES: Readonly<Record<string, readonly [file: string, line: string]>> = {
  plan: ["sql/readers/query_reader.ts", "const { rowCounts } = source;"],
  tables: ["sql/readers/query_reader.ts", "const ledger = new JobLedger(job, clock);"],
  rows: [
    "sql/readers/query_reader.ts",
    "if (batch.rowCount > 0) sender.send(batch, columnCount, ledger);",
  ],
  evaluation: ["sql/readers/query_reader.ts", "context.effort.beginRows();"],
  asking: ["sql/readers/query_reader.ts", 'this.#post({ kind: "ask", number, question });'],
  spilling: ["sql/spill/temporary_files.ts", "this.#open.add(spilled);"],
};

export const STAGE_NAMES: readonly string[] = Object.keys(STAGES);

/** The contents of the control file. */
export interface ReaderFault {
  readonly stage: string;
  readonly kind: FaultKind;
}

type InjectedFault = readonly [file: string, from: string, to: string];

/** Faults that the campaign must find: a text in a file below `src/`, and its replacement. */
export const INJECTED_FAULTS: Readonly<Record<string, InjectedFault>> = {
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

const SOURCE = join(import.meta.dir, "../../../src");
const THREADS = join(SOURCE, "threads/message_thread.ts");

const control = process.env["READER_FAULT"];
if (control !== undefined) inject(control);

function inject(path: string): void {
  Object.assign(globalThis, {
    meetReaderFault(stage: string): void {
      // The event loop runs some of the same code, but must not fail.
      const fault = isMainThread ? undefined : taken(path, stage);
      if (fault !== undefined) fail(fault.kind);
    },
  });
  const injected = INJECTED_FAULTS[process.env["INJECTED_FAULT"] ?? ""];
  Bun.plugin({
    name: "faults of readers",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path: file }) => {
        return { contents: sourceWithFaults(file, injected), loader: "ts" };
      });
    },
  });
}

/** Lists the errors that would keep a server that preloads this file from starting. */
export function staleReaderFaults(): readonly string[] {
  const called = new Set([...Object.values(STAGES).map(([file]) => join(SOURCE, file)), THREADS]);
  const sources = [
    ...[...called].map((path) => ({ path, injected: undefined })),
    ...Object.values(INJECTED_FAULTS).map((each) => ({
      path: join(SOURCE, each[0]),
      injected: each,
    })),
  ];
  return sources.flatMap(({ injected, path }) => {
    try {
      sourceWithFaults(path, injected);
      return [];
    } catch (error) {
      // The caller reports the error.
      return [`${path}: ${String(error)}`];
    }
  });
}

/**
 * Returns the source of a server file with the calls inserted, and with an injected fault if it
 * belongs in this file.
 *
 * @throws {Error} If the file does not contain one of the quoted lines exactly once.
 */
function sourceWithFaults(path: string, injected: InjectedFault | undefined): string {
  let text = readFileSync(path, "utf8");
  for (const [stage, [file, line]] of Object.entries(STAGES)) {
    if (path !== join(SOURCE, file)) continue;
    text = replaced(text, line, `meetReaderFault(${JSON.stringify(stage)}); ${line}`);
  }
  if (path === THREADS) {
    const preload = JSON.stringify(import.meta.path);
    text = replaced(text, "(entry.href)", `(entry.href, { preload: ${preload} })`);
  }
  if (injected !== undefined && path === join(SOURCE, injected[0])) {
    text = replaced(text, injected[1], injected[2]);
  }
  return text;
}

function replaced(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2)
    throw new Error(`Cannot inject: "${from}" must occur exactly once`);
  return text.replace(from, to);
}

/** Returns the pending fault if it belongs to this stage. Only one thread gets it. */
function taken(path: string, stage: string): ReaderFault | undefined {
  try {
    const fault = JSON.parse(readFileSync(path, "utf8")) as ReaderFault;
    if (fault.stage !== stage) return undefined;
    renameSync(path, `${path}.${threadId}`);
    return fault;
  } catch {
    // There is no fault to inject, or another thread has already injected it.
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
      // An allocation of a typed array that is too large fails in the same way.
      new Float64Array(2 ** 40).fill(1);
      break;
    case "hang":
      for (;;) Atomics.load(ENDLESS, 0);
  }
}

const ENDLESS = new Int32Array(new SharedArrayBuffer(4));
