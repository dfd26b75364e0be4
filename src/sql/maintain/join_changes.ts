/**
 * Computes how the rows of a join change between two seqs, from the changes to its tables.
 *
 * The sources are processed one after another. The changes of each source are joined with the new
 * rows of the sources before it and the old rows of the sources after it:
 *
 *     Δ(A ⋈ B ⋈ C)  =  ΔA ⋈ B old ⋈ C old  +  A new ⋈ ΔB ⋈ C old  +  A new ⋈ B new ⋈ ΔC
 *
 * (Budiu and others, DBSP, 2023.) Rows of the other sources are looked up in the store, which
 * still has the old versions, so no rows are kept between calls. If the changed source belongs to
 * a left, semi or anti join, the change is traced back to the core rows it may affect. These rows
 * are completed twice, with the old and with the new rows of that source, and equal results cancel
 * out.
 */
import { defined } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { ReadStore } from "../../storage/mod.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import type {
  ChangeRange,
  Commits,
  JoinChangeSource,
  JoinChanges,
  PartitionedChanges,
  StepTuples,
} from "../ports/engine.ts";
import { type RowStep, rowStepOf } from "./computed_parts.ts";
import type { JoinRoutes, RouteStep } from "./join_routes.ts";
import type { ComputedPart, JoinShape, MatchPart } from "./join_shape.ts";
import type { KeptIndex, KeptIndexes } from "./kept_index.ts";
import { CannotFollow, isRefusal } from "./not_maintained.ts";
import type { StepContexts } from "./query_at.ts";
import { textOfRow } from "./row_text.ts";
import { type SourceKey, SourceRows } from "./source_rows.ts";
import { type TableChanges, tableChanges } from "./table_changes.ts";
import { chosen, type TupleFilter, type TupleRows, type TupleSpace } from "./tuple_space.ts";

/**
 * The maximum number of changed versions of one table, and of tuples in a join. Beyond either
 * limit, evaluating the query again is faster.
 */
const VERSIONS_MAX = 1000;
const TUPLES_MAX = 20_000;

/**
 * The number of rows completed before other work may run. One row may require dozens of look-ups
 * of about 4 µs each. A row that is compared with all rows of a table is processed on its own.
 */
const ROWS_PER_PART = 16;

/**
 * The number of tuples beyond which conditions are tested immediately, so that tuples for which a
 * condition is not true are not kept.
 */
const TESTED_TUPLES = 1000;

interface CompiledStep {
  readonly source: number;
  readonly step: RouteStep;
  readonly keys: TupleRows;
  readonly filter: TupleFilter;
}

interface CompiledRoute {
  /** Tests the rows of the source at which the route begins. */
  readonly first: TupleFilter;
  readonly steps: readonly CompiledStep[];
  /** The number of steps of the route after which the partition of a tuple is known. */
  readonly partitionAfter: number;
}

interface CompiledMatch {
  readonly kind: MatchPart["kind"];
  readonly steps: readonly CompiledStep[];
}

interface CompiledQuery {
  readonly kind: ComputedPart["kind"];
  /** The first source of the inner query. All sources of the query are read at the same seq. */
  readonly source: number;
  readonly run: RowStep;
}

type CompiledPart = CompiledMatch | CompiledQuery;

/** Tuples extended by the rows of a source, each with the index of the original tuple. */
interface Extended {
  readonly tuples: readonly Row[];
  readonly parents: readonly number[];
}

/** Describes how a step of a route reads rows. */
interface StepReading {
  /** Returns the seq at which to read the rows of a source. */
  readonly seqOf: (source: number) => Seq;
  readonly contexts: StepContexts;
}

/** The changes to joined rows in one partition while they are being collected. */
interface OpenChanges extends JoinChanges {
  readonly tuples: Row[];
  readonly weights: number[];
  readonly places: number[];
}

/** Collects the changes to joined rows that a maintenance step finds. */
interface FoundChanges {
  /** Adds tuples that the step has found. @throws {CannotFollow} if there are too many */
  readonly add: (tuples: readonly Row[], weight: number) => void;
  /**
   * The partitions in which evaluating the query again takes less time than following the changes.
   */
  readonly lost: Set<string>;
}

interface ReadChanges extends Pick<ChangeRange, "after" | "upTo"> {
  /** The changes to the tables; undefined if there are too many. */
  readonly changes: readonly TableChanges[] | undefined;
  /** The seq of the last commit that contributed changes. */
  readonly lastSeq: number;
}

interface SourceChange {
  readonly source: number;
  readonly change: TableChanges;
  /** The changes to each table that the query reads. */
  readonly changes: readonly TableChanges[];
  readonly range: ChangeRange;
  readonly contexts: StepContexts;
}

export interface JoinChangesOptions {
  readonly shape: JoinShape;
  readonly routes: JoinRoutes;
  readonly space: TupleSpace;
  readonly store: ReadStore;
  /** The owner of the rows in each source. */
  readonly owners: readonly number[];
  /** The in-memory indexes, which all live queries share. */
  readonly indexes: KeptIndexes;
  readonly newContexts: () => StepContexts;
}

/** A source, and the access path that finds its rows. */
interface AccessPlace {
  readonly source: number;
  readonly access: SourceKey["access"];
}

/** Finds the changes to joined rows, and names the in-memory indexes that it needs. */
export interface IndexedChanges extends JoinChangeSource {
  readonly kept: readonly KeptIndex[];
}

export class ChangesOfJoin implements IndexedChanges {
  readonly #options: JoinChangesOptions;
  readonly #rows: SourceRows;
  /** The route from each source to all sources of the core. */
  readonly #routes: readonly CompiledRoute[];
  readonly #parts: readonly CompiledPart[];
  readonly #partOf: readonly (number | undefined)[];
  readonly #last: TupleFilter;
  readonly #partitionOf: TupleRows;
  /** Whether any route reads all rows of a table. */
  #scans = false;
  /** The most recently read table changes, kept until a step has followed them. */
  #read: ReadChanges | undefined;

  /** Plans how changes to each table are propagated to the joined rows. @throws {NotMaintained} */
  constructor(options: JoinChangesOptions) {
    this.#options = options;
    const { indexes, owners, routes, shape, space, store } = options;
    const { coreCount, lastConditions, partition, parts, sources } = shape;
    this.#partitionOf = space.places.rows(partition.map(({ value }) => value));
    this.#rows = new SourceRows({ store, places: space.sources, owners, indexes });
    const core = Array.from({ length: coreCount }, (_, source) => source);
    this.#partOf = sources.map((_, source) => {
      const index = parts.findIndex((part) => part.sources.includes(source));
      return index < 0 ? undefined : index;
    });
    this.#routes = sources.map((_, source) => this.#route(source));
    let known: readonly number[] = core;
    this.#parts = parts.map((part): CompiledPart => {
      const { conditions, kind, sources: wanted } = part;
      if ("query" in part) {
        // An inner query can find its rows only by keys and indexes of the store.
        routes.route({ known, wanted, conditions, isStored: true });
        return { kind: part.kind, source: wanted[0] ?? 0, run: rowStepOf(part, space.places) };
      }
      const steps = this.#partSteps({ known, wanted, conditions });
      if (kind === "left") known = [...known, ...wanted];
      return { kind: part.kind, steps };
    });
    this.#last = space.places.filter(lastConditions);
  }

  /**
   * Returns a line for each source that describes how a change to it finds the rows of the other
   * sources.
   */
  describe(): string[] {
    const { shape } = this.#options;
    const nameOf = (source: number): string => {
      const { table } = defined(
        shape.sources[source],
        "maintained join: route leads to an unknown source",
      );
      return table.name;
    };
    return shape.sources.map((_, source) => {
      const own = this.#partOf[source];
      const steps = [
        ...defined(this.#routes[source], "maintained join: source has no route").steps,
        ...this.#parts.flatMap((part, index) => ("run" in part || index === own ? [] : part.steps)),
      ];
      const found = steps.map(({ step }) => {
        return `${nameOf(step.source)} by ${this.nameOfAccess(step)}`;
      });
      const way = found.length === 0 ? "without other tables" : `finds ${found.join(", ")}`;
      return `a change to ${nameOf(source)}: ${way}`;
    });
  }

  /** Returns the name of the key or index by which the rows of a source are found. */
  nameOfAccess({ access: { index, isScan, kept }, source }: AccessPlace): string {
    if (isScan) return "reading all rows";
    if (kept !== undefined) {
      return `an in-memory index on (${this.#rows.keptIndex(source, kept).columnNames})`;
    }
    return index === undefined ? "its key" : `index ${index.name}`;
  }

  /** Registers the in-memory index that finds the rows of a group, if there is one. */
  keepIndexOf({ access: { kept }, source }: AccessPlace): void {
    if (kept !== undefined) void this.#rows.keptIndex(source, kept);
  }

  get kept(): readonly KeptIndex[] {
    return this.#rows.kept;
  }

  /**
   * Returns the changes in the partitions that have followers. The same tuple may be both added
   * and removed.
   */
  *between(range: ChangeRange): Generator<undefined, PartitionedChanges | undefined> {
    const contexts = this.#options.newContexts();
    try {
      return yield* this.#between(range, contexts);
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    } finally {
      this.#read = undefined;
      this.#rows.endStep();
      contexts.close();
    }
  }

  commitsBetween({ after, upTo }: Pick<ChangeRange, "after" | "upTo">): Commits | undefined {
    const { coreCount, sources } = this.#options.shape;
    try {
      const changes = this.#tableChanges(after, upTo);
      const seqs = commitSeqsOf(changes).toSorted((left, right) => left - right) as Seq[];
      const changeConditions = changes.some(({ commitSeqs }, source) => {
        const isCondition = source >= coreCount || sources[source]?.isTested === true;
        return isCondition && commitSeqs.size > 0;
      });
      return { seqs, changeConditions };
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }

  /**
   * Reads the changes to the tables, and propagates them along the routes.
   * @throws {CannotFollow}
   * @throws {DatabaseError}
   */
  *#between(range: ChangeRange, contexts: StepContexts): Generator<undefined, PartitionedChanges> {
    const { after, upTo } = range;
    this.#rows.beginStep();
    const changes = this.#tableChanges(after, upTo);
    const partitions = new Map<string, OpenChanges>();
    const lost = new Set<string>();
    const all: Row[] = [];
    const step: StepTuples = { tuples: all, computed: new Map() };
    const add = (found: readonly Row[], weight: number): void => {
      const kept = chosen(found, this.#last(found));
      if (all.length + kept.length > TUPLES_MAX) throw new CannotFollow();
      const texts = this.#partitionsOf(kept);
      for (let index = 0; index < kept.length; index += 1) {
        const text = texts[index];
        if (text === undefined) continue;
        let known = partitions.get(text);
        if (known === undefined) {
          known = { tuples: [], weights: [], places: [], step, after, upTo };
          partitions.set(text, known);
        }
        const tuple = defined(kept[index], "maintained join: partition key has no tuple");
        known.tuples.push(tuple);
        known.weights.push(weight);
        known.places.push(all.length);
        all.push(tuple);
      }
    };
    for (const source of this.#options.shape.sources.keys()) {
      const change = changes[source];
      if (change === undefined) continue;
      yield* this.#addChanges({ source, change, range, contexts, changes }, { add, lost });
    }
    return lost.size === 0 ? partitions : withLost(partitions, lost);
  }

  /** Adds the changes to joined rows that result from the changes to one source. */
  *#addChanges(
    { change, changes, contexts, range, source }: SourceChange,
    { add, lost }: FoundChanges,
  ): Generator<undefined, void> {
    const { after, isWanted, upTo } = range;
    const index = this.#partOf[source];
    const part = index === undefined ? undefined : this.#options.shape.parts[index];
    // All sources of an inner query are read at the same seq, so they are treated as one change.
    const together = part !== undefined && "query" in part ? part.sources : [source];
    const [first] = together;
    if (first !== source) return;
    const changed = together.filter((each) => countOf(changes[each]) > 0);
    if (changed.length === 0) return;
    const reading = (own: Seq): StepReading => ({
      contexts,
      seqOf: (other) => (together.includes(other) ? own : other < source ? upTo : after),
    });
    if (index === undefined) {
      yield* this.#addCoreChanges({ source, change, isWanted }, { add, lost, ...reading(upTo) });
      return;
    }
    // The old and the new rows of the inner query may lead to different core rows, so both states
    // are read.
    const seqs = together.length > 1 ? [after, upTo] : [upTo];
    const core: Row[] = [];
    for (const each of changed) {
      const { added = [], removed = [] } = changes[each] ?? {};
      for (const rows of this.#inParts([...removed, ...added])) {
        for (const seq of seqs) {
          core.push(...this.#alongRoute(each, rows, { ...reading(seq), isWanted }));
        }
        yield;
      }
    }
    for (const some of this.#inParts(this.#coreOf(core))) {
      const before = this.#completed(some, { from: 0, to: index, ...reading(upTo) });
      add(this.#completed(before, { from: index, ...reading(after) }), -1);
      add(this.#completed(before, { from: index, ...reading(upTo) }), 1);
      yield;
    }
  }

  *#addCoreChanges(
    {
      change,
      isWanted,
      source,
    }: Pick<SourceChange, "change" | "source"> & Pick<ChangeRange, "isWanted">,
    { add, lost, ...reading }: FoundChanges & StepReading,
  ): Generator<undefined, void> {
    for (const [rows, weight] of [
      [change.removed, -1],
      [change.added, 1],
    ] as const) {
      for (const some of this.#inParts(rows)) {
        const known = this.#wantedOf(source, some, { ...reading, isWanted });
        try {
          const core = this.#restOfRoute(source, known, reading);
          add(this.#completed(core, { from: 0, ...reading }), weight);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          const partitions = this.#partitionsOf(known).filter((each) => each !== undefined);
          for (const partition of partitions) lost.add(partition);
        }
        yield;
      }
    }
  }

  /**
   * Returns the tuples, as of a seq, that contain the given rows of a source in the core.
   *
   * @throws {CannotFollow} @throws {DatabaseError}
   */
  tuplesOf(
    { access, source }: AccessPlace,
    { isWanted, key, upTo }: Pick<ChangeRange, "isWanted" | "upTo"> & { key: Row },
  ): readonly Row[] {
    const contexts = this.#options.newContexts();
    try {
      const reading: StepReading = { contexts, seqOf: () => upTo };
      this.#rows.beginStep();
      const rows = this.#rows.find(source, { access, key, upTo });
      if (rows.length > TUPLES_MAX) throw new CannotFollow();
      const core = this.#alongRoute(source, rows, { ...reading, isWanted });
      const found = this.#completed(core, { from: 0, ...reading });
      return chosen(found, this.#last(found));
    } finally {
      this.#rows.endStep();
      contexts.close();
    }
  }

  /**
   * Returns the partition of each tuple as a string. It is undefined if a partition value is NULL,
   * because NULL equals no subscriber's value.
   */
  #partitionsOf(tuples: readonly Row[]): readonly (string | undefined)[] {
    return this.#partitionOf(tuples).map((values) => {
      return values.includes(null) ? undefined : textOfRow(values);
    });
  }

  /**
   * Returns the changes to each source. They are reused by the next step between the same seqs.
   *
   * @throws {CannotFollow} if there are too many
   */
  #tableChanges(after: Seq, upTo: Seq): readonly TableChanges[] {
    const known = this.#read;
    const isSame = known?.after === after && known.lastSeq <= upTo && upTo <= known.upTo;
    const changes = isSame ? known.changes : this.#readChanges(after, upTo);
    if (!isSame) {
      const lastSeq = changes === undefined ? upTo : Math.max(after, ...commitSeqsOf(changes));
      this.#read = { after, upTo, lastSeq, changes };
    }
    if (changes === undefined) throw new CannotFollow();
    return changes;
  }

  /**
   * Reads the changes to each source. Sources that mention the same table share its changes.
   * Returns undefined if there are too many changes.
   */
  #readChanges(after: Seq, upTo: Seq): readonly TableChanges[] | undefined {
    const { owners, shape, space, store } = this.#options;
    const known = new Map<string, TableChanges>();
    const all: TableChanges[] = [];
    for (const [source, { isTested, table }] of shape.sources.entries()) {
      const { tableId } = table;
      const ignoresSeq = isTested === true;
      const { columnIds } = defined(
        space.sources[source],
        "maintained join: source has no place in the tuple",
      );
      const owner = owners[source] ?? 0;
      const key = JSON.stringify([tableId, owner, columnIds, ignoresSeq]);
      const range = { tableId, owner, after, upTo, versionsMax: VERSIONS_MAX };
      const found = known.get(key) ?? tableChanges(store, { ...range, columnIds, ignoresSeq });
      if (found === undefined) return undefined;
      known.set(key, found);
      all.push(found);
    }
    return all;
  }

  /**
   * Joins rows of one source with the rows of the core sources, in the partitions that have
   * followers.
   */
  #alongRoute(
    source: number,
    rows: readonly Row[],
    reading: Pick<ChangeRange, "isWanted"> & StepReading,
  ): readonly Row[] {
    return this.#restOfRoute(source, this.#wantedOf(source, rows, reading), reading);
  }

  /**
   * Follows the route from a source until the partition of each tuple is known. Keeps only the
   * tuples in wanted partitions.
   */
  #wantedOf(
    source: number,
    rows: readonly Row[],
    { isWanted, seqOf }: Pick<ChangeRange, "isWanted"> & StepReading,
  ): readonly Row[] {
    const { places, sources } = this.#options.space;
    const { start } = defined(sources[source], "maintained join: source has no place in the tuple");
    const route = defined(this.#routes[source], "maintained join: source has no route");
    const { first, partitionAfter, steps } = route;
    const tuples = rows.map((row) => {
      const tuple: Value[] = Array.from({ length: places.width }, () => null);
      for (const [index, value] of row.entries()) tuple[start + index] = value;
      return tuple;
    });
    const begun = chosen(tuples, first(tuples));
    const known = this.#along(steps.slice(0, partitionAfter), begun, seqOf).tuples;
    const partitions = this.#partitionsOf(known);
    return known.filter((_, index) => {
      const partition = partitions[index];
      return partition !== undefined && isWanted(partition);
    });
  }

  #restOfRoute(
    source: number,
    wanted: readonly Row[],
    { seqOf }: Pick<StepReading, "seqOf">,
  ): readonly Row[] {
    const route = defined(this.#routes[source], "maintained join: source has no route");
    return this.#along(route.steps.slice(route.partitionAfter), wanted, seqOf).tuples;
  }

  *#inParts(rows: readonly Row[]): Generator<readonly Row[]> {
    const size = this.#scans ? 1 : ROWS_PER_PART;
    for (let start = 0; start < rows.length; start += size) yield rows.slice(start, start + size);
  }

  /**
   * Returns the distinct combinations of core rows in the tuples. The columns of all other sources
   * are NULL.
   */
  #coreOf(tuples: readonly Row[]): readonly Row[] {
    const { shape, space } = this.#options;
    const core = space.sources.slice(0, shape.coreCount);
    const end = space.sources[shape.coreCount]?.start ?? space.places.width;
    const found = new Map<string, Row>();
    for (const tuple of tuples) {
      const key = core.map(({ seqPosition }) => Number(tuple[seqPosition])).join();
      if (!found.has(key))
        found.set(
          key,
          tuple.map((value, place) => (place < end ? value : null)),
        );
    }
    return [...found.values()];
  }

  /**
   * Extends tuples with the matching rows of the parts `from` to `to` (exclusive), and drops the
   * tuples that a part excludes.
   */
  #completed(
    tuples: readonly Row[],
    {
      contexts,
      from,
      seqOf,
      to = this.#parts.length,
    }: StepReading & { readonly from: number; readonly to?: number },
  ): readonly Row[] {
    let all = tuples;
    for (const part of this.#parts.slice(from, to)) {
      if (all.length === 0) break;
      if ("run" in part) {
        all = part.run(all, contexts.at(seqOf(part.source)));
        continue;
      }
      const extended = this.#along(part.steps, all, seqOf);
      const matched = new Set(extended.parents);
      switch (part.kind) {
        case "left":
          all = [...extended.tuples, ...all.filter((_, index) => !matched.has(index))];
          break;
        case "semi":
          all = all.filter((_, index) => matched.has(index));
          break;
        case "anti":
          all = all.filter((_, index) => !matched.has(index));
      }
    }
    return all;
  }

  #along(
    steps: readonly CompiledStep[],
    tuples: readonly Row[],
    seqOf: StepReading["seqOf"],
  ): Extended {
    let extended: Extended = { tuples, parents: [...tuples.keys()] };
    for (const step of steps) {
      if (extended.tuples.length === 0) break;
      extended = this.#extended(extended, step, seqOf(step.source));
    }
    return extended;
  }

  #extended({ parents, tuples }: Extended, compiled: CompiledStep, upTo: Seq): Extended {
    const { filter, keys: keysOf, source, step } = compiled;
    const { start } = defined(
      this.#options.space.sources[source],
      "maintained join: source has no place in the tuple",
    );
    const all: { readonly tuples: Row[]; readonly parents: number[] } = { tuples: [], parents: [] };
    let made: Row[] = [];
    let madeParents: number[] = [];
    const keepTested = (): void => {
      for (const at of filter(made)) {
        all.tuples.push(
          defined(made[at], "maintained join: filter returned an index without a tuple"),
        );
        all.parents.push(madeParents[at] ?? 0);
      }
      made = [];
      madeParents = [];
      if (all.tuples.length > TUPLES_MAX) throw new CannotFollow();
    };
    let last: { readonly key: Row; readonly rows: readonly Row[] } | undefined;
    const keys = keysOf(tuples);
    for (let index = 0; index < tuples.length; index += 1) {
      const tuple = tuples[index] ?? [];
      const key = keys[index] ?? [];
      if (key.includes(null)) continue;
      // Tuples derived from the same row often look up the same key in the next source.
      if (last === undefined || !isSameKey(last.key, key)) {
        last = { key, rows: this.#rows.find(source, { access: step.access, key, upTo }) };
      }
      for (const row of last.rows) {
        const longer = tuple.slice();
        for (let at = 0; at < row.length; at += 1) longer[start + at] = row[at] ?? null;
        made.push(longer);
        madeParents.push(parents[index] ?? 0);
      }
      if (made.length > TESTED_TUPLES) keepTested();
    }
    keepTested();
    return all;
  }

  #route(source: number): CompiledRoute {
    const { routes, shape, space } = this.#options;
    const { first, steps: found } = routes.toCore(source, shape);
    const steps = found.map((step) => this.#step(step));
    const terms = shape.partition.map(({ value }) => value);
    let partitionAfter = 0;
    const reached = [source];
    while (routes.conditionsOn(reached, terms).length < terms.length) {
      reached.push(
        defined(
          steps[partitionAfter],
          "maintained join: route does not reach every source of the core",
        ).source,
      );
      partitionAfter += 1;
    }
    return { first: space.places.filter(first), steps, partitionAfter };
  }

  /**
   * Returns the steps that read the rows of a part of the join. The first step also tests the
   * conditions that read only earlier sources.
   */
  #partSteps(options: Parameters<JoinRoutes["route"]>[0]): readonly CompiledStep[] {
    const { conditions, known } = options;
    const early = this.#options.routes.conditionsOn(known, conditions);
    return this.#options.routes
      .route(options)
      .map((step, index) => this.#step(step, index === 0 ? early : []));
  }

  #step(step: RouteStep, early: readonly BoundExpression[] = []): CompiledStep {
    const { places } = this.#options.space;
    const { access, conditions, source } = step;
    this.keepIndexOf({ access, source });
    this.#scans ||= access.isScan === true;
    const filter = places.filter([...early, ...conditions]);
    return { source, step, keys: places.rows(access.keys), filter };
  }
}

function isSameKey(one: Row, other: Row): boolean {
  return one.every((value, index) => value === other[index]);
}

function withLost(partitions: PartitionedChanges, lost: ReadonlySet<string>): PartitionedChanges {
  return new Map([...partitions, ...[...lost].map((partition) => [partition, undefined] as const)]);
}

/** Returns the seqs of the commits that changed the tables, in no particular order. */
function commitSeqsOf(changes: readonly TableChanges[]): readonly number[] {
  const seqs = new Set<number>();
  for (const { commitSeqs } of changes) for (const seq of commitSeqs) seqs.add(seq);
  return [...seqs];
}

function countOf(change: TableChanges | undefined): number {
  return change === undefined ? 0 : change.added.length + change.removed.length;
}
