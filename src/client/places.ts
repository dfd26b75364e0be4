/**
 * Where a statement has its parameters, as far as its text shows: the server alone knows their
 * types, but takes lists, and numbers for dates, in another way than JavaScript means them.
 */

/** Texts and comments of SQL, in which a parameter is none. */
const QUIET = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g;

/** `$1::` or `CAST($1 AS`. */
const CAST = String.raw`(?:\$(\d+) ?::|\bcast ?\( ?\$(\d+) as\b) ?`;

const TIME_CAST = new RegExp(`${CAST}(timestamptz|timestamp|datetime|date|time)\\b`, "gi");

/** To `int[]`, `varchar(3)[]`, `double precision ARRAY`. */
const ARRAY_CAST = new RegExp(
  String.raw`${CAST}\w+(?: varying| precision)? ?(?:\([\d ,]*\))?(?: with(?:out)? time zone)? ?(?:\[|\barray\b)`,
  "gi",
);

/** Calls that take an array first. */
const ARRAY_TAKER =
  /\b(?:any|all|some|unnest|cardinality|array_\w+) ?\([ (]*(?:cast ?\([ (]*)?\$(\d+)/gi;

const IN_ALONE = /\bin ?\( ?\$(\d+) ?\)/gi;

/** `$1` between commas and brackets, and what tells how deep it stands. */
const ROW_PART = /\bvalues\b|[()]|(?<=[(,] ?)\$(\d+)(?= ?[,)])/gi;

const SET_VALUE = /(?:\bset|,) ?[\w.]* ?= ?\$(\d+) ?(?=,|;|$|\b(?:where|from|returning)\b)/gi;

/** What a statement says about its parameters, as far as its text shows: read when asked for. */
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

  /** Whether it is all that an IN compares with. */
  isAloneInList(number: number): boolean {
    this.#alone ??= new Set(this.#find(IN_ALONE).map(numberOf));
    return this.#alone.has(number);
  }

  /** Whether a statement stores it as it is: as an item of VALUES, or behind SET. */
  isStored(number: number): boolean {
    this.#stored ??= new Set([...this.#items(), ...this.#find(SET_VALUE)].map(numberOf));
    return this.#stored.has(number);
  }

  /** The type of date or time that a parameter is cast to. */
  timeOf(number: number): string | undefined {
    this.#times ??= new Map(
      this.#find(TIME_CAST).map((found) => [numberOf(found), (found[3] ?? "").toUpperCase()]),
    );
    return this.#times.get(number);
  }

  /** Parameters that are items of the rows of VALUES, and no part of one. */
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

/** Of the parameter that was found, in whichever form. */
function numberOf([, first, second]: RegExpMatchArray): number {
  return Number(first ?? second);
}
