/** Defines the table functions: series, array elements, and parts of strings and JSON documents. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  addWhole,
  asRangeType,
  bigDecimalOf,
  compareValues,
  compareWhole,
  DATETIME,
  type DataType,
  dimensionsOf,
  elementsOf,
  INT,
  INTERVAL,
  type Interval,
  isFiniteNumeric,
  numericOf,
  numericScale,
  numericSign,
  powerOfTen,
  type Row,
  rangesOf,
  rangeTypeOf,
  rescale,
  SMALLINT,
  TEXT,
  TIMESTAMP,
  TSVECTOR,
  tsVectorFromText,
  tsWeightLetter,
  type Value,
  valueOfRanges,
  type Whole,
} from "../../../types/mod.ts";
import { fromText } from "../array.ts";
import type { Signature } from "../base/function.ts";
import {
  groupsOf,
  matchesOf,
  regexOf,
  regexWithoutGlobal,
  splitByPattern,
} from "../regex/pattern.ts";
import { bestFit } from "../registry.ts";
import { addToTimestamp } from "../time/time_math.ts";
import { oneColumn, type TableForm, type TableFunction } from "./table_function.ts";
import { JSON_TABLE_FUNCTIONS } from "./table_function_json.ts";
import { OBJECT_TABLE_FUNCTIONS } from "./table_function_objects.ts";
import { PATH_TABLE_FUNCTIONS } from "./table_function_path.ts";

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

function stepOfNothing(): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot generate a series: its step must not be 0",
  );
}

/**
 * Returns the type of a numeric series: an integer or decimal type, but never a floating-point
 * type.
 */
function seriesType(types: readonly DataType[]): DataType | undefined {
  const [type] = types;
  switch (type?.kind) {
    case "smallint":
      return INT;
    case "int":
    case "bigint":
    case "decimal":
    case "numeric":
      return type;
    default:
      return undefined;
  }
}

const NUMBERS: TableForm = {
  parameters: ["same", "same", "same"],
  optionalCount: 1,
  columns: (types) => {
    const type = seriesType(types);
    return type === undefined ? undefined : [{ name: undefined, type }];
  },
  *rows([from, to, by], { types }): Generator<Row> {
    const [type] = types;
    if (type?.kind === "numeric") {
      yield* numericSeries(from as string, to as string, by as string | undefined);
      return;
    }
    const one = type?.kind === "decimal" ? rescale(1, 0, type.scale) : 1;
    const step = (by as Whole | undefined) ?? one;
    const direction = compareWhole(step, 0);
    if (direction === 0) throw stepOfNothing();
    const last = to as Whole;
    let value = from as Whole;
    while (compareWhole(value, last) * direction <= 0) {
      yield [value];
      value = addWhole(value, step);
    }
  },
};

function* numericSeries(from: string, to: string, by = numericOf(1n, 0)): Generator<Row> {
  const direction = numericSign(by);
  if (direction === 0) throw stepOfNothing();
  if (![from, to, by].every(isFiniteNumeric)) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot generate a series: its bounds and its step must be finite numbers",
    );
  }
  const bounds = [from, to, by].map(bigDecimalOf);
  const scale = Math.max(...bounds.map((each) => each.scale));
  // All numbers of a series keep the same representation, because converting a number of 131,072
  // digits takes much longer than adding a step.
  const [first = 0n, last = 0n, step = 0n] = bounds.map(
    (each) => each.unscaled * powerOfTen(scale - each.scale),
  );
  const shownScale = Math.max(numericScale(from), numericScale(by));
  const surplus = powerOfTen(scale - shownScale);
  let value = first;
  while (direction > 0 ? value <= last : value >= last) {
    yield [value === first ? from : numericOf(value / surplus, shownScale)];
    value += step;
  }
}

function moments(type: DataType): TableForm {
  return {
    parameters: [type, type, INTERVAL],
    columns: oneColumn(type),
    *rows([from, to, by]): Generator<Row> {
      const step = by as Interval;
      const none: Interval = { months: 0, days: 0, micros: 0 };
      const direction = compareValues(INTERVAL, step, none);
      if (direction === 0) throw stepOfNothing();
      const last = to as Whole;
      let value = from as Whole;
      while (compareWhole(value, last) * direction <= 0) {
        yield [value];
        const next = addToTimestamp(value, step);
        // If months and days of the step have opposite signs, they may cancel out, and the series
        // would not advance.
        if (compareWhole(next, value) * direction <= 0) throw stepOfNothing();
        value = next;
      }
    },
  };
}

/**
 * The form of `unnest` for arrays. It returns the elements of several arrays side by side, and
 * pads shorter arrays with NULL.
 */
const UNNEST: TableForm = {
  parameters: ["array"],
  seesNull: true,
  columns: (types) => types.map((type) => ({ name: undefined, type: elementOf(type) })),
  *rows([array = null]): Generator<Row> {
    for (const item of elementsOf((array ?? []) as ArrayValue)) yield [item];
  },
};

/**
 * The form of `unnest` that returns the words of a text search document, with their positions and
 * weights.
 */
const UNNEST_WORDS: TableForm = {
  parameters: [TSVECTOR],
  columns: () => [
    { name: "lexeme", type: TEXT },
    { name: "positions", type: { kind: "array", element: SMALLINT } },
    { name: "weights", type: TEXT_ARRAY },
  ],
  *rows([document]): Generator<Row> {
    for (const { positions, word } of tsVectorFromText(document as string)) {
      const isBare = positions.length === 0;
      const places = isBare ? null : positions.map(({ at }) => at);
      const weights = isBare ? null : positions.map(({ weight }) => tsWeightLetter(weight));
      yield [word, places, weights];
    }
  },
};

/** The form of `unnest` that returns the ranges of a multirange. */
const UNNEST_RANGES: TableForm = {
  parameters: ["multirange"],
  columns: (types) =>
    types.map((type) => ({ name: undefined, type: rangeTypeOf(asRangeType(type)) })),
  *rows([value = null], { types: [type = TEXT] }): Generator<Row> {
    for (const range of rangesOf(type, value))
      yield [valueOfRanges(rangeTypeOf(asRangeType(type)), [range])];
  },
};

function elementOf(type: DataType): DataType {
  return type.kind === "array" ? type.element : TEXT;
}

const SUBSCRIPTS: TableForm = {
  parameters: ["array", INT, { kind: "boolean" }],
  optionalCount: 1,
  columns: oneColumn(INT),
  *rows([array, dimension, isReverse = false]): Generator<Row> {
    const length = dimensionsOf(array as ArrayValue)[(dimension as number) - 1] ?? 0;
    for (let i = 1; i <= length; i += 1) yield [isReverse === true ? length + 1 - i : i];
  },
};

const STRING_PARTS: TableForm = {
  parameters: [TEXT, TEXT, TEXT],
  optionalCount: 1,
  seesNull: true,
  columns: oneColumn(TEXT),
  *rows(values): Generator<Row> {
    for (const part of (fromText(values) ?? []) as readonly Value[]) yield [part];
  },
};

const PATTERN_PARTS: TableForm = {
  parameters: [TEXT, TEXT, TEXT],
  optionalCount: 1,
  columns: oneColumn(TEXT),
  *rows([text = null, pattern = null, flags]): Generator<Row> {
    const regex = regexWithoutGlobal("regexp_split_to_table", pattern, flags);
    for (const part of splitByPattern(text as string, regex)) yield [part];
  },
};

const MATCHES: TableForm = {
  parameters: [TEXT, TEXT, TEXT],
  optionalCount: 1,
  columns: oneColumn(TEXT_ARRAY),
  *rows([text = null, pattern = null, flags]): Generator<Row> {
    const isGlobal = typeof flags === "string" && flags.includes("g");
    for (const match of matchesOf(regexOf(pattern, flags), text as string, 0)) {
      yield [groupsOf(text as string, match)];
      if (!isGlobal) return;
    }
  },
};

const FUNCTIONS: ReadonlyMap<string, TableFunction> = new Map(
  [
    { name: "generate_series", forms: [NUMBERS, moments(TIMESTAMP), moments(DATETIME)] },
    { name: "unnest", forms: [UNNEST, UNNEST_WORDS, UNNEST_RANGES] },
    { name: "generate_subscripts", forms: [SUBSCRIPTS] },
    { name: "string_to_table", forms: [STRING_PARTS] },
    { name: "regexp_split_to_table", forms: [PATTERN_PARTS] },
    { name: "regexp_matches", forms: [MATCHES] },
    ...JSON_TABLE_FUNCTIONS,
    ...OBJECT_TABLE_FUNCTIONS,
    ...PATH_TABLE_FUNCTIONS,
  ].map((each) => [each.name, each] as const),
);

/** Whether a table function with this name, in lower case, exists. */
export function isTableFunction(name: string): boolean {
  return FUNCTIONS.has(name);
}

export function tableFunctionNames(): readonly string[] {
  return [...FUNCTIONS.keys()];
}

/**
 * Returns the form of a table function that accepts named arguments; undefined if there is no such
 * form.
 */
export function namedTableForm(name: string): Signature | undefined {
  return FUNCTIONS.get(name)?.forms.find((each) => each.parameterNames !== undefined);
}

/**
 * Returns the form of a table function that fits a call, and the types to which its arguments are
 * cast.
 */
export function resolveTableFunction(
  name: string,
  types: readonly DataType[],
): { readonly form: TableForm; readonly types: readonly DataType[] } | undefined {
  const all = FUNCTIONS.get(name)?.forms ?? [];
  // A form without columns for these types does not apply, but the next best form may.
  for (let forms = all; ; ) {
    const best = bestFit(forms, types);
    if (best === undefined) return undefined;
    const { columns } = best.form;
    if (columns === "defined" || columns(best.types) !== undefined) return best;
    forms = forms.filter((form) => form !== best.form);
  }
}
