/**
 * Measures the memory that an idle subscription costs the server.
 *
 * Opens connections to the real server, logs them in, and subscribes once on each. After each
 * step, the server collects its garbage, and the script reads the server's proportional set size
 * (PSS) without files. Opening the same number of sockets to a server that does nothing shows the
 * runtime's share. `--queries` is the number of different queries, `--snapshot` requests a
 * snapshot in addition to changes, and `--objects` shows which kinds of objects grew with the
 * subscriptions.
 */

import { countOption, flag, readOptions } from "../support/arguments.ts";
import { type Heap, measureIdle } from "./idle_memory/measure.ts";

const SETTLE_MS = 8000;

const COUNTED_MIN = 0.5;

const options = readOptions({
  connections: countOption("the number of connections, each with a subscription", 5000),
  queries: countOption("the number of different queries among the subscriptions", 1),
  snapshot: flag("requests a snapshot in addition to changes"),
  objects: flag("shows which kinds of object grew with the subscriptions"),
});
const { connections: connectionCount, queries: queryCount } = options;

const report = await measureIdle({
  connectionCount,
  queryCount,
  withSnapshot: options.snapshot,
  settleMs: SETTLE_MS,
});
const { bare, connection, heaps, subscription, together } = report;
const objects = (heaps.subscribed.heapSize - heaps.before.heapSize) / connectionCount;
process.stdout.write(
  `bare socket of the runtime: ${bare.toFixed(0)} bytes\n` +
    `${connectionCount} connections, ${queryCount} queries: a connection ` +
    `${connection.toFixed(0)} bytes, its subscription ${subscription.toFixed(0)} more; together ` +
    `${together.toFixed(0)} beyond the bare socket ` +
    `(objects of JavaScript: ${objects.toFixed(0)})\n`,
);
if (options.objects) {
  printGrowth("a connection", heaps.before, heaps.connected);
  printGrowth("a subscription", heaps.connected, heaps.subscribed);
}
process.exit();

function printGrowth(what: string, before: Heap, after: Heap): void {
  process.stdout.write(`objects of ${what}:\n`);
  const grown = Object.entries(after.objectTypeCounts)
    .map(
      ([kind, count]) =>
        [kind, (count - (before.objectTypeCounts[kind] ?? 0)) / connectionCount] as const,
    )
    .filter(([, count]) => count >= COUNTED_MIN)
    .toSorted(([, left], [, right]) => right - left);
  for (const [kind, count] of grown) process.stdout.write(`  ${count.toFixed(1)} ${kind}\n`);
}
