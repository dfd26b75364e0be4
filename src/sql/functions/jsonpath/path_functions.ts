/**
 * Defines the functions `jsonb_path_…` and the operators `@?` and `@@`, which apply JSON paths.
 *
 * Parsed paths are cached, because later rows and statements often use the same path.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  isJsonObject,
  JSONB,
  JSONPATH,
  type JsonNode,
  jsonTree,
  parseJsonPath,
  textFromJson,
  type Value,
} from "../../../types/mod.ts";
import type { OperatorForm, Overload, ScalarFunction, Signature } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";
import { remembering } from "../base/remembering.ts";
import { remembered } from "../json/json_math.ts";
import { nodeOf, PathFault } from "./path_items.ts";
import { PathRun } from "./path_run.ts";

const pathOf = remembering(parseJsonPath);

const variablesOf = remembered((text: string): JsonNode => {
  const variables = jsonTree(text);
  if (isJsonObject(variables)) return variables;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot evaluate the JSON path: its variables must be passed as a JSON object",
  );
});

/**
 * The parameters of the JSON path functions: the document, the path, the variables, and whether
 * errors are suppressed.
 */
export const PATH_SIGNATURE: Signature = {
  parameters: [JSONB, JSONPATH, JSONB, BOOLEAN],
  optionalCount: 2,
  parameterNames: ["target", "path", "vars", "silent"],
  omittedTexts: [undefined, undefined, "{}"],
};

interface PathCall {
  readonly run: PathRun;
  readonly isSilent: boolean;
}

function callOf(values: readonly Value[], usesZone: boolean): PathCall {
  const [document = null, path = null, variables = "{}", silent = false] = values;
  const run = new PathRun(pathOf(path as string), jsonTree(document as string), {
    variables: variablesOf(variables as string),
    usesZone,
  });
  return { run, isSilent: silent === true };
}

/** Creates the call that evaluates an operator. It has no variables and suppresses errors. */
function silentCall(document: Value, path: Value): PathCall {
  const run = new PathRun(pathOf(path as string), jsonTree(document as string), {
    variables: undefined,
    usesZone: false,
  });
  return { run, isSilent: true };
}

/** Evaluates a JSON path. Returns whether the evaluation ended with a suppressed error. */
function endsInFault(isSilent: boolean, run: () => void): boolean {
  try {
    run();
    return false;
  } catch (error) {
    // The caller has requested that errors be suppressed.
    if (isSilent && error instanceof PathFault) return true;
    throw error;
  }
}

function exists({ run, isSilent }: PathCall): Value {
  let found = false;
  const isFault = endsInFault(isSilent, () => {
    found = run.exists();
  });
  return isFault ? null : found;
}

/** Returns the items that a path selects. A suppressed error ends the list. */
function nodesOf({ run, isSilent }: PathCall, countMax = Number.POSITIVE_INFINITY): JsonNode[] {
  const nodes: JsonNode[] = [];
  endsInFault(isSilent, () => {
    run.items((item) => {
      nodes.push(nodeOf(item));
      return nodes.length >= countMax;
    });
  });
  return nodes;
}

function matches(call: PathCall): Value {
  const nodes = nodesOf(call);
  const [node = null] = nodes;
  if (nodes.length === 1 && (node === null || typeof node === "boolean")) return node;
  if (call.isSilent) return null;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot use the JSON path as a condition: its result must be a single boolean",
    { hint: "to test whether a path returns anything, use jsonb_path_exists" },
  );
}

function all(call: PathCall): Value {
  return textFromJson(nodesOf(call));
}

function first(call: PathCall): Value {
  const [node] = nodesOf(call);
  return node === undefined ? null : textFromJson(node);
}

type Evaluate = (call: PathCall) => Value;

function pathFunctions(): ScalarFunction[] {
  const kinds: readonly (readonly [name: string, result: typeof JSONB, evaluate: Evaluate])[] = [
    ["exists", BOOLEAN, exists],
    ["match", BOOLEAN, matches],
    ["query_array", JSONB, all],
    ["query_first", JSONB, first],
  ];
  return kinds.flatMap(([name, result, evaluate]) =>
    ["", "_tz"].map((suffix) => ({
      name: `jsonb_path_${name}${suffix}`,
      overloads: [pathOverload(result, evaluate, suffix !== "")],
    })),
  );
}

function pathOverload(result: typeof JSONB, evaluate: Evaluate, usesZone: boolean): Overload {
  return {
    ...PATH_SIGNATURE,
    result,
    volatility: usesZone ? "stable" : "immutable",
    evaluate: (values) => evaluate(callOf(values, usesZone)),
  };
}

export const PATH_FUNCTIONS: readonly ScalarFunction[] = pathFunctions();

/** Returns the items selected by a call to jsonb_path_query. @throws {DatabaseError} */
export function pathNodes(values: readonly Value[], usesZone: boolean): JsonNode[] {
  return nodesOf(callOf(values, usesZone));
}

/** The operators `@?` and `@@`, which apply a JSON path to a document. */
export const PATH_EXISTS: OperatorForm = binaryForm([JSONB, JSONPATH], BOOLEAN, (json, path) =>
  exists(silentCall(json, path)),
);
export const PATH_MATCHES: OperatorForm = binaryForm([JSONB, JSONPATH], BOOLEAN, (json, path) =>
  matches(silentCall(json, path)),
);
