/**
 * Defines functions on enum types. Most of them use only the types of their arguments, so any
 * argument may be NULL.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type DataType,
  type EnumLabel,
  type EnumType,
  enumName,
  type Value,
} from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction, Specialised } from "./base/function.ts";

/** Creates an overload that accepts only enum types. */
function ofEnum(
  parameters: readonly ["same"] | readonly ["same", "same"],
  result: (type: DataType) => DataType,
  evaluate: (type: EnumType, values: readonly Value[]) => Value,
): ScalarFunction["overloads"][number] {
  return {
    ...overload(
      parameters,
      (types) => result(firstType(types)),
      () => null,
      { seesNull: true },
    ),
    specialise: ([type]): Specialised | undefined => {
      if (type?.kind !== "enum") return undefined;
      const { enumType } = type;
      return { result: result(type), evaluate: (values) => evaluate(enumType, values) };
    },
  };
}

function same(type: DataType): DataType {
  return type;
}

function arrayOf(element: DataType): DataType {
  return { kind: "array", element };
}

/**
 * Returns the enum values from `first` to `last`, inclusive. A NULL bound means the start or the
 * end of the enum.
 */
function valuesBetween({ labels }: EnumType, [first = null, last = null]: readonly Value[]): Value {
  return labels
    .map(({ position }) => position)
    .filter(
      (position) =>
        (first === null || position >= Number(first)) &&
        (last === null || position <= Number(last)),
    );
}

/**
 * Returns the enum value of the first or last label, which is the position of the label.
 * @throws {DatabaseError} INVALID_OPERATION if the enum has no labels
 */
function endOf(type: EnumType, label: EnumLabel | undefined): Value {
  if (label !== undefined) return label.position;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot determine the first or last value of ${enumName(type)}: the type has no values`,
  );
}

export const ENUM_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["enum_first"],
    ofEnum(["same"], same, (type) => endOf(type, type.labels[0])),
  ),
  ...functionsNamed(
    ["enum_last"],
    ofEnum(["same"], same, (type) => endOf(type, type.labels.at(-1))),
  ),
  ...functionsNamed(
    ["enum_range"],
    ofEnum(["same"], arrayOf, (type) => valuesBetween(type, [])),
    ofEnum(["same", "same"], arrayOf, valuesBetween),
  ),
];
