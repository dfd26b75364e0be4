/**
 * Orders the statements that wait for a reader. The order is fair to users: however many
 * statements one user has sent, a statement of another user has to wait for about one of them.
 *
 * - The user with the fewest working readers comes first. Ties go to the user who has been without
 *   a reader longest. For a user who has not had a reader yet, this time counts from the first
 *   waiting statement, so new users cannot overtake others indefinitely.
 * - Statements of the same user are taken in order of arrival.
 *
 * Invariant: a user is in the list as long as any of the user's statements waits or has a reader.
 */
import { assert, defined } from "../../base/assert.ts";

export interface Queued {
  readonly userId: string;
}

interface QueuedUser<Entry> {
  /** The user's waiting statements, in order of arrival. */
  readonly waiting: Set<Entry>;
  readersAtWork: number;
  /**
   * The value of a counter when the user last had a reader, or began to wait. A larger value means
   * a later time.
   */
  since: number;
}

export class ReaderQueue<Entry extends Queued> {
  readonly #users = new Map<string, QueuedUser<Entry>>();
  #length = 0;
  #now = 0;

  get length(): number {
    return this.#length;
  }

  /** Returns the number of a user's waiting statements. */
  lengthOf(userId: string): number {
    return this.#users.get(userId)?.waiting.size ?? 0;
  }

  all(): readonly Entry[] {
    return [...this.#users.values()].flatMap(({ waiting }) => waiting.values().toArray());
  }

  /** Returns the next statement, without removing it from the queue. */
  first(): Entry | undefined {
    let best: QueuedUser<Entry> | undefined;
    for (const user of this.#users.values()) {
      if (user.waiting.size > 0 && (best === undefined || isBefore(user, best))) best = user;
    }
    return best?.waiting.values().next().value;
  }

  add(entry: Entry): void {
    this.#userOf(entry.userId).waiting.add(entry);
    this.#length += 1;
  }

  /** Removes a statement that no longer waits, whatever the reason. */
  remove(entry: Entry): void {
    const { userId } = entry;
    const wasThere = this.#users.get(userId)?.waiting.delete(entry) === true;
    assert(wasThere, "reader queue: statement is not in the queue");
    this.#length -= 1;
    this.#forgetIdle(userId);
  }

  noteTaken(userId: string): void {
    this.#userOf(userId).readersAtWork += 1;
  }

  noteGivenBack(userId: string): void {
    const user = defined(
      this.#users.get(userId),
      "reader queue: returned reader belongs to an unknown user",
    );
    user.readersAtWork -= 1;
    user.since = this.#tick();
    this.#forgetIdle(userId);
  }

  #userOf(userId: string): QueuedUser<Entry> {
    let user = this.#users.get(userId);
    if (user === undefined) {
      user = { waiting: new Set(), readersAtWork: 0, since: this.#tick() };
      this.#users.set(userId, user);
    }
    return user;
  }

  #tick(): number {
    this.#now += 1;
    return this.#now;
  }

  #forgetIdle(userId: string): void {
    const user = this.#users.get(userId);
    if (user?.readersAtWork === 0 && user.waiting.size === 0) this.#users.delete(userId);
  }
}

function isBefore<Entry>(a: QueuedUser<Entry>, b: QueuedUser<Entry>): boolean {
  if (a.readersAtWork !== b.readersAtWork) return a.readersAtWork < b.readersAtWork;
  return a.since < b.since;
}
