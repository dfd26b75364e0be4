/**
 * Implements `RANGE BETWEEN x PRECEDING AND y FOLLOWING`: moves a value of the ordering column by
 * an offset.
 */
import {
  addIntervals,
  addNumerics,
  addWhole,
  BIGINT,
  commonType,
  compareValues,
  type DataType,
  DOUBLE,
  INTERVAL,
  type Interval,
  isInteger,
  isNumeric,
  MICROS_PER_DAY,
  NUMERIC,
  NUMERIC_NAN,
  negateInterval,
  negateWhole,
  numericOfSpecial,
  numericSign,
  subtractNumerics,
  TIMESTAMP,
  TIMETZ,
  type Value,
  type Whole,
  zonedTimeOf,
  zonedTimeValue,
} from "../../../types/mod.ts";
import { addToTimestamp } from "./time_math.ts";

/** Defines what an offset means for an ordering column of a given type. */
export interface FrameReach {
  /** The type to which the ordering value is cast. It is also the result type of `step`. */
  readonly keyType: DataType;
  readonly offsetType: DataType;
  /**
   * Returns the value that is `offset` above or below `key`. If an infinite key is moved by an
   * infinite offset towards the opposite infinity, it passes all finite values. The result is then
   * the infinity in the direction of `outward`, so that the frame contains all rows with finite
   * values.
   */
  step(key: Value, offset: Value, ways: { direction: 1 | -1; outward: 1 | -1 }): Value;
  /** Whether an offset is negative or NaN. */
  isNegative(offset: Value): boolean;
}

/**
 * Returns the meaning of offsets for an ordering column, or undefined if values of its type cannot
 * be moved by an offset of the given type.
 */
export function resolveReach(key: DataType, offset: DataType): FrameReach | undefined {
  if (isNumeric(key)) return ofNumbers(key, offset);
  if (offset.kind !== "interval" && offset.kind !== "unknown") return undefined;
  switch (key.kind) {
    case "date":
      return ofSpans(TIMESTAMP, addToTimestamp);
    case "timestamp":
    case "datetime":
      return ofSpans(key, addToTimestamp);
    case "time":
      // The result may exceed 24 hours, because the interval's time part is added without wrapping
      // at midnight.
      return ofSpans(key, (micros, { micros: span }) => addWhole(micros, span));
    case "timetz":
      return {
        keyType: TIMETZ,
        offsetType: INTERVAL,
        isNegative: isNegativeSpan,
        step: (value, span, { direction }) =>
          movedZonedTime(value as string, directed(span as Interval, direction).micros),
      };
    case "interval":
      return {
        keyType: INTERVAL,
        offsetType: INTERVAL,
        isNegative: isNegativeSpan,
        step: (value, span, { direction }) =>
          addIntervals(value as Interval, directed(span as Interval, direction)),
      };
    default:
      return undefined;
  }
}

function ofNumbers(key: DataType, offset: DataType): FrameReach | undefined {
  const type = commonType([key, offset]);
  if (type === undefined || !isNumeric(type)) return undefined;
  if (type.kind === "float" || type.kind === "double") {
    // A number of another type is not converted to the type of the offset.
    if (key.kind !== "float" && key.kind !== "double") return undefined;
    return {
      keyType: DOUBLE,
      offsetType: DOUBLE,
      isNegative: (by) => !((by as number) >= 0),
      step: (value, by, { direction, outward }) => {
        const moved = (value as number) + direction * (by as number);
        return Number.isNaN(moved) && !Number.isNaN(value) ? outward * Infinity : moved;
      },
    };
  }
  if (type.kind === "numeric") {
    return {
      keyType: NUMERIC,
      offsetType: NUMERIC,
      isNegative: (by) => !(numericSign(by as string) >= 0),
      step: (value, by, { direction, outward }) => {
        const moved =
          direction === 1
            ? addNumerics(value as string, by as string)
            : subtractNumerics(value as string, by as string);
        const isLost = moved === NUMERIC_NAN && value !== NUMERIC_NAN;
        return isLost ? numericOfSpecial(outward * Infinity) : moved;
      },
    };
  }
  // A sum beyond the range of the type is not cast back to it. In comparisons, it is beyond every
  // row, which is correct.
  const held = isInteger(type) ? BIGINT : type;
  return {
    keyType: held,
    offsetType: held,
    isNegative: isNegativeNumber,
    step: (value, by, { direction }) =>
      addWhole(value as Whole, direction === 1 ? (by as Whole) : negateWhole(by as Whole)),
  };
}

function ofSpans(keyType: DataType, add: (value: Whole, span: Interval) => Value): FrameReach {
  return {
    keyType,
    offsetType: INTERVAL,
    isNegative: isNegativeSpan,
    step: (value, span, { direction }) =>
      add(value as Whole, directed(span as Interval, direction)),
  };
}

/**
 * The longest useful offset for a time of day with a zone. Any longer offset also moves it past
 * all other times.
 */
const ZONED_SPAN_MAX = 2 * MICROS_PER_DAY;

/**
 * Adds a number of microseconds to a time of day with a zone, without wrapping at midnight. The
 * result may lie before or after all times of day.
 */
function movedZonedTime(value: string, span: number): string {
  const { micros, offset } = zonedTimeOf(value);
  const by = Math.max(-MICROS_PER_DAY, Math.min(ZONED_SPAN_MAX, span));
  const least = offset * 1_000_000 - MICROS_PER_DAY;
  return zonedTimeValue({ micros: Math.max(least, micros + by), offset });
}

function directed(span: Interval, direction: 1 | -1): Interval {
  return direction === 1 ? span : negateInterval(span);
}

const NO_SPAN: Interval = { months: 0, days: 0, micros: 0 };

function isNegativeSpan(value: Value): boolean {
  return compareValues(INTERVAL, value, NO_SPAN) < 0;
}

function isNegativeNumber(value: Value): boolean {
  return (value as Whole) < 0;
}
