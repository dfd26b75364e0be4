/**
 * Reads and assigns the parts of a geometric value to which subscripts refer: the coordinates of a
 * point, the coefficients of a line, the ends of a segment, the corners of a box. Subscripts count
 * from 0.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type DataType,
  DOUBLE,
  type GeometricKind,
  numbersOfShape,
  POINT,
  shapeFromText,
  shapeOfNumbers,
  shapeValue,
  type Value,
} from "../../../types/mod.ts";

/** The result type of a subscript, keyed by geometric type. */
const COORDINATES: ReadonlyMap<string, DataType> = new Map<string, DataType>([
  ["point", DOUBLE],
  ["line", DOUBLE],
  ["lseg", POINT],
  ["box", POINT],
]);

/** Returns the type of the parts of a geometric type; undefined if the type has no subscripts. */
export function coordinateType({ kind }: DataType): DataType | undefined {
  return COORDINATES.get(kind);
}

/** Returns the part of a shape at a subscript; NULL if the subscript is out of range. */
export function coordinateAt(type: DataType, value: Value, position: number): Value {
  const numbers = numbersOfShape(value);
  if (type.kind === "double") return numbers[position] ?? null;
  const [x, y] = [numbers[2 * position], numbers[2 * position + 1]];
  return x === undefined || y === undefined ? null : shapeValue("point", { x, y });
}

/**
 * Returns a copy of the shape in which one part is replaced. A NULL shape stays NULL, and a NULL
 * part changes nothing.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function withCoordinate(
  kind: GeometricKind,
  shape: Value,
  { part, position }: { readonly part: Value; readonly position: Value },
): Value {
  if (position === null) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot assign to a part of a ${kind}: its position is NULL`,
    );
  }
  if (shape === null || part === null) return shape;
  const numbers = numbersOfShape(shape);
  const replaced = typeof part === "number" ? [part] : numbersOfShape(part);
  const at = Number(position) * replaced.length;
  if (at < 0 || at >= numbers.length) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot assign to position ${Number(position)} of a ${kind}: its positions are 0 to ${numbers.length / replaced.length - 1}`,
    );
  }
  numbers.splice(at, replaced.length, ...replaced);
  // Converting the shape to text and back keeps the corners of a box in order, and rejects
  // coefficients that do not describe a line.
  return shapeFromText(kind, shapeValue(kind, shapeOfNumbers(kind, numbers)));
}
