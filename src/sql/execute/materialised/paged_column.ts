/**
 * Stores a column of materialised rows in pages of one batch each, in the in-memory form of the
 * column's type:
 *
 *     numbers, dates, booleans   a typed array
 *     texts                      UTF-8, one after the other
 *     all other types            a list of values, as is a page with a number beyond 2^53
 *
 * A full page never moves, and garbage collection scans a few arrays instead of millions of
 * strings.
 */
import { assert, defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  compareTexts,
  type DataType,
  isStringKind,
  isTextType,
  physicalKind,
  type RowNumbers,
  slice,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../../types/mod.ts";
import {
  type NumberForm,
  NumberPage,
  TextPage,
  ValuePage,
  type VectorPart,
} from "./column_page.ts";

const PAGE_BITS = 12;
const PAGE_MASK = BATCH_ROWS_MAX - 1;
assert(
  BATCH_ROWS_MAX === 2 ** PAGE_BITS,
  "materialised rows: page size differs from the batch size",
);

type ColumnForm = NumberForm | "text" | "any";
type ColumnPage = NumberPage | TextPage | ValuePage;

export class PagedColumn {
  readonly #type: DataType;
  readonly #form: ColumnForm;
  readonly #pages: ColumnPage[] = [];
  /** Whether values of the column's type are ordered by their UTF-8 bytes. */
  readonly #isByteOrdered: boolean;
  #rowCount = 0;

  constructor(type: DataType) {
    this.#type = type;
    this.#form = formOf(type);
    this.#isByteOrdered = isTextType(type) || type.kind === "unknown";
  }

  /** Appends rows. Returns their size as charged to a memory budget. */
  append(vector: Vector, rowCount: number): number {
    let bytes = 0;
    for (let start = 0; start < rowCount; ) {
      const held = this.#rowCount & PAGE_MASK;
      const part = { vector, start, count: Math.min(BATCH_ROWS_MAX - held, rowCount - start) };
      bytes += this.#pageFor(part, held).append(part);
      start += part.count;
      this.#rowCount += part.count;
    }
    return bytes;
  }

  valueAt(row: number): Value {
    return this.#pageOf(row).valueAt(row & PAGE_MASK);
  }

  /**
   * Compares the text of two non-NULL rows byte by byte. Returns undefined if the type is ordered
   * differently.
   */
  compareTexts(left: number, right: number): number | undefined {
    if (!this.#isByteOrdered) return undefined;
    const leftPage = this.#pageOf(left);
    const rightPage = this.#pageOf(right);
    if (!(leftPage instanceof TextPage && rightPage instanceof TextPage)) return undefined;
    const range = leftPage.rangeOf(left & PAGE_MASK);
    return compareTexts(
      leftPage.source,
      range,
      rightPage.source,
      rightPage.rangeOf(right & PAGE_MASK),
    );
  }

  isNullAt(row: number): boolean {
    return this.#pageOf(row).isNullAt(row & PAGE_MASK);
  }

  /**
   * Returns the rows from `start` to the end of the page that contains it, without copying them.
   */
  rangeFrom(start: number): Vector {
    const page = this.#pageOf(start).vector();
    const from = start & PAGE_MASK;
    return from === 0 ? page : slice(page, from, page.length);
  }

  /** Returns the rows listed in `order` from entry `start` (inclusive) to `end` (exclusive). */
  take(order: RowNumbers, start: number, end: number): Vector {
    const form = this.#form;
    if (form === "any" || this.#pages.some((page) => page instanceof ValuePage)) {
      return this.#takeValues(order, start, end);
    }
    if (form === "text") return this.#takeTexts(order, start, end);
    return this.#takeNumbers(new NumberPage(form, end - start), order, start);
  }

  /** Releases all rows, keeping the memory of the first page for reuse. */
  restart(): void {
    this.#rowCount = 0;
    this.#pages.length = Math.min(1, this.#pages.length);
    if (this.#pages[0]?.restart() === false) this.#pages.length = 0;
  }

  #pageOf(row: number): ColumnPage {
    return defined(this.#pages[row >>> PAGE_BITS], "materialised rows: row has no page");
  }

  /**
   * Returns a page with a representation that can store the values of a vector, so that they can
   * be appended to it.
   */
  #pageFor(part: VectorPart, held: number): ColumnPage {
    const index = this.#rowCount >>> PAGE_BITS;
    if (index === this.#pages.length) this.#pages.push(this.#newPage());
    const page = defined(this.#pages[index], "materialised rows: page has not been opened");
    if (page.holds(part)) return page;
    const values = new ValuePage();
    if (held > 0) values.append({ vector: page.vector(), start: 0, count: held });
    this.#pages[index] = values;
    return values;
  }

  #newPage(): ColumnPage {
    switch (this.#form) {
      case "any":
        return new ValuePage();
      case "text": {
        const before = this.#pages.at(-1);
        return new TextPage(before instanceof TextPage ? before.byteCount : 0);
      }
      default:
        return new NumberPage(this.#form);
    }
  }

  #takeValues(order: RowNumbers, start: number, end: number): Vector {
    const values: Value[] = Array.from({ length: end - start });
    for (let i = start; i < end; i += 1) values[i - start] = this.valueAt(order[i] ?? 0);
    return vectorFromValues(this.#type, values);
  }

  /** Copies the requested rows to a page that is large enough. */
  #takeNumbers(taken: NumberPage, order: RowNumbers, start: number): Vector {
    const end = start + taken.capacity;
    for (let i = start; i < end; i += 1) {
      const row = order[i] ?? 0;
      const page = this.#pages[row >>> PAGE_BITS];
      assert(
        page instanceof NumberPage,
        "materialised rows: numeric column contains a page of another kind",
      );
      taken.copyFrom(page, row & PAGE_MASK);
    }
    return taken.vector();
  }

  #takeTexts(order: RowNumbers, start: number, end: number): Vector {
    const pages: TextPage[] = [];
    let byteCount = 0;
    for (let i = start; i < end; i += 1) {
      const row = order[i] ?? 0;
      const page = this.#pages[row >>> PAGE_BITS];
      assert(
        page instanceof TextPage,
        "materialised rows: text column contains a page of another kind",
      );
      pages.push(page);
      const range = page.rangeOf(row & PAGE_MASK);
      byteCount += range.end - range.start;
    }
    const taken = new TextPage(byteCount, end - start);
    for (let i = start; i < end; i += 1) {
      taken.copyFrom(
        defined(pages[i - start], "materialised rows: row has no page"),
        (order[i] ?? 0) & PAGE_MASK,
      );
    }
    return taken.vector();
  }
}

function formOf(type: DataType): ColumnForm {
  const isText = type.kind === "unknown" || isStringKind(type.kind);
  return isText ? "text" : physicalKind(type);
}
