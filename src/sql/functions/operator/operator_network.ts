/**
 * Defines operators on network addresses. `<<` and `>>` test whether one network contains another,
 * and `&&` whether either contains the other. `~`, `&`, `|`, `+` and `-` operate on the bits of
 * addresses.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  hardwareBytes,
  hardwareValue,
  INET,
  type InetAddress,
  inetMask,
  inetOfValue,
  inetValue,
  inetWidth,
  isInteger,
  type Value,
  type Whole,
  wholeFromBigint,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, prefixForm } from "../base/operator_form.ts";

function isInet({ kind }: DataType): boolean {
  return kind === "inet" || kind === "cidr";
}

function isHardware({ kind }: DataType): boolean {
  return kind === "macaddr" || kind === "macaddr8";
}

type NetworkTest = (left: InetAddress, right: InetAddress) => boolean;

const TESTS: ReadonlyMap<string, NetworkTest> = new Map<string, NetworkTest>([
  ["<<", (left, right) => left.length > right.length && shareNetwork(left, right)],
  ["<<=", (left, right) => left.length >= right.length && shareNetwork(left, right)],
  [">>", (left, right) => left.length < right.length && shareNetwork(left, right)],
  [">>=", (left, right) => left.length <= right.length && shareNetwork(left, right)],
  ["&&", shareNetwork],
]);

type AddressOperation = (left: bigint, right: bigint) => bigint;

const ADDRESS_OPERATIONS: ReadonlyMap<string, AddressOperation> = new Map<string, AddressOperation>(
  [
    ["&", (left, right) => left & right],
    ["|", (left, right) => left | right],
  ],
);

export function resolveNetwork(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (isHardware(left) || isHardware(right)) return resolveHardware(op, left, right);
  if (!isInet(left) && !isInet(right)) return undefined;
  if (isInet(left) && isInteger(right) && (op === "+" || op === "-")) {
    return binaryForm([INET, BIGINT], INET, (inet, count) =>
      moved(inet, op === "+" ? BigInt(count as Whole) : -BigInt(count as Whole)),
    );
  }
  if (isInteger(left) && op === "+") {
    return binaryForm([BIGINT, INET], INET, (count, inet) => moved(inet, BigInt(count as Whole)));
  }
  const isBoth = [left, right].every((side) => isInet(side) || side.kind === "unknown");
  if (!isBoth) return undefined;
  const test = TESTS.get(op);
  if (test !== undefined) {
    return binaryForm([INET, INET], BOOLEAN, (l, r) =>
      test(inetOfValue(l as string), inetOfValue(r as string)),
    );
  }
  if (op === "-") return binaryForm([INET, INET], BIGINT, distance);
  const combine = ADDRESS_OPERATIONS.get(op);
  if (combine === undefined) return undefined;
  return binaryForm([INET, INET], INET, (l, r) => {
    const [a, b] = sameFamily(l, r);
    const address = combine(a.address, b.address);
    return inetValue({ family: a.family, address, length: Math.max(a.length, b.length) });
  });
}

/** Returns the form of the operator in `~ address`. */
export function resolveNetworkPrefix(op: string, operand: DataType): OperatorForm | undefined {
  if (op !== "~") return undefined;
  if (isHardware(operand)) {
    return prefixForm(operand, operand, (value) =>
      hardwareValue(hardwareBytes(value as string).map((byte) => byte ^ 0xff)),
    );
  }
  if (!isInet(operand)) return undefined;
  return prefixForm(INET, INET, (value) => {
    const inet = inetOfValue(value as string);
    const all = inetMask({ family: inet.family, length: inetWidth(inet.family) });
    return inetValue({ ...inet, address: inet.address ^ all });
  });
}

function resolveHardware(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  const type = isHardware(left) ? left : right;
  const isBoth = [left, right].every(({ kind }) => kind === type.kind || kind === "unknown");
  if (!isBoth || (op !== "&" && op !== "|")) return undefined;
  return binaryForm([type, type], type, (l, r) => {
    const others = hardwareBytes(r as string);
    return hardwareValue(
      hardwareBytes(l as string).map((byte, index) => {
        const other = others[index] ?? 0;
        return op === "&" ? byte & other : byte | other;
      }),
    );
  });
}

/** Whether two addresses have the same leading bits, up to the length of the shorter prefix. */
function shareNetwork(left: InetAddress, right: InetAddress): boolean {
  if (left.family !== right.family) return false;
  const length = Math.min(left.length, right.length);
  const mask = inetMask({ family: left.family, length });
  return (left.address & mask) === (right.address & mask);
}

/**
 * Converts both operands to network addresses, which must be both IPv4 or both IPv6.
 * @throws {DatabaseError} INVALID_VALUE if the address families differ
 */
function sameFamily(left: Value, right: Value): readonly [InetAddress, InetAddress] {
  const a = inetOfValue(left as string);
  const b = inetOfValue(right as string);
  if (a.family === b.family) return [a, b];
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot combine an IPv4 address with an IPv6 address: both must belong to the same family",
  );
}

/** Adds an integer to a network address. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
function moved(value: Value, count: bigint): Value {
  const inet = inetOfValue(value as string);
  const address = inet.address + count;
  if (address >= 0n && address < 1n << BigInt(inetWidth(inet.family))) {
    return inetValue({ ...inet, address });
  }
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot compute the address: the result is outside the range of IPv${inet.family} addresses`,
  );
}

/**
 * Subtracts one network address from another. The difference is negative if the first address is
 * lower.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
function distance(left: Value, right: Value): Value {
  const [a, b] = sameFamily(left, right);
  const difference = a.address - b.address;
  if (BigInt.asIntN(64, difference) === difference) return wholeFromBigint(difference);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot represent the distance between two addresses as bigint: it is too large",
  );
}
