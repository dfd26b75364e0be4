/**
 * Compares the states of followers with the SELECT at the same seq, run by the same user.
 *
 * The SELECT names the seq for each table, so it is an ordinary statement that shares no plan with
 * a live query. Only the administrator may read earlier states, so the administrator asks on behalf
 * of other users as long as all users have the same rows. Otherwise, only the newest state is
 * compared. Rows are compared as sorted texts of cells.
 */
import type { SubscriptionAck, WireRow } from "../../../src/protocol/mod.ts";
import type { ServerProcess, SqlError } from "../../support/server_process.ts";
import type { NextState } from "./follower.ts";
import { queryAsOf, type Schema } from "./tables.ts";

/** The server that runs the SELECT statements. */
export type JudgedServer = Pick<ServerProcess, "sql" | "token">;

/** A query of one user, with its parameters. */
export interface Asked {
  readonly token: string;
  readonly sql: string;
  readonly params: readonly unknown[];
  /** The method that the subscription asks for; undefined to let the server choose. */
  readonly way: "evaluated" | undefined;
}

/** A complete state of a follower. */
export interface Judged {
  readonly ack: SubscriptionAck;
  readonly state: NextState;
  /** Whether each state is the result after a single commit. */
  readonly isByCommit: boolean;
  /** Whether nothing has been committed since. */
  readonly isNewest: boolean;
}

/** The rows of a state as texts, with only the columns that the SELECT returns. */
interface Followed {
  readonly followed: readonly string[];
  readonly names: readonly string[];
}

/** The rows of a SELECT as texts, or the reason why it has none. */
export type Selected =
  | { readonly rows: readonly string[]; readonly error?: undefined }
  | { readonly error: SqlError };

export class Judge {
  readonly #server: JudgedServer;
  readonly #schema: () => Schema;
  #selected = new Map<string, Promise<Selected>>();
  #count = 0;

  constructor(server: JudgedServer, schema: () => Schema) {
    this.#server = server;
    this.#schema = schema;
  }

  /** The number of SELECT statements so far. */
  get count(): number {
    return this.#count;
  }

  /** Forgets the rows of earlier seqs. */
  forget(): void {
    this.#selected = new Map();
  }

  /**
   * Runs a query as of a seq or, without one, on the current state. Followers with the same query
   * share its rows.
   */
  async select(asked: Asked, seq?: number): Promise<Selected> {
    const { params, sql, token } = asked;
    const key = JSON.stringify([token, sql, params, seq]);
    const known = this.#selected.get(key);
    if (known !== undefined) return await known;
    const selecting = this.#select(asked, seq);
    this.#selected.set(key, selecting);
    return await selecting;
  }

  async #select({ params, sql, token }: Asked, seq: number | undefined): Promise<Selected> {
    this.#count += 1;
    const text = seq === undefined ? sql : queryAsOf(sql, this.#schema(), seq);
    const { body } = await this.#server.sql(text, { params, namespace: "fuzz", token });
    const [result] = body.results;
    if (body.error !== undefined) return { error: body.error };
    return { rows: (result?.rows ?? []).map((cells) => JSON.stringify(cells)) };
  }

  /** Returns the difference between a state and the rows of the SELECT. */
  async differenceOf(asked: Asked, judged: Judged): Promise<string | undefined> {
    const { ack, state } = judged;
    const selected = await this.#rowsFor(asked, judged);
    if (selected === undefined) return undefined;
    if (selected.error !== undefined) {
      return `the SELECT at ${state.seq} fails with ${selected.error.code}: ${selected.error.message}`;
    }
    for (const row of state.rows) {
      if (Number(row["_seq"]) > state.seq) return `a row at ${state.seq} is of a later commit`;
    }
    const width = selected.rows.length === 0 ? undefined : widthOf(selected.rows);
    const names = ack.schema.slice(0, width).map(({ name }) => name);
    const followed = state.rows.map((row) => textOf(row, names));
    if (width === undefined && followed.length === 0) return undefined;
    return (
      differenceOf(selected.rows, followed, state.seq) ??
      (await this.#wrongSeq(asked, { ...judged, followed, names }))
    );
  }

  /**
   * Checks the seqs of the rows that have changed since the previous state: each seq is later than
   * that state, and the commit with that seq produced the row.
   */
  async #wrongSeq(
    asked: Asked,
    { ack, followed, isByCommit, names, state }: Judged & Followed,
  ): Promise<string | undefined> {
    const { before, isResumed, rows } = state;
    // A row that enters a window of LIMIT has the seq of its own last change.
    if (before === undefined || /\b(?:LIMIT|OFFSET|FETCH)\b/.test(asked.sql)) return undefined;
    const identity = identityOf(ack, names);
    const old = new Set(before.rows);
    for (const [index, row] of rows.entries()) {
      if (old.has(row)) continue;
      const seq = Number(row["_seq"]);
      const text = followed[index] ?? "";
      if (seq <= before.seq) {
        return `at ${state.seq}, a row that changed after ${before.seq} has the seq ${seq}: ${text}`;
      }
      if (!isByCommit || isResumed || identity === "hidden") continue;
      if (await this.#hasMade(asked, { identity, seq, text })) continue;
      return `at ${state.seq}, a row has the seq ${seq}, but changed before: ${text}`;
    }
    return undefined;
  }

  /**
   * Whether a commit can have produced a row: the SELECT right before the commit returns fewer such
   * rows.
   */
  async #hasMade(
    asked: Asked,
    { identity, seq, text }: { identity: "key" | "values"; seq: number; text: string },
  ): Promise<boolean> {
    const { token } = this.#server;
    if (asked.token !== token && !haveSameRows(asked)) return true;
    const earlier = await this.select({ ...asked, token }, seq - 1);
    if (earlier.error !== undefined) return true;
    if (identity === "key") return !earlier.rows.includes(text);
    const later = await this.select({ ...asked, token }, seq);
    return later.error !== undefined || countOf(text, later.rows) > countOf(text, earlier.rows);
  }

  /** Returns undefined if no user can query the rows of a state. */
  async #rowsFor(asked: Asked, { isNewest, state }: Judged): Promise<Selected | undefined> {
    const { token } = this.#server;
    if (asked.token === token || haveSameRows(asked))
      return await this.select({ ...asked, token }, state.seq);
    return isNewest ? await this.select(asked) : undefined;
  }
}

/** Whether all users have the same rows of a query. */
export function haveSameRows({ sql }: Pick<Asked, "sql">): boolean {
  return !/\b(?:own\d|CURRENT_USER)\b/.test(sql);
}

/**
 * Returns the columns that distinguish rows: the key columns, or all columns. If the SELECT lacks
 * some of them, one commit may remove a row and add one with the same text, so the SELECT does not
 * show which commit produced a row.
 */
function identityOf(
  { key_columns: keys = [], schema }: SubscriptionAck,
  names: readonly string[],
): "hidden" | "key" | "values" {
  const values = schema.map(({ name }) => name).filter((name) => !/^_(?:key|seq)$/.test(name));
  const identifying = keys.length === 0 ? values : keys;
  if (!identifying.every((name) => names.includes(name))) return "hidden";
  return keys.length === 0 ? "values" : "key";
}

function countOf(text: string, texts: readonly string[]): number {
  return texts.filter((each) => each === text).length;
}

function widthOf(rows: readonly string[]): number {
  return (JSON.parse(rows[0] ?? "[]") as unknown[]).length;
}

/** MessagePack represents integers beyond 2^53 as bigints; all other formats use strings. */
function textOf(row: WireRow, names: readonly string[]): string {
  const cells = names.map((name) => row[name] ?? null);
  return JSON.stringify(cells, (_, cell: unknown) =>
    typeof cell === "bigint" ? String(cell) : cell,
  );
}

function differenceOf(
  selected: readonly string[],
  followed: readonly string[],
  seq: number,
): string | undefined {
  const [wanted, had] = [selected.toSorted(), followed.toSorted()];
  if (wanted.length === had.length && wanted.every((text, index) => text === had[index])) {
    return undefined;
  }
  const missing = without(wanted, had);
  const extra = without(had, wanted);
  return `at ${seq}, the SELECT has ${wanted.length} rows and the follower ${had.length}; only the SELECT has ${missing.slice(0, 3).join(" ")}; only the follower has ${extra.slice(0, 3).join(" ")}`;
}

function without(texts: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return texts.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}
