/**
 * How far the disk has the log, and who waits for it to have more.
 *
 * Invariant: nobody waits for a seq that the disk has, or once the log has failed.
 */
export class SyncedSeq {
  /** Highest seq that the disk has. */
  #seq: number;
  #waiters: { readonly seq: number; readonly done: PromiseWithResolvers<void> }[] = [];

  constructor(seq: number) {
    this.#seq = seq;
  }

  /** Resolves once the disk has a seq; rejects with what {@linkcode fail} is given. */
  reached(seq: number): Promise<void> {
    if (seq <= this.#seq) return Promise.resolve();
    const done = Promise.withResolvers<void>();
    this.#waiters.push({ seq, done });
    return done.promise;
  }

  /** The disk has everything up to a seq. */
  note(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.seq > this.#seq);
    for (const waiter of waiters) if (waiter.seq <= this.#seq) waiter.done.resolve();
  }

  /** It will have no more. */
  fail(error: unknown): void {
    for (const { done } of this.#waiters.splice(0)) done.reject(error);
  }
}
