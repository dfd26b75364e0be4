/**
 * Opens the threads that read, each set up with what the configuration allows one reader.
 */
import type { OpenReader, ReaderSettings, ToReader } from "./sql/mod.ts";
import { startThread } from "./threads/mod.ts";

const ENTRY = new URL("./reader_thread.ts", import.meta.url);

/** @param settings Of a reader, by its number. */
export function readerThreads(settings: (number: number) => ReaderSettings): OpenReader {
  return (number, events) => {
    const thread = startThread<ReaderSettings | ToReader, Parameters<typeof events.onMessage>[0]>(
      ENTRY,
      events,
    );
    thread?.post(settings(number));
    return thread;
  };
}
