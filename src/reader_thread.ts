/**
 * The entry point of reader threads. Each runs a {@linkcode QueryReader} driven by messages. The
 * first message contains the reader's setup.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { bunDisk } from "./base/bun_disk.ts";
import { systemClock } from "./base/clock.ts";
import { collectAll, IdleCollection } from "./base/garbage.ts";
import { MemoryPressure } from "./base/memory_pressure.ts";
import { ProcessMemoryGauge } from "./base/process_memory.ts";
import { systemRandom } from "./base/random.ts";
import {
  type AnswerMessage,
  QueryReader,
  type ReaderSettings,
  sleepInThread,
  type ToReader,
  waitForAnswer,
  waitInThread,
} from "./sql/mod.ts";

declare const self: Worker;

/** The data needed to set up a reader thread. */
export interface ReaderSetup {
  readonly settings: ReaderSettings;
  /** The port for answers to the questions that the reader asks while it runs a statement. */
  readonly answers: MessagePort;
}

/**
 * How much garbage sending rows leaves in this thread (cells, strings and their UTF-8 copies), as
 * a multiple of the number of bytes sent.
 */
const SENT_FACTOR = 4;

let reader: QueryReader | undefined;
const collection = new IdleCollection(systemClock);

self.addEventListener("message", ({ data }: MessageEvent<ReaderSetup | ToReader>) => {
  if ("kind" in data) {
    reader?.receive(data);
    collection.noteWork();
    return;
  }
  const { answers, settings } = data;
  const pressure = pressureOn(settings);
  reader = new QueryReader({
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    settings,
    post: (message, moved) => self.postMessage(message, [...moved]),
    wait: waitInThread,
    sleep: sleepInThread,
    takeAnswer(words, answeredCount): AnswerMessage | undefined {
      waitForAnswer(words, answeredCount);
      return receiveMessageOnPort(answers)?.message;
    },
    noteSent: (bytes) => pressure.noteAllocated(SENT_FACTOR * bytes),
  });
});

/**
 * Collects this thread's garbage while the process is short of memory. The thread itself must
 * watch the memory, because a busy thread reads no messages.
 */
function pressureOn({ memoryBytes: bytesMax }: ReaderSettings): MemoryPressure {
  const memory = new ProcessMemoryGauge(bunDisk);
  return new MemoryPressure({
    clock: systemClock,
    bytesMax,
    usedBytes: () => memory.usedBytes(bytesMax),
    giveBack: collectAll,
    // The event loop holds back new work, so a reader does not have to.
    onTight: () => undefined,
    isWatched: true,
  });
}
