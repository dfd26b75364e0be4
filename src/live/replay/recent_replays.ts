/**
 * Caches the first batch of a replay for a moment. Clients that lost their server reconnect at the
 * same time, most of them from the same position. If a thousand clients have missed the same
 * thousand changes, these are read and encoded once, not a thousand times.
 *
 * A batch that ends before the boundary is determined solely by the program, the position and the
 * versions, and versions never change. The batch is therefore the same for every replay whose
 * boundary is at or after the end of the batch. Sharing it halves the processor time of such a
 * reconnect. In return, a row that has expired in the meantime may still be replayed.
 *
 * Invariant: an entry belongs to the current plan of its group, and expires after a short time.
 */
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { Seq } from "../../base/seq.ts";
import { Messages } from "../delivery/messages.ts";
import type { LiveProgram } from "../program/live_program.ts";
import type { PositionedBatch } from "../subscription/load_reader.ts";

/**
 * The lifetime of an entry. It is short, because rows of a STREAM table may expire in the meantime
 * and the entry takes up memory.
 */
const KEPT_MS = 100;

/** The parameters that determine the first batch of a replay. */
export interface ReplayStart {
  readonly program: LiveProgram;
  readonly position: Seq;
  readonly batchSize: number;
  readonly boundary: Seq;
}

interface KeptReplay {
  readonly start: ReplayStart;
  readonly step: PositionedBatch;
  readonly keptMs: number;
  readonly cancel: CancelTimer;
}

export class RecentReplays {
  readonly #clock: Clock;
  readonly #byProgram = new Map<LiveProgram, KeptReplay>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the first batch of this replay if another replay has recently built it; otherwise
   * undefined.
   */
  find({ batchSize, boundary, position, program }: ReplayStart): PositionedBatch | undefined {
    const kept = this.#byProgram.get(program);
    if (kept === undefined || this.#clock.monotonicMs() - kept.keptMs >= KEPT_MS) return undefined;
    const { start, step } = kept;
    const isSame = start.position === position && start.batchSize === batchSize;
    // A shared batch must not extend beyond the boundary of the current replay.
    return isSame && start.boundary <= boundary ? step : undefined;
  }

  /** Caches a first batch. Returns the batch in the form shared with other replays. */
  keep(start: ReplayStart, step: PositionedBatch): PositionedBatch {
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
