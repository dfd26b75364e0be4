/**
 * A disk that is asked to remove a file off the event loop, and does so when a test tells it to.
 */
import { ForwardingDisk } from "./forwarding_disk.ts";

export class SlowDisk extends ForwardingDisk {
  /** Paths of files that were to be removed so far. */
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

  /** Lets the removal under way end; returns once what comes next was asked for. */
  async finish(): Promise<void> {
    this.#finish();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
