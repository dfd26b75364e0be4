/**
 * Tests bodies of `POST /v1/api/sql`: those that are accepted, in which every digit is preserved,
 * and those that are refused.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { parseMultipart } from "../../../src/server/http/multipart.ts";
import { parseJson } from "../../../src/server/http/request_body.ts";
import { sqlRequestFromForm, sqlRequestFromJson } from "../../../src/server/http/sql_request.ts";
import { serverConfig } from "../../support/http.ts";

const CONFIG = serverConfig({
  limits: { max_sql_bytes: 1024, max_parameters: 3, max_parameter_bytes: 100 },
  files: { max_size_bytes: 64, max_files_per_request: 2 },
});
const OPTIONS = { config: CONFIG };

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function errorCodeOf(read: () => unknown): string {
  try {
    read();
    return "read";
  } catch (error) {
    if (error instanceof DatabaseError) return error.code;
    throw error;
  }
}

test("sqlRequestFromJson keeps the digits of every number", () => {
  const body =
    '{"sql":"SELECT $1","params":[1,1.0,-0,9223372036854775807,1e2,0.10,true,null,"x 1.5"]}';
  expect(sqlRequestFromJson(encode(body), { config: serverConfig() })).toEqual({
    sql: "SELECT $1",
    params: [
      { number: "1" },
      { number: "1.0" },
      { number: "-0" },
      { number: "9223372036854775807" },
      { number: "1e2" },
      { number: "0.10" },
      true,
      null,
      "x 1.5",
    ],
  });
});

test("sqlRequestFromJson returns plain numbers if all numbers are whole", () => {
  const params = (list: string): unknown =>
    sqlRequestFromJson(encode(`{"sql":"SELECT $1","params":${list}}`), { config: serverConfig() })
      .params;
  expect(params('[1,9007199254740991,-5,"x"]')).toEqual([1, 9_007_199_254_740_991, -5, "x"]);
  expect(params("[1,9007199254740992]")).toEqual([{ number: "1" }, { number: "9007199254740992" }]);
});

test("sqlRequestFromJson omits null and absent members", () => {
  const body = '{"sql":";","params":null,"namespace_id":null,"timeout_ms":null,"check":null,"x":1}';
  expect(sqlRequestFromJson(encode(body), OPTIONS)).toEqual({ sql: ";", params: [] });
  const full = '{"sql":";","params":[],"namespace_id":"a","timeout_ms":5,"check":true}';
  expect(sqlRequestFromJson(encode(full), OPTIONS)).toEqual({
    sql: ";",
    params: [],
    namespace: "a",
    timeoutMs: 5,
    check: true,
  });
});

test.each<[string, string]>([
  ["", "INVALID_INPUT"],
  ["{", "INVALID_INPUT"],
  ["[]", "INVALID_INPUT"],
  ["null", "INVALID_INPUT"],
  ['"SELECT 1"', "INVALID_INPUT"],
  ["{}", "INVALID_INPUT"],
  ['{"sql":1}', "INVALID_INPUT"],
  ['{"sql":null}', "INVALID_INPUT"],
  ['{"sql":"\\ud800"}', "INVALID_INPUT"],
  [`{"sql":"${"x".repeat(1024)}"}`, "read"],
  [`{"sql":"${"x".repeat(1025)}"}`, "INVALID_SQL"],
  [`{"sql":"${"é".repeat(513)}"}`, "INVALID_SQL"],
  ['{"sql":"x","params":{}}', "INVALID_INPUT"],
  ['{"sql":"x","params":[[1]]}', "read"],
  ['{"sql":"x","params":[{"number":"1"}]}', "read"],
  ['{"sql":"x","params":["\\udc00"]}', "INVALID_PARAMETER"],
  ['{"sql":"x","params":[1,2,3]}', "read"],
  ['{"sql":"x","params":[1,2,3,4]}', "INVALID_PARAMETER"],
  [`{"sql":"x","params":["${"y".repeat(100)}"]}`, "read"],
  [`{"sql":"x","params":["${"y".repeat(101)}"]}`, "INVALID_PARAMETER"],
  [`{"sql":"x","params":["${"é".repeat(51)}"]}`, "INVALID_PARAMETER"],
  [`{"sql":"x","params":[1${"0".repeat(100)}]}`, "INVALID_PARAMETER"],
  ['{"sql":"x","namespace_id":1}', "INVALID_INPUT"],
  ['{"sql":"x","namespace_id":""}', "INVALID_INPUT"],
  ['{"sql":"x","timeout_ms":0}', "INVALID_INPUT"],
  ['{"sql":"x","timeout_ms":1.5}', "INVALID_INPUT"],
  ['{"sql":"x","timeout_ms":600000}', "read"],
  ['{"sql":"x","timeout_ms":600001}', "INVALID_INPUT"],
  ['{"sql":"x","timeout_ms":"5"}', "INVALID_INPUT"],
  ['{"sql":"x","check":1}', "INVALID_INPUT"],
  ['{"sql":"x","idempotency_key":7}', "INVALID_INPUT"],
  ['{"sql":"x","idempotency_key":"order 7, ~ of 9"}', "read"],
  [`{"sql":"x","idempotency_key":"${"k".repeat(128)}"}`, "read"],
  [`{"sql":"x","idempotency_key":"${"k".repeat(129)}"}`, "INVALID_INPUT"],
  ['{"sql":"x","idempotency_key":""}', "INVALID_INPUT"],
  ['{"sql":"x","idempotency_key":"a\\tb"}', "INVALID_INPUT"],
  ['{"sql":"x","idempotency_key":"\x7f"}', "INVALID_INPUT"],
  ['{"sql":"x","idempotency_key":"é"}', "INVALID_INPUT"],
  [`{"sql":"x","other":${"[".repeat(127)}${"]".repeat(127)}}`, "read"],
  [`{"sql":"x","other":${"[".repeat(128)}${"]".repeat(128)}}`, "INVALID_INPUT"],
  [`{"sql":"x","other":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "INVALID_INPUT"],
])("sqlRequestFromJson of %s: %s", (body, code) => {
  expect(errorCodeOf(() => sqlRequestFromJson(encode(body), OPTIONS))).toBe(code);
});

test("sqlRequestFromJson refuses bytes that are not UTF-8", () => {
  const body = Uint8Array.of(...encode('{"sql":"'), 0xff, ...encode('"}'));
  expect(errorCodeOf(() => sqlRequestFromJson(body, OPTIONS))).toBe("INVALID_INPUT");
});

test("an INVALID_PARAMETER error counts positions from 1", () => {
  const body = encode('{"sql":"x","params":[1,"\\udc00"]}');
  expect(() => sqlRequestFromJson(body, OPTIONS)).toThrow("parameter 2");
});

const nested = (levels: number, inside = ""): string =>
  `${"[".repeat(levels)}${inside}${"]".repeat(levels)}`;

/**
 * Returns a JSON object with `count` members. The parser counts one part more, the object itself.
 */
const members = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1])));

test.each<[string, string, boolean]>([
  ["10,000 parts", members(9999), true],
  ["10,001 parts", members(10_000), false],
  ["10,001 objects", `[${Array.from({ length: 10_000 }, () => "{}").join(",")}]`, false],
  ["many values", JSON.stringify(Array.from({ length: 32_767 }, (_, index) => `:${index}`)), true],
  ["128 levels", nested(128, "1"), true],
  ["129 levels", nested(129, "1"), false],
  ["128 levels, one of which is an object", `{"a":${nested(127)}}`, true],
  ["129 levels, one of which is an object", `{"a":${nested(128)}}`, false],
  ["levels side by side", `[${Array.from({ length: 99 }, () => nested(100)).join(",")}]`, true],
  ["brackets in a string", JSON.stringify(["[".repeat(300), "{".repeat(300)]), true],
  ["brackets behind an escaped quote", JSON.stringify([`"${"[".repeat(300)}`]), true],
  ["brackets behind a string that ends with a backslash", `["\\\\",${nested(128)}]`, false],
  ["129 levels in a member that another replaces", `{"a":${nested(128)},"a":1}`, false],
  ["a string that does not end", `["${"x".repeat(300)}`, false],
])("parseJson of %s", (_what, text, isTaken) => {
  const padded = `${" ".repeat(300)}${text}`;
  expect(parseJson(padded)).toEqual(isTaken ? JSON.parse(text) : undefined);
});

test("sqlRequestFromJson keeps the digits of the last of several equal members", () => {
  const text = '{"z":{"params":[9.0]},"sql":"x","params":[1.0],"params":[2.50,1e2],"y":"params"}';
  const { params } = sqlRequestFromJson(encode(text), OPTIONS);
  expect(params).toEqual([{ number: "2.50" }, { number: "1e2" }]);
});

const TYPE = 'multipart/form-data; boundary="b1"';

/** Returns a multipart form with the given part headers and contents, with CRLF line ends. */
function form(...parts: string[]): Uint8Array {
  return encode(`${parts.map((part) => `--b1\r\n${part}\r\n`).join("")}--b1--\r\n`);
}

function field(name: string, content: string): string {
  return `Content-Disposition: form-data; name="${name}"\r\n\r\n${content}`;
}

function file(name: string, fileName: string, content: string, type?: string): string {
  const typeLine = type === undefined ? "" : `Content-Type: ${type}\r\n`;
  const disposition = `Content-Disposition: form-data; name="file:${name}"; filename="${fileName}"`;
  return `${disposition}\r\n${typeLine}\r\n${content}`;
}

test("sqlRequestFromForm reads fields and files", () => {
  const body = form(
    field("sql", "INSERT INTO t VALUES ($1, FILE('a'))"),
    field("params", "[9007199254740993]"),
    field("namespace_id", "chat"),
    field("timeout_ms", "50"),
    file("a", "Ünïcode 1.TXT", "line 1\r\nline 2", "Text/Plain; charset=utf-8"),
  );
  const request = sqlRequestFromForm(body, TYPE, OPTIONS);
  expect(request).toMatchObject({
    sql: "INSERT INTO t VALUES ($1, FILE('a'))",
    params: [{ number: "9007199254740993" }],
    namespace: "chat",
    timeoutMs: 50,
  });
  const upload = request.files?.get("a");
  expect(upload).toMatchObject({ name: "Ünïcode 1.TXT", mime: "text/plain" });
  expect(new TextDecoder().decode(upload?.bytes)).toBe("line 1\r\nline 2");
});

test("parseMultipart explains how to name a file that was sent as a field", () => {
  const head = 'Content-Disposition: form-data; name="pic"; filename="pic.png"\r\n\r\n';
  const body = Buffer.concat([
    encode(`--b1\r\n${head}`),
    new Uint8Array([0x89, 0x50, 0xff]),
    encode("\r\n--b1--\r\n"),
  ]);
  expect(() => sqlRequestFromForm(body, TYPE, OPTIONS)).toThrow(
    `Cannot read the form: part "pic" is not valid UTF-8, and the name of a file's part must begin with "file:", as in "file:pic"`,
  );
});

test("parseMultipart reads forms as the runtime writes them", async () => {
  const data = new FormData();
  data.append("sql", "SELECT 1");
  data.append("file:x", new File([new Uint8Array([0, 13, 10, 45, 45, 255])], 'we"ird.bin'));
  data.append("file:empty", new File([], ""));
  const response = new Response(data);
  const type = response.headers.get("content-type") ?? "";
  const { fields, files } = parseMultipart(
    new Uint8Array(await response.arrayBuffer()),
    type,
    CONFIG.files,
  );
  expect(fields.get("sql")).toBe("SELECT 1");
  expect(files.get("x")).toMatchObject({ name: 'we"ird.bin' });
  expect([...(files.get("x")?.bytes ?? [])]).toEqual([0, 13, 10, 45, 45, 255]);
  expect(files.get("empty")?.bytes.length).toBe(0);
});

test.each<[string, string, string | undefined, string]>([
  ["a declared type", "x.bin", "Image/PNG", "image/png"],
  ["magic bytes", "x.bin", undefined, "application/pdf"],
  ["an invalid type, then magic bytes", "x.bin", "nonsense", "application/pdf"],
])("the media type of an upload by %s", (_what, name, type, mime) => {
  const { files } = parseMultipart(form(file("a", name, "%PDF-1.7", type)), TYPE, CONFIG.files);
  expect(files.get("a")?.mime).toBe(mime);
});

test("parseMultipart gives a default media type and name to an upload that has neither", () => {
  const nameless = 'Content-Disposition: form-data; name="file:a"\r\n\r\nx';
  const { files } = parseMultipart(
    form(nameless, file("b", "C:\\temp\\notes.md", "x")),
    TYPE,
    CONFIG.files,
  );
  expect(files.get("a")).toMatchObject({ name: "a", mime: "application/octet-stream" });
  expect(files.get("b")).toMatchObject({ name: "notes.md", mime: "text/markdown" });
});

test("an extended file name takes precedence over the plain one", () => {
  const part =
    'Content-Disposition: form-data; name="file:a"; filename="x"; filename*=UTF-8\'\'%c3%a9.png\r\n\r\nx';
  const { files } = parseMultipart(form(part), TYPE, CONFIG.files);
  expect(files.get("a")).toMatchObject({ name: "é.png", mime: "image/png" });
});

test.each<[string, Uint8Array, string]>([
  ["no boundary in the body", encode("hello"), "INVALID_INPUT"],
  ["no closing boundary", encode(`--b1\r\n${field("sql", "x")}`), "INVALID_INPUT"],
  [
    "no end of headers",
    encode("--b1\r\nContent-Disposition: form-data\r\n--b1--"),
    "INVALID_INPUT",
  ],
  ["a boundary without line end", encode("--b1x\r\n\r\n\r\n--b1--"), "INVALID_INPUT"],
  ["headers above 8 KiB", form(`X: ${"y".repeat(8200)}\r\n${field("sql", "x")}`), "INVALID_INPUT"],
  ["a part without disposition", form("X: y\r\n\r\nz"), "INVALID_INPUT"],
  ["a part without name", form("Content-Disposition: form-data\r\n\r\nz"), "INVALID_INPUT"],
  ["a part twice", form(field("sql", "x"), field("sql", "y")), "INVALID_INPUT"],
  ["a file twice", form(file("a", "x", "1"), file("a", "y", "2")), "INVALID_INPUT"],
  ["no sql", form(field("params", "[]")), "INVALID_INPUT"],
  ["params that are not JSON", form(field("sql", "x"), field("params", "[")), "INVALID_INPUT"],
  ["params that are not an array", form(field("sql", "x"), field("params", "1")), "INVALID_INPUT"],
  ["a bad check", form(field("sql", "x"), field("check", "yes")), "INVALID_INPUT"],
  ["a bad timeout", form(field("sql", "x"), field("timeout_ms", "1s")), "INVALID_INPUT"],
  ["a key", form(field("sql", "x"), field("idempotency_key", "k k")), "read"],
  ["a bad key", form(field("sql", "x"), field("idempotency_key", "k\tk")), "INVALID_INPUT"],
  ["a file at the limit", form(field("sql", "x"), file("a", "x", "1".repeat(64))), "read"],
  [
    "a file above the limit",
    form(field("sql", "x"), file("a", "x", "1".repeat(65))),
    "FILE_TOO_LARGE",
  ],
  [
    "too many files",
    form(field("sql", "x"), file("a", "x", "1"), file("b", "x", "1"), file("c", "x", "1")),
    "TOO_MANY_FILES",
  ],
])("sqlRequestFromForm of a form with %s", (_what, body, code) => {
  expect(errorCodeOf(() => sqlRequestFromForm(body, TYPE, OPTIONS))).toBe(code);
});

test("files.allowed_mime_types admits a type or a whole family", () => {
  const limits = { ...CONFIG.files, allowed_mime_types: ["image/*", "text/plain"] };
  const read = (type: string) =>
    errorCodeOf(() => parseMultipart(form(file("a", "x", "1", type)), TYPE, limits));
  expect(read("image/png")).toBe("read");
  expect(read("text/plain")).toBe("read");
  expect(read("text/html")).toBe("INVALID_MIME_TYPE");
  expect(read("imagex/png")).toBe("INVALID_MIME_TYPE");
});

test("parseMultipart never reads past the end, wherever a form is truncated", () => {
  const whole = form(field("sql", "SELECT 1"), file("a", "x.txt", "hello"));
  for (let cut = 0; cut < whole.length - 4; cut += 1) {
    expect(errorCodeOf(() => parseMultipart(whole.subarray(0, cut), TYPE, CONFIG.files))).toBe(
      "INVALID_INPUT",
    );
  }
});
