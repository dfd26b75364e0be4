/**
 * Collects the notices of the programs that a statement calls. Their number and total length are
 * limited, and further notices are only counted.
 */

/** The maximum number of notices in the result of a statement. */
const NOTICES_MAX = 100;

/** Once the notices have this many characters in total, further ones are only counted. */
const NOTICES_LENGTH_MAX = 1024 * 1024;

export class Notices {
  #messages: string[] = [];
  #count = 0;
  #length = 0;

  add(message: string): void {
    this.#count += 1;
    if (this.#messages.length === NOTICES_MAX || this.#length >= NOTICES_LENGTH_MAX) return;
    this.#length += message.length;
    this.#messages.push(message);
  }

  clear(): void {
    if (this.#count === 0) return;
    this.#messages = [];
    this.#count = 0;
    this.#length = 0;
  }

  /** The notices; undefined if there are none. */
  get messages(): readonly string[] | undefined {
    if (this.#count === 0) return undefined;
    const omitted = this.#count - this.#messages.length;
    return omitted === 0 ? this.#messages : [...this.#messages, `${omitted} more notice(s)`];
  }
}
