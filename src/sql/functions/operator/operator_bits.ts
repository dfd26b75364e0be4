/** Defines operators on bit strings: bitwise `&`, `|`, `#` and `~`, shifts, and `||`. */
import { DatabaseError } from "../../../base/errors.ts";
import { BIT, type DataType, INT, VARBIT, type Value } from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { binaryForm, prefixForm } from "../base/operator_form.ts";

type BitPairOperation = (left: boolean, right: boolean) => boolean;

/** The bitwise operations on two bits, keyed by operator. */
export const BIT_PAIR_OPERATIONS: ReadonlyMap<string, BitPairOperation> = new Map<
  string,
  BitPairOperation
>([
  ["&", (left, right) => left && right],
  ["|", (left, right) => left || right],
  ["#", (left, right) => left !== right],
]);

export function resolveBits(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  if (left.kind === "bit" && (op === "<<" || op === ">>")) {
    return binaryForm([BIT, INT], BIT, (bits, count) =>
      shifted(bits as string, op === "<<" ? (count as number) : 0 - (count as number)),
    );
  }
  const isBits = [left, right].every(({ kind }) => kind === "bit" || kind === "unknown");
  if (!isBits || (left.kind === "unknown" && right.kind === "unknown")) return undefined;
  if (op === "||") {
    return binaryForm([VARBIT, VARBIT], VARBIT, (l, r) => {
      checkMadeLength((l as string).length + (r as string).length);
      return (l as string) + (r as string);
    });
  }
  const combine = BIT_PAIR_OPERATIONS.get(op);
  if (combine === undefined) return undefined;
  return binaryForm([BIT, BIT], BIT, (l, r) => combinedBits(combine, l, r));
}

/** Returns the form of the operator in `~ bits`. */
export function resolveBitsPrefix(op: string, operand: DataType): OperatorForm | undefined {
  if (op !== "~" || operand.kind !== "bit") return undefined;
  return prefixForm(BIT, BIT, (bits) =>
    (bits as string).replaceAll(/[01]/g, (bit) => (bit === "0" ? "1" : "0")),
  );
}

/** Combines two bit strings of equal length bit by bit. @throws {DatabaseError} INVALID_VALUE */
export function combinedBits(combine: BitPairOperation, left: Value, right: Value): string {
  const [a, b] = [left as string, right as string];
  if (a.length !== b.length) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot combine bit strings of ${a.length} and ${b.length} bits: both must have the same ` +
        "length",
    );
  }
  let bits = "";
  for (let at = 0; at < a.length; at += 1) {
    bits += combine(a[at] === "1", b[at] === "1") ? "1" : "0";
  }
  return bits;
}

/**
 * Shifts bits to the left, or to the right if the count is negative. The length stays the same.
 */
function shifted(bits: string, count: number): string {
  const kept = Math.max(0, bits.length - Math.abs(count));
  const zeros = "0".repeat(bits.length - kept);
  return count >= 0 ? bits.slice(bits.length - kept) + zeros : zeros + bits.slice(0, kept);
}
