/**
 * Casts values between types, in SQL's three contexts:
 *
 *     implicit     where an operator or function needs it; never between text and numbers
 *     assignment   also where a value is written to a column: narrowing, any type to text
 *     explicit     also where the statement requests the cast: CAST, `::`
 *
 * A cast is a function determined by the two types. It is chosen once and applied to values that
 * are not NULL.
 */
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import { type ArrayValue, isArrayValue, mapElements } from "./array_shape.ts";
import { bitsFromText, cutBits } from "./bit_string.ts";
import { castForms } from "./cast_forms.ts";
import { castNumber } from "./cast_number.ts";
import { castTime } from "./cast_time.ts";
import { codePointLength, sliceCodePoints } from "./code_points.ts";
import { keyFormOf } from "./compare.ts";
import {
  type DataType,
  isInteger,
  isNumeric,
  isObjectName,
  isRangeType,
  NUMERIC,
  type RangeType,
  sameRanges,
  sameType,
  typeName,
} from "./data_type.ts";
import { excerpt } from "./excerpt.ts";
import { shortestFloat } from "./float_text.ts";
import { textFromInet } from "./inet_address.ts";
import { valueFromJsonParameter } from "./json_parameter.ts";
import { jsonKindAt, jsonRoot } from "./json_text.ts";
import { canonicalJson } from "./json_tree.ts";
import { refuseName } from "./object_name.ts";
import { rangesOf, valueOfRanges } from "./range.ts";
import { checkDimensions, limitedText, textFromValue, valueFromText } from "./text_form.ts";
import { typeClass } from "./type_class.ts";
import type { RowValue, Value } from "./value.ts";

export type CastMode = "implicit" | "assignment" | "explicit";

/** Casts a single non-NULL value. In a cast to a number or boolean, JSON null becomes NULL. */
export type Caster = (value: Value) => Value;

export interface CastOptions {
  readonly from: DataType;
  readonly to: DataType;
  readonly mode: CastMode;
  /** The statement's time, for `now` and similar words in date and time literals. */
  readonly nowMicros?: number;
}

/**
 * Casts a value that is not NULL.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE, VALUE_TOO_LONG, DIMENSION_MISMATCH;
 * TYPE_MISMATCH if {@linkcode canCast} is false.
 */
export function castValue(value: Value, { from, to, mode, nowMicros }: CastOptions): Value {
  const caster = casterFor(from, to, mode, nowMicros);
  return caster === undefined ? value : caster(value);
}

/**
 * Returns the cast function for hot loops; undefined if the cast leaves all values unchanged.
 *
 * @throws {DatabaseError} The errors of {@linkcode castValue}.
 */
export function casterFor(
  from: DataType,
  to: DataType,
  mode: CastMode,
  nowMicros?: number,
): Caster | undefined {
  const cast = findCast({ from, to, mode, nowMicros });
  if (cast === "same") return undefined;
  if (cast !== undefined) return cast;
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot cast ${typeName(from)} to ${typeName(to)}: there is no ${mode} cast between these ` +
      "types",
  );
}

/**
 * Returns the cast function as {@linkcode casterFor} does, but "same" if values stay unchanged,
 * and undefined if there is no such cast.
 */
export function castBetween(from: DataType, to: DataType, mode: CastMode): FoundCast {
  return findCast({ from, to, mode, nowMicros: undefined });
}

export function canCast(from: DataType, to: DataType, mode: CastMode): boolean {
  return findCast({ from, to, mode, nowMicros: undefined }) !== undefined;
}

interface Wanted {
  readonly from: DataType;
  readonly to: DataType;
  readonly mode: CastMode;
  readonly nowMicros: number | undefined;
}

export type FoundCast = Caster | "same" | undefined;

function findCast(wanted: Wanted): FoundCast {
  const { from, to, mode } = wanted;
  if (from.kind === "unknown") return castUntyped(wanted);
  if (to.kind === "unknown") return "same";
  if (COMPOUND.has(from.kind) || COMPOUND.has(to.kind)) return castCompound(wanted);
  if (from.kind === "embedding" || to.kind === "embedding") {
    const cast = castEmbedding(wanted);
    if (cast !== undefined) return cast;
  }
  if (to.kind === "text") return castToText(from, to.lengthMax, mode);
  if (from.kind === "text") return castFromText(wanted);
  if (from.kind === "enum" || to.kind === "enum") return sameType(from, to) ? "same" : undefined;
  if (isNumeric(from) && isNumeric(to)) return castNumber(from, to, mode);
  const form = castForms(from, to, mode);
  if (form !== undefined) return form;
  if (typeClass(from) === "json") return castFromJson(from, to, mode);
  const time = castTime(from, to, mode);
  if (time !== undefined) return time;
  if (from.kind === to.kind) return "same";
  return mode === "explicit" ? castBoolean(from, to) : undefined;
}

function castBoolean(from: DataType, to: DataType): FoundCast {
  // As in PostgreSQL, INT is the only integer type to which a boolean can be cast.
  if (from.kind === "boolean" && to.kind === "int") return (value) => (value === true ? 1 : 0);
  if (from.kind === "int" && to.kind === "boolean") return (value) => value !== 0;
  return undefined;
}

function castUntyped({ from, to, mode, nowMicros }: Wanted): FoundCast {
  if (to.kind === "unknown") return "same";
  if (to.kind === "text") {
    const { lengthMax } = to;
    if (lengthMax === undefined) return "same";
    return mode === "explicit" ? cutTo(lengthMax) : limitTo(lengthMax);
  }
  if (to.kind === "bit" && mode === "explicit") {
    return (value) => cutBits(to, bitsFromText({ kind: "bit" }, value as string));
  }
  if (from.kind === "unknown" && from.isJson === true) {
    return (value) => valueFromJsonParameter(to, value as string, nowMicros);
  }
  return (value) => valueFromText(to, value as string, nowMicros);
}

function cutTo(lengthMax: number): Caster {
  return (value) => {
    const text = value as string;
    return text.length <= lengthMax || codePointLength(text) <= lengthMax
      ? text
      : sliceCodePoints(text, 0, lengthMax);
  };
}

function limitTo(lengthMax: number): Caster {
  return (value) => limitedText(lengthMax, value as string);
}

function castToText(from: DataType, lengthMax: number | undefined, mode: CastMode): FoundCast {
  if (from.kind !== "text" && mode === "implicit") return undefined;
  const limit =
    lengthMax === undefined
      ? undefined
      : mode === "explicit"
        ? cutTo(lengthMax)
        : limitTo(lengthMax);
  if (from.kind === "text") {
    const fits =
      lengthMax === undefined || (from.lengthMax !== undefined && from.lengthMax <= lengthMax);
    return fits ? "same" : limit;
  }
  const toText: Caster =
    from.kind === "inet"
      ? (value) => textFromInet("cidr", value as string)
      : from.kind === "xml"
        ? // As in PostgreSQL, a cast to text keeps the XML declaration, which the output of a query leaves out.
          (value) => value
        : (value) => textFromValue(from, value);
  if (limit === undefined) return toText;
  return (value) => limit(toText(value));
}

/** The types to which text can be assigned without an explicit cast. */
const WRITTEN_FROM_TEXT: ReadonlySet<string> = new Set([
  "json",
  "uuid",
  "embedding",
  "date",
  "time",
  "timestamp",
  "datetime",
]);

function castFromText({ to, mode, nowMicros }: Wanted): FoundCast {
  if (to.kind === "file") return undefined;
  if (isObjectName(to)) {
    return mode === "explicit" || to.kind === "regclass" ? () => refuseName(to.kind) : undefined;
  }
  if (to.kind === "bit" && mode === "explicit") {
    return (value) => cutBits(to, bitsFromText({ kind: "bit" }, value as string));
  }
  const allowed = mode === "explicit" || (mode === "assignment" && WRITTEN_FROM_TEXT.has(to.kind));
  return allowed ? (value) => valueFromText(to, value as string, nowMicros) : undefined;
}

function castFromJson(from: DataType, to: DataType, mode: CastMode): FoundCast {
  if (to.kind === "file") return from.kind === "file" ? "same" : undefined;
  if (to.kind === "json") {
    const isCanonical = from.kind === "json" && from.binary;
    return to.binary && !isCanonical ? (value) => canonicalJson(value as string) : "same";
  }
  if (mode !== "explicit" || from.kind === "file") return undefined;
  if (to.kind === "boolean") return (value) => scalarFromJson(value as string, "boolean");
  if (!isNumeric(to)) return undefined;
  return (value) => {
    const text = scalarFromJson(value as string, "number");
    return text === null ? null : numberFromJsonText(text as string, to);
  };
}

/**
 * Converts the text of a JSON number to a numeric type. JSON numbers are exact, so they are not
 * converted by way of a double.
 */
function numberFromJsonText(text: string, to: DataType): Value {
  if (!isInteger(to)) return valueFromText(to, text);
  return castValue(valueFromText(NUMERIC, text), { from: NUMERIC, to, mode: "explicit" });
}

const COMPOUND: ReadonlySet<string> = new Set(["array", "row", "range", "multirange"]);

function castCompound(wanted: Wanted): FoundCast {
  const { from, to } = wanted;
  if (isRangeType(to)) return castToRange(wanted, to);
  return from.kind === "array" || to.kind === "array" ? castArray(wanted) : castRow(wanted);
}

function castToRange({ from, mode, nowMicros }: Wanted, to: RangeType): FoundCast {
  if (from.kind === "text") {
    return mode === "explicit"
      ? (value) => valueFromText(to, value as string, nowMicros)
      : undefined;
  }
  if (!isRangeType(from) || !sameRanges(from, to)) return undefined;
  if (from.kind === to.kind) {
    const isTrimmed = to.bound.kind === "numeric" && to.bound.isTrimmed === true;
    return isTrimmed ? (value) => keyFormOf(to, value) : "same";
  }
  if (from.kind === "multirange" || mode !== "explicit") return undefined;
  return (value) => valueOfRanges(to, rangesOf(from, value));
}

function castRow({ from, to, mode, nowMicros }: Wanted): FoundCast {
  if (to.kind === "text") return castToText(from, to.lengthMax, mode);
  if (from.kind !== "row" || to.kind !== "row") return undefined;
  if (from.fields.length !== to.fields.length) return undefined;
  const casts: (Caster | "same")[] = [];
  for (const [index, field] of from.fields.entries()) {
    const wanted = to.fields[index]?.type ?? field.type;
    const cast = findCast({ from: field.type, to: wanted, mode, nowMicros });
    if (cast === undefined) return undefined;
    casts.push(cast);
  }
  if (casts.every((cast) => cast === "same")) return "same";
  return (value) => ({
    cells: (value as RowValue).cells.map((cell, index) => {
      const cast = casts[index] ?? "same";
      return cell === null || cast === "same" ? cell : cast(cell);
    }),
  });
}

function castArray(wanted: Wanted): FoundCast {
  const { from, to, mode, nowMicros } = wanted;
  if (from.kind === "array" && to.kind === "array") {
    const cast = findCast({ from: from.element, to: to.element, mode, nowMicros });
    if (cast === "same" || cast === undefined) return cast;
    return (value) =>
      mapElements(value as ArrayValue, (item) => (item === null ? null : cast(item)));
  }
  if (from.kind === "array") {
    if (to.kind === "embedding") return castEmbedding(wanted);
    return to.kind === "text" ? castToText(from, to.lengthMax, mode) : undefined;
  }
  if (from.kind === "embedding") return castEmbedding(wanted);
  if (from.kind !== "text" || mode !== "explicit") return undefined;
  return (value) => valueFromText(to, value as string, nowMicros);
}

function castEmbedding({ from, to, mode, nowMicros }: Wanted): FoundCast {
  if (from.kind === "embedding" && to.kind === "embedding") {
    if (from.dimensions === to.dimensions) return "same";
    // This call always throws. Its error states the expected number of elements.
    return (value) => {
      checkDimensions(to.dimensions, (value as Float32Array).length);
      return value;
    };
  }
  if (mode === "implicit") return undefined;
  if (from.kind === "array" && to.kind === "embedding") {
    if (!isNumeric(from.element)) return undefined;
    const cast = findCast({ from: from.element, to: { kind: "float" }, mode, nowMicros });
    assert(cast !== undefined, "vector cast: no cast from the element type to real");
    return (value) => embeddingFromArray(value as readonly Value[], to.dimensions, cast);
  }
  if (from.kind === "embedding" && to.kind === "array" && mode === "explicit") {
    const shortest: DataType = { kind: "double" };
    const cast = findCast({ from: shortest, to: to.element, mode, nowMicros });
    if (cast === undefined) return undefined;
    return (value) => {
      const numbers = Array.from(value as Float32Array, shortestFloat);
      return cast === "same" ? numbers : numbers.map(cast);
    };
  }
  return undefined;
}

function embeddingFromArray(
  values: readonly Value[],
  dimensions: number,
  cast: Caster | "same",
): Float32Array {
  checkDimensions(dimensions, values.length);
  return Float32Array.from(values, (value) => {
    if (value === null) {
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot create an embedding: one of the elements is NULL",
      );
    }
    if (isArrayValue(value)) {
      throw new DatabaseError(
        "INVALID_VALUE",
        "Cannot create an embedding: the array has more than one dimension",
      );
    }
    return (cast === "same" ? value : cast(value)) as number;
  });
}

/**
 * Returns the boolean in a JSON document, or the text of its number. JSON null becomes NULL.
 *
 * @throws {DatabaseError} INVALID_VALUE if the document is of any other kind.
 */
function scalarFromJson(text: string, wanted: "boolean" | "number"): Value {
  const root = jsonRoot(text);
  const kind = jsonKindAt(text, root.start);
  if (kind === "null") return null;
  if (kind === wanted) {
    const scalar = text.slice(root.start, root.end);
    return wanted === "boolean" ? scalar === "true" : scalar;
  }
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot cast the JSON value ${excerpt(text)} to a ${wanted}: its JSON type is ${kind}`,
  );
}
