/**
 * Builds XML values from SQL values: elements, attributes, comments, processing instructions and
 * concatenations. The output has the same text as in PostgreSQL.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  bareTypeName,
  continuesXmlName,
  type DataType,
  elementsOf,
  escapedXmlAttribute,
  escapedXmlText,
  startsXmlName,
  textFromValue,
  type Value,
  xmlDeclarationOf,
  xmlProlog,
} from "../../../types/mod.ts";
import { checkMadeLength } from "../base/made_length.ts";

/**
 * Converts an SQL identifier to an XML name. A character that is not allowed in names becomes
 * `_xHHHH_`.
 *
 * @param isOfColumn Whether the identifier is a column name. If so, colons and a leading "xml" are
 *   also replaced.
 */
export function xmlNameOf(identifier: string, isOfColumn: boolean): string {
  const characters = Array.from(identifier);
  return characters
    .map((character, at) => {
      const isFirst = at === 0;
      const next = characters[at + 1];
      const isReplaced =
        (character === ":" && (isFirst || isOfColumn)) ||
        (character === "_" && next === "x") ||
        (isFirst && isOfColumn && /^xml/i.test(identifier)) ||
        !(isFirst ? startsXmlName(character) : continuesXmlName(character));
      return isReplaced ? replacedCharacter(character) : character;
    })
    .join("");
}

function replacedCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `_x${code.toString(16).toUpperCase().padStart(4, "0")}_`;
}

/** Returns a function that writes non-NULL values of a type as the content of an XML element. */
export function xmlContentOf(type: DataType): (value: Value) => string {
  if (type.kind === "xml") return (value) => textFromValue(type, value);
  if (type.kind === "array") {
    const contentOf = xmlContentOf(type.element);
    return (value) =>
      elementsOf(value as ArrayValue)
        .filter((item) => item !== null)
        .map((item) => `<element>${contentOf(item)}</element>`)
        .join("");
  }
  const plainOf = xmlPlainOf(type);
  return (value) => escapedXmlText(plainOf(value));
}

/**
 * Returns a function that writes non-NULL values of a type as text that has not been escaped for
 * XML.
 */
export function xmlPlainOf(type: DataType): (value: Value) => string {
  switch (type.kind) {
    case "array":
      return xmlContentOf(type);
    case "boolean":
      return (value) => (value === true ? "true" : "false");
    case "bytes":
      return (value) => Buffer.from(value as Uint8Array).toString("base64");
    case "date":
    case "timestamp":
    case "datetime":
      return (value) => momentText(type, textFromValue(type, value));
    default:
      return (value) => textFromValue(type, value);
  }
}

/**
 * Writes a date or time in the format of XML Schema. @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function momentText(type: DataType, text: string): string {
  if (text.endsWith("infinity")) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot write the ${bareTypeName(type)} ${text} as XML: XML has no infinite dates`,
    );
  }
  const joined = text.replace(" ", "T");
  return type.kind === "datetime" ? joined.replace(/([+-]\d\d)$/, "$1:00") : joined;
}

/** Writes an XML element. An element without content is written as an empty-element tag. */
export function xmlElement(
  name: string,
  attributes: readonly (readonly [name: string, text: string])[],
  contents: readonly string[],
): string {
  const written = attributes.map(([key, text]) => ` ${key}="${escapedXmlAttribute(text)}"`);
  const start = `<${name}${written.join("")}`;
  return made(contents.length === 0 ? `${start}/>` : `${start}>${contents.join("")}</${name}>`);
}

function made(text: string): string {
  checkMadeLength(text.length);
  return text;
}

/** Writes an XML comment. @throws {DatabaseError} INVALID_VALUE */
export function xmlComment(text: string): string {
  if (!text.includes("--") && !text.endsWith("-")) return made(`<!--${text}-->`);
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot create an XML comment: its text must not contain -- and must not end with -",
  );
}

/**
 * Writes an XML processing instruction.
 *
 * @param content The content; undefined if it is omitted, and null if it is NULL.
 * @throws {DatabaseError} INVALID_VALUE
 */
export function xmlInstruction(target: string, content: string | null | undefined): string | null {
  if (content === null) return null;
  if (content === undefined) return `<?${target}?>`;
  if (content.includes("?>")) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot create an XML processing instruction: its content must not contain ?>",
    );
  }
  return made(`<?${target} ${content.replace(/^ +/, "")}?>`);
}

/**
 * Concatenates XML values. The result keeps the XML version if all values have the same one, and
 * is standalone if all values are.
 */
export function xmlConcatenated(values: readonly string[]): string {
  let version: string | undefined;
  let hasNoVersion = false;
  let standalone: boolean | undefined = true;
  const rests = values.map((value) => {
    const declaration = xmlDeclarationOf(value);
    const own = declaration?.isStandalone;
    if (own === undefined) standalone = undefined;
    else if (!own && standalone === true) standalone = false;
    if (declaration === undefined) hasNoVersion = true;
    else if (version === undefined) version = declaration.version;
    else if (version !== declaration.version) hasNoVersion = true;
    return declaration === undefined ? value : value.slice(declaration.end);
  });
  const isWritten = !hasNoVersion || standalone !== undefined;
  const prolog = isWritten
    ? xmlProlog({ version: hasNoVersion ? undefined : version, isStandalone: standalone })
    : "";
  return made(prolog + rests.join(""));
}

/**
 * Replaces the XML declaration of an XML value.
 *
 * @param version The version; null for the default.
 * @param standalone The new value of `standalone`; undefined to keep the current one.
 */
export function xmlWithRoot(
  value: string,
  version: string | null,
  standalone: "yes" | "no" | "no value" | undefined,
): string {
  const declaration = xmlDeclarationOf(value);
  const rest = declaration === undefined ? value : value.slice(declaration.end);
  const isStandalone =
    standalone === undefined
      ? declaration?.isStandalone
      : standalone === "no value"
        ? undefined
        : standalone === "yes";
  return made(xmlProlog({ version: version ?? undefined, isStandalone }) + rest);
}
