/**
 * Regular expressions that take linear time, whatever the pattern and the text.
 *
 * `test` builds the states of a deterministic automaton as texts need them and forgets them when
 * there are too many; `exec`, which has to know where groups lie, runs the program itself
 * (`regex_search.ts`). The leftmost match wins, then alternatives in written order, greedy before
 * lazy as written.
 */
import { assert } from "../../../base/assert.ts";
import { Effort } from "./regex_effort.ts";
import {
  assertionHolds,
  END_OF_TEXT,
  type Neighbour,
  NOTHING,
  neighbourOf,
} from "./regex_neighbours.ts";
import { compileProgram, type Instruction, type RegexProgram } from "./regex_program.ts";
import { type RegexMatch, RegexSearch } from "./regex_search.ts";
import { hasCharacter } from "./regex_sets.ts";

export interface Regex {
  readonly groupCount: number;
  /** @throws {DatabaseError} LIMIT_EXCEEDED */
  test(text: string): boolean;
  /**
   * The first match that begins at or after `from`, in UTF-16 units.
   *
   * @param effort Of a call that searches more than once.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  exec(text: string, from: number, effort?: Effort): RegexMatch | undefined;
}

/** States kept before all are forgotten: bounds memory at a few megabytes a pattern. */
const STATES_MAX = 1000;
/** Places in all states kept, which a long program has many of. */
const PLACES_MAX = 100_000;
const ASCII_COUNT = 128;

/** The number of characters with a known next state that together cost one step. */
const KNOWN_PER_STEP = 8;

/**
 * The steps for a character whose next state has to be computed, besides one step for each place.
 */
const FOUND_STEPS = 32;

/** A step has a number that fits the marks of places. */
const STEP_MAX = 2 ** 32 - 1;

/** @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE */
export function compileRegex(pattern: string, flags: string): Regex {
  const program = compileProgram(pattern, flags);
  let search: RegexSearch | undefined;
  const find = (text: string, from: number, effort: Effort): RegexMatch | undefined => {
    search ??= new RegexSearch(program);
    return search.find(text, from, effort);
  };
  const machine = new Machine(program, find);
  const isPlain = flags === "" && /^[\w ]*$/.test(pattern);
  return {
    groupCount: program.groupCount,
    test: isPlain ? (text) => text.includes(pattern) : (text) => machine.test(text),
    exec: (text, from, effort = new Effort()) => find(text, from, effort),
  };
}

/** A set of places in the program, before jumps are followed, and the character before. */
interface State {
  readonly places: readonly number[];
  readonly before: Neighbour;
  /** The next states, by ASCII code. */
  readonly next: (State | "match" | undefined)[];
  /** The next states by any other code; made when the first such code occurs. */
  others: Map<number, State | "match"> | undefined;
}

type Find = (text: string, from: number, effort: Effort) => RegexMatch | undefined;

class Machine {
  readonly #instructions: readonly Instruction[];
  readonly #find: Find;
  readonly #states = new Map<string, State>();
  /** Marks places visited in the current step; a new step has a new number. */
  readonly #visited: Uint32Array;
  #step = 0;
  #placesKept = 0;
  /** How often all states were forgotten. */
  #forgottenCount = 0;

  constructor({ instructions }: RegexProgram, find: Find) {
    this.#instructions = instructions;
    this.#find = find;
    this.#visited = new Uint32Array(instructions.length);
  }

  test(text: string): boolean {
    let state = this.#state([], NOTHING);
    const forgottenMax = this.#forgottenCount + 1;
    const effort = new Effort();
    effort.spend(text.length / KNOWN_PER_STEP);
    for (let at = 0; at <= text.length; at += 1) {
      let code = at < text.length ? text.charCodeAt(at) : END_OF_TEXT;
      if (code >= 0xd800 && code <= 0xdbff) {
        code = text.codePointAt(at) ?? code;
        if (code > 0xffff) at += 1;
      }
      const known = code < ASCII_COUNT ? state.next[code] : state.others?.get(code);
      const next = known ?? this.#found(state, code, effort);
      if (next === "match") return true;
      // A text that meets new states all the time is sooner searched without them.
      if (this.#forgottenCount > forgottenMax) return this.#find(text, 0, effort) !== undefined;
      state = next;
    }
    return false;
  }

  /** Computes the state that follows a character, and caches it. */
  #found(state: State, code: number, effort: Effort): State | "match" {
    effort.spend(FOUND_STEPS + this.#instructions.length);
    const next = this.#advance(state, code);
    if (code < ASCII_COUNT) state.next[code] = next;
    else {
      // An array for all of Unicode would be too large, so these codes are in a map.
      state.others ??= new Map<number, State | "match">();
      state.others.set(code, next);
      this.#placesKept += 1;
    }
    return next;
  }

  #state(places: readonly number[], before: Neighbour): State {
    const key = `${before}:${places.join(",")}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= STATES_MAX || this.#placesKept > PLACES_MAX) {
      this.#states.clear();
      this.#placesKept = 0;
      this.#forgottenCount += 1;
    }
    this.#placesKept += places.length;
    const state: State = { places, before, next: [], others: undefined };
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
    if (this.#step > STEP_MAX) {
      this.#visited.fill(0);
      this.#step = 1;
    }
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
        if (assertionHolds(instruction.assertion, before, after)) stack.push(place + 1);
      } else reached.push(place);
    }
  }
}
