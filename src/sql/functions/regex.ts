/**
 * Regular expressions that take linear time, whatever the pattern and the text.
 *
 * `test` builds the states of a deterministic automaton as texts need them and forgets them when
 * there are too many; `exec`, which has to know where groups lie, runs the program itself. The
 * leftmost match wins, then alternatives in written order, greedy before lazy as written.
 */
import { assert } from "../../base/assert.ts";
import { compileProgram, type Instruction, type RegexProgram } from "./regex_program.ts";
import { hasCharacter, isWordCharacter } from "./regex_sets.ts";
import type { Assertion } from "./regex_syntax.ts";

/** Positions of a match: `[start, end, group 1 start, group 1 end, …]`; -1 for unused groups. */
export type RegexMatch = readonly number[];

export interface Regex {
  readonly groupCount: number;
  test(text: string): boolean;
  /** The first match that begins at or after `from`, in UTF-16 units. */
  exec(text: string, from: number): RegexMatch | undefined;
}

/** What assertions need to know of a neighbour. */
type Neighbour = 0 | 1 | 2 | 3;
const NOTHING: Neighbour = 0;
const LINE_END: Neighbour = 1;
const WORD: Neighbour = 2;
const OTHER: Neighbour = 3;

/** The position after the last character. */
const END_OF_TEXT = -1;

/** States kept before all are forgotten: bounds memory at a few megabytes a pattern. */
const STATES_MAX = 1000;
/** Places in all states kept, which a long program has many of. */
const PLACES_MAX = 100_000;
const ASCII_COUNT = 128;

/** @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE */
export function compileRegex(pattern: string, flags: string): Regex {
  const program = compileProgram(pattern, flags);
  const machine = new Machine(program);
  const isPlain = flags === "" && /^[\w ]*$/.test(pattern);
  return {
    groupCount: program.groupCount,
    test: isPlain ? (text) => text.includes(pattern) : (text) => machine.test(text),
    exec: (text, from) => machine.exec(text, from),
  };
}

function neighbourOf(code: number): Neighbour {
  if (code === END_OF_TEXT) return NOTHING;
  if (code === 0x0a) return LINE_END;
  return isWordCharacter(code) ? WORD : OTHER;
}

function holds(assertion: Assertion, before: Neighbour, after: Neighbour): boolean {
  switch (assertion) {
    case "start":
      return before === NOTHING;
    case "end":
      return after === NOTHING;
    case "lineStart":
      return before === NOTHING || before === LINE_END;
    case "lineEnd":
      return after === NOTHING || after === LINE_END;
    case "boundary":
      return (before === WORD) !== (after === WORD);
    case "notBoundary":
      return (before === WORD) === (after === WORD);
    case "wordStart":
      return before !== WORD && after === WORD;
    case "wordEnd":
      return before === WORD && after !== WORD;
  }
}

/** A set of places in the program, before jumps are followed, and the character before. */
interface State {
  readonly places: readonly number[];
  readonly before: Neighbour;
  /** By ASCII code; the last entry is the end of the text. */
  readonly next: (State | "match" | undefined)[];
}

interface Thread {
  readonly place: number;
  readonly slots: number[];
}

class Machine {
  readonly #instructions: readonly Instruction[];
  readonly #slotCount: number;
  readonly #firstSet: RegexProgram["firstSet"];
  readonly #states = new Map<string, State>();
  /** Marks places visited in the current step; a new step has a new number. */
  readonly #visited: Uint32Array;
  #step = 0;
  #placesKept = 0;

  constructor({ instructions, groupCount, firstSet }: RegexProgram) {
    this.#firstSet = firstSet;
    this.#instructions = instructions;
    this.#slotCount = 2 * (groupCount + 1);
    this.#visited = new Uint32Array(instructions.length);
  }

  test(text: string): boolean {
    let state = this.#state([], NOTHING);
    for (let at = 0; at <= text.length; at += 1) {
      let code = at < text.length ? text.charCodeAt(at) : END_OF_TEXT;
      if (code >= 0xd800 && code <= 0xdbff) {
        code = text.codePointAt(at) ?? code;
        if (code > 0xffff) at += 1;
      }
      // The first character beyond ASCII has the number of the slot that stands for the end.
      const isKept = code < ASCII_COUNT;
      const slot = code === END_OF_TEXT ? ASCII_COUNT : code;
      const known = isKept ? state.next[slot] : undefined;
      const next = known ?? this.#advance(state, code);
      if (isKept && known === undefined) state.next[slot] = next;
      if (next === "match") return true;
      state = next;
    }
    return false;
  }

  #state(places: readonly number[], before: Neighbour): State {
    const key = `${before}:${places.join(",")}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= STATES_MAX || this.#placesKept > PLACES_MAX) {
      this.#states.clear();
      this.#placesKept = 0;
    }
    this.#placesKept += places.length;
    const state: State = { places, before, next: [] };
    this.#states.set(key, state);
    return state;
  }

  /** Follows every way over one character; a match may also begin here. */
  #advance(state: State, code: number): State | "match" {
    const after = neighbourOf(code);
    const places = this.#closure([...state.places, 0], state.before, after);
    const next = new Set<number>();
    for (const place of places) {
      const instruction = this.#instructions[place];
      if (instruction?.op === "match") return "match";
      if (
        instruction?.op === "set" &&
        code !== END_OF_TEXT &&
        hasCharacter(instruction.set, code)
      ) {
        next.add(place + 1);
      }
    }
    return this.#state(
      [...next].toSorted((left, right) => left - right),
      after,
    );
  }

  /** The places that consume or match, reached without consuming. */
  #closure(from: readonly number[], before: Neighbour, after: Neighbour): number[] {
    this.#step += 1;
    const reached: number[] = [];
    const stack = [...from];
    for (;;) {
      const place = stack.pop();
      if (place === undefined) return reached;
      if (this.#visited[place] === this.#step) continue;
      this.#visited[place] = this.#step;
      const instruction = this.#instructions[place];
      assert(instruction !== undefined, "a place is in the program");
      if (instruction.op === "split") stack.push(instruction.other, instruction.preferred);
      else if (instruction.op === "jump") stack.push(instruction.to);
      else if (instruction.op === "save") stack.push(place + 1);
      else if (instruction.op === "assert") {
        if (holds(instruction.assertion, before, after)) stack.push(place + 1);
      } else reached.push(place);
    }
  }

  /** The first position at or after `at` where a match can begin; the text's length if none. */
  #nextStart(text: string, at: number): number {
    const set = this.#firstSet;
    if (set === undefined) return at;
    let index = at;
    while (index < text.length) {
      const code = text.codePointAt(index) ?? 0;
      if (hasCharacter(set, code)) return index;
      index += code > 0xffff ? 2 : 1;
    }
    return index;
  }

  exec(text: string, start: number): RegexMatch | undefined {
    const from = this.#nextStart(text, start);
    let threads: Thread[] = [];
    let best: RegexMatch | undefined;
    let before = from === 0 ? NOTHING : neighbourOf(codeBefore(text, from));
    for (let at = from; ; ) {
      const code = text.codePointAt(at) ?? END_OF_TEXT;
      const after = neighbourOf(code);
      if (best === undefined) {
        threads.push({ place: 0, slots: Array.from({ length: this.#slotCount }, () => -1) });
      }
      const ready = this.#follow(threads, at, { before, after });
      threads = [];
      for (const thread of ready) {
        const instruction = this.#instructions[thread.place];
        if (instruction?.op === "match") {
          // Threads after this one are less preferred.
          best = thread.slots;
          break;
        }
        if (instruction?.op !== "set" || code === END_OF_TEXT) continue;
        if (hasCharacter(instruction.set, code)) {
          threads.push({ place: thread.place + 1, slots: thread.slots });
        }
      }
      if (code === END_OF_TEXT || (best !== undefined && threads.length === 0)) return best;
      at += code > 0xffff ? 2 : 1;
      before = after;
      if (threads.length === 0) {
        const next = this.#nextStart(text, at);
        if (next > at) before = neighbourOf(codeBefore(text, next));
        at = next;
      }
    }
  }

  /** Threads that consume or match next, in order of preference. */
  #follow(
    threads: readonly Thread[],
    at: number,
    { before, after }: { before: Neighbour; after: Neighbour },
  ): Thread[] {
    this.#step += 1;
    const ready: Thread[] = [];
    const stack = threads.toReversed();
    for (;;) {
      const thread = stack.pop();
      if (thread === undefined) return ready;
      const { place, slots } = thread;
      if (this.#visited[place] === this.#step) continue;
      this.#visited[place] = this.#step;
      const instruction = this.#instructions[place];
      assert(instruction !== undefined, "a place is in the program");
      if (instruction.op === "split") {
        stack.push({ place: instruction.other, slots }, { place: instruction.preferred, slots });
      } else if (instruction.op === "jump") {
        stack.push({ place: instruction.to, slots });
      } else if (instruction.op === "save") {
        stack.push({ place: place + 1, slots: slots.with(instruction.slot, at) });
      } else if (instruction.op === "assert") {
        if (holds(instruction.assertion, before, after)) stack.push({ place: place + 1, slots });
      } else {
        ready.push(thread);
      }
    }
  }
}

function codeBefore(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1);
  const isSecondHalf = unit >= 0xdc00 && unit <= 0xdfff && at >= 2;
  return isSecondHalf ? (text.codePointAt(at - 2) ?? unit) : unit;
}
