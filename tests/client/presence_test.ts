/**
 * Tests `db.presence` against a scripted server: the statements of its heartbeats, their order,
 * and the refusal of wrong arguments.
 */
import { expect, test } from "bun:test";
import {
  createClient,
  type Presence,
  type PresenceOptions,
  type ServerError,
} from "../../src/client/mod.ts";
import { type Answer, FakeServer } from "./scripted_server.ts";

const OPTIONS: PresenceOptions = { table: "chat.presence", onChange: () => {} };

interface Entered {
  readonly server: FakeServer;
  readonly presence: Presence;
  readonly errors: ServerError[];
}

function enter(options: Partial<PresenceOptions> = {}): Entered {
  const server = new FakeServer();
  const db = createClient({
    url: "http://db.test",
    auth: { user: "ada", password: "x" },
    environment: server,
  });
  const errors: ServerError[] = [];
  const onError = (error: ServerError): void => void errors.push(error);
  const presence = db.presence("lobby", { ...OPTIONS, onError, ...options });
  return { server, presence, errors };
}

/** Waits until pending promises have settled. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

/** Returns the first word and the parameters of each statement sent so far. */
function statements({ requests }: FakeServer): unknown[][] {
  return requests
    .filter(({ path }) => path.endsWith("/sql"))
    .map(({ request: { body = "{}" } }) => {
      const { params, sql } = JSON.parse(body) as { sql: string; params: unknown[] };
      return [sql.slice(0, "INSERT".length)].concat(params as string[]);
    });
}

/** Fires the timer of the next heartbeat. */
function fireBeat({ timers }: FakeServer, delayMs: number): void {
  for (const timer of timers) {
    if (timer.delayMs !== delayMs) continue;
    timers.delete(timer);
    timer.callback();
    return;
  }
  throw new Error(`no beat waits for ${delayMs} ms`);
}

test("presence sends heartbeats with the state, and leaves with a deletion", async () => {
  const { presence, server } = enter({ state: { cursor: 3 }, beat: "700ms" });
  await settled();
  const tab = statements(server)[0]?.[2];
  expect(statements(server)).toEqual([["INSERT", "lobby", tab, '{"cursor":3}', 1]]);
  fireBeat(server, 700);
  await settled();
  presence.set({ cursor: 4 });
  await settled();
  expect(statements(server).slice(1)).toEqual([
    ["INSERT", "lobby", tab, '{"cursor":3}', 2],
    ["INSERT", "lobby", tab, '{"cursor":4}', 3],
  ]);
  await presence.leave();
  await presence.leave();
  presence.set("ignored");
  await settled();
  expect(statements(server).slice(3)).toEqual([["DELETE", "lobby", tab]]);
});

test("presence sends the newest state after the heartbeat in progress", async () => {
  const { presence, server } = enter();
  await settled();
  const { answer } = server;
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  server.answer = async (path, request): Promise<Answer> => {
    await held;
    return answer(path, request);
  };
  for (const state of ["a", "b", "c"]) presence.set(state);
  await settled();
  expect(statements(server).map(([, , , state]) => state)).toEqual([null, '"a"']);
  release();
  await settled();
  expect(statements(server).map(([, , , state]) => state)).toEqual([null, '"a"', '"c"']);
});

test("presence reports a refused heartbeat once until one succeeds, and does not report a busy server", async () => {
  const { errors, server } = enter();
  await settled();
  const { answer } = server;
  const failing = (status: number, code: string): void => {
    server.answer = (path, request) =>
      path.endsWith("/sql")
        ? { status, body: { results: [], status: "error", error: { code, message: "no" } } }
        : answer(path, request);
  };
  const beat = async (): Promise<void> => {
    fireBeat(server, 2000);
    await settled();
  };
  failing(503, "STARTING");
  await beat();
  failing(403, "PERMISSION_DENIED");
  await beat();
  await beat();
  expect(errors.map(({ code }) => code)).toEqual(["PERMISSION_DENIED"]);
  server.answer = answer;
  await beat();
  failing(403, "PERMISSION_DENIED");
  await beat();
  expect(errors).toHaveLength(2);
});

test("presence.close leaves the rooms", async () => {
  const server = new FakeServer();
  const auth = { user: "ada", password: "x" };
  const db = createClient({ url: "http://db.test", auth, environment: server });
  db.presence("lobby", OPTIONS);
  db.presence("attic", OPTIONS);
  await settled();
  db.close();
  await settled();
  const left = statements(server).filter(([word]) => word === "DELETE");
  expect(left.map(([, room]) => room)).toEqual(["lobby", "attic"]);
  expect(server.timers.size).toBe(0);
});

test.each([
  [["", OPTIONS], "the room"],
  [[7, OPTIONS], "the room"],
  [["lobby", undefined], "the options"],
  [["lobby", { onChange: () => {} }], "table"],
  [["lobby", { ...OPTIONS, table: "chat.presence; DROP TABLE x" }], "table"],
  [["lobby", { ...OPTIONS, table: 'chat."p"' }], "table"],
  [["lobby", { table: "presence" }], "onChange"],
  [["lobby", { ...OPTIONS, onError: 1 }], "onError"],
  [["lobby", { ...OPTIONS, beat: "soon" }], "duration"],
  [["lobby", { ...OPTIONS, heartbeat: "2s" }], "beat"],
] as const)("presence refuses %p", (given, word) => {
  const server = new FakeServer();
  const db = createClient({ url: "http://db.test", environment: server });
  const call = (): unknown => db.presence(...(given as Parameters<typeof db.presence>));
  expect(call).toThrow(TypeError);
  expect(call).toThrow(word);
  expect(server.requests).toEqual([]);
});
