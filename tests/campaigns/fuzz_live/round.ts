/**
 * Runs one round: a schema, followers of random queries, and bursts of commits. After each burst,
 * the followers catch up, and the judge compares all of their states since the last burst.
 *
 *     burst: commits while some followers are disconnected; in some bursts, also one of:
 *            a definition changes, a right is revoked or granted, the server is killed or restarted
 *
 * Followers use four connections: two users, each with JSON and MessagePack. Both users subscribe
 * to many of the same queries. In USER tables, each user has rows of their own.
 */
import { type Chance, chanceFromSeed } from "../../../scripts/support/chance.ts";
import { ADMIN, type ServerProcess } from "../../support/server_process.ts";
import { until } from "../../support/until.ts";
import { commitOf } from "./commits.ts";
import { Follower } from "./follower.ts";
import { type Asked, haveSameRows, Judge } from "./judge.ts";
import { fuzzQueryOf } from "./queries.ts";
import { FollowerSocket, type Format } from "./socket.ts";
import { alterationOf, type FollowedTable, makeSchema, tableOf, type View } from "./tables.ts";

/** The second user besides the administrator. Only the administrator writes to shared tables. */
export const READER = "bob";

const COMMITS_PER_BURST_MAX = 9;
const PARAMETERS_MAX = 4;

/** The time after which a follower that has not caught up is given up. */
const CATCH_UP_MS_MAX = 30_000;

/** Codes with which a query may end after a definition or a right has changed. */
const DEFINITION_CODES: ReadonlySet<string> = new Set([
  "SCHEMA_CHANGED",
  "NOT_FOUND",
  "UNAUTHORIZED",
  "RESUME_EXPIRED",
]);

/**
 * Whether a maintained result has a state after each single commit, and never has to be evaluated
 * again. Results of inner joins may combine several commits, because their rows have seqs of their
 * own. Recomputed parts have a time limit, and groups may have to be read again.
 */
function followsEachCommit(sql: string, plan: string): boolean {
  const showsAbsence = /\b(?:GROUP BY|LEFT JOIN|UNION|INTERSECT|EXCEPT|DISTINCT)\b/;
  const runsAgain = /\b(?:LATERAL|WITH|min|max|bool_and|bool_or|every)\b|\(SELECT\b/i;
  return showsAbsence.test(sql) && !runsAgain.test(sql) && !plan.includes("computed again");
}

export interface RoundOptions {
  readonly server: ServerProcess;
  readonly tokens: Readonly<Record<string, string>>;
  readonly seed: number;
  readonly queryCount: number;
  readonly burstCount: number;
  /** Ends the round early. */
  readonly isEnough: () => boolean;
}

export interface Totals {
  queries: number;
  /** Queries that the server maintains from the changes to their tables. */
  maintained: number;
  followers: number;
  commits: number;
  states: number;
  resumes: number;
  selects: number;
  restarts: number;
  findings: number;
}

interface Connection {
  readonly user: string;
  readonly format: Format;
  socket: FollowerSocket | undefined;
}

export class Round {
  readonly #options: RoundOptions;
  readonly #chance: Chance;
  readonly #totals: Totals;
  readonly #report: (finding: string) => void;
  readonly #judge: Judge;
  #tables: FollowedTable[] = [];
  #views: readonly View[] = [];
  readonly #followers = new Map<Follower, Connection>();
  readonly #connections: Connection[];
  /** The followers of results that have a state after each single commit. */
  readonly #byCommit = new Set<Follower>();
  /** The queries of which a follower left during the last burst. */
  #left: ReadonlySet<string> = new Set();
  /** The shared tables that the reader may not read at present. */
  readonly #closed = new Set<string>();
  /** The acknowledged commits since the followers were last judged. */
  #seqs: number[] = [];
  /** Whether a definition or a right has changed since the followers were last judged. */
  #isRedefined = false;
  /** The followers that ended because their SELECT fails. They start again once it works. */
  readonly #waiting = new Set<Follower>();

  constructor(options: RoundOptions, totals: Totals, report: (finding: string) => void) {
    this.#options = options;
    this.#chance = chanceFromSeed(options.seed);
    this.#totals = totals;
    this.#report = report;
    this.#judge = new Judge(options.server, () => ({ tables: this.#tables, views: this.#views }));
    this.#connections = [ADMIN, READER].flatMap((user): Connection[] => [
      { user, format: "json", socket: undefined },
      { user, format: "msgpack", socket: undefined },
    ]);
  }

  async run(): Promise<void> {
    const { burstCount, isEnough, queryCount } = this.#options;
    await this.#prepare("DROP NAMESPACE IF EXISTS fuzz CASCADE; CREATE NAMESPACE fuzz");
    await this.#prepare("CREATE TABLE marks (id INT PRIMARY KEY, n INT) WITH (TYPE = 'SHARED')");
    const schema = await makeSchema((sql) => this.#prepare(sql), this.#chance);
    this.#tables = [...schema.tables];
    this.#views = schema.views;
    await this.#connect();
    for (let count = 0; count < queryCount; count += 1) await this.#follow(String(count));
    await this.#settle();
    for (let burst = 1; burst <= burstCount && !isEnough(); burst += 1) await this.#burst(burst);
    for (const connection of this.#connections) connection.socket?.close();
    this.#totals.selects += this.#judge.count;
  }

  async #prepare(sql: string): Promise<void> {
    await this.#options.server.rows(sql, { namespace: "fuzz" });
  }

  /** Opens the connections that are not open. */
  async #connect(): Promise<void> {
    const { server, tokens } = this.#options;
    for (const connection of this.#connections) {
      if (connection.socket?.isOpen === true) continue;
      const { format, user } = connection;
      const token = tokens[user] ?? "";
      connection.socket = await FollowerSocket.connect(server, { format, token });
    }
  }

  /** Subscribes to one random query, unless the server cannot run it. */
  async #follow(name: string): Promise<void> {
    const chance = this.#chance;
    const tables = this.#tables.map(tableOf);
    const { parameters, sql } = fuzzQueryOf({ chance, tables, views: this.#views });
    const isRun = await this.#asks(ADMIN, { sql, params: parameters[0] ?? [] });
    if (!isRun) return;
    this.#totals.queries += 1;
    const plan = await this.#explained(sql, parameters[0] ?? []);
    const isMaintained = /^ *maintained:/m.test(plan);
    if (isMaintained) this.#totals.maintained += 1;
    const isByCommit = isMaintained && followsEachCommit(sql, plan);
    const some = chance.pick([[ADMIN], [READER], [ADMIN, READER]]);
    // Users for whom a query returns different rows must not share its result.
    const users = haveSameRows({ sql }) ? some : [ADMIN, READER];
    for (const [index, params] of parameters.slice(0, PARAMETERS_MAX).entries()) {
      for (const user of users) {
        const token = this.#options.tokens[user] ?? "";
        const way = chance.below(4) === 0 ? "evaluated" : undefined;
        const follower = new Follower(`${name}-${index}-${user}`, { sql, params, token, way });
        if (isByCommit && way === undefined) this.#byCommit.add(follower);
        const own = this.#connections.filter((each) => each.user === user);
        const connection = chance.pick(own);
        this.#followers.set(follower, connection);
        this.#totals.followers += 1;
        if (connection.socket !== undefined) follower.begin(connection.socket);
      }
    }
  }

  /** Returns the lines that say how the server follows a query. */
  async #explained(sql: string, params: readonly unknown[]): Promise<string> {
    const { body } = await this.#options.server.sql(`EXPLAIN SUBSCRIBE TO ${sql}`, {
      params,
      namespace: "fuzz",
    });
    return (body.results[0]?.rows ?? []).flat().map(String).join("\n");
  }

  async #asks(user: string, { params, sql }: { sql: string; params: readonly unknown[] }) {
    const token = this.#options.tokens[user] ?? "";
    const { body } = await this.#options.server.sql(sql, { params, namespace: "fuzz", token });
    return body.error === undefined;
  }

  async #burst(number: number): Promise<void> {
    const chance = this.#chance;
    const event = this.#eventOf(number);
    for (const connection of this.#connections) {
      if (chance.below(8) > 0) continue;
      connection.socket?.close();
      connection.socket = undefined;
    }
    const away = [...this.#followers.keys()].filter((follower) => {
      const isLeaving = chance.below(6) === 0;
      if (isLeaving) follower.leave();
      return isLeaving;
    });
    if (event === "definition") await this.#alter();
    if (event === "right") await this.#changeRight();
    await this.#commit(event === "kill");
    if (event === "kill" || event === "restart") await this.#restart(event);
    const lost = new Set(away);
    for (const [follower, { socket }] of this.#followers) {
      if (socket?.isOpen !== true) lost.add(follower);
    }
    await this.#connect();
    for (const follower of lost) this.#resume(follower);
    // A result is evaluated again if the user it runs as leaves.
    this.#left = new Set([...lost].map(({ asked }) => asked.sql));
    await this.#settle();
  }

  #eventOf(number: number): "definition" | "right" | "kill" | "restart" | undefined {
    const { burstCount } = this.#options;
    if (number === Math.ceil(burstCount / 3)) return "kill";
    if (number === Math.ceil((2 * burstCount) / 3)) return "restart";
    return ([undefined, undefined, undefined, undefined, "definition", "right"] as const)[
      this.#chance.below(6)
    ];
  }

  #resume(follower: Follower): void {
    const socket = this.#followers.get(follower)?.socket;
    if (socket !== undefined && follower.resume(socket)) this.#totals.resumes += 1;
  }

  /** Commits changes, some of them while the previous one is still running. */
  async #commit(isKilled: boolean): Promise<void> {
    const chance = this.#chance;
    const { server, tokens } = this.#options;
    const pending: Promise<unknown>[] = [];
    const count = 1 + chance.below(COMMITS_PER_BURST_MAX);
    for (let commit = 0; commit < count; commit += 1) {
      this.#totals.commits += 1;
      const own = this.#tables.filter(({ isShared }) => !isShared);
      const isReaders = own.length > 0 && chance.below(4) === 0;
      const sql = commitOf(isReaders ? own : this.#tables, chance);
      const committed = this.#committed(sql, tokens[isReaders ? READER : ADMIN] ?? "");
      if (chance.below(3) > 0 && !isKilled) await committed;
      else pending.push(committed);
    }
    if (isKilled) server.kill("SIGKILL");
    const outcomes = await Promise.allSettled(pending);
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    // A killed server leaves requests without a response, whether or not it committed them.
    if (failed !== undefined && !isKilled) throw failed.reason;
  }

  /** Runs a commit. A refused change commits nothing. */
  async #committed(sql: string, token: string): Promise<void> {
    const { body } = await this.#options.server.sql(sql, { namespace: "fuzz", token });
    for (const { last_seq: seq } of body.results) if (typeof seq === "number") this.#seqs.push(seq);
  }

  async #restart(event: "kill" | "restart"): Promise<void> {
    const { server } = this.#options;
    await server.restart(event === "kill" ? "SIGKILL" : "SIGTERM");
    this.#totals.restarts += 1;
    for (const connection of this.#connections) {
      connection.socket?.close();
      connection.socket = undefined;
    }
  }

  async #alter(): Promise<void> {
    const index = this.#chance.below(this.#tables.length);
    const table = this.#tables[index];
    const alteration = table === undefined ? undefined : alterationOf(table, this.#chance);
    if (
      alteration === undefined ||
      !(await this.#asks(ADMIN, { sql: alteration.sql, params: [] }))
    ) {
      return;
    }
    this.#isRedefined = true;
    this.#tables[index] = alteration.after;
  }

  /** Revokes the reader's access to a shared table, or grants it again. */
  async #changeRight(): Promise<void> {
    const shared = this.#tables.filter(({ isShared }) => isShared);
    const { name } = this.#chance.pick(shared);
    const isClosed = this.#closed.delete(name);
    if (!isClosed) this.#closed.add(name);
    await this.#prepare(`ALTER TABLE ${name} SET ACCESS LEVEL ${isClosed ? "PUBLIC" : "DBA"}`);
    this.#isRedefined = true;
  }

  /** Waits until all followers have received everything, and judges their states. */
  async #settle(): Promise<void> {
    const { server } = this.#options;
    const mark = "INSERT INTO marks VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = marks.n + 1";
    const { body } = await server.sql(mark, { namespace: "fuzz" });
    const seq = Number(body.results[0]?.last_seq);
    if (!(seq > 0)) throw new Error(`Cannot mark the end of a burst: ${JSON.stringify(body)}`);
    await this.#caughtUp(seq);
    await Promise.all(
      [...this.#followers.keys()].map((follower) => this.#judgeFollower(follower, seq)),
    );
    this.#judge.forget();
    this.#seqs = [];
    this.#isRedefined = false;
  }

  async #caughtUp(seq: number): Promise<void> {
    const isThere = (follower: Follower): boolean =>
      !follower.isRunning || follower.hasReached(seq);
    const deadlineMs = performance.now() + CATCH_UP_MS_MAX;
    await until(async () => {
      for (const { socket } of this.#connections) await socket?.ping();
      return performance.now() > deadlineMs || [...this.#followers.keys()].every(isThere);
    }, 2 * CATCH_UP_MS_MAX);
  }

  async #judgeFollower(follower: Follower, seq: number): Promise<void> {
    const { ack, asked, fault } = follower;
    if (follower.isRowByRow) {
      this.#followers.delete(follower);
      return;
    }
    if (fault !== undefined) this.#blame(follower, fault);
    if (ack !== undefined) {
      const states = follower.states.splice(0);
      for (const [index, state] of states.entries()) {
        this.#totals.states += 1;
        const isNewest = index === states.length - 1 && follower.hasReached(seq);
        const isSteady = !this.#isRedefined && !this.#left.has(asked.sql);
        const isByCommit = isSteady && this.#byCommit.has(follower);
        const judged = { ack, state, isNewest, isByCommit };
        const difference = await this.#judge.differenceOf(asked, judged);
        if (difference !== undefined && !this.#isForgiven(difference))
          this.#blame(follower, difference);
      }
    }
    if (follower.isRunning) {
      if (!follower.hasReached(seq)) this.#blame(follower, `does not reach ${seq}`);
      if (this.#isRedefined) await this.#judgeRight(follower);
      return;
    }
    await this.#judgeEnding(follower);
  }

  /** A changed definition may change rows by itself, or leave earlier states without a SELECT. */
  #isForgiven(difference: string): boolean {
    return this.#isRedefined && /^the SELECT|has the seq/.test(difference);
  }

  /** A query must have ended if its user may no longer read its tables. */
  async #judgeRight(follower: Follower): Promise<void> {
    const { error } = await this.#judge.select(follower.asked);
    const isForbidden = error?.code === "PERMISSION_DENIED" || error?.code === "TABLE_NOT_FOUND";
    if (isForbidden) this.#blame(follower, `goes on, but the SELECT says ${error.message}`);
  }

  /**
   * A query may also end because its SELECT fails, or because a definition or a right has changed.
   */
  async #judgeEnding(follower: Follower): Promise<void> {
    const { asked, ending } = follower;
    const { error } = await this.#judge.select(asked);
    const isExpected =
      error !== undefined ||
      this.#waiting.has(follower) ||
      (this.#isRedefined && DEFINITION_CODES.has(ending?.code ?? ""));
    if (!isExpected && ending !== undefined) {
      const isOfRow = ending.code === "CONVERSION_ERROR" && (await this.#failsOnRow(asked));
      if (!isOfRow) this.#blame(follower, `ends with ${ending.code}: ${ending.message}`);
    }
    if (error !== undefined) {
      this.#waiting.add(follower);
      return;
    }
    this.#waiting.delete(follower);
    const socket = this.#followers.get(follower)?.socket;
    if (socket !== undefined) follower.begin(socket);
  }

  /**
   * Whether the SELECT fails after one of the last commits. Rows that only the reader sees cannot
   * be queried for earlier states.
   */
  async #failsOnRow(asked: Asked): Promise<boolean> {
    const { token } = this.#options.server;
    if (asked.token !== token && !haveSameRows(asked)) return true;
    for (const seq of this.#seqs) {
      const { error } = await this.#judge.select({ ...asked, token }, seq);
      if (error !== undefined) return true;
    }
    return false;
  }

  #blame({ asked, id }: Follower, what: string): void {
    const { params, sql } = asked;
    const where = `seed ${this.#options.seed}, follower ${id}`;
    this.#report(`${where}: ${what}\n  ${sql}\n  with ${JSON.stringify(params)}`);
  }
}
