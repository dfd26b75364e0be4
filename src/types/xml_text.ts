/** Converts XML values to text, writes XML declarations, and escapes text for XML. */
import { xmlDeclarationOf } from "./xml_parser.ts";

/** The parts of an XML declaration that can differ between XML values in memory. */
export interface XmlProlog {
  /** The version; undefined for the default, 1.0. */
  readonly version: string | undefined;
  readonly isStandalone: boolean | undefined;
}

/**
 * Returns the text of an XML value for output. As in PostgreSQL, an XML declaration that only
 * states the defaults is left out, and so is the encoding, because the output has its own.
 */
export function textFromXml(value: string): string {
  const declaration = xmlDeclarationOf(value);
  if (declaration === undefined) return value;
  const written = xmlProlog(declaration);
  const rest = value.slice(declaration.end);
  if (written !== "") return written + rest;
  return rest.startsWith("\n") ? rest.slice(1) : rest;
}

/** Writes an XML declaration; an empty string if it would state only the defaults. */
export function xmlProlog({ isStandalone, version = "1.0" }: XmlProlog): string {
  if (version === "1.0" && isStandalone === undefined) return "";
  const standalone =
    isStandalone === undefined ? "" : ` standalone="${isStandalone ? "yes" : "no"}"`;
  return `<?xml version="${version}"${standalone}?>`;
}

/** Escapes a string as text of an element. */
export function escapedXmlText(text: string): string {
  return text.replaceAll(/[&<>\r]/g, (character) => TEXT_ESCAPES.get(character) ?? character);
}

/** Escapes a string as the value of an attribute in double quotes. */
export function escapedXmlAttribute(text: string): string {
  return text.replaceAll(
    /[&<>"\t\n\r]/g,
    (character) => ATTRIBUTE_ESCAPES.get(character) ?? character,
  );
}

const COMMON_ESCAPES = [
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
] as const;

const TEXT_ESCAPES: ReadonlyMap<string, string> = new Map([...COMMON_ESCAPES, ["\r", "&#x0d;"]]);

const ATTRIBUTE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ...COMMON_ESCAPES,
  ['"', "&quot;"],
  ["\t", "&#9;"],
  ["\n", "&#10;"],
  ["\r", "&#13;"],
]);
