/**
 * Throws inside a server bundled by `injected_faults.ts`. The server's stages call this module's
 * global function, in the process and in its threads.
 *
 * The function throws once, in the stage named in the INJECTED_FAULT file, after that stage has
 * been passed as many times as the file says.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { AssertionError } from "../../src/base/assert.ts";
import type { FaultStage } from "./injected_faults.ts";

/** The contents of the INJECTED_FAULT file. */
export interface InjectedFault {
  readonly stage: FaultStage;
  readonly kind: FaultKind;
  /** The number of times that the stage is passed before the fault. */
  readonly skip: number;
}

export const FAULT_KINDS = ["assertion", "type", "range", "stack", "value"] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

const control = process.env["INJECTED_FAULT"];
if (control !== undefined) inject(control);

function inject(path: string): void {
  let armed = "";
  let passed = 0;
  Object.assign(globalThis, {
    meetInjectedFault(stage: string): void {
      if (!existsSync(path)) return;
      const text = readFileSync(path, "utf8");
      if (text !== armed) passed = 0;
      armed = text;
      const bug = JSON.parse(text) as InjectedFault;
      if (bug.stage !== stage) return;
      passed += 1;
      if (passed <= bug.skip) return;
      rmSync(path);
      fail(bug.kind);
    },
  });
}

function fail(kind: FaultKind): never {
  switch (kind) {
    case "assertion":
      throw new AssertionError("an injected fault");
    case "type":
      return (undefined as unknown as { injected: () => never }).injected();
    case "range":
      throw new RangeError(`an injected fault: ${"x".repeat(-1)}`);
    case "stack":
      throw new Error(`an injected fault that did not overflow: ${overflow(1)}`);
    case "value":
      // oxlint-disable-next-line typescript/only-throw-error -- some code might
      throw "an injected fault";
  }
}

/**
 * Overflows the stack. The recursive call must not be a tail call, because a tail call would use
 * no stack frame.
 */
function overflow(depth: number): number {
  return overflow(depth + 1) + depth;
}
