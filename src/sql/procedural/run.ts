/** Defines the state of a running function, and the ways in which its statements may end. */
import type { ProgramSteps } from "./asks.ts";
import type { ProgramFrame } from "./frame.ts";
import type { ProgramCursors } from "./open_cursors.ts";
import type { StatementNode } from "./tree.ts";

/** The way in which a list of statements ended early; undefined if it ran to completion. */
export type ListOutcome =
  | { readonly kind: "return" }
  | { readonly kind: "exit"; readonly label: string | undefined; readonly isContinue: boolean }
  | undefined;

/** The state that all calls of a statement share. */
export interface ProgramRun {
  readonly cursors: ProgramCursors;
  readonly frame: ProgramFrame;
  /** Runs a list of statements for the loop or branch that contains it. */
  readonly runStatements: (
    statements: readonly StatementNode[],
    run: ProgramRun,
  ) => ProgramSteps<ListOutcome>;
}
