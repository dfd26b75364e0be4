/** Defines operators on log positions (PG_LSN), and the comparison of an XID with an integer. */

import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  INT,
  isFiniteNumeric,
  isInteger,
  isNumeric,
  NUMERIC,
  numberOfUnsigned,
  numericFromText,
  PG_LSN,
  roundNumeric,
  textFromNumeric,
  unsignedValue,
  type Value,
  XID,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";

export function resolveUnsigned(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (left.kind === "xid" && isInteger(right)) return transactionTest(op);
  const isLeft = left.kind === "pg_lsn";
  const isRight = right.kind === "pg_lsn";
  const isDistance =
    op === "-" && (isRight ? isLeft || left.kind === "unknown" : right.kind === "unknown");
  if (isDistance && (isLeft || isRight)) return binaryForm([PG_LSN, PG_LSN], NUMERIC, distance);
  if (op === "+" && isRight && isCount(left)) {
    return binaryForm([NUMERIC, PG_LSN], PG_LSN, (count, position) => moved(position, count, 1n));
  }
  if (!isLeft || !isCount(right) || (op !== "+" && op !== "-")) return undefined;
  const sign = op === "+" ? 1n : -1n;
  return binaryForm([PG_LSN, NUMERIC], PG_LSN, (position, count) => moved(position, count, sign));
}

function isCount(type: DataType): boolean {
  return isNumeric(type) && type.kind !== "float" && type.kind !== "double";
}

function transactionTest(op: string): OperatorForm | undefined {
  if (op !== "=" && op !== "<>" && op !== "!=") return undefined;
  return binaryForm([XID, INT], BOOLEAN, (transaction, number) => {
    const isSame = Number(numberOfUnsigned(transaction as string)) === (number as number) >>> 0;
    return isSame === (op === "=");
  });
}

/** Returns the number of bytes from one log position to another. */
export function distance(left: Value, right: Value): Value {
  const bytes = numberOfUnsigned(left as string) - numberOfUnsigned(right as string);
  return defined(
    numericFromText(bytes.toString()),
    "log position difference: result does not parse as NUMERIC",
  );
}

function moved(position: Value, count: Value, sign: bigint): Value {
  return positionOf(numberOfUnsigned(position as string) + sign * bytesOf(count as string));
}

/** Converts a number of bytes to a log position. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function positionOfNumber(count: Value): Value {
  return positionOf(bytesOf(count as string));
}

function positionOf(bytes: bigint): Value {
  const position = unsignedValue("pg_lsn", bytes);
  if (position !== undefined) return position;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot compute the position: the result is outside the range of pg_lsn",
  );
}

/** The number of decimal digits of 2^64. A byte count with more digits is always out of range. */
const COUNT_DIGITS = 20;

function bytesOf(count: string): bigint {
  if (!isFiniteNumeric(count)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot compute with ${textFromNumeric(count)} as a number of bytes: it is not finite`,
    );
  }
  const digits = textFromNumeric(roundNumeric(count, 0));
  return BigInt(digits.length > COUNT_DIGITS + 1 ? digits.slice(0, COUNT_DIGITS + 2) : digits);
}
