/**
 * Analyses the position of the cursor in a statement: the tables in scope, and the kinds of words
 * that can follow. It looks only at words, because an unfinished statement does not parse.
 */
import { isInComment, type Token, tokensOf } from "./sql_tokens.ts";

/** A table named in the statement being edited. */
export interface NamedTable {
  /** The namespace and name of the table, or only its name. */
  readonly path: readonly string[];
  readonly alias: string | undefined;
}

export interface Place {
  /** The offset where the word being typed begins. */
  readonly from: number;
  readonly to: number;
  /** The part of the word that has been typed so far, without quotes. */
  readonly typed: string;
  /** The names before the word, each followed by a dot: `air.flights.` has two. */
  readonly qualifiers: readonly string[];
  /** The most likely kind of word at this position. Other kinds are possible, too. */
  readonly expects: "table" | "column" | "word";
  /** The tables in scope at the cursor, innermost first. */
  readonly tables: readonly NamedTable[];
  /** The names that the statement gives to its own queries in WITH. */
  readonly queries: readonly string[];
}

/** Words that precede a table name. */
const BEFORE_TABLE: ReadonlySet<string> = new Set(["from", "join", "into", "update", "describe"]);

/** Words that precede values, usually columns. */
const BEFORE_COLUMN: ReadonlySet<string> = new Set(
  "select distinct all where and or not on having by set returning when then else case between in like ilike is using".split(
    " ",
  ),
);

/** Words that cannot be the alias of a preceding table. */
const NO_ALIAS: ReadonlySet<string> = new Set(
  "as where on using join inner left right full cross natural group order having limit offset union intersect except fetch for set values select returning window with when default from".split(
    " ",
  ),
);

const AS: ReadonlySet<string> = new Set(["as"]);

function isEnd({ kind, text }: Token): boolean {
  return kind === "sign" && text === ";";
}

/** Returns the tokens of the statement around an offset. */
function statementAround(tokens: readonly Token[], cursor: number): Token[] {
  const start = tokens.findLastIndex((token) => isEnd(token) && token.to <= cursor) + 1;
  const end = tokens.findIndex((token, index) => index >= start && isEnd(token));
  return tokens.slice(start, end === -1 ? undefined : end);
}

/**
 * Determines what can be completed at the cursor.
 * @returns undefined inside a string, a number or a comment, where nothing is completed.
 */
export function placeAt(text: string, cursor: number): Place | undefined {
  const tokens = statementAround(tokensOf(text), cursor);
  const isInside = ({ from, kind, to }: Token): boolean =>
    kind === "value" && from < cursor && cursor <= to;
  if (tokens.some(isInside) || isInComment(text, cursor)) return undefined;
  const word = tokens.find(({ from, to }) => from < cursor && cursor <= to);
  const isTyped = word?.kind === "name" || word?.kind === "quoted";
  const from = isTyped ? word.from : cursor;
  const to = word?.kind === "quoted" ? closedAt(text, { cursor, from }) : cursor;
  const before = tokens.filter((token) => token.to <= from);
  const qualifiers = takeQualifiers(before);
  const { queries, tables } = tablesIn(tokens, { cursor, typedFrom: isTyped ? from : -1 });
  return {
    from,
    to,
    typed: text.slice(from, cursor).replace(/^"/, "").replaceAll('""', '"'),
    qualifiers,
    expects: expectedBehind(before),
    tables,
    queries,
  };
}

/**
 * Returns the end of the word being typed. The editor inserts the closing quote of a name at once,
 * so that quote is part of the word.
 */
function closedAt(text: string, { cursor, from }: { cursor: number; from: number }): number {
  return cursor > from && text[cursor] === '"' ? cursor + 1 : cursor;
}

/** Removes qualifying names, with their dots, from the end of `before`, and returns the names. */
function takeQualifiers(before: Token[]): string[] {
  const qualifiers: string[] = [];
  while (before.at(-1)?.text === "." && isName(before.at(-2))) {
    before.pop();
    qualifiers.unshift(before.pop()?.text ?? "");
  }
  return qualifiers;
}

function isName(token: Token | undefined): token is Token {
  return token?.kind === "name" || token?.kind === "quoted";
}

function isWord(token: Token | undefined, words: ReadonlySet<string>): boolean {
  return token?.kind === "name" && words.has(token.text.toLowerCase());
}

function expectedBehind(before: readonly Token[]): Place["expects"] {
  const last = before.at(-1);
  if (last === undefined) return "word";
  if (isWord(last, BEFORE_TABLE)) return "table";
  if (isWord(last, new Set(["table", "view"]))) {
    return isWord(before[0], new Set(["create"])) ? "word" : "table";
  }
  if (last.kind === "sign") {
    if (last.text === "," && isInFromList(before)) return "table";
    return last.text === ")" ? "word" : "column";
  }
  return isWord(last, BEFORE_COLUMN) ? "column" : "word";
}

/** Whether the comma at the end of `before` separates tables rather than values. */
function isInFromList(before: readonly Token[]): boolean {
  let depth = 0;
  for (const token of before.toReversed()) {
    if (token.text === ")") depth += 1;
    else if (token.text === "(") depth -= 1;
    if (depth < 0) return false;
    if (depth > 0 || token.kind !== "name") continue;
    if (token.text.toLowerCase() === "from") return true;
    if (isWord(token, BEFORE_COLUMN) || isWord(token, new Set(["values", "into"]))) return false;
  }
  return false;
}

/** Returns the tables in the scopes around the cursor, and the names defined in WITH. */
function tablesIn(
  tokens: readonly Token[],
  { cursor, typedFrom }: { cursor: number; typedFrom: number },
): Pick<Place, "queries" | "tables"> {
  const found: { readonly table: NamedTable; readonly level: number }[] = [];
  const queries: string[] = [];
  const levels = levelsIn(tokens);
  for (const [at, token] of tokens.entries()) {
    if (isQueryName(tokens, at)) queries.push(token.text);
    const isList = token.text === "," && isInFromList(tokens.slice(0, at + 1));
    if (!isList && !isWord(token, BEFORE_TABLE)) continue;
    const table = tableFrom(tokens, at + 1);
    // A name that is still being typed is not a table yet.
    if (table === undefined || tokens[at + 1]?.from === typedFrom) continue;
    found.push({ table, level: levels[at]?.at(-1) ?? 0 });
  }
  const next = tokens.findIndex(({ from }) => from >= cursor);
  const around = levels.at(next === -1 ? tokens.length : next) ?? [];
  const tables = found
    .filter(({ level }) => around.includes(level))
    .toSorted((left, right) => right.level - left.level)
    .map(({ table }) => table);
  return { tables, queries };
}

/**
 * Returns the parentheses that are open before each token and at the end. Each pair of parentheses
 * has a unique number.
 */
function levelsIn(tokens: readonly Token[]): (readonly number[])[] {
  const open = [0];
  return [
    [...open],
    ...tokens.map(({ kind, text }, at) => {
      if (kind === "sign" && text === "(") open.push(at + 1);
      else if (kind === "sign" && text === ")" && open.length > 1) open.pop();
      return [...open];
    }),
  ];
}

function isQueryName(tokens: readonly Token[], at: number): boolean {
  const [name, as, opening] = tokens.slice(at, at + 3);
  return isName(name) && isWord(as, AS) && opening?.text === "(";
}

function tableFrom(tokens: readonly Token[], start: number): NamedTable | undefined {
  let at = start;
  const path: string[] = [];
  for (; isName(tokens[at]); at += 2) {
    path.push(tokens[at]?.text ?? "");
    if (tokens[at + 1]?.text !== ".") break;
  }
  if (path.length === 0) return undefined;
  if (isWord(tokens[at + 1], AS)) at += 1;
  const alias = tokens[at + 1];
  const hasAlias = isName(alias) && !isWord(alias, NO_ALIAS);
  return { path, alias: hasAlias ? alias.text : undefined };
}
