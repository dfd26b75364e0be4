/**
 * Makes a reader fail in a server bundled by `faults.ts`. Each stage of the server's readers calls
 * a global function of this module.
 *
 * A call fails once, in the way specified by the file that READER_FAULT names: the first thread
 * that reaches the call removes the file and fails.
 */
import { readFileSync, renameSync } from "node:fs";
import { isMainThread, threadId } from "node:worker_threads";

export const FAULT_KINDS = ["end", "throw", "throw later", "no memory", "hang"] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** The contents of the control file that READER_FAULT names. */
export interface ReaderFault {
  readonly stage: string;
  readonly kind: FaultKind;
}

const control = process.env["READER_FAULT"];
if (control !== undefined) failAsToldBy(control);

function failAsToldBy(path: string): void {
  Object.assign(globalThis, {
    meetReaderFault(stage: string): void {
      // The event loop runs some of the same code as readers, but must not fail.
      const fault = isMainThread ? undefined : taken(path, stage);
      if (fault !== undefined) fail(fault.kind);
    },
  });
}

/** Returns the pending fault if it belongs to this stage. Only one thread receives it. */
function taken(path: string, stage: string): ReaderFault | undefined {
  try {
    const fault = JSON.parse(readFileSync(path, "utf8")) as ReaderFault;
    if (fault.stage !== stage) return undefined;
    renameSync(path, `${path}.${threadId}`);
    return fault;
  } catch {
    // There is no fault to inject, or another thread has already taken it.
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
      // This allocation fails in the same way as any typed array that is too large.
      new Float64Array(2 ** 40).fill(1);
      break;
    case "hang":
      for (;;) Atomics.load(ENDLESS, 0);
  }
}

const ENDLESS = new Int32Array(new SharedArrayBuffer(4));
