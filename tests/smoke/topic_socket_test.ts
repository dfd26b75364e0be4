/**
 * Tests topic consumers over the WebSocket of the real process, as JSON and as MessagePack:
 * credit, acknowledgements, redelivery, order, every way in which a consumer ends, and bad input.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ServerMessage, TopicMessageBody } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let count = 0;

beforeAll(async () => {
  server = await startReadyServer({ config: { limits: { topic_visibility_secs: 2 } } });
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

interface Names {
  readonly topic: string;
  readonly table: string;
}

async function newTopic(options = ""): Promise<Names> {
  count += 1;
  const names = { topic: `app.topic${count}`, table: `app.t${count}` };
  await server.rows(
    `CREATE SHARED TABLE ${names.table} (id BIGINT PRIMARY KEY, body TEXT);
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

async function connect(packs = false, token = server.token): Promise<SocketClient> {
  const query = packs ? "?serialization=msgpack" : "?compress=false";
  const client = await SocketClient.connect(server.url, { query, packs });
  await client.authenticate(token);
  return client;
}

/** Opens the consumer with the id "c". */
async function consume(
  client: SocketClient,
  { topic }: Names,
  fields: Record<string, unknown> = {},
): Promise<void> {
  const start = "Earliest";
  client.send({ type: "consume", id: "c", topic_id: topic, group_id: "g", start, ...fields });
  await client.expect("consume_ack");
}

/** Waits for a number of messages, and returns them. */
async function messagesOf(client: SocketClient, wanted: number): Promise<TopicMessageBody[]> {
  const messages: TopicMessageBody[] = [];
  while (messages.length < wanted) messages.push(...(await client.expect("messages")).messages);
  return messages;
}

async function offsetsOf(client: SocketClient, wanted: number): Promise<number[]> {
  return (await messagesOf(client, wanted)).map(({ offset }) => offset);
}

async function silence(client: SocketClient): Promise<void> {
  client.send({ type: "ping", id: "now" });
  await client.expect("pong");
}

test("a commit announced to a consumer without credit goes to another one", async () => {
  const names = await newTopic();
  const [full, free] = [await connect(), await connect()];
  await consume(full, names, { credit: 1 });
  await insert(names, 1);
  expect(await offsetsOf(full, 1)).toEqual([0]);
  await consume(free, names, { credit: 5 });
  await silence(free);
  await insert(names, 2);
  expect(await offsetsOf(free, 1)).toEqual([1]);
  full.close();
  free.close();
});

describe.each([
  ["JSON", false],
  ["MessagePack", true],
])("topic messages as %s are delivered and acknowledged", (_name, packs) => {
  test("messages arrive as far as the credit allows, and acknowledgements are answered", async () => {
    const names = await newTopic();
    await insert(names, 1, 2, 3);
    const client = await connect(packs);
    await consume(client, names, { credit: 2 });
    const [first, second] = await messagesOf(client, 2);
    expect(first).toMatchObject({ topic_id: names.topic, key: "1", op: "Insert", deliveries: 1 });
    expect(JSON.parse(second?.payload ?? "")).toMatchObject({ id: 2, body: "b2" });
    await silence(client);
    client.send({ type: "credit", id: "c", credit: 5 });
    expect(await offsetsOf(client, 1)).toEqual([2]);
    client.send({ type: "topic_ack", id: "c", offsets: [1], request_id: "a" });
    const [single, cumulative] = [
      await client.expect("topic_ack_result"),
      await (async () => {
        client.send({ type: "topic_ack", id: "c", upto_offset: 2 });
        return client.expect("topic_ack_result");
      })(),
    ];
    expect(single).toMatchObject({ acknowledged_offset: -1, acknowledged: 1, request_id: "a" });
    expect(cumulative).toMatchObject({ acknowledged_offset: 2, acknowledged: 2 });
    client.close();
  });

  test("a commit is pushed to a consumer at once", async () => {
    const names = await newTopic();
    const client = await connect(packs);
    await consume(client, names, { start: "latest" });
    const before = performance.now();
    await insert(names, 1);
    expect(await offsetsOf(client, 1)).toEqual([0]);
    expect(performance.now() - before).toBeLessThan(1000);
    client.close();
  });
});

test("a consumer receives the messages of all partitions, or of one", async () => {
  const names = await newTopic("PARTITIONS 4");
  await insert(names, ...Array.from({ length: 40 }, (_, index) => index));
  const client = await connect();
  await consume(client, names);
  const messages = await messagesOf(client, 40);
  const partitions = new Set(messages.map(({ partition_id }) => partition_id));
  expect([...partitions].toSorted((left, right) => left - right)).toEqual([0, 1, 2, 3]);
  const other = await connect();
  await consume(other, names, { group_id: "h", partition_id: 2 });
  const ofTwo = messages.filter(({ partition_id }) => partition_id === 2);
  expect(await offsetsOf(other, ofTwo.length)).toEqual(ofTwo.map(({ offset }) => offset));
  await silence(other);
  client.close();
  other.close();
});

test("the consumers of a group share a partition, and each message goes to one of them", async () => {
  const names = await newTopic();
  const clients = await Promise.all([connect(), connect(), connect()]);
  for (const client of clients) await consume(client, names, { credit: 2 });
  await insert(names, 1, 2, 3, 4, 5, 6);
  const parts = await Promise.all(clients.map((client) => offsetsOf(client, 2)));
  expect(parts.flat().toSorted((left, right) => left - right)).toEqual([0, 1, 2, 3, 4, 5]);
  for (const client of clients) client.close();
});

test("nack redelivers a message after its delay, with a count", async () => {
  const names = await newTopic();
  await insert(names, 1);
  const client = await connect();
  await consume(client, names);
  await messagesOf(client, 1);
  const before = performance.now();
  client.send({ type: "nack", id: "c", offsets: [0], delay_ms: 200 });
  const [again] = await messagesOf(client, 1);
  expect(again?.deliveries).toBe(2);
  expect(performance.now() - before).toBeGreaterThan(190);
  client.close();
});

test("a message that is not acknowledged in time is redelivered", async () => {
  const names = await newTopic();
  await insert(names, 1);
  const client = await connect();
  await consume(client, names);
  await messagesOf(client, 1);
  expect((await messagesOf(client, 1))[0]?.deliveries).toBe(2);
  client.close();
});

test("with ordering, a message waits for the earlier one with its key", async () => {
  const names = await newTopic();
  await server.rows(`ALTER TOPIC ${names.topic} ADD SOURCE ${names.table} ON UPDATE`);
  await insert(names, 1);
  await server.rows(`UPDATE ${names.table} SET body = 'x' WHERE id = 1`);
  await insert(names, 2);
  const client = await connect();
  await consume(client, names, { ordered: true });
  expect(await offsetsOf(client, 2)).toEqual([0, 2]);
  await silence(client);
  client.send({ type: "topic_ack", id: "c", offsets: [0] });
  const types: string[] = [(await client.next()).type, (await client.next()).type];
  expect(types.toSorted()).toEqual(["messages", "topic_ack_result"]);
  client.close();
});

test("the messages of a closed socket go to other consumers at once", async () => {
  const names = await newTopic();
  await insert(names, 1, 2);
  const first = await connect();
  await consume(first, names);
  await messagesOf(first, 2);
  first.send({ type: "topic_ack", id: "c", offsets: [1] });
  await first.expect("topic_ack_result");
  const second = await connect();
  await consume(second, names);
  const before = performance.now();
  first.close();
  const [again] = await messagesOf(second, 1);
  expect([again?.offset, again?.deliveries]).toEqual([0, 2]);
  expect(performance.now() - before).toBeLessThan(1500);
  second.close();
});

test("stop gives messages to other consumers; with drain, they may still be acknowledged", async () => {
  const names = await newTopic();
  await insert(names, 1, 2);
  const first = await connect();
  await consume(first, names, { credit: 1 });
  await messagesOf(first, 1);
  first.send({ type: "stop", id: "c", drain: true });
  first.send({ type: "credit", id: "c", credit: 5 });
  await silence(first);
  first.send({ type: "topic_ack", id: "c", offsets: [0] });
  expect(await first.expect("topic_ack_result")).toMatchObject({ acknowledged_offset: 0 });
  await consume(first, names);
  expect(await offsetsOf(first, 1)).toEqual([1]);
  const second = await connect();
  await consume(second, names);
  first.send({ type: "stop", id: "c" });
  expect(await offsetsOf(second, 1)).toEqual([1]);
  first.send({ type: "topic_ack", id: "c", offsets: [1] });
  expect(await first.expect("topic_error")).toMatchObject({ code: "NOT_FOUND", ended: true });
  first.close();
  second.close();
});

test("KILL CONSUMER, DROP TOPIC, a revoked session and a stopping server end a consumer", async () => {
  const names = await newTopic();
  const client = await connect();
  await consume(client, names);
  const view = `SELECT consumer_id FROM system.topic_consumers
    WHERE topic_id = '${names.topic}' AND consumer_id IS NOT NULL`;
  const [[consumerId] = []] = await server.rows(view);
  await server.rows(`KILL CONSUMER '${String(consumerId)}'`);
  expect(await client.expect("topic_error")).toMatchObject({ code: "KILLED", ended: true });
  await consume(client, names);
  await server.rows(`DROP TOPIC ${names.topic}`);
  expect(await client.expect("topic_error")).toMatchObject({ code: "NOT_FOUND", ended: true });
  const others = await newTopic();
  const token = await server.createUser("revoked", "service");
  const revoked = await connect(false, token);
  await consume(revoked, others);
  await server.rows("ALTER USER 'revoked' SET PASSWORD 'another horse 9'");
  expect(await revoked.expect("topic_error")).toMatchObject({ code: "FORBIDDEN", ended: true });
  await consume(client, others);
  const restarted = server.restart();
  expect(await client.expect("topic_error")).toMatchObject({ code: "SHUTTING_DOWN", ended: true });
  await restarted;
});

test("a message that is delivered too often goes to the dead-letter topic", async () => {
  const dead = await newTopic();
  const names = await newTopic(`WITH (MAX_DELIVERIES = 2, DEAD_LETTER = '${dead.topic}')`);
  const listener = await connect();
  await consume(listener, dead, { group_id: "undertaker" });
  await insert(names, 1, 2);
  const client = await connect();
  await consume(client, names);
  await messagesOf(client, 2);
  client.send({ type: "topic_ack", id: "c", offsets: [1] });
  await client.expect("topic_ack_result");
  client.send({ type: "nack", id: "c", offsets: [0] });
  expect((await messagesOf(client, 1))[0]?.deliveries).toBe(2);
  client.send({ type: "nack", id: "c", offsets: [0] });
  const [letter] = await messagesOf(listener, 1);
  const { payload, ...rest } = JSON.parse(letter?.payload ?? "") as Record<string, unknown>;
  expect(rest).toMatchObject({
    topic_id: names.topic,
    partition_id: 0,
    offset: 0,
    group_id: "g",
    deliveries: 2,
    key: "1",
    op: "Insert",
    user: null,
  });
  expect(JSON.parse(String(payload))).toMatchObject({ id: 1, body: "b1", _table: names.table });
  await silence(client);
  expect(
    await server.rows(
      `SELECT last_acked_offset FROM system.topic_offsets WHERE topic_id = '${names.topic}'`,
    ),
  ).toEqual([[1]]);
  await server.restart("SIGKILL");
  const again = await connect();
  await consume(again, dead, { group_id: "auditor" });
  expect(await messagesOf(again, 1)).toMatchObject([
    { key: letter?.key, payload: letter?.payload },
  ]);
  await consume(again, names, { group_id: "g" });
  await silence(again);
  again.close();
});

describe("bad input from a topic consumer is refused", () => {
  const open = { type: "consume", id: "c", topic_id: "app.feed", group_id: "g" };
  const cases: [what: string, message: Record<string, unknown>, code: string, word: RegExp][] = [
    ["an unknown topic", open, "NOT_FOUND", /Cannot find topic "app.feed"/],
    ["no group", { ...open, group_id: undefined }, "INVALID_INPUT", /"group_id"/],
    ["a wrong start", { ...open, start: 7 }, "INVALID_INPUT", /"start"/],
    ["too much credit", { ...open, credit: 10_001 }, "INVALID_INPUT", /from 0 to 10000/],
    ["ordered as text", { ...open, ordered: "no" }, "INVALID_INPUT", /true or false/],
    ["credit of none", { type: "credit", id: "c" }, "INVALID_INPUT", /it is missing/],
    ["credit for nobody", { type: "credit", id: "c", credit: 1 }, "NOT_FOUND", /no consumer "c"/],
    ["ack of nothing", { type: "topic_ack", id: "c" }, "INVALID_INPUT", /upto_offset/],
    ["ack of nobody", { type: "topic_ack", id: "c", offsets: [1] }, "NOT_FOUND", /no consumer/],
    ["nack of nothing", { type: "nack", id: "c" }, "INVALID_INPUT", /"offsets"/],
    [
      "a long delay",
      { type: "nack", id: "c", offsets: [1], delay_ms: 1e9 },
      "INVALID_INPUT",
      /delay_ms/,
    ],
    ["drain as text", { type: "stop", id: "c", drain: 1 }, "INVALID_INPUT", /true or false/],
  ];

  test.each(cases)("%s is refused for a topic consumer", async (_what, message, code, word) => {
    const client = await connect();
    client.send({ ...message, request_id: "r" });
    const answer = await client.expect("topic_error");
    expect(answer).toMatchObject({ id: "c", code, request_id: "r" });
    expect(answer.message).toMatch(word);
    client.close();
  });

  test("a missing or blank id is an invalid message", async () => {
    const client = await connect();
    for (const id of [undefined, 3, " ", "x".repeat(129)]) {
      client.send({ ...open, id });
      expect(await client.expect("error")).toMatchObject({ code: "INVALID_MESSAGE" });
    }
    client.close();
  });

  test("acknowledging an undelivered message is INVALID_OFFSET, and the consumer continues", async () => {
    const names = await newTopic();
    await insert(names, 1, 2);
    const client = await connect();
    await consume(client, names, { credit: 1 });
    await messagesOf(client, 1);
    for (const type of ["topic_ack", "nack"]) {
      client.send({ type, id: "c", offsets: [1] });
      const answer = await client.expect("topic_error");
      expect(answer).toMatchObject({ code: "INVALID_OFFSET", ended: false });
    }
    client.send({ type: "credit", id: "c", credit: 1 });
    expect(await offsetsOf(client, 1)).toEqual([1]);
    client.close();
  });

  test("role user is refused with FORBIDDEN", async () => {
    const client = await connect(false, await server.createUser("plain", "user"));
    client.send(open);
    expect(await client.expect("topic_error")).toMatchObject({ code: "FORBIDDEN", ended: true });
    client.close();
  });

  test("a message before authentication is refused with AUTH_REQUIRED", async () => {
    const client = await SocketClient.connect(server.url, { query: "?compress=false" });
    client.send(open);
    const answer: ServerMessage = await client.next();
    expect(answer).toMatchObject({ type: "error", code: "AUTH_REQUIRED" });
    client.close();
  });
});

test("a consumer that takes no messages costs the server no queue", async () => {
  const names = await newTopic();
  const client = await connect();
  await consume(client, names, { credit: 0 });
  await insert(names, 1);
  await silence(client);
  const claims = `SELECT claims FROM system.topic_consumers WHERE topic_id = '${names.topic}'`;
  await until(async () => (await server.rows(claims))[0]?.[0] === 0);
  client.close();
});
