/**
 * Files that must stay where they are while somebody copies them: how many hold them, and what is
 * put off until nobody does.
 */
export class Holds {
  #count = 0;
  readonly #putOff: (() => void)[] = [];

  get isHeld(): boolean {
    return this.#count > 0;
  }

  /** Holds until the function that is returned is called; further calls of it do nothing. */
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

  /** Does it now, or once nobody holds any more. */
  whenFree(action: () => void): void {
    if (this.#count > 0) this.#putOff.push(action);
    else action();
  }
}
