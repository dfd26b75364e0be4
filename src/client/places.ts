/**
 * Finds how a statement uses its parameters, as far as its text shows. Only the server knows their
 * types, but it reads lists, and numbers given for dates, differently from JavaScript.
 */

/** Strings, quoted names and comments of SQL; `$1` within them is not a parameter. */
const QUIET = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g;

/** `$1::` or `CAST($1 AS`. */
const CAST = String.raw`(?:\$(\d+) ?::|\bcast ?\( ?\$(\d+) as\b) ?`;

const TIME_CAST = new RegExp(`${CAST}(timestamptz|timestamp|datetime|date|time)\\b`, "gi");

/** Casts to `int[]`, `varchar(3)[]` or `double precision ARRAY`. */
const ARRAY_CAST = new RegExp(
  String.raw`${CAST}\w+(?: varying| precision)? ?(?:\([\d ,]*\))?(?: with(?:out)? time zone)? ?(?:\[|\barray\b)`,
  "gi",
);

/** Calls whose first argument is an array. */
const ARRAY_TAKER =
  /\b(?:any|all|some|unnest|cardinality|array_\w+) ?\([ (]*(?:cast ?\([ (]*)?\$(\d+)/gi;

const IN_ALONE = /\bin ?\( ?\$(\d+) ?\)/gi;

/** `$1` between commas and brackets, and the tokens that determine its nesting depth. */
const ROW_PART = /\bvalues\b|[()]|(?<=[(,] ?)\$(\d+)(?= ?[,)])/gi;

const SET_VALUE = /(?:\bset|,) ?[\w.]* ?= ?\$(\d+) ?(?=,|;|$|\b(?:where|from|returning)\b)/gi;

/** Answers questions about the parameters of one statement; reads its text on demand. */
export class Places {
  readonly #sql: string;
  #read: string | undefined;
  #arrays: ReadonlySet<number> | undefined;
  #alone: ReadonlySet<number> | undefined;
  #stored: ReadonlySet<number> | undefined;
  #times: ReadonlyMap<number, string> | undefined;

  constructor(sql: string) {
    this.#sql = sql;
  }

  takesArray(number: number): boolean {
    this.#arrays ??= new Set([...this.#find(ARRAY_TAKER), ...this.#find(ARRAY_CAST)].map(numberOf));
    return this.#arrays.has(number);
  }

  /** Whether the parameter is the only item of an IN list. */
  isAloneInList(number: number): boolean {
    this.#alone ??= new Set(this.#find(IN_ALONE).map(numberOf));
    return this.#alone.has(number);
  }

  /** Whether the parameter is stored directly: as an item of VALUES, or as the value of a SET. */
  isStored(number: number): boolean {
    this.#stored ??= new Set([...this.#items(), ...this.#find(SET_VALUE)].map(numberOf));
    return this.#stored.has(number);
  }

  /** The date or time type to which a parameter is cast. */
  timeOf(number: number): string | undefined {
    this.#times ??= new Map(
      this.#find(TIME_CAST).map((found) => [numberOf(found), (found[3] ?? "").toUpperCase()]),
    );
    return this.#times.get(number);
  }

  /** Parameters that are whole items of VALUES rows. */
  #items(): RegExpMatchArray[] {
    const found: RegExpMatchArray[] = [];
    let depth = 0;
    for (const part of this.#find(ROW_PART)) {
      if (part[0] === ")") depth -= 1;
      else if (part[0].toLowerCase() === "values") depth = 0;
      else if (part[0] === "(") depth += 1;
      else if (depth === 1) found.push(part);
    }
    return found;
  }

  #find(pattern: RegExp): RegExpMatchArray[] {
    this.#read ??= this.#sql.replaceAll(QUIET, " ").replaceAll(/\s+/g, " ");
    return [...this.#read.matchAll(pattern)];
  }
}

/** The number of a parameter that a pattern found. */
function numberOf([, first, second]: RegExpMatchArray): number {
  return Number(first ?? second);
}
