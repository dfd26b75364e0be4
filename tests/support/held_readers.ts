/**
 * Readers in this thread that do nothing until a test lets them, that fail when it says so, and of
 * which it may refuse to open any.
 */
import type { OpenReader, ToReader } from "../../src/sql/mod.ts";

interface HeldReader {
  readonly pass: (message: ToReader) => void;
  readonly fail: (reason: string) => void;
  readonly held: ToReader[];
}

/** A reader that does not start. */
const NOTHING: ReturnType<OpenReader> = {
  post: () => undefined,
  answer: () => undefined,
  close: () => undefined,
};

export class HeldReaders {
  readonly #open = new Set<HeldReader>();
  #isHolding = false;
  /** Whether no reader can be opened. */
  isRefusing = false;
  /** Whether readers that are opened end before they have started. */
  isFailingStarts = false;
  /** Statements that readers were sent. */
  jobCount = 0;

  /** Has readers keep what they are sent. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Has readers take what they kept, and go on. */
  release(): void {
    this.#isHolding = false;
    for (const { held, pass } of this.#open) for (const message of held.splice(0)) pass(message);
  }

  /** Ends all readers, as if their threads had. */
  failAll(): void {
    for (const reader of this.#open) {
      this.#open.delete(reader);
      reader.fail("it ended");
    }
  }

  wrap(open: OpenReader): OpenReader {
    return (number, events) => {
      if (this.isRefusing) return undefined;
      if (this.isFailingStarts) {
        setImmediate(() => events.onFailure("it did not start"));
        return NOTHING;
      }
      const port = open(number, events);
      if (port === undefined) return undefined;
      const reader: HeldReader = {
        pass: (message) => port.post(message),
        fail: (reason) => {
          port.close();
          events.onFailure(reason);
        },
        held: [],
      };
      this.#open.add(reader);
      return {
        post: (message) => {
          if (message.kind === "run") this.jobCount += 1;
          if (this.#isHolding) reader.held.push(message);
          else port.post(message);
        },
        answer: (message) => port.answer(message),
        close: () => {
          this.#open.delete(reader);
          port.close();
        },
      };
    };
  }
}
