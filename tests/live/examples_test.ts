/**
 * Runs the acceptance examples of live queries against the real process, and tests the effect of
 * changed definitions on open subscriptions, over JSON and over MessagePack.
 *
 * To prove that nothing was sent, the tests wait for the next message: the pong of a ping comes
 * after everything that was sent before it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ChangeMessage, ServerMessage, SubscribeOptions } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";

const QUERY =
  "SELECT id, upper(title) AS u, stars FROM app.notes WHERE stars >= 3 AND title <> 'hide'";

let server: ServerProcess;
let alice: string;
let bob: string;
let socket: SocketClient;
let pingCount = 0;

/** The socket's subscriptions that have not received all of their rows yet. */
const loading = new Set<string>();

async function run(sql: string, token = alice): Promise<void> {
  await server.rows(sql, { token });
}

/**
 * Waits until new subscriptions have loaded their rows or been refused. Returns all messages that
 * the server has sent and the test has not read yet.
 */
async function delivered(client: SocketClient = socket): Promise<ServerMessage[]> {
  const messages: ServerMessage[] = [];
  const unread = client === socket ? loading : new Set<string>();
  while (unread.size > 0) {
    const next = await client.next();
    messages.push(next);
    const isLoaded = next.type === "initial_data_batch" && !next.batch_control.has_more;
    if (next.type === "error" || isLoaded) unread.delete(next.subscription_id ?? "");
  }
  pingCount += 1;
  client.send({ type: "ping", id: `p${pingCount}` });
  for (;;) {
    const next = await client.next();
    if (next.type === "pong") return messages;
    messages.push(next);
  }
}

/** Returns the delivered messages, abbreviated to their kinds and row ids. */
async function told(client: SocketClient = socket): Promise<string[]> {
  return (await delivered(client)).flatMap((message) => {
    if (message.type === "change") return changesIn(message);
    if (message.type === "initial_data_batch") {
      return message.rows.map((row) => `row ${Number(row["id"])}`);
    }
    return message.type === "error" ? [`${message.code} ${message.subscription_id}`] : [];
  });
}

function changesIn({ change_type, rows, old_values }: ChangeMessage): string[] {
  const of = rows.length > 0 ? rows : (old_values ?? []);
  return of.map((row) => `${change_type} ${Number(row["id"])}`);
}

/**
 * Subscribes to a query.
 * @param options Null for a subscription that loads no rows.
 */
function subscribe(id: string, sql: string, options?: SubscribeOptions | null): void {
  if (options !== null) loading.add(id);
  const subscription = { id, sql, ...(options === undefined ? {} : { options }) };
  socket.send({ type: "subscribe", subscription });
}

async function positionOf(id: string): Promise<number> {
  socket.send({ type: "ping", id: "position" });
  const pong = await socket.expect("pong");
  return pong.positions[id] ?? 0;
}

describe.each(shareOf(["json", "msgpack"] as const, { oneOf: 2 }))(
  "a live query over %s follows every change to its rows",
  (serialization) => {
    beforeAll(async () => {
      server = await startReadyServer();
      await server.rows("CREATE NAMESPACE app");
      await server.rows(
        "CREATE TABLE app.notes (id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), title TEXT NOT NULL, " +
          "stars INT NOT NULL DEFAULT 0 CHECK (stars BETWEEN 0 AND 5), meta JSON, " +
          "at TIMESTAMP DEFAULT NOW()) WITH (TYPE='USER', FLUSH_POLICY='rows:1000,interval:60')",
      );
      [alice, bob] = await Promise.all([server.createUser("alice"), server.createUser("bob")]);
      socket = await SocketClient.connect(server.url, {
        token: alice,
        query: `?serialization=${serialization}`,
        packs: serialization === "msgpack",
      });
      await socket.expect("auth_success");
    });

    afterAll(async () => {
      socket.close();
      await server.stop();
    });

    test("88 to 91: a row enters, changes, stays the same, leaves, and changes outside the result", async () => {
      subscribe("n", QUERY);
      const [ack, batch] = await delivered();
      expect(ack).toMatchObject({ type: "subscription_ack" });
      expect(batch).toMatchObject({
        rows: [],
        batch_control: { status: "ready", has_more: false },
      });
      await run("INSERT INTO app.notes (id,title,stars) VALUES (50,'a',1)");
      expect(await delivered()).toEqual([]);
      await run("UPDATE app.notes SET stars = 4 WHERE id = 50");
      const entered = await delivered();
      expect(entered).toMatchObject([
        { change_type: "insert", rows: [{ id: 50, u: "A", stars: 4 }], subscription_id: "n" },
      ]);
      await run("UPDATE app.notes SET title = 'b' WHERE id = 50");
      expect(await delivered()).toMatchObject([
        {
          change_type: "update",
          rows: [{ id: 50, u: "B", stars: 4 }],
          old_values: [{ id: 50, u: "A" }],
        },
      ]);
      await run("UPDATE app.notes SET title = 'b' WHERE id = 50");
      expect(await delivered()).toEqual([]);
      await run("UPDATE app.notes SET stars = 0 WHERE id = 50");
      expect(await delivered()).toMatchObject([
        {
          change_type: "delete",
          rows: [],
          old_values: [{ id: 50, u: "B", stars: 4, _deleted: true }],
        },
      ]);
      await run("DELETE FROM app.notes WHERE id = 50");
      expect(await delivered()).toEqual([]);
    });

    test("92: only the matching rows of one statement are sent, in ascending order", async () => {
      await run(
        "INSERT INTO app.notes (id,title,stars) VALUES (51,'c',3),(52,'hide',5),(53,'d',5)",
      );
      const messages = (await delivered()).filter((message) => message.type === "change");
      const rows = messages.flatMap((message) => message.rows);
      expect(rows.map((row) => row["id"])).toEqual([51, 53]);
      expect(Number(rows[0]?.["_seq"])).toBeLessThan(Number(rows[1]?.["_seq"]));
    });

    test("93: the changes of a transaction arrive together, and those of a rollback never", async () => {
      const changes =
        "BEGIN; UPDATE app.notes SET stars = 5 WHERE id = 51; DELETE FROM app.notes WHERE id = 53;";
      await run(`${changes} COMMIT`);
      const messages = (await delivered()).filter((message) => message.type === "change");
      expect(messages.flatMap(changesIn).toSorted()).toEqual(["delete 53", "update 51"]);
      expect(new Set(messages.map(({ commit_seq }) => commit_seq)).size).toBe(1);
      await run("BEGIN; UPDATE app.notes SET stars = 3 WHERE id = 51; ROLLBACK");
      expect(await delivered()).toEqual([]);
    });

    test("94: another user's rows and a flush send nothing", async () => {
      await run("INSERT INTO app.notes (id,title,stars) VALUES (51,'x',5)", bob);
      await run("STORAGE FLUSH TABLE app.notes", server.token);
      expect(await delivered()).toEqual([]);
    });

    test("95: an upsert is an update, and DO NOTHING sends nothing", async () => {
      const values = "INSERT INTO app.notes (id,title,stars) VALUES (51,'e',5) ON CONFLICT (id)";
      await run(`${values} DO UPDATE SET title = EXCLUDED.title`);
      expect(await told()).toEqual(["update 51"]);
      await run(`${values} DO NOTHING`);
      expect(await told()).toEqual([]);
    });

    test("96: ORDER BY _seq is accepted, and constructs that cannot be live are refused by name", async () => {
      subscribe("order", "SELECT id FROM app.notes ORDER BY _seq");
      expect(await told()).toEqual(["row 52", "row 51"]);
      socket.send({ type: "unsubscribe", subscription_id: "order" });
      for (const sql of [
        "SELECT id FROM app.notes FOR UPDATE",
        "SELECT id FROM app.notes FOR SYSTEM_TIME AS OF '2026-01-31'",
        "DELETE FROM app.notes",
      ]) {
        subscribe("bad", sql);
        expect(await told(), sql).toEqual(["INVALID_SQL bad"]);
      }
      for (const condition of ["RANDOM() < 1", "id < RANDOM()"]) {
        subscribe("bad", `SELECT id FROM app.notes WHERE ${condition}`);
        expect(await told(), condition).toEqual(["UNSUPPORTED bad"]);
      }
    });

    test("97: a resume delivers the deletion as a change and the new row in a batch", async () => {
      const position = await positionOf("n");
      socket.send({ type: "unsubscribe", subscription_id: "n" });
      await run("UPDATE app.notes SET stars = 1 WHERE id = 51");
      await run("INSERT INTO app.notes (id,title,stars) VALUES (54,'f',4)");
      subscribe("n", QUERY, { from_seq_id: position });
      expect(await told()).toEqual(["delete 51", "row 54"]);
    });

    test("an added column ends only queries that select *, and others continue correctly", async () => {
      subscribe("star", "SELECT * FROM app.notes", null);
      subscribe("named", "SELECT title FROM app.notes", null);
      await delivered();
      await run("ALTER TABLE app.notes ADD COLUMN extra INT DEFAULT 7", server.token);
      expect(await told()).toEqual(["SCHEMA_CHANGED star"]);
      await run("INSERT INTO app.notes (id,title,stars) VALUES (60,'g',3)");
      expect((await told()).toSorted()).toEqual(["insert 60", "insert 60"]);
    });

    test("a renamed column ends queries that name it", async () => {
      await run("ALTER TABLE app.notes RENAME COLUMN meta TO more", server.token);
      expect(await told()).toEqual([]);
      await run("ALTER TABLE app.notes RENAME COLUMN title TO name", server.token);
      expect((await told()).toSorted()).toEqual(["SCHEMA_CHANGED n", "SCHEMA_CHANGED named"]);
    });

    test("a stricter constraint ends nothing, and a wider type ends queries that name the column", async () => {
      subscribe("kept", "SELECT extra FROM app.notes", null);
      subscribe("where", "SELECT id FROM app.notes WHERE CAST(extra AS TEXT) <> ''", null);
      await delivered();
      await run(
        "ALTER TABLE app.notes ALTER extra SET DEFAULT 8, ALTER extra SET NOT NULL, ADD CHECK (extra > 0)",
        server.token,
      );
      await run("ALTER TABLE app.notes ALTER stars TYPE BIGINT", server.token);
      expect(await told()).toEqual([]);
      await run("UPDATE app.notes SET extra = 9 WHERE id = 60");
      expect(await told()).toEqual(["update 60", "update 60"]);
      await run("ALTER TABLE app.notes ALTER extra TYPE BIGINT", server.token);
      expect((await told()).toSorted()).toEqual(["SCHEMA_CHANGED kept", "SCHEMA_CHANGED where"]);
    });

    test("an expression that fails on a row ends its subscription with CONVERSION_ERROR", async () => {
      subscribe("ratio", "SELECT 10 / stars AS r FROM app.notes", null);
      subscribe("other", "SELECT stars FROM app.notes", null);
      await delivered();
      await run("INSERT INTO app.notes (id,name,stars) VALUES (61,'h',0)");
      expect((await told()).toSorted()).toEqual(["CONVERSION_ERROR ratio", "insert 61"]);
    });

    test("two columns that exchange their names end queries that name one of them", async () => {
      await run("CREATE USER TABLE app.pairs (id INT PRIMARY KEY, a INT, b INT)", server.token);
      subscribe("both", "SELECT id, a, b FROM app.pairs", null);
      subscribe("one", "SELECT id, a FROM app.pairs", null);
      subscribe("filter", "SELECT id FROM app.pairs WHERE b = 20 AND a = 10", null);
      subscribe("neither", "SELECT id FROM app.pairs", null);
      await delivered();
      const swap = "RENAME COLUMN a TO c, RENAME COLUMN b TO a, RENAME COLUMN c TO b";
      await run(`ALTER TABLE app.pairs ${swap}`, server.token);
      const ended = ["both", "filter", "one"].map((id) => `SCHEMA_CHANGED ${id}`);
      expect((await told()).toSorted()).toEqual(ended);
      socket.send({ type: "unsubscribe", subscription_id: "neither" });
      await delivered();
    });

    test("an alias before the column itself hides neither the key nor _seq", async () => {
      await run("CREATE USER TABLE app.aliased (id INT PRIMARY KEY, v TEXT)", server.token);
      subscribe("aliased", "SELECT _seq AS s, id AS k, v FROM app.aliased", null);
      await delivered();
      await run("INSERT INTO app.aliased VALUES (1, 'a')");
      const [inserted] = await delivered();
      const first = inserted?.type === "change" ? inserted.rows[0]?.["_seq"] : undefined;
      await run("UPDATE app.aliased SET v = 'b'");
      expect(await delivered()).toMatchObject([{ old_values: [{ id: 1, v: "a", _seq: first }] }]);
      await run("DELETE FROM app.aliased");
      const [deleted] = await delivered();
      if (deleted?.type !== "change") throw new Error("a deletion is a change");
      expect(deleted.old_values).toMatchObject([{ id: 1, k: 1, _seq: deleted.commit_seq }]);
      socket.send({ type: "unsubscribe", subscription_id: "aliased" });
      await delivered();
    });

    test("98: a subscription to a dropped table ends with NOT_FOUND", async () => {
      await run("DROP TABLE app.notes", server.token);
      const [message] = await delivered();
      expect(message).toMatchObject({ code: "NOT_FOUND", subscription_id: "other", ended: true });
    });

    test("a user who may no longer read a shared table receives UNAUTHORIZED", async () => {
      const columns = "(id BIGINT PRIMARY KEY, text TEXT)";
      const shared = "WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')";
      await run(`CREATE TABLE app.board ${columns} ${shared}`, server.token);
      subscribe("board", "SELECT text FROM app.board", null);
      await delivered();
      await run("INSERT INTO app.board VALUES (1, 'hello')", server.token);
      expect(await told()).toEqual(["insert 1"]);
      await run("ALTER TABLE app.board SET (ACCESS_LEVEL = 'DBA')", server.token);
      expect(await told()).toEqual(["UNAUTHORIZED board"]);
    });

    test("a user who no longer owns a namespace receives UNAUTHORIZED", async () => {
      await run("CREATE NAMESPACE club AUTHORIZATION alice", server.token);
      await run("CREATE SHARED TABLE club.plans (id INT PRIMARY KEY)");
      subscribe("plans", "SELECT id FROM club.plans", null);
      await delivered();
      await run("INSERT INTO club.plans VALUES (1)");
      expect(await told()).toEqual(["insert 1"]);
      await run("ALTER NAMESPACE club OWNER TO root", server.token);
      await run("INSERT INTO club.plans VALUES (2)", server.token);
      expect(await told()).toEqual(["UNAUTHORIZED plans"]);
    });
  },
);
