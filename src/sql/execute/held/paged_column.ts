/**
 * One column of held rows, in pages of a batch each, in the form that its type has in memory:
 *
 *     numbers, dates, booleans   a typed array
 *     texts                      UTF-8, one behind the other
 *     all else                   a list of values; so is a page that met a number beyond 2^53
 *
 * A page never moves once it is full, and a collection of garbage meets a few arrays instead of
 * millions of strings. Lists of a million values took 20 to 40 ms each time one grew or was walked
 * through. With pages a sort of 2 M texts takes two thirds of the time.
 */
import { assert, defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  compareTexts,
  type DataType,
  isTextType,
  physicalKind,
  type RowNumbers,
  slice,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../../types/mod.ts";
import { type NumberForm, NumberPage, type Part, TextPage, ValuePage } from "./held_page.ts";

const PAGE_BITS = 12;
const PAGE_MASK = BATCH_ROWS_MAX - 1;
assert(BATCH_ROWS_MAX === 2 ** PAGE_BITS, "a page is a batch");

type Form = NumberForm | "text" | "any";
type Page = NumberPage | TextPage | ValuePage;

export class PagedColumn {
  readonly #type: DataType;
  readonly #form: Form;
  readonly #pages: Page[] = [];
  /** Whether the order of the type is that of the bytes of its texts. */
  readonly #isByteOrdered: boolean;
  #rowCount = 0;

  constructor(type: DataType) {
    this.#type = type;
    this.#form = formOf(type);
    this.#isByteOrdered = isTextType(type) || type.kind === "unknown";
  }

  /** Returns the bytes that the rows are counted as. */
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
   * The order of two rows that are not NULL by the bytes of their texts; undefined where the type
   * is ordered in another way.
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

  /** Rows up to the end of a page, without a copy. */
  rangeFrom(start: number): Vector {
    const page = this.#pageOf(start).vector();
    const from = start & PAGE_MASK;
    return from === 0 ? page : slice(page, from, page.length);
  }

  /** The rows that `order` names from `start` to `end`. */
  take(order: RowNumbers, start: number, end: number): Vector {
    const form = this.#form;
    if (form === "any" || this.#pages.some((page) => page instanceof ValuePage)) {
      return this.#takeValues(order, start, end);
    }
    if (form === "text") return this.#takeTexts(order, start, end);
    return this.#takeNumbers(new NumberPage(form, end - start), order, start);
  }

  /** Lets go of all rows; those to come may lie where the first of them lay. */
  restart(): void {
    this.#rowCount = 0;
    this.#pages.length = Math.min(1, this.#pages.length);
    if (this.#pages[0]?.restart() === false) this.#pages.length = 0;
  }

  #pageOf(row: number): Page {
    return defined(this.#pages[row >>> PAGE_BITS], "a held row has its page");
  }

  /** The page that a part is appended to, in a form that can hold it. */
  #pageFor(part: Part, held: number): Page {
    const index = this.#rowCount >>> PAGE_BITS;
    if (index === this.#pages.length) this.#pages.push(this.#newPage());
    const page = defined(this.#pages[index], "a page is open");
    if (page.holds(part)) return page;
    const values = new ValuePage();
    if (held > 0) values.append({ vector: page.vector(), start: 0, count: held });
    this.#pages[index] = values;
    return values;
  }

  #newPage(): Page {
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

  /** Fills a page that has room for as many rows as are wanted. */
  #takeNumbers(taken: NumberPage, order: RowNumbers, start: number): Vector {
    const end = start + taken.capacity;
    for (let i = start; i < end; i += 1) {
      const row = order[i] ?? 0;
      const page = this.#pages[row >>> PAGE_BITS];
      assert(page instanceof NumberPage, "numbers are held in pages of numbers");
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
      assert(page instanceof TextPage, "texts are held in pages of texts");
      pages.push(page);
      const range = page.rangeOf(row & PAGE_MASK);
      byteCount += range.end - range.start;
    }
    const taken = new TextPage(byteCount, end - start);
    for (let i = start; i < end; i += 1) {
      taken.copyFrom(defined(pages[i - start], "each row has a page"), (order[i] ?? 0) & PAGE_MASK);
    }
    return taken.vector();
  }
}

function formOf(type: DataType): Form {
  switch (type.kind) {
    case "text":
    case "unknown":
    case "uuid":
    case "json":
    case "file":
      return "text";
    default:
      return physicalKind(type);
  }
}
