/**
 * Splits aggregates for parallel execution: one aggregate for each part of the rows, and another
 * that combines their results. The final result is the same as that of a single aggregate over all
 * rows, except for the last digits of sums of doubles.
 */
import { defined } from "../../../base/assert.ts";
import { type DataType, DECIMAL_PRECISION_MAX, DOUBLE, decimalType } from "../../../types/mod.ts";
import type { AggregateForm } from "./aggregate_state.ts";
import { partOfSquares, VARIANCES } from "./aggregate_statistics.ts";
import { CountedParts, partOfSum } from "./aggregate_sums.ts";
import { resolveAggregate, summedDecimal } from "./aggregates.ts";

export interface AggregateParts {
  /**
   * The aggregates computed for each part of the rows. They have the arguments of the original
   * aggregate.
   */
  readonly parts: readonly AggregateForm[];
  /** The combining aggregate. Its arguments are the results of the partial aggregates. */
  readonly whole: AggregateForm;
}

/**
 * Returns the partial aggregates into which an aggregate can be split; undefined if partial
 * results cannot be combined.
 */
export function partsOf(form: AggregateForm): AggregateParts | undefined {
  switch (form.name) {
    case "count":
      return { parts: [form], whole: { ...form, create: () => new CountedParts() } };
    case "min":
    case "max":
    case "any_value":
    case "bool_and":
    case "every":
    case "bool_or":
    case "bit_and":
    case "bit_or":
    case "bit_xor":
    case "range_intersect_agg":
      return { parts: [form], whole: form };
    case "sum":
      return { parts: [sumOf(form)], whole: form };
    case "avg":
      if (form.result.kind === "interval") return undefined;
      return { parts: [sumOf(form), countOf(form)], whole: form };
    default: {
      // A partial sum of squares may have more digits than a NUMERIC can hold.
      if (!VARIANCES.has(form.name) || form.argumentTypes[0]?.kind === "numeric") return undefined;
      return { parts: [sumOf(form), countOf(form), squaresOf(form)], whole: form };
    }
  }
}

/** Returns the aggregate that counts the values for an average. */
function countOf({ argumentTypes }: AggregateForm): AggregateForm {
  return defined(
    resolveAggregate("count", argumentTypes),
    "aggregate parts: no form of count accepts this argument type",
  );
}

/**
 * Returns the aggregate that sums a part of the rows. The partial sum may exceed the range of the
 * final result's type.
 */
function sumOf({ argumentTypes, result }: AggregateForm): AggregateForm {
  const [type = result] = argumentTypes;
  return {
    name: "sum",
    argumentTypes,
    result: typeOfSum(type),
    create: () => partOfSum(type),
  };
}

function squaresOf(form: AggregateForm): AggregateForm {
  const [type = form.result] = form.argumentTypes;
  return { ...sumOf(form), create: () => partOfSquares(type) };
}

function typeOfSum(type: DataType): DataType {
  switch (type.kind) {
    case "decimal":
      return summedDecimal(type);
    case "smallint":
    case "int":
    case "bigint":
      return decimalType(DECIMAL_PRECISION_MAX, 0);
    case "float":
      return DOUBLE;
    default:
      return type;
  }
}
