/** Defines operators on JSON and JSONB. File references are read as JSON. */

import {
  BOOLEAN,
  type DataType,
  isInteger,
  JSON_TEXT,
  JSONB,
  type JsonSlice,
  jsonElement,
  jsonMember,
  jsonPath,
  jsonRoot,
  jsonScalarText,
  jsonTree,
  TEXT,
  textFromJson,
  type Value,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";
import { soughtBytes, testRowsWith } from "../json/json_columns.ts";
import { textsOf } from "../json/json_edit.ts";
import {
  jsonConcat,
  jsonContainsAtTop,
  jsonHasKey,
  jsonWithoutIndex,
  jsonWithoutKeys,
  jsonWithoutPath,
  remembered,
} from "../json/json_math.ts";
import { PATH_EXISTS, PATH_MATCHES } from "../jsonpath/path_functions.ts";

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

function isJson(type: DataType): boolean {
  return type.kind === "json" || type.kind === "file";
}

function isText(type: DataType): boolean {
  return type.kind === "text" || type.kind === "unknown";
}

function isTextArray(type: DataType): boolean {
  return type.kind === "array" && isText(type.element);
}

export function resolveJson(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  switch (op) {
    case "->":
    case "->>":
      return isJson(left) ? resolveMember(left, right, op === "->>") : undefined;
    case "#>":
    case "#>>":
      return isJson(left) ? resolvePath(left, right, op === "#>>") : undefined;
    case "@>":
    case "<@":
    case "||":
      return resolveTwoDocuments(op, left, right);
    case "?":
    case "?|":
    case "?&":
      return isJson(left) ? resolveKeys(op, left, right) : undefined;
    case "-":
      return isJson(left) ? resolveRemoval(right) : undefined;
    case "#-":
      return isJson(left) ? resolvePathRemoval(right) : undefined;
    default:
      return isJson(left) ? resolveJsonPath(op, right) : undefined;
  }
}

type JsonTree = ReturnType<typeof jsonTree>;

function onTree(json: Value, change: (node: JsonTree) => JsonTree): string {
  return textFromJson(change(jsonTree(json as string)));
}

function partType(json: DataType): DataType {
  return json.kind === "json" ? json : JSON_TEXT;
}

/**
 * Returns the type in which a document is searched: JSON or JSONB as declared, or JSONB for a
 * literal.
 */
function searchedType(type: DataType): DataType {
  return isJson(type) ? partType(type) : JSONB;
}

function part(text: string, slice: JsonSlice | undefined, asText: boolean): Value {
  if (slice === undefined) return null;
  return asText ? (jsonScalarText(text, slice) ?? null) : text.slice(slice.start, slice.end);
}

function resolveMember(json: DataType, key: DataType, asText: boolean): OperatorForm | undefined {
  const type = partType(json);
  const result = asText ? TEXT : type;
  if (isInteger(key)) {
    return binaryForm([type, key], result, (value, index) => {
      const text = value as string;
      return part(text, jsonElement(text, jsonRoot(text), Number(index)), asText);
    });
  }
  if (!isText(key)) return undefined;
  return binaryForm([type, TEXT], result, (value, member) => {
    const text = value as string;
    return part(text, jsonMember(text, jsonRoot(text), member as string), asText);
  });
}

function resolvePath(json: DataType, path: DataType, asText: boolean): OperatorForm | undefined {
  if (!isTextArray(path) && path.kind !== "unknown") return undefined;
  const type = partType(json);
  return binaryForm([type, TEXT_ARRAY], asText ? TEXT : type, (value, steps) => {
    const text = value as string;
    if ((steps as readonly Value[]).includes(null)) return null;
    return part(text, jsonPath(text, textsOf(steps)), asText);
  });
}

function resolveTwoDocuments(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  const areDocuments =
    (isJson(left) && (isJson(right) || right.kind === "unknown")) ||
    (left.kind === "unknown" && isJson(right));
  if (!areDocuments) return undefined;
  if (op === "||") {
    return binaryForm([JSONB, JSONB], JSONB, (l, r) =>
      textFromJson(jsonConcat(jsonTree(l as string), jsonTree(r as string))),
    );
  }
  return containment(op === "@>" ? 0 : 1, [searchedType(left), searchedType(right)]);
}

/**
 * Returns the form of `@>` or `<@`.
 *
 * @param outerAt The index of the operand that may contain the other operand.
 */
function containment(outerAt: 0 | 1, operands: readonly [DataType, DataType]): OperatorForm {
  const outer = operands[outerAt];
  const soughtOf = remembered((text) => {
    const tree = jsonTree(text);
    const isCanonical = outer.kind === "json" && outer.binary;
    return { tree, bytes: soughtBytes(tree, isCanonical) };
  });
  return {
    operands,
    result: BOOLEAN,
    evaluate: (values) =>
      jsonContainsAtTop(values[outerAt] as string, soughtOf(values[1 - outerAt] as string).tree),
    evaluateVector: (vector, values, position) => {
      if (vector.kind !== "utf8" || position !== outerAt) return undefined;
      const { bytes, tree } = soughtOf(values[1 - outerAt] as string);
      if (bytes === undefined) return undefined;
      return testRowsWith(vector, bytes, (text) => jsonContainsAtTop(text, tree));
    },
  };
}

function resolveKeys(op: string, json: DataType, right: DataType): OperatorForm | undefined {
  const type = searchedType(json);
  if (op === "?") {
    if (!isText(right)) return undefined;
    return binaryForm([type, TEXT], BOOLEAN, (document, key) =>
      jsonHasKey(document as string, key as string),
    );
  }
  if (!isTextArray(right) && right.kind !== "unknown") return undefined;
  return binaryForm([type, TEXT_ARRAY], BOOLEAN, (document, keys) => {
    const isHeld = (key: string): boolean => jsonHasKey(document as string, key);
    return op === "?|" ? textsOf(keys).some(isHeld) : textsOf(keys).every(isHeld);
  });
}

function resolveRemoval(right: DataType): OperatorForm | undefined {
  if (isInteger(right)) {
    return binaryForm([JSONB, right], JSONB, (json, index) =>
      onTree(json, (node) => jsonWithoutIndex(node, Number(index))),
    );
  }
  if (isTextArray(right)) {
    return binaryForm([JSONB, TEXT_ARRAY], JSONB, (json, keys) =>
      onTree(json, (node) => jsonWithoutKeys(node, textsOf(keys))),
    );
  }
  if (!isText(right)) return undefined;
  return binaryForm([JSONB, TEXT], JSONB, (json, key) =>
    onTree(json, (node) => jsonWithoutKeys(node, [key as string])),
  );
}

function resolvePathRemoval(path: DataType): OperatorForm | undefined {
  if (!isTextArray(path) && path.kind !== "unknown") return undefined;
  return binaryForm([JSONB, TEXT_ARRAY], JSONB, (json, steps) =>
    onTree(json, (node) => jsonWithoutPath(node, textsOf(steps))),
  );
}

function resolveJsonPath(op: string, path: DataType): OperatorForm | undefined {
  if (path.kind !== "jsonpath" && path.kind !== "unknown") return undefined;
  if (op === "@?") return PATH_EXISTS;
  return op === "@@" ? PATH_MATCHES : undefined;
}
