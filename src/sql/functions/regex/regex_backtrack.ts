/**
 * Finds matches of patterns with back references, by trying the alternatives of the program one
 * after another.
 *
 * A state consists of a program position, a position in the text, and the referenced groups. No
 * state is followed twice, because what can follow a state depends on nothing else. The running
 * time is therefore bounded by a power of the text's length, and the effort of a call is limited.
 */
import { assert } from "../../../base/assert.ts";
import type { CallEffort } from "../base/call_effort.ts";
import { type LookFinder, type LookTables, lookHolds } from "./regex_looks.ts";
import {
  assertionHolds,
  codeBefore,
  END_OF_TEXT,
  NOTHING,
  neighbourOf,
} from "./regex_neighbours.ts";
import type { Instruction, RegexProgram } from "./regex_program.ts";
import type { RegexMatch } from "./regex_search.ts";
import { hasCharacter } from "./regex_sets.ts";

/** The cost of a remembered state in steps, which also limits the memory for states. */
const STEPS_PER_STATE = 64;

/** The number of steps that are charged to the budget at once. */
const STEPS_PER_SPENDING = 1024;

/** How many characters of a referenced group are compared exactly in the time of one step. */
const UNITS_PER_STEP = 64;

/**
 * A point to which the search returns: a path not yet taken, or the earlier value of a group
 * position.
 */
type ReturnPoint =
  | { readonly place: number; readonly at: number }
  | { readonly slot: number; readonly value: number };

/** Searches with one program, which has back references. */
export class BacktrackSearch {
  readonly #program: RegexProgram;
  readonly #referenced: readonly number[];
  readonly #looks: LookFinder;
  readonly #slots: number[];

  constructor(program: RegexProgram, looks: LookFinder) {
    this.#program = program;
    this.#looks = looks;
    this.#slots = Array.from({ length: 2 * (program.groupCount + 1) }, () => -1);
    const groups = program.instructions.flatMap((each) =>
      each.op === "reference" ? [each.group] : [],
    );
    this.#referenced = [...new Set(groups)];
  }

  /**
   * Returns the first match that begins at or after `start`.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  find(text: string, start: number, effort: CallEffort): RegexMatch | undefined {
    const tables = this.#looks.tablesFor(text, effort);
    const { firstSet } = this.#program;
    let at = start;
    while (at <= text.length) {
      const code = text.codePointAt(at) ?? END_OF_TEXT;
      effort.spend(1);
      const mayBegin =
        firstSet === undefined || (code !== END_OF_TEXT && hasCharacter(firstSet, code));
      const match = mayBegin ? this.#matchAt(text, at, { effort, tables }) : undefined;
      if (match !== undefined) return match;
      at += code > 0xffff ? 2 : 1;
    }
    return undefined;
  }

  /** Returns the preferred match that begins at a position. */
  #matchAt(text: string, start: number, around: SearchPlace): RegexMatch | undefined {
    const slots = this.#slots.fill(-1);
    const { isShortest } = this.#program;
    const pending: ReturnPoint[] = [{ place: 0, at: start }];
    const visited = new Set<string>();
    let best: number[] | undefined;
    for (;;) {
      const point = pending.pop();
      if (point === undefined) return best;
      if ("slot" in point) {
        slots[point.slot] = point.value;
        continue;
      }
      const end = this.#follow(point, text, { ...around, pending, visited });
      if (end === undefined) continue;
      const bestEnd = best?.[1] ?? end;
      if (best === undefined || (isShortest ? end < bestEnd : end > bestEnd)) best = [...slots];
    }
  }

  /** Follows one path to its end. Returns where the match ends, or undefined if there is none. */
  #follow(from: { place: number; at: number }, text: string, path: PathState): number | undefined {
    const { instructions } = this.#program;
    const slots = this.#slots;
    let { at, place } = from;
    let steps = 0;
    for (;;) {
      const instruction = instructions[place];
      assert(
        instruction !== undefined,
        "regular expression: instruction index is outside the program",
      );
      steps += 1;
      if (steps % STEPS_PER_SPENDING === 0) path.effort.spend(STEPS_PER_SPENDING);
      switch (instruction.op) {
        case "match":
          return at;
        case "jump":
          place = instruction.to;
          continue;
        case "split":
          if (!this.#isNew(place, at, path)) return undefined;
          path.pending.push({ place: instruction.other, at });
          place = instruction.preferred;
          continue;
        case "save":
          this.#set(instruction.slot, at, path);
          break;
        case "forget":
          this.#set(2 * instruction.group, -1, path);
          this.#set(2 * instruction.group + 1, -1, path);
          break;
        default: {
          const end = endAfter(instruction, { text, at, slots, around: path });
          if (end < 0) return undefined;
          at = end;
        }
      }
      place += 1;
    }
  }

  #set(slot: number, value: number, { pending }: PathState): void {
    pending.push({ slot, value: this.#slots[slot] ?? -1 });
    this.#slots[slot] = value;
  }

  /** Notes a state. Returns false if it has been followed before. */
  #isNew(place: number, at: number, { effort, visited }: PathState): boolean {
    effort.spend(STEPS_PER_STATE);
    let key = `${place} ${at}`;
    for (const group of this.#referenced) {
      key += ` ${this.#slots[2 * group] ?? -1} ${this.#slots[2 * group + 1] ?? -1}`;
    }
    if (visited.has(key)) return false;
    visited.add(key);
    return true;
  }
}

interface SearchPlace {
  readonly effort: CallEffort;
  readonly tables: LookTables;
}

interface PathState extends SearchPlace {
  readonly pending: ReturnPoint[];
  readonly visited: Set<string>;
}

interface MatchPlace {
  readonly text: string;
  readonly at: number;
  readonly slots: readonly number[];
  readonly around: SearchPlace;
}

/**
 * Returns the position after an instruction has matched at a position; -1 if it does not match.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
function endAfter(
  instruction: Exclude<
    Instruction,
    { op: "forget" } | { op: "jump" } | { op: "match" } | { op: "save" } | { op: "split" }
  >,
  { around: { effort, tables }, at, slots, text }: MatchPlace,
): number {
  switch (instruction.op) {
    case "set": {
      const code = text.codePointAt(at) ?? END_OF_TEXT;
      if (code === END_OF_TEXT || !hasCharacter(instruction.set, code)) return -1;
      return at + (code > 0xffff ? 2 : 1);
    }
    case "assert": {
      const before = at === 0 ? NOTHING : neighbourOf(codeBefore(text, at));
      const after = neighbourOf(text.codePointAt(at) ?? END_OF_TEXT);
      return assertionHolds(instruction.assertion, before, after) ? at : -1;
    }
    case "look":
      return lookHolds(instruction, tables, at) ? at : -1;
    case "reference": {
      const start = slots[2 * instruction.group] ?? -1;
      const end = slots[2 * instruction.group + 1] ?? -1;
      if (start < 0 || end < start) return -1;
      const wanted = text.slice(start, end);
      effort.spend(Math.floor(wanted.length / UNITS_PER_STEP));
      const isSame =
        text.startsWith(wanted, at) ||
        (instruction.ignoreCase && isSameIgnoringCase(wanted, { text, at, effort }));
      return isSame ? at + wanted.length : -1;
    }
  }
}

/**
 * Whether the text at a position is a given one, except for the case of its characters. The effort
 * is that of the characters before the first difference.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
function isSameIgnoringCase(
  wanted: string,
  { at, effort, text }: Pick<MatchPlace, "at" | "text"> & Pick<SearchPlace, "effort">,
): boolean {
  let length = 0;
  for (const character of wanted) {
    const end = length + character.length;
    const found = text.slice(at + length, at + end);
    if (found !== character && found.toLowerCase() !== character.toLowerCase()) break;
    length = end;
  }
  effort.spend(length);
  return length === wanted.length;
}
