/**
 * Computes how the rows of a join change between two seqs, from the changes of its tables.
 *
 * The sources change one after another, so that the changes of each are joined with the new rows of
 * the sources before it, and with the old rows of the sources after it:
 *
 *     Δ(A ⋈ B ⋈ C)  =  ΔA ⋈ B old ⋈ C old  +  A new ⋈ ΔB ⋈ C old  +  A new ⋈ B new ⋈ ΔC
 *
 * (Budiu and others, DBSP, 2023.) Rows of other sources are looked up in the store, which still has
 * the old versions, so nothing is kept between two calls. A change of a source of a left, semi or
 * anti join leads back to the rows of the core that it may concern. These are completed twice, with
 * the old and the new rows of that source, and what is equal cancels out.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { ReadStore } from "../../storage/mod.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import type { ChangeRange, JoinChangeSource, JoinChanges } from "../ports/engine.ts";
import { type GroupAccess, type JoinRoutes, type RouteStep } from "./join_routes.ts";
import type { JoinPart, JoinShape } from "./join_shape.ts";
import { CannotFollow } from "./not_maintained.ts";
import { textOfRow } from "./row_text.ts";
import { type SourceKey, SourceRows } from "./source_rows.ts";
import { type TableChanges, tableChanges } from "./table_changes.ts";
import type { TupleFilter, TupleSpace, TupleValues } from "./tuple_space.ts";

/**
 * The maximum number of versions of one table, and of tuples of a join. Above it, evaluating the
 * query again takes less time.
 */
const VERSIONS_MAX = 1000;
const TUPLES_MAX = 20_000;

interface CompiledStep {
  readonly source: number;
  readonly step: RouteStep;
  readonly keys: TupleValues;
  readonly filter: TupleFilter;
}

interface CompiledRoute {
  /** Tests the rows with which the route begins. */
  readonly first: TupleFilter;
  readonly steps: readonly CompiledStep[];
  /** The number of steps after which the partition of a tuple is known. */
  readonly partitionAfter: number;
}

interface CompiledPart {
  readonly kind: JoinPart["kind"];
  readonly steps: readonly CompiledStep[];
}

/** Tuples, each with the index of the tuple that it extends. */
interface Extended {
  readonly tuples: readonly Row[];
  readonly parents: readonly number[];
}

/** Returns the seq at which the rows of a source are read. */
type SeqOf = (source: number) => Seq;

export interface JoinChangesOptions {
  readonly shape: JoinShape;
  readonly routes: JoinRoutes;
  readonly space: TupleSpace;
  readonly store: ReadStore;
  /** The owner of the rows of each source. */
  readonly owners: readonly number[];
}

export class ChangesOfJoin implements JoinChangeSource {
  readonly #options: JoinChangesOptions;
  readonly #rows: SourceRows;
  /** The routes from each source to all sources of the core. */
  readonly #routes: readonly CompiledRoute[];
  readonly #parts: readonly CompiledPart[];
  readonly #partOf: readonly (number | undefined)[];
  readonly #last: TupleFilter;
  readonly #partitionOf: TupleValues;

  /** @throws {NotMaintained} */
  constructor(options: JoinChangesOptions) {
    this.#options = options;
    const { owners, shape, space, store } = options;
    const { coreCount, lastConditions, partition, parts, sources } = shape;
    this.#partitionOf = space.places.values(partition.map(({ value }) => value));
    this.#rows = new SourceRows({ store, places: space.sources, owners });
    const core = Array.from({ length: coreCount }, (_, source) => source);
    this.#partOf = sources.map((_, source) => {
      const index = parts.findIndex((part) => part.sources.includes(source));
      return index < 0 ? undefined : index;
    });
    this.#routes = sources.map((_, source) => this.#route(source));
    let known: readonly number[] = core;
    this.#parts = parts.map(({ conditions, kind, sources: wanted }) => {
      const steps = this.#partSteps({ known, wanted, conditions });
      if (kind === "left") known = [...known, ...wanted];
      return { kind, steps };
    });
    this.#last = space.places.filter(lastConditions);
  }

  /**
   * Returns a line about each source, which says how a change of that source finds the other rows.
   */
  describe(): string[] {
    const { shape } = this.#options;
    const nameOf = (source: number): string => {
      const { table } = defined(shape.sources[source], "a route leads to a source");
      return table.name;
    };
    return shape.sources.map((_, source) => {
      const own = this.#partOf[source];
      const steps = [
        ...defined(this.#routes[source], "each source has a route").steps,
        ...this.#parts.flatMap((part, index) => (index === own ? [] : part.steps)),
      ];
      const found = steps.map(({ step }) => {
        const { index } = step.access;
        return `${nameOf(step.source)} by ${index === undefined ? "its key" : `index ${index.name}`}`;
      });
      const way = found.length === 0 ? "by itself" : `finds ${found.join(", ")}`;
      return `a change of ${nameOf(source)}: ${way}`;
    });
  }

  /**
   * Returns the changes of the partitions that have followers. A tuple may be added and removed
   * again.
   */
  between(range: ChangeRange): ReadonlyMap<string, JoinChanges> | undefined {
    try {
      return this.#between(range);
    } catch (error) {
      // The subsequent evaluations find the rows, or report why they cannot.
      if (error instanceof CannotFollow || error instanceof DatabaseError) return undefined;
      throw error;
    }
  }

  /** @throws {CannotFollow} @throws {DatabaseError} */
  #between({ after, isWanted, upTo }: ChangeRange): ReadonlyMap<string, JoinChanges> {
    const { shape } = this.#options;
    const changes = this.#tableChanges(after, upTo);
    const partitions = new Map<string, { tuples: Row[]; weights: number[]; upTo: Seq }>();
    let count = 0;
    const add = (found: readonly Row[], weight: number): void => {
      const kept = chosen(found, this.#last(found));
      for (const [index, text] of this.#partitionsOf(kept).entries()) {
        if (text === undefined) continue;
        const known = partitions.get(text) ?? { tuples: [], weights: [], upTo };
        partitions.set(text, known);
        known.tuples.push(defined(kept[index], "each tuple has a partition"));
        known.weights.push(weight);
      }
      count += kept.length;
      if (count > TUPLES_MAX) throw new CannotFollow();
    };
    for (const source of shape.sources.keys()) {
      const change = changes[source];
      if (change === undefined || change.added.length + change.removed.length === 0) continue;
      const at = (own: Seq): SeqOf => {
        return (other) => (other === source ? own : other < source ? upTo : after);
      };
      const part = this.#partOf[source];
      if (part === undefined) {
        for (const [rows, weight] of [
          [change.removed, -1],
          [change.added, 1],
        ] as const) {
          const core = this.#alongRoute(source, rows, { seqOf: at(upTo), isWanted });
          add(this.#completed(core, { from: 0, seqOf: at(upTo) }), weight);
        }
        continue;
      }
      const rows = [...change.removed, ...change.added];
      const core = this.#coreOf(this.#alongRoute(source, rows, { seqOf: at(upTo), isWanted }));
      const before = this.#completed(core, { from: 0, to: part, seqOf: at(upTo) });
      add(this.#completed(before, { from: part, seqOf: at(after) }), -1);
      add(this.#completed(before, { from: part, seqOf: at(upTo) }), 1);
    }
    return partitions;
  }

  /**
   * Returns the tuples at a seq that come from some rows of a source of the core.
   *
   * @throws {CannotFollow} @throws {DatabaseError}
   */
  tuplesOf(
    { access, source }: Pick<GroupAccess, "source"> & { access: SourceKey["access"] },
    { isWanted, key, upTo }: Pick<ChangeRange, "isWanted" | "upTo"> & { key: Row },
  ): readonly Row[] {
    const seqOf = (): Seq => upTo;
    const rows = this.#rows.find(source, { access, key, upTo });
    if (rows.length > TUPLES_MAX) throw new CannotFollow();
    const core = this.#alongRoute(source, rows, { seqOf, isWanted });
    const found = this.#completed(core, { from: 0, seqOf });
    return chosen(found, this.#last(found));
  }

  /** Returns the text of the partition of each tuple; undefined for NULL, which equals nothing. */
  #partitionsOf(tuples: readonly Row[]): readonly (string | undefined)[] {
    const columns = this.#partitionOf(tuples);
    return tuples.map((_, index) => {
      const values = columns.map((column) => column[index] ?? null);
      return values.includes(null) ? undefined : textOfRow(values);
    });
  }

  /** Returns the changes of each source. Sources of the same table share them. */
  #tableChanges(after: Seq, upTo: Seq): readonly TableChanges[] {
    const { owners, shape, space, store } = this.#options;
    const known = new Map<string, TableChanges>();
    return shape.sources.map(({ table: { tableId } }, source) => {
      const { columnIds } = defined(space.sources[source], "each source has places");
      const owner = owners[source] ?? 0;
      const key = JSON.stringify([tableId, owner, columnIds]);
      const found =
        known.get(key) ??
        tableChanges(store, { tableId, owner, after, upTo, columnIds, versionsMax: VERSIONS_MAX });
      if (found === undefined) throw new CannotFollow();
      known.set(key, found);
      return found;
    });
  }

  /** Completes rows of a source with rows of the core, in the partitions that have followers. */
  #alongRoute(
    source: number,
    rows: readonly Row[],
    { isWanted, seqOf }: Pick<ChangeRange, "isWanted"> & { seqOf: SeqOf },
  ): readonly Row[] {
    const { places, sources } = this.#options.space;
    const { start } = defined(sources[source], "each source has places");
    const route = defined(this.#routes[source], "each source has a route");
    const { first, partitionAfter, steps } = route;
    const tuples = rows.map((row) => {
      const tuple: Value[] = Array.from({ length: places.width }, () => null);
      for (const [index, value] of row.entries()) tuple[start + index] = value;
      return tuple;
    });
    const begun = chosen(tuples, first(tuples));
    const known = this.#along(steps.slice(0, partitionAfter), begun, seqOf).tuples;
    const partitions = this.#partitionsOf(known);
    const wanted = known.filter((_, index) => {
      const partition = partitions[index];
      return partition !== undefined && isWanted(partition);
    });
    return this.#along(steps.slice(partitionAfter), wanted, seqOf).tuples;
  }

  /** Returns the different combinations of rows of the core, without the rows of other sources. */
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

  /** Adds the rows of parts `from` to `to` (exclusive), or drops tuples as the parts require. */
  #completed(
    tuples: readonly Row[],
    { from, seqOf, to = this.#parts.length }: { from: number; to?: number; seqOf: SeqOf },
  ): readonly Row[] {
    let all = tuples;
    for (const { kind, steps } of this.#parts.slice(from, to)) {
      if (all.length === 0) break;
      const extended = this.#along(steps, all, seqOf);
      const matched = new Set(extended.parents);
      switch (kind) {
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

  #along(steps: readonly CompiledStep[], tuples: readonly Row[], seqOf: SeqOf): Extended {
    let extended: Extended = { tuples, parents: [...tuples.keys()] };
    for (const step of steps) {
      if (extended.tuples.length === 0) break;
      extended = this.#extended(extended, step, seqOf(step.source));
    }
    return extended;
  }

  #extended({ parents, tuples }: Extended, compiled: CompiledStep, upTo: Seq): Extended {
    const { filter, keys: keysOf, source, step } = compiled;
    const { start } = defined(this.#options.space.sources[source], "each source has places");
    const keys = keysOf(tuples);
    const made: Row[] = [];
    const madeParents: number[] = [];
    for (const [index, tuple] of tuples.entries()) {
      const key = keys.map((values) => values[index] ?? null);
      if (key.includes(null)) continue;
      for (const row of this.#rows.find(source, { access: step.access, key, upTo })) {
        const longer = [...tuple];
        for (const [place, value] of row.entries()) longer[start + place] = value;
        made.push(longer);
        madeParents.push(parents[index] ?? 0);
      }
      if (made.length > TUPLES_MAX) throw new CannotFollow();
    }
    const kept = filter(made);
    return { tuples: chosen(made, kept), parents: chosen(madeParents, kept) };
  }

  #route(source: number): CompiledRoute {
    const { routes, shape, space } = this.#options;
    const { first, steps: found } = routes.toCore(source, shape);
    const steps = found.map((step) => this.#step(step));
    const terms = shape.partition.map(({ value }) => value);
    let partitionAfter = 0;
    const reached = [source];
    while (routes.conditionsOn(reached, terms).length < terms.length) {
      reached.push(defined(steps[partitionAfter], "a route reaches the whole core").source);
      partitionAfter += 1;
    }
    return { first: space.places.filter(first), steps, partitionAfter };
  }

  /** Conditions that read only earlier sources also decide whether a row matches. */
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
    const filter = places.filter([...early, ...conditions]);
    return { source, step, keys: places.values(access.keys), filter };
  }
}

function chosen<Each>(all: readonly Each[], indexes: readonly number[]): readonly Each[] {
  if (indexes.length === all.length) return all;
  return indexes.map((index) => defined(all[index], "a filter returns indexes of its tuples"));
}
