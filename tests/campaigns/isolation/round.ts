/** Runs a round: the databases, the tables, the callers' statements, and the judgement. */

import { type Chance, chanceFromSeed } from "../../../scripts/support/chance.ts";
import { changeOf, columnsOf, type StoredTable } from "../fuzz_sql/changes.ts";
import { queryOf } from "../fuzz_sql/queries.ts";
import type { Table } from "../fuzz_sql/subqueries.ts";
import { textOf } from "../fuzz_sql/tree.ts";
import { COLUMN_TYPES, cellOf } from "../fuzz_sql/values.ts";
import { formOf } from "./forms.ts";
import { type InjectedFault, leakFrom } from "./injected_faults.ts";
import { canaryIn, differenceOf, textOfAnswer } from "./judge.ts";
import { PolicyGame } from "./policy_game.ts";
import { type Watcher, watch } from "./watcher.ts";
import { CALLERS, type Caller, mayActAs, RoundClock, World } from "./world.ts";

const STATEMENTS_PER_ROUND = 1000;
const PROGRESS_EVERY = 1000;
const WATCHERS_MAX = 40;

/** The average number of statements per new subscription. */
const SUBSCRIPTION_EVERY = 2;

/** The number of milliseconds by which the wall clock advances with each statement. */
const STATEMENT_MS = 100;
const LEAKS_SHOWN_MAX = 20;

export interface Totals {
  statements: number;
  compared: number;
  messages: number;
  leaks: number;
}

/** The state that the rounds of a campaign share. */
export interface Campaigned {
  readonly totals: Totals;
  readonly injected: InjectedFault | undefined;
  /** A digest of every statement sent to the common worlds. It is the same for the same seed. */
  readonly trace: Bun.CryptoHasher;
}

export class Round implements AsyncDisposable {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #salt: string;
  readonly #totals: Totals;
  readonly #injected: InjectedFault | undefined;
  readonly #clock: RoundClock;
  readonly #all: World;
  readonly #lonely: ReadonlyMap<string, World>;
  /** The stored tables. Their columns do not include `mark`, which is filled in by its default. */
  readonly #tables: StoredTable[] = [];
  #game: PolicyGame | undefined;
  #watchers: { readonly caller: Caller; readonly watcher: Watcher; readonly sql: string }[] = [];

  private constructor(
    seed: number,
    { totals, injected }: Campaigned,
    worlds: { clock: RoundClock; all: World; lonely: ReadonlyMap<string, World> },
  ) {
    this.#seed = seed;
    this.#chance = chanceFromSeed(seed);
    this.#salt = `salt${seed}`;
    this.#totals = totals;
    this.#injected = injected;
    this.#clock = worlds.clock;
    this.#all = worlds.all;
    this.#lonely = worlds.lonely;
  }

  static async open(seed: number, campaigned: Campaigned): Promise<Round> {
    const clock = new RoundClock();
    const note = (caller: string, sql: string): void => {
      campaigned.trace.update(`${caller}: ${sql}\n`);
    };
    const all = await World.open({ clock, note });
    const lonely = new Map<string, World>();
    for (const { name } of CALLERS) lonely.set(name, await World.open({ clock }));
    const round = new Round(seed, campaigned, { clock, all, lonely });
    await round.#define();
    return round;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { watcher } of this.#watchers) watcher.close();
    for (const world of this.#worlds()) await world[Symbol.asyncDispose]();
  }

  #worlds(): readonly World[] {
    return [this.#all, ...this.#lonely.values()];
  }

  #canary(owner: string): string {
    return new Bun.CryptoHasher("md5").update(`${this.#salt}${owner}`).digest("hex");
  }

  async #define(): Promise<void> {
    const chance = this.#chance;
    const mark = `mark TEXT DEFAULT md5('${this.#salt}' || CURRENT_USER)`;
    const vault = this.#canary("vault");
    const statements = [
      `CREATE TABLE vault (id INT PRIMARY KEY, mark TEXT); INSERT INTO vault VALUES (1, '${vault}')`,
      "CREATE SHARED TABLE board (id INT PRIMARY KEY, mark TEXT) WITH (ACCESS_LEVEL = 'PUBLIC'); INSERT INTO board VALUES (1, 'all'), (2, 'all')",
      `CREATE STREAM TABLE feed (k TEXT, ${mark}) WITH (TTL_SECONDS = 3600)`,
    ];
    for (const name of ["t1", "t2"]) {
      const columns = COLUMN_TYPES.filter(() => chance.below(3) > 0);
      const elements = columns.map((column) => `${column.name} ${column.type}`);
      statements.push(
        `CREATE USER TABLE ${name} (${["id INT PRIMARY KEY", ...elements, mark].join(", ")})`,
      );
      this.#tables.push({ name, columns });
    }
    statements.push(
      "CREATE VIEW peek AS SELECT id, mark FROM t1",
      "CREATE VIEW counts AS SELECT count(*) AS n, max(mark) AS m FROM t2",
    );
    for (const world of this.#worlds()) for (const sql of statements) await world.prepare(sql);
    for (const caller of CALLERS) await this.#fill(caller);
    this.#game = await PolicyGame.open({
      all: this.#all,
      lonely: this.#lonely,
      chance,
      clock: this.#clock,
      salt: this.#salt,
      report: (what, sql) => {
        this.#report(what, sql);
      },
      areBrief: this.#injected === "expiry" || chance.below(2) === 0,
      hasForgottenPolicy: this.#injected === "policy",
      viewShowsMore: this.#injected === "view",
      expiryOpens: this.#injected === "expiry",
    });
    if (this.#injected !== undefined) leakFrom(this.#all.database.store, this.#injected);
    const sql = "SELECT * FROM t1 WHERE mark IS NOT NULL";
    this.#watchers = CALLERS.map((caller) => ({
      caller,
      sql,
      watcher: watch(this.#all, caller.name, { id: caller.name, sql }),
    }));
  }

  async #fill({ name: caller }: Caller): Promise<void> {
    const chance = this.#chance;
    for (const { columns, name } of this.#tables) {
      const names = ["id", ...columns.map((column) => column.name)].join(", ");
      const rows = Array.from({ length: 2 + chance.below(15) }, (_, id) => {
        return `(${[String(id), ...columns.map((column) => cellOf(column, chance))].join(", ")})`;
      });
      await this.#asBoth(caller, `INSERT INTO ${name} (${names}) VALUES ${rows.join(", ")}`);
    }
    await this.#asBoth(caller, "INSERT INTO feed (k) VALUES ('a'), ('b')");
  }

  async #asBoth(caller: string, sql: string): Promise<void> {
    for (const world of [this.#all, this.#lonely.get(caller)]) {
      const { error } = (await world?.ask(caller, sql)) ?? {};
      if (error !== undefined) throw new Error(`Cannot prepare with ${sql}`, { cause: error });
    }
  }

  async run(statementsMax: number): Promise<void> {
    for (let done = 0; done < STATEMENTS_PER_ROUND; done += 1) {
      if (this.#totals.statements >= statementsMax) break;
      const caller = this.#chance.pick(CALLERS);
      this.#totals.statements += 1;
      this.#clock.pass(STATEMENT_MS);
      if (this.#totals.statements % PROGRESS_EVERY === 0) {
        process.stdout.write(`  ${this.#totals.statements} statements, seed ${this.#seed}\n`);
      }
      if (this.#chance.below(20) === 0)
        await this.#everywhere(`STORAGE FLUSH TABLE ${this.#anyTable()}`);
      if (this.#chance.below(6) === 0) await this.#game?.move();
      if (this.#chance.below(4) === 0) await this.#form(caller);
      else if (this.#chance.below(5) === 0) await this.#postForm(caller);
      else await this.#random(caller);
      if (this.#chance.below(SUBSCRIPTION_EVERY) === 0) this.#subscribe(caller);
      this.#readMessages();
      if (this.#injected !== undefined && this.#totals.leaks > 0) return;
    }
  }

  #anyTable(): string {
    return this.#chance.pick(this.#tables).name;
  }

  async #everywhere(sql: string): Promise<void> {
    for (const world of this.#worlds()) await world.prepare(sql);
  }

  /**
   * Sends a query or a change, sometimes on behalf of another user. That user must get the same
   * result in a database without other users.
   */
  async #random(caller: Caller): Promise<void> {
    const chance = this.#chance;
    const acted = chance.below(5) === 0 ? mayActAs(caller) : [];
    const owner = acted.length === 0 ? caller : chance.pick(acted);
    const isChange = chance.below(3) === 0;
    const plain = isChange ? changeOf(this.#tables, chance) : queryOf(this.#sources(), chance).root;
    const sql = textOf(plain);
    const wrapped = owner === caller ? sql : `EXECUTE AS USER '${owner.name}' (${sql})`;
    const isInTransaction = chance.below(6) === 0;
    const readsPosts = /\b(?:posts|heads|mine)\b/.test(sql);
    if (readsPosts) await this.#game?.showAlone(owner);
    const way = (text: string): string => (isInTransaction ? `BEGIN; ${text}; COMMIT` : text);
    const found = await this.#all.ask(caller.name, way(wrapped));
    const alone = await this.#lonely.get(owner.name)?.ask(owner.name, way(sql));
    // A caller acting as another user must not learn that user's secrets from a message.
    this.#judge(wrapped, textOfAnswer(found), [caller, owner]);
    if (alone === undefined) return;
    if (readsPosts) {
      // A service acting for another user has only the rights of the role user.
      if (owner !== caller && owner.role !== "user") return;
      const marks = this.#game?.hiddenFrom([caller, owner], sql) ?? [];
      this.#judgeMarks(wrapped, textOfAnswer(found), { caller, marks });
      if (this.#game?.knows(owner, sql) !== true) return;
    }
    this.#totals.compared += 1;
    const difference = differenceOf(found, alone);
    if (difference !== undefined) this.#report(`${caller.name} is told ${difference}`, wrapped);
  }

  #sources(): Table[] {
    const mark = { name: "mark", sort: "text" } as const;
    return [
      ...this.#tables.map((table) => ({ name: table.name, columns: [...columnsOf(table), mark] })),
      { name: "board", columns: [{ name: "id", sort: "int" }, mark] },
      { name: "peek", columns: [{ name: "id", sort: "int" }, mark] },
      {
        name: "posts",
        columns: [
          { name: "id", sort: "int" },
          { name: "room", sort: "int" },
          { name: "author", sort: "text" },
          mark,
        ],
      },
      { name: "heads", columns: [{ name: "id", sort: "int" }, mark] },
      { name: "mine", columns: [{ name: "id", sort: "int" }, mark] },
    ];
  }

  /** Sends a statement that asks for foreign data. Its changes remain in the common database. */
  async #form(caller: Caller): Promise<void> {
    const other = this.#chance.pick(CALLERS.filter((each) => each !== caller));
    const sql = formOf(this.#chance, {
      table: this.#anyTable(),
      other: other.name,
      canary: this.#canary(other.name),
      salt: this.#salt,
      isUser: caller.role === "user",
    });
    // The server may return the caller's own SQL to the caller, and may show it to callers who may
    // see running statements.
    const asked = sql.includes(this.#canary(other.name)) ? [other] : [];
    const answer = await this.#all.ask(caller.name, takenBack(sql));
    const acted = /^EXECUTE AS|; EXECUTE AS|^BEGIN; EXECUTE AS/.test(sql) ? mayActAs(caller) : [];
    this.#judge(sql, textOfAnswer(answer), [caller, ...asked, ...acted]);
    if (answer.error?.code === "INTERNAL_ERROR") this.#report(answer.error.message, sql);
  }

  /** Sends a statement over the posts that policies show, sometimes on behalf of another user. */
  async #postForm(caller: Caller): Promise<void> {
    const chance = this.#chance;
    const acted = chance.below(4) === 0 ? mayActAs(caller) : [];
    // A service acting for another user has only the rights of the role user.
    const users = acted.filter(({ role }) => role === "user");
    const owner = users.length === 0 ? caller : chance.pick(users);
    const hiddenBy = [false, true].map((readsView) =>
      this.#game?.hiddenFrom([caller, owner], readsView ? "mine" : ""),
    );
    const asked = await this.#game?.ask(caller, owner);
    if (asked === undefined) return;
    const { answer, sql } = asked;
    const hidden = hiddenBy[sql.includes("mine") ? 1 : 0] ?? [];
    // The SQL sent by the caller may appear in the response.
    this.#judgeMarks(sql, textOfAnswer(answer), {
      caller,
      marks: hidden.filter((mark) => !sql.includes(mark)),
    });
    this.#judge(sql, textOfAnswer(answer), [caller, owner]);
    if (answer.error?.code === "INTERNAL_ERROR") this.#report(answer.error.message, sql);
  }

  #subscribe(caller: Caller): void {
    const other = this.#chance.pick(CALLERS.filter((each) => each !== caller));
    const condition = this.#chance.pick([
      "mark <> ''",
      "id > 0",
      `mark <> md5('${this.#salt}' || '${caller.name}')`,
      `upper(mark) <> '${other.name}'`,
    ]);
    const id = `s${this.#totals.statements}`;
    const sql = this.#chance.pick([
      `SELECT * FROM ${this.#anyTable()} WHERE ${condition}`,
      "SELECT * FROM posts WHERE mark <> ''",
      "SELECT p.id, p.mark, b.mark AS of_board FROM posts p LEFT JOIN board b ON b.id = p.id",
      "SELECT room, count(*) AS n, max(mark) AS newest FROM posts GROUP BY room",
      "SELECT id, mark FROM heads WHERE id > 3 ORDER BY id LIMIT 5",
      "SELECT id, mark FROM mine",
      "SELECT i.id, i.room, m.mark FROM ids i LEFT JOIN mine m ON m.id = i.id",
    ]);
    // A replay reads every retained change, whereas a snapshot reads rows.
    const options = this.#chance.below(2) === 0 ? { from_seq_id: 1 } : {};
    const watcher = watch(this.#all, caller.name, { id, sql, options });
    this.#watchers.push({ caller, watcher, sql });
    if (this.#watchers.length > WATCHERS_MAX)
      this.#watchers.splice(CALLERS.length, 1)[0]?.watcher.close();
  }

  #readMessages(): void {
    for (const { caller, sql, watcher } of this.#watchers) {
      const text = watcher.taken();
      if (text === "") continue;
      this.#totals.messages += text.split("\n").length;
      this.#judge("a subscription", text, [caller]);
      const marks = this.#game?.neverShownTo(caller, sql) ?? [];
      this.#judgeMarks("a subscription", text, { caller, marks });
    }
  }

  #judge(sql: string, text: string, seen: readonly Caller[]): void {
    const names = new Set(seen.map(({ name }) => name));
    const [caller] = seen;
    const foreign = CALLERS.filter(({ name }) => !names.has(name)).map(({ name }) =>
      this.#canary(name),
    );
    if (caller?.role === "user") foreign.push(this.#canary("vault"));
    const canary = canaryIn(text, foreign);
    if (canary !== undefined)
      this.#report(`${caller?.name ?? ""} is sent a foreign canary, ${canary}`, sql);
  }

  #judgeMarks(
    sql: string,
    text: string,
    { caller, marks }: { caller: Caller; marks: readonly string[] },
  ): void {
    const canary = canaryIn(text, marks);
    if (canary !== undefined) this.#report(`${caller.name} is sent a hidden post, ${canary}`, sql);
  }

  #report(what: string, sql: string): void {
    this.#totals.leaks += 1;
    if (this.#totals.leaks > LEAKS_SHOWN_MAX || this.#injected !== undefined) return;
    process.stdout.write(`\nseed ${this.#seed}: ${what}\n  ${sql}\n`);
  }
}

/**
 * Wraps a change so that it is rolled back, which keeps the caller's state the same in both
 * databases.
 */
function takenBack(sql: string): string {
  const isChange = /^(?:INSERT|UPDATE|DELETE|EXECUTE AS .*INSERT)/.test(sql);
  // Statements on STREAM tables are not wrapped: their rows are not compared, and transactions
  // cannot change them.
  if (!isChange || sql.includes("feed")) return sql.replace("ANALYZE DELETE", "DELETE");
  return `BEGIN; ${sql}; ROLLBACK`;
}
