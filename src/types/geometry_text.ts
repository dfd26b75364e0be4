/**
 * Parses geometric values in all forms that PostgreSQL accepts. Most parentheses may be left out,
 * as in `1,2,3,4` for a box.
 */
import { DatabaseError } from "../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../base/limits.ts";
import type { GeometricKind } from "./data_type.ts";
import { excerpt } from "./excerpt.ts";
import { doubleFromText } from "./float_text.ts";
import type { Line, Path, PlanePoint } from "./geometry.ts";
import { shapeValue } from "./geometry.ts";
import { areSamePoint, boxBetween, isZero, lineThrough, slope } from "./geometry_numbers.ts";

const EXAMPLES: Readonly<Record<GeometricKind, string>> = {
  point: "(1,2)",
  lseg: "[(1,2),(3,4)]",
  line: "{1,-1,0}, or two points on it",
  box: "(3,4),(1,2)",
  path: "[(1,2),(3,4)], or ((1,2),(3,4)) if it is closed",
  polygon: "((0,0),(1,0),(1,1))",
  circle: "<(1,2),3>",
};

/**
 * Parses a value of a geometric type.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE, VALUE_TOO_LONG
 */
export function shapeFromText(kind: GeometricKind, text: string): string {
  const reader = new ShapeTextReader(kind, text);
  switch (kind) {
    case "point":
      return shapeValue(
        kind,
        reader.whole(() => reader.point()),
      );
    case "lseg": {
      const [from, to] = reader.whole(() => reader.two(true));
      return shapeValue(kind, { from, to });
    }
    case "line":
      return shapeValue(kind, readLine(reader));
    case "box": {
      const [one, other] = reader.whole(() => reader.two(false));
      return shapeValue(kind, boxBetween(other, one));
    }
    case "path":
      return shapeValue(kind, readPath(reader));
    case "polygon":
      return shapeValue(
        kind,
        reader.whole(() => reader.points(reader.pairCount(), false)),
      );
    case "circle":
      return shapeValue(kind, readCircle(reader));
  }
}

/**
 * Checks that the coefficients define a line.
 * @throws {DatabaseError} INVALID_VALUE
 */
export function checkedLine(line: Line): Line {
  if (!isZero(line.a) || !isZero(line.b)) return line;
  throw new DatabaseError("INVALID_VALUE", "Cannot create a line: A or B must not be 0");
}

/** Returns the line through two points. @throws {DatabaseError} INVALID_VALUE */
export function lineOfPoints(one: PlanePoint, other: PlanePoint): Line {
  if (!areSamePoint(one, other)) return lineThrough(one, slope(one, other));
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot create a line: its two points must be different",
  );
}

function readLine(reader: ShapeTextReader): Line {
  if (!reader.accept("{")) return lineOfPoints(...reader.whole(() => reader.two(true)));
  const line = reader.whole(() => {
    const a = reader.number();
    reader.expect(",");
    const b = reader.number();
    reader.expect(",");
    const c = reader.number();
    reader.expect("}");
    return { a, b, c };
  });
  return checkedLine(line);
}

function readPath(reader: ShapeTextReader): Path {
  const count = reader.pairCount();
  return reader.whole(() => {
    const isEnclosed = reader.isSingle("(") && reader.accept("(");
    const path = reader.points(count, true);
    if (isEnclosed) reader.expect(")");
    return path;
  });
}

function readCircle(reader: ShapeTextReader): { center: PlanePoint; radius: number } {
  return reader.whole(() => {
    const isAngled = reader.accept("<");
    const isEnclosed = isAngled || reader.acceptFirstOfTwo("(");
    const center = reader.point();
    reader.accept(",");
    const radius = reader.number();
    if (radius < 0) throw reader.malformed();
    if (isEnclosed && !reader.accept(">")) reader.expect(")");
    return { center, radius };
  });
}

/** Matches whitespace. */
const BLANK = /[ \t\n\v\f\r]*/y;

/** Each character can match only one part of the pattern, so matching never backtracks. */
const NUMBER = /[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)/iy;

/**
 * Reads the parts of the text from left to right. Whitespace is allowed before and after each
 * part.
 */
class ShapeTextReader {
  readonly #kind: GeometricKind;
  readonly #text: string;
  #at = 0;

  constructor(kind: GeometricKind, text: string) {
    this.#kind = kind;
    this.#text = text;
    this.#skipBlank();
  }

  /** Returns the result of `read`, which must consume the text to its end. */
  whole<T>(read: () => T): T {
    const found = read();
    if (this.#at < this.#text.length) throw this.malformed();
    return found;
  }

  /** Returns the number of points in the text, judging by its commas. */
  pairCount(): number {
    const commas = this.#text.split(",").length - 1;
    if (commas % 2 === 0) throw this.malformed();
    const count = (commas + 1) / 2;
    if (count <= PARTS_OF_TEXT_MAX) return count;
    throw new DatabaseError(
      "VALUE_TOO_LONG",
      `Cannot read the text as a ${this.#kind}: it has more than ${PARTS_OF_TEXT_MAX} points`,
    );
  }

  point(): PlanePoint {
    const isEnclosed = this.accept("(");
    const x = this.number();
    this.expect(",");
    const y = this.number();
    if (isEnclosed) this.expect(")");
    return { x, y };
  }

  /** Reads two points. If `canBeOpen` is set, square brackets may enclose them. */
  two(canBeOpen: boolean): readonly [PlanePoint, PlanePoint] {
    const [one, other] = this.points(2, canBeOpen).points;
    if (one === undefined || other === undefined) throw this.malformed();
    return [one, other];
  }

  /**
   * Reads points. If `canBeOpen` is set, square brackets may enclose them, which makes the path
   * open.
   */
  points(count: number, canBeOpen: boolean): Path {
    const isOpen = this.accept("[");
    if (isOpen && !canBeOpen) throw this.malformed();
    const isEnclosed =
      isOpen || this.acceptFirstOfTwo("(") || (this.isSingle("(") && this.accept("("));
    const points: PlanePoint[] = [];
    for (let i = 0; i < count; i += 1) {
      points.push(this.point());
      this.accept(",");
    }
    if (isEnclosed && !(isOpen && this.accept("]"))) this.expect(")");
    return { isClosed: !isOpen, points };
  }

  number(): number {
    this.#skipBlank();
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (found === null) throw this.malformed();
    this.#at = NUMBER.lastIndex;
    this.#skipBlank();
    return doubleFromText(found[0], "double precision");
  }

  /**
   * If `character` is next, consumes it and the whitespace after it. Returns whether it did so.
   */
  accept(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    this.#skipBlank();
    return true;
  }

  /** Consumes `character` if it is next and occurs once more right after it. */
  acceptFirstOfTwo(character: string): boolean {
    const before = this.#at;
    if (this.accept(character) && this.#text[this.#at] === character) return true;
    this.#at = before;
    return false;
  }

  /** Whether `character` is next and does not occur again later. */
  isSingle(character: string): boolean {
    return this.#text[this.#at] === character && this.#text.lastIndexOf(character) === this.#at;
  }

  expect(character: string): void {
    if (!this.accept(character)) throw this.malformed();
  }

  malformed(): DatabaseError {
    return new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(this.#text)} as ${this.#kind}: expected a value such as ` +
        EXAMPLES[this.#kind],
    );
  }

  #skipBlank(): void {
    BLANK.lastIndex = this.#at;
    BLANK.test(this.#text);
    this.#at = BLANK.lastIndex;
  }
}
