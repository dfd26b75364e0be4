/**
 * Verifies the schemas of the messages on `/v1/ws`. A client sends every kind of message, and each
 * message from either side is validated against its schema.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ClientMessage } from "../../../src/protocol/mod.ts";
import type { TopicConsumers } from "../../../src/topics/mod.ts";
import { SocketClient } from "../../support/client.ts";
import { startTestServer, type TestServer } from "../../support/http.ts";
import { MESSAGES, message as messageRow } from "../../support/live_fixture.ts";
import { NO_TOPICS } from "../../support/no_topics.ts";
import { type Schema, schemaFaults } from "../../support/schema_faults.ts";

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      { get: { "x-websocket-messages"?: Readonly<Record<"client" | "server", Schema>> } }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ parts: { topics: TOPICS } });
});

/**
 * A stand-in for the topics: one topic with one message, whose acknowledgement always succeeds.
 */
const TOPICS: TopicConsumers = {
  ...NO_TOPICS,
  topicIdOf: () => 1,
  open: async (_request, sink) => ({
    credit: 10,
    start: () => {
      const text = { key: "7", payload: '{"id":7}', user: "eve" };
      const numbers = { partition: 0, offset: 0, timestampMs: 1, owner: 7, deliveries: 1 };
      sink.messages([{ ...text, ...numbers, op: "Insert" }]);
    },
    addCredit: () => undefined,
    drained: () => undefined,
    drain: () => undefined,
    ack: async () => ({
      writes: [],
      committedOffset: 1,
      acknowledgedCount: 1,
      done: () => undefined,
      abandoned: () => undefined,
    }),
    nack: async () => undefined,
    close: () => undefined,
  }),
};

const TOPIC_MESSAGES: readonly ClientMessage[] = [
  {
    type: "consume",
    id: "c",
    topic_id: "chat.feed",
    group_id: "g",
    partition_id: null,
    start: { Offset: 0 },
    credit: 1,
    ordered: true,
  },
  { type: "credit", id: "c", credit: 1 },
  { type: "topic_ack", id: "c", partition_id: 0, offsets: [0], request_id: "1" },
  { type: "nack", id: "c", partition_id: 0, offsets: [0], delay_ms: 1, request_id: "2" },
  { type: "stop", id: "c", drain: false },
  { type: "credit", id: "c", credit: 1 },
];

afterAll(async () => {
  expect(server.bugs).toEqual([]);
  await server.close();
});

test("openapi.json describes the messages of a socket, including refusals", async () => {
  const { components, paths } = (await (await server.fetch("/v1/openapi.json")).json()) as Document;
  const messages = paths["/v1/ws"]?.get["x-websocket-messages"];
  const schemas = new Map(
    ["client", "server"].flatMap((side) => {
      const name = messages?.[side as "client" | "server"].$ref?.split("/").at(-1) ?? "";
      const { anyOf = [] } = components.schemas[name] ?? {};
      return anyOf.map((schema) => {
        const own = components.schemas[schema.$ref?.split("/").at(-1) ?? ""];
        return [own?.properties?.["type"]?.const ?? "", schema] as const;
      });
    }),
  );
  const seen = new Set<string>();
  const check = (message: { readonly type: string }): void => {
    seen.add(message.type);
    expect([
      message,
      schemaFaults(message, schemas.get(message.type) ?? { type: "null" }, components.schemas),
    ]).toEqual([message, []]);
  };
  const token = await server.token("eve");
  const owner = server.catalog.accounts.ownerNumber("eve", { create: true }) ?? 0;
  const row = messageRow(1, "lobby");
  const client = await SocketClient.connect(server.url, { query: "?compress=false" });
  const sent: readonly ClientMessage[] = [
    { type: "authenticate", method: "jwt", token, protocol: { serialization: "json" } },
    {
      type: "subscribe",
      subscription: {
        id: "m",
        sql: "SELECT * FROM chat.messages",
        options: { batch_size: 1, last_rows: null, from_seq_id: null, replay: "all" },
        params: [],
      },
    },
    { type: "next_batch", subscription_id: "m", last_seq_id: null },
    { type: "subscribe", subscription: { id: "n", sql: "SELEC", options: null } },
    { type: "ping", id: "1" },
    { type: "unsubscribe", subscription_id: "m" },
  ];
  for (const message of sent) {
    check(message);
    client.send(message);
    // The test's store has no table with rows, so the snapshot consists of one empty batch.
    if (message.type === "subscribe" && message.subscription.id === "m") {
      for (const type of ["auth_success", "subscription_ack", "initial_data_batch"]) {
        const came = await client.next();
        expect(came).toMatchObject({ type });
        check(came);
      }
      server.store.write({ tableId: MESSAGES, owner, operation: "insert", rows: [row] });
      check(await client.next());
    }
  }
  for (;;) {
    const message = await client.next();
    check(message);
    if (message.type === "pong") break;
  }
  client.close();
  const worker = await SocketClient.connect(server.url, { query: "?compress=false" });
  await worker.authenticate(await server.token());
  for (const message of TOPIC_MESSAGES) {
    check(message);
    worker.send(message);
  }
  const came: string[] = [];
  while (came.at(-1) !== "topic_error") {
    const message = await worker.next();
    check(message);
    came.push(message.type);
  }
  expect(came.toSorted()).toEqual(["consume_ack", "messages", "topic_ack_result", "topic_error"]);
  worker.close();
  const stranger = await SocketClient.connect(server.url, { query: "?compress=false" });
  stranger.send({ type: "authenticate", token: "wrong" });
  check(await stranger.next());
  expect([...schemas.keys()].filter((type) => !seen.has(type))).toEqual([]);
});
