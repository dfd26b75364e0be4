/**
 * Issues the numbers of SQL sequences. A block of numbers is durably reserved before its first
 * number is issued, so no number is issued twice, even if the process is killed: afterwards,
 * numbering continues after the block. Numbers in a block that are never issued form a gap.
 *
 *     reserved durably          1 … 32
 *     handed out from memory    1, 2, 3 ‖ kill          the next start goes on with 33
 *     handed out from memory    1, 2, 3, close          the next start goes on with 4
 *
 * If numbers are requested in quick succession, blocks become larger, so that a bulk load waits
 * for the disk only a few times. If a transaction fails, the numbers that it received are not
 * issued again.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import { type Whole, wholeFromBigint } from "../types/mod.ts";
import type { SequenceEntry } from "./entries.ts";

/** The size of the first block of numbers that a sequence reserves. Later blocks may be larger. */
const BLOCK_MIN = 32;
const BLOCK_MAX = 65_536;

/**
 * The time within which a block must be used up for the next block to be twice as large, in
 * milliseconds.
 */
const QUICK_MS = 1000;

/**
 * The count of numbers to skip after a restore if the replaced database was unreadable, because it
 * is unknown how many numbers it had issued.
 */
const UNKNOWN_NUMBERS = 1_000_000n;

/** The number that a sequence has reached. */
export interface SequenceMark {
  readonly sequenceId: number;
  /**
   * The number that the sequence has reached, as a decimal string, because JSON numbers cannot
   * represent all 64-bit integers.
   */
  readonly value: string;
  /**
   * Whether `value` itself may already have been issued. If false, `value` is the next number to
   * be issued.
   */
  readonly isCalled: boolean;
}

/** Durably stores the numbers that sequences have reached. */
export interface SequenceMarks {
  /**
   * Stores the marks of sequences. They are durable when this returns.
   * @throws {DatabaseError} DISK_FULL …
   */
  store(marks: readonly SequenceMark[]): void;
}

/** The options of a sequence that affect its numbers. */
export type CountedSequence = Pick<
  SequenceEntry,
  | "cache"
  | "cycles"
  | "increment"
  | "maximum"
  | "minimum"
  | "name"
  | "namespace"
  | "sequenceId"
  | "start"
>;

/** A block of reserved sequence numbers, starting at `first` and continuing in steps of `step`. */
interface NumberBlock {
  readonly first: bigint;
  readonly step: bigint;
  /**
   * The first number and the step of the block as doubles; undefined if any number of the block
   * cannot be represented exactly as a double.
   */
  readonly doubles: { readonly first: number; readonly step: number } | undefined;
  readonly count: number;
  taken: number;
  readonly reservedMs: number;
}

export class SequenceNumbers {
  readonly #clock: Clock;
  readonly #marks: SequenceMarks;
  readonly #known = new Map<number, SequenceMark>();
  readonly #blocks = new Map<number, NumberBlock>();

  constructor({
    clock,
    known,
    marks,
  }: {
    clock: Clock;
    marks: SequenceMarks;
    known: readonly SequenceMark[];
  }) {
    this.#clock = clock;
    this.#marks = marks;
    for (const mark of known) this.#known.set(mark.sequenceId, mark);
  }

  /**
   * Issues the next number of a sequence.
   *
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE at the end of the sequence; DISK_FULL,
   *   STORAGE_UNAVAILABLE if no number can be reserved.
   */
  next(sequence: CountedSequence): Whole {
    const known = this.#blocks.get(sequence.sequenceId);
    const isLeft = known !== undefined && known.taken < known.count;
    const block = isLeft ? known : this.#reserve(sequence, known);
    const { doubles, first, step, taken } = block;
    block.taken = taken + 1;
    if (doubles !== undefined) return doubles.first + taken * doubles.step;
    return wholeFromBigint(first + BigInt(taken) * step);
  }

  /**
   * Returns the last number of a sequence that this process issued. If it has issued none, returns
   * the number that `next` will return.
   */
  mark(sequence: CountedSequence): SequenceMark {
    const block = this.#blocks.get(sequence.sequenceId);
    return (block && usedIn(sequence, block)) ?? this.#markOf(sequence);
  }

  /**
   * Sets the current number of a sequence. @throws {DatabaseError} VALUE_OUT_OF_RANGE, DISK_FULL …
   */
  set(sequence: CountedSequence, value: Whole, isCalled: boolean): void {
    requireWithin(sequence, BigInt(value));
    const { sequenceId } = sequence;
    this.#store([{ sequenceId, value: value.toString(), isCalled }]);
    this.#blocks.delete(sequenceId);
  }

  /**
   * Sets a sequence back from `now` to `before`, so that the numbers in between will be issued
   * again. Has no effect if other callers have taken numbers in the meantime, so that the sequence
   * is no longer at `now`.
   */
  takeBack(sequence: CountedSequence, now: SequenceMark, before: SequenceMark): void {
    const current = this.mark(sequence);
    if (current.value !== now.value || current.isCalled !== now.isCalled) return;
    const { sequenceId } = sequence;
    const block = this.#blocks.get(sequenceId);
    const taken = block && takenAt(block, before);
    if (block !== undefined && taken !== undefined) {
      block.taken = taken;
      return;
    }
    this.#store([before]);
    this.#blocks.delete(sequenceId);
  }

  /**
   * Gives back the reserved but unused numbers of sequences, so that later numbers follow without
   * a gap.
   */
  giveBack(sequences: Iterable<CountedSequence>): void {
    const marks: SequenceMark[] = [];
    for (const sequence of sequences) {
      const block = this.#blocks.get(sequence.sequenceId);
      if (block !== undefined && block.taken < block.count) marks.push(usedIn(sequence, block));
      this.#blocks.delete(sequence.sequenceId);
    }
    if (marks.length > 0) this.#store(marks);
  }

  /** Returns the numbers of all sequences as they are stored durably. */
  marks(): readonly SequenceMark[] {
    return [...this.#known.values()];
  }

  /** Takes over the number of a sequence that is already durable. */
  remember(mark: SequenceMark): void {
    this.#known.set(mark.sequenceId, mark);
    this.#blocks.delete(mark.sequenceId);
  }

  forget(sequenceId: number): void {
    this.#known.delete(sequenceId);
    this.#blocks.delete(sequenceId);
  }

  #markOf({ sequenceId, start }: CountedSequence): SequenceMark {
    return this.#known.get(sequenceId) ?? { sequenceId, value: start, isCalled: false };
  }

  #store(marks: readonly SequenceMark[]): void {
    this.#marks.store(marks);
    for (const mark of marks) this.#known.set(mark.sequenceId, mark);
  }

  #reserve(sequence: CountedSequence, before: NumberBlock | undefined): NumberBlock {
    const { sequenceId } = sequence;
    const step = BigInt(sequence.increment);
    const first = firstAfter(sequence, this.#markOf(sequence));
    const nowMs = this.#clock.monotonicMs();
    const isQuick = before !== undefined && nowMs - before.reservedMs < QUICK_MS;
    const wanted = isQuick ? Math.min(BLOCK_MAX, 2 * before.count) : BLOCK_MIN;
    const end = BigInt(step > 0n ? sequence.maximum : sequence.minimum);
    const left = (end - first) / step + 1n;
    const count = Math.min(Math.max(wanted, sequence.cache), Number(left));
    const last = first + BigInt(count - 1) * step;
    this.#store([{ sequenceId, value: last.toString(), isCalled: true }]);
    const isExact = [first, last, step].every((value) => Number.isSafeInteger(Number(value)));
    const block: NumberBlock = {
      first,
      step,
      doubles: isExact ? { first: Number(first), step: Number(step) } : undefined,
      count,
      taken: 0,
      reservedMs: nowMs,
    };
    this.#blocks.set(sequenceId, block);
    return block;
  }
}

/**
 * Returns the mark at which a sequence continues after a restore: the further of the restored mark
 * and the mark in the replaced database.
 *
 * @param before Undefined if the replaced database cannot be read.
 */
export function markAfterRestore(
  sequence: CountedSequence,
  own: SequenceMark | undefined,
  before: SequenceMark | undefined | "unknown",
): SequenceMark | undefined {
  const { increment, maximum, minimum, sequenceId, start } = sequence;
  const mark = own ?? { sequenceId, value: start, isCalled: false };
  const value = BigInt(mark.value);
  const step = BigInt(increment);
  if (before === "unknown") {
    // At most a quarter of the remaining numbers is skipped, so that skipping cannot exhaust the
    // sequence.
    const left = ((step > 0n ? BigInt(maximum) : BigInt(minimum)) - value) / step;
    const skipped = left / 4n < UNKNOWN_NUMBERS ? left / 4n : UNKNOWN_NUMBERS;
    return { sequenceId, value: (value + skipped * step).toString(), isCalled: true };
  }
  if (before === undefined) return own;
  const other = BigInt(before.value);
  const isFurther = step > 0n ? other > value : other < value;
  return isFurther || (other === value && before.isCalled) ? before : own;
}

/** Returns the mark of a sequence after the given part of a block has been used up. */
function usedIn(
  { sequenceId }: CountedSequence,
  { first, step, taken }: NumberBlock,
): SequenceMark {
  if (taken === 0) return { sequenceId, value: first.toString(), isCalled: false };
  const value = first + BigInt(taken - 1) * step;
  return { sequenceId, value: value.toString(), isCalled: true };
}

/**
 * Returns the count of a block's numbers that are used up at a mark; undefined if the mark is
 * before the block.
 */
function takenAt(
  { first, step, taken }: NumberBlock,
  { isCalled, value }: SequenceMark,
): number | undefined {
  const count = Number((BigInt(value) - first) / step) + (isCalled ? 1 : 0);
  const isWithin = first + BigInt(count - (isCalled ? 1 : 0)) * step === BigInt(value);
  return isWithin && count >= 0 && count <= taken ? count : undefined;
}

/**
 * Returns the number that follows a mark of a sequence, or its first number if none has been
 * issued.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function firstAfter(sequence: CountedSequence, { isCalled, value }: SequenceMark): bigint {
  const { cycles, increment, maximum, minimum } = sequence;
  const step = BigInt(increment);
  const next = isCalled ? BigInt(value) + step : BigInt(value);
  if (next >= BigInt(minimum) && next <= BigInt(maximum)) return next;
  if (cycles) return BigInt(step > 0n ? minimum : maximum);
  const [end, bound] = step > 0n ? ["maximum", maximum] : ["minimum", minimum];
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot get the next value of sequence ${nameOf(sequence)}: the sequence has reached its ` +
      `${end}, ${bound}`,
    { hint: `change its bounds, or add CYCLE, with ALTER SEQUENCE ${nameOf(sequence)}` },
  );
}

function requireWithin(sequence: CountedSequence, value: bigint): void {
  const { maximum, minimum } = sequence;
  if (value >= BigInt(minimum) && value <= BigInt(maximum)) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot set sequence ${nameOf(sequence)} to ${value}: the value must be from ${minimum} to ` +
      maximum,
  );
}

function nameOf({ name, namespace }: CountedSequence): string {
  return `${namespace}.${name}`;
}
