/**
 * Tests how the server handles requests that arrive together, and how long they may occupy the
 * event loop.
 */
import { expect, test } from "bun:test";
import { RequestBatches } from "../../../src/server/http/request_batches.ts";
import { ManualClock } from "../../support/manual_clock.ts";

function requestOf(name: string): Request {
  return new Request(`http://localhost/${name}`, { method: "POST" });
}

function nameOf({ url }: Request): string {
  return url.slice(url.lastIndexOf("/") + 1);
}

function setUp(serveMs: number): { clock: ManualClock; batches: RequestBatches; served: string[] } {
  const clock = new ManualClock();
  const served: string[] = [];
  const batches = new RequestBatches(clock, async (request, arrivedMs) => {
    served.push(`${nameOf(request)} of ${arrivedMs} at ${clock.monotonicMs()}`);
    clock.advance(serveMs);
    const response = new Response(nameOf(request));
    if (nameOf(request) === "later") await clock.yield();
    return response;
  });
  return { clock, batches, served };
}

/** Sends so many requests that the requests of the next tick have to wait. */
async function crowd(batches: RequestBatches, clock: ManualClock): Promise<void> {
  for (let index = 0; index < 8; index += 1) await batches.serve(requestOf("crowd"));
  await clock.yield();
}

test("few requests are served as they arrive, and many in the following ticks", async () => {
  const { clock, served, batches } = setUp(1);
  for (let index = 0; index < 8; index += 1) void batches.serve(requestOf("a"));
  expect(served.length).toBe(8);
  await clock.yield();
  const waiting = batches.serve(requestOf("b"));
  expect(served.length).toBe(8);
  await waiting;
  expect(served.length).toBe(9);
  await clock.yield();
  void batches.serve(requestOf("c"));
  expect(served.length).toBe(10);
});

test("requests of one tick are served in the next, in the order of arrival", async () => {
  const { clock, served, batches } = setUp(1);
  await crowd(batches, clock);
  served.length = 0;
  const startMs = clock.monotonicMs();
  const first = batches.serve(requestOf("a"));
  clock.advance(2);
  const second = batches.serve(requestOf("later"));
  expect(served).toEqual([]);
  expect(await (await first).text()).toBe("a");
  expect(await (await second).text()).toBe("later");
  expect(served).toEqual([
    `a of ${startMs} at ${startMs + 2}`,
    `later of ${startMs + 2} at ${startMs + 3}`,
  ]);
});

test("a tick ends after some milliseconds, and the remaining requests are served in later ticks", async () => {
  const { clock, served, batches } = setUp(5);
  await crowd(batches, clock);
  served.length = 0;
  const answers = ["a", "b", "c", "d", "e"].map((name) => batches.serve(requestOf(name)));
  await answers[0];
  const inFirstTurn = served.length;
  const late = batches.serve(requestOf("f"));
  await Promise.all([...answers, late]);
  expect(inFirstTurn).toBe(2);
  expect(served.map((line) => line.slice(0, 1)).join("")).toBe("abcdef");
});

test("a single slow request is served completely, and the next one in a separate tick", async () => {
  const { clock, served, batches } = setUp(50);
  await crowd(batches, clock);
  served.length = 0;
  const slow = batches.serve(requestOf("slow"));
  const other = batches.serve(requestOf("b"));
  expect(await (await slow).text()).toBe("slow");
  expect(served.length).toBe(1);
  expect(await (await other).text()).toBe("b");
  expect(served.length).toBe(2);
});
