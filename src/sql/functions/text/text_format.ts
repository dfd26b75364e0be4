/** Implements the function `format('%s %I %L', …)`, and the quoting of identifiers and literals. */
import { DatabaseError } from "../../../base/errors.ts";
import { type DataType, outputText, TEXT, type Value } from "../../../types/mod.ts";
import { checkMadeLength } from "../base/made_length.ts";

/** Returns a plain lower-case name unchanged, and puts any other name in double quotes. */
export function quoteIdentifier(name: string): string {
  const isPlain = /^[a-z_][a-z0-9_$]*$/.test(name) && !isReservedWord(name);
  return isPlain ? name : `"${name.replaceAll('"', '""')}"`;
}

export function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;
  return text.includes("\\") ? `E${quoted}` : quoted;
}

const SPECIFIER = /%(?:(\d+)\$)?(-)?(?:(\d+)|\*(?:(\d+)\$)?)?([\s\S]?)/g;

/**
 * The maximum number of specifiers in a template, including `%%`. Each specifier takes about a
 * microsecond.
 */
const SPECIFIERS_MAX = 32_768;

/**
 * Implements `format`, which replaces the specifiers of a template with the remaining arguments.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_TOO_LONG
 */
export function formatText(values: readonly Value[], types: readonly DataType[]): Value {
  const [template = null] = values;
  if (template === null) return null;
  const args = new Arguments(values, types);
  let length = (template as string).length;
  let count = 0;
  return (template as string).replaceAll(SPECIFIER, (...groups: (string | undefined)[]) => {
    const [whole = "", place, minus, width, widthPlace, letter = ""] = groups;
    count += 1;
    if (count > SPECIFIERS_MAX) throw tooManySpecifiers();
    if (letter === "%" && whole === "%%") return "%";
    const isStar = width === undefined && whole.includes("*");
    const size = isStar ? args.width(widthPlace) : Number(width ?? "0");
    const text = args.text(place, letter);
    length += Math.max(Math.abs(size), text.length);
    checkMadeLength(length);
    const isLeft = minus !== undefined || size < 0;
    return isLeft ? text.padEnd(Math.abs(size)) : text.padStart(size);
  });
}

function tooManySpecifiers(): DatabaseError {
  return new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot format with this template: it has more than ${SPECIFIERS_MAX} format specifiers`,
    { hint: "format parts of the text separately, and concatenate them with ||" },
  );
}

class Arguments {
  readonly #values: readonly Value[];
  readonly #types: readonly DataType[];
  #next = 1;

  constructor(values: readonly Value[], types: readonly DataType[]) {
    this.#values = values;
    this.#types = types;
  }

  width(place: string | undefined): number {
    const at = this.#position(place);
    const value = this.#values[at] ?? null;
    return value === null ? 0 : Number(outputText(this.#types[at] ?? TEXT, value));
  }

  text(place: string | undefined, letter: string): string {
    if (letter !== "s" && letter !== "I" && letter !== "L") {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot format with "%${letter}": the format specifiers are %s, %I, %L and %%`,
      );
    }
    const at = this.#position(place);
    const value = this.#values[at] ?? null;
    if (value === null) {
      if (letter === "L") return "NULL";
      if (letter === "s") return "";
      throw new DatabaseError("INVALID_VALUE", "Cannot format NULL as an identifier with %I");
    }
    const text = outputText(this.#types[at] ?? TEXT, value);
    if (letter === "s") return text;
    return letter === "I" ? quoteIdentifier(text) : quoteLiteral(text);
  }

  #position(place: string | undefined): number {
    const at = place === undefined ? this.#next : Number(place);
    if (at >= 1 && at < this.#values.length) {
      this.#next = at + 1;
      return at;
    }
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot format with this template: it uses argument ${at}, which was not passed`,
    );
  }
}

/** Words that must be quoted when used as names, so that generated SQL can be parsed again. */
const RESERVED_WORDS: ReadonlySet<string> = new Set(
  (
    "all analyse analyze and any array as asc asymmetric authorization between binary both case cast check " +
    "collate collation column concurrently constraint create cross current_catalog current_date " +
    "current_role current_schema current_time current_timestamp current_user default deferrable " +
    "desc distinct do else end except exists extract false fetch for foreign freeze from full " +
    "grant group having ilike in initially inner intersect into is isnull join lateral leading " +
    "left like limit localtime localtimestamp natural not notnull null offset on only or order " +
    "outer overlaps overlay placing position primary references returning right row select " +
    "session_user similar some substring symmetric system_user table tablesample then to trailing " +
    "trim true union unique user using values variadic verbose when where window with " +
    "coalesce nullif greatest least interval time timestamp setof"
  ).split(" "),
);

/** Whether a lower-case word must be quoted when used as a name. */
function isReservedWord(word: string): boolean {
  return RESERVED_WORDS.has(word);
}
