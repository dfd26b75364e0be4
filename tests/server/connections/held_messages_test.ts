/**
 * Verifies that sockets with too many unfinished messages are closed, based on the operating
 * system's count of received bytes.
 */
import { expect, test } from "bun:test";
import type { Peer, ReceivedBytes } from "../../../src/base/received_bytes.ts";
import { HeldMessages, type WatchedSocket } from "../../../src/server/connections/held_messages.ts";
import { ManualClock } from "../../support/manual_clock.ts";

const MIB = 2 ** 20;
const LOOK_MS = 100;
/** The maximum size of a request's headers, in bytes. */
const HEAD_BYTES = 16 * 1024;

/**
 * A stand-in for the operating system that counts the bytes received on each connection. A
 * connection's descriptor is the port of its peer.
 */
class CountingSystem implements ReceivedBytes {
  readonly #bytes = new Map<number, number>();
  lookCount = 0;

  receive(port: number, bytes: number): void {
    this.#bytes.set(port, (this.#bytes.get(port) ?? 0) + bytes);
  }

  findPeers(
    isKnown: (descriptor: number) => boolean,
    visit: (descriptor: number, peer: Peer) => void,
  ): void {
    for (const port of this.#bytes.keys()) if (!isKnown(port)) visit(port, peerOf(port));
  }

  of(descriptor: number): number | undefined {
    this.lookCount += 1;
    return this.#bytes.get(descriptor);
  }
}

class FakeSocket implements WatchedSocket {
  userId: string | undefined;
  bytesIn = 0;
  framesIn = 0;
  waitingBytes = 0;
  refusal: string | undefined;
  isCut = false;
  readonly address: string;
  readonly #system: CountingSystem;
  readonly #port: number;

  constructor(system: CountingSystem, port: number, userId: string | undefined) {
    this.userId = userId;
    this.address = "10.0.0.1";
    this.#system = system;
    this.#port = port;
    system.receive(port, HEAD_BYTES);
  }

  /** Receives part of a message. */
  arrive(bytes: number): void {
    this.#system.receive(this.#port, bytes);
  }

  /** Ends a message. */
  finish(bytes: number): void {
    this.bytesIn += bytes;
    this.framesIn += 1;
  }

  refuse(message: string): void {
    this.refusal = message;
  }

  cut(): void {
    this.isCut = true;
  }
}

function peerOf(port: number): Peer {
  return { address: "10.0.0.1", port };
}

interface Watch {
  readonly clock: ManualClock;
  readonly system: CountingSystem;
  readonly held: HeldMessages;
  readonly open: (count: number, userId?: string) => FakeSocket[];
  /**
   * Makes the next check cover all sockets. The list of sockets is refreshed at least once a
   * second.
   */
  readonly lookAtAll: () => void;
}

function watch(): Watch {
  const clock = new ManualClock();
  const system = new CountingSystem();
  const held = new HeldMessages({
    clock,
    received: system,
    messageBytesMax: 4 * MIB,
    bounds: {
      userBytesMax: 10 * MIB,
      addressBytesMax: 15 * MIB,
      strangerBytesMax: 2 * MIB,
      bytesMax: 40 * MIB,
    },
  });
  let port = 0;
  return {
    clock,
    system,
    held,
    open: (count, userId) =>
      Array.from({ length: count }, () => {
        port += 1;
        const socket = new FakeSocket(system, port, userId);
        held.add(socket, peerOf(port));
        return socket;
      }),
    lookAtAll: () => clock.advance(10 * LOOK_MS),
  };
}

function refusedOf(sockets: readonly FakeSocket[]): number {
  return sockets.filter(({ refusal }) => refusal !== undefined).length;
}

test("new sockets of a user above the limit are refused, then existing ones closed, and other users continue", () => {
  const { held, lookAtAll, open } = watch();
  const mallory = open(5, "mallory");
  const [alice] = open(1, "alice");
  for (const socket of mallory) socket.arrive(3 * MIB);
  alice?.arrive(3 * MIB);
  lookAtAll();
  expect(refusedOf(mallory)).toBe(2);
  expect(mallory.find(({ refusal }) => refusal !== undefined)?.refusal).toBe(
    "Too many unfinished or waiting messages: on the connections of this user, they take " +
      "more than 10485760 bytes; finish sending a message on one connection before starting " +
      "the next on another, and read the responses",
  );
  expect(alice?.refusal).toBeUndefined();
  expect(held.heldBytes).toBe(12 * MIB);
  expect(mallory.some(({ isCut }) => isCut)).toBe(false);
  lookAtAll();
  lookAtAll();
  expect(mallory.map(({ isCut }) => isCut)).toEqual(
    mallory.map(({ refusal }) => refusal !== undefined),
  );
});

test("the limits for an address and for unauthenticated clients also apply", () => {
  const { lookAtAll, open } = watch();
  const strangers = open(3);
  for (const socket of strangers) socket.arrive(MIB);
  lookAtAll();
  expect(strangers.map(({ refusal }) => refusal?.slice(0, 118))).toEqual([
    undefined,
    undefined,
    "Too many unfinished or waiting messages: on the connections of this address, they take more than 2097152 bytes; finish",
  ]);
  const users = ["a", "b", "c", "d"].flatMap((user) => open(1, user));
  for (const socket of users) socket.arrive(3.5 * MIB);
  lookAtAll();
  expect(refusedOf(users)).toBe(1);
});

test("a finished message no longer counts, and headers and control frames never count", () => {
  const { held, lookAtAll, open } = watch();
  const [socket] = open(1, "alice");
  for (let round = 0; round < 50; round += 1) {
    socket?.arrive(MIB);
    lookAtAll();
    socket?.arrive(MIB + 14);
    socket?.finish(2 * MIB);
    for (let pong = 0; pong < 10; pong += 1) socket?.arrive(35);
    if (socket !== undefined) socket.framesIn += 10;
    lookAtAll();
    expect(held.heldBytes).toBe(0);
  }
  expect(socket?.refusal).toBeUndefined();
});

test("the overhead of fragments and TLS no longer counts after the message ends", () => {
  const { held, lookAtAll, open } = watch();
  const [socket] = open(1, "alice");
  for (let round = 0; round < 50; round += 1) {
    socket?.arrive(1_200_000);
    socket?.finish(MIB);
    lookAtAll();
    socket?.arrive(10);
    socket?.finish(5);
    lookAtAll();
    // The count may include no bytes other than those that have arrived since the previous check.
    expect(held.heldBytes).toBeLessThanOrEqual(10);
  }
});

test("an unfinished message counts for the user once its socket has authenticated", () => {
  const { lookAtAll, open } = watch();
  const [early, late] = open(2);
  early?.arrive(1.5 * MIB);
  lookAtAll();
  if (early !== undefined) early.userId = "alice";
  lookAtAll();
  late?.arrive(1.5 * MIB);
  lookAtAll();
  expect(refusedOf(early && late ? [early, late] : [])).toBe(0);
});

test("finished messages that wait count until they are served", () => {
  const { held, lookAtAll, open } = watch();
  const sockets = open(4, "alice");
  for (const socket of sockets) {
    socket.arrive(3 * MIB);
    socket.finish(3 * MIB);
    socket.waitingBytes = 3 * MIB;
  }
  lookAtAll();
  expect(refusedOf(sockets)).toBe(1);
  for (const socket of sockets) socket.waitingBytes = 0;
  lookAtAll();
  expect(held.heldBytes).toBe(0);
});

test("a socket that closes releases its bytes", () => {
  const { held, lookAtAll, open } = watch();
  const [first, second] = open(2, "alice");
  first?.arrive(4 * MIB);
  second?.arrive(4 * MIB);
  lookAtAll();
  expect(held.heldBytes).toBe(8 * MIB);
  if (first !== undefined) held.remove(first);
  expect(held.heldBytes).toBe(4 * MIB);
  const more = open(1, "alice");
  more[0]?.arrive(4 * MIB);
  lookAtAll();
  expect(refusedOf(more)).toBe(0);
});

test("some of many quiet sockets are checked at a time, and all of them once some have grown a lot", async () => {
  const { clock, open, system } = watch();
  const sockets = open(3200, "alice");
  clock.advance(LOOK_MS);
  system.lookCount = 0;
  clock.advance(LOOK_MS);
  expect(system.lookCount).toBe(100);
  for (const socket of sockets) socket.arrive(MIB / 4);
  clock.advance(LOOK_MS);
  await clock.yield();
  await clock.yield();
  expect(refusedOf(sockets)).toBe(3200 - 40);
});
