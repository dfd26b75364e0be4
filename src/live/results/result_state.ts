/**
 * The rows of a followed result at one seq, and the difference between two such states.
 *
 *     rows of an evaluation ──► keys ──► rows that have not changed are taken from the state before
 *                                   └──► a new state, and the changes that lead to it
 *
 * States are never modified. A subscriber that has fallen behind keeps the state that it last
 * received, which shares its unchanged rows with the newest state. Invariant: a key occurs once in
 * a state, and a row has the same key in every state, even after a restart.
 */

import { defined } from "../../base/assert.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { digestKey, shortKey } from "../../base/short_key.ts";
import type { SchemaField, WireCell, WireRow } from "../../protocol/mod.ts";
import type { JoinChanges, ResultChanges, ResultPlan, ResultRows } from "../../sql/mod.ts";
import type { LiveChange } from "../program/live_program.ts";
import { type KeptRow, type StateRows, stateRows } from "./state_rows.ts";

export interface ResultState {
  /** The seq as of which the query returns the rows of this state. */
  readonly seq: Seq;
  /** The seq of the last commit that changed a table of the query and has been followed. */
  readonly changedSeq: Seq;
  readonly rows: StateRows;
}

export interface NewState {
  readonly state: ResultState;
  /** The changes from the previous state: deletes, then updates, then inserts. */
  readonly changes: readonly LiveChange[];
}

/**
 * The memory that a row takes up in addition to its cells, in bytes: the object, the list and the
 * map entry.
 */
const ROW_BYTES = 160;

/** The number of rows processed between two pauses. */
const ROWS_PER_STEP = 256;

export interface NewStateOptions {
  /** The state that the followers have; undefined for the first state. */
  readonly before: ResultState | undefined;
  readonly shape: ResultShape;
  /** Lets other work run. */
  readonly pause: () => Promise<void>;
  /** Called with the memory of all rows so far, in bytes. Throws if this exceeds the limit. */
  readonly check: (bytes: number) => void;
}

/** Builds a state from evaluated rows. */
export async function newState(
  { changedSeq, rows, seq }: ResultRows,
  { before, check, pause, shape }: NewStateOptions,
): Promise<NewState> {
  const kept = new Map<string, KeptRow>();
  const keys = new KeysOfRows(shape);
  const changes: LiveChange[] = [];
  const seqs = seqsBetween(before, { seq, changedSeq });
  let bytes = 0;
  let foundCount = 0;
  let comparedCount = 0;
  for (const [index, given] of rows.entries()) {
    if (index % ROWS_PER_STEP === ROWS_PER_STEP - 1) {
      check(bytes);
      await pause();
    }
    const { cells, rowSeq } = shape.partsOf(given, seqs);
    const key = keys.of(cells);
    const old = before?.rows.get(key);
    const isKept = old !== undefined && sameCells(old.cells, cells);
    const row = isKept ? old : { key, cells, seq: rowSeq };
    kept.set(key, row);
    bytes += bytesOf(row);
    if (old !== undefined) foundCount += 1;
    if (!isKept && before !== undefined) changes.push(shape.changeTo(row, old, seq));
  }
  check(bytes);
  if (before === undefined) {
    return { state: { seq, changedSeq, rows: stateRows(kept, bytes) }, changes: [] };
  }
  if (foundCount < before.rows.size) {
    for (const row of before.rows.values()) {
      comparedCount += 1;
      if (comparedCount % ROWS_PER_STEP === 0) await pause();
      if (!kept.has(row.key)) changes.push(shape.deletion(row, seq));
    }
  }
  // An evaluation may return rows with equal sort keys in a different order, which does not count
  // as a change.
  if (changes.length === 0) return { state: { rows: before.rows, seq, changedSeq }, changes };
  const state = { seq, changedSeq, rows: stateRows(kept, bytes) };
  return { state, changes: inOrder(changes) };
}

/** The range of seqs in which a change occurred: `after` is exclusive, and `upTo` is inclusive. */
type ChangedSeqs = Pick<JoinChanges, "after" | "upTo">;

/**
 * Returns the range of seqs in which rows changed from one state to the next. If no commit changed
 * a table in between, for example because rows changed only over time, `upTo` is the seq of the
 * later state.
 */
function seqsBetween(
  before: Pick<ResultState, "seq"> | undefined,
  { changedSeq, seq }: Pick<ResultState, "changedSeq" | "seq">,
): ChangedSeqs {
  const after = before?.seq ?? SEQ_ZERO;
  return { after, upTo: changedSeq > after ? changedSeq : seq };
}

/** Builds a state from the previous state and the rows that have changed since. */
export function changedState(
  { added, removed }: ResultChanges,
  {
    before,
    keys,
    seqs,
    shape,
  }: { before: ResultState; keys: ChangedKeys; seqs: ChangedSeqs; shape: ResultShape },
): NewState {
  const { upTo: seq } = seqs;
  const changed = new Map<string, KeptRow | undefined>();
  for (const given of removed) {
    changed.set(keys.ofRemoved(shape.partsOf(given, seqs).cells), undefined);
  }
  const changes: LiveChange[] = [];
  let { bytes } = before.rows;
  for (const given of added) {
    const { cells, rowSeq } = shape.partsOf(given, seqs);
    const key = keys.ofAdded(cells);
    const old = before.rows.get(key);
    if (old !== undefined && sameCells(old.cells, cells)) {
      changed.delete(key);
      continue;
    }
    const row = { key, cells, seq: rowSeq };
    changed.set(key, row);
    bytes += bytesOf(row) - (old === undefined ? 0 : bytesOf(old));
    changes.push(shape.changeTo(row, old, seq));
  }
  for (const [key, row] of changed) {
    if (row !== undefined) continue;
    const old = defined(
      before.rows.get(key),
      "live result: row to be removed is missing from the state",
    );
    bytes -= bytesOf(old);
    changes.push(shape.deletion(old, seq));
  }
  if (changes.length === 0) {
    return { state: { rows: before.rows, seq, changedSeq: seq }, changes };
  }
  const state = { seq, changedSeq: seq, rows: before.rows.with(changed, bytes) };
  return { state, changes: inOrder(changes) };
}

const SHAPES = new WeakMap<ResultPlan["fields"], ResultShape>();

/** Returns the shape of a plan's rows, shared by all plans for the same SQL. */
export function shapeOf({ fields, keyFields, rowSeq }: ResultPlan): ResultShape {
  const known = SHAPES.get(fields);
  if (known !== undefined) return known;
  const shape = new ResultShape({ fields, keyFields, rowSeq });
  SHAPES.set(fields, shape);
  return shape;
}

/** Returns the changes that lead from one state to a later state. */
export function changesBetween(
  before: ResultState,
  after: ResultState,
  shape: ResultShape,
): readonly LiveChange[] {
  if (before.rows === after.rows) return [];
  const changes: LiveChange[] = [];
  const seqs = seqsBetween(before, after);
  const since = before.rows.changedUntil(after.rows);
  if (since !== undefined) {
    for (const [key, old] of since) {
      const row = after.rows.get(key);
      if (row === undefined) {
        if (old !== undefined) changes.push(shape.deletion(old, after.seq));
      } else if (old === undefined || !sameCells(old.cells, row.cells)) {
        changes.push(shape.changeTo(changedRow(row, seqs), old, after.seq));
      }
    }
    return inOrder(changes);
  }
  for (const row of before.rows.values()) {
    if (!after.rows.has(row.key)) changes.push(shape.deletion(row, after.seq));
  }
  for (const row of after.rows.values()) {
    const old = before.rows.get(row.key);
    if (old === row || (old !== undefined && sameCells(old.cells, row.cells))) continue;
    changes.push(shape.changeTo(changedRow(row, seqs), old, after.seq));
  }
  return inOrder(changes);
}

const ORDER: readonly LiveChange["type"][] = ["delete", "update", "insert"];

/** Puts deletes first, so that a client never has more rows than the query's LIMIT allows. */
function inOrder(changes: LiveChange[]): LiveChange[] {
  if (changes.length === 1) return changes;
  return ORDER.flatMap((wanted) => changes.filter(({ type }) => type === wanted));
}

/** A field of the key that identifies a row. */
interface KeyField {
  readonly at: number;
  /**
   * Whether equal values may be displayed with different numbers of decimal places, such as 1.5
   * and 1.50.
   */
  readonly isScaled: boolean;
}

/** Returns whether a field is a NUMERIC without a declared scale. */
function isScaled(field: SchemaField | undefined): boolean {
  const word = field?.data_type;
  return typeof word === "object" && "Decimal" in word && word.Decimal.precision === 0;
}

/** The names of the fields, and which of them identify a row. */
export class ResultShape {
  readonly #names: readonly string[];
  readonly keyFields: readonly KeyField[] | undefined;
  readonly #hasSeqs: boolean;

  constructor({ fields, keyFields, rowSeq }: Pick<ResultPlan, "fields" | "keyFields" | "rowSeq">) {
    this.#names = fields.map(({ name }) => name);
    this.keyFields = keyFields?.map((at) => ({ at, isScaled: isScaled(fields[at]) }));
    this.#hasSeqs = rowSeq !== undefined;
  }

  /**
   * Separates the values of an evaluated row from the seq of its last change.
   *
   * @param seqs The range of seqs in which the row changed.
   */
  partsOf(
    given: readonly WireCell[],
    seqs: ChangedSeqs,
  ): { readonly cells: readonly WireCell[]; readonly rowSeq: Seq } {
    if (!this.#hasSeqs) return { cells: given, rowSeq: seqs.upTo };
    const cells = given.slice(0, -1);
    return { cells, rowSeq: seqOfChange(Number(given.at(-1) ?? 0) as Seq, seqs) };
  }

  /** Returns a row in the form sent to subscribers. */
  rowOf({ cells, key, seq }: KeptRow): WireRow {
    const row: Record<string, WireCell> = {};
    let index = 0;
    for (const name of this.#names) {
      setCell(row, name, cells[index] ?? null);
      index += 1;
    }
    row["_key"] = key;
    row["_seq"] = seq;
    return row;
  }

  changeTo(row: KeptRow, old: KeptRow | undefined, commitSeq: Seq): LiveChange {
    const { seq } = row;
    const change = { seq, commitSeq, row: this.rowOf(row) };
    if (old === undefined) return { ...change, type: "insert", prev: 0, old: undefined };
    return { ...change, type: "update", prev: old.seq, old: this.#changedOf(old, row) };
  }

  deletion(row: KeptRow, seq: Seq): LiveChange {
    const old = { ...this.rowOf(row), _seq: seq, _deleted: true };
    return { type: "delete", seq, commitSeq: seq, prev: row.seq, row: undefined, old };
  }

  /** Returns a row's key, its previous seq, and the old values of the fields that have changed. */
  #changedOf({ cells, key, seq }: KeptRow, after: KeptRow): WireRow {
    const row: Record<string, WireCell> = {};
    let index = 0;
    for (const name of this.#names) {
      const cell = cells[index] ?? null;
      if (!isSameCell(cell, after.cells[index] ?? null)) setCell(row, name, cell);
      index += 1;
    }
    row["_key"] = key;
    row["_seq"] = seq;
    return row;
  }
}

/**
 * Returns the seq of a change to a row between two states.
 * @param newest The newest seq of any table row that contributes to the changed row. It predates
 *   the change if a contributing table row was removed, if a policy has begun to permit the row,
 *   or if the row has replaced another row in a window. The end of the range is then returned.
 */
function seqOfChange(newest: Seq, { after, upTo }: ChangedSeqs): Seq {
  return newest > after ? newest : upTo;
}

/**
 * Returns a row that changed between two states, with a seq from the range between these states.
 */
function changedRow(row: KeptRow, seqs: ChangedSeqs): KeptRow {
  const seq = seqOfChange(row.seq, seqs);
  return seq === row.seq ? row : { ...row, seq };
}

function setCell(row: Record<string, WireCell>, name: string, cell: WireCell): void {
  // A plain assignment to `__proto__` would set the prototype.
  if (name !== "__proto__") row[name] = cell;
  else Object.defineProperty(row, name, { value: cell, enumerable: true });
}

/**
 * Returns the schema sent to a subscriber: the fields of the query, and two fields that every row
 * has.
 */
export function schemaOf(fields: readonly SchemaField[]): SchemaField[] {
  const { length } = fields;
  return [
    ...fields,
    { name: "_key", data_type: "Text", index: length, flags: ["pk", "nn", "uq"] },
    { name: "_seq", data_type: "BigInt", index: length + 1, flags: ["nn"] },
  ];
}

/** Finds the keys of rows removed from or added to a state. */
export class ChangedKeys {
  readonly #fields: readonly KeyField[] | undefined;
  /**
   * The number of equal rows for each digest of their cells; empty if key fields identify the
   * rows.
   */
  readonly #counts = new Map<string, number>();

  constructor({ keyFields }: ResultShape, { rows }: Pick<ResultState, "rows">) {
    this.#fields = keyFields;
    if (keyFields !== undefined) return;
    for (const { cells } of rows.values()) {
      const digest = digestOf(cells);
      this.#counts.set(digest, (this.#counts.get(digest) ?? 0) + 1);
    }
  }

  ofAdded(cells: readonly WireCell[]): string {
    if (this.#fields !== undefined) return keyOfFields(cells, this.#fields);
    const digest = digestOf(cells);
    const count = (this.#counts.get(digest) ?? 0) + 1;
    this.#counts.set(digest, count);
    return numbered(digest, count);
  }

  /**
   * Returns the key of a removed row. If several rows are equal, the row with the highest number
   * is removed.
   */
  ofRemoved(cells: readonly WireCell[]): string {
    if (this.#fields !== undefined) return keyOfFields(cells, this.#fields);
    const digest = digestOf(cells);
    const count = this.#counts.get(digest) ?? 0;
    if (count > 1) this.#counts.set(digest, count - 1);
    else this.#counts.delete(digest);
    return numbered(digest, count);
  }
}

/** Assigns keys to the rows of an evaluation. */
class KeysOfRows {
  readonly #fields: readonly KeyField[] | undefined;
  readonly #counts = new Map<string, number>();

  constructor({ keyFields }: ResultShape) {
    this.#fields = keyFields;
  }

  of(cells: readonly WireCell[]): string {
    if (this.#fields !== undefined) return keyOfFields(cells, this.#fields);
    const digest = digestOf(cells);
    const count = (this.#counts.get(digest) ?? 0) + 1;
    this.#counts.set(digest, count);
    return numbered(digest, count);
  }
}

/** Builds a key from the identifying cells only, because a key from all cells would be longer. */
function keyOfFields(cells: readonly WireCell[], fields: readonly KeyField[]): string {
  let texts = "";
  for (const { at, isScaled: mayEndInZeros } of fields) {
    const cell = cells[at];
    const isTrimmed = mayEndInZeros && typeof cell === "string" && cell.includes(".");
    const text = textOf(isTrimmed ? cell.replace(/\.?0+$/, "") : cell);
    texts += texts === "" ? text : `,${text}`;
  }
  return shortKey(`[${texts}]`);
}

function digestOf(cells: readonly WireCell[]): string {
  return digestKey(cells.map(textOf).join());
}

/**
 * Appends a number that distinguishes equal rows from each other. The order of the numbers does
 * not matter.
 */
function numbered(digest: string, count: number): string {
  return count === 1 ? digest : `${digest}-${count}`;
}

function textOf(cell: WireCell | undefined): string {
  if (typeof cell === "bigint" || typeof cell === "number") return String(cell);
  if (typeof cell === "object" && cell !== null) return `[${cell.map(textOf).join()}]`;
  return JSON.stringify(cell ?? null);
}

function bytesOf({ cells, key }: KeptRow): number {
  let bytes = ROW_BYTES + 2 * key.length;
  for (const cell of cells) bytes += cellBytes(cell);
  return bytes;
}

function cellBytes(cell: WireCell): number {
  if (typeof cell === "string") return 24 + 2 * cell.length;
  if (typeof cell !== "object" || cell === null) return 8;
  return cell.reduce<number>((sum, item) => sum + cellBytes(item), 32);
}

function sameCells(left: readonly WireCell[], right: readonly WireCell[]): boolean {
  for (let index = 0; index < right.length; index += 1) {
    if (!isSameCell(left[index] ?? null, right[index] ?? null)) return false;
  }
  return true;
}

function isSameCell(left: WireCell, right: WireCell): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object") return false;
  if (left === null || right === null || left.length !== right.length) return false;
  return sameCells(left, right);
}
