/**
 * Runs the server of a check, and interrupts it: writers pause for a moment, and the process is
 * stopped or killed and started again. All clients ask this object whether the server is up.
 */
import type { SeededRandom } from "../../support/seeded_random.ts";
import type { ServerProcess } from "../../support/server_process.ts";

export type Signal = "SIGTERM" | "SIGKILL";

export class World {
  readonly server: ServerProcess;
  readonly restarts: Record<Signal, number> = { SIGTERM: 0, SIGKILL: 0 };
  #lives = 1;
  #isUp = true;
  #isOpen = true;
  /** The reason why the server could not be restarted; undefined unless a restart has failed. */
  #failure: Error | undefined;
  #atWork = 0;
  #waiting: (() => void)[] = [];

  constructor(server: ServerProcess) {
    this.server = server;
  }

  /**
   * The number of the server's current life; undefined while the server restarts. A restart may
   * begin between any await and the next statement. If the number differs before and after a
   * failed request, the restart may be the reason for the failure.
   */
  get life(): number | undefined {
    return this.#isUp ? this.#lives : undefined;
  }

  /**
   * Resolves once the server is up.
   * @throws If the server could not be restarted.
   */
  async whenUp(): Promise<void> {
    while (!this.#isUp) await this.#changed();
  }

  /** Runs a part of a writer's work, after waiting if the writers are paused. */
  async atWork(work: () => Promise<void>): Promise<void> {
    while (!this.#isOpen || !this.#isUp) await this.#changed();
    this.#atWork += 1;
    try {
      await work();
    } finally {
      this.#atWork -= 1;
      this.#tell();
    }
  }

  /**
   * Runs an action while no writer is active. Pending statements are allowed to finish and are
   * recorded first.
   */
  async inSilence(act: () => Promise<void>): Promise<void> {
    this.#isOpen = false;
    try {
      while (this.#atWork > 0) await this.#changed();
      await act();
    } finally {
      this.#isOpen = true;
      this.#tell();
    }
  }

  /** Ends the process in the middle of its work, and restarts it on the same data. */
  async restart(signal: Signal): Promise<void> {
    this.#isUp = false;
    this.restarts[signal] += 1;
    try {
      await this.server.restart(signal);
    } catch (error) {
      this.#failure = new Error("Cannot restart the server", { cause: error });
      this.#tell();
      throw error;
    }
    this.#lives += 1;
    this.#isUp = true;
    this.#tell();
  }

  async #changed(): Promise<void> {
    if (this.#failure === undefined) await new Promise<void>((wake) => this.#waiting.push(wake));
    if (this.#failure !== undefined) throw this.#failure;
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/** Runs actions one after another, spread over a run. The progress of the run goes from 0 to 1. */
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
