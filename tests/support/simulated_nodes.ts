/**
 * Implements the files and directories of the simulated disk: their durable state and their later
 * changes.
 */
import type { DiskEntry } from "../../src/base/disk.ts";
import type { SeededRandom } from "./seeded_random.ts";

const SECTOR_BYTES = 512;

/** Selects the unsynced changes that survive a crash. */
export type CrashOptions =
  | { readonly keep: "none" | "all" }
  /** The surviving state of each sector and each name is chosen independently and at random. */
  | { readonly keep: "some"; readonly random: SeededRandom };

/** A growable byte buffer. Everything beyond `size` is zero. */
class GrowingBytes {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  size = 0;

  read(into: Uint8Array, offset: number): number {
    const count = Math.max(0, Math.min(into.length, this.size - offset));
    into.set(this.#bytes.subarray(offset, offset + count));
    return count;
  }

  write(bytes: Uint8Array, offset: number): void {
    this.#reserve(offset + bytes.length);
    this.#bytes.set(bytes, offset);
    this.size = Math.max(this.size, offset + bytes.length);
  }

  truncate(length: number): void {
    this.#reserve(length);
    this.#bytes.fill(0, length, Math.max(length, this.size));
    this.size = length;
  }

  copy(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.size);
  }

  flip(offset: number, mask: number): void {
    if (offset < this.size) this.#bytes[offset] = (this.#bytes[offset] ?? 0) ^ mask;
  }

  #reserve(size: number): void {
    if (size <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(size, this.#bytes.length * 2, 1024));
    grown.set(this.#bytes.subarray(0, this.size));
    this.#bytes = grown;
  }
}

/** A write or, if `bytes` is undefined, a truncation. */
interface FileChange {
  readonly offset: number;
  readonly bytes: Uint8Array | undefined;
  readonly sizeBefore: number;
  readonly sizeAfter: number;
  state: "pending" | "durable" | "failed";
}

/** The contents of a file, independent of its names. */
export class SimulatedInode {
  readonly #live = new GrowingBytes();
  /**
   * The durable contents, which include all changes before the first change that is not durable.
   */
  readonly #base = new GrowingBytes();
  #changes: FileChange[] = [];
  /** The number of changes that have been merged into `#base`. */
  #foldedCount = 0;

  get size(): number {
    return this.#live.size;
  }

  /** The number of changes ever made to the file. A sync that begins now covers all of them. */
  get changeCount(): number {
    return this.#foldedCount + this.#changes.length;
  }

  read(into: Uint8Array, offset: number): number {
    return this.#live.read(into, offset);
  }

  copy(): Uint8Array<ArrayBuffer> {
    return this.#live.copy();
  }

  write(bytes: Uint8Array, offset: number): void {
    const sizeBefore = this.size;
    this.#live.write(bytes, offset);
    // The bytes are copied, because a slice of a Buffer shares its memory.
    const own = new Uint8Array(bytes);
    this.#changes.push({ offset, bytes: own, sizeBefore, sizeAfter: this.size, state: "pending" });
  }

  truncate(length: number): void {
    const sizeBefore = this.size;
    this.#live.truncate(length);
    const change = { offset: length, bytes: undefined, sizeBefore, sizeAfter: length };
    this.#changes.push({ ...change, state: "pending" });
  }

  /** Ends a sync that covers the first `covered` changes. */
  sync(covered: number, succeeded: boolean): void {
    for (const change of this.#changes.slice(0, Math.max(0, covered - this.#foldedCount))) {
      if (change.state === "pending") change.state = succeeded ? "durable" : "failed";
    }
    for (;;) {
      const [first] = this.#changes;
      if (first?.state !== "durable") break;
      apply(this.#base, first);
      this.#changes.shift();
      this.#foldedCount += 1;
    }
  }

  damage(offset: number, mask: number): void {
    this.#live.flip(offset, mask);
    this.#base.flip(offset, mask);
  }

  /**
   * Returns a copy of the file for a separate disk, with the same durable state and later changes.
   */
  clone(): SimulatedInode {
    const copy = new SimulatedInode();
    copy.#live.write(this.#live.copy(), 0);
    copy.#base.write(this.#base.copy(), 0);
    copy.#changes = this.#changes.map((change) => ({ ...change }));
    copy.#foldedCount = this.#foldedCount;
    return copy;
  }

  /**
   * Returns a file with contents that may be found after a crash. All of these contents are
   * durable.
   */
  afterCrash(options: CrashOptions): SimulatedInode {
    const copy = new SimulatedInode();
    const contents =
      options.keep === "all" ? this.#live.copy() : this.#contentsAfterCrash(chooser(options));
    copy.write(contents, 0);
    copy.sync(copy.changeCount, true);
    return copy;
  }

  #contentsAfterCrash(choose: Choose): Uint8Array {
    // The number of surviving changes, in order, for each sector and for the file size.
    const histories = new Map<number, { count: number; durableCount: number }>();
    for (const change of this.#changes) {
      for (const place of placesOf(change)) {
        const history = histories.get(place) ?? { count: 0, durableCount: 0 };
        history.count += 1;
        if (change.state === "durable") history.durableCount = history.count;
        histories.set(place, history);
      }
    }
    const left = new Map<number, number>();
    for (const [place, { count, durableCount }] of histories) {
      left.set(place, choose(durableCount, count));
    }

    const contents = new GrowingBytes();
    contents.write(this.#base.copy(), 0);
    let size = contents.size;
    for (const change of this.#changes) {
      for (const place of placesOf(change)) {
        const remaining = left.get(place) ?? 0;
        if (remaining === 0) continue;
        left.set(place, remaining - 1);
        if (place === SIZE_PLACE) size = change.sizeAfter;
        else applySector(contents, change, place);
      }
    }
    contents.truncate(size);
    return contents.copy();
  }
}

/** Chooses a whole number from `min` to `max`, both inclusive. */
type Choose = (min: number, max: number) => number;

function chooser(options: CrashOptions): Choose {
  if (options.keep !== "some") return options.keep === "all" ? (_min, max) => max : (min) => min;
  const { random } = options;
  // The mood makes it reasonably likely that all changes are lost, or that none are lost.
  const mood = random.below(4);
  return (min, max) => (mood === 0 ? min : mood === 1 ? max : random.between(min, max));
}

/** Identifies the file length where a sector number is expected. */
const SIZE_PLACE = -1;

function placesOf(change: FileChange): number[] {
  const places: number[] = change.sizeAfter === change.sizeBefore ? [] : [SIZE_PLACE];
  const end = change.bytes === undefined ? change.sizeBefore : change.offset + change.bytes.length;
  const last = Math.ceil(end / SECTOR_BYTES);
  for (let place = Math.floor(change.offset / SECTOR_BYTES); place < last; place += 1) {
    places.push(place);
  }
  return places;
}

function apply(bytes: GrowingBytes, change: FileChange): void {
  if (change.bytes === undefined) bytes.truncate(change.sizeAfter);
  else bytes.write(change.bytes, change.offset);
}

function applySector(bytes: GrowingBytes, change: FileChange, sector: number): void {
  const start = Math.max(change.offset, sector * SECTOR_BYTES);
  const changeEnd =
    change.bytes === undefined ? change.sizeBefore : change.offset + change.bytes.length;
  const end = Math.min(changeEnd, (sector + 1) * SECTOR_BYTES);
  if (end <= start) return;
  const part =
    change.bytes?.subarray(start - change.offset, end - change.offset) ??
    new Uint8Array(end - start);
  bytes.write(part, start);
}

type SimulatedNode = SimulatedInode | SimulatedDirectory;

interface NameChange {
  readonly kind: "link" | "unlink";
  readonly name: string;
  readonly node: SimulatedNode;
}

/** The move of a directory entry. Both directories list the move until one of them is synced. */
interface Move {
  readonly kind: "move";
  readonly from: SimulatedDirectory;
  readonly fromName: string;
  readonly to: SimulatedDirectory;
  readonly toName: string;
  readonly node: SimulatedNode;
}

/** The names in a directory: the durable names, and later changes to them. */
export class SimulatedDirectory {
  #live = new Map<string, SimulatedNode>();
  #durable = new Map<string, SimulatedNode>();
  #changes: (NameChange | Move)[] = [];

  get(name: string): SimulatedNode | undefined {
    return this.#live.get(name);
  }

  entries(): DiskEntry[] {
    return [...this.#live].map(([name, node]) => ({
      name,
      isDirectory: node instanceof SimulatedDirectory,
    }));
  }

  byteCount(): number {
    let count = 0;
    for (const node of this.#live.values()) {
      count += node instanceof SimulatedDirectory ? node.byteCount() : node.size;
    }
    return count;
  }

  link(name: string, node: SimulatedNode): void {
    this.#live.set(name, node);
    this.#changes.push({ kind: "link", name, node });
  }

  unlink(name: string): void {
    const node = this.#live.get(name);
    if (node === undefined) return;
    this.#live.delete(name);
    this.#changes.push({ kind: "unlink", name, node });
  }

  /**
   * Moves an entry to this directory from the directory `from`, which may be the same directory.
   */
  receive(toName: string, { from, name }: { from: SimulatedDirectory; name: string }): void {
    const node = from.#live.get(name);
    if (node === undefined) return;
    from.#live.delete(name);
    this.#live.set(toName, node);
    const move: Move = { kind: "move", from, fromName: name, to: this, toName, node };
    this.#changes.push(move);
    if (from !== this) from.#changes.push(move);
  }

  /** The changes to the directory that are not durable yet. */
  get changes(): ReadonlySet<object> {
    return new Set(this.#changes);
  }

  /** Makes changes to the directory durable. @param covered The changes to make durable. */
  sync(covered: ReadonlySet<object> = this.changes): void {
    for (const change of this.#changes.filter((each) => covered.has(each))) {
      applyName(this.#durable, change, this);
      if (change.kind === "move" && change.from !== change.to) {
        if (change.to === this) change.from.#leaveSource(change);
        else change.to.#settleArrival(change);
      }
    }
    this.#changes = this.#changes.filter((change) => !covered.has(change));
  }

  afterCrash(options: CrashOptions, copies: CrashCopies): SimulatedDirectory {
    const copy = new SimulatedDirectory();
    copies.nodes.set(this, copy);
    const names = options.keep === "all" ? new Map(this.#live) : new Map(this.#durable);
    if (options.keep === "some") {
      for (const change of this.#changes) {
        const isKept = copies.kept.get(change) ?? options.random.chance(0.5);
        copies.kept.set(change, isKept);
        if (isKept) applyName(names, change, this);
      }
    }
    for (const [name, node] of names) {
      const known = copies.nodes.get(node);
      const nodeCopy =
        known ??
        (node instanceof SimulatedDirectory
          ? node.afterCrash(options, copies)
          : node.afterCrash(options));
      copies.nodes.set(node, nodeCopy);
      copy.link(name, nodeCopy);
    }
    copy.sync();
    return copy;
  }

  /**
   * Returns a copy of the directory and everything below it, with the same durable state and later
   * changes.
   */
  clone(copies: CloneCopies): SimulatedDirectory {
    const known = copies.nodes.get(this);
    if (known instanceof SimulatedDirectory) return known;
    const copy = new SimulatedDirectory();
    copies.nodes.set(this, copy);
    for (const [name, node] of this.#live) copy.#live.set(name, cloneNode(node, copies));
    for (const [name, node] of this.#durable) copy.#durable.set(name, cloneNode(node, copies));
    copy.#changes = this.#changes.map((change) => cloneChange(change, copies));
    return copy;
  }

  /**
   * Records that the target of a move is durable, but the removal of the old name is not durable
   * yet.
   */
  #leaveSource(move: Move): void {
    this.#changes = this.#changes.map((change) =>
      change === move ? { kind: "unlink", name: move.fromName, node: move.node } : change,
    );
  }

  /**
   * Makes a moved entry durable in this directory, because the source directory is durable without
   * it.
   */
  #settleArrival(move: Move): void {
    this.#durable.set(move.toName, move.node);
    const at = this.#changes.indexOf(move);
    this.#changes = this.#changes.filter(
      (change, index) => index > at || (change !== move && nameIn(change, this) !== move.toName),
    );
  }
}

interface CrashCopies {
  readonly nodes: Map<SimulatedNode, SimulatedNode>;
  readonly kept: Map<NameChange | Move, boolean>;
}

interface CloneCopies {
  readonly nodes: Map<SimulatedNode, SimulatedNode>;
  readonly changes: Map<NameChange | Move, NameChange | Move>;
}

function cloneNode(node: SimulatedNode, copies: CloneCopies): SimulatedNode {
  if (node instanceof SimulatedDirectory) return node.clone(copies);
  const copy = copies.nodes.get(node) ?? node.clone();
  copies.nodes.set(node, copy);
  return copy;
}

function cloneChange(change: NameChange | Move, copies: CloneCopies): NameChange | Move {
  const known = copies.changes.get(change);
  if (known !== undefined) return known;
  const node = cloneNode(change.node, copies);
  const copy =
    change.kind === "move"
      ? { ...change, node, from: change.from.clone(copies), to: change.to.clone(copies) }
      : { ...change, node };
  // The directories of a move refer back to the move, so its copy may already exist.
  const made = copies.changes.get(change) ?? copy;
  copies.changes.set(change, made);
  return made;
}

/** Copies the tree below a directory, including changes that are not durable yet. */
export function cloneDirectory(root: SimulatedDirectory): SimulatedDirectory {
  return root.clone({ nodes: new Map(), changes: new Map() });
}

/** Copies the tree below a directory in a state that may be found after a crash. */
export function copyDirectory(root: SimulatedDirectory, options: CrashOptions): SimulatedDirectory {
  return root.afterCrash(options, { nodes: new Map(), kept: new Map() });
}

function nameIn(change: NameChange | Move, directory: SimulatedDirectory): string {
  if (change.kind !== "move") return change.name;
  return change.to === directory ? change.toName : change.fromName;
}

function applyName(
  names: Map<string, SimulatedNode>,
  change: NameChange | Move,
  directory: SimulatedDirectory,
): void {
  if (change.kind === "move") {
    if (change.from === directory && names.get(change.fromName) === change.node) {
      names.delete(change.fromName);
    }
    if (change.to === directory) names.set(change.toName, change.node);
  } else if (change.kind === "link") {
    names.set(change.name, change.node);
  } else if (names.get(change.name) === change.node) {
    names.delete(change.name);
  }
}
