/** Runs asynchronous functions one at a time, in the order in which they were added. */
export class WorkLine {
  /** Settles when the last queued function has ended; never rejects. */
  #line: Promise<unknown> = Promise.resolve();

  /** Adds a function to the queue. The returned promise settles with the function's result. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    // The next function runs even if this one has failed.
    this.#line = done.catch(() => undefined);
    return done;
  }
}
