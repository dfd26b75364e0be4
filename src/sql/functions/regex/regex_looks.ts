/**
 * Finds the positions of a text at which look-ahead and look-behind assertions hold, before a
 * search begins.
 *
 * A look-behind holds wherever a match of its pattern ends. One pass over the text finds all such
 * positions, because a match may begin at every character. A look-ahead holds wherever a match
 * begins; a backward pass with the reversed pattern finds these positions in the same way.
 * Matching with assertions therefore remains linear in the length of the text.
 */
import { assert } from "../../../base/assert.ts";
import type { CallEffort } from "../base/call_effort.ts";
import {
  assertionHolds,
  codeBefore,
  END_OF_TEXT,
  type Neighbour,
  NOTHING,
  neighbourOf,
} from "./regex_neighbours.ts";
import type { Instruction, LookProgram } from "./regex_program.ts";
import { hasCharacter } from "./regex_sets.ts";

/**
 * For each assertion, an element per UTF-16 unit and one for the end of the text: 1 where the
 * pattern of the assertion matches, and 0 elsewhere.
 */
export type LookTables = readonly Uint8Array[];

export const NO_TABLES: LookTables = [];

/** The number of steps that are charged to the budget at once. */
const STEPS_PER_SPENDING = 4096;

interface TextTables {
  readonly text: string;
  readonly tables: LookTables;
}

/** Computes the tables of a pattern, and keeps them for all searches that share a budget. */
export class LookFinder {
  readonly #looks: readonly LookProgram[];
  readonly #known = new WeakMap<CallEffort, TextTables>();

  constructor(looks: readonly LookProgram[]) {
    this.#looks = looks;
  }

  /** @throws {DatabaseError} LIMIT_EXCEEDED */
  tablesFor(text: string, effort: CallEffort): LookTables {
    if (this.#looks.length === 0) return NO_TABLES;
    const known = this.#known.get(effort);
    if (known?.text === text) return known.tables;
    const tables: Uint8Array[] = [];
    // An assertion inside another one precedes it in the list.
    for (const look of this.#looks) tables.push(tableOf(look, text, { tables, effort }));
    this.#known.set(effort, { text, tables });
    return tables;
  }
}

interface LookPlace {
  readonly tables: LookTables;
  readonly effort: CallEffort;
}

function tableOf(
  { instructions, isAhead }: LookProgram,
  text: string,
  { effort, tables }: LookPlace,
): Uint8Array {
  const table = new Uint8Array(text.length + 1);
  const walk = new PlaceWalk(instructions, tables);
  let at = isAhead ? text.length : 0;
  let places: readonly number[] = [];
  let steps = 0;
  for (;;) {
    const before = at === 0 ? END_OF_TEXT : codeBefore(text, at);
    const after = text.codePointAt(at) ?? END_OF_TEXT;
    const reached = walk.closure(places, at, {
      before: at === 0 ? NOTHING : neighbourOf(before),
      after: neighbourOf(after),
    });
    if (reached.hasMatched) table[at] = 1;
    const code = isAhead ? before : after;
    if (code === END_OF_TEXT) break;
    places = reached.consumers
      .filter((place) => walk.consumes(place, code))
      .map((place) => place + 1);
    steps += reached.stepCount;
    if (steps >= STEPS_PER_SPENDING) {
      effort.spend(steps);
      steps = 0;
    }
    const width = code > 0xffff ? 2 : 1;
    at += isAhead ? -width : width;
  }
  effort.spend(steps);
  return table;
}

interface ReachedPlaces {
  /** The positions of instructions that consume a character. */
  readonly consumers: readonly number[];
  readonly hasMatched: boolean;
  readonly stepCount: number;
}

/** Follows the instructions of an assertion's pattern that consume no character. */
class PlaceWalk {
  readonly #instructions: readonly Instruction[];
  readonly #tables: LookTables;
  /** For each program position, the position in the text at which it was last visited. */
  readonly #visited: Int32Array;

  constructor(instructions: readonly Instruction[], tables: LookTables) {
    this.#instructions = instructions;
    this.#tables = tables;
    this.#visited = new Int32Array(instructions.length).fill(-1);
  }

  consumes(place: number, code: number): boolean {
    const instruction = this.#instructions[place];
    return instruction?.op === "set" && hasCharacter(instruction.set, code);
  }

  /** Follows positions and position 0, because a match may begin at every character. */
  closure(
    from: readonly number[],
    at: number,
    { after, before }: { readonly before: Neighbour; readonly after: Neighbour },
  ): ReachedPlaces {
    const consumers: number[] = [];
    const stack = [...from, 0];
    let hasMatched = false;
    let stepCount = 1;
    for (;;) {
      const place = stack.pop();
      if (place === undefined) return { consumers, hasMatched, stepCount };
      if (this.#visited[place] === at) continue;
      this.#visited[place] = at;
      stepCount += 1;
      const instruction = this.#instructions[place];
      assert(
        instruction !== undefined,
        "regular expression: instruction index is outside the program",
      );
      switch (instruction.op) {
        case "split":
          stack.push(instruction.other, instruction.preferred);
          break;
        case "jump":
          stack.push(instruction.to);
          break;
        case "assert":
          if (assertionHolds(instruction.assertion, before, after)) stack.push(place + 1);
          break;
        case "look":
          if (lookHolds(instruction, this.#tables, at)) stack.push(place + 1);
          break;
        case "match":
          hasMatched = true;
          break;
        default:
          consumers.push(place);
      }
    }
  }
}

/** Whether a look-ahead or look-behind holds at a position of the text. */
export function lookHolds(
  { isNegated, look }: Instruction & { op: "look" },
  tables: LookTables,
  at: number,
): boolean {
  return (tables[look]?.[at] === 1) !== isNegated;
}
