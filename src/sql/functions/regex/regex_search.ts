/**
 * Finds a match and its groups by running the program of a regular expression with several threads
 * at once, in order of preference (Pike 1987). All state is in typed arrays allocated once, so
 * nothing is allocated per character.
 */

import { assert } from "../../../base/assert.ts";
import type { CallEffort } from "../base/call_effort.ts";
import {
  assertionHolds,
  END_OF_TEXT,
  type Neighbour,
  NOTHING,
  neighbourOf,
} from "./regex_neighbours.ts";
import type { RegexProgram } from "./regex_program.ts";
import { type CharacterSet, hasCharacter } from "./regex_sets.ts";
import type { Assertion } from "./regex_syntax.ts";

/**
 * The positions of a match: `[start, end, group 1 start, group 1 end, …]`. The positions of groups
 * that did not participate are -1.
 */
export type RegexMatch = readonly number[];

const ASCII_COUNT = 128;

/** The opcodes of a compiled pattern. */
const SET = 0;
const SPLIT = 1;
const JUMP = 2;
const SAVE = 3;
const ASSERT = 4;
const MATCH = 5;

/**
 * The number of steps that are charged to the budget at a time. Charging each character separately
 * would double its cost.
 */
const STEPS_PER_SPENDING = 4096;

/** The largest step number, which must fit in an element of `#visited`. */
const STEP_MAX = 2 ** 32 - 1;

/** A character set with a fast lookup for ASCII characters. */
interface QuickSet {
  readonly set: CharacterSet;
  readonly ascii: Uint8Array;
}

function quickSetOf(set: CharacterSet): QuickSet {
  const ascii = Uint8Array.from({ length: ASCII_COUNT }, (_, code) => +hasCharacter(set, code));
  return { set, ascii };
}

/** Threads in order of preference. Each has a program position and the positions of its groups. */
interface Threads {
  readonly places: Int32Array;
  slots: Int32Array;
  count: number;
}

/**
 * The initial capacity for group positions. This capacity is kept between searches, because most
 * searches need no more.
 */
const POSITIONS_KEPT = 256;
const POSITIONS_KEPT_MAX = 16_384;

function newThreads(length: number): Threads {
  return {
    places: new Int32Array(length),
    slots: new Int32Array(POSITIONS_KEPT),
    count: 0,
  };
}

/**
 * Runs searches with one compiled program. A program has one instance, which runs one search at a
 * time.
 */
export class RegexSearch {
  readonly #operations: Uint8Array;
  /**
   * The first operand of each instruction: a jump target (of a split, the preferred one), a slot,
   * or the number of a set or assertion.
   */
  readonly #first: Int32Array;
  readonly #second: Int32Array;
  readonly #sets: QuickSet[] = [];
  readonly #assertions: Assertion[] = [];
  readonly #startSet: QuickSet | undefined;
  readonly #slotCount: number;
  readonly #isShortest: boolean;
  /** For each program position, the number of the step that last visited it. */
  readonly #visited: Uint32Array;
  #step = 0;
  #threads: Threads;
  #next: Threads;
  /** The group positions of the thread being followed. */
  readonly #slots: Int32Array;
  /**
   * The program positions still to be followed. A negative entry ~slot means that this slot must
   * be restored to the position stored below the entry.
   */
  readonly #stack: Int32Array;
  /** The group positions of the best match so far. They are valid only if #hasMatched is true. */
  readonly #best: Int32Array;
  #hasMatched = false;
  /** The kind of the preceding character, maintained only if the program has assertions. */
  #before: Neighbour = NOTHING;
  #after: Neighbour = NOTHING;

  constructor({ firstSet, groupCount, instructions, isShortest }: RegexProgram) {
    const { length } = instructions;
    this.#isShortest = isShortest;
    this.#operations = new Uint8Array(length);
    this.#first = new Int32Array(length);
    this.#second = new Int32Array(length);
    this.#startSet = firstSet === undefined ? undefined : quickSetOf(firstSet);
    this.#slotCount = 2 * (groupCount + 1);
    this.#visited = new Uint32Array(length);
    this.#slots = new Int32Array(this.#slotCount);
    this.#best = new Int32Array(this.#slotCount);
    // In each step, a program position is followed once and pushes at most three numbers.
    this.#stack = new Int32Array(3 * length + 1);
    this.#threads = newThreads(length);
    this.#next = newThreads(length);
    const numbers = new Map<CharacterSet, number>();
    for (const [place, instruction] of instructions.entries()) {
      switch (instruction.op) {
        case "set": {
          const { set } = instruction;
          const number = numbers.get(set) ?? this.#sets.push(quickSetOf(set)) - 1;
          numbers.set(set, number);
          this.#put(place, SET, number);
          break;
        }
        case "split":
          this.#put(place, SPLIT, instruction.preferred, instruction.other);
          break;
        case "jump":
          this.#put(place, JUMP, instruction.to);
          break;
        case "save":
          this.#put(place, SAVE, instruction.slot);
          break;
        case "assert":
          this.#put(place, ASSERT, this.#assertions.push(instruction.assertion) - 1);
          break;
        case "match":
          this.#put(place, MATCH, 0);
      }
    }
  }

  /**
   * Returns the first match that begins at or after `start`.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  find(text: string, start: number, effort: CallEffort): RegexMatch | undefined {
    try {
      return this.#find(text, start, effort);
    } finally {
      this.#shrink(this.#threads);
      this.#shrink(this.#next);
    }
  }

  /**
   * Releases large buffers. Patterns stay cached for a long time, and a pattern with many groups
   * needs a lot of memory.
   */
  #shrink(threads: Threads): void {
    if (threads.slots.length <= POSITIONS_KEPT_MAX) return;
    threads.slots = new Int32Array(POSITIONS_KEPT);
  }

  #find(text: string, start: number, effort: CallEffort): RegexMatch | undefined {
    this.#hasMatched = false;
    this.#threads.count = 0;
    let at = this.#startFrom(text, start);
    let steps = at - start;
    for (;;) {
      const code = text.codePointAt(at) ?? END_OF_TEXT;
      steps += this.#advance(text, at, code);
      const threads = this.#next;
      this.#next = this.#threads;
      this.#threads = threads;
      const { count } = threads;
      if (code === END_OF_TEXT || (this.#hasMatched && count === 0)) break;
      at += code > 0xffff ? 2 : 1;
      if (count === 0) {
        const from = at;
        at = this.#startFrom(text, at);
        steps += at - from;
      }
      if (steps < STEPS_PER_SPENDING) continue;
      effort.spend(steps);
      steps = 0;
    }
    effort.spend(steps);
    return this.#hasMatched ? positionsIn(this.#best) : undefined;
  }

  #put(place: number, operation: number, first: number, second = 0): void {
    this.#operations[place] = operation;
    this.#first[place] = first;
    this.#second[place] = second;
  }

  /**
   * Returns the first position at or after `at` at which a match can begin, or the string's length
   * if no match can begin.
   */
  #startFrom(text: string, at: number): number {
    const set = this.#startSet;
    if (set === undefined) return at;
    let index = at;
    while (index < text.length) {
      const code = text.codePointAt(index) ?? 0;
      if (isIn(set, code)) return index;
      index += code > 0xffff ? 2 : 1;
    }
    return index;
  }

  /**
   * Advances every thread by one character. A new thread starts at each character until a thread
   * has matched.
   * @returns The number of steps.
   */
  #advance(text: string, at: number, code: number): number {
    this.#step += 1;
    if (this.#step > STEP_MAX) {
      this.#visited.fill(0);
      this.#step = 1;
    }
    if (this.#assertions.length > 0) {
      this.#before = at === 0 ? NOTHING : neighbourOf(codeBefore(text, at));
      this.#after = neighbourOf(code);
    }
    const threads = this.#threads;
    const slotCount = this.#slotCount;
    this.#next.count = 0;
    const slots = this.#slots;
    const mayBegin = !this.#hasMatched;
    // The group positions of each thread are copied twice, which costs less than following the
    // thread.
    let steps = 1 + threads.count * (slotCount >> 1);
    for (let thread = 0; thread < threads.count; thread += 1) {
      const start = thread * slotCount;
      // A match that begins earlier is preferred to any match that begins later.
      if (this.#hasMatched && (threads.slots[start] ?? 0) > (this.#best[0] ?? 0)) break;
      for (let slot = 0; slot < slotCount; slot += 1)
        slots[slot] = threads.slots[start + slot] ?? 0;
      steps += this.#follow(threads.places[thread] ?? 0, at, code);
    }
    if (mayBegin && !this.#hasMatched) {
      for (let slot = 0; slot < slotCount; slot += 1) slots[slot] = -1;
      steps += this.#follow(0, at, code);
    }
    if (this.#hasMatched && this.#isShortest) this.#keepEarlier();
    return steps;
  }

  /** Drops the threads that can only find a match that is worse than the best match so far. */
  #keepEarlier(): void {
    const next = this.#next;
    const start = this.#best[0] ?? 0;
    while (next.count > 0 && (next.slots[(next.count - 1) * this.#slotCount] ?? 0) >= start) {
      next.count -= 1;
    }
  }

  /** Keeps the current thread's match if it is better than the best match so far. */
  #noteMatch(at: number): void {
    if (!this.#isBetter(at)) return;
    const best = this.#best;
    for (let slot = 0; slot < best.length; slot += 1) best[slot] = this.#slots[slot] ?? 0;
    this.#hasMatched = true;
  }

  /**
   * Whether a match of the current thread that ends at `at` is better than the best match so far.
   */
  #isBetter(at: number): boolean {
    if (!this.#hasMatched) return true;
    const start = this.#slots[0] ?? 0;
    const [bestStart = 0, bestEnd = 0] = [this.#best[0], this.#best[1]];
    if (start !== bestStart) return start < bestStart;
    return this.#isShortest ? at < bestEnd : at > bestEnd;
  }

  /** Advances one thread by a character. @returns The number of steps. */
  #follow(from: number, at: number, code: number): number {
    const stack = this.#stack;
    const slots = this.#slots;
    const visited = this.#visited;
    const step = this.#step;
    const operations = this.#operations;
    const firsts = this.#first;
    const seconds = this.#second;
    let depth = 1;
    let steps = 0;
    stack[0] = from;
    while (depth > 0) {
      depth -= 1;
      const place = stack[depth] ?? 0;
      if (place < 0) {
        depth -= 1;
        slots[~place] = stack[depth] ?? 0;
        continue;
      }
      if (visited[place] === step) continue;
      visited[place] = step;
      steps += 1;
      const first = firsts[place] ?? 0;
      switch (operations[place]) {
        case SET: {
          const set = this.#sets[first];
          if (set !== undefined && code !== END_OF_TEXT && isIn(set, code)) this.#keep(place + 1);
          break;
        }
        case SPLIT:
          stack[depth] = seconds[place] ?? 0;
          stack[depth + 1] = first;
          depth += 2;
          break;
        case JUMP:
          stack[depth] = first;
          depth += 1;
          break;
        case SAVE:
          stack[depth] = slots[first] ?? 0;
          stack[depth + 1] = ~first;
          stack[depth + 2] = place + 1;
          depth += 3;
          slots[first] = at;
          break;
        case ASSERT: {
          const assertion = this.#assertions[first];
          assert(
            assertion !== undefined,
            "regular expression: assertion index is outside the program",
          );
          if (!assertionHolds(assertion, this.#before, this.#after)) break;
          stack[depth] = place + 1;
          depth += 1;
          break;
        }
        default:
          this.#noteMatch(at);
      }
    }
    return steps;
  }

  #keep(place: number): void {
    const next = this.#next;
    const slotCount = this.#slotCount;
    const start = next.count * slotCount;
    if (start + slotCount > next.slots.length) {
      const slots = new Int32Array(2 * (start + slotCount));
      slots.set(next.slots);
      next.slots = slots;
    }
    const { slots } = next;
    for (let slot = 0; slot < slotCount; slot += 1) slots[start + slot] = this.#slots[slot] ?? 0;
    next.places[next.count] = place;
    next.count += 1;
  }
}

/**
 * Copies group positions to an ordinary array. Spread syntax would be slower, because it calls an
 * iterator for each element.
 */
function positionsIn(slots: Int32Array): number[] {
  const positions: number[] = [];
  for (let slot = 0; slot < slots.length; slot += 1) positions.push(slots[slot] ?? 0);
  return positions;
}

function isIn({ ascii, set }: QuickSet, code: number): boolean {
  return code < ASCII_COUNT ? ascii[code] === 1 : hasCharacter(set, code);
}

function codeBefore(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1);
  const isSecondHalf = unit >= 0xdc00 && unit <= 0xdfff && at >= 2;
  return isSecondHalf ? (text.codePointAt(at - 2) ?? unit) : unit;
}
