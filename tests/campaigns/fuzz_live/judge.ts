/**
 * Compares the states of followers with the SELECT at the same seq, run with the same rights.
 *
 * If no statement can read earlier states, only the newest state is compared. Rows are compared as
 * the texts of their cells. The result of a query that reads the time must match the SELECT at
 * some moment since the followers last caught up. Its rows change only at whole seconds.
 */
import type { SubscriptionAck, WireRow } from "../../../src/protocol/mod.ts";
import type { NextState } from "./follower.ts";
import { type Asked, haveSameRows, type Selected, SelectedRows, type Selects } from "./selects.ts";
import { readsClock } from "./tables.ts";

/** A complete state of a follower. */
export interface Judged {
  readonly ack: SubscriptionAck;
  readonly state: NextState;
  /** Whether the follower has a separate state for each commit. */
  readonly isByCommit: boolean;
  /** Whether nothing has been committed since the state. */
  readonly isNewest: boolean;
}

/** The rows of a state as text, with only the columns that the SELECT returns. */
interface Followed {
  readonly followed: readonly string[];
  readonly names: readonly string[];
}

/** The facts about a round that a judge needs. */
export interface JudgedRound {
  /**
   * Returns the seq of the last commit at or below `seq` that changed a table of a query; `seq`
   * itself if not all commits are known.
   */
  readonly lastChange: (asked: Asked, seq: number) => number;
  /** The period in which the states arrived, in milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** Whether a definition or a right has changed. */
  readonly isRedefined: boolean;
  /** Whether a follower of the same result has had a row with the same key and seq. */
  readonly hasRow: (asked: Asked, row: WireRow) => boolean;
}

export class Judge {
  readonly #selects: Selects;
  readonly #round: () => JudgedRound;

  constructor(selects: Selects, round: () => JudgedRound) {
    this.#selects = selects;
    this.#round = round;
  }

  /** Whether a SELECT can return the rows of a state. */
  canCompare(asked: Asked, { isNewest }: Pick<Judged, "isNewest">): boolean {
    return this.#selects.hasPast(asked) || (isNewest && !readsClock(asked.sql));
  }

  /**
   * Returns the difference between a state and the rows of the SELECT; undefined if there is none.
   */
  async differenceOf(asked: Asked, judged: Judged): Promise<string | undefined> {
    for (const row of judged.state.rows) {
      const { seq } = judged.state;
      if (Number(row["_seq"]) > seq) return `a row at ${seq} is of a later commit`;
    }
    if (!this.canCompare(asked, judged)) return undefined;
    if (readsClock(asked.sql)) return await this.#differenceAtAnyTime(asked, judged);
    return await this.#differenceFrom(await this.#rowsFor(asked, judged), asked, judged);
  }

  /**
   * Whether the rows of a query that reads the time equal the rows that the SELECT returns now.
   */
  async isUpToDate(asked: Asked, judged: Judged): Promise<boolean> {
    const selected = await this.#selects.select(asked, { seq: undefined, timeMs: Date.now() });
    return (await this.#differenceFrom(selected, asked, judged)) === undefined;
  }

  /** Compares a state with the SELECT at each moment at which its result may have changed. */
  async #differenceAtAnyTime(asked: Asked, judged: Judged): Promise<string | undefined> {
    let difference: string | undefined;
    for (const timeMs of momentsOf(this.#round())) {
      const selected = await this.#selectAt(asked, judged.state.seq, timeMs);
      difference = await this.#differenceFrom(selected, asked, judged);
      if (difference === undefined) return undefined;
    }
    return difference;
  }

  async #differenceFrom(
    selected: Selected,
    asked: Asked,
    judged: Judged,
  ): Promise<string | undefined> {
    const { ack, state } = judged;
    if (!(selected instanceof SelectedRows)) {
      const { code, message } = selected.error;
      return `the SELECT at ${state.seq} fails with ${code}: ${message}`;
    }
    const { width } = selected;
    const names = ack.schema.slice(0, width).map(({ name }) => name);
    if (width === undefined && state.rows.length === 0) return undefined;
    const followed = state.rows.map((row) => textOf(row, names));
    return (
      differenceOf(selected, followed, state.seq) ??
      (await this.#wrongSeq(asked, { ...judged, followed, names }))
    );
  }

  /**
   * Checks the seqs of the rows that have changed since the previous state. Each seq must be later
   * than that state, and the commit with that seq must have produced the row. If something other
   * than a commit may have changed a row, its seq may also be the seq of the previous state.
   */
  async #wrongSeq(
    asked: Asked,
    { ack, followed, isByCommit, names, state }: Judged & Followed,
  ): Promise<string | undefined> {
    const { before, isResumed, rows } = state;
    if (before === undefined) return await this.#wrongFirstSeq(asked, { followed, state });
    // The passage of time and a changed definition may change rows without a commit.
    const mayStay = this.#round().isRedefined || readsClock(asked.sql);
    const identity = identityOf(ack, names);
    const old = new Map(before.rows.map((row) => [row["_key"], row]));
    for (const [index, row] of rows.entries()) {
      const oldRow = old.get(row["_key"]);
      if (oldRow === row) continue;
      const seq = Number(row["_seq"]);
      const text = followed[index] ?? "";
      if (seq < before.seq || (seq === before.seq && !mayStay)) {
        return `at ${state.seq}, a row that changed after ${before.seq} has the seq ${seq}: ${text}`;
      }
      if (!isByCommit || isResumed || identity === "hidden") continue;
      // A column that only ORDER BY names may have changed, but the SELECT does not return it.
      if (oldRow !== undefined && textOf(oldRow, names) === text) continue;
      if (await this.#hasMade(asked, { identity, seq, text })) continue;
      return `at ${state.seq}, a row has the seq ${seq}, but changed before: ${text}`;
    }
    return undefined;
  }

  /**
   * Checks the seqs of first rows. Each is the seq of the newest table row in the row or group,
   * unless the server already followed the result. Then the row keeps its seq until one of its
   * values changes: that of a row of another follower, of the newest table row in an earlier state,
   * or of the commit that made the row, which may have been a removal.
   */
  async #wrongFirstSeq(
    asked: Asked,
    { followed, state }: Pick<Followed, "followed"> & Pick<Judged, "state">,
  ): Promise<string | undefined> {
    const { hasRow, isRedefined } = this.#round();
    const { seqSql } = asked;
    if (seqSql === undefined || isRedefined || !haveSameRows(asked)) return undefined;
    const newestAt = async (seq: number): Promise<Selected> => {
      return await this.#selectAt({ ...asked, sql: seqSql }, seq);
    };
    const selected = await newestAt(state.seq);
    if (!(selected instanceof SelectedRows)) return undefined;
    for (const [index, row] of state.rows.entries()) {
      const seq = Number(row["_seq"]);
      const text = followed[index] ?? "";
      const withSeq = `${text.slice(0, -1)},${seq}]`;
      const isWithoutRows = selected.countOf(`${text.slice(0, -1)},null]`) > 0;
      if (isWithoutRows || selected.countOf(withSeq) > 0 || hasRow(asked, row)) continue;
      const earlier = await newestAt(seq);
      if (earlier instanceof SelectedRows && earlier.countOf(withSeq) > 0) continue;
      if (await this.#hasMade(asked, { identity: "values", seq, text })) continue;
      return `at ${state.seq}, a first row has the seq ${seq}, which is not that of its newest table row: ${text}`;
    }
    return undefined;
  }

  /**
   * Whether a commit may have produced a row. If so, the SELECT as of the moment before the commit
   * returns fewer such rows.
   */
  async #hasMade(
    asked: Asked,
    { identity, seq, text }: { identity: "key" | "values"; seq: number; text: string },
  ): Promise<boolean> {
    if (!this.#selects.hasPast(asked)) return true;
    const earlier = await this.#selectAt(asked, seq - 1);
    if (!(earlier instanceof SelectedRows)) return true;
    if (identity === "key") return earlier.countOf(text) === 0;
    const later = await this.#selectAt(asked, seq);
    return !(later instanceof SelectedRows) || later.countOf(text) > earlier.countOf(text);
  }

  /** Returns the rows with which a state is compared, from the SELECT. */
  async #rowsFor(asked: Asked, { state }: Judged): Promise<Selected> {
    if (this.#selects.hasPast(asked)) return await this.#selectAt(asked, state.seq);
    return await this.#selects.select(asked, { seq: undefined });
  }

  async #selectAt(asked: Asked, seq: number, timeMs?: number): Promise<Selected> {
    return await this.#selects.select(asked, { seq: this.#round().lastChange(asked, seq), timeMs });
  }
}

/**
 * Returns the moments at which the result of a query may have changed. A comparison with a whole
 * second changes when the clock reaches or passes that second.
 */
function momentsOf({ endMs, startMs }: JudgedRound): number[] {
  const moments = [startMs, endMs];
  for (let ms = Math.ceil(startMs / 1000) * 1000; ms < endMs; ms += 1000) moments.push(ms, ms + 1);
  return moments;
}

/**
 * Returns the columns that distinguish rows: the key columns, or all columns. Columns that the
 * SELECT lacks are hidden: a commit may then remove a row and add one with the same text, so the
 * SELECT does not show which commit produced a row.
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

/** The text of each row. States share the text as long as the row stays the same. */
const TEXTS = new WeakMap<WireRow, { readonly width: number; readonly text: string }>();

function textOf(row: WireRow, names: readonly string[]): string {
  const width = names.length;
  const known = TEXTS.get(row);
  if (known?.width === width) return known.text;
  // MessagePack represents integers beyond 2^53 as bigints, whereas JSON represents them as
  // strings.
  const cells = names.map((name) => row[name] ?? null);
  const text = JSON.stringify(cells, (_, cell: unknown) =>
    typeof cell === "bigint" ? String(cell) : cell,
  );
  TEXTS.set(row, { width, text });
  return text;
}

function differenceOf(
  selected: SelectedRows,
  followed: readonly string[],
  seq: number,
): string | undefined {
  const left = new Map<string, number>();
  const extra: string[] = [];
  for (const text of followed) {
    const count = left.get(text) ?? selected.countOf(text);
    if (count === 0) extra.push(text);
    else left.set(text, count - 1);
  }
  if (extra.length === 0 && selected.rowCount === followed.length) return undefined;
  const missing = [...selected.counts].flatMap(([text, count]) =>
    Array.from({ length: left.get(text) ?? count }, () => text),
  );
  return `at ${seq}, the SELECT has ${selected.rowCount} rows and the follower ${followed.length}; only the SELECT has ${missing.slice(0, 3).join(" ")}; only the follower has ${extra.slice(0, 3).join(" ")}`;
}
