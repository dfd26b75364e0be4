/**
 * Compiles regular expressions into programs for a machine that follows several threads at once
 * (Thompson 1968, Pike 1987). The running time is text length × program length for every pattern.
 *
 *     set s      consume a character of set s, go to the next instruction
 *     split a b  go to both, a preferred
 *     jump a     go to a
 *     save n     record the position in slot n, continue
 *     assert k   continue if assertion k holds here
 *     match      done
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type CharacterSet, unionOfSets } from "./regex_sets.ts";
import { type Assertion, parseRegex, prefersShort, type RegexNode } from "./regex_syntax.ts";

export type Instruction =
  | { readonly op: "set"; readonly set: CharacterSet }
  | { readonly op: "split"; readonly preferred: number; readonly other: number }
  | { readonly op: "jump"; readonly to: number }
  | { readonly op: "save"; readonly slot: number }
  | { readonly op: "assert"; readonly assertion: Assertion }
  | { readonly op: "match" };

export interface RegexProgram {
  readonly instructions: readonly Instruction[];
  readonly groupCount: number;
  /** Whether the shortest match that begins at a position is preferred to the longest match. */
  readonly isShortest: boolean;
  /** The characters with which a match can begin; undefined if the empty string may match. */
  readonly firstSet: CharacterSet | undefined;
}

/**
 * The maximum number of instructions, which bounds the cost of each character. Nested counted
 * repetitions multiply the number of instructions.
 */
const INSTRUCTIONS_MAX = 4000;

/**
 * Compiles a pattern into a program.
 * @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE
 */
export function compileProgram(pattern: string, flags: string): RegexProgram {
  const { root, groupCount } = parseRegex(pattern, flags);
  const emitter = new Emitter();
  emitter.emit({ op: "save", slot: 0 });
  emitter.node(root);
  emitter.emit({ op: "save", slot: 1 });
  emitter.emit({ op: "match" });
  const { instructions } = emitter;
  const isShortest = prefersShort(root);
  return { instructions, groupCount, isShortest, firstSet: firstSetOf(instructions) };
}

/**
 * Returns the union of all character sets that can consume the first character, ignoring
 * assertions.
 */
function firstSetOf(instructions: readonly Instruction[]): CharacterSet | undefined {
  const sets: CharacterSet[] = [];
  const visited = new Set<number>();
  const stack = [0];
  for (;;) {
    const place = stack.pop();
    if (place === undefined) return unionOfSets(sets);
    if (visited.has(place)) continue;
    visited.add(place);
    const instruction = instructions[place];
    if (instruction === undefined || instruction.op === "match") return undefined;
    if (instruction.op === "set") sets.push(instruction.set);
    else if (instruction.op === "split") stack.push(instruction.preferred, instruction.other);
    else stack.push(instruction.op === "jump" ? instruction.to : place + 1);
  }
}

class Emitter {
  readonly instructions: Instruction[] = [];

  emit(instruction: Instruction): number {
    if (this.instructions.length >= INSTRUCTIONS_MAX) {
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot use the regular expression: with its {m,n} repetitions expanded, it is too long",
      );
    }
    return this.instructions.push(instruction) - 1;
  }

  node(node: RegexNode): void {
    switch (node.kind) {
      case "empty":
        return;
      case "set":
        this.emit({ op: "set", set: node.set });
        return;
      case "assert":
        this.emit({ op: "assert", assertion: node.assertion });
        return;
      case "sequence":
        for (const item of node.items) this.node(item);
        return;
      case "choice":
        this.#choice(node.items);
        return;
      case "group":
        this.emit({ op: "save", slot: 2 * node.index });
        this.node(node.item);
        this.emit({ op: "save", slot: 2 * node.index + 1 });
        return;
      case "repeat":
        this.#repeat(node);
    }
  }

  get #next(): number {
    return this.instructions.length;
  }

  #choice(items: readonly RegexNode[]): void {
    // Alternatives that are single characters need no order of preference, because all of them
    // continue at the same position.
    const sets = items.flatMap((item) => {
      const [only] = item.kind === "sequence" && item.items.length === 1 ? item.items : [item];
      return only?.kind === "set" ? [only.set] : [];
    });
    if (sets.length > 0 && sets.length === items.length) {
      this.emit({ op: "set", set: unionOfSets(sets) });
      return;
    }
    const jumps: number[] = [];
    for (const [index, item] of items.entries()) {
      if (index === items.length - 1) {
        this.node(item);
        break;
      }
      const split = this.emit({ op: "jump", to: 0 });
      this.node(item);
      jumps.push(this.emit({ op: "jump", to: 0 }));
      this.instructions[split] = { op: "split", preferred: split + 1, other: this.#next };
    }
    for (const jump of jumps) this.instructions[jump] = { op: "jump", to: this.#next };
  }

  #repeat({ item, min, max, isLazy }: RegexNode & { kind: "repeat" }): void {
    for (let count = 0; count < min; count += 1) this.node(item);
    if (max === undefined) {
      const split = this.emit({ op: "jump", to: 0 });
      this.node(item);
      this.emit({ op: "jump", to: split });
      this.#split(split, isLazy);
      return;
    }
    const splits: number[] = [];
    for (let count = min; count < max; count += 1) {
      splits.push(this.emit({ op: "jump", to: 0 }));
      this.node(item);
    }
    for (const split of splits) this.#split(split, isLazy);
  }

  /**
   * Replaces the instruction at `at` with a choice between the instructions of the group, which
   * follow it, and the instructions after the group.
   */
  #split(at: number, isLazy: boolean): void {
    const enter = at + 1;
    const leave = this.#next;
    this.instructions[at] = isLazy
      ? { op: "split", preferred: leave, other: enter }
      : { op: "split", preferred: enter, other: leave };
  }
}
