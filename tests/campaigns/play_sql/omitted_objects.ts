/**
 * Remembers which objects of a play are missing or outdated on Tidemark because a statement was
 * omitted. A later difference that involves such an object says nothing new.
 *
 * An object that both sides create anew is no longer outdated. At the end of a script, the names
 * of objects that exist on neither side are forgotten.
 */

/** Matches a change that follows the closing parenthesis of the last WITH entry. */
export const CHANGED_WITH = /^\s*with\b[\s\S]*\)\s*(?:insert|update|delete|merge)\b/i;

const VIEW =
  /^\s*create\s+(?:or\s+replace\s+)?(?:temp\w*\s+|materialized\s+)?view\s+("[^"]+"|[\w.]+)/i;

const MADE =
  /^\s*(?:create|alter|drop|insert\s+into|update|delete\s+from|copy|truncate|merge\s+into|comment\s+on|select\b[\s\S]*?\binto)\b(?:\s+(?:or\s+replace|temp|temporary|unlogged|global|local|unique|recursive|foreign\s+data\s+wrapper|foreign\s+table|text\s+search\s+\w+|table|view|materialized\s+view|index|sequence|type|domain|function|aggregate|operator(?:\s+(?:class|family))?|schema|procedure|routine|collation|conversion|constraint|trigger|event\s+trigger|rule|policy|statistics|publication|subscription|server|language|extension|access\s+method|cast|only|if\s+exists|if\s+not\s+exists|concurrently))*\s+("[^"]+"|[\w.]+)/i;

const NAME = String.raw`("[^"]+"|[\w.]+)`;

/**
 * Matches definitions and code blocks, which change the effect of later statements on other
 * objects.
 */
const DEFINES = /^\s*(?:create|alter|do)\b/i;
const SIDE_EFFECTS = [
  String.raw`\btrigger\b[\s\S]*?\bon\s+${NAME}`,
  String.raw`\brule\b[\s\S]*?\bto\s+${NAME}`,
  String.raw`\b(?:insert\s+into|delete\s+from|merge\s+into)\s+${NAME}`,
  String.raw`\bupdate\s+(?:only\s+)?${NAME}\s+(?:as\s+\w+\s+)?set\b`,
  String.raw`\binherits\s*\(\s*${NAME}`,
  String.raw`\binherit\s+${NAME}`,
  String.raw`\bunique\s+index\b[\s\S]*?\bon\s+(?:only\s+)?${NAME}`,
  String.raw`\b(?:attach\s+partition|partition\s+of)\s+${NAME}`,
  String.raw`\b(?:create|into)\s+(?:materialized\s+|temp\w*\s+)?(?:table|view)\s+${NAME}`,
  String.raw`\brename\s+to\s+${NAME}`,
  String.raw`\bset\s+schema\s+${NAME}`,
].map((source) => new RegExp(source, "gi"));

const SETTING = /^\s*set\s+(?!constraints\b)(?:local\s+|session\s+)?([\w.]+)/i;
/** Match the name of a partition, and the name of the table to which it belongs. */
const PART_OF = new RegExp(
  String.raw`^\s*create\s+table\s+(?:if\s+not\s+exists\s+)?${NAME}\s+partition\s+of\s+${NAME}`,
  "i",
);
const ATTACHED = new RegExp(
  String.raw`^\s*alter\s+table\s+(?:only\s+)?${NAME}\s+attach\s+partition\s+${NAME}`,
  "i",
);

/** Matches the name of a savepoint, prepared statement or cursor. */
const SAVEPOINT = /^\s*(?:savepoint|prepare|declare)\s+(\w+)/i;
const CAST = /^\s*create\s+cast\s*\(\s*([\w\s]+?)\s+as\s+([\w\s]+?)\s*\)/i;
const OPERATOR = /^\s*create\s+operator\s+([^\s\w("]+)/i;

/**
 * Matches a statement that creates a new table, view, sequence, type, schema or cursor. It fails if
 * the object exists.
 */
const CREATED =
  /^\s*(?:declare|create\s+(?:global\s+|local\s+)?(temp\w*\s+)?(?:unlogged\s+|recursive\s+|materialized\s+)?(?:table|view|sequence|type|domain|schema))\s+(?!if\s+not\b)("[^"]+"|[\w.]+)/i;
const BEGIN = /^\s*(?:begin|start\s+transaction)\b/i;
const ROLLBACK = /^\s*(?:rollback|abort)\b/i;
const ROUTINE =
  /^\s*(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:function|procedure|routine|aggregate)\b/i;

/** The objects that scripts have left behind on either side. */
export interface LeftObjects {
  /** The names of objects of all kinds, without their schemas. */
  readonly names: ReadonlySet<string>;
  /** The names of the two types of each cast. */
  readonly casts: readonly (readonly [source: string, target: string])[];
  readonly operators: ReadonlySet<string>;
}

export class OmittedObjects {
  /** The names of objects that an omitted statement would have created or changed. */
  readonly #omitted = new Set<string>();
  /** The names of functions among them, each of which may have several overloads. */
  readonly #routines = new Set<string>();
  /** The types between which an omitted statement would have created a cast. */
  #casts: (readonly string[])[] = [];
  /** The operators that an omitted statement would have created. */
  readonly #operators = new Set<string>();
  /** The tables and views that each view reads, and the table of each partition. */
  readonly #views = new Map<string, readonly string[]>();
  /** The words that occur in omitted definitions. */
  readonly #definitionWords = new Set<string>();
  /** The names that are outdated again if the transaction is rolled back. */
  readonly #renewedInTransaction = new Set<string>();
  /** The names that are outdated again when the temporary objects of the script are dropped. */
  readonly #renewedInScript = new Set<string>();

  /**
   * Remembers how a statement changes objects.
   *
   * @param isDone Whether both sides have carried the statement out.
   * @param isAlike Whether both sides gave the same result.
   */
  note(sql: string, { isDone, isAlike }: { isDone: boolean; isAlike: boolean }): void {
    if (BEGIN.test(sql)) this.#renewedInTransaction.clear();
    if (ROLLBACK.test(sql)) {
      for (const name of this.#renewedInTransaction) this.#omitted.add(name);
      this.#renewedInTransaction.clear();
    }
    if (isDone) this.#noteCreated(sql);
    this.#noteView(sql);
    // A statement that depends on an omitted object may have a different effect.
    if (!isAlike || this.isNamedIn(sql)) this.#noteOmitted(sql);
  }

  /** Remembers the setting of a SET statement that only PostgreSQL ran. */
  noteSetting(sql: string): void {
    const name = SETTING.exec(sql)?.[1];
    if (name !== undefined) this.#omitted.add(bare(name));
  }

  /** Remembers that an object is different on the two sides. */
  noteName(name: string): void {
    this.#omitted.add(bare(name));
  }

  /** Forgets, at the end of a script, everything that can no longer exist on only one side. */
  endScript({ casts, names, operators }: LeftObjects): void {
    for (const name of this.#renewedInScript) this.#omitted.add(name);
    this.#renewedInScript.clear();
    this.#renewedInTransaction.clear();
    for (const known of [this.#omitted, this.#routines, this.#definitionWords]) {
      for (const name of known) if (!names.has(name)) known.delete(name);
    }
    for (const name of this.#views.keys()) if (!names.has(name)) this.#views.delete(name);
    for (const name of this.#operators) if (!operators.has(name)) this.#operators.delete(name);
    const left = new Set(casts.map((types) => wordsOf(types.join(" ")).join(" ")));
    this.#casts = this.#casts.filter((types) => left.has(types.join(" ")));
  }

  /** Whether a statement or a message names an object that is missing or outdated. */
  isNamedIn(sql: string): boolean {
    const words = wordsOf(sql);
    if (words.some((word) => this.#isOutdated(word))) return true;
    // A function whose parameters and result have the types of a cast may use it.
    const mayCast = DEFINES.test(sql) && !CAST.test(sql);
    if (mayCast && this.#casts.some((types) => types.every((type) => words.includes(type)))) {
      return true;
    }
    if ([...this.#operators].some((operator) => sql.includes(operator))) return true;
    if (/^\s*(?:alter|drop)\s+index\b/i.test(sql) && this.#isIndexOfOmitted(sql)) return true;
    return /\binformation_schema\./i.test(sql) && this.#isPatternOfOmitted(sql);
  }

  /** Whether an object is missing or outdated, or a view over such an object. */
  #isOutdated(name: string): boolean {
    return (
      this.#omitted.has(name) ||
      this.#tablesOf(name)
        .values()
        .some((each) => this.#omitted.has(each))
    );
  }

  /** Whether an omitted definition may depend on an object that a DROP statement names. */
  mayDependOnDropped(sql: string): boolean {
    return wordsOf(sql)
      .slice(2)
      .some((word) => this.#definitionWords.has(word));
  }

  /** An object that both sides create without an outdated object is no longer outdated. */
  #noteCreated(sql: string): void {
    const [, temporary, created] = CREATED.exec(sql) ?? [];
    const name = created === undefined ? "" : bare(created);
    if (name === "" || this.#routines.has(name)) return;
    if (wordsOf(sql).some((word) => word !== name && this.#omitted.has(word))) return;
    this.#views.delete(name);
    if (!this.#omitted.delete(name)) return;
    if (temporary !== undefined) this.#renewedInScript.add(name);
    this.#renewedInTransaction.add(name);
  }

  /**
   * Remembers which tables a view or a partition reads, because a change to the view or the
   * partition changes these tables.
   */
  #noteView(sql: string): void {
    const [, part, whole] = PART_OF.exec(sql) ?? [];
    if (part !== undefined && whole !== undefined) this.#views.set(bare(part), [bare(whole)]);
    const [, over, attached] = ATTACHED.exec(sql) ?? [];
    if (over !== undefined && attached !== undefined) this.#views.set(bare(attached), [bare(over)]);
    const view = VIEW.exec(sql)?.[1];
    if (view === undefined) return;
    const read = [...sql.matchAll(/\b(?:from|join)\s+("[^"]+"|[\w.]+)/gi)];
    this.#views.set(
      bare(view),
      read.map(([, name = ""]) => bare(name)),
    );
  }

  /**
   * Returns the tables and views below a view, which include the view itself if it is recursive.
   */
  #tablesOf(view: string, found = new Set<string>()): ReadonlySet<string> {
    for (const name of this.#views.get(view) ?? []) {
      if (found.has(name)) continue;
      found.add(name);
      this.#tablesOf(name, found);
    }
    return found;
  }

  #noteOmitted(sql: string): void {
    const made = MADE.exec(sql)?.[1];
    if (made !== undefined) {
      this.#omitted.add(bare(made));
      if (ROUTINE.test(sql)) this.#routines.add(bare(made));
      for (const table of this.#tablesOf(bare(made))) this.#omitted.add(table);
    }
    const savepoint = SAVEPOINT.exec(sql)?.[1];
    if (savepoint !== undefined) this.#omitted.add(bare(savepoint));
    const cast = CAST.exec(sql);
    if (cast !== null) this.#casts.push(wordsOf(`${cast[1] ?? ""} ${cast[2] ?? ""}`));
    const operator = OPERATOR.exec(sql)?.[1];
    if (operator !== undefined) this.#operators.add(operator);
    if (!DEFINES.test(sql) && !CHANGED_WITH.test(sql)) return;
    for (const word of wordsOf(sql)) this.#definitionWords.add(word);
    for (const form of SIDE_EFFECTS) {
      for (const [, name] of sql.matchAll(form)) {
        if (name === undefined) continue;
        this.#omitted.add(bare(name));
        for (const table of this.#tablesOf(bare(name))) this.#omitted.add(table);
      }
    }
  }

  /** Whether a name looks like the name of an index on an omitted table. */
  #isIndexOfOmitted(sql: string): boolean {
    const names = [...this.#omitted];
    return wordsOf(sql).some((word) => names.some((name) => word.startsWith(`${name}_`)));
  }

  /** Whether a catalog query lists objects by a pattern that matches an omitted object. */
  #isPatternOfOmitted(sql: string): boolean {
    const patterns = [...sql.matchAll(/\blike\s+e?'([^']*)'/gi)].map(([, pattern = ""]) => {
      const source = pattern.replaceAll(/\\+_|%|_/g, (sign) => {
        return sign === "%" ? ".*" : sign === "_" ? "." : "_";
      });
      return new RegExp(`^${source}$`);
    });
    return patterns.some((pattern) => [...this.#omitted].some((name) => pattern.test(name)));
  }
}

function wordsOf(sql: string): string[] {
  return (sql.match(/"[^"]+"|[A-Za-z_]\w*/g) ?? []).map((word) => bare(word));
}

function bare(name: string): string {
  return (name.split(".").at(-1) ?? name).replaceAll('"', "").toLowerCase();
}
