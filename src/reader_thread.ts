/**
 * The entry of the threads that read: a {@linkcode QueryReader} behind messages. The first message
 * says how the reader is set up.
 */
import { bunDisk } from "./base/bun_disk.ts";
import { systemClock } from "./base/clock.ts";
import { systemRandom } from "./base/random.ts";
import { QueryReader, type ReaderSettings, type ToReader, waitInThread } from "./sql/mod.ts";

declare const self: Worker;

let reader: QueryReader | undefined;

self.addEventListener("message", ({ data }: MessageEvent<ReaderSettings | ToReader>) => {
  if ("kind" in data) {
    reader?.receive(data);
    return;
  }
  reader = new QueryReader({
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    settings: data,
    post: (message, moved) => self.postMessage(message, [...moved]),
    wait: waitInThread,
  });
});
