/**
 * Cells as people read and copy them. The wire gives times as numbers and bytes as lists; here they
 * become the text that SQL accepts. No integer passes through floating point on the way.
 */
import type { DataTypeWord } from "../../src/protocol/mod.ts";

const NUMERIC: ReadonlySet<string> = new Set(["SmallInt", "Int", "BigInt", "Float", "Double"]);

/** A type as it is written in SQL. */
export function typeText(type: DataTypeWord): string {
  if (typeof type === "string") return SQL_NAMES[type] ?? type.toUpperCase();
  if ("Decimal" in type) return `DECIMAL(${type.Decimal.precision},${type.Decimal.scale})`;
  return `EMBEDDING(${type.Embedding})`;
}

const SQL_NAMES: Readonly<Record<string, string>> = { DateTime: "TIMESTAMPTZ" };

export function isNumeric(type: DataTypeWord): boolean {
  return typeof type === "string" ? NUMERIC.has(type) : "Decimal" in type;
}

/** The text of a cell; undefined for NULL. */
export function cellText(cell: unknown, type: DataTypeWord): string | undefined {
  if (cell === null || cell === undefined) return undefined;
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

/** More of a cell than these no column shows, and a megabyte in each row would stop the page. */
const LINE_CHARACTERS_MAX = 500;

/** The beginning of a text as one line, its breaks marked. */
export function lineText(text: string): string {
  return text.slice(0, LINE_CHARACTERS_MAX).replaceAll(/\r\n|[\r\n\u2028\u2029]/g, "↵");
}

/** A cell is what JSON can hold; what is no scalar is shown as JSON. */
function plainText(cell: unknown): string {
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}

function timestampText(cell: unknown, zone: string): string {
  // Beyond 2^53 microseconds the cell is a string of digits, and beyond what Date can show.
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

function bytesText(bytes: readonly number[]): string {
  return `\\x${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
