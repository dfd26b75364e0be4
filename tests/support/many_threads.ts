/**
 * Starts many threads at once, for a test that limits the file descriptors of the process. Prints
 * how many threads have started, and exits.
 */
import { startThread } from "../../src/threads/mod.ts";

const WANTED = 20;

const greetings: Promise<void>[] = [];
for (let index = 0; index < WANTED; index += 1) {
  const { promise, reject, resolve } = Promise.withResolvers<void>();
  const thread = startThread(new URL("greeting_worker.ts", import.meta.url), {
    onMessage: () => resolve(),
    onFailure: (reason) => reject(new Error(reason)),
  });
  if (thread === undefined) break;
  greetings.push(promise);
}
await Promise.all(greetings);
process.stdout.write(`${greetings.length}\n`);
process.exit(0);
