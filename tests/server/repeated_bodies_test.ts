/**
 * Goal: a body that was sent before with other parameters means what it means the first time.
 * Method: each body is read by a reader that knows its form and by one that knows none; both must
 * say the same, value or refusal. Then the same for every damage of one byte.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import { RepeatedBodies } from "../../src/server/repeated_bodies.ts";
import { SqlRequestReader } from "../../src/server/sql_request.ts";
import { valueFromParameter } from "../../src/types/mod.ts";
import { serverConfig } from "../support/http.ts";

const CONFIG = serverConfig({
  limits: { max_sql_bytes: 1024, max_parameters: 4, max_parameter_bytes: 40 },
});

/** Where the list of values stands. */
const FORMS: readonly string[] = [
  '{"sql":"SELECT $1","params":[%]}',
  '{"sql": "SELECT $1", "params": [%]}',
  ' {\t"sql"\n:\r"SELECT \u00e9\u2028 $1" , "params" : [%] , "namespace_id" : "n", "timeout_ms": 5 } ',
  '{"sql":"SELECT $1","params":[%],"check":true,"other":[1,"]"]}',
  '{"sql":"SELECT $1","params":[%],"params":[7]}',
  '{"sql":"SELECT $1","params":[%],"par\\u0061ms":[7]}',
  '{"sql":"SELECT $1","params":[%],"sql":"SELECT 2"}',
  '{"sql":"SELECT \\"$1","params":[%]}',
  '{"sql":"SELECT $1","x":[%],"params":[%]}',
  '{"params":[%],"sql":"SELECT $1"}',
];

const LISTS: readonly string[] = [
  "1",
  '1,"a",2',
  ' 1 ,  "a b" , null ,true ',
  "false,true,null",
  "0,-0,-1,999999999999999",
  "1000000000000000,9007199254740991,9007199254740992,-9007199254740993",
  "1.0,1.5,1e2,1E2",
  '"1.5",1',
  '"","\u00e9","\u{1f600}","]}"',
  '"\\n\\"\\\\\\u0041\\ud83d\\ude00"',
  '"\\ud800"',
  '"\\ud800x",1',
  `"${"y".repeat(40)}"`,
  `"${"y".repeat(41)}"`,
  `"${"\u00e9".repeat(21)}"`,
  `"${"\\n".repeat(14)}"`,
  "1,2,3,4",
  "1,2,3,4,5",
  "",
  " ",
  "[1]",
  '{"number":"1"}',
  // Malformed.
  "01",
  "-",
  "-01",
  "+1",
  "1,",
  ",1",
  "1 2",
  '"a" "b"',
  '"a',
  '"a\tb"',
  '"a\u0000"',
  '"\\x"',
  '"\\u12"',
  '"a\\',
  "nul",
  "nulll",
  "True",
  "\u00a01",
  "1\n,2",
  '1],"params":[2',
  "1]}",
];

/** What a body means, or why it is refused. */
function meaningOf(reader: SqlRequestReader, text: string): unknown {
  return meaningOfBytes(reader, new TextEncoder().encode(text));
}

function meaningOfBytes(reader: SqlRequestReader, bytes: Uint8Array): unknown {
  try {
    const { params, ...others } = reader.fromJson(bytes);
    return { ...others, params: params.map((value) => valueFromParameter(value)) };
  } catch (error) {
    if (error instanceof DatabaseError) return [error.condition, error.message];
    throw error;
  }
}

function bodyOf(form: string, list: string): string {
  return form.replaceAll("%", () => list);
}

test.each(FORMS)("SqlRequestReader reads %p again as it did at first", (form) => {
  const used = new SqlRequestReader(CONFIG);
  meaningOf(used, bodyOf(form, '1,"a"'));
  for (const list of LISTS) {
    const body = bodyOf(form, list);
    const first = meaningOf(new SqlRequestReader(CONFIG), body);
    expect(meaningOf(used, body), list).toEqual(first);
  }
});

test("SqlRequestReader reads a body with any byte damaged as one that it never saw", () => {
  const body = '{"sql":"SELECT $1","params":[12,"a\\n\u00e9b",null],"timeout_ms":5}';
  const bytes = new TextEncoder().encode(body);
  for (let at = 0; at < bytes.length; at += 1) {
    const used = new SqlRequestReader(CONFIG);
    meaningOfBytes(used, bytes);
    for (const byte of [0, 9, 0x20, 0x22, 0x2c, 0x2d, 0x30, 0x5b, 0x5c, 0x5d, 0x7d, 0x80, 0xc3]) {
      const damaged = bytes.with(at, byte);
      const first = meaningOfBytes(new SqlRequestReader(CONFIG), damaged);
      expect(meaningOfBytes(used, damaged), `${byte} at ${at}`).toEqual(first);
    }
    for (const cut of [bytes.subarray(0, at), bytes.subarray(at)]) {
      const first = meaningOfBytes(new SqlRequestReader(CONFIG), cut);
      expect(meaningOfBytes(used, cut), `cut at ${at}`).toEqual(first);
    }
  }
});

test("RepeatedBodies knows a form from its first body on", () => {
  const bodies = new RepeatedBodies(CONFIG.limits);
  const body = (list: string): string => `{"sql":"SELECT $1","params":[${list}],"check":true}`;
  note(bodies, body("1"));
  const { params, request } = bodies.read(body('-5, "a\\t" ,null')) ?? {};
  expect(params).toEqual([-5, "a\t", null]);
  expect(request).toEqual({ sql: "SELECT $1", params: [0], check: true });
  expect(bodies.read(body("1.5"))).toBeUndefined();
  expect(bodies.read('{"sql":"SELECT $2","params":[1],"check":true}')).toBeUndefined();
});

test("RepeatedBodies keeps no form of what comes once, nor of a request with a key", () => {
  const bodies = new RepeatedBodies(CONFIG.limits);
  const keyed = '{"sql":"SELECT $1","params":[1],"idempotency_key":"k"}';
  note(bodies, keyed);
  expect(bodies.read(keyed)).toBeUndefined();
  for (const list of ["", '{"a":1}']) {
    const body = `{"sql":"SELECT 1","x":[${list}],"params":[]}`;
    note(bodies, body);
    expect(bodies.read(body)).toBeUndefined();
  }
});

test("RepeatedBodies keeps what is used among many that are not", () => {
  const bodies = new RepeatedBodies(CONFIG.limits);
  const body = (index: number): string => `{"sql":"SELECT ${index}, $1","params":[1]}`;
  note(bodies, body(-1));
  for (let index = 0; index < 2000; index += 1) {
    expect(bodies.read(body(-1))?.request.sql).toBe("SELECT -1, $1");
    if (bodies.read(body(index)) === undefined) note(bodies, body(index));
  }
  const known = Array.from({ length: 2000 }, (_, index) => bodies.read(body(index)));
  expect(known.filter((found) => found !== undefined).length).toBeLessThan(32);
});

function note(bodies: RepeatedBodies, text: string): void {
  const readWhole = (whole: string): ReturnType<SqlRequestReader["fromJson"]> =>
    new SqlRequestReader(CONFIG).fromJson(new TextEncoder().encode(whole));
  bodies.note(text, readWhole(text), readWhole);
}
