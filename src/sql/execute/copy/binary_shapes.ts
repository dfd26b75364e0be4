/**
 * Reads geometric values from binary data, in PostgreSQL's format: the numbers in the order of the
 * text form, 8 bytes each. The points of a path or polygon are preceded by their count, an i32. In
 * a path, the count is preceded by a byte that indicates whether the path is closed.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  boxBetween,
  checkedLine,
  type GeometricKind,
  shapeOfNumbers,
  shapeValue,
} from "../../../types/mod.ts";
import type { CellRange } from "./copy_cells.ts";

/**
 * Reads a geometric value.
 * @throws {DatabaseError} INVALID_VALUE
 */
export function shapeAt(bytes: Buffer, { end, start }: CellRange, kind: GeometricKind): string {
  switch (kind) {
    case "path":
    case "polygon":
      return outlineAt(bytes, { start, end }, kind);
    case "box": {
      const { high, low } = shapeOfNumbers(kind, numbersAt(bytes, { start, end }, kind, 4));
      return shapeValue(kind, boxBetween(low, high));
    }
    case "line":
      return shapeValue(
        kind,
        checkedLine(shapeOfNumbers(kind, numbersAt(bytes, { start, end }, kind, 3))),
      );
    case "circle": {
      const circle = shapeOfNumbers(kind, numbersAt(bytes, { start, end }, kind, 3));
      if (circle.radius < 0) throw refuse(kind, "its radius is negative");
      return shapeValue(kind, circle);
    }
    case "lseg":
      return shapeValue(kind, shapeOfNumbers(kind, numbersAt(bytes, { start, end }, kind, 4)));
    case "point":
      return shapeValue(kind, shapeOfNumbers(kind, numbersAt(bytes, { start, end }, kind, 2)));
  }
}

function outlineAt(bytes: Buffer, { end, start }: CellRange, kind: "path" | "polygon"): string {
  const countAt = kind === "path" ? start + 1 : start;
  const count = countAt + 4 > end ? 0 : bytes.readInt32BE(countAt);
  if (count < 1) throw refuse(kind, "the shape has an invalid number of points");
  const numbers = numbersAt(bytes, { start: countAt + 4, end }, kind, 2 * count);
  if (kind === "polygon") return shapeValue(kind, shapeOfNumbers(kind, numbers));
  return shapeValue(kind, shapeOfNumbers(kind, numbers, bytes[start] !== 0));
}

function numbersAt(
  bytes: Buffer,
  { end, start }: CellRange,
  kind: GeometricKind,
  count: number,
): number[] {
  if (end - start !== 8 * count) {
    throw refuse(kind, `the coordinates take ${end - start} bytes instead of ${8 * count}`);
  }
  return Array.from({ length: count }, (_, at) => bytes.readDoubleBE(start + 8 * at));
}

function refuse(kind: GeometricKind, why: string): DatabaseError {
  return new DatabaseError("INVALID_VALUE", `Cannot read the binary data as a ${kind}: ${why}`);
}
