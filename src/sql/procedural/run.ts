/** Defines the state of a function that runs, and how its statements end. */
import type { ProgramSteps } from "./asks.ts";
import type { ProgramFrame } from "./frame.ts";
import type { ProgramCursors } from "./open_cursors.ts";
import type { StatementNode } from "./tree.ts";

/** How a list of statements ends early; undefined if it runs to its end. */
export type ListOutcome =
  | { readonly kind: "return" }
  | { readonly kind: "exit"; readonly label: string | undefined; readonly isContinue: boolean }
  | undefined;

/** The state that the calls of one statement share. */
export interface ProgramRun {
  readonly cursors: ProgramCursors;
  readonly frame: ProgramFrame;
  /** Runs statements one after another, for the loops and branches that contain them. */
  readonly runStatements: (
    statements: readonly StatementNode[],
    run: ProgramRun,
  ) => ProgramSteps<ListOutcome>;
}
