/**
 * Tests a view that runs with its owner's rights and shows callers the posts that they wrote,
 * whatever the policies are. Its owner, its level and the owner's role change. Another view of the
 * same kind, `ids`, never shows a mark.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import type { Caller, World } from "./world.ts";

const LEVELS = ["PUBLIC", "PUBLIC", "PRIVATE", "DBA"] as const;

const ROLES: Readonly<Record<(typeof LEVELS)[number], readonly Caller["role"][]>> = {
  PUBLIC: ["user", "service", "dba"],
  PRIVATE: ["service", "dba"],
  DBA: ["dba"],
};

/**
 * The owner of the view: a dba who is not among the callers, and who loses that role from time to
 * time.
 */
const OWNER = "vera";

/** The facts about the campaign's posts that the view needs. */
export interface ShownPosts {
  /** Whether the caller may read the posts themselves. */
  readonly isKnown: boolean;
  /**
   * The numbers of the posts that the policies for the role `user` show when tested with the
   * caller's name and role; undefined if there is no such policy.
   */
  readonly visibleToRoleUser: ReadonlySet<string> | undefined;
  /** The numbers of the posts written by the caller. */
  readonly written: ReadonlySet<string>;
  /** The numbers of the posts that policies show to the caller. */
  readonly visible: ReadonlySet<string>;
}

export class ShownView {
  readonly #all: World;
  readonly #chance: Chance;
  #level: (typeof LEVELS)[number] = "PUBLIC";
  #isOfReader = false;
  #owner = OWNER;
  #hasRole = true;

  private constructor(all: World, chance: Chance) {
    this.#all = all;
    this.#chance = chance;
  }

  /**
   * Creates the view and its owner.
   * @param showsMore Whether the view also shows other users' posts without the campaign knowing.
   */
  static async open(
    { all, chance }: { all: World; chance: Chance },
    showsMore: boolean,
  ): Promise<ShownView> {
    const view = new ShownView(all, chance);
    const more = showsMore ? " OR id % 7 = 5" : "";
    await all.prepare(`CREATE USER ${OWNER} INTERNAL ROLE dba`);
    const { error } = await all.ask(
      OWNER,
      `CREATE VIEW mine WITH (security_invoker = false, access_level = 'PUBLIC') AS SELECT id, mark FROM posts WHERE author = CURRENT_USER()${more}; ` +
        "CREATE VIEW ids WITH (security_invoker = false, access_level = 'PUBLIC') AS SELECT id, room FROM posts",
    );
    if (error !== undefined) throw new Error("Cannot create the views", { cause: error });
    return view;
  }

  /**
   * Returns the numbers of the posts that the view shows to a caller; undefined if the caller may
   * not read the view.
   */
  postsFor({ role }: Caller, posts: ShownPosts): ReadonlySet<string> | undefined {
    const { isKnown, visible, visibleToRoleUser, written } = posts;
    if (this.#isOfReader) return isKnown ? written.intersection(visible) : undefined;
    if (!ROLES[this.#level].includes(role)) return undefined;
    if (this.#owner !== OWNER || this.#hasRole) return written;
    return visibleToRoleUser && written.intersection(visibleToRoleUser);
  }

  /**
   * Changes the view's owner, its level, the user whose rights it runs with, or its owner's role.
   */
  async move(): Promise<void> {
    const chance = this.#chance;
    switch (chance.below(4)) {
      case 0:
        this.#hasRole = !this.#hasRole;
        await this.#all.prepare(`ALTER USER ${OWNER} SET ROLE ${this.#hasRole ? "dba" : "user"}`);
        return;
      case 1:
        await this.#set(chance.pick(["root", "dora"]), "security_invoker = true");
        this.#isOfReader = true;
        return;
      default: {
        const level = chance.pick(LEVELS);
        const owner = chance.pick(this.#hasRole ? ["root", "dora", OWNER] : ["root", "dora"]);
        await this.#set(owner, `security_invoker = false, access_level = '${level}'`);
        this.#level = level;
        this.#owner = owner;
        this.#isOfReader = false;
      }
    }
  }

  async #set(owner: string, options: string): Promise<void> {
    const { error } = await this.#all.ask(owner, `ALTER VIEW mine SET (${options})`);
    if (error !== undefined) throw new Error(`Cannot set ${options}`, { cause: error });
  }
}
