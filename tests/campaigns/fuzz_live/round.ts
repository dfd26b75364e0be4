/**
 * Runs a round: a schema, followers of many random queries, and bursts of commits. After each
 * burst, the followers catch up, and their states since the last burst are judged.
 *
 *     burst: commits while some followers are disconnected; in some bursts, also one of:
 *            a definition changes, a right is revoked or granted, the server is killed or restarted
 *
 * Both users subscribe to many of the same queries. In USER tables, each user has separate rows.
 *
 * Invariant: the commits and events of a burst depend only on the seed and the number of the
 * burst, and a query depends only on the seed and its own number. A round with only one of the
 * queries, and with fewer bursts, therefore repeats the events that concerned that query.
 */
import { type Chance, chanceOfPart } from "../../../scripts/support/chance.ts";
import { ADMIN, type ServerProcess } from "../../support/server_process.ts";
import { type Commit, changedTables, readTables } from "./commit_ledger.ts";
import { commitOf } from "./commits.ts";
import { type Connection, Connections, type Tokens } from "./connections.ts";
import { Follower } from "./follower.ts";
import { fuzzQueryOf } from "./queries.ts";
import { type Asked, haveSameRows, Selects } from "./selects.ts";
import {
  alterationOf,
  type FollowedTable,
  levelOf,
  makeSchema,
  tableOf,
  type View,
} from "./tables.ts";
import { type Burst, Verdicts } from "./verdicts.ts";

/**
 * The name of the user besides the administrator. Only the administrator writes to shared tables.
 */
export const READER = "bob";

/**
 * The minimum number of tables. A query reads one to three of them, so some commits change none of
 * its tables.
 */
const TABLES_MIN = 4;

const COMMITS_PER_BURST_MAX = 9;
const PARAMETERS_MAX = 2;

/** The average number of bursts per kill of the server. Restarts are equally frequent. */
const BURSTS_PER_RESTART = 40;
const KILL_AT = 4;
const RESTART_AT = 9;

/**
 * The average number of bursts per change of a definition. Changes of a right are equally
 * frequent.
 */
const BURSTS_PER_CHANGE = 40;

/** On average, each connection is cut once in this many bursts. */
const BURSTS_PER_CUT = 24;
/** On average, each follower unsubscribes once in this many bursts. */
const BURSTS_PER_LEAVE = 24;

/**
 * One in this many followers that were away subscribes again without its rows. Its first rows may
 * then contain groups that lost a table row last.
 */
const RETURNS_PER_BEGIN = 4;

/** One in this many subscriptions requests that its query be evaluated again at each change. */
const SUBSCRIPTIONS_PER_EVALUATED = 8;

/**
 * How long a follower that has not caught up may be silent before it is given up, in milliseconds.
 * Each message and each later position restarts this time, because a busy machine may be many
 * times slower.
 */
const SILENCE_MS_MAX = 120_000;

/**
 * The maximum interval, in milliseconds, between two checks of whether the followers have caught
 * up.
 */
const PING_MS_MAX = 16;

/**
 * Whether a maintained result has a state after every single commit, and never has to be evaluated
 * again. The results of inner joins may combine several commits, because each of their rows has
 * its own seq. Recomputed parts, such as the parts for policies, have a time limit, and groups and
 * windows of LIMIT may have to be read again.
 */
function followsEachCommit(sql: string, plan: string): boolean {
  const showsAbsence = /\b(?:GROUP BY|LEFT JOIN|UNION|INTERSECT|EXCEPT|DISTINCT(?! FROM))\b/;
  const runsAgain =
    /\b(?:LATERAL|WITH|LIMIT|OFFSET|min|max|bool_and|bool_or|every|(?:ruled|vw)\d)\b|\(SELECT\b/i;
  return (
    showsAbsence.test(sql) && !runsAgain.test(sql) && !plan.includes(" is recomputed from its rows")
  );
}

export interface RoundOptions {
  readonly server: ServerProcess;
  readonly tokens: Tokens;
  readonly seed: number;
  /** Either the number of queries to follow, or the numbers that identify them. */
  readonly queries: number | readonly number[];
  readonly burstCount: number;
  /** Returns whether enough has been done to end the round early. */
  readonly isEnough: () => boolean;
}

/**
 * A fault found in a query. Following the query alone up to the same burst may reproduce the
 * fault.
 */
export interface Finding {
  readonly seed: number;
  readonly query: number;
  readonly burst: number;
  readonly what: string;
}

export interface Totals {
  queries: number;
  /** The number of queries that the server maintains from the changes to their tables. */
  maintained: number;
  followers: number;
  commits: number;
  /** The number of pairs of a commit and a followed query. */
  followed: number;
  /** The number of pairs for which the state of a follower at the commit was compared. */
  pairs: number;
  /** The number of compared pairs whose commit changed a table that the query reads. */
  changedPairs: number;
  states: number;
  resumes: number;
  selects: number;
  restarts: number;
  findings: number;
}

export class Round {
  readonly #options: RoundOptions;
  readonly #totals: Totals;
  readonly #report: (finding: Finding) => void;
  readonly #connections: Connections;
  readonly #selects: Selects;
  readonly #verdicts: Verdicts;
  #tables: FollowedTable[] = [];
  #views: readonly View[] = [];
  readonly #followed = new Map<Follower, Connection>();
  readonly #byCommit = new Set<Follower>();
  /** The shared tables that the reader currently may not read. */
  readonly #closed = new Set<string>();
  #burstNumber = 0;
  /** The end of the last burst that was judged, in milliseconds since 1970. */
  #endMs = Date.now();
  /** The commits since the last burst that was judged. */
  #commits: Commit[] = [];
  #isRedefined = false;

  constructor(options: RoundOptions, totals: Totals, report: (finding: Finding) => void) {
    this.#options = options;
    this.#totals = totals;
    this.#report = report;
    this.#connections = new Connections(options.server, options.tokens);
    const schema = () => ({ tables: this.#tables, views: this.#views });
    this.#selects = new Selects(options.server, schema);
    this.#verdicts = new Verdicts({
      selects: this.#selects,
      byCommit: this.#byCommit,
      blame: (follower, what) => this.#blame(follower, what),
      begin: (follower) => {
        const socket = this.#followed.get(follower)?.socket;
        if (socket !== undefined) follower.begin(socket);
      },
    });
  }

  async run(): Promise<void> {
    const { burstCount, isEnough, queries, seed } = this.#options;
    await this.#prepare("DROP NAMESPACE IF EXISTS fuzz CASCADE; CREATE NAMESPACE fuzz");
    await this.#prepare("CREATE TABLE marks (id INT PRIMARY KEY, n INT) WITH (TYPE = 'SHARED')");
    const chance = chanceOfPart(seed, "schema");
    const schema = await makeSchema((sql) => this.#prepare(sql), chance, TABLES_MIN);
    this.#tables = [...schema.tables];
    this.#views = schema.views;
    this.#verdicts.begin(await this.#mark());
    await this.#connections.open();
    if (typeof queries === "number") await this.#followSome(queries);
    else for (const number of queries) await this.#follow(number);
    await this.#settle({ isKilled: false, left: new Set() });
    for (let number = 1; number <= burstCount && !isEnough(); number += 1) {
      await this.#burst(number);
    }
    this.#connections.close(() => true);
    this.#totals.selects += this.#selects.count;
    this.#totals.states += this.#verdicts.stateCount;
    this.#totals.pairs += this.#verdicts.pairCount;
    this.#totals.changedPairs += this.#verdicts.changedPairCount;
  }

  async #prepare(sql: string): Promise<void> {
    await this.#options.server.rows(sql, { namespace: "fuzz" });
  }

  /** Subscribes to random queries until enough of them are followed. */
  async #followSome(count: number): Promise<void> {
    let followed = 0;
    for (let number = 0; followed < count; number += 1) {
      if (await this.#follow(number)) followed += 1;
    }
  }

  /**
   * Subscribes to a random query. Returns false if the server cannot run it, or follows it row by
   * row, which other campaigns test.
   */
  async #follow(number: number): Promise<boolean> {
    const chance = chanceOfPart(this.#options.seed, `query ${number}`);
    const tables = this.#tables.map(tableOf);
    const { parameters, seqSql, sql } = fuzzQueryOf({ chance, tables, views: this.#views });
    const [params = []] = parameters;
    const plan = await this.#explained(sql, params);
    const isMaintained = /^ *maintained:/m.test(plan);
    if (!isMaintained && !/^ *evaluated:/m.test(plan)) return false;
    if (!(await this.#succeeds(sql, params))) return false;
    this.#totals.queries += 1;
    if (isMaintained) this.#totals.maintained += 1;
    const isByCommit = isMaintained && followsEachCommit(sql, plan);
    const some = chance.pick([[ADMIN], [READER], [ADMIN, READER]]);
    // Users for whom a query returns different rows must not share its result.
    const users = haveSameRows({ sql }) ? some : [ADMIN, READER];
    const start = chance.below(parameters.length);
    for (let index = 0; index < Math.min(PARAMETERS_MAX, parameters.length); index += 1) {
      const values = parameters[(start + index) % parameters.length] ?? [];
      for (const user of users) {
        const token = this.#options.tokens[user] ?? "";
        const way: Asked["way"] =
          chance.below(SUBSCRIPTIONS_PER_EVALUATED) === 0 ? "evaluated" : undefined;
        const read = readTables(sql, user, { tables: this.#tables, views: this.#views });
        const asked = { sql, seqSql, params: values, user, token, tables: read, way };
        const id = `${number}-${index}-${user}`;
        const follower = new Follower({ id, query: number, asked });
        if (isByCommit && way === undefined) this.#byCommit.add(follower);
        const connection = this.#connections.pick(user, chance);
        this.#followed.set(follower, connection);
        this.#totals.followers += 1;
        if (connection.socket !== undefined) follower.begin(connection.socket);
      }
    }
    return true;
  }

  /**
   * Returns the lines of EXPLAIN that state how the server follows a query; no lines if the server
   * refuses the query.
   */
  async #explained(sql: string, params: readonly unknown[]): Promise<string> {
    const options = { params, namespace: "fuzz" };
    const { body } = await this.#options.server.sql(`EXPLAIN SUBSCRIBE TO ${sql}`, options);
    const rows = body.results.at(-1)?.rows ?? [];
    return rows.flat().map(String).join("\n");
  }

  /** Whether a statement succeeds when the administrator runs it. */
  async #succeeds(sql: string, params: readonly unknown[] = []): Promise<boolean> {
    const { body } = await this.#options.server.sql(sql, { params, namespace: "fuzz" });
    return body.error === undefined;
  }

  async #burst(number: number): Promise<void> {
    this.#burstNumber = number;
    const { seed } = this.#options;
    const chance = chanceOfPart(seed, `burst ${number}`);
    const event = eventOf(number, chance);
    this.#connections.close(() => chance.below(BURSTS_PER_CUT) === 0);
    const leavers = [...this.#followed.keys()].filter((follower) => {
      const isLeaving =
        chanceOfPart(seed, `${follower.id} in ${number}`).below(BURSTS_PER_LEAVE) === 0;
      if (isLeaving) follower.leave();
      return isLeaving;
    });
    if (event === "definition") await this.#alter(chance);
    if (event === "right") await this.#changeRight(chance);
    await this.#commit(chance, event === "kill");
    if (event === "kill" || event === "restart") await this.#restart(event);
    const away = new Set(leavers);
    for (const [follower, { socket }] of this.#followed) {
      if (socket?.isOpen !== true) away.add(follower);
    }
    await this.#connections.open();
    for (const follower of away) this.#return(follower, number);
    // A result runs with the rights of one of its users. If that user leaves, the result is
    // evaluated again.
    const left = new Set(Array.from(away, ({ asked }) => asked.sql));
    await this.#settle({ isKilled: event === "kill", left });
  }

  /** Subscribes a follower again, usually from its position. */
  #return(follower: Follower, burst: number): void {
    const socket = this.#followed.get(follower)?.socket;
    if (socket === undefined) return;
    const chance = chanceOfPart(this.#options.seed, `return of ${follower.id} in ${burst}`);
    if (chance.below(RETURNS_PER_BEGIN) === 0) follower.begin(socket);
    else if (follower.resume(socket)) this.#totals.resumes += 1;
  }

  /** Commits changes, some of them while the previous change is still running. */
  async #commit(chance: Chance, isKilled: boolean): Promise<void> {
    const { server } = this.#options;
    const pending: Promise<unknown>[] = [];
    const count = 1 + chance.below(COMMITS_PER_BURST_MAX);
    for (let commit = 0; commit < count; commit += 1) {
      this.#totals.commits += 1;
      const own = this.#tables.filter(({ kind }) => kind === "own");
      const isReaders = own.length > 0 && chance.below(4) === 0;
      const sql = commitOf(isReaders ? own : this.#tables, chance);
      const committed = this.#committed(sql, isReaders ? READER : ADMIN);
      if (chance.below(3) > 0 && !isKilled) await committed;
      else pending.push(committed);
    }
    if (isKilled) server.kill("SIGKILL");
    const outcomes = await Promise.allSettled(pending);
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    // A killed server leaves requests unanswered, whether or not it has committed them.
    if (failed !== undefined && !isKilled) throw failed.reason;
    const queries = new Set(Array.from(this.#followed.keys(), ({ query }) => query));
    this.#totals.followed += count * queries.size;
  }

  /** Runs a commit. A refused change commits nothing. */
  async #committed(sql: string, user: string): Promise<void> {
    const { server, tokens } = this.#options;
    const { body } = await server.sql(sql, { namespace: "fuzz", token: tokens[user] ?? "" });
    const tables = changedTables(sql, user);
    for (const { last_seq: seq } of body.results) {
      if (typeof seq === "number") this.#commits.push({ seq, tables });
    }
  }

  async #restart(event: "kill" | "restart"): Promise<void> {
    await this.#options.server.restart(event === "kill" ? "SIGKILL" : "SIGTERM");
    this.#totals.restarts += 1;
    this.#connections.close(() => true);
  }

  async #alter(chance: Chance): Promise<void> {
    const index = chance.below(this.#tables.length);
    const table = this.#tables[index];
    const alteration = table === undefined ? undefined : alterationOf(table, chance);
    if (alteration === undefined || !(await this.#succeeds(alteration.sql))) return;
    this.#isRedefined = true;
    this.#tables[index] = alteration.after;
  }

  /** Revokes the reader's access to a shared table, or grants it again. */
  async #changeRight(chance: Chance): Promise<void> {
    const { kind, name } = chance.pick(this.#tables.filter((table) => table.kind !== "own"));
    if (kind === "own") return;
    const isClosed = this.#closed.delete(name);
    if (!isClosed) this.#closed.add(name);
    await this.#prepare(`ALTER TABLE ${name} SET ACCESS LEVEL ${isClosed ? levelOf(kind) : "DBA"}`);
    this.#isRedefined = true;
  }

  /** Waits until all followers have received everything, and judges their states. */
  async #settle(happened: Pick<Burst, "isKilled" | "left">): Promise<void> {
    const seq = await this.#mark();
    await this.#caughtUp(seq);
    const [commits, isRedefined, startMs] = [this.#commits, this.#isRedefined, this.#endMs];
    this.#endMs = Date.now();
    this.#commits = [];
    this.#isRedefined = false;
    const burst = { ...happened, seq, commits, isRedefined, startMs, endMs: this.#endMs };
    await this.#verdicts.judge([...this.#followed.keys()], burst);
  }

  /** Commits to a table that no query reads. Returns the seq of the commit. */
  async #mark(): Promise<number> {
    const mark = "INSERT INTO marks VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = marks.n + 1";
    const { body } = await this.#options.server.sql(mark, { namespace: "fuzz" });
    const seq = Number(body.results[0]?.last_seq);
    if (!(seq > 0)) throw new Error(`Cannot mark the end of a burst: ${JSON.stringify(body)}`);
    return seq;
  }

  /** Waits until each follower has reached a seq, has ended or has been silent for too long. */
  async #caughtUp(seq: number): Promise<void> {
    const startMs = performance.now();
    for (let waitMs = 1; ; waitMs = Math.min(2 * waitMs, PING_MS_MAX)) {
      await this.#connections.ping();
      const nowMs = performance.now();
      const isAwaited = (each: Follower): boolean =>
        each.isRunning &&
        !each.hasReached(seq) &&
        nowMs - Math.max(startMs, each.receivedMs) < SILENCE_MS_MAX;
      if (!this.#followed.keys().some(isAwaited)) return;
      await Bun.sleep(waitMs);
    }
  }

  /** Reports a fault, and drops all followers of the query, because they would report it again. */
  #blame({ asked, id, query }: Follower, what: string): void {
    const others = [...this.#followed.keys()].filter((each) => each.query === query);
    if (others.length === 0) return;
    for (const each of others) {
      each.leave();
      this.#followed.delete(each);
    }
    const { params, sql } = asked;
    const { seed } = this.#options;
    const text = `follower ${id}: ${what}\n  ${sql}\n  with ${JSON.stringify(params)}`;
    this.#report({ seed, query, burst: this.#burstNumber, what: text });
  }
}

type Event = "definition" | "right" | "kill" | "restart";

function eventOf(number: number, chance: Chance): Event | undefined {
  if (number % BURSTS_PER_RESTART === KILL_AT) return "kill";
  if (number % BURSTS_PER_RESTART === RESTART_AT) return "restart";
  return (["definition", "right"] as const)[chance.below(BURSTS_PER_CHANGE)];
}
