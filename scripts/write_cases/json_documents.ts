/**
 * Test cases for JSON documents: their order, their text form, and their construction from values.
 */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

/** JSON documents that the test cases compare with each other. */
const DOCUMENTS = [
  "[]",
  "{}",
  "null",
  "true",
  "1.0",
  "-1",
  '"a"',
  '"ab"',
  "[null]",
  "[[]]",
  "[{}]",
  "[1]",
  "[[], 1]",
  '{"line":1}',
  '{"p":1}',
  '{"a":[]}',
  '{"a":null}',
  '{"a":{"line":1}}',
  '{"a":{"p":1}}',
  '{"p":1,"line":2}',
  '{"b":1,"aa":0}',
  '{"aa":1,"b":0}',
] as const;

function json(document: string): string {
  return `'${document}'::jsonb`;
}

const JSON_ORDER: CaseFile = {
  name: "json_order",
  about: "the order of JSONB",
  statements: [
    ...["<", "="].flatMap((operator) =>
      DOCUMENTS.map(
        (left) =>
          `SELECT ${DOCUMENTS.map((right) => `${json(left)} ${operator} ${json(right)}`).join(", ")}`,
      ),
    ),
    "CREATE TABLE j (id INT PRIMARY KEY, d JSONB)",
    `INSERT INTO j VALUES ${DOCUMENTS.map((document, i) => `(${i}, ${json(document)})`).join(", ")}`,
    "SELECT id FROM j ORDER BY d, id",
    "SELECT id FROM j ORDER BY d DESC, id",
    "SELECT d FROM j ORDER BY d DESC LIMIT 3",
    "SELECT id FROM j ORDER BY d -> 'a', id",
    "SELECT DISTINCT d FROM j ORDER BY d",
    "SELECT d, count(*) FROM j GROUP BY d ORDER BY d",
    "SELECT id, rank() OVER (ORDER BY d) FROM j ORDER BY id",
    "SELECT id, first_value(id) OVER (PARTITION BY jsonb_typeof(d) ORDER BY d, id) FROM j ORDER BY id",
    "SELECT id FROM j WHERE d IN ('[]', '{}', '1') ORDER BY id",
    "SELECT id FROM j WHERE d > '[1]' ORDER BY id",
    "SELECT id FROM j WHERE d < 'null' ORDER BY id",
    "SELECT id FROM j WHERE d BETWEEN '\"a\"' AND '[]' ORDER BY id",
    "SELECT id FROM j WHERE d >= ALL (SELECT d FROM j)",
    "SELECT id FROM j WHERE d <= ALL (SELECT d FROM j)",
    "SELECT array_agg(id ORDER BY d, id) FROM j",
    "SELECT greatest('[]'::jsonb, 'null'), least('{}'::jsonb, '[]', '1')",
    "SELECT ARRAY['[]'::jsonb] < ARRAY['null'::jsonb], ARRAY['{\"line\":1}'::jsonb] < ARRAY['{\"p\":1}'::jsonb]",
    "SELECT d FROM j EXCEPT SELECT '[]'::jsonb ORDER BY 1",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY d) FROM j",
    "SELECT x FROM (VALUES ('[]'::jsonb), ('{\"line\":1}'), ('{\"p\":1}'), ('null')) v(x) ORDER BY x DESC",
  ],
};

/** Texts that the test cases parse both as JSON and as JSONB. */
const TEXTS = ['"x"', "1.50", "true", "null", '[1,  "a"]', '{"b":1,  "a":"z"}', '""'] as const;

const JSON_TEXT: CaseFile = {
  name: "json_as_text",
  about: "JSON as text, and values as JSON",
  statements: [
    ...["json", "jsonb"].flatMap((kind) =>
      selects(
        [
          "(#)::text",
          "CAST(# AS varchar(3))",
          "concat(#, '!')",
          "(#)::text || '!'",
          "format('%s|%L', #, #)",
          "to_json((#)::text)",
          "to_jsonb(#)::text",
          "length((#)::text)",
          "ARRAY[#]::text",
          "ARRAY[#]::text[]",
          "string_agg((#)::text, ',')",
          "(#)::text IN ('\"x\"', 'true')",
          "(#) #>> '{}'",
        ],
        TEXTS.map((text) => `'${text}'::${kind}`),
      ),
    ),
    ...selects(
      [
        "to_jsonb(#)::text",
        "to_json(#)::text",
        "(jsonb_build_object('k', #) -> 'k')::text",
        "jsonb_build_object('k', #) ->> 'k'",
      ],
      ["'x'::text", "5", "1.50", "TRUE", "NULL::text", "'{\"a\":1}'::jsonb", "ARRAY['a']"],
    ),
    "SELECT ('{\"a\":\"b\"}'::jsonb -> 'a')::text, '{\"a\":\"b\"}'::jsonb ->> 'a'",
    ...selects(
      ["(#)::int", "(#)::numeric", "(#)::boolean"],
      ["'1'::jsonb", "'1.6'::jsonb", "'\"1\"'::jsonb", "'true'::jsonb", "'[1]'::jsonb"],
    ),
  ],
};

export const JSON_DOCUMENTS: readonly CaseFile[] = [JSON_ORDER, JSON_TEXT];
