/**
 * Completes the options of COPY: fills in the defaults of the format, and rejects invalid
 * combinations.
 */
import type { CopySettings } from "./ast/ast.ts";
import type { Cursor, Mutable } from "./cursor.ts";

/** The options given in a COPY statement. All other options are undefined. */
export type WrittenSettings = Partial<Mutable<CopySettings>>;

/**
 * Returns the COPY options with all defaults filled in.
 *
 * @param at The offset of the options in the SQL, for errors.
 * @throws {DatabaseError} INVALID_SQL
 */
export function completedSettings(
  cursor: Cursor,
  written: WrittenSettings,
  at: number,
): CopySettings {
  const format = written.format ?? "text";
  const isCsv = format === "csv";
  const quote = written.quote ?? '"';
  const options: CopySettings = {
    format,
    delimiter: written.delimiter ?? (isCsv ? "," : "\t"),
    nullText: written.nullText ?? (isCsv ? "" : String.raw`\N`),
    defaultText: written.defaultText,
    header: written.header ?? "none",
    quote,
    escape: written.escape ?? quote,
    forceQuote: written.forceQuote ?? [],
    forceNotNull: written.forceNotNull ?? [],
    forceNull: written.forceNull ?? [],
    onConflict: written.onConflict ?? "error",
    skipsFaulty: written.skipsFaulty ?? false,
  };
  const fault = faultOf(options, written);
  return fault === undefined ? options : cursor.fail(fault, at);
}

const CSV_ONLY = ["quote", "escape", "forceQuote", "forceNotNull", "forceNull"] as const;
const LINES_ONLY = ["delimiter", "nullText", "defaultText", "header"] as const;

function faultOf(options: CopySettings, written: WrittenSettings): string | undefined {
  const { format } = options;
  if (format !== "csv" && CSV_ONLY.some((key) => written[key] !== undefined)) {
    return `found an option for the csv format, but the format is ${format}`;
  }
  if (format === "csv" || format === "text") {
    return faultOfCharacters(options) ?? faultOfTexts(options);
  }
  if (LINES_ONLY.every((key) => written[key] === undefined)) return undefined;
  return `found an option for the csv and text formats, but the format is ${format}`;
}

function faultOfCharacters({ delimiter, escape, format, quote }: CopySettings): string | undefined {
  for (const [name, character] of Object.entries({ delimiter, quote, escape })) {
    if (isOneCharacter(character)) continue;
    return `the ${name} is "${character}", but must be a single ASCII character`;
  }
  if (format === "text" && /[\\.a-z0-9]/.test(delimiter)) {
    return `the delimiter is "${delimiter}", which has a special meaning in the text format`;
  }
  const isSame = format === "csv" && delimiter === quote;
  return isSame ? "the delimiter and the quote are the same" : undefined;
}

function faultOfTexts(options: CopySettings): string | undefined {
  const { defaultText, delimiter, format, nullText, quote } = options;
  for (const [name, text] of Object.entries({ NULL: nullText, DEFAULT: defaultText ?? "" })) {
    if (/[\r\n]/.test(text)) return `the string for ${name} contains a line break`;
    if (text.includes(delimiter)) return `the string for ${name} contains the delimiter`;
    if (format === "csv" && text.includes(quote))
      return `the string for ${name} contains the quote`;
  }
  return defaultText === nullText ? "the strings for NULL and DEFAULT are the same" : undefined;
}

/** Whether a string is one ASCII character that is neither NUL nor a line break. */
function isOneCharacter(text: string): boolean {
  const code = text.charCodeAt(0);
  return text.length === 1 && code > 0 && code < 128 && text !== "\n" && text !== "\r";
}
