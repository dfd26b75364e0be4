/** A queue that runs one piece of work at a time, in order of arrival. */
export class WorkLine {
  /** Settles when the last piece of work in the queue has ended. It never rejects. */
  #line: Promise<unknown> = Promise.resolve();

  /** Adds work to the queue. Resolves or rejects like the work. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    // The next piece runs even if this one failed.
    this.#line = done.catch(() => undefined);
    return done;
  }
}
