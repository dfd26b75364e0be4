/**
 * Implements regular expressions that run in linear time for every pattern and text.
 *
 * `test` builds the states of a deterministic automaton on demand, and discards them when there
 * are too many. `exec` must find the positions of groups, so it runs the compiled program itself
 * (`regex_search.ts`). The leftmost match wins. Among matches with the same start, the longest or
 * the shortest wins, depending on the pattern, and then the alternative written first. Each
 * repetition is greedy or lazy as written.
 */

import { assert } from "../../../base/assert.ts";
import type { CallEffort } from "../base/call_effort.ts";
import { regexEffort } from "./regex_effort.ts";
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
  /**
   * Whether the text contains a match.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  test(text: string): boolean;
  /**
   * Returns the first match that begins at or after `from`, in UTF-16 units.
   *
   * @param effort The budget that a caller shares among several searches.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  exec(text: string, from: number, effort?: CallEffort): RegexMatch | undefined;
}

/**
 * The maximum number of cached states. When it is exceeded, all states are discarded, which limits
 * the cache to a few megabytes per pattern.
 */
const STATES_MAX = 1000;
/**
 * The maximum total number of program positions in all cached states. A state of a long program
 * may hold many positions.
 */
const PLACES_MAX = 100_000;
const ASCII_COUNT = 128;

/** The number of cached transitions, one per character, that count as one step of effort. */
const KNOWN_PER_STEP = 8;

/**
 * The cost, in steps, of computing the next state for a character. Each program position adds
 * another step.
 */
const FOUND_STEPS = 32;

/** The largest step number, which must fit in an element of `#visited`. */
const STEP_MAX = 2 ** 32 - 1;

/** Compiles a regular expression. @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE */
export function compileRegex(pattern: string, flags: string): Regex {
  const program = compileProgram(pattern, flags);
  let search: RegexSearch | undefined;
  const find = (text: string, from: number, effort: CallEffort): RegexMatch | undefined => {
    search ??= new RegexSearch(program);
    return search.find(text, from, effort);
  };
  const machine = new Machine(program, find);
  const isPlain = flags === "" && /^[\w ]*$/.test(pattern);
  return {
    groupCount: program.groupCount,
    test: isPlain ? (text) => text.includes(pattern) : (text) => machine.test(text),
    exec: (text, from, effort = regexEffort()) => find(text, from, effort),
  };
}

/**
 * A state of the automaton: a set of program positions before jumps are followed, together with
 * the kind of the preceding character.
 */
interface RegexState {
  readonly places: readonly number[];
  readonly before: Neighbour;
  /** The states that follow a state, indexed by ASCII code. */
  readonly next: (RegexState | "match" | undefined)[];
  /**
   * The following states for all other characters; created when the first such character occurs.
   */
  others: Map<number, RegexState | "match"> | undefined;
}

type Find = (text: string, from: number, effort: CallEffort) => RegexMatch | undefined;

class Machine {
  readonly #instructions: readonly Instruction[];
  readonly #find: Find;
  readonly #states = new Map<string, RegexState>();
  /** For each program position, the number of the step that last visited it. */
  readonly #visited: Uint32Array;
  #step = 0;
  #placesKept = 0;
  /** The number of times that all cached states have been discarded. */
  #forgottenCount = 0;

  constructor({ instructions }: RegexProgram, find: Find) {
    this.#instructions = instructions;
    this.#find = find;
    this.#visited = new Uint32Array(instructions.length);
  }

  test(text: string): boolean {
    let state = this.#state([], NOTHING);
    const forgottenMax = this.#forgottenCount + 1;
    const effort = regexEffort();
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
      // If a text keeps producing new states, a search without cached states is faster.
      if (this.#forgottenCount > forgottenMax) return this.#find(text, 0, effort) !== undefined;
      state = next;
    }
    return false;
  }

  /** Computes the state that follows a state after a character, and caches the result. */
  #found(state: RegexState, code: number, effort: CallEffort): RegexState | "match" {
    effort.spend(FOUND_STEPS + this.#instructions.length);
    const next = this.#advance(state, code);
    if (code < ASCII_COUNT) state.next[code] = next;
    else {
      // An array for all of Unicode would be too large, so states for non-ASCII characters are
      // kept in a map.
      state.others ??= new Map<number, RegexState | "match">();
      state.others.set(code, next);
      this.#placesKept += 1;
    }
    return next;
  }

  #state(places: readonly number[], before: Neighbour): RegexState {
    const key = `${before}:${places.join(",")}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= STATES_MAX || this.#placesKept > PLACES_MAX) {
      this.#states.clear();
      this.#placesKept = 0;
      this.#forgottenCount += 1;
    }
    this.#placesKept += places.length;
    const state: RegexState = { places, before, next: [], others: undefined };
    this.#states.set(key, state);
    return state;
  }

  /** Advances all paths by one character. A match may also begin at this character. */
  #advance(state: RegexState, code: number): RegexState | "match" {
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

  /**
   * Returns the program positions that are reachable without consuming a character and that
   * consume a character or report a match.
   */
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
      assert(
        instruction !== undefined,
        "regular expression: instruction index is outside the program",
      );
      if (instruction.op === "split") stack.push(instruction.other, instruction.preferred);
      else if (instruction.op === "jump") stack.push(instruction.to);
      else if (instruction.op === "save") stack.push(place + 1);
      else if (instruction.op === "assert") {
        if (assertionHolds(instruction.assertion, before, after)) stack.push(place + 1);
      } else reached.push(place);
    }
  }
}
