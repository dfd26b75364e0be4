/**
 * Builds the current rows of a live query from its stream: each row replaces the row with the same
 * key, and a deletion removes it. The list is built on demand and stays the same object until a row
 * changes.
 */
import type { SchemaField, SortTerm, WireRow } from "../protocol/mod.ts";
import { type CompareRows, comparerOf, keyOrder, type OrderTerm } from "./row_order.ts";

/** ORDER BY terms or a comparison function; undefined to order by key. */
export type Order<Row> = readonly OrderTerm[] | ((left: Row, right: Row) => number) | undefined;

interface RowsStart {
  /** Whether to discard the rows received so far. */
  readonly isAnew: boolean;
  /**
   * The order defined by the query. It applies unless the application specifies a different order.
   */
  readonly sort?: readonly SortTerm[] | undefined;
}

function termOf({ collation, column, direction, nulls }: SortTerm): OrderTerm {
  return {
    name: column,
    isDescending: direction === "desc",
    areNullsFirst: nulls === "first",
    ...(collation !== undefined && { collation }),
  };
}

interface Held<Row> {
  /** The row as the server sent it. Rows are compared and identified by the cells in this form. */
  readonly sent: WireRow;
  readonly row: Row;
}

export class LiveQueryRows<Row extends object> {
  readonly #order: Order<Row>;
  readonly #held = new Map<string, Held<Row>>();
  #keyColumns: readonly string[] = [];
  #contentColumns: readonly string[] = [];
  #compare: CompareRows = () => 0;
  #list: readonly Row[] | undefined = [];

  constructor(order: Order<Row>) {
    this.#order = order;
  }

  get list(): readonly Row[] {
    this.#list ??= this.#sorted();
    return this.#list;
  }

  /** Sets the columns of the rows received after this call. */
  start(schema: readonly SchemaField[], { isAnew, sort = [] }: RowsStart): void {
    const names = schema.map(({ name }) => name);
    this.#keyColumns = names.filter((_, index) => schema[index]?.flags?.includes("pk") === true);
    this.#contentColumns = names.filter((name) => !name.startsWith("_"));
    const terms = typeof this.#order === "object" ? this.#order : sort.map(termOf);
    this.#compare = comparerOf([...terms, ...keyOrder(schema)], schema);
    if (isAnew) this.clear();
  }

  clear(): void {
    if (this.#held.size === 0) return;
    this.#held.clear();
    this.#list = undefined;
  }

  put(sent: WireRow, row: Row): void {
    this.#held.set(this.#keyOf(sent), { sent, row });
    this.#list = undefined;
  }

  remove(sent: WireRow): void {
    const key = this.#keyColumns.length === 0 ? this.#keyByContent(sent) : this.#keyOf(sent);
    if (key !== undefined && this.#held.delete(key)) this.#list = undefined;
  }

  #sorted(): Row[] {
    const order = this.#order;
    // `toSorted` is not used, because applications may be compiled for targets that lack it.
    // oxlint-disable-next-line unicorn/no-array-sort -- the list is a new one
    const held = [...this.#held.values()].sort((left, right) => {
      const chosen = typeof order === "function" ? order(left.row, right.row) : 0;
      return chosen || this.#compare(left.sent, right.sent);
    });
    return held.map(({ row }) => row);
  }

  /**
   * Returns the key of a row as text. In a STREAM table without a primary key, every row is
   * distinct, so the `_seq` serves as the key.
   */
  #keyOf(row: WireRow): string {
    if (this.#keyColumns.length === 0) return String(row["_seq"]);
    return this.#keyColumns.map((name) => JSON.stringify(row[name])).join();
  }

  /**
   * Finds the row to delete if the table has no key. A deletion then identifies the row by its
   * content, and the oldest row with that content is removed.
   */
  #keyByContent(row: WireRow): string | undefined {
    const wanted = this.#contentOf(row);
    for (const [key, { sent }] of this.#held) if (this.#contentOf(sent) === wanted) return key;
    return undefined;
  }

  #contentOf(row: WireRow): string {
    return JSON.stringify(this.#contentColumns.map((name) => row[name] ?? null));
  }
}
