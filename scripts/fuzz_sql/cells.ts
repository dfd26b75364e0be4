/**
 * One written form for the cells of both sides; `allowed.ts` says where they may differ.
 */
import { BINARY_DIGITS, DECIMAL_DIGITS } from "./allowed.ts";

const DAY_MS = 86_400_000;

type Word = string | Readonly<Record<string, unknown>>;

/** The form of a wire cell. */
export function cellFromWire(cell: unknown, type: Word): string {
  if (cell === null || cell === undefined) return "NULL";
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  if (typeof type !== "string") return "Decimal" in type ? fraction(text, DECIMAL_DIGITS) : text;
  switch (type) {
    case "Boolean":
      return cell === true ? "true" : "false";
    case "Float":
    case "Double":
      return fraction(text, BINARY_DIGITS);
    case "Bytes":
      return `\\x${Buffer.from(cell as number[]).toString("hex")}`;
    default:
      return text;
  }
}

/** The form of a value that PostgreSQL wrote as text, when the other side calls its type so. */
export function cellFromPostgres(text: string | null, type: Word): string {
  if (text === null) return "NULL";
  if (typeof type !== "string") return "Decimal" in type ? fraction(text, DECIMAL_DIGITS) : text;
  switch (type) {
    case "Float":
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
      return text;
  }
}

function fraction(text: string, digits: number): string {
  const value = Number(text);
  return Object.is(value, -0) ? "0" : String(Number(value.toPrecision(digits)));
}

function micros(text: string): string {
  const [, seconds = "", digits = ""] = /^([\d-]+ [\d:]+)(?:\.(\d+))?(?:\+00)?$/.exec(text) ?? [];
  const wholeMs = Date.parse(`${seconds.replace(" ", "T")}Z`);
  return String(wholeMs * 1000 + Number(digits.padEnd(6, "0")));
}
