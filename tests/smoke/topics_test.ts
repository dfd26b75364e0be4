/**
 * Tests topics over HTTP on the real process: the fields, error codes and bad input of the
 * endpoints, requests that wait, redelivery, acknowledgement within a transaction, KILL, and
 * restarts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TopicConsumeBody, TopicErrorBody } from "../../src/protocol/mod.ts";
import { testThoroughly } from "../support/requirements.ts";
import { ADMIN, type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const CONSUME = "/v1/api/topics/consume";
const ACK = "/v1/api/topics/ack";
const NACK = "/v1/api/topics/nack";

let server: ServerProcess;
let count = 0;

beforeAll(async () => {
  server = await startReadyServer({ config: { limits: { topic_visibility_secs: 1 } } });
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

interface Names {
  readonly topic: string;
  readonly table: string;
}

async function newTopic(options = "", table = "SHARED"): Promise<Names> {
  count += 1;
  const names = { topic: `app.topic${count}`, table: `app.t${count}` };
  await server.rows(
    `CREATE ${table} TABLE ${names.table} (id BIGINT PRIMARY KEY, body TEXT);
     CREATE TOPIC ${names.topic} ${options}`,
  );
  await server.rows(
    `ALTER TOPIC ${names.topic} ADD SOURCE ${names.table} ON INSERT WITH (payload = 'full')`,
  );
  return names;
}

async function insert({ table }: Names, ...ids: number[]): Promise<void> {
  await server.rows(`INSERT INTO ${table} VALUES ${ids.map((id) => `(${id}, 'b${id}')`).join()}`);
}

interface Answer<Body> {
  readonly status: number;
  readonly body: Body;
}

async function call<Body>(
  path: string,
  body: unknown,
  token: string = server.token,
): Promise<Answer<Body>> {
  const response = await server.post(path, body, { Authorization: `Bearer ${token}` });
  return { status: response.status, body: (await response.json()) as Body };
}

async function read(fields: Record<string, unknown>): Promise<TopicConsumeBody> {
  const body = { group_id: "g", start: "Earliest", ...fields };
  const answer = await call<TopicConsumeBody>(CONSUME, body);
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body;
}

async function acknowledge(fields: Record<string, unknown>): Promise<unknown> {
  const { body, status } = await call<unknown>(ACK, { group_id: "g", ...fields });
  expect([status, body]).toEqual([200, body]);
  return body;
}

function offsetsOf({ messages }: TopicConsumeBody): number[] {
  return messages.map(({ offset }) => offset);
}

describe("POST /v1/api/topics/consume delivers messages", () => {
  test("consume returns messages in the form of the wire contract", async () => {
    const names = await newTopic();
    await insert(names, 7);
    const { has_more, messages, next_offset } = await read({ topic_id: names.topic });
    expect([next_offset, has_more]).toEqual([1, false]);
    const [message] = messages;
    const payload: unknown = JSON.parse(Buffer.from(message?.payload ?? "", "base64").toString());
    expect({ ...message, payload, timestamp_ms: typeof message?.timestamp_ms }).toEqual({
      topic_id: names.topic,
      partition_id: 0,
      offset: 0,
      payload: {
        id: 7,
        body: "b7",
        _seq: expect.any(Number),
        _deleted: false,
        _table: names.table,
      },
      key: "7",
      timestamp_ms: "number",
      op: "Insert",
      deliveries: 1,
    } as never);
  });

  test("consume names the owner of a row of a USER table", async () => {
    const names = await newTopic("", "USER");
    await insert(names, 1);
    const { messages } = await read({ topic_id: names.topic });
    expect(messages.map(({ user }) => user)).toEqual([ADMIN]);
  });

  test("consume gives a claimed message to no other consumer, and reports whether there are more", async () => {
    const names = await newTopic();
    await insert(names, 1, 2, 3);
    const first = await read({ topic_id: names.topic, limit: 2 });
    expect([offsetsOf(first), first.next_offset, first.has_more]).toEqual([[0, 1], 2, true]);
    const second = await read({ topic_id: names.topic, limit: 2 });
    expect([offsetsOf(second), second.next_offset, second.has_more]).toEqual([[2], 3, false]);
    const none = await read({ topic_id: names.topic });
    expect([offsetsOf(none), none.next_offset]).toEqual([[], 0]);
  });

  test("consume begins where start says, unless the group has a position", async () => {
    const names = await newTopic();
    await insert(names, 1, 2);
    const { timestamp_ms: atMs = 0 } = (await read({ topic_id: names.topic })).messages[1] ?? {};
    const starts: [unknown, number[]][] = [
      ["latest", []],
      [undefined, []],
      ["EARLIEST", [0, 1]],
      [{ Offset: 1 }, [1]],
      [{ offset: 99 }, []],
      [{ Timestamp: 0 }, [0, 1]],
      [{ timestamp: atMs + 60_000 }, []],
    ];
    for (const [index, [start, offsets]] of starts.entries()) {
      const group_id = `start${index}`;
      expect(offsetsOf(await read({ topic_id: names.topic, group_id, start }))).toEqual(offsets);
    }
    await insert(names, 3);
    const late = await read({ topic_id: names.topic, group_id: "start0", start: "Earliest" });
    expect(offsetsOf(late)).toEqual([2]);
  });

  test("consume waits for a message, and responds within milliseconds of its commit", async () => {
    const names = await newTopic();
    const waiting = read({ topic_id: names.topic, timeout_seconds: 30 });
    await until(async () => (await consumersOf(names)).length === 1);
    const before = performance.now();
    await insert(names, 1);
    expect(offsetsOf(await waiting)).toEqual([0]);
    expect(performance.now() - before).toBeLessThan(1000);
  });

  test("consume responds without messages once its time is over", async () => {
    const names = await newTopic();
    const before = performance.now();
    const answer = await read({ topic_id: names.topic, timeout_seconds: 1 });
    expect([answer.messages, answer.next_offset]).toEqual([[], 0]);
    expect(performance.now() - before).toBeGreaterThan(900);
  });

  test("consume keeps no message for a client that has disconnected", async () => {
    const names = await newTopic();
    const leaving = new AbortController();
    const request = fetch(server.url + CONSUME, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${server.token}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({ topic_id: names.topic, group_id: "g", timeout_seconds: 30 }),
      signal: leaving.signal,
    });
    await until(async () => (await consumersOf(names)).length === 1);
    leaving.abort();
    await request.catch(() => undefined);
    await insert(names, 1);
    const answer = await read({ topic_id: names.topic, timeout_seconds: 5 });
    expect(answer.messages.map(({ deliveries, offset }) => [offset, deliveries])).toEqual([[0, 1]]);
  });

  test("consume redelivers messages that were not acknowledged in time, with a count", async () => {
    const names = await newTopic();
    await insert(names, 1, 2);
    await read({ topic_id: names.topic });
    await acknowledge({ topic_id: names.topic, offsets: [1] });
    const again = await read({ topic_id: names.topic, timeout_seconds: 10 });
    expect(again.messages.map(({ deliveries, offset }) => [offset, deliveries])).toEqual([[0, 2]]);
  });

  test("consume delivers the messages of a key in order if it is asked to", async () => {
    const names = await newTopic();
    await server.rows(`ALTER TOPIC ${names.topic} ADD SOURCE ${names.table} ON UPDATE`);
    await insert(names, 1);
    await server.rows(`UPDATE ${names.table} SET body = 'x' WHERE id = 1`);
    await insert(names, 2);
    const first = await read({ topic_id: names.topic, ordered: true });
    expect(first.messages.map(({ key, op }) => `${op} ${key}`)).toEqual(["Insert 1", "Insert 2"]);
    await acknowledge({ topic_id: names.topic, upto_offset: 0 });
    const second = await read({ topic_id: names.topic, ordered: true });
    expect(second.messages.map(({ key, op }) => `${op} ${key}`)).toEqual(["Update 1"]);
  });

  test("consume finds no messages in an unknown partition", async () => {
    const { topic } = await newTopic("PARTITIONS 2");
    const answer = await read({ topic_id: topic, partition_id: 2 });
    expect(answer).toEqual({ messages: [], next_offset: 0, has_more: false });
  });
});

describe("POST /v1/api/topics/nack returns messages", () => {
  test("nack returns messages at once or after a delay, and counts the deliveries", async () => {
    const { topic, ...names } = await newTopic();
    await insert({ topic, ...names }, 1, 2);
    expect(offsetsOf(await read({ topic_id: topic }))).toEqual([0, 1]);
    const body = { topic_id: topic, group_id: "g", offsets: [1] };
    expect(await call(NACK, body)).toEqual({ status: 200, body: { success: true } });
    const again = await read({ topic_id: topic });
    expect(again.messages.map(({ deliveries, offset }) => [offset, deliveries])).toEqual([[1, 2]]);
    await call(NACK, { ...body, delay_ms: 200 });
    expect(offsetsOf(await read({ topic_id: topic }))).toEqual([]);
    expect(offsetsOf(await read({ topic_id: topic, timeout_seconds: 30 }))).toEqual([1]);
    // An acknowledged message is not redelivered.
    await acknowledge({ topic_id: topic, offsets: [0, 1] });
    await call(NACK, { ...body, offsets: [0, 1] });
    expect(offsetsOf(await read({ topic_id: topic }))).toEqual([]);
  });

  test("nack refuses messages that were never delivered, and bad fields", async () => {
    const { topic } = await newTopic();
    await read({ topic_id: topic });
    const body = { topic_id: topic, group_id: "g", offsets: [0] };
    const refused = async (change: object): Promise<unknown> => {
      const { body: answer, status } = await call<{ code: string }>(NACK, { ...body, ...change });
      return [status, answer.code];
    };
    expect(await refused({})).toEqual([400, "INVALID_OFFSET"]);
    expect(await refused({ offsets: undefined })).toEqual([400, "INVALID_INPUT"]);
    expect(await refused({ offsets: [] })).toEqual([400, "INVALID_INPUT"]);
    expect(await refused({ delay_ms: 86_400_001 })).toEqual([400, "INVALID_INPUT"]);
    expect(await refused({ offsets: undefined, offset: 0 })).toEqual([400, "INVALID_INPUT"]);
    expect(await refused({ group_id: "unknown" })).toEqual([404, "NOT_FOUND"]);
    expect(await refused({ topic_id: "app.none" })).toEqual([404, "NOT_FOUND"]);
  });
});

describe("POST /v1/api/topics/ack acknowledges messages", () => {
  test("ack is cumulative and monotonic", async () => {
    const names = await newTopic();
    await insert(names, 1, 2, 3);
    await read({ topic_id: names.topic });
    const upTo = (upto_offset: number): Promise<unknown> =>
      acknowledge({ topic_id: names.topic, upto_offset });
    expect(await upTo(1)).toEqual({ success: true, acknowledged_offset: 1 });
    expect(await upTo(0)).toEqual({ success: true, acknowledged_offset: 1 });
    expect(await upTo(2)).toEqual({ success: true, acknowledged_offset: 2 });
  });

  test("ack accepts single messages in any order", async () => {
    const names = await newTopic();
    await insert(names, 1, 2, 3);
    await read({ topic_id: names.topic });
    const single = (...offsets: number[]): Promise<unknown> =>
      acknowledge({ topic_id: names.topic, offsets });
    expect(await single(2)).toEqual({ success: true, acknowledged_offset: -1 });
    expect(await single(1, 0)).toEqual({ success: true, acknowledged_offset: 2 });
  });

  test("an ack survives SIGKILL, and no acknowledged message is redelivered", async () => {
    const names = await newTopic();
    await insert(names, 1, 2, 3, 4);
    await read({ topic_id: names.topic });
    await acknowledge({ topic_id: names.topic, offsets: [0, 2] });
    await server.restart("SIGKILL");
    // A message from before the restart may still be acknowledged.
    expect(await acknowledge({ topic_id: names.topic, offsets: [3] })).toEqual({
      success: true,
      acknowledged_offset: 0,
    });
    const again = await read({ topic_id: names.topic });
    expect(again.messages.map(({ deliveries, offset }) => [offset, deliveries])).toEqual([[1, 2]]);
  });

  test("an ack in a transaction is one commit with its rows", async () => {
    const names = await newTopic();
    await server.rows(`CREATE SHARED TABLE ${names.table}_done (id BIGINT PRIMARY KEY)`);
    await insert(names, 1, 2);
    await read({ topic_id: names.topic });
    const effect = (id: number, offset: number): string =>
      `BEGIN; INSERT INTO ${names.table}_done VALUES (${id});
       ACK ${names.topic} GROUP 'g' OFFSETS (${offset}); COMMIT`;
    await server.rows(effect(1, 0));
    expect((await server.sql(effect(2, 0))).body.error?.reason).toBe("already_acknowledged");
    expect((await server.sql(effect(1, 1))).body.error?.reason).toBe("duplicate_key");
    expect(await server.rows(`SELECT id FROM ${names.table}_done`)).toEqual([[1]]);
    await server.restart("SIGKILL");
    expect(offsetsOf(await read({ topic_id: names.topic }))).toEqual([1]);
  });
});

describe("the topic endpoints refuse bad input", () => {
  const cases: [what: string, path: string, fields: Record<string, unknown>, word: RegExp][] = [
    ["no topic", CONSUME, { topic_id: undefined }, /"topic_id": it is missing; expected/],
    ["a topic without namespace", CONSUME, { topic_id: "feed" }, /name of a topic/],
    ["no group", CONSUME, { group_id: undefined }, /"group_id"/],
    ["a long group", CONSUME, { group_id: "g".repeat(129) }, /1 to 128 bytes/],
    ["half a surrogate", CONSUME, { group_id: "\ud800" }, /1 to 128 bytes/],
    ["an unknown start", CONSUME, { start: "middle" }, /"Latest", "Earliest"/],
    ["two starts", CONSUME, { start: { Offset: 1, Timestamp: 2 } }, /"Latest"/],
    ["a negative start", CONSUME, { start: { Offset: -1 } }, /"Latest"/],
    ["limit 0", CONSUME, { limit: 0 }, /it is 0, but must be a whole number from 1 to 10000/],
    ["limit 10001", CONSUME, { limit: 10_001 }, /from 1 to 10000/],
    ["a fraction", CONSUME, { partition_id: 0.5 }, /whole number/],
    ["a negative time", CONSUME, { timeout_seconds: -1 }, /of at least 0/],
    ["ordered as text", CONSUME, { ordered: "yes" }, /true or false/],
    ["another name", CONSUME, { group_id: undefined, group: "g" }, /did you mean "group_id"/],
    ["no offset", ACK, {}, /"upto_offset".*or "offsets"/],
    ["both offsets", ACK, { upto_offset: 1, offsets: [1] }, /"upto_offset".*or "offsets"/],
    ["a negative offset", ACK, { upto_offset: -1 }, /of at least 0/],
    ["no offsets", ACK, { offsets: [] }, /a list of 1 to 10000/],
    ["offsets as text", ACK, { offsets: ["1"] }, /a list of 1 to 10000/],
  ];

  test.each(cases)("%s is refused with INVALID_INPUT", async (_what, path, fields, word) => {
    const body = { topic_id: "app.some", group_id: "g", ...fields };
    const answer = await call<TopicErrorBody>(path, body);
    expect([answer.status, answer.body.code]).toEqual([400, "INVALID_INPUT"]);
    expect(answer.body.error).toMatch(word);
  });

  test("a body that is not a JSON object is refused with INVALID_INPUT", async () => {
    for (const text of ["", "{", "[]", "3"]) {
      const response = await fetch(server.url + CONSUME, {
        method: "POST",
        headers: { Authorization: `Bearer ${server.token}` },
        body: text,
      });
      const { code } = (await response.json()) as TopicErrorBody;
      expect([text, response.status, code]).toEqual([text, 400, "INVALID_INPUT"]);
    }
  });

  test("an unknown topic is refused with NOT_FOUND and a hint", async () => {
    const names = await newTopic();
    const topic_id = `${names.topic}x`;
    for (const [path, fields] of [
      [CONSUME, {}],
      [ACK, { upto_offset: 0 }],
    ] as const) {
      const { body, status } = await call<TopicErrorBody>(path, {
        topic_id,
        group_id: "g",
        ...fields,
      });
      expect([status, body.code]).toEqual([404, "NOT_FOUND"]);
      expect(body.hint).toContain(names.topic);
    }
  });

  test("an unknown group cannot acknowledge", async () => {
    const { topic } = await newTopic();
    const fields = { topic_id: topic, group_id: "nobody", upto_offset: 0 };
    const { body, status } = await call<TopicErrorBody>(ACK, fields);
    expect([status, body.code]).toEqual([404, "NOT_FOUND"]);
    expect(body.error).toContain('group "nobody"');
  });

  test("an offset beyond the end, or one that was never delivered, is refused with INVALID_OFFSET", async () => {
    const names = await newTopic();
    await insert(names, 1, 2);
    await read({ topic_id: names.topic, limit: 1 });
    for (const fields of [{ upto_offset: 1 }, { offsets: [1] }, { upto_offset: 9 }]) {
      const body = { topic_id: names.topic, group_id: "g", ...fields };
      const answer = await call<TopicErrorBody>(ACK, body);
      expect([answer.status, answer.body.code]).toEqual([400, "INVALID_OFFSET"]);
    }
    await server.restart();
    const beyond = { topic_id: names.topic, group_id: "g", upto_offset: 2 };
    expect((await call<TopicErrorBody>(ACK, beyond)).body.code).toBe("INVALID_OFFSET");
  });

  test("role user is refused with FORBIDDEN, and role service is accepted", async () => {
    const { topic } = await newTopic();
    const fields = { topic_id: topic, group_id: "g" };
    const user = await server.createUser("plain", "user");
    const refused = await call<TopicErrorBody>(CONSUME, fields, user);
    expect([refused.status, refused.body.code]).toEqual([403, "FORBIDDEN"]);
    const service = await server.createUser("worker", "service");
    expect((await call(CONSUME, fields, service)).status).toBe(200);
  });

  test("a missing token gets the same error as on every endpoint", async () => {
    const response = await fetch(server.url + CONSUME, { method: "POST", body: "{}" });
    const { error } = (await response.json()) as { error: { code: string } };
    expect([response.status, error.code]).toEqual([401, "MISSING_AUTHORIZATION"]);
  });
});

test("KILL CONSUMER ends a waiting request, and its user may reconnect", async () => {
  const names = await newTopic();
  const body = { topic_id: names.topic, group_id: "g", timeout_seconds: 30 };
  const waiting = call<TopicErrorBody>(CONSUME, body);
  await until(async () => (await consumersOf(names)).length === 1);
  const [[consumerId] = []] = await consumersOf(names);
  await server.rows(`KILL CONSUMER '${String(consumerId)}'`);
  const { body: refused, status } = await waiting;
  expect([status, refused.code]).toEqual([409, "KILLED"]);
  await insert(names, 1);
  expect(offsetsOf(await read({ topic_id: names.topic }))).toEqual([0]);
});

test("DROP TOPIC ends a waiting request", async () => {
  const names = await newTopic();
  const body = { topic_id: names.topic, group_id: "g", timeout_seconds: 30 };
  const waiting = call<TopicErrorBody>(CONSUME, body);
  await until(async () => (await consumersOf(names)).length === 1);
  await server.rows(`DROP TOPIC ${names.topic}`);
  const { body: refused, status } = await waiting;
  expect([status, refused.code]).toEqual([404, "NOT_FOUND"]);
});

testThoroughly(
  "system.topic_consumers shows the lag, even of a group without consumers",
  async () => {
    const names = await newTopic();
    await insert(names, 1, 2, 3);
    await read({ topic_id: names.topic });
    await acknowledge({ topic_id: names.topic, offsets: [0] });
    const view = `SELECT group_id, user_id, lag_messages, claims FROM system.topic_consumers
    WHERE topic_id = '${names.topic}'`;
    expect(await server.rows(view)).toEqual([["g", ADMIN, 2, 2]]);
    await server.restart();
    expect(await server.rows(view)).toEqual([["g", null, 2, 0]]);
    const offsets = `SELECT group_id, last_acked_offset FROM system.topic_offsets
    WHERE topic_id = '${names.topic}'`;
    expect(await server.rows(offsets)).toEqual([["g", 0]]);
  },
);

test("/metrics counts consumers, claims, lag and redeliveries", async () => {
  const names = await newTopic();
  await insert(names, 1, 2);
  await read({ topic_id: names.topic });
  expect(await server.metric("tidemark_topic_consumers")).toBeGreaterThanOrEqual(1);
  expect(await server.metric("tidemark_topic_claims")).toBeGreaterThanOrEqual(2);
  expect(await server.metric("tidemark_topic_lag_messages")).toBeGreaterThanOrEqual(2);
  expect(await server.metric("tidemark_topic_redeliveries_total")).toBeGreaterThanOrEqual(0);
});

testThoroughly(
  "the messages of an erased account disappear without changing any offset, even after a crash",
  async () => {
    const names = await newTopic("", "USER");
    const user = `gone${count}`;
    const token = await server.createUser(user);
    await server.sql(`INSERT INTO ${names.table} VALUES (1, 'gone')`, { token });
    await insert(names, 2);
    const asked = { topic_id: names.topic, start: "Earliest" };
    expect(offsetsOf(await read({ ...asked, group_id: "first" }))).toEqual([0, 1]);
    const [job] = await server.rows(`DROP USER '${user}' PURGE`);
    expect(job?.[2]).toBe("completed");
    await server.restart("SIGKILL");
    await insert(names, 3);
    expect(offsetsOf(await read({ ...asked, group_id: "second" }))).toEqual([1, 2]);
  },
);

testThoroughly("the dead letters of an erased account disappear, even after a crash", async () => {
  const { topic: dead } = await newTopic();
  const options = `WITH (MAX_DELIVERIES = 1, DEAD_LETTER = '${dead}')`;
  const names = await newTopic(options, "USER");
  const user = `gone${count}`;
  const token = await server.createUser(user);
  await server.sql(`INSERT INTO ${names.table} VALUES (1, 'gone')`, { token });
  await insert(names, 2);
  const asked = { topic_id: names.topic, start: "Earliest" };
  expect(offsetsOf(await read(asked))).toEqual([0, 1]);
  // The consumers' claims expire after a second, and the next read turns the messages into dead
  // letters.
  const letters = async (group_id: string): Promise<unknown[]> => {
    const { messages } = await read({ topic_id: dead, group_id });
    return messages.map(({ offset, user: owner }) => [offset, owner]);
  };
  await until(async () => {
    await read(asked);
    return (await letters(`g${Math.random()}`)).length === 2;
  });
  expect(await letters("before")).toEqual([
    [0, user],
    [1, ADMIN],
  ]);
  await server.rows(`DROP USER '${user}' PURGE`);
  expect(await letters("after")).toEqual([[1, ADMIN]]);
  await server.restart("SIGKILL");
  expect(await letters("crashed")).toEqual([[1, ADMIN]]);
});

test("a stopping server responds to waiting requests", async () => {
  const names = await newTopic();
  const waiting = read({ topic_id: names.topic, timeout_seconds: 60 });
  await until(async () => (await consumersOf(names)).length === 1);
  const restarted = server.restart();
  expect((await waiting).messages).toEqual([]);
  await restarted;
});

/** Returns the consumers of a topic, with their claims. */
function consumersOf({ topic }: Names): Promise<readonly (readonly unknown[])[]> {
  return server.rows(`SELECT consumer_id, claims FROM system.topic_consumers
    WHERE topic_id = '${topic}' AND consumer_id IS NOT NULL`);
}
