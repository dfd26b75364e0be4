/**
 * The entry of the threads that read: a {@linkcode QueryReader} behind messages. The first message
 * says how the reader is set up.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { bunDisk } from "./base/bun_disk.ts";
import { systemClock } from "./base/clock.ts";
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

/** How a reader is set up. */
export interface ReaderSetup {
  readonly settings: ReaderSettings;
  /** By which the answers to its questions come, while it runs a statement. */
  readonly answers: MessagePort;
}

let reader: QueryReader | undefined;

self.addEventListener("message", ({ data }: MessageEvent<ReaderSetup | ToReader>) => {
  if ("kind" in data) {
    reader?.receive(data);
    return;
  }
  const { answers, settings } = data;
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
  });
});
