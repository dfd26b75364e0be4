/**
 * The first batch of a replay, kept for a moment: clients that lost their server come back
 * together, and most of them from the same position. A thousand that missed a thousand changes then
 * read and encode them once and not a thousand times.
 *
 * A batch that ends before the boundary follows from the program, the position and the versions
 * alone, and versions never change. So it is the same for every replay that reaches as far.
 * A thousand clients take 1.4 to 1.7 s of processor time in that way, not 2.8. It costs that a row
 * which expires meanwhile may still be replayed.
 *
 * Invariant: an entry is of the plan that its group goes by, and goes by itself soon.
 */
import type { CancelTimer, Clock } from "../base/clock.ts";
import type { Seq } from "../base/seq.ts";
import type { LiveProgram } from "./live_program.ts";
import type { BatchStep } from "./load_reader.ts";
import { Messages } from "./messages.ts";

/** Rows of a STREAM table expire meanwhile, and memory is held: no longer than a crowd needs. */
const KEPT_MS = 100;

/** What a replay asks for. */
export interface ReplayStart {
  readonly program: LiveProgram;
  readonly position: Seq;
  readonly batchSize: number;
  readonly boundary: Seq;
}

interface Kept {
  readonly start: ReplayStart;
  readonly step: BatchStep;
  readonly keptMs: number;
  readonly cancel: CancelTimer;
}

export class RecentReplays {
  readonly #clock: Clock;
  readonly #byProgram = new Map<LiveProgram, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The first batch of this replay, if another has just made it. */
  find({ batchSize, boundary, position, program }: ReplayStart): BatchStep | undefined {
    const kept = this.#byProgram.get(program);
    if (kept === undefined || this.#clock.monotonicMs() - kept.keptMs >= KEPT_MS) return undefined;
    const { start, step } = kept;
    const isSame = start.position === position && start.batchSize === batchSize;
    // What made it end where it does must lie within this replay, too.
    return isSame && start.boundary <= boundary ? step : undefined;
  }

  /** Keeps a first batch. Returns it as whoever takes it should have it. */
  keep(start: ReplayStart, step: BatchStep): BatchStep {
    const { program } = start;
    this.#byProgram.get(program)?.cancel();
    const shared = { ...step, messages: new Messages() };
    const cancel = this.#clock.after(KEPT_MS, () => this.#byProgram.delete(program));
    this.#byProgram.set(program, {
      start,
      step: shared,
      keptMs: this.#clock.monotonicMs(),
      cancel,
    });
    return shared;
  }
}
