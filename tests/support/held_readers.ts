/**
 * Readers on this thread that do nothing until a test releases them, and fail when the test says
 * so. A test may also refuse to open readers.
 */
import type { OpenReader, ToReader } from "../../src/sql/mod.ts";

interface HeldReader {
  readonly pass: (message: ToReader) => void;
  readonly fail: (reason: string) => void;
  readonly held: ToReader[];
}

/** A reader that never starts, and ignores all messages. */
const NOTHING: ReturnType<OpenReader> = {
  post: () => undefined,
  answer: () => undefined,
  close: () => undefined,
};

export class HeldReaders {
  readonly #open = new Set<HeldReader>();
  #isHolding = false;
  #started: (() => void)[] = [];
  /** Whether opening a reader is refused. */
  isRefusing = false;
  /** Whether opened readers exit before they report that they have started. */
  isFailingStarts = false;
  /** Whether opened readers report that they have started only once released. */
  isHoldingStarts = false;
  /** The number of statements sent to readers. */
  jobCount = 0;

  /** Makes readers queue the messages that they receive. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Makes readers process the queued messages and continue. */
  release(): void {
    this.#isHolding = false;
    for (const started of this.#started.splice(0)) started();
    for (const { held, pass } of this.#open) for (const message of held.splice(0)) pass(message);
  }

  /** Ends all readers as if their threads had died. */
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
      const port = open(number, {
        ...events,
        onMessage: (message) => {
          const isHeld = this.isHoldingStarts && message.kind === "ready";
          if (isHeld) this.#started.push(() => events.onMessage(message));
          else events.onMessage(message);
        },
      });
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
