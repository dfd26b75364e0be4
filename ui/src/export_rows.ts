/**
 * Saves rows as a file in the browser: either as CSV for spreadsheets, with times as text, or as
 * one JSON object per line.
 */
import type { SchemaField } from "../../src/protocol/mod.ts";
import { cellText } from "./cells.ts";

export type ExportFormat = "csv" | "ndjson";

/** The number of rows written per tick. More rows would make the page unresponsive. */
const ROWS_PER_TICK = 5000;

const TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: "text/csv;charset=utf-8",
  ndjson: "application/x-ndjson;charset=utf-8",
};

export async function saveRows(
  rows: readonly (readonly unknown[])[],
  schema: readonly SchemaField[],
  format: ExportFormat,
): Promise<void> {
  const write = format === "csv" ? csvLine : jsonLine;
  const parts = format === "csv" ? [`${schema.map(({ name }) => csvField(name)).join()}\r\n`] : [];
  for (let at = 0; at < rows.length; at += ROWS_PER_TICK) {
    const lines = rows.slice(at, at + ROWS_PER_TICK).map((row) => write(row, schema));
    parts.push(lines.join(""));
    await new Promise((resolve) => setTimeout(resolve));
  }
  const url = URL.createObjectURL(new Blob(parts, { type: TYPES[format] }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `result.${format}`;
  link.click();
  URL.revokeObjectURL(url);
}

function csvLine(row: readonly unknown[], schema: readonly SchemaField[]): string {
  const fields = schema.map(({ data_type: type, index }) => {
    const text = cellText(row[index], type);
    return text === undefined ? "" : csvField(text);
  });
  return `${fields.join()}\r\n`;
}

/**
 * Formats a CSV field. An empty string is quoted, because an unquoted empty field represents NULL.
 */
function csvField(text: string): string {
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function jsonLine(row: readonly unknown[], schema: readonly SchemaField[]): string {
  const cells = schema.map(({ data_type: type, index, name }) => {
    const cell = row[index] ?? null;
    // Values of types that exist in JSON keep their wire form. Times and bytes become text that
    // SQL accepts.
    const isPlain = ["string", "number", "boolean"].includes(typeof cell) && !isTime(type);
    return [name, isPlain || cell === null ? cell : (cellText(cell, type) ?? null)];
  });
  return `${JSON.stringify(Object.fromEntries(cells))}\n`;
}

function isTime(type: SchemaField["data_type"]): boolean {
  return ["Timestamp", "DateTime", "Date", "Time"].some((word) => word === type);
}
