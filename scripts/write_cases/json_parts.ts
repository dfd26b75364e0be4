/**
 * Test cases for UPDATE statements that assign to parts of JSONB columns, and for removing object
 * keys whose value is null.
 */
import type { CaseFile } from "./answer.ts";

const STRIPPED = [
  '{"a": 1, "b": null, "c": {"d": null, "e": [1, null, {"f": null}]}}',
  ' [ null , { "x" : null , "y" : 1.50 } ] ',
  "null",
  '"s"',
  "{}",
] as const;

const ASSIGNED = [
  "j['a'] = '1'",
  "j['b'] = '{\"x\": [1, 2]}'",
  "j['b']['x'][0] = '\"first\"'",
  "j['b']['x'][4] = '5'",
  "j['b']['x'][-1] = '\"last\"'",
  "j['c']['d']['e'] = 'true'",
  "j['f'][2]['g'] = '0'",
  "j['a'] = NULL",
  "j['h'] = to_jsonb(id)",
  "j['i'] = '1', j['k'] = '2'",
  "j['b'] = j['b']['x']",
] as const;

const REFUSED = [
  "j['b']['x'] = '1'",
  "j['a']['z'] = '1'",
  "j['b'][-20] = '1'",
  "j[NULL] = '1'",
  "j['a'] = 'no json'",
  "j['a'][1:2] = '1'",
  "k['a'] = '1'",
] as const;

export const JSON_PARTS: CaseFile = {
  name: "json_parts",
  about: "parts of JSONB columns, and null members that are stripped",
  statements: [
    ...STRIPPED.flatMap((json) => [
      `SELECT json_strip_nulls('${json}')`,
      `SELECT jsonb_strip_nulls('${json}')`,
    ]),
    "SELECT json_strip_nulls(NULL)",
    "CREATE TABLE documents (id INT PRIMARY KEY, j JSONB, k INT)",
    "INSERT INTO documents VALUES (1, '{}', 0), (2, NULL, 0), (3, '[]', 0), (4, '{\"a\": {\"b\": 1}}', 0)",
    ...ASSIGNED.flatMap((set) => [
      `UPDATE documents SET ${set} WHERE id = 1`,
      "SELECT j FROM documents WHERE id = 1",
    ]),
    ...REFUSED.map((set) => `UPDATE documents SET ${set} WHERE id = 1`),
    "UPDATE documents SET j['a']['b'] = '2' WHERE id IN (2, 4)",
    "UPDATE documents SET j[1] = '\"one\"' WHERE id = 3",
    "SELECT id, j FROM documents ORDER BY id",
    "UPDATE documents SET j = NULL WHERE id IN (2, 3)",
    "UPDATE documents SET j[1] = '5' WHERE id = 2",
    "UPDATE documents SET j['1'] = '5' WHERE id = 3",
    "INSERT INTO documents VALUES (4, '{\"n\": 1}', 0) ON CONFLICT (id) DO UPDATE SET j['new'] = excluded.j, k = 7",
    "SELECT id, j, k FROM documents ORDER BY id",
  ],
};
