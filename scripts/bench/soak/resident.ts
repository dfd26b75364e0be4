/** Records the memory of processes over time, once a second. */
import { median } from "../../support/statistics.ts";
import { heldBytes } from "./target.ts";

export interface ResidentReport {
  readonly median: number;
  readonly most: number;
  /** The growth in bytes per minute after the load has settled; undefined if it never settled. */
  readonly slope: number | undefined;
}

type Sample = readonly [atMs: number, bytes: number];

const LOOK_MS = 1000;
const MINUTE_MS = 60_000;

/**
 * The initial period, in milliseconds, in which caches fill and code is compiled. Its samples do
 * not count.
 */
const SETTLED_MS = 5 * MINUTE_MS;

export class Watch {
  readonly #pids: () => readonly number[];
  readonly #samples: Sample[] = [];
  #startMs = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(pids: () => readonly number[]) {
    this.#pids = pids;
  }

  begin(): void {
    this.#startMs = performance.now();
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#look();
  }

  get report(): ResidentReport {
    const held = this.#samples.map(([, bytes]) => bytes);
    const settled = this.#samples.filter(([atMs]) => atMs >= SETTLED_MS);
    const [first, last] = [settled[0], settled.at(-1)];
    const isLong = first !== undefined && last !== undefined && last[0] - first[0] >= MINUTE_MS;
    return {
      median: median(held),
      most: Math.max(0, ...held),
      slope: isLong ? slopeOf(settled) * MINUTE_MS : undefined,
    };
  }

  /** Returns the median memory of each minute. */
  get byMinute(): readonly Sample[] {
    const minutes = Map.groupBy(this.#samples, ([atMs]) => Math.floor(atMs / MINUTE_MS));
    return [...minutes].map(([minute, samples]) => [
      minute * MINUTE_MS,
      median(samples.map(([, bytes]) => bytes)),
    ]);
  }

  #look(): void {
    const bytes = heldBytes(this.#pids());
    // A process that has ended reports no memory, which must not count as a sample.
    if (bytes > 0) this.#samples.push([performance.now() - this.#startMs, bytes]);
  }
}

/** Returns the slope of the least-squares line through the samples. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [middleMs, middleBytes] = [mean(([atMs]) => atMs), mean(([, bytes]) => bytes)];
  const shared = mean(([atMs, bytes]) => (atMs - middleMs) * (bytes - middleBytes));
  return shared / mean(([atMs]) => (atMs - middleMs) ** 2);
}
