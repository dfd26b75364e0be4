/**
 * Runs a reader in the thread of the event loop, for tests and simulations. The reader receives
 * copies of the same messages as a reader thread, but needs no thread and takes no simulated time.
 */
import type { Clock } from "../../base/clock.ts";
import type { AnswerMessage, FromReader, ToReader } from "./job.ts";
import { QueryReader, type QueryReaderParts } from "./query_reader.ts";
import type { OpenReader } from "./reader_pool.ts";

export function inProcessReader(
  parts: Omit<QueryReaderParts, "noteSent" | "post" | "sleep" | "takeAnswer" | "wait"> & {
    readonly clock: Clock;
  },
): OpenReader {
  return (_number, { onMessage }) => {
    let isOpen = true;
    const answers: AnswerMessage[] = [];
    const later = async (work: () => void): Promise<void> => {
      await parts.clock.yield();
      if (isOpen) work();
    };
    const reader = new QueryReader({
      ...parts,
      post: (message, moved) => {
        const copy: FromReader = structuredClone(message, { transfer: [...moved] });
        // A question must have its answer when this call returns. The "ready" message need not be
        // delayed, because there is no thread whose start takes time.
        if (copy.kind === "ask" || copy.kind === "ready") onMessage(copy);
        else void later(() => onMessage(copy));
      },
      takeAnswer: () => answers.shift(),
      // The event loop runs in this same thread, so it cannot take rows while the reader waits.
      wait: () => false,
      // No time passes during a job in this thread, so a sleep ends immediately.
      sleep: () => false,
      // The event loop counts the same bytes when it receives them.
      noteSent: () => undefined,
    });
    return {
      post(message: ToReader) {
        const copy = structuredClone(message);
        void later(() => reader.receive(copy));
      },
      answer(message) {
        answers.push(structuredClone(message));
      },
      close() {
        isOpen = false;
        reader.close();
      },
    };
  };
}
