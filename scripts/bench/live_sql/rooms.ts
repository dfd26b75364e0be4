/**
 * Measures the room list of a chat: each user follows the rooms they belong to, with the newest
 * message and the number of unread messages. Every system has the same rooms, users and messages.
 *
 * A message has reached a user once the user's list shows that message or a later one in its room.
 * A system that combines several messages into one state is therefore not at a disadvantage.
 */
import { percentile } from "../../support/statistics.ts";

const ROOM_COUNT = 200;

/** The number of rooms that each user belongs to. */
const ROOMS_PER_USER = 5;

/** The number of messages in each room at the start. */
const FIRST_MESSAGES = 20;

/**
 * How long to wait after the last write for messages that have not arrived yet, in milliseconds.
 */
const STRAGGLERS_MS_MAX = 10_000;

/**
 * The length of the warm-up that is not counted, in seconds. Until about 1,600 messages have been
 * delivered, the compilers of the runtime take about as much processor time as the server itself.
 */
const WARM_SECONDS = 9;

/** The number of writes in flight while the highest rate is measured. */
const WRITERS = 16;

/** A system in which users follow their room lists. */
export interface RoomsSystem {
  /** Follows the room lists of all users. Calls `onRooms` with each new or changed row. */
  follow(
    userCount: number,
    onRooms: (user: number, rows: readonly RoomRow[]) => void,
  ): Promise<void>;
  write(message: RoomMessage): Promise<void>;
  /**
   * Returns the processor time that the system has used so far, in nanoseconds. Absent unless the
   * benchmark starts the system as a process of its own.
   */
  readonly cpuNs?: () => number;
  stop(): Promise<void>;
}

export interface RoomRow {
  readonly room: number;
  /** The id of the newest message in the room. */
  readonly last: number;
}

export interface RoomMessage {
  readonly id: number;
  readonly room: number;
}

export interface RoomsLoad {
  readonly userCount: number;
  /** The number of messages per second while delays are measured. */
  readonly rate: number;
  readonly seconds: number;
}

export interface RoomsFigures {
  readonly p50: number;
  readonly p99: number;
  /** The processor time per message at the given rate, in microseconds; undefined if unknown. */
  readonly cpuUs: number | undefined;
  /** The number of deliveries that never reached their user. */
  readonly lost: number;
  /**
   * The number of messages per second that reach all users while messages are written as fast as
   * the system accepts them.
   */
  readonly rate: number;
}

export const ROOMS_SCHEMA: readonly string[] = [
  "CREATE TABLE rooms (id INT PRIMARY KEY, name TEXT)",
  "CREATE TABLE members (person INT, room INT, seen INT, PRIMARY KEY (person, room))",
  "CREATE TABLE messages (id INT PRIMARY KEY, room INT, text TEXT)",
  "CREATE INDEX members_room ON members (room)",
  "CREATE INDEX messages_room ON messages (room, id)",
];

/** The query for the room list of a user, whose number is the parameter $1. */
export const ROOMS_QUERY =
  "SELECT r.id AS room, r.name, max(m.id) AS last, count(CASE WHEN m.id > s.seen THEN 1 END) AS unread " +
  "FROM members s JOIN rooms r ON r.id = s.room JOIN messages m ON m.room = s.room " +
  "WHERE s.person = $1 GROUP BY r.id, r.name";

/** Returns the numbers of the rooms to which a user belongs. */
export function roomsOf(user: number): number[] {
  return Array.from({ length: ROOMS_PER_USER }, (_, index) => (user + index * 41) % ROOM_COUNT);
}

/** Returns the statements that fill the tables of rooms, members and messages. */
export function roomsData(userCount: number): string[] {
  const rooms = Array.from({ length: ROOM_COUNT }, (_, room) => `(${room}, 'room ${room}')`);
  const members = Array.from({ length: userCount }, (_, user) =>
    roomsOf(user).map((room) => `(${user}, ${room}, ${room})`),
  ).flat();
  const messages = Array.from({ length: ROOM_COUNT * FIRST_MESSAGES }, (_, id) => {
    return `(${id}, ${id % ROOM_COUNT}, 'message ${id}')`;
  });
  const all = { rooms, members, messages };
  return Object.entries(all).map(
    ([table, rows]) => `INSERT INTO ${table} VALUES ${rows.join(", ")}`,
  );
}

/**
 * Measures the delay at a fixed rate, and then the highest rate. The first messages are not
 * counted.
 */
export async function measureRooms(
  system: RoomsSystem,
  { rate, seconds, userCount }: RoomsLoad,
): Promise<RoomsFigures> {
  const waiting = new Waiting(userCount);
  await system.follow(userCount, (user, rows) => {
    for (const row of rows) waiting.see(user, row);
  });
  let id = ROOM_COUNT * FIRST_MESSAGES;
  const write = async (): Promise<void> => {
    const message = { id, room: (id * 7919) % ROOM_COUNT };
    id += 1;
    waiting.expect(message);
    await system.write(message);
  };
  const writeAtRate = async (count: number): Promise<void> => {
    const pending: Promise<void>[] = [];
    const startMs = performance.now();
    for (let index = 0; index < count; index += 1) {
      await Bun.sleep(Math.max(0, startMs + (index * 1000) / rate - performance.now()));
      pending.push(write());
    }
    await Promise.all(pending);
    await waiting.end();
  };
  await writeAtRate(rate * WARM_SECONDS);
  waiting.takeLatencies();
  const beforeNs = system.cpuNs?.();
  await writeAtRate(rate * seconds);
  const { lost } = waiting;
  const cpuNs = beforeNs === undefined ? undefined : (system.cpuNs?.() ?? 0) - beforeNs;
  const latencies = waiting.takeLatencies();
  const beginMs = performance.now();
  const firstId = id;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (performance.now() - beginMs < seconds * 1000) await write();
    }),
  );
  await waiting.end();
  return {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    cpuUs: cpuNs === undefined ? undefined : cpuNs / 1000 / (rate * seconds),
    lost: lost + waiting.lost,
    rate: ((id - firstId) * 1000) / (performance.now() - beginMs),
  };
}

/** The messages that have not reached all users yet. */
class Waiting {
  /** The users of each room, indexed by room. */
  readonly #members: readonly number[][];
  /**
   * The undelivered messages, keyed by user and room, in ascending order of id, each with the time
   * at which it was written.
   */
  readonly #expected = new Map<string, { readonly id: number; readonly sentMs: number }[]>();
  #latencies: number[] = [];
  #count = 0;

  constructor(userCount: number) {
    const members: number[][] = Array.from({ length: ROOM_COUNT }, () => []);
    for (let user = 0; user < userCount; user += 1) {
      for (const room of roomsOf(user)) members[room]?.push(user);
    }
    this.#members = members;
  }

  get lost(): number {
    return this.#count;
  }

  expect({ id, room }: RoomMessage): void {
    const sentMs = performance.now();
    for (const user of this.#members[room] ?? []) {
      const key = `${user}/${room}`;
      const known = this.#expected.get(key);
      if (known === undefined) this.#expected.set(key, [{ id, sentMs }]);
      else known.push({ id, sentMs });
      this.#count += 1;
    }
  }

  see(user: number, { last, room }: RoomRow): void {
    const key = `${user}/${room}`;
    const nowMs = performance.now();
    const left = (this.#expected.get(key) ?? []).filter(({ id, sentMs }) => {
      const isSeen = id <= last;
      if (isSeen) this.#latencies.push(nowMs - sentMs);
      return !isSeen;
    });
    this.#count -= (this.#expected.get(key)?.length ?? 0) - left.length;
    this.#expected.set(key, left);
  }

  /** Waits until all messages have arrived, or the time limit is reached. */
  async end(): Promise<void> {
    const deadlineMs = performance.now() + STRAGGLERS_MS_MAX;
    while (this.#count > 0 && performance.now() < deadlineMs) await Bun.sleep(2);
  }

  /** Returns the delays measured since the last call, in ascending order. */
  takeLatencies(): number[] {
    const latencies = this.#latencies.toSorted((left, right) => left - right);
    this.#latencies = [];
    return latencies;
  }
}
