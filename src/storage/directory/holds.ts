/**
 * Keeps files in place while they are being copied, by counting holds and delaying work until
 * there are none.
 */
export class Holds {
  #count = 0;
  readonly #putOff: (() => void)[] = [];

  get isHeld(): boolean {
    return this.#count > 0;
  }

  /**
   * Adds a hold, which lasts until the returned function is called. Further calls have no effect.
   */
  hold(): () => void {
    this.#count += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count -= 1;
      if (this.#count > 0) return;
      for (const action of this.#putOff.splice(0)) action();
    };
  }

  /** Runs `action` immediately if there are no holds, otherwise when the last hold is released. */
  whenFree(action: () => void): void {
    if (this.#count > 0) this.#putOff.push(action);
    else action();
  }
}
