/** How requests that arrive together are served together, and how long they may hold the loop. */
import { expect, test } from "bun:test";
import { RequestTurns } from "../../../src/server/http/request_turns.ts";
import { ManualClock } from "../../support/manual_clock.ts";

function requestOf(name: string): Request {
  return new Request(`http://localhost/${name}`, { method: "POST" });
}

function nameOf({ url }: Request): string {
  return url.slice(url.lastIndexOf("/") + 1);
}

function setUp(serveMs: number): { clock: ManualClock; turns: RequestTurns; served: string[] } {
  const clock = new ManualClock();
  const served: string[] = [];
  const turns = new RequestTurns(clock, async (request, arrivedMs) => {
    served.push(`${nameOf(request)} of ${arrivedMs} at ${clock.monotonicMs()}`);
    clock.advance(serveMs);
    const response = new Response(nameOf(request));
    if (nameOf(request) === "later") await clock.yield();
    return response;
  });
  return { clock, turns, served };
}

/** Requests that are many, so that those of the next turn wait for each other. */
async function crowd(turns: RequestTurns, clock: ManualClock): Promise<void> {
  for (let index = 0; index < 8; index += 1) await turns.serve(requestOf("crowd"));
  await clock.yield();
}

test("few requests are served as they come, and many from the turn behind them on", async () => {
  const { clock, served, turns } = setUp(1);
  for (let index = 0; index < 8; index += 1) void turns.serve(requestOf("a"));
  expect(served.length).toBe(8);
  await clock.yield();
  const waiting = turns.serve(requestOf("b"));
  expect(served.length).toBe(8);
  await waiting;
  expect(served.length).toBe(9);
  await clock.yield();
  void turns.serve(requestOf("c"));
  expect(served.length).toBe(10);
});

test("requests of one turn are served in the next, in the order of their arrival", async () => {
  const { clock, served, turns } = setUp(1);
  await crowd(turns, clock);
  served.length = 0;
  const startMs = clock.monotonicMs();
  const first = turns.serve(requestOf("a"));
  clock.advance(2);
  const second = turns.serve(requestOf("later"));
  expect(served).toEqual([]);
  expect(await (await first).text()).toBe("a");
  expect(await (await second).text()).toBe("later");
  expect(served).toEqual([
    `a of ${startMs} at ${startMs + 2}`,
    `later of ${startMs + 2} at ${startMs + 3}`,
  ]);
});

test("a turn ends after some milliseconds, and the rest is served in later ones", async () => {
  const { clock, served, turns } = setUp(5);
  await crowd(turns, clock);
  served.length = 0;
  const answers = ["a", "b", "c", "d", "e"].map((name) => turns.serve(requestOf(name)));
  await answers[0];
  const inFirstTurn = served.length;
  const late = turns.serve(requestOf("f"));
  await Promise.all([...answers, late]);
  expect(inFirstTurn).toBe(2);
  expect(served.map((line) => line.slice(0, 1)).join("")).toBe("abcdef");
});

test("a single slow request is served whole, and the next in a turn of its own", async () => {
  const { clock, served, turns } = setUp(50);
  await crowd(turns, clock);
  served.length = 0;
  const slow = turns.serve(requestOf("slow"));
  const other = turns.serve(requestOf("b"));
  expect(await (await slow).text()).toBe("slow");
  expect(served.length).toBe(1);
  expect(await (await other).text()).toBe("b");
  expect(served.length).toBe(2);
});
