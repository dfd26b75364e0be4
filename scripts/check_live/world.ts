/**
 * The server of a run and what happens to it: writers stop for a moment, the process is stopped or
 * killed and started again. Everybody who talks to it asks here whether it is up.
 */
import type { SeededRandom } from "../../tests/support/seeded_random.ts";
import type { ServerProcess } from "../../tests/support/server_process.ts";

export type Signal = "SIGTERM" | "SIGKILL";

export class World {
  readonly server: ServerProcess;
  readonly restarts: Record<Signal, number> = { SIGTERM: 0, SIGKILL: 0 };
  #lives = 1;
  #isUp = true;
  #isOpen = true;
  #atWork = 0;
  #waiting: (() => void)[] = [];

  constructor(server: ServerProcess) {
    this.server = server;
  }

  /**
   * Which life of the server this is; undefined between two. A restart may begin between any await
   * and what follows it, so what was sent has failed for no other reason unless it saw one and the
   * same life from its start to its end.
   */
  get life(): number | undefined {
    return this.#isUp ? this.#lives : undefined;
  }

  /** Resolves while the server is up. */
  async whenUp(): Promise<void> {
    while (!this.#isUp) await this.#changed();
  }

  /** Runs a statement, but not while writers are stopped. */
  async atWork<T>(work: () => Promise<T>): Promise<T> {
    while (!this.#isOpen || !this.#isUp) await this.#changed();
    this.#atWork += 1;
    try {
      return await work();
    } finally {
      this.#atWork -= 1;
      this.#tell();
    }
  }

  /** Runs something while nobody writes: statements under way end first, what they were known. */
  async inSilence<T>(act: () => Promise<T>): Promise<T> {
    this.#isOpen = false;
    try {
      while (this.#atWork > 0) await this.#changed();
      return await act();
    } finally {
      this.#isOpen = true;
      this.#tell();
    }
  }

  /** Ends the process in the middle of what it does, and starts it again on its data. */
  async restart(signal: Signal): Promise<void> {
    this.#isUp = false;
    this.restarts[signal] += 1;
    await this.server.restart(signal);
    this.#lives += 1;
    this.#isUp = true;
    this.#tell();
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/** Does one thing after the other, spread over a run whose progress goes from 0 to 1. */
export async function spread(
  acts: readonly (() => Promise<void>)[],
  { progress, random }: { progress: () => number; random: SeededRandom },
): Promise<void> {
  const moments = acts.map(() => random.below(950) / 1000).toSorted((left, right) => left - right);
  for (const [index, act] of random.shuffle([...acts]).entries()) {
    while (progress() < (moments[index] ?? 0)) await Bun.sleep(5);
    await act();
  }
}
