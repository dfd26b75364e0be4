/**
 * A reader in the thread of the event loop, for tests and simulations: it is sent copies of the
 * same messages, and takes no thread and no time of its own.
 */
import type { Clock } from "../../base/clock.ts";
import type { AnswerMessage, FromReader, ToReader } from "./job.ts";
import { QueryReader, type QueryReaderParts } from "./query_reader.ts";
import type { OpenReader } from "./reader_pool.ts";

export function inProcessReader(
  parts: Omit<QueryReaderParts, "post" | "sleep" | "takeAnswer" | "wait"> & {
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
        // An answer is there when this returns, and there is no thread that would have to start.
        if (copy.kind === "ask" || copy.kind === "ready") onMessage(copy);
        else void later(() => onMessage(copy));
      },
      takeAnswer: () => answers.shift(),
      // Rows are taken in later turns of this very thread.
      wait: () => false,
      // No time goes by in a job of this thread.
      sleep: () => false,
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
