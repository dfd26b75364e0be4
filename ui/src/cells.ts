/**
 * Formats cells for reading and copying. On the wire, times are numbers and bytes are lists. Here
 * they become text that SQL accepts. No integer is converted to floating point on the way.
 */
import type { DataTypeWord } from "../../src/protocol/mod.ts";

const NUMERIC: ReadonlySet<string> = new Set(["SmallInt", "Int", "BigInt", "Float", "Double"]);

/** Returns the name of a type in SQL notation. */
export function typeText(type: DataTypeWord): string {
  if (typeof type === "string") return SQL_NAMES[type] ?? type.toUpperCase();
  if ("Decimal" in type) {
    const { precision, scale } = type.Decimal;
    return precision === 0 ? "NUMERIC" : `DECIMAL(${precision},${scale})`;
  }
  if ("Array" in type) return `${typeText(type.Array)}[]`;
  return `EMBEDDING(${type.Embedding})`;
}

const SQL_NAMES: Readonly<Record<string, string>> = { DateTime: "TIMESTAMPTZ" };

export function isNumeric(type: DataTypeWord): boolean {
  return typeof type === "string" ? NUMERIC.has(type) : "Decimal" in type;
}

/** Returns the text of a cell; undefined for NULL. */
export function cellText(cell: unknown, type: DataTypeWord): string | undefined {
  if (cell === null || cell === undefined) return undefined;
  if (typeof type === "object" && "Array" in type && Array.isArray(cell)) {
    return arrayText(cell, type.Array);
  }
  switch (type) {
    case "Timestamp":
      return timestampText(cell, "");
    case "DateTime":
      return timestampText(cell, "Z");
    case "Date":
      return typeof cell === "number" ? isoDate(cell * 86_400_000) : plainText(cell);
    case "Time":
      return typeof cell === "number" ? timeText(cell) : plainText(cell);
    case "Bytes":
      return Array.isArray(cell) ? bytesText(cell as readonly number[]) : plainText(cell);
    default:
      return Array.isArray(cell) ? `[${cell.join(", ")}]` : plainText(cell);
  }
}

/**
 * The maximum number of characters that a cell shows in its column. With a megabyte in each row,
 * the page would become unresponsive.
 */
const LINE_CHARACTERS_MAX = 500;

/** Returns the beginning of a text as a single line, with line breaks marked. */
export function lineText(text: string): string {
  return text.slice(0, LINE_CHARACTERS_MAX).replaceAll(/\r\n|[\r\n\u2028\u2029]/g, "↵");
}

/** Formats a cell that may be any JSON value. Values other than strings are shown as JSON. */
function plainText(cell: unknown): string {
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}

function timestampText(cell: unknown, zone: string): string {
  // Beyond 2^53 microseconds, which Date cannot represent, the cell is a string of digits.
  if (typeof cell !== "number") return plainText(cell);
  const dayMicros = 86_400_000_000;
  const days = Math.floor(cell / dayMicros);
  return `${isoDate(days * 86_400_000)} ${timeText(cell - days * dayMicros)}${zone}`;
}

function isoDate(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : (date.toISOString().split("T")[0] ?? "");
}

function timeText(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = String(micros % 1_000_000)
    .padStart(6, "0")
    .replace(/0+$/, "");
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const text = parts.map((part) => String(part).padStart(2, "0")).join(":");
  return fraction === "" ? text : `${text}.${fraction}`;
}

function arrayText(items: readonly unknown[], type: DataTypeWord): string {
  const isBytes = (item: unknown): boolean =>
    type === "Bytes" && Array.isArray(item) && item.every((byte) => typeof byte === "number");
  const texts = items.map((item) => {
    if (Array.isArray(item) && !isBytes(item)) return arrayText(item, type);
    const text = cellText(item, type);
    if (text === undefined) return "NULL";
    if (text !== "" && !/[{}",\\\s]/.test(text) && text.toUpperCase() !== "NULL") return text;
    return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  });
  return `{${texts.join(",")}}`;
}

function bytesText(bytes: readonly number[]): string {
  return `\\x${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
