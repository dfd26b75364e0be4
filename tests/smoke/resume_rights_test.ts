/**
 * Verifies that a client that resumes has exactly the rows that its user may see now, even if
 * policies, roles, owners, memberships or the token's claims have changed in the meantime. The
 * server either sends the difference or makes the client start again.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createClient } from "../../src/client/mod.ts";
import type { SubscribeOptions, SubscriptionAck } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { EventClient } from "../support/event_client.ts";
import { SigningIssuer, signingKey } from "../support/oidc_provider.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

let issuer: SigningIssuer;
let server: ServerProcess;
let count = 0;

beforeAll(async () => {
  issuer = await SigningIssuer.start(await signingKey("first"));
  server = await startReadyServer({
    config: {
      oidc: { auto_provision: true },
      "oidc.providers.idp": { issuer: issuer.url, audience: "db", claims: ["team"] },
    },
  });
});

afterAll(async () => {
  await server.stop();
  issuer[Symbol.dispose]();
});

interface Followed {
  readonly told: readonly string[];
  readonly position: number;
  readonly claims: string | undefined;
}

/** Returns the rows and changes of a subscription until it is ready, or the error that ends it. */
async function follow(
  sql: string,
  { token, ...options }: SubscribeOptions & { token: string },
): Promise<Followed> {
  const socket = await SocketClient.connect(server.url, { token });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription: { id: "a", sql, options } });
  const told: string[] = [];
  let ack: SubscriptionAck | undefined;
  for (;;) {
    const message = await socket.next();
    if (message.type === "subscription_ack") ack = message;
    if (message.type === "error") {
      socket.close();
      return { told: [message.code, message.message], position: 0, claims: undefined };
    }
    if (message.type === "change") {
      for (const row of message.old_values ?? []) told.push(`delete ${String(row["id"])}`);
    }
    if (message.type !== "initial_data_batch") continue;
    told.push(...message.rows.map(({ id }) => `row ${String(id)}`));
    socket.close();
    const position = Number(message.batch_control.last_seq_id);
    return { told: told.toSorted(), position, claims: ack?.claims };
  }
}

/**
 * A change made while the client is away. $t stands for the table, $n for its namespace, and $u
 * for the user.
 */
interface Case {
  readonly policy: string;
  readonly before: readonly string[];
  readonly change: readonly string[];
  readonly told: readonly string[];
  readonly fresh: readonly string[];
}

const EXPIRED = "RESUME_EXPIRED";
const BY_MEMBERS =
  "EXISTS (SELECT 1 FROM $n.members m WHERE m.room = room AND m.user_id = CURRENT_USER())";
const ALL = ["row 1", "row 2"];

const CASES: Readonly<Record<string, Case>> = {
  "a policy admits other rows": {
    policy: "room = 1",
    before: ["row 1"],
    change: ["ALTER POLICY p ON $t USING (room = 2)"],
    told: [EXPIRED, "Your rights to the rows have changed"],
    fresh: ["row 2"],
  },
  "the policy was dropped and another created": {
    policy: "room = 1",
    before: ["row 1"],
    change: ["DROP POLICY p ON $t", "CREATE POLICY q ON $t USING (room = 2)"],
    told: [EXPIRED, "Your rights to the rows have changed"],
    fresh: ["row 2"],
  },
  "the user got a higher role": {
    policy: "room = 1",
    before: ["row 1"],
    change: ["ALTER USER $u SET ROLE dba"],
    told: [EXPIRED, "Your rights to the rows have changed"],
    fresh: ALL,
  },
  "the user got another role and lost it again": {
    policy: "room = 1",
    before: ["row 1"],
    change: ["ALTER USER $u SET ROLE dba", "ALTER USER $u SET ROLE user"],
    told: [EXPIRED, "Your rights to the rows have changed"],
    fresh: ["row 1"],
  },
  "the user became the owner of the namespace": {
    policy: "room = 1",
    before: ["row 1"],
    change: ["ALTER NAMESPACE $n OWNER TO $u"],
    told: [EXPIRED, "Your rights to the rows have changed"],
    fresh: ALL,
  },
  "the owner of a policy got back the right to it": {
    policy: BY_MEMBERS,
    before: [],
    change: ["ALTER USER $u_owner SET ROLE dba"],
    told: [EXPIRED, "Your rights to the rows have changed"],
    fresh: ["row 1"],
  },
  "memberships changed": {
    policy: BY_MEMBERS,
    before: ["row 1"],
    change: [
      "INSERT INTO $n.members VALUES (2, '$u')",
      "DELETE FROM $n.members WHERE room = 1 AND user_id = '$u'",
    ],
    told: ["delete 1", "row 2"],
    fresh: ["row 2"],
  },
  "nothing about rights changed": {
    policy: "room = 1",
    before: ["row 1"],
    change: [
      "ALTER USER $u SET EMAIL 'u@example.com'",
      "INSERT INTO $t VALUES (3, 1), (4, 2)",
      "COMMENT ON TABLE $t IS 'rooms'",
    ],
    told: ["row 3"],
    fresh: ["row 1", "row 3"],
  },
};

describe.each([
  ["on one server", false],
  ["over a kill", true],
])("a client that resumes %s sees only rows that it may read", (_where, isKilled) => {
  // A case with a kill takes as much processor time as ten others.
  const cases = shareOf(Object.entries(CASES), { oneOf: isKilled ? 8 : 4 });

  test.each(cases)("when %s", async (what, { policy, ...each }) => {
    count += 1;
    const user = `user${count}`;
    const named = (text: string): string =>
      text.replaceAll("$t", "$n.t").replaceAll("$n", `app${count}`).replaceAll("$u", user);
    let token = await server.createUser(user);
    const owner = await server.createUser(`${user}_owner`, "dba");
    const level = "WITH (ACCESS_LEVEL = 'RESTRICTED')";
    for (const statement of [
      "CREATE NAMESPACE $n",
      `CREATE TABLE $t (id INT PRIMARY KEY, room INT) ${level}`,
      `CREATE TABLE $n.members (room INT, user_id TEXT, PRIMARY KEY (room, user_id)) ${level}`,
      "INSERT INTO $t VALUES (1, 1), (2, 2)",
      "INSERT INTO $n.members VALUES (1, '$u')",
    ]) {
      await server.rows(named(statement));
    }
    await server.rows(named(`CREATE POLICY p ON $t USING (${policy})`), { token: owner });
    if (what.startsWith("the owner")) await server.rows(named("ALTER USER $u_owner SET ROLE user"));
    const sql = named("SELECT id FROM $t");
    const before = await follow(sql, { token });
    expect(before.told).toEqual([...each.before]);
    for (const statement of each.change) await server.rows(named(statement));
    if (isKilled) await server.restart("SIGKILL");
    token = (await server.login(user)).access_token;

    const resumed = await follow(sql, { token, from_seq_id: before.position });
    const [first = "", said = ""] = resumed.told;
    if (first === EXPIRED) expect([first, said.split(",")[0] ?? ""]).toEqual([...each.told]);
    else expect(resumed.told).toEqual([...each.told]);
    const fresh = await follow(sql, { token });
    expect(fresh.told).toEqual([...each.fresh]);
  });
});

/** A query for each of the two ways in which queries are followed. */
const BY_CLAIM: Readonly<Record<string, string>> = {
  "row by row": "team = CLAIM('team')",
  materialised:
    "EXISTS (SELECT 1 FROM app.teams t WHERE t.claimed = CLAIM('team') AND t.name = team)",
};

describe.each(Object.entries(BY_CLAIM))("a query by claims, followed %s", (way, rule) => {
  const table = `app.${way.replaceAll(" ", "_")}`;
  const sql = `SELECT id FROM ${table}`;
  const red = async (): Promise<string> => await issuer.token({ sub: "rita", team: "red" });
  const blue = async (): Promise<string> => await issuer.token({ sub: "rita", team: "blue" });

  beforeAll(async () => {
    await server.rows(
      "CREATE NAMESPACE IF NOT EXISTS app; " +
        "CREATE TABLE IF NOT EXISTS app.teams (name TEXT PRIMARY KEY, claimed TEXT); " +
        "INSERT INTO app.teams VALUES ('red', 'red'), ('blue', 'blue') ON CONFLICT (name) DO NOTHING; " +
        `CREATE TABLE ${table} (id INT PRIMARY KEY, team TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED'); ` +
        `CREATE POLICY p ON ${table} USING (${rule}); ` +
        `INSERT INTO ${table} VALUES (1, 'red'), (2, 'blue')`,
    );
  });

  test("a query that reads claims is resumed with the same claims, and with no others", async () => {
    const { claims = "", position, told } = await follow(sql, { token: await red() });
    expect(told).toEqual(["row 1"]);
    expect(claims).toMatch(/^[\w-]+$/);
    const from = { from_seq_id: position };
    const again = await follow(sql, { token: await red(), ...from, claims });
    expect(again.told).toEqual([]);
    const other = await follow(sql, { token: await blue(), ...from, claims });
    expect(other.told).toEqual([
      EXPIRED,
      "The token's claims have changed, so different rows may be visible now; subscribe " +
        "without from_seq_id to load them",
    ]);
    const silent = await follow(sql, { token: await red(), ...from });
    expect(silent.told).toEqual([
      EXPIRED,
      'The query reads claims, but the option "claims" is missing, so different rows may be ' +
        "visible now; subscribe without from_seq_id to load them",
    ]);
    expect((await follow(sql, { token: await blue() })).told).toEqual(["row 2"]);
    const wrong = { ...from, claims: 7 as unknown as string };
    const [code, message] = (await follow(sql, { token: await red(), ...wrong })).told;
    expect(code).toBe("INVALID_OPTIONS");
    expect(message).toContain(
      'the option "claims" must be the string from a subscription_ack message',
    );
  });

  test("a query that reads claims has them in the ids of its events", async () => {
    const open = async (token: string, lastId = ""): Promise<EventClient> =>
      await EventClient.open(
        server.url,
        { sql },
        { Authorization: `Bearer ${token}`, ...(lastId !== "" && { "Last-Event-ID": lastId }) },
      );
    const first = await open(await red());
    await first.expect("subscription_ack");
    await first.expect("initial_data_batch");
    first.close();
    expect(first.lastId).toContain(";");
    const again = await open(await red(), first.lastId);
    expect(await again.expect("subscription_ack")).toMatchObject({ claims: expect.any(String) });
    again.close();
    const other = await open(await blue(), first.lastId);
    expect(other.response.status).toBe(410);
    expect(await other.response.text()).toContain(EXPIRED);
    other.close();
  });

  test("a query that reads claims is resumed by the client with these claims, or read again", async () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    };
    const rowsOf = async (token: string): Promise<{ ids: unknown[]; from: unknown }> => {
      const db = createClient({ url: server.url, auth: { token }, storage });
      const starts: unknown[] = [];
      const query = db.live(sql, {
        resumeKey: table,
        onEvent: (event) => {
          if (event.type === "start") starts.push(event.resumedFrom);
        },
      });
      await until(() => Promise.resolve(query.status === "ready"));
      const ids = query.rows.map(({ id }) => id);
      db.close();
      return { ids, from: starts.at(-1) };
    };
    expect(await rowsOf(await red())).toEqual({ ids: [1], from: undefined });
    expect(await rowsOf(await red())).toEqual({ ids: [], from: expect.any(Number) });
    expect(await rowsOf(await blue())).toEqual({ ids: [2], from: undefined });
    expect(await rowsOf(await blue())).toEqual({ ids: [], from: expect.any(Number) });
  });
});

test("a query that reads no claims is resumed with other claims", async () => {
  await server.rows(
    "CREATE TABLE app.open (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC'); INSERT INTO app.open VALUES (1)",
  );
  const sql = "SELECT id FROM app.open";
  const first = await follow(sql, { token: await issuer.token({ sub: "olaf", team: "red" }) });
  expect(first.claims).toBeUndefined();
  const token = await issuer.token({ sub: "olaf", team: "blue" });
  expect((await follow(sql, { token, from_seq_id: first.position })).told).toEqual([]);
});
