/** Opens reader threads, each with the limits configured for readers. */
import { MessageChannel } from "node:worker_threads";
import { threadModule } from "./base/sources.ts";
import type { ReaderSetup } from "./reader_thread.ts";
import type { OpenReader, ReaderSettings, ToReader } from "./sql/mod.ts";
import { startThread } from "./threads/mod.ts";

const ENTRY = threadModule("reader_thread", import.meta.url);

/**
 * Returns the function that opens a reader thread.
 * @param settings Returns a reader's settings by its number.
 * @param entry The module that a thread runs.
 */
export function readerThreads(
  settings: (number: number) => ReaderSettings,
  entry: URL = ENTRY,
): OpenReader {
  return (number, { onFailure, onMessage }) => {
    const { port1: answers, port2: inThread } = new MessageChannel();
    const thread = startThread<ReaderSetup | ToReader, Parameters<typeof onMessage>[0]>(entry, {
      onMessage,
      onFailure(reason) {
        answers.close();
        onFailure(reason);
      },
    });
    if (thread === undefined) return undefined;
    thread.post({ settings: settings(number), answers: inThread }, [inThread]);
    return {
      post: (message) => thread.post(message),
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
      answer: (message) => answers.postMessage(message),
      close() {
        thread.close();
        answers.close();
      },
    };
  };
}
