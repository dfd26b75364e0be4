/**
 * Inner, left and full joins: the right side is held, by the hash of its keys; the left side
 * streams.
 *
 *     build ──right ends──► idle ──left batch──► pairing ──no candidate left──► idle
 *                             │                     (lonely rows of a left or full join go up)
 *                             └──left ends──► done (first the lonely right rows of a full join)
 *
 * Without keys every left row meets every right row. A call makes at most one batch of pairs, so
 * that a product of a billion rows lets others run and can be stopped. Left rows without a partner
 * come after the pairs of their batch.
 */
import { defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  type Batch,
  constVector,
  type DataType,
  groupKeyOf,
  take,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import { type Evaluator, selectRows } from "./expression.ts";
import { HeldRows } from "./held_rows.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Run } from "./run.ts";

export interface JoinOptions {
  readonly run: Run;
  readonly join: "inner" | "left" | "full";
  readonly left: Operator;
  readonly right: Operator;
  readonly leftTypes: readonly DataType[];
  readonly rightTypes: readonly DataType[];
  readonly leftKeys: readonly Evaluator[];
  readonly rightKeys: readonly Evaluator[];
  readonly keyTypes: readonly DataType[];
  /** What pairs must satisfy besides, over left columns followed by right columns. */
  readonly residual: Evaluator | undefined;
}

/** Where the pairing of one left batch stands. */
interface Pairing {
  readonly batch: Batch;
  readonly keys: readonly Vector[];
  /** 1 for each left row that has had a partner. */
  readonly hasPartner: Uint8Array;
  leftRow: number;
  candidateIndex: number;
}

const NO_ROWS: readonly number[] = [];

export class HashJoin implements Operator {
  readonly #options: JoinOptions;
  readonly #held: HeldRows;
  /** Held rows by key text; the one list is under "" without keys. */
  readonly #rowsByKey = new Map<string, number[]>();
  #isBuilt = false;
  /** Of a full join: 1 for each held row that has had a partner. */
  #isPaired = new Uint8Array(0);
  /** Held rows looked at for lonely ones; the left side has ended then. */
  #lonelyPosition = 0;
  #pairing: Pairing | undefined;

  constructor(options: JoinOptions) {
    this.#options = options;
    this.#held = new HeldRows(options.rightTypes, options.run.memory);
  }

  next(): Batch | undefined {
    if (!this.#isBuilt) return this.#build();
    if (this.#pairing !== undefined) return this.#pair(this.#pairing);
    const batch = this.#options.left.next();
    if (batch === undefined) return this.#lonelyRightRows();
    if (batch.rowCount === 0) return batch;
    this.#pairing = {
      batch,
      keys: this.#options.leftKeys.map((key) => key(batch, this.#options.run)),
      hasPartner: new Uint8Array(batch.rowCount),
      leftRow: 0,
      candidateIndex: 0,
    };
    return NOTHING_YET;
  }

  close(): void {
    this.#options.left.close();
    this.#options.right.close();
  }

  #build(): Batch {
    const { right, rightKeys, run } = this.#options;
    const batch = right.next();
    if (batch === undefined) {
      this.#isBuilt = true;
      if (this.#options.join === "full") this.#isPaired = new Uint8Array(this.#held.rowCount);
      return NOTHING_YET;
    }
    if (batch.rowCount === 0) return NOTHING_YET;
    const keys = rightKeys.map((key) => key(batch, run));
    const start = this.#held.rowCount;
    this.#held.append(batch.columns, batch.rowCount);
    for (let row = 0; row < batch.rowCount; row += 1) {
      const text = this.#keyText(keys, row);
      if (text === undefined) continue;
      const rows = this.#rowsByKey.get(text);
      if (rows === undefined) this.#rowsByKey.set(text, [start + row]);
      else rows.push(start + row);
    }
    return NOTHING_YET;
  }

  #pair(pairing: Pairing): Batch {
    const { batch } = pairing;
    if (pairing.leftRow >= batch.rowCount) {
      this.#pairing = undefined;
      return this.#options.join === "inner" ? NOTHING_YET : this.#lonelyRows(pairing);
    }
    const leftRows = new Uint32Array(BATCH_ROWS_MAX);
    const rightRows: number[] = [];
    while (rightRows.length < BATCH_ROWS_MAX && pairing.leftRow < batch.rowCount) {
      const candidates = this.#candidatesOf(pairing.keys, pairing.leftRow);
      const room = BATCH_ROWS_MAX - rightRows.length;
      const end = Math.min(candidates.length, pairing.candidateIndex + room);
      for (let i = pairing.candidateIndex; i < end; i += 1) {
        leftRows[rightRows.length] = pairing.leftRow;
        rightRows.push(defined(candidates[i], "a candidate is within its list"));
      }
      pairing.candidateIndex = end;
      if (end < candidates.length) break;
      pairing.leftRow += 1;
      pairing.candidateIndex = 0;
    }
    return this.#keptPairs(pairing, leftRows, rightRows);
  }

  #keptPairs(pairing: Pairing, leftRows: Uint32Array, rightRows: readonly number[]): Batch {
    const pairs = this.#pairsOf(pairing.batch, leftRows, rightRows);
    const { residual, run } = this.#options;
    if (residual === undefined || pairs.rowCount === 0) {
      for (let i = 0; i < rightRows.length; i += 1) {
        this.#note(pairing, leftRows[i] ?? 0, rightRows[i] ?? 0);
      }
      return pairs;
    }
    const kept = selectRows(residual(pairs, run), pairs.rowCount);
    for (let i = 0; i < kept.count; i += 1) {
      const pair = kept.rows[i] ?? 0;
      this.#note(pairing, leftRows[pair] ?? 0, rightRows[pair] ?? 0);
    }
    return { rowCount: kept.count, columns: pairs.columns.map((column) => take(column, kept)) };
  }

  #note({ hasPartner }: Pairing, leftRow: number, rightRow: number): void {
    hasPartner[leftRow] = 1;
    if (this.#options.join === "full") this.#isPaired[rightRow] = 1;
  }

  /** Held rows that no left row met, a batch at a time, beside NULLs. */
  #lonelyRightRows(): Batch | undefined {
    if (this.#options.join !== "full") return undefined;
    const rows: number[] = [];
    const { length } = this.#isPaired;
    while (rows.length < BATCH_ROWS_MAX && this.#lonelyPosition < length) {
      if (this.#isPaired[this.#lonelyPosition] === 0) rows.push(this.#lonelyPosition);
      this.#lonelyPosition += 1;
    }
    if (rows.length === 0) return undefined;
    const left = this.#options.leftTypes.map(() => constVector(null, rows.length));
    return { rowCount: rows.length, columns: [...left, ...this.#held.allOf(rows).columns] };
  }

  #lonelyRows({ batch, hasPartner }: Pairing): Batch {
    const rows = new Uint32Array(batch.rowCount);
    const noPartners: number[] = [];
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (hasPartner[row] === 1) continue;
      rows[noPartners.length] = row;
      noPartners.push(-1);
    }
    return this.#pairsOf(batch, rows, noPartners);
  }

  /** Left columns beside right columns; -1 stands for a row of NULLs. */
  #pairsOf(batch: Batch, leftRows: Uint32Array, rightRows: readonly number[]): Batch {
    const count = rightRows.length;
    const left = batch.columns.map((column) => take(column, { rows: leftRows, count }));
    const right = this.#held.allOf(rightRows);
    return { rowCount: count, columns: [...left, ...right.columns] };
  }

  #candidatesOf(keys: readonly Vector[], leftRow: number): readonly number[] {
    const text = this.#keyText(keys, leftRow);
    return text === undefined ? NO_ROWS : (this.#rowsByKey.get(text) ?? NO_ROWS);
  }

  /** Undefined when a part is NULL, which equals nothing. */
  #keyText(keys: readonly Vector[], row: number): string | undefined {
    let text = "";
    for (let i = 0; i < keys.length; i += 1) {
      const value = valueAt(defined(keys[i], "a key has its vectors"), row);
      if (value === null) return undefined;
      const type = defined(this.#options.keyTypes[i], "a key has its types");
      const part = String(groupKeyOf(type, value));
      text += keys.length === 1 ? part : `${part.length}:${part}`;
    }
    return text;
  }
}
