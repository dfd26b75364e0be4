/**
 * Parses CREATE AGGREGATE in both of its syntaxes. In the older one, the attribute `basetype` has
 * the only argument, in place of a parameter list.
 */
import type {
  AggregateStepsNode,
  CreateAggregateStatement,
  FunctionParameterNode,
  QName,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { AGGREGATE, invalidAggregate, parseAggregateParameters } from "./functions.ts";
import { Token } from "./text/lexer.ts";

/** The attributes of a definition that have a value of the same kind. */
type FunctionAttribute = "combine" | "final" | "inverse" | "transition";

interface Attributes {
  baseType?: FunctionParameterNode[];
  combine?: QName;
  readonly plain: Partial<Mutable<AggregateStepsNode>>;
  readonly moving: Partial<Mutable<AggregateStepsNode>>;
  /** The attributes read so far. */
  readonly seen: Set<string>;
}

/** The older names of attributes. */
const FORMER_NAMES: ReadonlyMap<string, string> = new Map([
  ["sfunc1", "sfunc"],
  ["stype1", "stype"],
  ["initcond1", "initcond"],
]);

const FUNCTIONS: ReadonlyMap<string, FunctionAttribute> = new Map([
  ["sfunc", "transition"],
  ["minvfunc", "inverse"],
  ["finalfunc", "final"],
  ["combinefunc", "combine"],
]);

/** Attributes that PostgreSQL uses only to plan its own queries, with the values they may have. */
const ADVICE: ReadonlyMap<string, readonly string[] | undefined> = new Map([
  ["sspace", undefined],
  ["msspace", undefined],
  ["sortop", undefined],
  ["parallel", ["safe", "restricted", "unsafe"]],
  ["finalfunc_modify", ["read_only", "shareable", "read_write"]],
  ["mfinalfunc_modify", ["read_only", "shareable", "read_write"]],
]);

const INTERNAL_STATE =
  "a state of type internal, which only functions written in C can read, is not available";

/** Parses the rest of a statement after `CREATE [OR REPLACE] AGGREGATE`. */
export function parseCreateAggregate(
  cursor: Cursor,
  start: number,
  orReplace: true | undefined,
): CreateAggregateStatement {
  const name = cursor.qname(AGGREGATE);
  const given = cursor.isAhead(2, "=") ? undefined : parseAggregateParameters(cursor);
  const { start: at } = cursor;
  const attributes = parseAttributes(cursor);
  const parameters = given ?? attributes.baseType;
  if (parameters === undefined) {
    throw invalidAggregate("it declares no parameters", at, "write (*) if it has none");
  }
  if (given !== undefined && attributes.baseType !== undefined) {
    throw invalidAggregate("BASETYPE repeats the parameters", at, "remove BASETYPE");
  }
  const { combine, moving, plain } = attributes;
  const isMoving = Object.keys(moving).length > 0;
  return {
    type: "create aggregate",
    orReplace,
    name,
    parameters,
    plain: wholeSteps(plain, { at, prefix: "" }),
    ...(isMoving ? { moving: wholeSteps(moving, { at, prefix: "M" }) } : {}),
    ...(combine === undefined ? {} : { combine }),
    _location: cursor.since(start),
  };
}

function wholeSteps(
  steps: Partial<AggregateStepsNode>,
  { at, prefix }: { readonly at: number; readonly prefix: "" | "M" },
): AggregateStepsNode {
  const { dataType, inverse, transition } = steps;
  if (transition === undefined) throw invalidAggregate(`it lacks ${prefix}SFUNC`, at);
  if (dataType === undefined) throw invalidAggregate(`it lacks ${prefix}STYPE`, at);
  if (prefix === "M" && inverse === undefined) {
    throw invalidAggregate("it has MSFUNC, but lacks MINVFUNC", at);
  }
  return { ...steps, dataType, transition };
}

function parseAttributes(cursor: Cursor): Attributes {
  const attributes: Attributes = { plain: {}, moving: {}, seen: new Set() };
  cursor.expect("(");
  do {
    parseAttribute(cursor, attributes);
    requireListed(cursor, attributes.seen.size, "attributes of a single aggregate");
  } while (cursor.accept(","));
  cursor.expect(")");
  return attributes;
}

function parseAttribute(cursor: Cursor, attributes: Attributes): void {
  const { start } = cursor;
  const { name: written } = cursor.label("an attribute such as SFUNC or STYPE");
  const name = FORMER_NAMES.get(written) ?? written;
  if (attributes.seen.has(name))
    throw invalidAggregate(`the attribute ${name} occurs twice`, start);
  attributes.seen.add(name);
  if (name === "serialfunc" || name === "deserialfunc") {
    cursor.refuse(`${name.toUpperCase()} of an aggregate`, INTERNAL_STATE, start);
  }
  if (name === "hypothetical") {
    cursor.refuse("a user-defined hypothetical-set aggregate", undefined, start);
  }
  if (name === "basetype") {
    cursor.expect("=");
    attributes.baseType = parseBaseType(cursor);
  } else if (ADVICE.has(name)) {
    parseAdvice(cursor, ADVICE.get(name));
  } else if (!acceptStep(cursor, name, attributes)) {
    throw invalidAggregate(
      `there is no attribute "${written}"`,
      start,
      "the attributes are SFUNC, STYPE, FINALFUNC, FINALFUNC_EXTRA, INITCOND, COMBINEFUNC, " +
        "MSFUNC, MINVFUNC, MSTYPE, MFINALFUNC, MFINALFUNC_EXTRA and MINITCOND",
    );
  }
}

/** Parses the value of an attribute that defines how the state is computed. */
function acceptStep(cursor: Cursor, written: string, attributes: Attributes): boolean {
  const isOfMoving = written !== "minvfunc" && MOVING.has(written);
  const name = isOfMoving ? written.slice(1) : written;
  const steps = isOfMoving || written === "minvfunc" ? attributes.moving : attributes.plain;
  const ofFunction = FUNCTIONS.get(name);
  if (ofFunction !== undefined) {
    cursor.expect("=");
    const named = parseFunctionValue(cursor);
    if (ofFunction === "combine") attributes.combine = named;
    else steps[ofFunction] = named;
    return true;
  }
  switch (name) {
    case "stype":
      cursor.expect("=");
      if (cursor.nameText(cursor.token) === "internal") {
        cursor.refuse("STYPE = internal", INTERNAL_STATE);
      }
      steps.dataType = cursor.grammar.dataType(cursor);
      return true;
    case "initcond":
      cursor.expect("=");
      steps.initial = parseTextValue(cursor);
      return true;
    case "finalfunc_extra":
      if (!cursor.accept("=") || parseTruth(cursor)) steps.isFinalExtended = true;
      return true;
    default:
      return false;
  }
}

const MOVING: ReadonlySet<string> = new Set([
  "msfunc",
  "mstype",
  "mfinalfunc",
  "mfinalfunc_extra",
  "minitcond",
]);

/** Parses the name of a function. As in PostgreSQL, a list in parentheses has no effect. */
function parseFunctionValue(cursor: Cursor): QName {
  const name = cursor.isString() ? stringName(cursor) : cursor.qname("a function");
  if (!cursor.accept("(")) return name;
  while (!cursor.accept(")")) {
    if (cursor.kind === Token.end) cursor.unexpected(")");
    cursor.token += 1;
  }
  return name;
}

function stringName(cursor: Cursor): QName {
  const { token } = cursor;
  const name = cursor.takeString();
  return { name, _location: cursor.since(token) };
}

function parseBaseType(cursor: Cursor): FunctionParameterNode[] {
  const { token } = cursor;
  const isAny = cursor.isString()
    ? cursor.takeString().toLowerCase() === "any"
    : cursor.nameText(token).toLowerCase() === "any";
  if (isAny) {
    if (cursor.token === token) cursor.token += 1;
    return [];
  }
  const dataType = cursor.grammar.dataType(cursor);
  return [{ mode: "in", dataType, _location: cursor.since(token) }];
}

function parseAdvice(cursor: Cursor, values: readonly string[] | undefined): void {
  cursor.expect("=");
  const { start } = cursor;
  if (values === undefined) {
    do cursor.token += 1;
    while (!cursor.is(",") && !cursor.is(")") && cursor.kind !== Token.end);
    return;
  }
  const word = cursor.isString() ? cursor.takeString() : cursor.label(values.join(" or ")).name;
  if (!values.includes(word))
    throw invalidAggregate(`"${word}" is none of ${values.join(", ")}`, start);
}

/** Reads the text of a string, a number or a word. */
function parseTextValue(cursor: Cursor): string {
  if (cursor.isString()) return cursor.takeString();
  const sign = cursor.accept("-") ? "-" : "";
  if (cursor.kind === Token.integer || cursor.kind === Token.numeric) {
    const from = cursor.start;
    cursor.token += 1;
    return sign + cursor.text.slice(from, cursor.end);
  }
  return cursor.label("a string").name;
}

function parseTruth(cursor: Cursor): boolean {
  const { start } = cursor;
  const value = parseTextValue(cursor).toLowerCase();
  if (["true", "on", "1"].includes(value)) return true;
  if (["false", "off", "0"].includes(value)) return false;
  throw invalidAggregate(`"${value}" is neither true nor false`, start);
}
