/**
 * Finds the implementation of an aggregate for given argument types.
 *
 * The executor handles DISTINCT, ORDER BY, FILTER and WITHIN GROUP: it decides which rows a state
 * receives, and in which order.
 */
import {
  BIGINT,
  BOOLEAN,
  COMPUTED_PRECISION_MAX,
  type DataType,
  DECIMAL_PRECISION_MAX,
  DOUBLE,
  decimalType,
  hasOrder,
  INTERVAL,
  isExactDecimal,
  isInteger,
  isNumeric,
  isRangeType,
  JSON_TEXT,
  JSONB,
  MONEY,
  multirangeTypeOf,
  NUMERIC,
  TEXT,
  XML,
} from "../../../types/mod.ts";
import { intersectionOf } from "../operator/operator_range.ts";
import { ApproximatePercentileState, DistinctState } from "./aggregate_approximate.ts";
import {
  BIT_FOLDS,
  bitState,
  bitStringState,
  extremeState,
  FoldState,
} from "./aggregate_choices.ts";
import {
  arrayState,
  jsonArrayState,
  jsonObjectState,
  rangesState,
  stringState,
  xmlState,
} from "./aggregate_collections.ts";
import { MedianState, ModeState, PercentileState } from "./aggregate_percentiles.ts";
import type { AggregateForm, AggregateState, BatchGroups } from "./aggregate_state.ts";
import { PAIR_FUNCTIONS, PairState, VARIANCES, varianceState } from "./aggregate_statistics.ts";
import { averageState, CountState, sumState } from "./aggregate_sums.ts";

export type { AggregateForm, AggregateState, BatchGroups };

type Resolver = (types: readonly DataType[]) => Omit<AggregateForm, "name"> | undefined;

/**
 * Returns the assumed type of an argument. An untyped literal gets the type `fallback`, which is
 * text or, together with numbers, DOUBLE.
 */
function typed(type: DataType, fallback: DataType): DataType {
  return type.kind === "unknown" ? fallback : type;
}

/** Creates a resolver for an aggregate with a single argument. */
function ofOne(
  resolve: (type: DataType) => Omit<AggregateForm, "name" | "argumentTypes"> | undefined,
  fallback: DataType,
): Resolver {
  return (types) => {
    const [given] = types;
    if (given === undefined || types.length !== 1) return undefined;
    const type = typed(given, fallback);
    const form = resolve(type);
    return form === undefined ? undefined : { argumentTypes: [type], ...form };
  };
}

function resolveCount(types: readonly DataType[]): ReturnType<Resolver> {
  if (types.length > 1) return undefined;
  const argumentTypes = types.map((type) => typed(type, TEXT));
  return { argumentTypes, result: BIGINT, create: () => new CountState() };
}

/** The number of digits that a sum may have in addition to the digits of the summed values. */
const SUMMED_DIGITS = 19;

/** Returns the type of a sum of DECIMAL values. */
export function summedDecimal({
  precision,
  scale,
}: Pick<DataType & { kind: "decimal" }, "precision" | "scale">): DataType {
  const wanted = Math.max(DECIMAL_PRECISION_MAX, precision + SUMMED_DIGITS);
  return decimalType(Math.min(COMPUTED_PRECISION_MAX, wanted), scale);
}

function sumType(type: DataType): DataType | undefined {
  switch (type.kind) {
    case "smallint":
    case "int":
      return BIGINT;
    case "bigint":
      return decimalType(DECIMAL_PRECISION_MAX, 0);
    case "decimal":
      return summedDecimal(type);
    case "numeric":
      return NUMERIC;
    case "float":
    case "double":
      return DOUBLE;
    case "interval":
      return INTERVAL;
    case "money":
      return MONEY;
    default:
      return undefined;
  }
}

function averageType(type: DataType): DataType | undefined {
  if (isExactDecimal(type)) return NUMERIC;
  if (type.kind === "interval") return INTERVAL;
  return isNumeric(type) ? DOUBLE : undefined;
}

const UNORDERED: ReadonlySet<string> = new Set([
  "boolean",
  "json",
  "jsonpath",
  "tsvector",
  "tsquery",
  "bit",
  "macaddr",
  "macaddr8",
  "xid",
  "file",
  "embedding",
  "range",
  "multirange",
]);

function resolveExtreme(wanted: "min" | "max"): Resolver {
  return ofOne((type) => {
    if (UNORDERED.has(type.kind) || !hasOrder(type)) return undefined;
    return { result: type, ignoresRepeats: true, create: () => extremeState(type, wanted) };
  }, TEXT);
}

function resolveTruth(wanted: "and" | "or"): Resolver {
  const decisive = wanted === "or";
  return ofOne((type) => {
    if (type.kind !== "boolean") return undefined;
    return {
      result: BOOLEAN,
      ignoresRepeats: true,
      create: () => new FoldState((kept, value) => (value === decisive ? value : kept)),
    };
  }, BOOLEAN);
}

function resolveStringAgg(types: readonly DataType[]): ReturnType<Resolver> {
  const [value, separator] = types;
  if (value === undefined || separator === undefined || types.length !== 2) return undefined;
  const type = value.kind === "bytes" ? value : TEXT;
  const fits = [value, separator].every(
    (given) => given.kind === type.kind || given.kind === "unknown",
  );
  if (!fits) return undefined;
  const create = (): AggregateState => stringState(type);
  return { argumentTypes: [type, type], result: type, keepsOrder: true, gathers: true, create };
}

function resolveJsonArray(binary: boolean): Resolver {
  return ofOne(
    (type) => ({
      result: binary ? JSONB : JSON_TEXT,
      keepsOrder: true,
      gathers: true,
      create: () => jsonArrayState(type, binary),
    }),
    TEXT,
  );
}

function resolveJsonObject(binary: boolean): Resolver {
  return (types) => {
    const [givenKey, givenValue] = types;
    if (givenKey === undefined || givenValue === undefined || types.length !== 2) return undefined;
    const key = typed(givenKey, TEXT);
    const value = typed(givenValue, TEXT);
    return {
      argumentTypes: [key, value],
      result: binary ? JSONB : JSON_TEXT,
      gathers: true,
      create: () => jsonObjectState({ key, value }, binary),
    };
  };
}

/**
 * Resolves a percentile: a fraction or an array of fractions, followed by the argument to sort by.
 */
function resolvePercentile(wanted: "cont" | "disc"): Resolver {
  return (types) => {
    const [fraction, given] = types;
    if (fraction === undefined || given === undefined || types.length !== 2) return undefined;
    const isMany = fraction.kind === "array";
    // The results for several array values would form an array of arrays, which is not supported.
    if (isMany && given.kind === "array") return undefined;
    const isNumber = isNumeric(given) || given.kind === "unknown";
    if (wanted === "cont" && !isNumber && given.kind !== "interval") return undefined;
    const type = wanted === "cont" && isNumber ? DOUBLE : typed(given, TEXT);
    return {
      argumentTypes: [isMany ? { kind: "array", element: DOUBLE } : DOUBLE, type],
      result: isMany ? { kind: "array", element: type } : type,
      isOrderedSet: true,
      create: () => new PercentileState(type, wanted),
    };
  };
}

function resolveMedian(types: readonly DataType[]): ReturnType<Resolver> {
  const [type] = types;
  if (type === undefined || types.length !== 1) return undefined;
  if (!isNumeric(type) && type.kind !== "unknown") return undefined;
  return { argumentTypes: [DOUBLE], result: DOUBLE, create: () => new MedianState() };
}

function resolveApproximatePercentile(types: readonly DataType[]): ReturnType<Resolver> {
  const areNumbers = types.every((type) => isNumeric(type) || type.kind === "unknown");
  if (types.length !== 2 || !areNumbers) return undefined;
  return {
    argumentTypes: [DOUBLE, DOUBLE],
    result: DOUBLE,
    create: () => new ApproximatePercentileState(),
  };
}

const RESOLVERS = new Map<string, Resolver>([
  ["count", resolveCount],
  [
    "sum",
    ofOne((type) => {
      const result = sumType(type);
      return result && { result, create: () => sumState(type, result) };
    }, DOUBLE),
  ],
  [
    "avg",
    ofOne((type) => {
      const result = averageType(type);
      return result && { result, create: () => averageState(type) };
    }, DOUBLE),
  ],
  ["min", resolveExtreme("min")],
  ["max", resolveExtreme("max")],
  ["any_value", ofOne((type) => ({ result: type, create: () => new FoldState((v) => v) }), TEXT)],
  ["bool_and", resolveTruth("and")],
  ["every", resolveTruth("and")],
  ["bool_or", resolveTruth("or")],
  ["string_agg", resolveStringAgg],
  [
    "array_agg",
    ofOne((type) => {
      return {
        result: type.kind === "array" ? type : { kind: "array", element: type },
        keepsOrder: true,
        gathers: true,
        create: () => arrayState(type),
      };
    }, TEXT),
  ],
  [
    "xmlagg",
    ofOne((type) => {
      if (type.kind !== "xml") return undefined;
      return { result: XML, keepsOrder: true, gathers: true, create: xmlState };
    }, XML),
  ],
  ["json_agg", resolveJsonArray(false)],
  ["jsonb_agg", resolveJsonArray(true)],
  ["json_object_agg", resolveJsonObject(false)],
  ["jsonb_object_agg", resolveJsonObject(true)],
  ["median", resolveMedian],
  ["percentile_cont", resolvePercentile("cont")],
  ["percentile_disc", resolvePercentile("disc")],
  [
    "mode",
    ofOne(
      (type) => ({ result: type, isOrderedSet: true, create: () => new ModeState(type) }),
      TEXT,
    ),
  ],
  [
    "approx_count_distinct",
    ofOne(
      (type) => ({ result: BIGINT, ignoresRepeats: true, create: () => new DistinctState(type) }),
      TEXT,
    ),
  ],
  ["approx_percentile", resolveApproximatePercentile],
  [
    "range_agg",
    ofOne((type) => {
      if (!isRangeType(type)) return undefined;
      const result = multirangeTypeOf(type);
      return { result, ignoresRepeats: true, gathers: true, create: () => rangesState(type) };
    }, TEXT),
  ],
  [
    "range_intersect_agg",
    ofOne((type) => {
      if (!isRangeType(type)) return undefined;
      const create = (): AggregateState => new FoldState(intersectionOf(type));
      return { result: type, ignoresRepeats: true, create };
    }, TEXT),
  ],
]);

for (const [name, fold] of BIT_FOLDS) {
  RESOLVERS.set(
    name,
    ofOne((type) => {
      if (type.kind === "bit") return { result: type, create: () => bitStringState(name) };
      return isInteger(type) ? { result: type, create: () => bitState(fold) } : undefined;
    }, BIGINT),
  );
}

for (const [name, options] of VARIANCES) {
  RESOLVERS.set(
    name,
    ofOne((type) => {
      if (!isNumeric(type)) return undefined;
      const result = isExactDecimal(type) ? NUMERIC : DOUBLE;
      return { result, create: () => varianceState(type, options) };
    }, DOUBLE),
  );
}

for (const [name, finish] of PAIR_FUNCTIONS) {
  RESOLVERS.set(name, (types) => {
    const areNumbers = types.every((type) => isNumeric(type) || type.kind === "unknown");
    if (types.length !== 2 || !areNumbers) return undefined;
    return {
      argumentTypes: [DOUBLE, DOUBLE],
      result: name === "regr_count" ? BIGINT : DOUBLE,
      create: () => new PairState(name, finish),
    };
  });
}

/** Returns the names of all aggregates. */
export function aggregateNames(): Iterable<string> {
  return RESOLVERS.keys();
}

/**
 * Whether there is an aggregate with this name.
 * @param name In lower case.
 */
export function isAggregate(name: string): boolean {
  return RESOLVERS.has(name);
}

const ORDERED_SETS: ReadonlySet<string> = new Set(["percentile_cont", "percentile_disc", "mode"]);

/**
 * Whether an aggregate receives its rows through WITHIN GROUP, regardless of its argument types.
 */
export function isOrderedSetAggregate(name: string): boolean {
  return ORDERED_SETS.has(name);
}

/**
 * Resolves an aggregate for given argument types. An empty list means count(*). For an ordered-set
 * aggregate, the type of the WITHIN GROUP expression comes last.
 *
 * @returns Undefined if there is no such aggregate for these types.
 */
export function resolveAggregate(
  name: string,
  argumentTypes: readonly DataType[],
): AggregateForm | undefined {
  const form = RESOLVERS.get(name)?.(argumentTypes);
  return form === undefined ? undefined : { name, ...form };
}
