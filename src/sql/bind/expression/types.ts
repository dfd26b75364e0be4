/** Resolves the type names in SQL to data types. */
import { DatabaseError } from "../../../base/errors.ts";
import { nearestName } from "../../../base/nearest_name.ts";
import {
  BIGINT,
  BITS_MAX,
  BOOLEAN,
  BYTES,
  CIDR,
  DATE,
  DATETIME,
  type DataType,
  DECIMAL_PRECISION_MAX,
  DOUBLE,
  type DomainType,
  decimalOf,
  decimalShape,
  decimalType,
  digitsFromText,
  domainName,
  FILE,
  FLOAT,
  GEOMETRIC_KINDS,
  INET,
  INT,
  INTERVAL,
  type IntervalLimit,
  JSON_TEXT,
  JSONB,
  JSONPATH,
  MACADDR,
  MACADDR8,
  MONEY,
  NUMERIC,
  OBJECT_NAME_KINDS,
  RANGE_TYPES,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMETZ,
  TSQUERY,
  TSVECTOR,
  typeName,
  UNSIGNED_KINDS,
  UUID,
  VARBIT,
  XML,
} from "../../../types/mod.ts";
import type { BasicDataTypeDef, DataTypeDef, QName } from "../../parse/ast/ast.ts";
import { insteadOfType } from "../other_names.ts";
import { typeWithCollation } from "./collation_names.ts";

/** Types that take no parameters, keyed by name. */
const SIMPLE: ReadonlyMap<string, DataType> = new Map<string, DataType>([
  ["boolean", BOOLEAN],
  ["bool", BOOLEAN],
  // If several names are equally similar to a misspelt one, the first is suggested.
  ["int", INT],
  ["integer", INT],
  ["smallint", SMALLINT],
  ["int2", SMALLINT],
  ["tinyint", SMALLINT],
  ["int4", INT],
  ["mediumint", INT],
  ["bigint", BIGINT],
  ["int8", BIGINT],
  ["real", FLOAT],
  ["float4", FLOAT],
  ["double", DOUBLE],
  ["double precision", DOUBLE],
  ["float8", DOUBLE],
  ["text", TEXT],
  ["string", TEXT],
  ["clob", TEXT],
  ["name", { kind: "text", lengthMax: 63 }],
  ["bpchar", TEXT],
  ["bytes", BYTES],
  ["bytea", BYTES],
  ["blob", BYTES],
  ["binary", BYTES],
  ["varbinary", BYTES],
  ["json", JSON_TEXT],
  ["jsonb", JSONB],
  ["date", DATE],
  ["uuid", UUID],
  ["money", MONEY],
  ["inet", INET],
  ["cidr", CIDR],
  ["macaddr", MACADDR],
  ["macaddr8", MACADDR8],
  ["file", FILE],
  ["interval", INTERVAL],
  ["jsonpath", JSONPATH],
  ["xml", XML],
  ["tsvector", TSVECTOR],
  ["tsquery", TSQUERY],
  ...[...GEOMETRIC_KINDS, ...UNSIGNED_KINDS, ...OBJECT_NAME_KINDS].map(
    (kind): [string, DataType] => [kind, { kind }],
  ),
  ...RANGE_TYPES.map((type): [string, DataType] => [typeName(type), type]),
  // A text search configuration is represented by its name.
  ["regconfig", TEXT],
]);

const TIMES: ReadonlyMap<string, DataType> = new Map<string, DataType>([
  ["timestamp", TIMESTAMP],
  ["timestamp without time zone", TIMESTAMP],
  ["timestamptz", DATETIME],
  ["timestamp with time zone", DATETIME],
  ["datetime", DATETIME],
  ["time", TIME],
  ["time without time zone", TIME],
  ["timetz", TIMETZ],
  ["time with time zone", TIMETZ],
]);

const TEXTS: ReadonlySet<string> = new Set([
  "varchar",
  "character varying",
  "nvarchar",
  "char",
  "character",
  "nchar",
]);

/** The names of the bit string types. The value is true if the length varies. */
const BITS: ReadonlyMap<string, boolean> = new Map([
  ["bit", false],
  ["bit varying", true],
  ["varbit", true],
]);

/** The data types of serial columns, keyed by the name of the serial type. */
const SERIALS: ReadonlyMap<string, DataType> = new Map<string, DataType>([
  ["smallserial", SMALLINT],
  ["serial2", SMALLINT],
  ["serial", INT],
  ["serial4", INT],
  ["bigserial", BIGINT],
  ["serial8", BIGINT],
]);

export function isSerial(definition: DataTypeDef): boolean {
  return definition.kind !== "array" && isBuiltInType(definition) && SERIALS.has(definition.name);
}

/** Returns the row type of a table; undefined if there is no table of this name. */
export type RowTypeFinder = (name: QName) => DataType | undefined;

/**
 * Resolves a type definition to a data type.
 *
 * @param rowTypeNamed Finds tables, whose names stand for their row types; undefined where no table
 *   may be a type.
 * @throws {DatabaseError} UNSUPPORTED_TYPE if the type does not exist; INVALID_DEFINITION if a
 *   type parameter is out of range.
 */
export function resolveType(definition: DataTypeDef, rowTypeNamed?: RowTypeFinder): DataType {
  const { collation } = definition;
  const type = uncollatedType(definition, rowTypeNamed);
  return collation === undefined ? type : typeWithCollation(type, collation);
}

function uncollatedType(
  definition: DataTypeDef,
  rowTypeNamed: RowTypeFinder | undefined,
): DataType {
  if (definition.kind === "array") {
    const type = arrayTypeOf(resolveType(definition.arrayOf, rowTypeNamed));
    const domain = elementDomainOf(definition.arrayOf);
    return domain === undefined || type.kind !== "array" ? type : { ...type, domain };
  }
  if (definition.definedType !== undefined) {
    if (definition.config === undefined) return definition.definedType;
    throw invalid(definition, "the type takes no size");
  }
  if (isBuiltInType(definition)) return builtInType(definition);
  const ofTable = rowTypeNamed?.(definition);
  if (ofTable === undefined) throw unsupported(definition);
  if (definition.config === undefined) return ofTable;
  throw invalid(definition, "the type takes no size");
}

/** Returns the domain to which a type definition refers; undefined if it refers to no domain. */
export function domainOf(definition: DataTypeDef): DomainType | undefined {
  return definition.kind === "array" ? undefined : definition.domain;
}

/**
 * Returns the domain of the elements of an array; undefined if they have none.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if its values are arrays themselves, because an array
 *   of arrays is an array with more dimensions.
 */
function elementDomainOf(element: DataTypeDef): DomainType | undefined {
  if (element.kind === "array") return elementDomainOf(element.arrayOf);
  const { domain } = element;
  if (domain?.base.kind !== "array") return domain;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use an array of domain ${domainName(domain)}: its values are arrays themselves`,
    {
      position: element._location.start,
      hint: "define a row type with a field of the domain, and use an array of that type",
    },
  );
}

function builtInType(definition: BasicDataTypeDef): DataType {
  const { doubleQuoted, name } = definition;
  // A quoted name is never an SQL keyword: "char" denotes PostgreSQL's one-byte type, which does
  // not exist here.
  if (doubleQuoted === true && name === "char") throw unsupported(definition);
  const [first, second] = definition.config ?? [];
  const listed = listedType(definition);
  if (listed !== undefined) return listed;
  switch (name) {
    case "interval":
      inRange(definition, first ?? 0, { min: 0, max: 6 });
      return INTERVAL;
    case "float":
      return first === undefined || inRange(definition, first, { min: 1, max: 53 }) <= 24
        ? FLOAT
        : DOUBLE;
    case "decimal":
    case "numeric":
    case "dec":
      return decimalFrom(definition, first, second);
    case "embedding":
    case "vector":
      return embeddingFrom(definition, first);
    default:
      throw unsupported(definition);
  }
}

/**
 * Returns the type that a definition names; undefined if no list of built-in types contains the
 * name.
 */
function listedType(definition: BasicDataTypeDef): DataType | undefined {
  const { config: [first] = [], name } = definition;
  const simple = SIMPLE.get(name) ?? SERIALS.get(name);
  if (simple !== undefined && (first === undefined || simple.kind === "bytes")) return simple;
  const time = TIMES.get(name);
  if (time !== undefined) return timeType(definition, time);
  const element = elementNamed(name);
  if (element !== undefined && first === undefined) return arrayTypeOf(element);
  if (TEXTS.has(name)) return textType(definition);
  return BITS.has(name) ? bitType(definition) : undefined;
}

function embeddingFrom(definition: BasicDataTypeDef, dimensions: number | undefined): DataType {
  if (dimensions === undefined)
    throw invalid(definition, "specify its number of dimensions in parentheses");
  return {
    kind: "embedding",
    dimensions: inRange(definition, dimensions, { min: 1, max: 8192 }),
  };
}

/**
 * Returns the element type of an array type whose name begins with an underscore, as in
 * PostgreSQL: `_int4`, `_text`.
 */
function elementNamed(name: string): DataType | undefined {
  if (!name.startsWith("_")) return;
  const element = name.slice(1);
  return SIMPLE.get(element) ?? TIMES.get(element) ?? (element === "varchar" ? TEXT : undefined);
}

/** The types with special rules for the numbers in parentheses after their names. */
const SIZED: ReadonlySet<string> = new Set([
  "float",
  "decimal",
  "numeric",
  "dec",
  "embedding",
  "vector",
]);

/** Whether a name refers to a built-in type rather than to one defined with CREATE TYPE. */
export function isBuiltInType({
  name,
  schema,
}: Pick<BasicDataTypeDef, "name" | "schema">): boolean {
  if (schema !== undefined && schema !== "pg_catalog") return false;
  const sets = [SIMPLE, SERIALS, TIMES, TEXTS, BITS, SIZED];
  return sets.some((each) => each.has(name)) || elementNamed(name) !== undefined;
}

/**
 * Returns the type of an array with the given element type. An array of arrays is an array with
 * more dimensions.
 */
export function arrayTypeOf(element: DataType): DataType {
  return element.kind === "array" ? element : { kind: "array", element };
}

/**
 * Returns the fields to which an interval type is restricted, as in INTERVAL DAY TO HOUR;
 * undefined if it is not restricted.
 */
export function intervalLimitOf(definition: DataTypeDef): IntervalLimit | undefined {
  if (definition.kind === "array" || definition.name !== "interval") return undefined;
  const { config, intervalFields } = definition;
  if (config === undefined && intervalFields === undefined) return undefined;
  return { fields: intervalFields, digits: config?.[0] };
}

/** Returns the type for BIT, BIT(n) or VARBIT. BIT without a length is BIT(1). */
function bitType(definition: BasicDataTypeDef): DataType {
  const isVarying = BITS.get(definition.name) === true;
  const [length = isVarying ? undefined : 1] = definition.config ?? [];
  if (length === undefined) return VARBIT;
  inRange(definition, length, { min: 1, max: BITS_MAX });
  return isVarying ? { kind: "bit", length, isVarying } : { kind: "bit", length };
}

/**
 * Returns a string type. CHAR without a length is CHAR(1), and VARCHAR without a length is TEXT.
 */
function textType(definition: BasicDataTypeDef): DataType {
  const [length] = definition.config ?? [];
  if (length !== undefined) {
    return { kind: "text", lengthMax: inRange(definition, length, { min: 1, max: 10_485_760 }) };
  }
  const isChar = ["char", "character", "nchar"].includes(definition.name);
  return isChar ? { kind: "text", lengthMax: 1 } : TEXT;
}

function timeType(definition: BasicDataTypeDef, type: DataType): DataType {
  const [digits] = definition.config ?? [];
  if (digits === undefined) return type;
  const checked = inRange(definition, digits, { min: 0, max: 6 });
  switch (type.kind) {
    case "timestamp":
    case "datetime":
    case "time":
    case "timetz":
      return checked === 6 ? type : { kind: type.kind, digits: checked };
    default:
      return type;
  }
}

/**
 * Returns the result type of `operand::NUMERIC`, a cast without a precision. The type has as many
 * digits as the operand may have.
 *
 * @param text The operand's text if it is an untyped literal.
 */
export function bareDecimalOf(operand: DataType, text: string | undefined): DataType {
  switch (operand.kind) {
    case "money":
      return decimalType(19, 2);
    case "decimal":
    case "smallint":
    case "int":
    case "bigint":
      return decimalOf(operand);
    default:
      break;
  }
  const digits = text === undefined ? undefined : digitsFromText(text.trim());
  const shape = digits === undefined ? undefined : decimalShape(digits);
  return shape === undefined ? NUMERIC : decimalType(shape.precision, shape.scale);
}

/** Whether a type definition is NUMERIC without a precision. */
export function isBareDecimal(definition: DataTypeDef): boolean {
  if (definition.kind === "array" || definition.config !== undefined) return false;
  if (definition.definedType !== undefined || !isBuiltInType(definition)) return false;
  return resolveType(definition) === NUMERIC;
}

function decimalFrom(
  definition: BasicDataTypeDef,
  precision: number | undefined,
  scale = 0,
): DataType {
  if (precision === undefined) return NUMERIC;
  const size = {
    precision: inRange(definition, precision, { min: 1, max: NUMERIC_PRECISION_MAX }),
    scale: inRange(definition, scale, { min: -NUMERIC_PRECISION_MAX, max: NUMERIC_PRECISION_MAX }),
  };
  const isShort = size.precision <= DECIMAL_PRECISION_MAX;
  return isShort && size.scale >= 0 && size.scale <= size.precision
    ? decimalType(size.precision, size.scale)
    : { kind: "numeric", size };
}

/** The largest precision that NUMERIC may declare, and also the largest scale. */
const NUMERIC_PRECISION_MAX = 1000;

function inRange(
  definition: BasicDataTypeDef,
  value: number,
  { min, max }: { min: number; max: number },
): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(definition, `${value} must be between ${min} and ${max}`);
}

function invalid(definition: BasicDataTypeDef, what: string): DatabaseError {
  return new DatabaseError("INVALID_DEFINITION", `Cannot use type "${definition.name}": ${what}`, {
    position: definition._location.start,
  });
}

function unsupported(definition: BasicDataTypeDef): DatabaseError {
  const { schema } = definition;
  const name = schema === undefined ? definition.name : `${schema}.${definition.name}`;
  const isSized = SIMPLE.has(name);
  const instead = insteadOfType(name) ?? nearestName(name, typeNames());
  const hint = isSized
    ? `write ${name.toUpperCase()} without a size`
    : instead === undefined
      ? undefined
      : `write ${instead}`;
  return new DatabaseError(
    "UNSUPPORTED_TYPE",
    `Cannot use type "${name}": ${isSized ? "the type takes no size" : "there is no such type"}`,
    { position: definition._location.start, ...(hint === undefined ? {} : { hint }) },
  );
}

function typeNames(): string[] {
  const sets = [SIMPLE, TIMES, TEXTS, BITS, SERIALS];
  return sets.flatMap((each) => Array.from(each.keys())).concat("decimal", "numeric");
}
