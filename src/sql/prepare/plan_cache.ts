/**
 * The plan cache. The literals of a statement are lifted out of its SQL, so that a single plan
 * serves `VALUES ('hello', 3)` with any literals. The plans of statements that do not take the
 * fast path, such as statements in an open transaction, are cached under their entire SQL.
 *
 * A plan is valid for an SQL text, the types of its parameters, the namespace for unqualified
 * names, and one version of the catalog. It depends on the caller only through the policies that
 * apply: all callers to whom the same policies apply share a plan. The least recently used SQL is
 * evicted first. The size of the cache is limited in bytes, which are estimated from the length of
 * the SQL, because a plan grows with its statement.
 */
import type { Principal } from "../../auth/mod.ts";
import { putNewest } from "../../base/newest.ts";
import type { Catalog } from "../../catalog/mod.ts";
import {
  type DataType,
  typeName,
  type Value,
  valueFromNumberText,
  wholeFromBigint,
} from "../../types/mod.ts";
import {
  type NormalizedStatement,
  normalizeStatement,
  type SlotLiteral,
} from "../parse/text/normalize.ts";
import { hasSameRows } from "../rights/requirements.ts";
import { fitsCache, planBytesOf } from "./plan_size.ts";
import type { Prepared } from "./prepared.ts";

/**
 * The maximum number of SQL texts whose cache keys are remembered, and the maximum length of such
 * a text.
 */
const REMEMBERED_TEXTS_MAX = 1000;
const REMEMBERED_LENGTH_MAX = 2048;

export interface CacheKey {
  readonly text: string;
  readonly normalized: NormalizedStatement;
}

interface CachedPlans {
  readonly catalogVersion: number;
  /**
   * The plans for the same SQL, oldest first. Each is for a different set of policies that apply.
   */
  readonly plans: readonly CachedPlan[];
}

interface CachedPlan {
  readonly prepared: Prepared;
  /**
   * The numbers of the parameters that the statement uses; present if the plan is cached under its
   * entire SQL.
   */
  readonly usedParameters?: readonly number[];
}

/** The entire SQL of a request, and everything else on which its plan depends. */
export interface WholeText {
  readonly sql: string;
  readonly namespace: string;
  readonly types: readonly DataType[];
}

/** A plan cached under the entire SQL of a request. */
export type TextPlan = Required<CachedPlan>;

/** The maximum length of an SQL text whose plan is cached under the entire text. */
const WHOLE_LENGTH_MAX = 4096;

/**
 * The maximum number of plans for the same SQL. A few are enough, because the policies that apply
 * usually differ only by the caller's role.
 */
const PLANS_OF_TEXT_MAX = 4;

/**
 * The cache key found when an SQL text was last looked up, and the values on which the key
 * depends.
 */
interface RememberedKey {
  readonly namespace: string;
  readonly types: readonly DataType[];
  readonly key: CacheKey;
}

export class PlanCache {
  readonly #catalog: Catalog;
  readonly #bytesMax: number;
  readonly #entries = new Map<string, CachedPlans>();
  #bytes = 0;
  /**
   * The cache key of each remembered SQL text, keyed by the unchanged text. A statement with
   * parameters has the same text every time, so it need not be normalised again.
   */
  readonly #remembered = new Map<string, RememberedKey>();

  /**
   * Creates an empty cache.
   *
   * @param bytesMax The maximum estimated memory of all plans together.
   */
  constructor(catalog: Catalog, bytesMax: number) {
    this.#catalog = catalog;
    this.#bytesMax = bytesMax;
  }

  /** The estimated memory of all cached plans. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns the cache key of an SQL text that is a single statement worth caching; undefined for
   * any other text.
   */
  keyOf(
    sql: string,
    { namespace, types }: { namespace: string; types: readonly DataType[] },
  ): CacheKey | undefined {
    const known = this.#remembered.get(sql);
    if (known?.namespace === namespace && areSameTypes(known.types, types)) return known.key;
    const normalized = normalizeStatement(sql);
    if (normalized === undefined || !isBlank(sql, normalized.next)) return undefined;
    const key = { text: `${textOf(namespace, types)}${normalized.key}`, normalized };
    if (normalized.literals.length === 0) this.#remember(sql, { namespace, types, key });
    return key;
  }

  /** Returns the cached plan that is valid under the policies that apply to a caller. */
  get({ text }: CacheKey, principal: Principal): Prepared | undefined {
    return this.#planOf(text, principal)?.prepared;
  }

  /**
   * Returns the plan that is cached under the entire SQL and valid under the policies that apply
   * to a caller.
   */
  ofText(whole: WholeText, principal: Principal): TextPlan | undefined {
    if (whole.sql.length > WHOLE_LENGTH_MAX) return undefined;
    const { prepared, usedParameters } = this.#planOf(wholeKeyOf(whole), principal) ?? {};
    return prepared && usedParameters && { prepared, usedParameters };
  }

  setText(whole: WholeText, plan: TextPlan, principal: Principal): void {
    if (whole.sql.length <= WHOLE_LENGTH_MAX) this.#put(wholeKeyOf(whole), plan, principal);
  }

  #planOf(text: string, principal: Principal): CachedPlan | undefined {
    const entry = this.#entries.get(text);
    if (entry === undefined || entry.catalogVersion !== this.#catalog.version) return undefined;
    const plan = this.#planFor(principal, entry);
    if (plan === undefined) return undefined;
    const { prepared } = plan;
    if (prepared.kind === "query" && prepared.isOutgrown()) return undefined;
    // A Map keeps the order of insertion, and the first entry is evicted first. Inserting an entry
    // again makes it the most recent entry.
    if (this.#bytes > this.#bytesMax / 2) {
      this.#entries.delete(text);
      this.#entries.set(text, entry);
    }
    return plan;
  }

  set({ text }: CacheKey, prepared: Prepared, principal: Principal): void {
    this.#put(text, { prepared }, principal);
  }

  #put(text: string, plan: CachedPlan, principal: Principal): void {
    const planBytes = planBytesOf(text.length);
    const before = this.#entries.get(text);
    if (before !== undefined) this.#remove(text, before);
    if (!fitsCache(planBytes, { bytesMax: this.#bytesMax })) return;
    const { version } = this.#catalog;
    // The new plan replaces an earlier plan for the same policies.
    const others = before?.catalogVersion === version ? before.plans : [];
    const kept = others.filter((each) => !this.#isFor(principal, each));
    const plans = [...kept, plan].slice(-PLANS_OF_TEXT_MAX);
    this.#entries.set(text, { catalogVersion: version, plans });
    this.#bytes += plans.length * planBytes;
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#remove(oldest, entry);
    }
  }

  #planFor(principal: Principal, { plans }: CachedPlans): CachedPlan | undefined {
    for (const plan of plans) if (this.#isFor(principal, plan)) return plan;
    return undefined;
  }

  #isFor(principal: Principal, { prepared }: CachedPlan): boolean {
    return hasSameRows(prepared.requirements, principal, this.#catalog);
  }

  #remove(text: string, { plans }: CachedPlans): void {
    this.#entries.delete(text);
    this.#bytes -= plans.length * planBytesOf(text.length);
  }

  #remember(sql: string, remembered: RememberedKey): void {
    if (sql.length > REMEMBERED_LENGTH_MAX) return;
    putNewest(this.#remembered, [sql, remembered], REMEMBERED_TEXTS_MAX);
  }
}

function textOf(namespace: string, types: readonly DataType[]): string {
  let text = `${namespace}\u0000`;
  for (const type of types) text += `${typeName(type)},`;
  return `${text}\u0000`;
}

/**
 * Returns the cache key for an entire SQL text. It differs from every key of a text whose literals
 * have been lifted out.
 */
function wholeKeyOf({ namespace, sql, types }: WholeText): string {
  return `\u0001${textOf(namespace, types)}${sql}`;
}

function areSameTypes(some: readonly DataType[], others: readonly DataType[]): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i += 1) if (some[i] !== others[i]) return false;
  return true;
}

/** Returns the values of the lifted literals, in slot order. */
export function literalValues(literals: readonly SlotLiteral[]): Value[] {
  return literals.map(({ kind, text }) => {
    switch (kind) {
      case "integer":
        return Number(text);
      case "bigint":
        return wholeFromBigint(BigInt(text));
      case "numeric":
        return valueFromNumberText(text)?.value ?? null;
      case "string":
        return text;
    }
  });
}

function isBlank(text: string, from: number): boolean {
  for (let i = from; i < text.length; i += 1) if (text.charCodeAt(i) > 32) return false;
  return true;
}
