/**
 * Tests the names that the definitions in a request create, and how later statements find them.
 */
import { expect, test } from "bun:test";
import { DefinedNames } from "../../../src/sql/ddl/defined_names.ts";
import type { Statement } from "../../support/parsed.ts";

test("DefinedNames does not create the nodes of a long list of literals", () => {
  const list = {
    type: "list",
    literals: { count: 2 },
    get expressions(): never {
      throw new Error("nobody needs them");
    },
  };
  const node = { type: "select", where: list, from: [{ type: "table", name: { name: "t" } }] };
  const isUsed = (table: string, namespace: string): boolean => {
    const defined = new DefinedNames();
    const creation = { type: "create table", name: { name: table } };
    defined.add(creation as unknown as Statement, namespace);
    return defined.isUsedBy(node as unknown as Statement, "app");
  };
  expect([isUsed("t", "app"), isUsed("u", "app"), isUsed("t", "other")]).toEqual([
    true,
    false,
    false,
  ]);
});
