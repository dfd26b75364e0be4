/**
 * Binds function calls that name a type: `date(x)` is `CAST(x AS date)`, and `timestamptz(d, t)`
 * is `CAST(d + t AS timestamptz)`.
 */
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  CIDR,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  FLOAT,
  INET,
  INT,
  INTERVAL,
  JSON_TEXT,
  JSONB,
  MACADDR,
  MACADDR8,
  MONEY,
  OBJECT_NAME_KINDS,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMETZ,
  TSQUERY,
  TSVECTOR,
  UNSIGNED_KINDS,
  UUID,
  XML,
} from "../../../types/mod.ts";
import { functionExists } from "../../functions/registry.ts";
import type { ExprCall } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "./casts.ts";

const FUNCTIONAL_CASTS: ReadonlyMap<string, DataType> = new Map<string, DataType>([
  ["bool", BOOLEAN],
  ["int2", SMALLINT],
  ["int4", INT],
  ["int8", BIGINT],
  ["float4", FLOAT],
  ["float8", DOUBLE],
  ["text", TEXT],
  ["varchar", TEXT],
  ["date", DATE],
  ["time", TIME],
  ["timestamp", TIMESTAMP],
  ["timestamptz", DATETIME],
  ["interval", INTERVAL],
  ["uuid", UUID],
  ["timetz", TIMETZ],
  ["money", MONEY],
  ["inet", INET],
  ["cidr", CIDR],
  ["macaddr", MACADDR],
  ["macaddr8", MACADDR8],
  ["bytea", BYTES],
  ["json", JSON_TEXT],
  ["jsonb", JSONB],
  ["tsvector", TSVECTOR],
  ["tsquery", TSQUERY],
  ["xml", XML],
  ...[...UNSIGNED_KINDS, ...OBJECT_NAME_KINDS].map((kind): [string, DataType] => [kind, { kind }]),
]);

/** The types that may be called as functions with a date and a time as arguments. */
const MOMENTS: ReadonlySet<string> = new Set(["timestamp", "timestamptz"]);

export function isFunctionalCast(name: string): boolean {
  return FUNCTIONAL_CASTS.has(name);
}

/** Binds a call that names a type as a cast; undefined for any other call. */
export function bindFunctionalCast(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  const { name } = call.function;
  const [argument, ...others] = call.args;
  const to = FUNCTIONAL_CASTS.get(name);
  const [other] = others;
  if (other !== undefined && others.length === 1 && MOMENTS.has(name) && argument !== undefined) {
    const { _location } = call;
    const sum = { type: "binary", op: "+", left: argument, right: other, _location } as const;
    return castTo(bind(sum, context), { to: to ?? DATETIME, mode: "explicit", node: call });
  }
  if (to === undefined || argument === undefined || others.length > 0) return undefined;
  if (functionExists(name)) return undefined;
  return castTo(bind(argument, context), { to, mode: "explicit", node: call });
}
