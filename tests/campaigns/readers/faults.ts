/**
 * Bundles a server with readers that can be made to fail: each stage of the reader code calls a
 * global function of `fault_point.ts`. The server's own code does not refer to this file.
 *
 * The server may also have a fault in the event loop that the campaign must find.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundleChangedServer, SOURCES } from "../../support/changed_server.ts";

/**
 * The places where calls are inserted: a file below `src/`, and the line before which the call is
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

type InjectedFault = readonly [file: string, from: string, to: string];

/** Faults that the campaign must find. Each fault replaces some text in a file below `src/`. */
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

/** The module that the inserted calls use. */
const FAULT_POINT = join(import.meta.dir, "fault_point.ts");

/**
 * Bundles a server with readers that call {@linkcode FAULT_POINT} in each stage.
 *
 * @param folder The absolute path of the folder for the bundle.
 * @param injected One of INJECTED_FAULTS to add to the server.
 * @returns The command that starts the server.
 */
export function bundleWithReaderFaults(
  folder: string,
  injected: string | undefined,
): Promise<readonly string[]> {
  const fault = INJECTED_FAULTS[injected ?? ""];
  return bundleChangedServer(folder, {
    first: FAULT_POINT,
    sourceOf: (path) => sourceWithFaults(path, fault),
  });
}

/** Lists the errors that would prevent the bundling of a server with faults. */
export function staleReaderFaults(): readonly string[] {
  const called = new Set(Object.values(STAGES).map(([file]) => join(SOURCES, file)));
  const sources = [
    ...[...called].map((path) => ({ path, injected: undefined })),
    ...Object.values(INJECTED_FAULTS).map((each) => ({
      path: join(SOURCES, each[0]),
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
    if (path !== join(SOURCES, file)) continue;
    text = replaced(text, line, `meetReaderFault(${JSON.stringify(stage)}); ${line}`);
  }
  if (injected !== undefined && path === join(SOURCES, injected[0])) {
    text = replaced(text, injected[1], injected[2]);
  }
  return text;
}

function replaced(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2)
    throw new Error(`Cannot inject: "${from}" must occur exactly once`);
  return text.replace(from, to);
}
