/** Runs pieces of work one at a time, in order of arrival. */
export class WorkLine {
  /** Settles when the last queued piece of work has ended; never rejects. */
  #line: Promise<unknown> = Promise.resolve();

  /** Adds work to the queue. Settles with the result of the work. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    // The next piece of work runs even if this piece failed.
    this.#line = done.catch(() => undefined);
    return done;
  }
}
