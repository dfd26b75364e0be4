/**
 * Finds an order in which rows of some sources of a join can be completed with rows of the other
 * sources. Each source is read by its primary key or an index, with values from conditions `column
 * = value` on the sources before it.
 *
 *     orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id
 *     from i:  o by key (i.order_id),  p by key (i.product_id)
 *     from o:  i by index (o.id),      p by key (i.product_id)
 *
 * If no key or index supports a join, a route may use an in-memory index (`kept_index.ts`). If no
 * condition is an equality, the route reads all rows of a source, provided that there are few.
 *
 * Invariant: a route never scans a large table, so its cost depends on the number of matching
 * rows, not on the size of a table.
 */
import { type IndexEntry, readIndexesOf } from "../../catalog/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnIdsIn, withoutIdleCast } from "../bind/walk.ts";
import { isReadable } from "../plan/index_access.ts";
import { equalitySides } from "./equality_sides.ts";
import type { JoinShape, Source } from "./join_shape.ts";
import type { KeptColumns } from "./kept_index.ts";
import { isKeyType } from "./key_types.ts";
import { NotMaintained } from "./not_maintained.ts";

/** How to look up a source's rows by the values of some of its columns. */
export interface SourceAccess<Value = BoundExpression> {
  /** The index of the store; undefined for the primary key and for an in-memory index. */
  readonly index: IndexEntry | undefined;
  /** The columns of an in-memory index; absent if none is used. */
  readonly kept?: KeptColumns;
  /** Whether all rows of the source are read. */
  readonly isScan?: true;
  /**
   * The values of the leading index columns, or of all columns of the primary key or in-memory
   * index.
   */
  readonly keys: readonly Value[];
}

/**
 * An access path that finds the rows of a group in one of the sources, by some of the GROUP BY
 * keys.
 */
export interface GroupAccess {
  readonly source: number;
  /** The access path. Its `keys` are indexes of GROUP BY keys. */
  readonly access: SourceAccess<number>;
}

export interface RouteStep {
  readonly source: number;
  readonly access: SourceAccess;
  /** The conditions that can be tested as soon as the rows of this source are known. */
  readonly conditions: readonly BoundExpression[];
}

export interface RouteOptions {
  /** The sources of a join whose rows are already known. */
  readonly known: readonly number[];
  /** The sources that the route still has to reach. */
  readonly wanted: readonly number[];
  /** Further sources that a route may pass through on its way to the wanted sources. */
  readonly passable?: readonly number[];
  readonly conditions: readonly BoundExpression[];
  /** Whether the route may use only the store's keys and indexes. */
  readonly isStored?: boolean;
}

/** A condition of a join, and the sources that it reads. */
interface PlacedCondition {
  readonly condition: BoundExpression;
  readonly reads: ReadonlySet<number>;
}

/** The sources whose rows are known, and all conditions of the route. */
interface Reached {
  readonly reached: ReadonlySet<number>;
  readonly conditions: readonly PlacedCondition[];
}

/**
 * How rows are found: by a key or index of the store, by an in-memory index, or by reading all
 * rows.
 */
export type RouteWay = "stored" | "kept" | "scan";

export interface JoinRoutesOptions {
  readonly ways: readonly RouteWay[];
  /** Whether a source has so few rows that a route may read all of them. */
  readonly mayScan: (source: Source) => boolean;
}

/** Finds routes through the sources of a join. */
export class JoinRoutes {
  readonly #sources: readonly Source[];
  readonly #ways: readonly RouteWay[];
  readonly #mayScan: (source: Source) => boolean;
  readonly #sourceOf = new Map<number, number>();

  /**
   * Creates an object that finds routes through the sources of a join.
   * @param options.ways The permitted ways of finding rows, in order of preference.
   */
  constructor({ sources }: Pick<JoinShape, "sources">, { mayScan, ways }: JoinRoutesOptions) {
    this.#sources = sources;
    this.#ways = ways;
    this.#mayScan = mayScan;
    for (const [index, { columns }] of sources.entries()) {
      for (const { id } of columns) this.#sourceOf.set(id, index);
    }
  }

  /** Returns the conditions that read only the given sources. */
  conditionsOn(
    sources: readonly number[],
    conditions: readonly BoundExpression[],
  ): readonly BoundExpression[] {
    const known = new Set(sources);
    return conditions.filter((condition) =>
      [...this.#placed(condition).reads].every((source) => known.has(source)),
    );
  }

  /**
   * Returns a route from known sources to wanted sources.
   * @throws {NotMaintained} if a source could be read only by a scan
   */
  route({
    conditions,
    isStored = false,
    known,
    passable = [],
    wanted,
  }: RouteOptions): readonly RouteStep[] {
    const ways: readonly RouteWay[] = isStored ? ["stored"] : this.#ways;
    const reached = new Set(known);
    const open = new Set(wanted.filter((source) => !reached.has(source)));
    const others = new Set(passable.filter((source) => !reached.has(source)));
    const placed = conditions.map((condition) => this.#placed(condition));
    const isTested = (each: PlacedCondition): boolean =>
      [...each.reads].every((source) => reached.has(source));
    let untested = placed.filter((each) => !isTested(each));
    const steps: RouteStep[] = [];
    while (open.size > 0) {
      const next = ways
        .flatMap((way) => [open, others].map((all) => ({ all, way })))
        .map(({ all, way }) => this.#next(all, { reached, conditions: placed, way }))
        .find((each) => each !== undefined);
      if (next === undefined) throw this.#unreachable(open, ways);
      reached.add(next.source);
      open.delete(next.source);
      others.delete(next.source);
      const tested = untested.filter(isTested);
      untested = untested.filter((each) => !tested.includes(each));
      steps.push({ ...next, conditions: tested.map(({ condition }) => condition) });
    }
    return steps;
  }

  /** Returns the route from a source to all sources of the core. @throws {NotMaintained} */
  toCore(
    source: number,
    { coreConditions, coreCount, parts }: JoinShape,
  ): { readonly steps: readonly RouteStep[]; readonly first: readonly BoundExpression[] } {
    const part = parts.find((each) => each.sources.includes(source));
    const conditions = [...coreConditions, ...(part?.conditions ?? [])];
    const wanted = Array.from({ length: coreCount }, (_, index) => index);
    const passable = part?.sources ?? [];
    return {
      first: this.conditionsOn([source], conditions),
      steps: this.route({ known: [source], wanted, passable, conditions }),
    };
  }

  /** Whether the affected core rows can be found after a change to any source. */
  isComplete(shape: JoinShape): boolean {
    const { coreCount, parts, sources } = shape;
    const known = Array.from({ length: coreCount }, (_, source) => source);
    try {
      for (const source of sources.keys()) this.toCore(source, shape);
      for (const part of parts) {
        const { conditions, kind, sources: wanted } = part;
        this.route({ known, wanted, conditions, ...("query" in part && { isStored: true }) });
        if (kind === "left") known.push(...wanted);
      }
      return true;
    } catch (error) {
      if (!(error instanceof NotMaintained)) throw error;
      return false;
    }
  }

  #unreachable(open: ReadonlySet<number>, ways: readonly RouteWay[]): NotMaintained {
    const names = [...open].map((source) => {
      const { name, namespace } = this.#sources[source]?.table ?? { name: "?", namespace: "?" };
      return `${namespace}.${name}`;
    });
    const reason = `no key or index can find the rows of ${names.join(" or ")} that a change affects`;
    const isLarge = ways.includes("scan");
    return new NotMaintained(isLarge ? `${reason}, and the table is too large to scan` : reason);
  }

  /** Returns the candidate source that has the most selective access path. */
  #next(
    candidates: ReadonlySet<number>,
    { conditions, reached, way }: Reached & { readonly way: RouteWay },
  ): { source: number; access: SourceAccess } | undefined {
    let best: { source: number; access: SourceAccess; rank: number } | undefined;
    for (const source of candidates) {
      const access = this.#accessTo(source, { conditions, reached, way });
      if (access === undefined) continue;
      const rank = access.isScan ? this.#testedAt(source, { conditions, reached }) : rankOf(access);
      if (best === undefined || rank > best.rank) best = { source, access, rank };
    }
    return best;
  }

  #accessTo(
    source: number,
    { conditions, reached, way }: Reached & { readonly way: RouteWay },
  ): SourceAccess | undefined {
    if (way === "scan") {
      const place = this.#sources[source];
      const isPossible = place !== undefined && this.#mayScan(place);
      return isPossible ? { index: undefined, isScan: true, keys: [] } : undefined;
    }
    const values = this.#valuesFor(source, { reached, conditions });
    return way === "kept" ? this.#keptBy(source, values, false) : this.#accessBy(source, values);
  }

  /** Returns the number of conditions that can be tested once the rows of a source are known. */
  #testedAt(source: number, { conditions, reached }: Reached): number {
    return conditions.filter(({ reads }) => {
      return reads.has(source) && [...reads].every((each) => each === source || reached.has(each));
    }).length;
  }

  /**
   * Returns the values that columns of a source must equal, keyed by column id. The values are
   * expressions over the sources already reached.
   */
  #valuesFor(
    source: number,
    { conditions, reached }: Reached,
  ): ReadonlyMap<number, BoundExpression> {
    const values = new Map<number, BoundExpression>();
    for (const { condition } of conditions) {
      const equality = this.#equalityOn(source, condition, reached);
      if (equality !== undefined && !values.has(equality.columnId)) {
        values.set(equality.columnId, equality.value);
      }
    }
    return values;
  }

  /**
   * Returns the access path through an in-memory index; undefined for a table without a primary
   * key, because an in-memory index cannot list its rows.
   */
  #keptBy<Value>(
    source: number,
    values: ReadonlyMap<number, Value>,
    hasNulls: boolean,
  ): SourceAccess<Value> | undefined {
    const { table } = this.#sources[source] ?? {};
    const isPossible = table !== undefined && table.primaryKey.length > 0;
    if (!isPossible || values.size === 0) return undefined;
    const columns = [...values].toSorted(([left], [right]) => left - right);
    return {
      index: undefined,
      kept: { columnIds: columns.map(([columnId]) => columnId), hasNulls },
      keys: columns.map(([, value]) => value),
    };
  }

  /**
   * Returns the most selective access path by the columns in `values`, which is keyed by column
   * id.
   */
  #accessBy<Value>(
    source: number,
    values: ReadonlyMap<number, Value>,
  ): SourceAccess<Value> | undefined {
    const { table } = this.#sources[source] ?? {};
    if (table === undefined || values.size === 0) return undefined;
    const { primaryKey } = table;
    const key = valuesOf(primaryKey, values);
    if (primaryKey.length > 0 && key.length === primaryKey.length) {
      return { index: undefined, keys: key };
    }
    let best: SourceAccess<Value> | undefined;
    for (const index of readIndexesOf(table)) {
      if (!isReadable(index)) continue;
      const keys = valuesOf(index.columnIds, values);
      const access = { index, keys };
      if (keys.length > 0 && (best === undefined || rankOf(access) > rankOf(best))) best = access;
    }
    return best;
  }

  /**
   * Returns the access path that finds the rows of a group in one of the core sources; undefined
   * if only a scan finds them.
   *
   * @param options.mayKeep Whether to use an in-memory index if there is no suitable key or index
   *   of the store.
   */
  groupAccess(
    keys: readonly BoundExpression[],
    { coreCount, mayKeep }: { readonly coreCount: number; readonly mayKeep: boolean },
  ): GroupAccess | undefined {
    let best: GroupAccess | undefined;
    let kept: GroupAccess | undefined;
    for (let source = 0; source < coreCount; source += 1) {
      const values = new Map<number, number>();
      for (const [index, key] of keys.entries()) {
        if (key.kind !== "column" || this.#sourceOf.get(key.column.id) !== source) continue;
        const columnId = key.column.origin?.columnId ?? 0;
        if (columnId > 0) values.set(columnId, index);
      }
      const access = this.#accessBy(source, values);
      const isBetter = best === undefined || (access && rankOf(access) > rankOf(best.access));
      if (access !== undefined && isBetter === true) best = { source, access };
      const listed = mayKeep ? this.#keptBy(source, values, true) : undefined;
      if (listed !== undefined) kept ??= { source, access: listed };
    }
    return best ?? kept;
  }

  /**
   * Returns the column and the value if a condition has the form `column of the source =
   * expression over reached sources`; otherwise undefined.
   */
  #equalityOn(
    source: number,
    condition: BoundExpression,
    reached: ReadonlySet<number>,
  ): { columnId: number; value: BoundExpression } | undefined {
    for (const [side, value] of equalitySides(condition)) {
      const column = withoutIdleCast(side);
      if (column.kind !== "column" || this.#sourceOf.get(column.column.id) !== source) continue;
      const columnId = column.column.origin?.columnId ?? 0;
      if (columnId <= 0 || !isKeyType(column.type)) continue;
      if (this.#isOver(value, reached)) return { columnId, value };
    }
    return undefined;
  }

  #isOver(value: BoundExpression, reached: ReadonlySet<number>): boolean {
    return [...this.#placed(value).reads].every((source) => reached.has(source));
  }

  #placed(condition: BoundExpression): PlacedCondition {
    const reads = new Set<number>();
    for (const id of columnIdsIn(condition)) {
      const source = this.#sourceOf.get(id);
      if (source === undefined)
        throw new NotMaintained(
          "a condition reads a column that the maintained query does not know",
        );
      reads.add(source);
    }
    return { condition, reads };
  }
}

/** Returns the values of the leading columns, up to the first column without a value. */
function valuesOf<Value>(
  columnIds: readonly number[],
  values: ReadonlyMap<number, Value>,
): Value[] {
  const found: Value[] = [];
  for (const columnId of columnIds) {
    const value = values.get(columnId);
    if (value === undefined) break;
    found.push(value);
  }
  return found;
}

function rankOf({ index, kept, keys }: SourceAccess<unknown>): number {
  if (kept !== undefined) return keys.length;
  if (index === undefined) return 100;
  const isWhole = keys.length === index.columnIds.length;
  return (isWhole ? 10 : 0) + (isWhole && index.isUnique ? 50 : 0) + keys.length;
}
