/** Builds the expected nodes of statements, without their positions. */
import { expect } from "bun:test";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { bare, type Json } from "./bare.ts";

export type Tree = { readonly [key: string]: Json };

export const name = (text: string): Tree => ({ name: text });

export const qname = (schema: string, text: string): Tree => ({ schema, name: text });

export const ref = (text: string): Tree => ({ type: "ref", name: text });

export const integer = (value: number): Tree => ({ type: "integer", value, text: String(value) });

export const string = (value: string): Tree => ({ type: "string", value });

export const star: Tree = { expr: { type: "ref", name: "*", star: true } };

export const table = (text: string): Tree => ({ type: "table", name: name(text) });

export const select = (rest: Tree): Tree => ({ type: "select", ...rest });

export const one: Tree = select({ columns: [{ expr: integer(1) }] });

export const option = (key: string, value: Tree): Tree => ({ name: key, value });

export const word = (text: string): Tree => ({ type: "identifier", name: text });

export const equals = (left: Tree, right: Tree): Tree => ({ type: "binary", op: "=", left, right });

export function treeOf(text: string): Json {
  const statements = parseStatements(text);
  expect(statements.length).toBe(1);
  return bare(statements[0]);
}

export const group: Tree = {
  type: "from group",
  from: [table("b"), { ...table("c"), join: { type: "LEFT JOIN", on: ref("x") } }],
};
