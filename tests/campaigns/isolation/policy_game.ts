/**
 * Tests a SHARED table whose rows are visible through policies. Root changes the policies, the
 * memberships that they read, and the rows. Root also evaluates the rules, written out as
 * conditions, and compares the outcome with what each caller receives and changes.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { ExpirySweep, type SqlResponse } from "../../../src/sql/mod.ts";
import { postForm } from "./policy_forms.ts";
import { ShownView } from "./shown_view.ts";
import { CALLERS, type Caller, type World } from "./world.ts";

const ROOMS = 5;
const POSTS_MAX = 40;

/** The time to live of the rows, which is longer than any round takes. */
const TTL_SECONDS = 3600;

/** Conditions for policies, each written from the caller's point of view. */
const RULES: readonly string[] = [
  "author = CURRENT_USER()",
  "room = 0",
  "id % 3 = 0 AND room > 1",
  "CURRENT_ROLE() = 'service' AND room < 3",
  "EXISTS (SELECT 1 FROM members m WHERE m.room = posts.room AND m.member = CURRENT_USER())",
  "EXISTS (SELECT 1 FROM members m WHERE m.room = posts.room AND m.member = CURRENT_USER() AND m.is_head)",
  "room IN (SELECT room FROM members WHERE member = CURRENT_USER())",
  "author = CURRENT_USER() OR room IN (SELECT room FROM members WHERE member = CURRENT_USER())",
  "(SELECT count(*) FROM members m WHERE m.member = CURRENT_USER()) > 1 AND room <> 2",
  "NOT EXISTS (SELECT 1 FROM members m WHERE m.room = posts.room) AND author <> 'dora'",
];

const COMMANDS = ["ALL", "SELECT", "INSERT", "UPDATE", "DELETE"] as const;

type Command = (typeof COMMANDS)[number];

interface Policy {
  readonly name: string;
  readonly command: Command;
  readonly role: "user" | "service" | "all";
  readonly rule: string;
}

interface Post {
  readonly id: string;
  readonly text: string;
  readonly author: string;
  readonly mark: string;
}

/**
 * The posts before a change by a caller, and the posts that the rules allowed the caller to
 * change.
 */
interface Before {
  readonly posts: readonly Post[];
  readonly changeable: ReadonlySet<string>;
}

/** Matches statements that read the view that runs with its owner's rights. */
const READS_VIEW = /\bmine\b/;

function areSameSets(
  some: ReadonlySet<string> | undefined,
  others: ReadonlySet<string> | undefined,
): boolean {
  if (some === undefined || others === undefined) return some === others;
  return some.size === others.size && some.isSubsetOf(others);
}

const MEMBERS =
  "CREATE TABLE members (room INT, member TEXT, is_head BOOLEAN DEFAULT false, PRIMARY KEY (room, member)) WITH (ACCESS_LEVEL = 'RESTRICTED')";

const POSTS = "TABLE posts (id INT PRIMARY KEY, room INT, author TEXT, mark TEXT)";
const HEADS = "CREATE VIEW heads AS SELECT id, mark FROM posts WHERE room > 0";

export interface PolicyGameParts {
  readonly all: World;
  readonly lonely: ReadonlyMap<string, World>;
  readonly chance: Chance;
  readonly clock: Clock;
  readonly salt: string;
  readonly report: (what: string, sql: string) => void;
  /** Whether the posts are rows of a shared STREAM table. */
  readonly areBrief: boolean;
  /** Whether to show some rows through a policy that the campaign does not know about. */
  readonly hasForgottenPolicy: boolean;
  /** Whether to show posts through a view in a way that the campaign does not know about. */
  readonly viewShowsMore: boolean;
  /** Whether to drop the policies when the first posts expire. */
  readonly expiryOpens: boolean;
}

export class PolicyGame {
  readonly #parts: PolicyGameParts;
  readonly #view: ShownView;
  #policies: Policy[] = [];
  #labels = 0;
  #names = 0;
  /** Whether the injected fault has made the posts PUBLIC, so that they accept no policy. */
  #isOpen = false;
  /** The marks of all posts that have ever existed. */
  readonly #allMarks = new Set<string>();
  /** The marks that subscriptions to the posts may have sent to each caller. */
  readonly #shown = new Map<string, Set<string>>();
  /** The additional marks that subscriptions to the view may have sent to each caller. */
  readonly #shownByView = new Map<string, Set<string>>();
  #posts: readonly Post[] = [];
  /** The numbers of the posts visible to each caller. */
  #visible = new Map<string, ReadonlySet<string>>();
  /**
   * The numbers of the posts that the view shows to each caller; undefined for a caller who may
   * not read the view.
   */
  #mine = new Map<string, ReadonlySet<string> | undefined>();
  /** The callers whose separate database no longer contains the posts that they currently see. */
  readonly #stale = new Set<string>();

  private constructor(parts: PolicyGameParts, view: ShownView) {
    this.#parts = parts;
    this.#view = view;
  }

  static async open(parts: PolicyGameParts): Promise<PolicyGame> {
    const { all, lonely } = parts;
    const [kind, ttl] = parts.areBrief ? ["STREAM ", `, TTL_SECONDS = ${TTL_SECONDS}`] : ["", ""];
    await all.prepare(
      `${MEMBERS}; CREATE ${kind}${POSTS} WITH (ACCESS_LEVEL = 'RESTRICTED'${ttl}); ${HEADS}`,
    );
    for (const world of lonely.values()) {
      await world.prepare(
        `CREATE ${POSTS} WITH (ACCESS_LEVEL = 'PUBLIC'); ${HEADS}; CREATE TABLE mine (id INT PRIMARY KEY, mark TEXT) WITH (ACCESS_LEVEL = 'PUBLIC')`,
      );
    }
    const game = new PolicyGame(parts, await ShownView.open(parts, parts.viewShowsMore));
    const reference = parts.areBrief ? "" : " REFERENCES posts (id)";
    await all.prepare(
      `CREATE TABLE notes (id INT PRIMARY KEY, post INT${reference}) WITH (ACCESS_LEVEL = 'RESTRICTED'); CREATE POLICY every ON notes USING (true)`,
    );
    for (let id = 0; id < POSTS_MAX / 2; id += 1) await game.#insert(id);
    for (let many = 0; many < 3; many += 1) await game.#createPolicy();
    for (let many = 0; many < 6; many += 1) await game.#toggleMember();
    if (parts.hasForgottenPolicy) {
      await all.prepare("CREATE POLICY forgotten ON posts FOR SELECT USING (id % 7 = 5)");
    }
    await game.#look();
    return game;
  }

  /**
   * Replaces the posts in a caller's separate database with the posts that the caller sees now.
   */
  async showAlone(caller: Caller): Promise<void> {
    if (!this.#stale.delete(caller.name)) return;
    const world = this.#parts.lonely.get(caller.name);
    const seen = this.#visible.get(caller.name);
    const mine = this.#mine.get(caller.name);
    const posts = this.#posts.filter(({ id }) => seen?.has(id) === true).map(({ text }) => text);
    const own = this.#posts.flatMap(({ id, mark }) =>
      mine?.has(id) === true ? `(${id}, '${mark}')` : [],
    );
    for (const [table, rows] of [
      ["posts", posts],
      ["mine", own],
    ] as const) {
      const insert = rows.length === 0 ? "" : `; INSERT INTO ${table} VALUES ${rows.join(", ")}`;
      await world?.prepare(`DELETE FROM ${table}${insert}`);
    }
  }

  /**
   * Whether a caller may read the object that a statement mentions, either the posts or the view
   * of them.
   */
  knows(caller: Caller, sql: string): boolean {
    if (/\b(?:posts|heads)\b/.test(sql) && !this.knowsPosts(caller)) return false;
    return !READS_VIEW.test(sql) || this.#mine.get(caller.name) !== undefined;
  }

  /**
   * Whether policies show any posts to a caller. If not, the table does not exist for the caller.
   */
  knowsPosts({ role }: Caller): boolean {
    return role === "dba" || this.#policiesFor(role, "SELECT").length > 0;
  }

  /** Returns the marks of the posts that a statement must not show to any of these callers. */
  hiddenFrom(callers: readonly Caller[], sql: string): readonly string[] {
    const readsView = READS_VIEW.test(sql);
    const seen = new Set(
      callers.flatMap(({ name }) => [
        ...(this.#visible.get(name) ?? []),
        ...((readsView ? this.#mine.get(name) : undefined) ?? []),
      ]),
    );
    return this.#posts.flatMap(({ id, mark }) => (seen.has(id) ? [] : [mark]));
  }

  /** Returns the marks that a statement cannot have shown to a caller so far. */
  neverShownTo({ name }: Caller, sql: string): readonly string[] {
    const shown = this.#shown.get(name);
    const byView = READS_VIEW.test(sql) ? this.#shownByView.get(name) : undefined;
    return [...this.#allMarks].filter(
      (mark) => shown?.has(mark) !== true && byView?.has(mark) !== true,
    );
  }

  /**
   * Changes the policies, the memberships, an owner, or the posts, some of which may also expire.
   */
  async move(): Promise<void> {
    const { all, areBrief, chance } = this.#parts;
    switch (chance.below(areBrief ? 10 : 9)) {
      case 0:
        await this.#createPolicy();
        break;
      case 1:
        await this.#dropPolicy();
        break;
      case 2:
      case 3:
      case 4:
        await this.#toggleMember();
        break;
      case 5:
        await this.#insert(chance.below(POSTS_MAX));
        break;
      case 6: {
        const { name } = chance.pick(CALLERS);
        const set = chance.pick([`author = '${name}'`, `room = ${chance.below(ROOMS)}`]);
        await all.prepare(
          `UPDATE posts SET ${set}, mark = md5('${this.#newLabel()}') WHERE id = ${chance.below(POSTS_MAX)}`,
        );
        break;
      }
      case 8:
        await this.#view.move();
        break;
      case 9:
        await this.#expire();
        break;
      default:
        await all.prepare(`STORAGE FLUSH TABLE ${chance.pick(["posts", "members"])}`);
    }
    await this.#look();
  }

  /** Sends a statement that asks for hidden posts or changes posts, and checks its effect. */
  async ask(
    caller: Caller,
    owner: Caller,
  ): Promise<{ readonly sql: string; readonly answer: SqlResponse }> {
    const { all, chance } = this.#parts;
    const form = postForm(chance, {
      id: chance.below(POSTS_MAX),
      room: chance.below(ROOMS),
      hidden: this.hiddenFrom([owner], "")[0] ?? "none",
      owner: owner.name,
      label: this.#newLabel(),
      mayDefine: caller.role === "dba" || owner.role === "dba",
    });
    const sql = caller === owner ? form : `EXECUTE AS USER '${owner.name}' (${form})`;
    const before = await this.#beforeChange(owner);
    const answer = await all.ask(caller.name, sql);
    await this.#look();
    await this.#judgeChange(owner, { before, sql });
    return { sql, answer };
  }

  async #beforeChange(owner: Caller): Promise<Before> {
    const [updatable, deletable] = await Promise.all([
      this.#idsWhere(owner, ["SELECT", "UPDATE"]),
      this.#idsWhere(owner, ["SELECT", "DELETE"]),
    ]);
    return { posts: this.#posts, changeable: new Set([...updatable, ...deletable]) };
  }

  async #judgeChange(
    owner: Caller,
    { before, sql }: { before: Before; sql: string },
  ): Promise<void> {
    const { report } = this.#parts;
    const now = new Map(this.#posts.map((post) => [post.id, post.text]));
    const earlier = new Map(before.posts.map((post) => [post.id, post.text]));
    for (const { id, text } of before.posts) {
      if (now.get(id) !== text && !before.changeable.has(id)) {
        report(`${owner.name} changes post ${id}, which it may not change`, sql);
      }
    }
    const written = this.#posts.filter(({ id, text }) => earlier.get(id) !== text);
    if (written.length === 0) return;
    const inserted = await this.#idsWhere(owner, ["INSERT"]);
    const updated = await this.#idsWhere(owner, ["SELECT", "UPDATE"]);
    for (const { id } of written) {
      const may = earlier.has(id) ? updated : inserted;
      if (!may.has(id)) report(`${owner.name} leaves a post ${id} that it may not write`, sql);
    }
  }

  async #look(): Promise<void> {
    const before = this.#posts;
    const rows = await this.#rows("SELECT id, room, author, mark FROM posts ORDER BY id");
    this.#posts = rows.map(([id, room, author, mark]) => ({
      id: String(id),
      text: `(${String(id)}, ${String(room)}, '${String(author)}', '${String(mark)}')`,
      author: String(author),
      mark: String(mark),
    }));
    const marks = new Set(this.#posts.map(({ mark }) => mark));
    if (marks.size < this.#posts.length) throw new Error("Two posts have the same mark");
    const areSamePosts = JSON.stringify(before) === JSON.stringify(this.#posts);
    for (const mark of marks) this.#allMarks.add(mark);
    for (const caller of CALLERS) {
      const seen = await this.#idsWhere(caller, ["SELECT"]);
      const known = this.#visible.get(caller.name) ?? new Set();
      const mine = this.#view.postsFor(caller, {
        isKnown: this.knowsPosts(caller),
        visible: seen,
        visibleToRoleUser: await this.#visibleToRoleUser(caller),
        written: new Set(
          this.#posts.flatMap(({ author, id }) => (author === caller.name ? id : [])),
        ),
      });
      const areSame = areSameSets(known, seen) && areSameSets(this.#mine.get(caller.name), mine);
      if (!areSame || !areSamePosts) this.#stale.add(caller.name);
      this.#visible.set(caller.name, seen);
      this.#mine.set(caller.name, mine);
      const shown = this.#shown.get(caller.name) ?? new Set();
      for (const { id, mark } of this.#posts) if (seen.has(id)) shown.add(mark);
      this.#shown.set(caller.name, shown);
      const byView = this.#shownByView.get(caller.name) ?? new Set();
      for (const { id, mark } of this.#posts) if (mine?.has(id) === true) byView.add(mark);
      this.#shownByView.set(caller.name, byView);
    }
  }

  /** Returns the numbers of the posts for which policies permit all of these commands. */
  async #idsWhere(caller: Caller, commands: readonly Command[]): Promise<ReadonlySet<string>> {
    const isExempt = caller.role === "dba";
    const condition = commands
      .map((command) => (isExempt ? "true" : this.#ruleFor(caller, command)))
      .join(" AND ");
    return this.#idsOf(`SELECT id FROM posts WHERE ${condition}`);
  }

  /**
   * Returns the numbers of the posts that a view with an owner of role `user` shows to a caller;
   * undefined if the owner may not read posts.
   */
  async #visibleToRoleUser(caller: Caller): Promise<ReadonlySet<string> | undefined> {
    if (this.#policiesFor("user", "SELECT").length === 0) return undefined;
    const rule = this.#ruleFor(caller, "SELECT", "user");
    return this.#idsOf(`SELECT id FROM posts WHERE ${rule}`);
  }

  async #idsOf(sql: string): Promise<ReadonlySet<string>> {
    const rows = await this.#rows(sql);
    return new Set(rows.map(([id]) => String(id)));
  }

  /**
   * Returns the condition imposed by the policies for a role, with the caller's name and role
   * filled in.
   */
  #ruleFor({ name, role }: Caller, command: Command, policyRole = role): string {
    const rules = this.#policiesFor(policyRole, command).map(({ rule }) =>
      rule.replaceAll("CURRENT_USER()", `'${name}'`).replaceAll("CURRENT_ROLE()", `'${role}'`),
    );
    return rules.length === 0 ? "false" : `(${rules.map((rule) => `(${rule})`).join(" OR ")})`;
  }

  #policiesFor(role: Caller["role"], command: Command): readonly Policy[] {
    return this.#policies.filter(
      (policy) =>
        (policy.role === "all" || policy.role === role) &&
        (policy.command === "ALL" || policy.command === command),
    );
  }

  async #rows(sql: string): Promise<readonly (readonly unknown[])[]> {
    const { error, results } = await this.#parts.all.ask("root", sql);
    if (error !== undefined) throw new Error(`Cannot ask ${sql}`, { cause: error });
    return results[0]?.rows ?? [];
  }

  /** Returns a label that no earlier statement contained, from which marks are computed. */
  #newLabel(): string {
    this.#labels += 1;
    return `${this.#parts.salt}post${this.#labels}`;
  }

  async #insert(id: number): Promise<void> {
    const { all, chance } = this.#parts;
    const { name } = chance.pick(CALLERS);
    await all.prepare(
      `INSERT INTO posts VALUES (${id}, ${chance.below(ROOMS)}, '${name}', md5('${this.#newLabel()}')) ON CONFLICT (id) DO UPDATE SET room = EXCLUDED.room, author = EXCLUDED.author, mark = EXCLUDED.mark`,
    );
  }

  /** Deletes the posts that are older than a second, and writes a new post. */
  async #expire(): Promise<void> {
    const { all, chance, clock, expiryOpens } = this.#parts;
    await all.prepare("ALTER TABLE posts SET (TTL_SECONDS = 1)");
    const { catalog, store } = all.database;
    await new ExpirySweep({ catalog, store, clock }).run();
    const level = expiryOpens ? ", ACCESS_LEVEL = 'PUBLIC'" : "";
    await all.prepare(`ALTER TABLE posts SET (TTL_SECONDS = ${TTL_SECONDS}${level})`);
    this.#isOpen = expiryOpens;
    await this.#insert(chance.below(POSTS_MAX));
  }

  async #toggleMember(): Promise<void> {
    const { all, chance } = this.#parts;
    const room = chance.below(ROOMS);
    const { name } = chance.pick(CALLERS);
    const place = `room = ${room} AND member = '${name}'`;
    const found = await this.#rows(`SELECT 1 FROM members WHERE ${place}`);
    await all.prepare(
      found.length === 0
        ? `INSERT INTO members VALUES (${room}, '${name}', ${chance.below(2) === 0})`
        : `DELETE FROM members WHERE ${place}`,
    );
  }

  async #createPolicy(): Promise<void> {
    if (this.#isOpen) return;
    const { all, chance } = this.#parts;
    this.#names += 1;
    const policy: Policy = {
      name: `p${this.#names}`,
      command: chance.pick(["ALL", "SELECT", "SELECT", ...COMMANDS] as const),
      role: chance.pick(["all", "all", "user", "service"] as const),
      rule: chance.pick(RULES),
    };
    const to = policy.role === "all" ? "" : ` TO ${policy.role}`;
    const clause = policy.command === "INSERT" ? "WITH CHECK" : "USING";
    // The policies have several owners, all of whom may read the memberships.
    const { error } = await all.ask(
      chance.pick(["root", "dora"]),
      `CREATE POLICY ${policy.name} ON posts FOR ${policy.command}${to} ${clause} (${policy.rule})`,
    );
    if (error !== undefined) throw new Error(`Cannot create ${policy.rule}`, { cause: error });
    this.#policies.push(policy);
  }

  async #dropPolicy(): Promise<void> {
    const { all, chance } = this.#parts;
    if (this.#policies.length < 2) return;
    const dropped = chance.pick(this.#policies);
    await all.prepare(`DROP POLICY ${dropped.name} ON posts`);
    this.#policies = this.#policies.filter((policy) => policy !== dropped);
  }
}
