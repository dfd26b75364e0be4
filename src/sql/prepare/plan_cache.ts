/**
 * Plans by text: the literals of a statement are lifted out of its text, so that one plan serves
 * `VALUES ('hello', 3)` with ever-new literals.
 *
 * A plan fits a text, the types of its parameters, the namespace of unqualified names, and one
 * version of the catalog. It knows no caller. The least recently used plan goes first.
 */
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
import type { Prepared } from "./prepared.ts";

/** Plans kept. Each holds compiled expressions, some kilobytes in all. */
const PLANS_MAX = 2000;

/** Texts without literals whose keys are remembered, and how long one may be. */
const REMEMBERED_TEXTS_MAX = 1000;
const REMEMBERED_LENGTH_MAX = 2048;

/** Characters of their texts together: what a plan holds grows with its text. */
const TEXT_LENGTH_MAX: number = 2 * 1024 * 1024;

export interface CacheKey {
  readonly text: string;
  readonly normalized: NormalizedStatement;
}

interface Entry {
  readonly catalogVersion: number;
  readonly prepared: Prepared;
}

/** The key of a text that was asked for last, and with what. */
interface RememberedKey {
  readonly namespace: string;
  readonly types: readonly DataType[];
  readonly key: CacheKey;
}

export class PlanCache {
  readonly #catalog: Catalog;
  readonly #entries = new Map<string, Entry>();
  /**
   * By text as it came. What brings its values as parameters comes again letter by letter, and is
   * then not read again.
   */
  readonly #remembered = new Map<string, RememberedKey>();
  #textLength = 0;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  /** The key of a text that is one statement worth a plan; undefined for all others. */
  keyOf(
    sql: string,
    { namespace, types }: { namespace: string; types: readonly DataType[] },
  ): CacheKey | undefined {
    const known = this.#remembered.get(sql);
    if (known?.namespace === namespace && areSameTypes(known.types, types)) return known.key;
    const normalized = normalizeStatement(sql);
    if (normalized === undefined || !isBlank(sql, normalized.next)) return undefined;
    let text = `${namespace}\u0000`;
    for (const type of types) text += `${typeName(type)},`;
    const key = { text: `${text}\u0000${normalized.key}`, normalized };
    if (normalized.literals.length === 0) this.#remember(sql, { namespace, types, key });
    return key;
  }

  get({ text }: CacheKey): Prepared | undefined {
    const entry = this.#entries.get(text);
    if (entry === undefined || entry.catalogVersion !== this.#catalog.version) return undefined;
    if (entry.prepared.kind === "query" && entry.prepared.isOutgrown()) return undefined;
    // Behind the others: a Map keeps the order of insertion, and the first goes first.
    if (this.#entries.size > PLANS_MAX / 2 || this.#textLength > TEXT_LENGTH_MAX / 2) {
      this.#entries.delete(text);
      this.#entries.set(text, entry);
    }
    return entry.prepared;
  }

  set({ text }: CacheKey, prepared: Prepared): void {
    if (this.#entries.delete(text)) this.#textLength -= text.length;
    this.#entries.set(text, { catalogVersion: this.#catalog.version, prepared });
    this.#textLength += text.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= PLANS_MAX && this.#textLength <= TEXT_LENGTH_MAX) break;
      this.#entries.delete(oldest);
      this.#textLength -= oldest.length;
    }
  }

  #remember(sql: string, remembered: RememberedKey): void {
    if (sql.length > REMEMBERED_LENGTH_MAX) return;
    putNewest(this.#remembered, [sql, remembered], REMEMBERED_TEXTS_MAX);
  }
}

function areSameTypes(some: readonly DataType[], others: readonly DataType[]): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i += 1) if (some[i] !== others[i]) return false;
  return true;
}

/** The values of lifted literals, in slot order. */
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
