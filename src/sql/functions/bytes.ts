/**
 * Functions on bytes: text encodings and hashes.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BYTES, excerpt, INT, TEXT, type Value, valueFromText } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";

function unknownEncoding(name: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot use the encoding ${excerpt(name)}: expected hex, base64 or escape`,
  );
}

/** PostgreSQL breaks base64 into lines of 76 characters. */
const BASE64_LINE = 76;

function encode([value = null, format = null]: readonly Value[]): string {
  const bytes = Buffer.from(value as Uint8Array);
  const name = (format as string).toLowerCase();
  if (name === "hex") return bytes.toString("hex");
  if (name === "base64") {
    const text = bytes.toString("base64");
    const lines: string[] = [];
    for (let at = 0; at < text.length; at += BASE64_LINE) {
      lines.push(text.slice(at, at + BASE64_LINE));
    }
    return lines.join("\n");
  }
  if (name !== "escape") throw unknownEncoding(format as string);
  let text = "";
  for (const byte of bytes) {
    if (byte === 0x5c) text += "\\\\";
    else if (byte !== 0 && byte < 0x80) text += String.fromCharCode(byte);
    else text += `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return text;
}

function decode([value = null, format = null]: readonly Value[]): Value {
  const text = value as string;
  const name = (format as string).toLowerCase();
  if (name === "escape") {
    // The escape form never begins with the mark of the hex form.
    return valueFromText(BYTES, text.startsWith("\\x") ? `\\134${text.slice(1)}` : text);
  }
  const plain = text.replaceAll(/\s/g, "");
  const isValid =
    name === "hex"
      ? /^(?:[0-9a-f]{2})*$/i.test(plain)
      : /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(plain);
  if (name !== "hex" && name !== "base64") throw unknownEncoding(format as string);
  if (isValid) return new Uint8Array(Buffer.from(plain, name));
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot decode ${excerpt(text)}: it is not valid ${name}`,
  );
}

function bytesOf(value: Value): Uint8Array {
  return typeof value === "string" ? Buffer.from(value, "utf8") : (value as Uint8Array);
}

type HashName = "sha224" | "sha256" | "sha384" | "sha512";

function hashing(name: HashName): ScalarFunction[] {
  const hash = ([value = null]: readonly Value[]): Value =>
    new Uint8Array(new Bun.CryptoHasher(name).update(bytesOf(value)).digest());
  return functionsNamed([name], overload([BYTES], BYTES, hash));
}

function md5([value = null]: readonly Value[]): string {
  return new Bun.CryptoHasher("md5").update(bytesOf(value)).digest("hex");
}

function checkIndex(bytes: Uint8Array, index: number): void {
  if (index >= 0 && index < bytes.length) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot reach byte ${index}: the value has ${bytes.length} bytes, counted from 0`,
  );
}

function getByte([value = null, index = null]: readonly Value[]): number {
  const bytes = value as Uint8Array;
  checkIndex(bytes, index as number);
  return bytes[index as number] ?? 0;
}

function setByte([value = null, index = null, byte = null]: readonly Value[]): Value {
  const bytes = (value as Uint8Array).slice();
  checkIndex(bytes, index as number);
  bytes[index as number] = byte as number;
  return bytes;
}

function checkUtf8(name: string): void {
  if (/^utf-?8$/i.test(name)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot convert with the encoding ${excerpt(name)}: only UTF8 is available`,
  );
}

function convertFrom([value = null, encoding = null]: readonly Value[]): string {
  checkUtf8(encoding as string);
  const bytes = Buffer.from(value as Uint8Array);
  const text = bytes.toString("utf8");
  if (Buffer.from(text, "utf8").equals(bytes) && !bytes.includes(0)) return text;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot convert the bytes to text: they are not UTF-8 without NUL",
  );
}

export const BYTES_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["encode"], overload([BYTES, TEXT], TEXT, encode)),
  ...functionsNamed(["decode"], overload([TEXT, TEXT], BYTES, decode)),
  ...functionsNamed(["md5"], overload([TEXT], TEXT, md5), overload([BYTES], TEXT, md5)),
  ...hashing("sha224"),
  ...hashing("sha256"),
  ...hashing("sha384"),
  ...hashing("sha512"),
  ...functionsNamed(["get_byte"], overload([BYTES, INT], INT, getByte)),
  ...functionsNamed(["set_byte"], overload([BYTES, INT, INT], BYTES, setByte)),
  ...functionsNamed(
    ["convert_to"],
    overload([TEXT, TEXT], BYTES, ([text = null, encoding = null]) => {
      checkUtf8(encoding as string);
      return new Uint8Array(bytesOf(text));
    }),
  ),
  ...functionsNamed(["convert_from"], overload([BYTES, TEXT], TEXT, convertFrom)),
];
