/**
 * Defines arithmetic on amounts of money. Products, and quotients by a FLOAT or DOUBLE, are rounded
 * to cents. As in PostgreSQL, a quotient by an integer is truncated to cents.
 */
import {
  addWhole,
  BIGINT,
  checkedMoney,
  type DataType,
  DOUBLE,
  isInteger,
  isNumeric,
  MONEY,
  moneyOfCents,
  multiplyWhole,
  subtractWhole,
  type Whole,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, divisionByZero } from "../base/operator_form.ts";

export function resolveMoney(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  const isLeft = left.kind === "money";
  const isRight = right.kind === "money";
  if (!isLeft && !isRight) return undefined;
  const isBoth = (isLeft || left.kind === "unknown") && (isRight || right.kind === "unknown");
  switch (op) {
    case "+":
    case "-": {
      const compute = op === "+" ? addWhole : subtractWhole;
      if (!isBoth) return undefined;
      return binaryForm([MONEY, MONEY], MONEY, (l, r) =>
        checkedMoney(BigInt(compute(l as Whole, r as Whole))),
      );
    }
    case "*":
      if (isLeft && isRight) return undefined;
      return isLeft ? productForm(right) : swapped(productForm(left));
    case "/":
      if (isBoth) return ratioForm();
      return isLeft && isNumeric(right) ? quotientForm(right) : undefined;
    default:
      return undefined;
  }
}

function productForm(factor: DataType): OperatorForm | undefined {
  if (isInteger(factor)) {
    return binaryForm([MONEY, BIGINT], MONEY, (cents, count) =>
      checkedMoney(BigInt(multiplyWhole(cents as Whole, count as Whole))),
    );
  }
  if (!isNumeric(factor) && factor.kind !== "unknown") return undefined;
  return binaryForm([MONEY, DOUBLE], MONEY, (cents, value) =>
    moneyOfCents(Number(cents) * (value as number)),
  );
}

function swapped(form: OperatorForm | undefined): OperatorForm | undefined {
  if (form === undefined) return undefined;
  return {
    ...form,
    operands: form.operands.toReversed(),
    evaluate: ([left = null, right = null]) => form.evaluate([right, left]),
  };
}

function quotientForm(divisor: DataType): OperatorForm {
  if (isInteger(divisor)) {
    return binaryForm([MONEY, BIGINT], MONEY, (cents, count) => {
      if (count === 0) throw divisionByZero();
      return checkedMoney(BigInt(cents as Whole) / BigInt(count as Whole));
    });
  }
  return binaryForm([MONEY, DOUBLE], MONEY, (cents, value) => {
    if (value === 0) throw divisionByZero();
    return moneyOfCents(Number(cents) / (value as number));
  });
}

function ratioForm(): OperatorForm {
  return binaryForm([MONEY, MONEY], DOUBLE, (l, r) => {
    if (r === 0) throw divisionByZero();
    return Number(l) / Number(r);
  });
}
