/**
 * Generates the rows of TPC-H from a scale factor and a seed, with the distributions of clause
 * 4.2.3 of its specification but our own random numbers. The results therefore differ from those
 * in the specification, so another engine determines the expected results.
 *
 * Every table has its own random numbers, so that each can be generated without the others. Orders
 * and their lines are generated together, because each depends on the other.
 */
import { type Chance, chanceFromSeed } from "../../support/chance.ts";
import {
  COLORS,
  CONTAINERS,
  commentOf,
  INSTRUCTIONS,
  MODES,
  NATIONS,
  PRIORITIES,
  REGIONS,
  SEGMENTS,
  TYPES,
} from "./words.ts";

export type Cell = string | number;
export type TableName =
  | "region"
  | "nation"
  | "supplier"
  | "part"
  | "partsupp"
  | "customer"
  | "orders"
  | "lineitem";

export interface Made {
  readonly table: TableName;
  readonly row: readonly Cell[];
}

const DAY_MS = 86_400_000;
const START_DAY = Date.UTC(1992, 0, 1) / DAY_MS;
const CURRENT_DAY = Date.UTC(1995, 5, 17) / DAY_MS;
const LAST_ORDER_DAY = Date.UTC(1998, 11, 31) / DAY_MS - 151;
const ADDRESS_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,. ";

interface Sizes {
  readonly suppliers: number;
  readonly parts: number;
  readonly customers: number;
  readonly clerks: number;
}

/**
 * Generates all rows of all tables. The rows of each table are in ascending order of their keys.
 */
export function* rowsOf(scale: number, seed: number): Generator<Made> {
  const sizes: Sizes = {
    suppliers: Math.round(scale * 10_000),
    parts: Math.round(scale * 200_000),
    customers: Math.round(scale * 150_000),
    clerks: Math.max(1, Math.round(scale * 1000)),
  };
  yield* madeNations(chanceFromSeed(seed));
  yield* madeSuppliers(chanceFromSeed(seed + 1), sizes);
  yield* madeParts(chanceFromSeed(seed + 2), sizes);
  yield* madeCustomers(chanceFromSeed(seed + 3), sizes);
  yield* madeOrders(chanceFromSeed(seed + 4), sizes);
}

function* madeNations(chance: Chance): Generator<Made> {
  for (const [key, name] of REGIONS.entries()) {
    yield { table: "region", row: [key, name, commentOf(chance, 31, 115)] };
  }
  for (const [key, [name, region]] of NATIONS.entries()) {
    yield { table: "nation", row: [key, name, region, commentOf(chance, 31, 114)] };
  }
}

/**
 * Generates the suppliers. Five in ten thousand have a complaint in their comment, and five have a
 * recommendation.
 */
function* madeSuppliers(chance: Chance, sizes: Sizes): Generator<Made> {
  const marked = Math.max(1, Math.round(sizes.suppliers / 2000));
  for (let key = 1; key <= sizes.suppliers; key += 1) {
    const nation = chance.below(25);
    const comment = commentOf(chance, 25, 100);
    const isMarked = key % Math.floor(sizes.suppliers / (2 * marked)) === 0;
    const word = chance.below(2) === 0 ? "Complaints" : "Recommends";
    yield {
      table: "supplier",
      row: [
        key,
        `Supplier#${padded(key, 9)}`,
        address(chance),
        nation,
        phone(chance, nation),
        cents(between(chance, -99_999, 999_999)),
        isMarked ? `Customer ${comment.slice(0, 50)} ${word}` : comment,
      ],
    };
  }
}

function* madeParts(chance: Chance, sizes: Sizes): Generator<Made> {
  for (let key = 1; key <= sizes.parts; key += 1) {
    const maker = between(chance, 1, 5);
    yield {
      table: "part",
      row: [
        key,
        colorNames(chance),
        `Manufacturer#${maker}`,
        `Brand#${maker}${between(chance, 1, 5)}`,
        TYPES.map((syllables) => chance.pick(syllables)).join(" "),
        between(chance, 1, 50),
        CONTAINERS.map((syllables) => chance.pick(syllables)).join(" "),
        cents(retailCents(key)),
        commentOf(chance, 5, 22),
      ],
    };
    for (let number = 0; number < 4; number += 1) {
      yield {
        table: "partsupp",
        row: [
          key,
          supplierOf(key, number, sizes.suppliers),
          between(chance, 1, 9999),
          cents(between(chance, 100, 100_000)),
          commentOf(chance, 49, 198),
        ],
      };
    }
  }
}

function* madeCustomers(chance: Chance, sizes: Sizes): Generator<Made> {
  for (let key = 1; key <= sizes.customers; key += 1) {
    const nation = chance.below(25);
    yield {
      table: "customer",
      row: [
        key,
        `Customer#${padded(key, 9)}`,
        address(chance),
        nation,
        phone(chance, nation),
        cents(between(chance, -99_999, 999_999)),
        chance.pick(SEGMENTS),
        commentOf(chance, 29, 116),
      ],
    };
  }
}

/**
 * Generates the orders. A third of the customers have none, and only the first 8 of every 32 keys
 * are used.
 */
function* madeOrders(chance: Chance, sizes: Sizes): Generator<Made> {
  const count = sizes.customers * 10;
  for (let index = 0; index < count; index += 1) {
    const key = Math.floor(index / 8) * 32 + (index % 8) + 1;
    let customer = between(chance, 1, sizes.customers);
    while (customer % 3 === 0) customer = between(chance, 1, sizes.customers);
    const day = between(chance, START_DAY, LAST_ORDER_DAY);
    const lines = linesOf(chance, { key, day, sizes });
    const open = lines.filter(({ isOpen }) => isOpen).length;
    yield {
      table: "orders",
      row: [
        key,
        customer,
        open === 0 ? "F" : open === lines.length ? "O" : "P",
        cents(Math.round(lines.reduce((sum, { total }) => sum + total, 0))),
        dateOf(day),
        chance.pick(PRIORITIES),
        `Clerk#${padded(between(chance, 1, sizes.clerks), 9)}`,
        0,
        commentOf(chance, 19, 78),
      ],
    };
    for (const { row } of lines) yield { table: "lineitem", row };
  }
}

interface Line {
  readonly row: readonly Cell[];
  readonly isOpen: boolean;
  /** The total price of the order, in cents. */
  readonly total: number;
}

function linesOf(
  chance: Chance,
  { day, key, sizes }: { key: number; day: number; sizes: Sizes },
): Line[] {
  return Array.from({ length: between(chance, 1, 7) }, (_, index): Line => {
    const part = between(chance, 1, sizes.parts);
    const supplier = supplierOf(part, chance.below(4), sizes.suppliers);
    const quantity = between(chance, 1, 50);
    const price = quantity * retailCents(part);
    const discount = chance.below(11);
    const tax = chance.below(9);
    const shipDay = day + between(chance, 1, 121);
    const receiptDay = shipDay + between(chance, 1, 30);
    const isOpen = shipDay > CURRENT_DAY;
    const returned = chance.below(2) === 0 ? "R" : "A";
    return {
      isOpen,
      total: (price * (100 + tax) * (100 - discount)) / 10_000,
      row: [
        key,
        part,
        supplier,
        index + 1,
        quantity,
        cents(price),
        cents(discount),
        cents(tax),
        receiptDay <= CURRENT_DAY ? returned : "N",
        isOpen ? "O" : "F",
        dateOf(shipDay),
        dateOf(day + between(chance, 30, 90)),
        dateOf(receiptDay),
        chance.pick(INSTRUCTIONS),
        chance.pick(MODES),
        commentOf(chance, 10, 43),
      ],
    };
  });
}

function between(chance: Chance, min: number, max: number): number {
  return min + chance.below(max - min + 1);
}

function retailCents(part: number): number {
  return 90_000 + (Math.floor(part / 10) % 20_001) + 100 * (part % 1000);
}

/**
 * Returns one of the four suppliers of a part. The parts are distributed evenly over the
 * suppliers.
 */
function supplierOf(part: number, number: number, suppliers: number): number {
  const step = Math.floor(suppliers / 4) + Math.floor((part - 1) / suppliers);
  return ((part + number * step) % suppliers) + 1;
}

/** Returns a part name that consists of five different colors. */
function colorNames(chance: Chance): string {
  const chosen = new Set<string>();
  while (chosen.size < 5) chosen.add(chance.pick(COLORS));
  return [...chosen].join(" ");
}

function address(chance: Chance): string {
  const length = between(chance, 10, 40);
  let text = "a";
  while (text.length < length) text += ADDRESS_LETTERS[chance.below(ADDRESS_LETTERS.length)];
  return text.trimEnd();
}

function phone(chance: Chance, nation: number): string {
  const part = (): number => between(chance, 100, 999);
  return `${nation + 10}-${part()}-${part()}-${between(chance, 1000, 9999)}`;
}

/** Formats a number of cents as a DECIMAL with two decimal places. */
function cents(value: number): string {
  const text = padded(Math.abs(value), 3);
  return `${value < 0 ? "-" : ""}${text.slice(0, -2)}.${text.slice(-2)}`;
}

function padded(value: number, length: number): string {
  return String(value).padStart(length, "0");
}

const dates = new Map<number, string>();

function dateOf(day: number): string {
  let text = dates.get(day);
  if (text === undefined) {
    text = new Date(day * DAY_MS).toISOString().slice(0, 10);
    dates.set(day, text);
  }
  return text;
}
