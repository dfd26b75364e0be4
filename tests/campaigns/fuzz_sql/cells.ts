/**
 * Converts the cells of all sides to the same text form. `allowed.ts` lists the allowed
 * differences.
 */
import { BINARY_DIGITS, DECIMAL_DIGITS } from "./allowed.ts";

const DAY_MS = 86_400_000;

type Word = string | Readonly<Record<string, unknown>>;

/** Returns the comparable form of a cell from Tidemark. */
export function cellFromWire(cell: unknown, type: Word): string {
  if (cell === null || cell === undefined) return "NULL";
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  if (typeof type !== "string") return "Decimal" in type ? fraction(text, DECIMAL_DIGITS) : text;
  switch (type) {
    case "Boolean":
      return cell === true ? "true" : "false";
    case "Float":
      return singleFraction(text);
    case "Double":
      return fraction(text, BINARY_DIGITS);
    case "Bytes":
      return `\\x${Buffer.from(cell as number[]).toString("hex")}`;
    default:
      return spanOf(text) ?? rangeOf(text) ?? withoutHostLength(text);
  }
}

/**
 * Returns the comparable form of a value that PostgreSQL printed as text.
 * @param type The type that Tidemark reports.
 */
export function cellFromPostgres(text: string | null, type: Word): string {
  if (text === null) return "NULL";
  if (typeof type !== "string") {
    if ("Array" in type && type["Array"] === "Int") return jsonOfIntegers(text);
    return "Decimal" in type ? fraction(text, DECIMAL_DIGITS) : text;
  }
  switch (type) {
    case "Float":
      return singleFraction(text);
    case "Double":
      return fraction(text, BINARY_DIGITS);
    case "Date":
      return String(Date.parse(`${text}T00:00:00Z`) / DAY_MS);
    case "Timestamp":
    case "DateTime":
      return micros(text);
    case "Time":
      return micros(`1970-01-01 ${text}`);
    default:
      return spanOf(text) ?? rangeOf(text) ?? withoutHostLength(text);
  }
}

/**
 * Returns the comparable form of a value that DuckDB returned as JSON.
 * @param type The type that Tidemark reports.
 */
export function cellFromDuckDb(cell: unknown, type: Word): string {
  if (cell === null || cell === undefined) return "NULL";
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  if (typeof type !== "string") return isNumber(type) ? fraction(text, BINARY_DIGITS) : text;
  if (type === "Float") return singleFraction(text);
  if (isNumber(type)) return fraction(text, BINARY_DIGITS);
  return type === "Bytes" ? hexOfBlob(text) : cellFromPostgres(text, type);
}

/** Returns a Tidemark cell rounded for DuckDB, which computes many values in DOUBLE. */
export function roundedCell(text: string, type: Word): string {
  return text !== "NULL" && isNumber(type) ? fraction(text, BINARY_DIGITS) : text;
}

/** Converts an array of integers from PostgreSQL's text form to JSON. */
function jsonOfIntegers(text: string): string {
  return text.replaceAll("{", "[").replaceAll("}", "]").replaceAll("NULL", "null");
}

function isNumber(type: Word): boolean {
  if (typeof type !== "string") return "Decimal" in type;
  return ["SmallInt", "Int", "BigInt", "Float", "Double"].includes(type);
}

const SPAN =
  /^(?!$)(?:(-?\d+) years? ?)?(?:(-?\d+) mons? ?)?(?:(-?\d+) days? ?)?(?:(-?)(\d+):(\d\d):(\d\d(?:\.\d+)?))?$/;

/**
 * Returns the length of an interval in seconds; undefined for any other text. Intervals of the
 * same length are equal, so a query may return either text: 1 day or 24:00:00.
 */
function spanOf(text: string): string | undefined {
  const found = SPAN.exec(text);
  if (found === null) return undefined;
  const [years, months, days] = found.slice(1, 4).map((part) => Number(part ?? 0));
  const [hours, minutes, seconds] = found.slice(5).map((part) => Number(part ?? 0));
  const wholeDays = ((years ?? 0) * 12 + (months ?? 0)) * 30 + (days ?? 0);
  const clock = ((hours ?? 0) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0);
  return `${(wholeDays * 86_400 + (found[4] === "-" ? -clock : clock)).toFixed(6)} s`;
}

/**
 * Returns ranges of numbers without trailing zeros in their bounds; undefined for any other text.
 * Ranges with equal bounds are equal, so a query may return either text.
 */
function rangeOf(text: string): string | undefined {
  if (!/^\{?[[(][^[(]*,.*[\])]\}?$/.test(text)) return undefined;
  return text.replaceAll(/(\.\d*?)0+(?=[,\])])/g, "$1").replaceAll(/\.(?=[,\])])/g, "");
}

/**
 * Removes the mask length of a network that is a single host. Only a cast of an INET to text shows
 * such a mask length.
 */
function withoutHostLength(text: string): string {
  return text.replace(/^([\d.]+)\/32$|^([\da-f:]+)\/128$/, "$1$2");
}

/** In DuckDB's text form, `\x41` represents a byte, and any other character represents itself. */
function hexOfBlob(text: string): string {
  const bytes = text.match(/\\x[0-9A-F]{2}|[^]/g) ?? [];
  const hex = bytes.map((byte) =>
    byte.length > 1
      ? byte.slice(2).toLowerCase()
      : byte.charCodeAt(0).toString(16).padStart(2, "0"),
  );
  return `\\x${hex.join("")}`;
}

function fraction(text: string, digits: number): string {
  const value = Number(text);
  return Object.is(value, -0) ? "0" : String(Number(value.toPrecision(digits)));
}

/**
 * One side prints the fewest digits that identify a 32-bit value and the other prints all digits,
 * so the two round differently.
 */
function singleFraction(text: string): string {
  return fraction(String(Math.fround(Number(text))), BINARY_DIGITS);
}

function micros(text: string): string {
  const [, seconds = "", digits = ""] = /^([\d-]+ [\d:]+)(?:\.(\d+))?(?:\+00)?$/.exec(text) ?? [];
  const wholeMs = Date.parse(`${seconds.replace(" ", "T")}Z`);
  return String(wholeMs * 1000 + Number(digits.padEnd(6, "0")));
}
