/**
 * Work of which one piece at a time may run, in the order in which it was asked for.
 */
export class WorkLine {
  /** Settles when the last piece in line has ended, and never fails. */
  #line: Promise<unknown> = Promise.resolve();

  /** Resolves, or rejects, as the work does. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    // Who waits in line does not care how the one before ended.
    this.#line = done.catch(() => undefined);
    return done;
  }
}
