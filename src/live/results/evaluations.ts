/**
 * Schedules the evaluation of materialised queries.
 *
 *     commit ──► group is due ──► its rest is over? ──► queue ──► evaluated ──► rests
 *
 * An evaluation never runs in the tick of the commit that triggers it, so commits in the same tick
 * share one evaluation. Afterwards, the query rests for a multiple of the time that its evaluation
 * took: an expensive query is evaluated less often, and a cheap query after every commit. All
 * evaluations together leave the event loop at least as much time for other work as they use.
 */
import type { CancelTimer, Clock } from "../../base/clock.ts";

/** The rest after an evaluation, as a multiple of the time that the evaluation took. */
const REST_PER_COST = 3;

/**
 * The shortest rest that is recorded, in milliseconds. Recording shorter rests would take up
 * memory for each of thousands of idle queries.
 */
const REST_MS_MIN = 5;

/** The minimum number of scheduling entries at which the entries of idle queries are removed. */
const TURNS_MIN = 64;

/** The maximum number of concurrent evaluations, in readers and on the event loop. */
const UNDER_WAY_MAX = 4;

/**
 * How long evaluations run on the event loop, in milliseconds, before they pause for as long
 * again.
 */
const WORK_MS_MAX = 5;

export interface Evaluated {
  /**
   * Runs an evaluation. Never rejects. Resolves to false if the query needs no rest, because its
   * result was updated from the changes without an evaluation.
   */
  evaluate(): Promise<boolean>;
}

interface Turn {
  restUntilMs: number;
  isUnderWay: boolean;
  /** Whether a change has arrived since the current evaluation began. */
  isDue: boolean;
  cancelTimer: CancelTimer | undefined;
  /** Whether the query must rest after the current evaluation before it can be evaluated again. */
  mayRest: boolean;
}

export class Evaluations<Each extends Evaluated> {
  readonly #clock: Clock;
  readonly #turns = new Map<Each, Turn>();
  /**
   * The number of scheduling entries that triggers the next removal of the entries of idle
   * queries.
   */
  #turnsMax = TURNS_MIN;
  readonly #queue = new Set<Each>();
  #underWayCount = 0;
  #isPumping = false;
  #workMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Schedules an evaluation of a query at the end of its rest. All requests made before the rest
   * ends share a single evaluation.
   */
  request(each: Each): void {
    const turn = this.#turnOf(each);
    if (turn.isUnderWay) {
      turn.isDue = true;
      return;
    }
    if (turn.cancelTimer !== undefined || this.#queue.has(each)) return;
    const restMs = turn.restUntilMs - this.#clock.monotonicMs();
    if (restMs <= 0) {
      this.#enqueue(each);
      return;
    }
    turn.cancelTimer = this.#clock.after(restMs, () => {
      turn.cancelTimer = undefined;
      this.#enqueue(each);
    });
  }

  /**
   * Schedules an evaluation even if the query is still resting, for example after its rights have
   * changed.
   */
  requestNow(each: Each): void {
    const turn = this.#turnOf(each);
    turn.mayRest = !turn.isUnderWay;
    turn.restUntilMs = Number.NEGATIVE_INFINITY;
    turn.cancelTimer?.();
    turn.cancelTimer = undefined;
    this.request(each);
  }

  /** Makes a query rest for at least `ms` milliseconds from now. */
  postpone(each: Each, ms: number): void {
    this.#turnOf(each).restUntilMs = this.#clock.monotonicMs() + ms;
  }

  forget(each: Each): void {
    this.#turns.get(each)?.cancelTimer?.();
    this.#turns.delete(each);
    this.#queue.delete(each);
  }

  #turnOf(each: Each): Turn {
    const known = this.#turns.get(each);
    if (known !== undefined) return known;
    const turn: Turn = {
      restUntilMs: Number.NEGATIVE_INFINITY,
      isUnderWay: false,
      isDue: false,
      cancelTimer: undefined,
      mayRest: true,
    };
    if (this.#turns.size >= this.#turnsMax) this.#forgetRested();
    this.#turns.set(each, turn);
    return turn;
  }

  /**
   * Removes the scheduling entries of idle queries whose rest is over, because there may be
   * thousands of them.
   */
  #forgetRested(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [each, { cancelTimer, isUnderWay, restUntilMs }] of this.#turns) {
      const isWaiting = isUnderWay || cancelTimer !== undefined || this.#queue.has(each);
      if (!isWaiting && restUntilMs <= nowMs) this.#turns.delete(each);
    }
    this.#turnsMax = Math.max(TURNS_MIN, 2 * this.#turns.size);
  }

  #enqueue(each: Each): void {
    this.#queue.add(each);
    if (!this.#isPumping) void this.#pump();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    while (this.#queue.size > 0 && this.#underWayCount < UNDER_WAY_MAX) {
      await this.#otherWork();
      const [next] = this.#queue;
      if (next === undefined) break;
      this.#queue.delete(next);
      const startMs = this.#clock.monotonicMs();
      void this.#run(next);
      this.#workMs += this.#clock.monotonicMs() - startMs;
    }
    this.#isPumping = false;
  }

  /** Lets other work run: for one tick, or, after long evaluations, for as long as they took. */
  async #otherWork(): Promise<void> {
    if (this.#workMs < WORK_MS_MAX) return await this.#clock.yield();
    const restMs = this.#workMs;
    this.#workMs = 0;
    await new Promise<void>((resolve) => void this.#clock.after(restMs, resolve));
  }

  async #run(each: Each): Promise<void> {
    const turn = this.#turnOf(each);
    turn.isUnderWay = true;
    turn.isDue = false;
    this.#underWayCount += 1;
    const startMs = this.#clock.monotonicMs();
    if ((await each.evaluate()) && turn.mayRest) {
      const endMs = this.#clock.monotonicMs();
      turn.restUntilMs = Math.max(turn.restUntilMs, endMs + REST_PER_COST * (endMs - startMs));
    }
    turn.isUnderWay = false;
    turn.mayRest = true;
    this.#underWayCount -= 1;
    const isKnown = this.#turns.get(each) === turn;
    if (turn.isDue && isKnown) this.request(each);
    else if (isKnown && turn.restUntilMs < this.#clock.monotonicMs() + REST_MS_MIN) {
      this.#turns.delete(each);
    }
    if (this.#queue.size > 0 && !this.#isPumping) void this.#pump();
  }
}
