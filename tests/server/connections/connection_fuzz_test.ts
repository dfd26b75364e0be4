/** Sends random client frames to a connection's state machine. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { settle } from "../../support/live_fixture.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { ConnectionFixture, Identity, subscribe } from "./connection_fixture.ts";

let identity: Identity;

beforeAll(async () => {
  identity = await Identity.make();
});

afterAll(() => identity.close());

const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  1e300,
  "",
  " ",
  "x",
  "\ud800",
  "x".repeat(300),
  [],
  [[1]],
  {},
  { a: {} },
];

/** Returns a client frame that is valid, nearly valid, or noise. */
function randomFrame(random: SeededRandom, token: string): string | Uint8Array {
  if (random.chance(0.03)) return random.bytes(random.below(40));
  if (random.chance(0.02)) return "x".repeat(random.below(4000));
  const protocol = { serialization: random.pick(["json", "msgpack"]), compression: "none" };
  const options = random.pick<object | null>([{}, null, { batch_size: 1 }, { last_rows: 2 }]);
  const message: Record<string, unknown> = structuredClone(
    random.pick<object>([
      { type: "authenticate", token, protocol },
      { type: "ping", id: "p" },
      { type: "next_batch", subscription_id: random.pick(["a", "b", undefined]) },
      { type: "unsubscribe", subscription_id: random.pick(["a", "b"]) },
      subscribe(random.pick(["a", "b", "c"]), options),
      subscribe(random.pick(["a", "b", "c"]), options),
    ]),
  ) as Record<string, unknown>;
  if (random.chance(0.3)) spoil(message, random);
  return JSON.stringify(message);
}

/** Replaces or removes a random property of an object, at any depth. */
function spoil(target: Record<string, unknown>, random: SeededRandom): void {
  const key = random.pick(Object.keys(target));
  const value = target[key];
  const isDeep = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (isDeep && random.chance(0.8)) spoil(value as Record<string, unknown>, random);
  else if (random.chance(0.3)) delete target[key];
  else target[key] = random.pick(ODD_VALUES);
}

test("any sequence of frames leaves the connection either open or closed", async () => {
  const token = await identity.logIn();
  const fixture = new ConnectionFixture(identity, token);
  const random = new SeededRandom(seedOf(11));
  const seen = new Set<string>();
  for (let round = 0; round < 60; round += 1) {
    const { connection, socket } = fixture.open({
      config: {
        websocket: { send_queue_bytes: 65536 },
        limits: { messages_per_sec: 0, max_message_size: 2000 },
      },
    });
    for (let step = 0; step < 60; step += 1) {
      const frame = randomFrame(random, token);
      socket.capacity = random.chance(0.8) ? Infinity : 0;
      connection.receive(frame);
      if (random.chance(0.2)) {
        socket.take();
        connection.drained();
      }
      if (random.chance(0.05)) fixture.clock.advance(random.below(2000));
      if (random.chance(0.1)) await settle();
      connection.tick();
    }
    for (const sent of socket.messages()) {
      seen.add(sent.type === "error" ? sent.code : sent.type);
      if (sent.type === "error") expect(sent.ended).toBeBoolean();
    }
    expect(connection.state === "closing").toBe(socket.closed !== undefined);
    connection.closed();
    expect(fixture.live.countOfUser("ada")).toBe(0);
  }
  // The random frames must produce all of these messages. Otherwise, the test proves nothing.
  for (const word of [
    "auth_success",
    "auth_error",
    "pong",
    "subscription_ack",
    "initial_data_batch",
    "AUTH_REQUIRED",
    "INVALID_MESSAGE",
    "INVALID_OPTIONS",
    "INVALID_SQL",
    "INVALID_SUBSCRIPTION_ID",
    "BATCH_FETCH_FAILED",
    "UNSUPPORTED_DATA",
    "MESSAGE_TOO_LARGE",
  ]) {
    expect([...seen]).toContain(word);
  }
});
