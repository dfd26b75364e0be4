/**
 * Defines functions on network addresses (INET, CIDR) and on MAC addresses (MACADDR).
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  abbreviatedCidr,
  BOOLEAN,
  CIDR,
  type DataType,
  hardwareBytes,
  hardwareValue,
  hostText,
  INET,
  INT,
  type InetAddress,
  inetMask,
  inetNetwork,
  inetOfValue,
  inetValue,
  inetWidth,
  MACADDR,
  MACADDR8,
  TEXT,
  textFromInet,
  type Value,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";

function ofInet(result: DataType, compute: (inet: InetAddress) => Value): Overload {
  return overload([INET], result, ([value = null]) => compute(inetOfValue(value as string)));
}

function hostMask(inet: InetAddress): bigint {
  return inetMask({ family: inet.family, length: inetWidth(inet.family) }) ^ inetMask(inet);
}

/** Returns an address with the longest possible prefix, which denotes a single host. */
function wholeAddress(family: 4 | 6, address: bigint): string {
  return inetValue({ family, address, length: inetWidth(family) });
}

/**
 * Returns the smallest network that contains two addresses.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
function merged([left = null, right = null]: readonly Value[]): Value {
  const a = inetOfValue(left as string);
  const b = inetOfValue(right as string);
  if (a.family !== b.family) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot merge an IPv4 and an IPv6 address: no network contains both",
    );
  }
  const difference = a.address ^ b.address;
  const width = inetWidth(a.family);
  const common = difference === 0n ? width : width - difference.toString(2).length;
  return networkValue({ ...a, length: Math.min(a.length, b.length, common) });
}

function networkValue(inet: InetAddress): string {
  return inetValue({ ...inet, address: inetNetwork(inet) });
}

/**
 * Returns the address with a different prefix length. The length -1 means the full length of the
 * address.
 */
function withLength(value: Value, length: Value): InetAddress {
  const inet = inetOfValue(value as string);
  const width = inetWidth(inet.family);
  const bits = length === -1 ? width : (length as number);
  if (bits >= 0 && bits <= width) return { ...inet, length: bits };
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot set the prefix length of a network to ${bits}: it must be between 0 and ${width}`,
  );
}

/**
 * Keeps the first 3 bytes of a MAC address, which identify the manufacturer, and sets the others
 * to zero.
 */
function manufacturer([value = null]: readonly Value[]): string {
  const bytes = hardwareBytes(value as string);
  return hardwareValue(bytes.map((byte, index) => (index < 3 ? byte : 0)));
}

function withSeventhBit([value = null]: readonly Value[]): string {
  return hardwareValue(
    hardwareBytes(value as string).map((byte, index) => (index === 0 ? byte | 2 : byte)),
  );
}

export const NETWORK_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["abbrev"],
    overload([INET], TEXT, ([value = null]) => textFromInet("inet", value as string)),
    overload([CIDR], TEXT, ([value = null]) => abbreviatedCidr(value as string)),
  ),
  ...functionsNamed(
    ["broadcast"],
    ofInet(INET, (inet) => inetValue({ ...inet, address: inet.address | hostMask(inet) })),
  ),
  ...functionsNamed(
    ["family"],
    ofInet(INT, ({ family }) => family),
  ),
  ...functionsNamed(["host"], ofInet(TEXT, hostText)),
  ...functionsNamed(
    ["hostmask"],
    ofInet(INET, (inet) => wholeAddress(inet.family, hostMask(inet))),
  ),
  ...functionsNamed(["inet_merge"], overload([INET, INET], CIDR, merged)),
  ...functionsNamed(
    ["inet_same_family"],
    overload([INET, INET], BOOLEAN, ([left = null, right = null]) => {
      return inetOfValue(left as string).family === inetOfValue(right as string).family;
    }),
  ),
  ...functionsNamed(
    ["masklen"],
    ofInet(INT, ({ length }) => length),
  ),
  ...functionsNamed(
    ["netmask"],
    ofInet(INET, (inet) => wholeAddress(inet.family, inetMask(inet))),
  ),
  ...functionsNamed(["network"], ofInet(CIDR, networkValue)),
  ...functionsNamed(
    ["set_masklen"],
    overload([INET, INT], INET, ([value = null, length = null]) =>
      inetValue(withLength(value, length)),
    ),
    overload([CIDR, INT], CIDR, ([value = null, length = null]) =>
      networkValue(withLength(value, length)),
    ),
  ),
  ...functionsNamed(
    ["trunc"],
    overload([MACADDR], MACADDR, manufacturer),
    overload([MACADDR8], MACADDR8, manufacturer),
  ),
  ...functionsNamed(["macaddr8_set7bit"], overload([MACADDR8], MACADDR8, withSeventhBit)),
];
