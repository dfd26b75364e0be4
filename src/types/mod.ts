/** Exports data types, values, vectors and batches, and the operations on single values. */
export {
  type ArrayValue,
  arrayOfArrays,
  DIMENSIONS_MAX,
  dimensionsOf,
  elementsOf,
  gatheredArray,
  isArrayValue,
  mapElements,
  tooDeep,
} from "./array_shape.ts";
export { textFromArray } from "./array_text.ts";
export { BITS_MAX } from "./bit_string.ts";
export {
  type CastMode,
  canCast,
  castBetween,
  casterFor,
  castValue,
} from "./cast.ts";
export {
  codePointLength,
  compareCodePoints,
  sliceCodePoints,
} from "./code_points.ts";
export {
  type Collation,
  type CollationRules,
  caseLocaleOf,
  collateClause,
  collationName,
  collationOf,
  columnTypeOf,
  comparedTextType,
  derivedCollation,
  type IcuCollation,
  type IcuRules,
  isCollatable,
  isCollated,
  isLooselyEqual,
  mixedCollations,
  withCollation,
  withDerivedCollation,
} from "./collation.ts";
export { reasonAgainstKeys } from "./collation_keys.ts";
export {
  type Comparator,
  comparatorFor,
  compareValues,
  groupKeyMakerFor,
  groupKeyOf,
  hasKeyForm,
  haveSameGroupKey,
  keyFormOf,
  storedComparatorFor,
} from "./compare.ts";
export { concat } from "./concat.ts";
export {
  BIGINT,
  BIT,
  BOOLEAN,
  BOX,
  BYTES,
  bareTypeName,
  CIDR,
  COMPUTED_PRECISION_MAX,
  DATE,
  DATETIME,
  type DataType,
  DECIMAL_PRECISION_MAX,
  DOUBLE,
  decimalType,
  definedNameOf,
  FILE,
  FLOAT,
  GEOMETRIC_KINDS,
  type GeometricKind,
  type GeometricType,
  hasOrder,
  INET,
  INT,
  INTERVAL,
  isExactDecimal,
  isGeometric,
  isInteger,
  isNumeric,
  isObjectName,
  isRangeType,
  isStringKind,
  JSON_TEXT,
  JSONB,
  JSONPATH,
  MACADDR,
  MACADDR8,
  MONEY,
  multirangeTypeOf,
  type NamedRange,
  NUMERIC,
  type NumericSize,
  type ObjectNameType,
  OID,
  PG_LSN,
  POINT,
  RANGE_TYPES,
  type RangeType,
  REGCLASS,
  type RowField,
  rangeTypeOf,
  SMALLINT,
  sameRanges,
  sameType,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMETZ,
  TSQUERY,
  TSVECTOR,
  type TypeKind,
  type TypeLabel,
  typeName,
  UNKNOWN,
  UNKNOWN_NULL,
  UUID,
  VARBIT,
  XID,
  XID8,
  XML,
} from "./data_type.ts";
export {
  checkDate,
  checkTimestamp,
  civilFromDays,
  DATE_INFINITY,
  DATE_MINUS_INFINITY,
  dateFromCivil,
  dateOfTimestamp,
  dayOfWeek,
  daysFromCivil,
  daysInMonth,
  isFiniteDate,
  isFiniteTimestamp,
  isoTextOf,
  joinTimestamp,
  roundMicros,
  roundTimestamp,
  splitTimestamp,
  TIMESTAMP_INFINITY,
  TIMESTAMP_MINUS_INFINITY,
  textFromDate,
  timestampOfDate,
} from "./datetime.ts";
export { datetimeFromText, isTimeWord } from "./datetime_text.ts";
export {
  addWhole,
  compareWhole,
  type DecimalDigits,
  decimalFromText,
  decimalShape,
  digitsFromText,
  divideDecimal,
  divideWhole,
  doubleFromDecimal,
  fitDecimal,
  fitsPrecision,
  multiplyWhole,
  negateWhole,
  powerOfTen,
  remainderWhole,
  rescale,
  roundedQuotient,
  subtractWhole,
  textFromDecimal,
  truncateScale,
} from "./decimal.ts";
export { deferredTexts, takeLater } from "./deferred_texts.ts";
export { columnTypeName, type DomainRules, type DomainType, domainName } from "./domain_type.ts";
export { type EnumLabel, type EnumType, enumName } from "./enum_type.ts";
export { excerpt } from "./excerpt.ts";
export {
  doubleFromText,
  finiteDouble,
  finiteFloat,
  floatFromDouble,
} from "./float_text.ts";
export {
  type Box,
  type Circle,
  type Line,
  numbersOfShape,
  type Path,
  type PlanePoint,
  type Polygon,
  type Segment,
  type Shapes,
  shapeOf,
  shapeOfNumbers,
  shapeValue,
} from "./geometry.ts";
export { boundsOf, circleOfPolygon, polygonOfCircle } from "./geometry_casts.ts";
export {
  add,
  areApart,
  areNear,
  areSameLine,
  areSamePoint,
  boxBetween,
  distance,
  divide,
  greater,
  hypotenuse,
  isAbove,
  isBelow,
  isFrom,
  isLess,
  isUpTo,
  isZero,
  lesser,
  lineThrough,
  middle,
  multiply,
  slope,
  subtract,
} from "./geometry_numbers.ts";
export { checkedLine, lineOfPoints, shapeFromText } from "./geometry_text.ts";
export {
  hardwareBytes,
  hardwareValue,
} from "./hardware_address.ts";
export {
  abbreviatedCidr,
  hostText,
  type InetAddress,
  inetMask,
  inetNetwork,
  inetOfValue,
  inetValue,
  inetWidth,
  textFromInet,
} from "./inet_address.ts";
export {
  fitInteger,
  fitsInteger,
  type IntegerKind,
  roundHalfEven,
} from "./integer.ts";
export {
  addIntervals,
  divideInterval,
  type IntervalLimit,
  limitedInterval,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  makeInterval,
  negateInterval,
  scaleInterval,
} from "./interval.ts";
export { intervalFromText, textFromClock } from "./interval_text.ts";
export {
  cellMakerFor,
  dataTypeWord,
  exactCellMakerFor,
  isCellIdentity,
  readableCellMakerFor,
  valueFromParameter,
  type WireParameter,
} from "./json_cell.ts";
export { jsonOfFields, jsonTextOf } from "./json_of_value.ts";
export { arrayFromJsonList } from "./json_parameter.ts";
export {
  checkJson,
  isJsonNumber,
  isJsonString,
  type JsonSlice,
  jsonElement,
  jsonElements,
  jsonKindAt,
  jsonMember,
  jsonMembers,
  jsonPath,
  jsonRoot,
  jsonScalarText,
  jsonStringEnd,
  MalformedJson,
  textOfJsonString,
} from "./json_text.ts";
export {
  canonicalJson,
  canonicalNumber,
  compareJson,
  isJsonArray,
  isJsonObject,
  type JsonNode,
  jsonObject,
  jsonTree,
  textFromJson,
} from "./json_tree.ts";
export { parseJsonPath } from "./jsonpath_parser.ts";
export {
  isCondition,
  type JsonPath,
  type PathArithmetic,
  type PathComparison,
  type PathPart,
  type PathPredicate,
} from "./jsonpath_syntax.ts";
export { checkedMoney, moneyOfCents } from "./money.ts";
export { type NormalForm, normalized } from "./normalized_text.ts";
export { valueFromNumberText } from "./number_literal.ts";
export {
  type BigDecimal,
  bigDecimalOf,
  ceilingNumeric,
  compareNumerics,
  doubleFromNumeric,
  fitNumeric,
  floorNumeric,
  isFiniteNumeric,
  leastNumericScale,
  NUMERIC_NAN,
  numericExponent,
  numericFromText,
  numericOf,
  numericOfSpecial,
  numericScale,
  numericShowing,
  numericSign,
  roundNumeric,
  ShortNumericReader,
  shortDecimalOf,
  textFromNumeric,
  trimmedNumeric,
  truncateNumeric,
} from "./numeric.ts";
export {
  absoluteNumeric,
  addNumerics,
  bucketOfNumeric,
  divideNumerics,
  multiplyNumerics,
  negateNumeric,
  quotientAtScales,
  quotientOf,
  remainderNumeric,
  subtractNumerics,
  wholeQuotient,
  wholesAtOneScale,
} from "./numeric_arithmetic.ts";
export {
  exponentialNumeric,
  logarithmToBase,
  naturalLogarithm,
  powerNumeric,
  rootAt,
  squareRootNumeric,
} from "./numeric_functions.ts";
export {
  OBJECT_NAME_KINDS,
  type ObjectNameKind,
  objectNameValue,
  oidOfObjectName,
  textFromObjectName,
} from "./object_name.ts";
export { type PortableBatch, portableBatch } from "./portable.ts";
export { quotientColumn } from "./quotient_column.ts";
export {
  asRangeType,
  type Range,
  type RangeEnd,
  RangeMath,
  rangesOf,
  unboundedEnd,
  valueOfRanges,
} from "./range.ts";
export { canBeBound, isBoundInKey } from "./range_bound.ts";
export { hasSortKey, isOrderedByClients, sortKeyOf } from "./sort_key.ts";
export type { TermKind } from "./term_kind.ts";
export {
  areEqualTexts,
  compareTextBytes,
  compareTexts,
  copyText,
  hashText,
  hashTexts,
  type TextSource,
  textSourceOf,
} from "./text_bytes.ts";
export {
  embeddingFromText,
  outputText,
  textFromValue,
  valueFromText,
} from "./text_form.ts";
export { offsetSecondsAt, offsetSecondsAtLocal, type TimeZone, zoneFromText } from "./time_zone.ts";
export { withoutFractionZeros, withoutTrailingZeros } from "./trailing_zeros.ts";
export {
  parsedTsQuery,
  TS_NOTHING,
  type TsQuery,
  type TsQueryPart,
  type TsQueryWord,
  textFromTsQuery,
  tsQueryFromText,
  withoutNothing,
} from "./tsquery.ts";
export {
  quotedTsWord,
  TS_POSITION_MAX,
  TS_WORD_BYTES_MAX,
  type TsPosition,
  type TsWeight,
  type TsWord,
  textFromTsVector,
  tsVectorFromText,
  tsVectorOf,
  tsWeightLetter,
  tsWeightOf,
} from "./tsvector.ts";
export { isNumberType, isTextType, isWholeType, typeOrder } from "./type_class.ts";
export { commonType, comparedType, decimalOf, unbounded } from "./unify.ts";
export { numberOfUnsigned, UNSIGNED_KINDS, unsignedValue } from "./unsigned.ts";
export {
  type Interval,
  isInterval,
  isRowValue,
  type Row,
  type RowValue,
  type Value,
  type Whole,
  wholeFromBigint,
} from "./value.ts";
export {
  readTagged,
  readValue,
  skipValue,
  TAG_INT,
  TAG_NULL,
  TAG_NUMBER,
  TAG_SMALL,
  TAG_TEXT,
  writeNumber,
  writeValue,
} from "./value_codec.ts";
export { jsonFromValue, type ValueJson, valueFromJson } from "./value_json.ts";
export {
  areFinite,
  type Batch,
  constVector,
  type DictionaryVector,
  type Float64Vector,
  gatherBytes,
  gatherFloat64,
  gatherInt32,
  type Int32Vector,
  isNullAt,
  keepRows,
  mayHoldNan,
  partOf,
  physicalKind,
  type RowNumbers,
  type Selection,
  slice,
  take,
  textsOf,
  type Utf8Vector,
  type Vector,
  valueAt,
  valuesOf,
  vectorFromTexts,
  vectorFromValues,
} from "./vector.ts";
export {
  checkedXml,
  continuesXmlName,
  isXml,
  parseXml,
  predefinedEntity,
  startsXmlName,
  type XmlForm,
  type XmlSink,
  xmlDeclarationOf,
} from "./xml_parser.ts";
export { escapedXmlAttribute, escapedXmlText, xmlProlog } from "./xml_text.ts";
export { zonedTimeOf, zonedTimeValue } from "./zoned_time.ts";
