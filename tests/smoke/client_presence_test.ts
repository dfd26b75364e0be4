/**
 * Tests presence in the client library on the real process: people come and go, with several tabs,
 * lost connections and a killed server.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type Client,
  createClient,
  type Person,
  type Presence,
  type ServerError,
} from "../../src/client/mod.ts";
import { Line } from "../support/line.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const PASSWORD = "correct horse battery 9";
const TABLE = "chat.presence";

/** The time limit of a test in milliseconds: several times the TTL of two seconds. */
const TEST_MS_MAX = 60_000;

let server: ServerProcess;

beforeAll(async () => {
  // The clients reconnect to the same port.
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = probe;
  await probe.stop(true);
  server = await startReadyServer({ config: { server: { port } } });
  await server.rows(
    `CREATE NAMESPACE chat; CREATE STREAM TABLE ${TABLE} (room TEXT, tab TEXT, person TEXT NOT NULL DEFAULT CURRENT_USER(), state JSON, beat BIGINT, PRIMARY KEY (room, tab)) WITH (TTL_SECONDS = 2, OWNER_COLUMN = 'person')`,
  );
  for (const user of ["dan", "eva", "fred"]) {
    await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}'`);
  }
});
afterAll(() => server.stop());

/** A browser tab in which a user has entered a room. */
interface Tab extends Disposable {
  readonly db: Client;
  readonly presence: Presence<string>;
  /** The number of times that the list of people has changed. */
  readonly counts: { changes: number };
  readonly errors: ServerError[];
}

function tabOf(user: string, { room, url = server.url }: { room: string; url?: string }): Tab {
  const db = createClient({ url, auth: { user, password: PASSWORD } });
  const counts = { changes: 0 };
  const errors: ServerError[] = [];
  const presence = db.presence<string>(room, {
    table: TABLE,
    state: `${user} is here`,
    beat: "400ms",
    onChange: () => {
      counts.changes += 1;
    },
    onError: (error) => errors.push(error),
  });
  return { db, presence, counts, errors, [Symbol.dispose]: () => db.close() };
}

function namesIn({ presence }: Tab): string {
  return presence.people.map(({ person }) => person).join();
}

async function see(tab: Tab, names: string): Promise<void> {
  await until(() => namesIn(tab) === names).catch((error: unknown) => {
    throw new Error(`expected ${names}, but there are ${namesIn(tab)}`, { cause: error });
  });
}

function statesOf({ presence }: Tab, name: string): readonly unknown[] {
  return presence.people.find(({ person }: Person) => person === name)?.states ?? [];
}

test(
  "people are in their room as long as one of their tabs is",
  async () => {
    using dan = tabOf("dan", { room: "lobby" });
    using eva = tabOf("eva", { room: "lobby" });
    using elsewhere = tabOf("fred", { room: "attic" });
    await see(dan, "dan,eva");
    await see(eva, "dan,eva");
    await see(elsewhere, "fred");

    using second = tabOf("eva", { room: "lobby" });
    await until(() => statesOf(dan, "eva").length === 2);
    await second.presence.leave();
    await until(() => statesOf(dan, "eva").length === 1);
    expect(namesIn(dan)).toBe("dan,eva");

    eva.presence.set("typing");
    await until(() => statesOf(dan, "eva")[0] === "typing");
    // A heartbeat alone does not change the list of people.
    const before = dan.counts.changes;
    const beats = "SELECT min(beat) FROM chat.presence WHERE room = 'lobby'";
    const first = Number((await server.rows(beats))[0]?.[0]);
    await until(async () => Number((await server.rows(beats))[0]?.[0]) > first + 3);
    expect(dan.counts.changes).toBe(before);

    await eva.presence.leave();
    await see(dan, "dan");
    expect([...dan.errors, ...eva.errors, ...second.errors]).toEqual([]);
  },
  TEST_MS_MAX,
);

test(
  "a tab whose connection is lost disappears after the TTL, and returns with its connection",
  async () => {
    using line = await Line.to(server.url);
    using dan = tabOf("dan", { room: "hall" });
    using eva = tabOf("eva", { room: "hall", url: line.url });
    await see(dan, "dan,eva");
    await see(eva, "dan,eva");

    line.cut();
    await see(dan, "dan");
    line.mend();
    await see(dan, "dan,eva");
    await see(eva, "dan,eva");

    // A person who still has another tab open stays in the room.
    using other = tabOf("eva", { room: "hall" });
    await until(() => statesOf(dan, "eva").length === 2);
    line.cut();
    await until(() => statesOf(dan, "eva").length === 1);
    await other.presence.leave();
    await see(dan, "dan");
    expect([...dan.errors, ...eva.errors]).toEqual([]);
  },
  TEST_MS_MAX,
);

testThoroughly(
  "presence continues after the server was killed",
  async () => {
    using dan = tabOf("dan", { room: "yard" });
    using eva = tabOf("eva", { room: "yard" });
    await see(dan, "dan,eva");
    await server.restart("SIGKILL");
    await until(() => dan.presence.status === "ready" && eva.presence.status === "ready");
    await see(dan, "dan,eva");
    await eva.presence.leave();
    await see(dan, "dan");
  },
  TEST_MS_MAX,
);

test(
  "a person without access to a room is told so once, and sees nobody",
  async () => {
    await server.rows(
      `ALTER POLICY owner_inserts ON ${TABLE} WITH CHECK (person = CURRENT_USER() AND person <> 'fred')`,
    );
    await server.rows(`ALTER POLICY everybody_reads ON ${TABLE} USING (CURRENT_USER() <> 'fred')`);
    using dan = tabOf("dan", { room: "study" });
    using fred = tabOf("fred", { room: "study" });
    await see(dan, "dan");
    await until(() => fred.errors.length > 0);
    const beats = `SELECT beat FROM ${TABLE} WHERE room = 'study'`;
    const first = Number((await server.rows(beats))[0]?.[0]);
    await until(async () => Number((await server.rows(beats))[0]?.[0]) > first + 3);
    expect(fred.errors.map(({ code }) => code)).toEqual(["PERMISSION_DENIED"]);
    expect(namesIn(fred)).toBe("");
    expect(namesIn(dan)).toBe("dan");
  },
  TEST_MS_MAX,
);
