/**
 * Plays a chat between two people about movies, in a room that both see, and in inboxes that only
 * their owners see. Midway, one of them loses the connection while the other continues. The
 * participant who lost the connection reconnects with the last sequence id received, and must end
 * up with every change exactly once.
 */

import { chanceFromSeed } from "../support/chance.ts";
import { median, percentile } from "../support/statistics.ts";
import { Api, logIn } from "./api.ts";
import type { Movie } from "./data.ts";
import { Participant, PLACES } from "./participant.ts";

const PASSWORD = "two seats, row 7";
const STEPS = 90;
const CUT_AT = 30;
const BACK_AT = 60;
const PAUSE_MS = 5;

/** How long to wait for the last changes to arrive, in milliseconds. */
const ARRIVAL_MS_MAX = 5000;

/** A change that a participant must receive. */
interface Expected {
  readonly seq: number;
  readonly sentMs: number;
  readonly who: readonly Participant[];
  readonly isDuringCut: boolean;
}

export interface ChatOutcome {
  missed: number;
  doubled: number;
}

const DEFINITIONS = `
  CREATE SHARED TABLE demo.room (
    id BIGINT PRIMARY KEY, sender TEXT NOT NULL, text TEXT NOT NULL)
    WITH (ACCESS_LEVEL = 'PUBLIC');
  CREATE USER TABLE demo.inbox (
    id BIGINT PRIMARY KEY, sender TEXT NOT NULL, text TEXT NOT NULL, is_read BOOLEAN DEFAULT FALSE)`;

export async function chat(
  api: Api,
  movies: readonly Movie[],
  print: (line: string) => void,
): Promise<ChatOutcome> {
  await api.sql(DEFINITIONS);
  const ann = await join(api, "ann");
  const ben = await join(api, "ben");
  await ann.follow();
  await ben.follow();
  const talk = new Talk(ann, ben, movies);
  for (let step = 1; step <= STEPS; step += 1) {
    if (step === CUT_AT) {
      ben.cut();
      talk.isCut = true;
      print(`step ${step}: ben loses the connection`);
    }
    if (step === BACK_AT) {
      const startMs = performance.now();
      await ben.follow();
      talk.isCut = false;
      const tookMs = (performance.now() - startMs).toFixed(1);
      print(`step ${step}: ben is back with from_seq_id, live again after ${tookMs} ms`);
    }
    await talk.step();
    await Bun.sleep(PAUSE_MS);
  }
  await talk.arrived();
  return report(talk, [ann, ben], print);
}

async function join(api: Api, name: string): Promise<Participant> {
  await api.sql(`DROP USER IF EXISTS '${name}'`);
  // Participants have the role `service`, so that they may write to the shared room and to each
  // other's inbox.
  await api.sql(`CREATE USER '${name}' WITH PASSWORD '${PASSWORD}' ROLE service`);
  const token = await logIn(api.url, { user: name, password: PASSWORD });
  return new Participant(name, new Api(api.url, token));
}

class Talk {
  readonly expected: Expected[] = [];
  isCut = false;
  readonly #both: readonly [Participant, Participant];
  readonly #movies: readonly Movie[];
  readonly #chance = chanceFromSeed(7);
  readonly #roomKeys: number[] = [];
  #nextKey = 1;

  constructor(ann: Participant, ben: Participant, movies: readonly Movie[]) {
    this.#both = [ann, ben];
    this.#movies = movies;
  }

  /** Lets one of the two participants write, change or delete a message. */
  async step(): Promise<void> {
    const [ann, ben] = this.#both;
    // While one participant is disconnected, only the other one writes.
    const [from, to] = this.isCut || this.#chance.below(2) === 0 ? [ann, ben] : [ben, ann];
    const key = this.#nextKey;
    const kind = this.#chance.below(10);
    if (kind < 5 || this.#roomKeys.length < 3) {
      this.#nextKey += 1;
      this.#roomKeys.push(key);
      const values = [key, from.name, this.#remark()];
      await this.#write(from, this.#both, ["INSERT INTO demo.room VALUES ($1, $2, $3)", values]);
    } else if (kind < 6) {
      const text = `${this.#remark()} (corrected)`;
      const sql = "UPDATE demo.room SET text = $1 WHERE id = $2";
      await this.#write(from, this.#both, [sql, [text, this.#chance.pick(this.#roomKeys)]]);
    } else if (kind < 7) {
      const [gone = 0] = this.#roomKeys.splice(this.#chance.below(this.#roomKeys.length), 1);
      await this.#write(from, this.#both, ["DELETE FROM demo.room WHERE id = $1", [gone]]);
    } else {
      this.#nextKey += 1;
      const insert = "INSERT INTO demo.inbox (id, sender, text) VALUES ($1, $2, $3)";
      const sql = `EXECUTE AS USER '${to.name}' (${insert})`;
      await this.#write(from, [to], [sql, [key, from.name, this.#remark()]]);
      if (this.isCut) return;
      await this.#write(to, [to], ["UPDATE demo.inbox SET is_read = TRUE WHERE id = $1", [key]]);
    }
  }

  /** Waits until all expected changes have arrived, or until the time limit has passed. */
  async arrived(): Promise<void> {
    const deadlineMs = performance.now() + ARRIVAL_MS_MAX;
    while (this.expected.some(isUnseen) && performance.now() < deadlineMs) await Bun.sleep(10);
  }

  async #write(
    from: Participant,
    who: readonly Participant[],
    [sql, params]: readonly [sql: string, params: readonly unknown[]],
  ): Promise<void> {
    const sentMs = performance.now();
    const { lastSeq } = await from.api.sql(sql, params);
    if (lastSeq === undefined)
      throw new Error(`Cannot continue the chat: no row was changed by ${sql}`);
    this.expected.push({ seq: lastSeq, sentMs, who, isDuringCut: this.isCut });
  }

  #remark(): string {
    const { title, genre, rating } = this.#chance.pick(this.#movies);
    const opinion = rating === undefined ? "nobody has rated it" : `it has ${rating} of 10`;
    return `Have you seen "${title}"? ${genre ?? "Hard to say what it is"}, ${opinion}.`;
  }
}

function isUnseen({ seq, who }: Expected): boolean {
  return who.some((participant) => !participant.arrivals.has(seq));
}

function report(
  talk: Talk,
  participants: readonly Participant[],
  print: (line: string) => void,
): ChatOutcome {
  const outcome: ChatOutcome = { missed: 0, doubled: 0 };
  for (const participant of participants) {
    const due = talk.expected.filter(({ who }) => who.includes(participant));
    const missed = due.filter(({ seq }) => !participant.arrivals.has(seq)).length;
    const doubled = [...participant.arrivals.values()].filter(({ count }) => count > 1).length;
    const latencies = due
      .filter(({ isDuringCut }) => !isDuringCut || participant.name === "ann")
      .flatMap(({ seq, sentMs }) => {
        const arrival = participant.arrivals.get(seq);
        return arrival === undefined ? [] : [arrival.atMs - sentMs];
      })
      .toSorted((a, b) => a - b);
    const seen = PLACES.map((place) => `${participant.rows[place].size} in ${place}`).join(", ");
    print(
      `${participant.name}: ${due.length} changes due, missed ${missed}, doubled ${doubled}; ` +
        `written → delivered p50 ${median(latencies).toFixed(1)} ms, ` +
        `p99 ${percentile(latencies, 0.99).toFixed(1)} ms; sees ${seen}`,
    );
    outcome.missed += missed;
    outcome.doubled += doubled;
  }
  return outcome;
}
