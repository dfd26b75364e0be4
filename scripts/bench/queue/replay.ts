/**
 * Resumes a live query on the queue from positions in its history, and checks the changes by the
 * arithmetic of `rounds.ts` alone: each version arrives once, in order, with the values before and
 * after, and with the seqs reported to the writers. It shares no code with the server.
 */
import { isOneOf } from "../../support/arguments.ts";
import {
  concerns,
  type QueueRow,
  type QueueShape,
  type QueueStatement,
  rowAfter,
  STATEMENTS_PER_ROUND,
  type StatementKind,
  statementsOf,
  versionsOf,
} from "./rounds.ts";

const REPLAY_MS_MAX = 60_000;

const NEXT = '{"type":"next_batch","subscription_id":"r"}';

/**
 * The faults that the check must detect: a change that is lost, that arrives twice, or that has a
 * different new or old value.
 */
export const REPLAY_FAULTS = ["lost", "doubled", "altered", "old"] as const;

export type ReplayFault = (typeof REPLAY_FAULTS)[number];

export function isReplayFault(word: string): word is ReplayFault {
  return isOneOf(REPLAY_FAULTS, word);
}

type Cells = Readonly<Record<string, unknown>>;

/**
 * A row version as the client received it. A version that the resume loads as part of the initial
 * rows has the kind "row" and no previous values.
 */
interface Change {
  readonly kind: "row" | "update" | "delete";
  /** The new values of the row, or the last values of a deleted row. */
  readonly row: Cells;
  readonly old: Cells | undefined;
  readonly commitSeq: number | undefined;
}

/** A partition of the queue, and how to follow it. */
export interface Followed {
  readonly webSocketUrl: string;
  readonly token: string;
  readonly table: string;
  readonly shape: QueueShape;
  /** The last seq of each statement since round 1, in order. */
  readonly lastSeqs: readonly number[];
}

/**
 * Replays some rounds that follow a statement, and then resumes once more from within those
 * rounds.
 *
 * @param after The zero-based number of the statement after which the replay begins.
 * @returns Descriptions of the faults; empty if there are none.
 */
export async function replayFaults(
  followed: Followed,
  { after, injected, rounds }: { after: number; rounds: number; injected: ReplayFault | undefined },
): Promise<string[]> {
  const statements = nextStatements(followed, { after, count: rounds * STATEMENTS_PER_ROUND });
  const wanted = statements.reduce((count, { statement }) => count + versionsOf(statement), 0);
  const position = followed.lastSeqs[after] ?? 0;
  const changes = damaged(await resumed(followed, position, wanted), injected);
  const faults = judged(changes, statements, followed.shape);
  // A resume from within a commit must deliver the rest of that commit and all later changes
  // again, unchanged.
  const middle = Math.floor(changes.length * Math.random() * 0.8);
  const rest = changes.slice(middle + 1);
  const again = await resumed(followed, seqOf(changes[middle]), rest.length);
  for (const [index, change] of rest.entries()) {
    const other = again[index];
    const isGone = change.kind === "delete";
    if (Bun.deepEquals(change.row, other?.row) && isGone === (other?.kind === "delete")) continue;
    faults.push(
      `change ${index} behind seq ${seqOf(changes[middle])} differs from its first delivery`,
    );
    break;
  }
  return faults;
}

/**
 * The kinds of changes in which the row versions of a statement may arrive, keyed by the kind of
 * the statement.
 */
const KINDS: Readonly<Record<StatementKind, readonly Change["kind"][]>> = {
  insert: ["row"],
  update: ["row", "update"],
  delete: ["delete"],
};

interface Expected {
  readonly statement: QueueStatement;
  readonly lastSeq: number;
}

function nextStatements(
  { lastSeqs, shape }: Followed,
  { after, count }: { after: number; count: number },
): Expected[] {
  return lastSeqs.slice(after + 1, after + 1 + count).map((lastSeq, index) => {
    const number = after + 1 + index;
    const round = 1 + Math.floor(number / STATEMENTS_PER_ROUND);
    const statement = statementsOf(shape, round)[number % STATEMENTS_PER_ROUND];
    if (statement === undefined) throw new Error("a round has four statements");
    return { statement, lastSeq };
  });
}

function judged(
  changes: readonly Change[],
  expected: readonly Expected[],
  shape: QueueShape,
): string[] {
  const faults: string[] = [];
  let at = 0;
  let highest = 0;
  for (const { lastSeq, statement } of expected) {
    const seen = new Set<number>();
    const count = versionsOf(statement);
    for (const change of changes.slice(at, at + count)) {
      const id = Number(change.row["id"]);
      if (seqOf(change) <= highest) faults.push(`seq ${seqOf(change)} comes after ${highest}`);
      highest = seqOf(change);
      if (seen.has(id)) faults.push(`row ${id} comes twice in one statement`);
      seen.add(id);
      const fault = faultOf(change, { statement, lastSeq }, shape);
      if (fault !== undefined) faults.push(`row ${id} of seq ${highest}: ${fault}`);
      if (faults.length > 5) return faults;
    }
    at += count;
    if (highest !== lastSeq) faults.push(`a statement ends with ${highest} instead of ${lastSeq}`);
  }
  if (changes.length !== at) faults.push(`${changes.length} changes come, instead of ${at}`);
  return faults;
}

function faultOf(
  { commitSeq, kind, old, row }: Change,
  { lastSeq, statement }: Expected,
  shape: QueueShape,
): string | undefined {
  const id = Number(row["id"]);
  const { round } = statement;
  if (!KINDS[statement.kind].includes(kind)) return `it is ${kind} instead of ${statement.kind}`;
  if (!concerns(statement, id)) return "its statement has not written it";
  if (kind !== "row" && commitSeq !== lastSeq) return `its commit is ${commitSeq}, not ${lastSeq}`;
  const before = rowAfter(shape, id, round - 1);
  const now = statement.kind === "update" ? rowAfter(shape, id, round) : before;
  if (!holds(row, now)) return `it holds ${JSON.stringify(row)} instead of ${JSON.stringify(now)}`;
  if (kind !== "update") return undefined;
  // The old values of an update contain only the key and the columns that changed.
  const held: Partial<QueueRow> = { id, qty: before.qty };
  if (old !== undefined && holds(old, held)) return undefined;
  return `it held ${JSON.stringify(old)} instead of ${JSON.stringify(held)}`;
}

function holds(cells: Cells, row: Partial<QueueRow>): boolean {
  return Object.entries(row).every(([name, value]) => String(cells[name]) === String(value));
}

function seqOf(change: Change | undefined): number {
  return Number(change?.row["_seq"] ?? 0);
}

function damaged(changes: readonly Change[], injected: ReplayFault | undefined): Change[] {
  const at = changes.findLastIndex(({ kind }) => kind === "update");
  const change = changes[at];
  if (injected === undefined || change === undefined) return [...changes];
  const { old, row } = change;
  const altered: Readonly<Record<ReplayFault, readonly Change[]>> = {
    lost: [],
    doubled: [change, change],
    altered: [{ ...change, row: { ...row, qty: -1 } }],
    old: [{ ...change, old: { ...old, qty: -1 } }],
  };
  return changes.toSpliced(at, 1, ...altered[injected]);
}

/** Resumes from a position, and returns the given number of changes after it. */
async function resumed(
  { table, token, webSocketUrl }: Followed,
  position: number,
  wanted: number,
): Promise<Change[]> {
  const changes: Change[] = [];
  const done = Promise.withResolvers<void>();
  const socket = new WebSocket(`${webSocketUrl}?compress=false`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const timer = setTimeout(() => {
    done.reject(new Error(`${changes.length} of ${wanted} changes came behind ${position}`));
  }, REPLAY_MS_MAX);
  socket.addEventListener("open", () => {
    const sql = `SELECT id, kind, qty, body FROM ${table}`;
    const subscription = { id: "r", sql, options: { from_seq_id: String(position) } };
    socket.send(JSON.stringify({ type: "subscribe", subscription }));
  });
  socket.addEventListener("close", ({ code }) => done.reject(new Error(`closed with ${code}`)));
  socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
    const message = JSON.parse(data) as Message;
    if (message.type === "error") done.reject(new Error(data));
    if (message.type === "initial_data_batch") {
      for (const row of message.rows) {
        changes.push({ kind: "row", row, old: undefined, commitSeq: undefined });
      }
      if (message.batch_control.has_more) socket.send(NEXT);
      else done.resolve();
    }
    if (message.type === "change") {
      const { change_type: kind, commit_seq: commitSeq, old_values: olds = [], rows } = message;
      // The message for a delete contains only the old rows.
      for (const [index, row] of (kind === "delete" ? olds : rows).entries()) {
        changes.push({ kind, row, old: olds[index], commitSeq });
      }
    }
    if (changes.length >= wanted) done.resolve();
  });
  try {
    if (wanted > 0) await done.promise;
  } finally {
    clearTimeout(timer);
    done.promise.catch(() => undefined);
    socket.close();
  }
  return changes.slice(0, wanted);
}

interface Message {
  readonly type: string;
  readonly change_type: "update" | "delete";
  readonly rows: readonly Cells[];
  readonly old_values?: readonly Cells[];
  readonly commit_seq: number;
  readonly batch_control: { readonly has_more: boolean };
}
