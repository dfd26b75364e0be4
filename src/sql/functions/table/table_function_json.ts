/** Defines table functions that split JSON documents into rows. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  arrayOfArrays,
  canonicalJson,
  castValue,
  type DataType,
  JSON_TEXT,
  JSONB,
  type JsonSlice,
  jsonElements,
  jsonKindAt,
  jsonMember,
  jsonMembers,
  jsonRoot,
  jsonScalarText,
  type Row,
  type RowField,
  type RowValue,
  TEXT,
  textOfJsonString,
  UNKNOWN,
  type Value,
} from "../../../types/mod.ts";
import type { TableForm, TableFunction } from "./table_function.ts";

interface Document {
  readonly text: string;
  readonly root: JsonSlice;
}

/**
 * Returns the JSON document passed to a table function.
 * @throws {DatabaseError} INVALID_VALUE if the document is not of the required `kind`.
 */
function documentOf(value: Value | undefined, kind: "array" | "object"): Document {
  const text = value as string;
  const root = jsonRoot(text);
  const found = jsonKindAt(text, root.start);
  if (found === kind) return { text, root };
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read the JSON value as rows: its type is ${found}, but must be ${kind}`,
  );
}

type JsonCellReader = (text: string, slice: JsonSlice) => Value;

function cellText(text: string, slice: JsonSlice): Value {
  return jsonScalarText(text, slice) ?? null;
}

function cellJson(text: string, { end, start }: JsonSlice): Value {
  return text.slice(start, end);
}

interface Reading {
  readonly document: DataType;
  readonly asText: boolean;
}

function elements({ asText, document }: Reading): TableForm {
  const cell: JsonCellReader = asText ? cellText : cellJson;
  return {
    parameters: [document],
    columns: () => [{ name: "value", type: asText ? TEXT : document }],
    *rows([json]): Generator<Row> {
      const { root, text } = documentOf(json, "array");
      for (const slice of jsonElements(text, root)) yield [cell(text, slice)];
    },
  };
}

function members({ asText, document }: Reading): TableForm {
  const cell: JsonCellReader = asText ? cellText : cellJson;
  return {
    parameters: [document],
    columns: () => [
      { name: "key", type: TEXT },
      { name: "value", type: asText ? TEXT : document },
    ],
    *rows([json]): Generator<Row> {
      const { root, text } = documentOf(json, "object");
      for (const { key, value } of jsonMembers(text, root)) {
        yield [textOfJsonString(key), cell(text, value)];
      }
    },
  };
}

const OBJECT_KEYS: Omit<TableForm, "parameters"> = {
  columns: () => [{ name: undefined, type: TEXT }],
  *rows([json]): Generator<Row> {
    const { root, text } = documentOf(json, "object");
    for (const { key } of jsonMembers(text, root)) yield [textOfJsonString(key)];
  },
};

/**
 * Returns the members of a JSON object that correspond to `columns`, cast to the column types. The
 * value of a missing member comes from `record`, if there is one.
 */
function recordRow(
  text: string,
  object: JsonSlice,
  { columns, record }: { readonly columns: readonly RowField[]; readonly record?: RowValue | null },
): Row {
  return columns.map(({ name, type }, at) => {
    const slice = jsonMember(text, object, name);
    if (slice === undefined) return record?.cells[at] ?? null;
    return valueFromJson(text, slice, type);
  });
}

/**
 * Converts a JSON array to an SQL array. Nested arrays become further dimensions, unless the
 * element type is JSON.
 */
function arrayFromJson(text: string, list: JsonSlice, element: DataType): ArrayValue {
  let isDeep = false;
  const items = jsonElements(text, list).map((item): Value => {
    if (element.kind === "json" || jsonKindAt(text, item.start) !== "array") {
      return valueFromJson(text, item, element);
    }
    isDeep = true;
    return arrayFromJson(text, item, element);
  });
  return isDeep ? arrayOfArrays(items) : items;
}

/** Casts a JSON value to a type. @throws {DatabaseError} if the cast fails */
function valueFromJson(text: string, slice: JsonSlice, to: DataType): Value {
  const kind = jsonKindAt(text, slice.start);
  if (kind === "null") return null;
  if (to.kind === "json") {
    const own = text.slice(slice.start, slice.end);
    return to.binary ? canonicalJson(own) : own;
  }
  if (to.kind === "array" && kind === "array") return arrayFromJson(text, slice, to.element);
  if (to.kind === "row" && kind === "object") {
    return { cells: recordRow(text, slice, { columns: to.fields }) };
  }
  return castValue(jsonScalarText(text, slice) ?? null, { from: UNKNOWN, to, mode: "assignment" });
}

const RECORD: Omit<TableForm, "parameters"> = {
  columns: "defined",
  *rows([json], shape): Generator<Row> {
    const { root, text } = documentOf(json, "object");
    yield recordRow(text, root, shape);
  },
};

const RECORD_SET: Omit<TableForm, "parameters"> = {
  columns: "defined",
  *rows([json], shape): Generator<Row> {
    const { root, text } = documentOf(json, "array");
    for (const slice of jsonElements(text, root)) {
      requireObject(text, slice);
      yield recordRow(text, slice, shape);
    }
  },
};

/** Requires that a part of a JSON document is an object. @throws {DatabaseError} INVALID_VALUE */
function requireObject(text: string, slice: JsonSlice): void {
  const kind = jsonKindAt(text, slice.start);
  if (kind === "object") return;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read the JSON value as a row: its type is ${kind}, but must be object`,
  );
}

/**
 * Returns the columns of a function that creates records, which are the fields of the first
 * argument's type.
 */
function fieldsOfRecord([record]: readonly DataType[]): readonly RowField[] | undefined {
  return record?.kind === "row" ? record.fields : undefined;
}

const POPULATED: Omit<TableForm, "parameters"> = {
  seesNull: true,
  columns: fieldsOfRecord,
  *rows([record = null, json], { columns }): Generator<Row> {
    const given = record as RowValue | null;
    if (json === undefined || json === null) {
      yield given?.cells ?? columns.map(() => null);
      return;
    }
    const { root, text } = documentOf(json, "object");
    yield recordRow(text, root, { columns, record: given });
  },
};

const POPULATED_SET: Omit<TableForm, "parameters"> = {
  seesNull: true,
  columns: fieldsOfRecord,
  *rows([record = null, json], { columns }): Generator<Row> {
    if (json === undefined || json === null) return;
    const { root, text } = documentOf(json, "array");
    for (const slice of jsonElements(text, root)) {
      requireObject(text, slice);
      yield recordRow(text, slice, { columns, record: record as RowValue | null });
    }
  },
};

function functionsOf(prefix: string, document: DataType): TableFunction[] {
  const forms: readonly (readonly [name: string, form: TableForm])[] = [
    ["array_elements", elements({ document, asText: false })],
    ["array_elements_text", elements({ document, asText: true })],
    ["each", members({ document, asText: false })],
    ["each_text", members({ document, asText: true })],
    ["object_keys", { ...OBJECT_KEYS, parameters: [document] }],
    ["to_record", { ...RECORD, parameters: [document] }],
    ["to_recordset", { ...RECORD_SET, parameters: [document] }],
    ["populate_record", { ...POPULATED, parameters: ["any", document] }],
    ["populate_recordset", { ...POPULATED_SET, parameters: ["any", document] }],
  ];
  return forms.map(([name, form]) => ({ name: `${prefix}_${name}`, forms: [form] }));
}

export const JSON_TABLE_FUNCTIONS: readonly TableFunction[] = [
  ...functionsOf("json", JSON_TEXT),
  ...functionsOf("jsonb", JSONB),
];
