/**
 * A disk that removes files off the event loop, and completes each removal only when a test
 * requests it.
 */
import { ForwardingDisk } from "./forwarding_disk.ts";

export class SlowDisk extends ForwardingDisk {
  /** The paths whose removal has been requested so far. */
  readonly asked: string[] = [];
  #finish: () => void = () => undefined;

  override removeSoon(path: string): Promise<void> {
    this.asked.push(path);
    const { promise, reject, resolve } = Promise.withResolvers<void>();
    this.#finish = () => {
      try {
        this.remove(path);
        resolve();
      } catch (error) {
        reject(error);
      }
    };
    return promise;
  }

  /** Finishes the current removal. Resolves once the next removal has been requested. */
  async finish(): Promise<void> {
    this.#finish();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
