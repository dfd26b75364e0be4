/** Defines operators on dates, times and intervals. */
import {
  addIntervals,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  divideInterval,
  INT,
  INTERVAL,
  type Interval,
  isFiniteDate,
  isInteger,
  isNumeric,
  joinTimestamp,
  makeInterval,
  negateInterval,
  scaleInterval,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMETZ,
  type TypeKind,
  timestampOfDate,
  type Value,
  type Whole,
  zonedTimeOf,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import {
  binaryForm,
  divisionByZero,
  isSpan,
  knownType,
  prefixForm,
} from "../base/operator_form.ts";
import {
  addToDate,
  addToTime,
  addToTimestamp,
  addToZonedTime,
  daysBetween,
  subtractFromTimestamp,
  timestampDifference,
} from "../time/time_math.ts";
import { resolveTimeZone } from "../time/time_zones.ts";

/**
 * The kind of an operand of a date or time operator. Every integer type counts as "int". Together
 * with an interval, every numeric type counts as "number".
 */
type TimeOperand = TypeKind | "number";

export function resolveTime(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  switch (op) {
    case "+":
      return resolveSum(left, right) ?? swapped(resolveSum(right, left));
    case "-":
      return resolveDifference(left, right);
    case "*":
      return resolveProduct(left, right) ?? swapped(resolveProduct(right, left));
    case "/":
      return resolveQuotient(left, right);
    case "AT TIME ZONE": {
      const form = resolveTimeZone(knownType(right, TEXT), left);
      return swapped(form);
    }
    default:
      return undefined;
  }
}

function swapped(form: OperatorForm | undefined): OperatorForm | undefined {
  if (form === undefined) return undefined;
  return {
    operands: form.operands.toReversed(),
    result: form.result,
    evaluate: ([left = null, right = null]) => form.evaluate([right, left]),
  };
}

function isTimestamp(type: DataType): boolean {
  return type.kind === "timestamp" || type.kind === "datetime";
}

function sideOf(type: DataType): TimeOperand {
  return isInteger(type) ? "int" : type.kind;
}

function resolveSum(leftType: DataType, rightType: DataType): OperatorForm | undefined {
  // An untyped literal next to a timestamp or an interval is read as an interval.
  const right = knownType(rightType, INTERVAL);
  const left =
    leftType.kind === "time" || leftType.kind === "interval" || leftType.kind === "timetz"
      ? leftType
      : withoutDigits(leftType);
  switch (`${sideOf(left)}+${sideOf(right)}`) {
    case "date+int":
      return binaryForm([DATE, right], DATE, (days, count) =>
        addToDate(days as number, count as Whole),
      );
    case "date+interval":
      return binaryForm([TIMESTAMP, INTERVAL], TIMESTAMP, plusInterval);
    case "timestamp+interval":
    case "datetime+interval":
      return binaryForm([left, INTERVAL], left, plusInterval);
    case "timestamp+time":
    case "datetime+time":
      return binaryForm([left, INTERVAL], left, plusInterval);
    case "date+time":
      return binaryForm([DATE, right], TIMESTAMP, (days, micros) =>
        isFiniteDate(days as number)
          ? joinTimestamp(days as number, micros as number)
          : timestampOfDate(days as number),
      );
    case "time+interval":
      return binaryForm([TIME, INTERVAL], TIME, (micros, interval) =>
        addToTime(micros as number, interval as Interval),
      );
    case "timetz+interval":
      return binaryForm([TIMETZ, INTERVAL], TIMETZ, (time, interval) =>
        addToZonedTime(time as string, interval as Interval),
      );
    case "date+timetz":
      return binaryForm([DATE, TIMETZ], DATETIME, (days, time) => {
        const { micros, offset } = zonedTimeOf(time as string);
        const start = timestampOfDate(days as number);
        return isFiniteDate(days as number)
          ? joinTimestamp(days as number, micros - offset * 1_000_000)
          : start;
      });
    case "interval+interval":
      return binaryForm([INTERVAL, INTERVAL], INTERVAL, (l, r) =>
        addIntervals(l as Interval, r as Interval),
      );
    default:
      return undefined;
  }
}

function plusInterval(value: Value, interval: Value): Value {
  return addToTimestamp(value as Whole, interval as Interval);
}

/** Returns a date or time type without its precision, because arithmetic keeps all digits. */
function withoutDigits(type: DataType): DataType {
  return type.kind === "timestamp" || type.kind === "datetime" ? { kind: type.kind } : type;
}

function resolveDifference(leftType: DataType, rightType: DataType): OperatorForm | undefined {
  const left = withoutDigits(knownType(leftType, rightType));
  const right = withoutDigits(knownType(rightType, leftType));
  if (isTimestamp(left) && (isTimestamp(right) || right.kind === "date")) {
    return timestampDifferenceForm(left, right);
  }
  if (left.kind === "date" && isTimestamp(right)) return timestampDifferenceForm(right, right);
  switch (`${sideOf(left)}-${sideOf(right)}`) {
    case "date-date":
      return binaryForm([DATE, DATE], INT, (l, r) => daysBetween(l as number, r as number));
    case "date-int":
      return binaryForm([DATE, right], DATE, (days, count) =>
        addToDate(days as number, 0 - Number(count)),
      );
    case "date-time":
    case "date-interval":
      return binaryForm([TIMESTAMP, INTERVAL], TIMESTAMP, minusInterval);
    case "timestamp-time":
    case "datetime-time":
    case "timestamp-interval":
    case "datetime-interval":
      return binaryForm([left, INTERVAL], left, minusInterval);
    case "time-time":
      return binaryForm([TIME, TIME], INTERVAL, (l, r) =>
        makeInterval(0, 0, (l as number) - (r as number)),
      );
    case "time-interval":
      return binaryForm([TIME, INTERVAL], TIME, (micros, interval) =>
        addToTime(micros as number, negateInterval(interval as Interval)),
      );
    case "timetz-interval":
      return binaryForm([TIMETZ, INTERVAL], TIMETZ, (time, interval) =>
        addToZonedTime(time as string, negateInterval(interval as Interval)),
      );
    case "interval-time":
    case "interval-interval":
      return binaryForm([INTERVAL, INTERVAL], INTERVAL, (l, r) =>
        addIntervals(l as Interval, negateInterval(r as Interval)),
      );
    default:
      return undefined;
  }
}

function minusInterval(value: Value, interval: Value): Value {
  return subtractFromTimestamp(value as Whole, interval as Interval);
}

/**
 * Returns the form of the difference between two timestamps. If either operand has a time zone,
 * both are cast to the type with a time zone.
 */
function timestampDifferenceForm(left: DataType, right: DataType): OperatorForm {
  const type: DataType =
    left.kind === "datetime" || right.kind === "datetime" ? { kind: "datetime" } : TIMESTAMP;
  return binaryForm([type, type], INTERVAL, (l, r) => timestampDifference(l as Whole, r as Whole));
}

function resolveProduct(left: DataType, right: DataType): OperatorForm | undefined {
  if (!isSpan(left) || !(isNumeric(right) || right.kind === "unknown")) return undefined;
  return binaryForm([INTERVAL, DOUBLE], INTERVAL, (interval, factor) =>
    scaleInterval(interval as Interval, factor as number),
  );
}

function resolveQuotient(left: DataType, right: DataType): OperatorForm | undefined {
  if (!isSpan(left) || !(isNumeric(right) || right.kind === "unknown")) return undefined;
  return binaryForm([INTERVAL, DOUBLE], INTERVAL, (interval, divisor) => {
    if (divisor === 0) throw divisionByZero();
    return divideInterval(interval as Interval, divisor as number);
  });
}

export function resolveTimePrefix(op: string, type: DataType): OperatorForm | undefined {
  if (type.kind !== "interval") return undefined;
  if (op === "-") return prefixForm(INTERVAL, INTERVAL, (v) => negateInterval(v as Interval));
  return op === "+" ? prefixForm(INTERVAL, INTERVAL, (value) => value) : undefined;
}
