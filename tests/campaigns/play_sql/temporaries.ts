/**
 * Plays temporary objects on Tidemark as ordinary ones, which exist until the end of their script.
 * A temporary table hides a table of the same name, so the player renames that table until the
 * temporary one is dropped.
 */
import type { Played } from "./played.ts";
import type { TidemarkPlayer } from "./tidemark_player.ts";

/**
 * Matches a statement that creates a temporary object, which PostgreSQL drops at the end of the
 * script.
 */
const TEMPORARY =
  /^create\s+(?:or\s+replace\s+)?(?:local\s+|global\s+)?temp(?:orary)?\s+(?:recursive\s+)?(table|view|sequence)\s+(?:if\s+not\s+exists\s+)?("[^"]+"|\w+)/i;
const INTO_TEMPORARY = /\binto\s+temp(?:orary)?\s+(?:table\s+)?("[^"]+"|\w+)/i;
const DROP_TABLE = /^drop\s+table\s+(?:if\s+exists\s+)?([\s\S]*)/i;

export class Temporaries {
  readonly #player: Pick<TidemarkPlayer, "play">;
  /** The kinds of the temporary objects, keyed by name. */
  readonly #kinds = new Map<string, string>();
  /** The names of the tables that temporary tables hide. */
  readonly #hidden = new Set<string>();

  constructor(player: Pick<TidemarkPlayer, "play">) {
    this.#player = player;
  }

  /** Prepares for a statement. It may create a temporary table, which hides one of its name. */
  async before(sql: string): Promise<void> {
    const [, kind, name] = TEMPORARY.exec(sql) ?? [];
    if (kind !== undefined && name !== undefined) await this.#note(name, kind);
    const into = INTO_TEMPORARY.exec(sql)?.[1];
    if (into !== undefined) await this.#note(into, "TABLE");
  }

  /** Returns a statement that reads hidden tables, such as `public.t`, under their other names. */
  renamed(sql: string): string {
    return [...this.#hidden].reduce(
      (text, name) =>
        text.replaceAll(new RegExp(String.raw`\bpublic\.${keyOf(name)}\b`, "gi"), hiddenName(name)),
      sql,
    );
  }

  /** Shows hidden tables again if a statement has dropped the temporary tables before them. */
  async after(sql: string, ours: Played): Promise<void> {
    const dropped = DROP_TABLE.exec(sql)?.[1];
    if (dropped === undefined || ours.kind === "failure") return;
    for (const word of dropped.match(/"[^"]+"|\w+/g) ?? []) {
      const name = [...this.#kinds.keys()].find((each) => keyOf(each) === keyOf(word));
      if (name !== undefined) await this.#showAgain(name);
    }
  }

  /** Drops all temporary objects, and shows the hidden tables again. */
  async end(): Promise<void> {
    for (const [name, kind] of [...this.#kinds].toReversed()) {
      await this.#run(`DROP ${kind} IF EXISTS ${name} CASCADE`);
      await this.#showAgain(name);
    }
  }

  async #note(name: string, kind: string): Promise<void> {
    const isNew = !this.#kinds.has(name);
    this.#kinds.set(name, kind);
    if (!isNew || !/^table$/i.test(kind) || !(await this.#exists(name))) return;
    const renamed = await this.#run(`ALTER TABLE ${name} RENAME TO ${hiddenName(name)}`);
    if (renamed.kind === "rows") this.#hidden.add(name);
  }

  async #exists(name: string): Promise<boolean> {
    const found = await this.#run(
      "SELECT 1 FROM information_schema.tables WHERE table_type = 'BASE TABLE' " +
        `AND table_schema = 'default' AND table_name = '${keyOf(name)}'`,
    );
    return found.kind === "rows" && found.rows.length > 0;
  }

  async #showAgain(name: string): Promise<void> {
    this.#kinds.delete(name);
    if (this.#hidden.delete(name))
      await this.#run(`ALTER TABLE ${hiddenName(name)} RENAME TO ${name}`);
  }

  #run(sql: string): Promise<Played> {
    return this.#player.play({ sql, line: 0 });
  }
}

function keyOf(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1) : name.toLowerCase();
}

function hiddenName(name: string): string {
  return `${keyOf(name)}_hidden`;
}
