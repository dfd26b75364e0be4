/**
 * Compiles regular expressions into programs for a machine that follows several threads at once
 * (Thompson 1968, Pike 1987). The running time is text length × program length for every pattern
 * without back references.
 *
 *     set s      consume a character of set s, go to the next instruction
 *     split a b  go to both, a preferred
 *     jump a     go to a
 *     save n     record the position in slot n, continue
 *     assert k   continue if assertion k holds here
 *     look k     continue if look-ahead or look-behind k holds here, or if it does not
 *     match      done
 *
 * Programs with back references have two more instructions:
 *
 *     reference n  consume the text of group n
 *     forget n     clear group n, because a repetition that contains it begins again
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
  | { readonly op: "look"; readonly look: number; readonly isNegated: boolean }
  | { readonly op: "reference"; readonly group: number; readonly ignoreCase: boolean }
  | { readonly op: "forget"; readonly group: number }
  | { readonly op: "match" };

/** The pattern of a look-ahead or look-behind. */
export interface LookProgram {
  readonly isAhead: boolean;
  /** The instructions; those of a look-ahead match the text backward. */
  readonly instructions: readonly Instruction[];
}

export interface RegexProgram {
  readonly instructions: readonly Instruction[];
  /** The look-aheads and look-behinds. One that contains others follows them. */
  readonly looks: readonly LookProgram[];
  readonly hasReferences: boolean;
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
 * @throws {DatabaseError} INVALID_VALUE
 */
export function compileProgram(pattern: string, flags: string): RegexProgram {
  const { root, groupCount, hasReferences } = parseRegex(pattern, flags);
  const looks: LookProgram[] = [];
  const emitter = new Emitter({ looks, hasReferences });
  emitter.emit({ op: "save", slot: 0 });
  emitter.node(root);
  emitter.emit({ op: "save", slot: 1 });
  emitter.emit({ op: "match" });
  const { instructions } = emitter;
  const isShortest = prefersShort(root);
  const firstSet = firstSetOf(instructions);
  return { instructions, looks, hasReferences, groupCount, isShortest, firstSet };
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
    if (instruction.op === "reference") return undefined;
    if (instruction.op === "set") sets.push(instruction.set);
    else if (instruction.op === "split") stack.push(instruction.preferred, instruction.other);
    else stack.push(instruction.op === "jump" ? instruction.to : place + 1);
  }
}

/** The parts of a pattern that the emitters of the pattern and of its assertions share. */
interface EmitterParts {
  readonly looks: LookProgram[];
  readonly hasReferences: boolean;
}

class Emitter {
  readonly instructions: Instruction[] = [];
  readonly #parts: EmitterParts;

  constructor(parts: EmitterParts) {
    this.#parts = parts;
  }

  emit(instruction: Instruction): number {
    const { looks } = this.#parts;
    const others = looks.reduce((sum, { instructions }) => sum + instructions.length, 0);
    if (this.instructions.length + others >= INSTRUCTIONS_MAX) {
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
        return;
      case "look":
        this.#look(node);
        return;
      case "reference":
        this.emit({ op: "reference", group: node.index, ignoreCase: node.ignoreCase });
    }
  }

  #look({ isAhead, isNegated, item }: RegexNode & { kind: "look" }): void {
    const { looks } = this.#parts;
    const emitter = new Emitter(this.#parts);
    emitter.node(isAhead ? reversed(item) : item);
    emitter.emit({ op: "match" });
    const look = looks.push({ isAhead, instructions: emitter.instructions }) - 1;
    this.emit({ op: "look", look, isNegated });
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
    const groups = this.#parts.hasReferences ? groupsIn(item) : [];
    const repetition = (): void => {
      for (const group of groups) this.emit({ op: "forget", group });
      this.node(item);
    };
    for (let count = 0; count < min; count += 1) repetition();
    if (max === undefined) {
      const split = this.emit({ op: "jump", to: 0 });
      repetition();
      this.emit({ op: "jump", to: split });
      this.#split(split, isLazy);
      return;
    }
    const splits: number[] = [];
    for (let count = min; count < max; count += 1) {
      splits.push(this.emit({ op: "jump", to: 0 }));
      repetition();
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

/** Returns the groups within a node. */
function groupsIn(node: RegexNode): number[] {
  switch (node.kind) {
    case "group":
      return [node.index, ...groupsIn(node.item)];
    case "repeat":
      return groupsIn(node.item);
    case "sequence":
    case "choice":
      return node.items.flatMap(groupsIn);
    default:
      return [];
  }
}

/**
 * Returns a node that matches the same texts backward. Assertions test a position, so they stay as
 * they are.
 */
function reversed(node: RegexNode): RegexNode {
  switch (node.kind) {
    case "sequence":
      return { ...node, items: node.items.map(reversed).toReversed() };
    case "choice":
      return { ...node, items: node.items.map(reversed) };
    case "repeat":
    case "group":
      return { ...node, item: reversed(node.item) };
    default:
      return node;
  }
}
