/**
 * The kinds of abuse. Each lasts for the given time, closes everything it opened, and returns a
 * summary.
 */
import { readFileSync } from "node:fs";
import type { Attack } from "./attack.ts";
import { malformedBytes, malformedMessage } from "./malformed.ts";
import { OPCODE, openRawSockets, RawSocket } from "./raw_socket.ts";
import { signUp } from "./sign_ups.ts";
import { openUnfinished, type UnfinishedRequest } from "./unfinished_request.ts";

type Abuse = (attack: Attack) => Promise<string>;

/** The number of sockets that keep a server busy with messages. */
const STORMING_SOCKETS = 50;

/**
 * The number of bytes by which a message must exceed the limit for the server to close the socket.
 */
const LARGE_MESSAGE_BYTES = 2 ** 20;

/** A message size just below the size at which the server closes the socket. */
const UNFINISHED_BYTES = 3_900_000;

const UNFINISHED_FRAME = RawSocket.frame(OPCODE.text, Buffer.alloc(UNFINISHED_BYTES, " ")).subarray(
  0,
  -10,
);

const FRAGMENT = Buffer.alloc(65_000, " ");

const INFLATING = Bun.gzipSync(Buffer.alloc(100 * LARGE_MESSAGE_BYTES));

/** How long the abuse pauses, in milliseconds, so that the kernel's buffers can drain. */
const PAUSE_MS = 5;

export const ABUSE_NAMES = [
  "silent",
  "storm",
  "next_batch",
  "malformed",
  "handshake",
  "replay",
  "reconnect",
  "bodies",
  "unfinished",
  "sign_ups",
] as const;

export type AbuseName = (typeof ABUSE_NAMES)[number];

export const ABUSES: Readonly<Record<AbuseName, Abuse>> = {
  silent: readNothing,
  storm: subscribeAndUnsubscribe,
  next_batch: askForBatches,
  malformed: sendMalformed,
  handshake: openHalfway,
  replay: replayAll,
  reconnect: openAndBreak,
  bodies: keepBodiesBack,
  unfinished: keepMessagesBack,
  sign_ups: signUp,
};

/** Opens sockets that subscribe to everything and read nothing while the server keeps sending. */
async function readNothing(attack: Attack): Promise<string> {
  const { server, socketCount } = attack;
  const sockets = await openRawSockets(server.url, socketCount, tokenOf(attack));
  for (const socket of sockets) {
    socket.stopReading();
    socket.sendText(subscribe("wall", "SELECT * FROM app.wall"));
    for (let batch = 0; batch < 32; batch += 1) socket.sendText('{"type":"next_batch"}');
  }
  let writes = 0;
  await forSeconds(attack, async () => {
    writes += 1;
    await server.rows("UPDATE app.wall SET body = REPEAT($1, 200) WHERE id <= 20", {
      params: [String(writes % 10)],
    });
  });
  closeAll(sockets);
  return `${socketCount} sockets that read nothing, ${writes * 20} changes`;
}

/** Subscribes and unsubscribes over and over, each time with different SQL. */
async function subscribeAndUnsubscribe(attack: Attack): Promise<string> {
  const { server, chance } = attack;
  const sockets = await openRawSockets(server.url, STORMING_SOCKETS, tokenOf(attack));
  let sent = 0;
  await forSeconds(attack, async () => {
    for (const socket of sockets) {
      const id = `s${chance.below(10)}`;
      const where = `room = 'room ${chance.below(100)}' AND id > ${chance.below(20_000)}`;
      socket.sendText(subscribe(id, `SELECT id, body FROM app.wall WHERE ${where}`));
      if (chance.below(2) === 0)
        socket.sendText(`{"type":"unsubscribe","subscription_id":"${id}"}`);
      sent += 1;
    }
    await settle(sockets);
  });
  closeAll(sockets);
  return `${sent} subscriptions that came and went on ${STORMING_SOCKETS} sockets`;
}

/** Requests far more batches than exist. */
async function askForBatches(attack: Attack): Promise<string> {
  const { server, messageCount, chance } = attack;
  const sockets = await openRawSockets(server.url, STORMING_SOCKETS, tokenOf(attack));
  for (const socket of sockets) {
    for (const id of ["a", "b"]) {
      socket.sendText(subscribe(id, "SELECT * FROM app.wall", { batch_size: 10 }));
    }
  }
  for (let sent = 0; sent < messageCount; sent += STORMING_SOCKETS) {
    for (const socket of sockets) {
      socket.sendText(`{"type":"next_batch","subscription_id":"${chance.pick(["a", "b", "c"])}"}`);
    }
    if (sent % (20 * STORMING_SOCKETS) === 0) await settle(sockets);
  }
  await settle(sockets);
  closeAll(sockets);
  return `${messageCount} times next_batch`;
}

/**
 * Sends messages with an error in each field, and bytes that are not a frame. Replaces sockets
 * that the server closes.
 */
async function sendMalformed(attack: Attack): Promise<string> {
  const { server, chance } = attack;
  let sockets = await openRawSockets(server.url, STORMING_SOCKETS, tokenOf(attack));
  let sent = 0;
  let replaced = 0;
  await forSeconds(attack, async () => {
    for (const socket of sockets) {
      if (chance.below(4) === 0) socket.sendBytes(malformedBytes(chance));
      else socket.sendText(malformedMessage(chance));
      sent += 1;
    }
    await settle(sockets);
    const open = sockets.filter((socket) => !socket.isClosed);
    const missing = STORMING_SOCKETS - open.length;
    sockets = [...open, ...(await openRawSockets(server.url, missing, tokenOf(attack)))];
    replaced += missing;
  });
  closeAll(sockets);
  return `${sent} malformed messages, ${replaced} sockets closed for them`;
}

/** Sends requests, upgrades and fragmented messages that never end. */
async function openHalfway(attack: Attack): Promise<string> {
  const { server, socketCount } = attack;
  const { hostname, port } = new URL(server.url);
  const halves = await Promise.all(
    Array.from({ length: socketCount / 2 }, async (_, index) => {
      const socket = await Bun.connect({
        hostname,
        port: Number(port),
        socket: { data() {}, error() {} },
      });
      const path = index % 2 === 0 ? "GET /v1/ws" : "POST /v1/api/sql";
      socket.write(`${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n`);
      return socket;
    }),
  );
  const fragments = await openRawSockets(server.url, STORMING_SOCKETS, tokenOf(attack));
  const part = new Uint8Array(LARGE_MESSAGE_BYTES / 16).fill(0x20);
  let sent = 0;
  await forSeconds(attack, async () => {
    for (const socket of halves) socket.write("X-More: more\r\n");
    for (const socket of fragments) {
      if (socket.isClosed) continue;
      const opcode = sent === 0 ? OPCODE.text : OPCODE.continuation;
      socket.sendFrame(opcode, part, { isFinal: false });
    }
    sent += 1;
    await settle(fragments);
  });
  for (const socket of halves) socket.terminate();
  const closed = fragments.filter((socket) => socket.isClosed).length;
  closeAll(fragments);
  return (
    `${halves.length} requests without an end, ${fragments.length} messages without an end, ` +
    `${closed} of them cut off`
  );
}

/**
 * Sends requests whose bodies lack their last bytes, some with a declared size and some in chunks.
 */
async function keepBodiesBack(attack: Attack): Promise<string> {
  const { server, socketCount } = attack;
  const requests: UnfinishedRequest[] = [];
  for (let index = 0; index < socketCount; index += 1) {
    const token = tokenOf(attack)(index) ?? "";
    const isChunked = index % 4 === 3;
    requests.push(await openUnfinished(server.url, { token, isChunked }));
    // The bodies add up to a gigabyte even if they are refused. Sending them all at once would
    // only test the network.
    await Bun.sleep(1);
  }
  await forSeconds(attack, () => Bun.sleep(PAUSE_MS));
  const refused = requests.filter((request) => request.answer.startsWith("HTTP/1.1 4")).length;
  const closed = requests.filter((request) => request.isClosed).length;
  for (const request of requests) request.close();
  return `${socketCount} unfinished bodies, ${refused} of them refused, ${closed} connections closed`;
}

/**
 * Sends nearly all of a message, in one frame or in fragments, both as known users and as
 * unauthenticated callers. Some sockets instead send small gzip frames that decompress to far
 * more.
 */
async function keepMessagesBack(attack: Attack): Promise<string> {
  const { server, socketCount } = attack;
  const sockets: RawSocket[] = [];
  for (let index = 0; index < socketCount; index += 1) {
    const token = index % 4 === 3 ? undefined : tokenOf(attack)(index);
    const socket = await RawSocket.open(server.url, token);
    sockets.push(socket);
    if (index % 8 === 0) sendInflating(socket);
    else if (index % 2 === 0) sendFragments(socket);
    else socket.sendBytes(UNFINISHED_FRAME);
  }
  await forSeconds(attack, () => Bun.sleep(PAUSE_MS));
  const closed = sockets.filter((socket) => socket.isClosed).length;
  closeAll(sockets);
  return `${socketCount} unfinished messages, ${closed} connections closed`;
}

function sendFragments(socket: RawSocket): void {
  for (let sent = 0; sent < UNFINISHED_BYTES; sent += FRAGMENT.length) {
    const opcode = sent === 0 ? OPCODE.text : OPCODE.continuation;
    socket.sendFrame(opcode, FRAGMENT, { isFinal: false });
  }
}

/** Sends frames that decompress to a thousand times their size. */
function sendInflating(socket: RawSocket): void {
  socket.sendText('{"type":"authenticate","method":"jwt","protocol":{"serialization":"msgpack"}}');
  for (let sent = 0; sent < 8; sent += 1) socket.sendFrame(OPCODE.binary, INFLATING);
}

/** Requests the entire history over and over. */
async function replayAll(attack: Attack): Promise<string> {
  const { server, chance } = attack;
  await server.rows("UPDATE app.wall SET body = body || 'y'");
  const sockets = await openRawSockets(server.url, STORMING_SOCKETS, tokenOf(attack));
  let sent = 0;
  await forSeconds(attack, async () => {
    for (const socket of sockets) {
      const replay = chance.pick(["all", "latest"]);
      socket.sendText(
        subscribe("again", "SELECT * FROM app.wall", {
          from_seq_id: 0,
          replay,
          batch_size: 1000,
        }),
      );
      for (let batch = 0; batch < 8; batch += 1) socket.sendText('{"type":"next_batch"}');
      sent += 1;
    }
    await settle(sockets);
  });
  closeAll(sockets);
  return `${sent} replays of the whole history`;
}

/** Opens connections that log in, subscribe and then drop. Some of them only log in. */
async function openAndBreak(attack: Attack): Promise<string> {
  const { server, chance } = attack;
  let opened = 0;
  await forSeconds(attack, async () => {
    const some = await Promise.all(
      Array.from({ length: STORMING_SOCKETS }, () =>
        RawSocket.open(server.url, chance.below(3) === 0 ? undefined : chance.pick(attack.tokens)),
      ),
    );
    for (const socket of some) socket.sendText(subscribe("one", "SELECT id FROM app.wall"));
    await Bun.sleep(PAUSE_MS);
    closeAll(some);
    opened += some.length;
  });
  const left = descriptorCount(server.pid);
  return `${opened} connections that broke off, ${left} descriptors open afterwards`;
}

function subscribe(
  id: string,
  sql: string,
  options: Readonly<Record<string, unknown>> = {},
): string {
  return JSON.stringify({
    type: "subscribe",
    subscription: { id, sql, options },
  });
}

function tokenOf({ tokens }: Attack): (index: number) => string | undefined {
  return (index) => tokens[index % tokens.length];
}

async function forSeconds({ seconds }: Attack, round: () => Promise<void>): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    await round();
    await Bun.sleep(1);
  }
}

async function settle(sockets: readonly RawSocket[]): Promise<void> {
  await Promise.all(sockets.map((socket) => socket.drained()));
}

function closeAll(sockets: readonly RawSocket[]): void {
  for (const socket of sockets) socket.close();
}

function descriptorCount(pid: number): number {
  return Number(/^FDSize:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}
