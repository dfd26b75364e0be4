/**
 * Verifies that the queue for readers is fair to every user, whatever statements users send and
 * however long these run. The tests choose readers, users and run times at random, and compare the
 * order with the rules.
 */
import { describe, expect, test } from "bun:test";
import { ReaderQueue } from "../../../src/sql/readers/reader_queue.ts";
import { SeededRandom } from "../../support/seeded_random.ts";

interface Statement {
  readonly userId: string;
  readonly number: number;
}

/** A pool of readers, each of which runs one statement from the queue at a time. */
class Readers {
  readonly queue = new ReaderQueue<Statement>();
  readonly atWork: Statement[] = [];
  readonly begun: Statement[] = [];
  readonly #count: number;
  #number = 0;

  constructor(count: number) {
    this.#count = count;
  }

  send(userId: string): Statement {
    this.#number += 1;
    const statement = { userId, number: this.#number };
    this.queue.add(statement);
    this.serve();
    return statement;
  }

  /** Ends the statement that began first, or the statement at the given position. */
  end(at = 0): void {
    const [ended] = this.atWork.splice(at, 1);
    if (ended === undefined) throw new Error("No statement is at work");
    this.queue.noteGivenBack(ended.userId);
    this.serve();
  }

  serve(): void {
    while (this.atWork.length < this.#count) {
      const next = this.queue.first();
      if (next === undefined) return;
      this.queue.remove(next);
      this.queue.noteTaken(next.userId);
      this.atWork.push(next);
      this.begun.push(next);
    }
  }

  atWorkOf(userId: string): number {
    return this.atWork.filter((statement) => statement.userId === userId).length;
  }
}

function users(statements: readonly Statement[]): string {
  return statements.map(({ userId }) => userId).join("");
}

describe("ReaderQueue divides readers among users", () => {
  test("ReaderQueue takes the statements of one user in the order of arrival", () => {
    const readers = new Readers(1);
    const sent = [1, 2, 3, 4].map(() => readers.send("a"));
    for (let end = 0; end < 4; end += 1) readers.end();
    expect(readers.begun).toEqual(sent);
    expect([readers.queue.length, readers.queue.first()]).toEqual([0, undefined]);
  });

  test.each([1, 2, 5])("ReaderQueue gives a new user the next free one of %i readers", (count) => {
    const readers = new Readers(count);
    for (let number = 0; number < 1000; number += 1) readers.send("a");
    readers.end();
    const other = readers.send("b");
    readers.end();
    expect(readers.begun.at(-1)).toEqual(other);
  });

  test("ReaderQueue serves users in turn, however much each has sent", () => {
    const readers = new Readers(1);
    for (const userId of "aaaaaaabbcbc") readers.send(userId);
    while (readers.atWork.length > 0) readers.end();
    expect(users(readers.begun)).toBe("abcabcabaaaa");
  });

  test("ReaderQueue gives the next reader to the user with fewer busy ones", () => {
    const readers = new Readers(3);
    for (const userId of "aaaabbb") readers.send(userId);
    expect(users(readers.atWork)).toBe("aaa");
    readers.end();
    readers.end();
    expect(users(readers.atWork)).toBe("abb");
    // Users `a` and `b` each occupy one reader, and `b` was the last to release one.
    readers.end(1);
    expect(users(readers.atWork)).toBe("aba");
  });

  test("ReaderQueue skips a statement that no longer waits", () => {
    const readers = new Readers(1);
    const [, second] = [1, 2, 3].map(() => readers.send("a"));
    if (second !== undefined) readers.queue.remove(second);
    readers.end();
    expect(readers.begun.map(({ number }) => number)).toEqual([1, 3]);
    expect(() => second !== undefined && readers.queue.remove(second)).toThrow(
      "statement is not in the queue",
    );
  });

  test("ReaderQueue serves random statements by the rules, and no user starves", () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = new SeededRandom(seed);
      const below = (count: number): number => Math.floor(random.unit() * count);
      const readers = new Readers(1 + below(4));
      /** The users served while a user waits without a reader, keyed by the waiting user. */
      const overtaken = new Map<string, string[]>();
      for (let step = 0; step < 400; step += 1) {
        const waiting = readers.queue.all();
        const before = new Map("abcdefgh".split("").map((id) => [id, readers.atWorkOf(id)]));
        if (random.unit() < 0.55 || readers.atWork.length === 0) {
          const userId = "abcdefgh"[below(1 + below(8))] ?? "a";
          readers.send(userId);
        } else {
          const at = below(readers.atWork.length);
          const { userId: ended = "" } = readers.atWork[at] ?? {};
          before.set(ended, (before.get(ended) ?? 0) - 1);
          const begunCount = readers.begun.length;
          readers.end(at);
          const [served] = readers.begun.slice(begunCount);
          if (served === undefined) continue;
          const fewest = Math.min(...waiting.map(({ userId }) => before.get(userId) ?? 0));
          expect(before.get(served.userId)).toBe(fewest);
          const ofUser = waiting.filter(({ userId }) => userId === served.userId);
          expect(Math.min(...ofUser.map(({ number }) => number))).toBe(served.number);
          overtaken.delete(served.userId);
          const passed = [...overtaken].filter(([userId]) => before.get(userId) === 0);
          // While a user waits without a reader, every other user is served at most once.
          for (const [, others] of passed) expect(others).not.toContain(served.userId);
          for (const [, others] of passed) others.push(served.userId);
        }
        for (const { userId } of readers.queue.all()) {
          if (readers.atWorkOf(userId) > 0) overtaken.delete(userId);
          else if (!overtaken.has(userId)) overtaken.set(userId, []);
        }
        expect(readers.queue.length).toBe(readers.queue.all().length);
      }
    }
  });
});
