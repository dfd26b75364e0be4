/**
 * Completes names and keywords in the editor. Where a table or column is expected, tables or
 * columns come first, found by their own names in any namespace. Elsewhere, keywords come first.
 */
import type { Completion, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import { type NamedTable, type Place, placeAt } from "./completion_place.ts";
import type { ListedTable } from "./listed_table.ts";
import { FUNCTIONS, KEYWORDS, quoted, TYPES } from "./sql_dialect.ts";

/** A completion option, and the names that match it. */
interface Offer {
  readonly option: Completion;
  readonly names: readonly string[];
  /** The rank of the option. Options with a lower rank come first. */
  readonly rank: number;
}

const OPTIONS_MAX = 100;

/** The ranks of options: the expected kind, other possible kinds, and keywords. */
const FIRST = 0;
const SECOND = 1;
const LAST = 2;

const WORDS: readonly { readonly words: string; readonly type: string }[] = [
  { words: KEYWORDS, type: "keyword" },
  { words: TYPES, type: "type" },
  { words: FUNCTIONS, type: "function" },
];

const GRAMMAR: readonly Completion[] = WORDS.flatMap(({ type, words }) =>
  words.split(" ").map((word): Completion => ({ label: word.toUpperCase(), type })),
);

export function completionOf(listed: readonly ListedTable[]): CompletionSource {
  return ({ explicit, pos, state }) =>
    completionAt(state.doc.toString(), pos, { listed, isAsked: explicit });
}

/**
 * Returns the completion options at the cursor.
 * @param isAsked Whether the user requested completion, rather than just typing.
 */
export function completionAt(
  text: string,
  cursor: number,
  { isAsked, listed }: { isAsked: boolean; listed: readonly ListedTable[] },
): CompletionResult | null {
  const place = placeAt(text, cursor);
  if (place === undefined) return null;
  const isDue = isAsked || place.typed !== "" || place.qualifiers.length > 0;
  return isDue ? resultAt(place, listed) : null;
}

function resultAt(place: Place, listed: readonly ListedTable[]): CompletionResult | null {
  const { from, to, typed } = place;
  const options = offersAt(place, listed)
    .map((offer) => ({ offer, fit: fitOf(offer, typed.toLowerCase()) }))
    .filter(({ fit }) => fit < NO_FIT)
    // Options that begin with the typed text come first and, among these, options of the expected
    // kind.
    .toSorted((left, right) => left.fit - right.fit || left.offer.rank - right.offer.rank)
    .slice(0, OPTIONS_MAX)
    .map(({ offer }) => offer.option);
  return options.length === 0 ? null : { from, to, options, filter: false };
}

const NO_FIT = 9;

/**
 * Returns how well the typed text fits an option. Names that contain the text come after names
 * that begin with it.
 */
function fitOf({ names, option, rank }: Offer, typed: string): number {
  const lower = names.map((name) => name.toLowerCase());
  if (lower.some((name) => name.startsWith(typed))) return rank === FIRST ? 0 : 1;
  const isName = option.type === "property" || option.type === "class";
  if (isName && typed.length > 1 && lower.some((name) => name.includes(typed))) return 2;
  return NO_FIT;
}

function offersAt(place: Place, listed: readonly ListedTable[]): Offer[] {
  const { expects, qualifiers } = place;
  if (qualifiers.length > 0) return qualifiedOffers(place, listed);
  const tables = tableOffers(place, listed, expects === "table" ? FIRST : LAST);
  const words = GRAMMAR.map(
    (option): Offer => ({
      option,
      names: [option.label],
      rank: expects === "word" ? FIRST : SECOND,
    }),
  );
  if (expects === "table") return [...tables, ...words];
  const columns = columnOffers(place, listed, expects === "column" ? FIRST : SECOND);
  return [...columns, ...words, ...(place.tables.length === 0 ? [] : tables)];
}

/**
 * Returns what can follow a dot: the columns of a table or alias, or the tables of a namespace.
 */
function qualifiedOffers({ qualifiers, tables }: Place, listed: readonly ListedTable[]): Offer[] {
  const [first = "", second] = qualifiers;
  const named = tables.find(({ alias, path }) =>
    second === undefined
      ? isSame(alias ?? path.at(-1), first)
      : isSame(path[0], first) && isSame(path[1], second),
  );
  const found =
    named === undefined
      ? listed.filter(({ name, namespace }) =>
          second === undefined
            ? isSame(name, first)
            : isSame(namespace, first) && isSame(name, second),
        )
      : listedAs(named, listed);
  const columns = found.flatMap((table) =>
    table.columns.map((column) => columnOffer(column, FIRST)),
  );
  if (second !== undefined) return columns;
  const inNamespace = listed.filter(({ namespace }) => isSame(namespace, first));
  return [
    ...columns,
    ...inNamespace.map(
      ({ columns: { length }, name }): Offer => ({
        option: {
          label: name,
          apply: quotedWord(name),
          type: "class",
          detail: `${length} columns`,
        },
        names: [name],
        rank: columns.length === 0 ? FIRST : SECOND,
      }),
    ),
  ];
}

/** Returns the options for tables, under the names by which the statement must refer to them. */
function tableOffers({ queries }: Place, listed: readonly ListedTable[], rank: number): Offer[] {
  const own = queries.map(
    (name): Offer => ({
      option: { label: name, apply: quotedWord(name), type: "class", detail: "WITH" },
      names: [name],
      rank,
    }),
  );
  const tables = listed.map(({ name, namespace }): Offer => {
    const isDefault = namespace === "default";
    const path = isDefault ? [name] : [namespace, name];
    const isSystem = namespace === "system" || namespace === "information_schema";
    return {
      option: { label: path.join("."), apply: path.map(quotedWord).join("."), type: "class" },
      names: [name, path.join(".")],
      rank: rank + (isSystem ? 0.5 : 0),
    };
  });
  return [...own, ...tables];
}

/**
 * Returns the options for the columns of the tables in scope, or of all tables if the statement
 * does not name any yet.
 */
function columnOffers({ tables }: Place, listed: readonly ListedTable[], rank: number): Offer[] {
  if (tables.length === 0) {
    const names = new Map<string, Offer>();
    for (const table of listed) {
      const isSystem = table.namespace === "system" || table.namespace === "information_schema";
      for (const column of table.columns) {
        const offer = columnOffer(column, isSystem ? LAST : rank);
        if (!names.has(column.name)) names.set(column.name, offer);
      }
    }
    return [...names.values()];
  }
  const named = tables.flatMap((table) =>
    listedAs(table, listed).flatMap(({ columns }) =>
      columns.map((column) => ({ column, table: table.alias ?? table.path.at(-1) ?? "" })),
    ),
  );
  const isAmbiguous = (name: string): boolean =>
    new Set(named.filter(({ column }) => column.name === name).map(({ table }) => table)).size > 1;
  const aliases = tables.flatMap(({ alias }) => alias ?? []);
  return [
    ...named.map(({ column, table }) =>
      columnOffer(column, rank, isAmbiguous(column.name) ? table : undefined),
    ),
    ...aliases.map(
      (alias): Offer => ({
        option: { label: alias, apply: quotedWord(alias), type: "class", detail: "alias" },
        names: [alias],
        rank: rank + 0.5,
      }),
    ),
  ];
}

/**
 * Returns the option for a column.
 * @param table The qualifier to use if several tables have a column with this name.
 */
function columnOffer(
  { name, type }: ListedTable["columns"][number],
  rank: number,
  table?: string,
): Offer {
  const path = table === undefined ? [name] : [table, name];
  return {
    option: {
      label: path.join("."),
      apply: path.map(quotedWord).join("."),
      type: "property",
      detail: type.toLowerCase(),
    },
    names: [name, path.join(".")],
    rank,
  };
}

function listedAs({ path }: NamedTable, listed: readonly ListedTable[]): ListedTable[] {
  const [namespace, name] = path.length > 1 ? path : ["default", path[0]];
  return listed.filter((table) => isSame(table.namespace, namespace) && isSame(table.name, name));
}

function isSame(left: string | undefined, right: string | undefined): boolean {
  return left !== undefined && left.toLowerCase() === right?.toLowerCase();
}

const RESERVED: ReadonlySet<string> = new Set(KEYWORDS.split(" "));

/** Returns a name in a form that the grammar accepts, even if it is a keyword. */
function quotedWord(name: string): string {
  return RESERVED.has(name) ? `"${name}"` : quoted(name);
}
