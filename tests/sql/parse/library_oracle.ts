/**
 * Uses pgsql-ast-parser as an oracle for syntax trees. Compares its tree with ours after removing
 * the parts that only one of them has.
 */
import { parse } from "pgsql-ast-parser";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { bare, type Json, rewrite } from "./bare.ts";

type JsonObject = { readonly [key: string]: Json };

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLiteral(value: Json | undefined): value is JsonObject & { readonly value: number } {
  return isObject(value) && (value["type"] === "integer" || value["type"] === "numeric");
}

/** Returns our tree, renamed to the names that the library uses. */
export function treeForLibrary(text: string): Json {
  return rewrite(bare(parseStatements(text)), (node) => {
    const { star: _star, text: _text, ...rest } = node;
    switch (node["type"]) {
      case "set":
        // A `set` node with a column is an assignment. The node of a SET statement has a variable
        // instead.
        return "column" in rest ? without(rest, "type") : { ...rest, set: setValue(rest["set"]) };
      case "parameter":
        return without(rest, "index");
      case "create namespace":
        return { ...rest, type: "create schema" };
      case "update":
        return singleFrom(rest);
      case "binary":
        return plainIn(rest);
      case "bits":
        return bitsAsCast(rest);
      case "grouping":
      case "rollup":
      case "cube":
        return { type: "call", function: { name: node["type"] }, args: rest["groups"] ?? [] };
      default:
        return negated(rest);
    }
  });
}

// For `SET x = 1`, the library's tree contains a bare value.
function setValue(set: Json | undefined): Json {
  if (!isObject(set) || set["type"] !== "value" || !isObject(set["value"])) return set ?? null;
  return { type: "value", value: set["value"]["value"] ?? null };
}

function without(node: JsonObject, key: string): Json {
  return Object.fromEntries(Object.entries(node).filter(([name]) => name !== key));
}

function singleFrom(node: JsonObject): Json {
  const { from } = node;
  return Array.isArray(from) && from.length === 1 ? { ...node, from: from[0] } : node;
}

// In the library, a one-element list after IN is just that element.
function plainIn(node: JsonObject): Json {
  const { op, right } = node;
  if ((op !== "IN" && op !== "NOT IN") || !isObject(right) || right["type"] !== "list") return node;
  const parts = right["expressions"];
  return Array.isArray(parts) && parts.length === 1 ? { ...node, right: parts[0] } : node;
}

// In the library, `B'10'` is a string that is cast to the type `b`.
function bitsAsCast({ bits }: JsonObject): Json {
  return { type: "cast", operand: { type: "string", value: bits ?? null }, to: { name: "b" } };
}

/** Returns the library's tree without nulls, converted to our form where the two differ. */
export function libraryTree(text: string): Json {
  return rewrite(bare(parse(text)), (node) => {
    const kept = Object.fromEntries(Object.entries(node).filter(([, value]) => value !== null));
    switch (kept["type"]) {
      case "member":
        return memberAsBinary(kept);
      case "call":
        return splitPosition(kept);
      default:
        return negated(kept);
    }
  });
}

// In the library, `a -> 'b'` is a member of `a`.
function memberAsBinary({ member, op, operand }: JsonObject): Json {
  const type = typeof member === "number" ? "integer" : "string";
  const right = { type, value: member ?? null };
  return { type: "binary", op: op ?? null, left: operand ?? null, right };
}

// In the library, `position(a IN b)` is a call with the condition `a IN b`.
function splitPosition(call: JsonObject): Json {
  const { args, function: called } = call;
  const only = Array.isArray(args) && args.length === 1 ? (args[0] as Json) : undefined;
  if (!isObject(called) || called["name"] !== "position" || !isObject(only)) return call;
  if (only["op"] !== "IN") return call;
  return { ...call, args: [only["left"] ?? null, only["right"] ?? null] };
}

// The library reads a sign before a number as part of the number, even if a cast follows:
// `-1::int`.
function negated(node: JsonObject): Json {
  const { op, operand, type } = node;
  if (type !== "unary" || op !== "-" || !isObject(operand)) return node;
  if (isLiteral(operand)) return { ...operand, value: -operand.value };
  const inner = operand["type"] === "cast" ? operand["operand"] : undefined;
  if (!isLiteral(inner)) return node;
  return { ...operand, operand: { ...inner, value: -inner.value } };
}

/** Returns the library's tree; undefined if the library refuses the text. */
export function libraryTreeIfRead(text: string): Json | undefined {
  try {
    return libraryTree(text);
  } catch {
    return undefined;
  }
}
