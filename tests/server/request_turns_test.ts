/** How requests that arrive together are served together, and how long they may hold the loop. */
import { expect, test } from "bun:test";
import { RequestTurns } from "../../src/server/request_turns.ts";
import { ManualClock } from "../support/manual_clock.ts";

function requestOf(name: string): Request {
  return new Request(`http://localhost/${name}`, { method: "POST" });
}

function nameOf({ url }: Request): string {
  return url.slice(url.lastIndexOf("/") + 1);
}

function setUp(serveMs: number): { clock: ManualClock; turns: RequestTurns; served: string[] } {
  const clock = new ManualClock();
  const served: string[] = [];
  const turns = new RequestTurns(clock, (request, arrivedMs) => {
    served.push(`${nameOf(request)} of ${arrivedMs} at ${clock.monotonicMs()}`);
    clock.advance(serveMs);
    if (nameOf(request) === "fails") throw new Error("this one fails");
    const response = new Response(nameOf(request));
    return nameOf(request) === "later" ? Promise.resolve(response) : response;
  });
  return { clock, turns, served };
}

test("requests of one turn are served in the next, in the order of their arrival", async () => {
  const { clock, served, turns } = setUp(1);
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
  const answers = ["a", "b", "c", "d", "e"].map((name) => turns.serve(requestOf(name)));
  await clock.yield();
  await answers[0];
  const inFirstTurn = served.length;
  const late = turns.serve(requestOf("f"));
  await Promise.all([...answers, late]);
  expect(inFirstTurn).toBe(2);
  expect(served.map((line) => line.slice(0, 1)).join("")).toBe("abcdef");
});

test("a failure is that of its own request, and a single slow one is served whole", async () => {
  const { served, turns } = setUp(50);
  const refused = turns.serve(requestOf("fails")).catch(String);
  const other = turns.serve(requestOf("b"));
  expect(await (await other).text()).toBe("b");
  expect(await refused).toBe("Error: this one fails");
  expect(served.length).toBe(2);
});
