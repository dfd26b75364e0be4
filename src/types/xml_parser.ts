/**
 * Parses XML 1.0 in a single pass and reports each part to a sink. With a sink that ignores the
 * parts, the parser only checks well-formedness.
 *
 * The time is proportional to the length of the text. A DOCTYPE is checked only for its overall
 * form: the parser never reads external files and never expands entities that a DOCTYPE declares.
 * Such an entity is reported as it is written.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

/**
 * The form of an XML text: a document with a single root element, or any content of an element.
 */
export type XmlForm = "document" | "content";

/** Receives the parts of a text in order. Positions are offsets in the text; ends are exclusive. */
export interface XmlSink {
  /** Begins an element. `start` is the position of its `<`. */
  element(name: string, start: number): void;
  /**
   * Adds an attribute to the most recently begun element. The positions are the start and end of
   * its quoted value.
   */
  attribute(name: string, start: number, end: number): void;
  /** Ends the most recently begun start tag. */
  startTagEnd(): void;
  elementEnd(): void;
  text(start: number, end: number): void;
  cdata(start: number, end: number): void;
  comment(start: number, end: number): void;
  instruction(target: string, start: number, end: number): void;
  /** Reports a reference to an entity that the DOCTYPE must declare. */
  entity(name: string): void;
}

/** The maximum nesting depth of elements, as in PostgreSQL. */
const DEPTH_MAX = 256;

// Characters that a name may contain in XML 1.0, fifth edition.
const NAME_START =
  ":A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}";
const NAME_MORE = `${NAME_START}\\-.0-9\\xB7\\u0300-\\u036F\\u203F\\u2040`;
const NAME = new RegExp(`[${NAME_START}][${NAME_MORE}]*`, "uy");
const NAME_START_ONLY = new RegExp(`^[${NAME_START}]$`, "u");
const NAME_MORE_ONLY = new RegExp(`^[${NAME_MORE}]$`, "u");

/** Whether an XML name may begin with a character. */
export function startsXmlName(character: string): boolean {
  return NAME_START_ONLY.test(character);
}

/** Whether an XML name may contain a character after its first character. */
export function continuesXmlName(character: string): boolean {
  return NAME_MORE_ONLY.test(character);
}

const FORBIDDEN = /[^\t\n\r\u0020-\ufffd]/;
const SPACE = /[ \t\r\n]*/y;
const REFERENCE = /&(?:#(\d+)|#x([0-9a-fA-F]+)|([^;&<\s]+));/y;
const DECLARATION =
  /<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"(\d\.\d+)"|'(\d\.\d+)')(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"[A-Za-z][\w.-]*"|'[A-Za-z][\w.-]*'))?(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(yes|no)"|'(yes|no)'))?[ \t\r\n]*\?>/y;

/** Returns the character of a predefined entity; undefined for any other name. */
export function predefinedEntity(name: string): string | undefined {
  return PREDEFINED.get(name);
}

const PREDEFINED: ReadonlyMap<string, string> = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
]);

/** An XML declaration at the start of a text. */
export interface XmlDeclaration {
  readonly version: string;
  readonly isStandalone: boolean | undefined;
  /** The end of the declaration, as an offset in the text. */
  readonly end: number;
}

/** Returns the XML declaration with which a text begins; undefined if there is none. */
export function xmlDeclarationOf(text: string): XmlDeclaration | undefined {
  if (!text.startsWith("<?xml")) return undefined;
  DECLARATION.lastIndex = 0;
  const found = DECLARATION.exec(text);
  if (found === null) return undefined;
  const standalone = found[3] ?? found[4];
  return {
    version: found[1] ?? found[2] ?? "1.0",
    isStandalone: standalone === undefined ? undefined : standalone === "yes",
    end: found[0].length,
  };
}

const IGNORED: XmlSink = {
  element: ignore,
  attribute: ignore,
  startTagEnd: ignore,
  elementEnd: ignore,
  text: ignore,
  cdata: ignore,
  comment: ignore,
  instruction: ignore,
  entity: ignore,
};

function ignore(): void {}

/** Returns a text if it is well-formed XML. @throws {DatabaseError} INVALID_VALUE */
export function checkedXml(text: string, form: XmlForm): string {
  parseXml(text, form, IGNORED);
  return text;
}

/** Whether a text is well-formed XML of the given form. */
export function isXml(text: string, form: XmlForm): boolean {
  try {
    parseXml(text, form, IGNORED);
    return true;
  } catch (error) {
    // A text that cannot be parsed is not well-formed, so the error becomes the result.
    if (error instanceof DatabaseError) return false;
    throw error;
  }
}

/**
 * Parses an XML text. Content with a DOCTYPE is parsed as a document.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function parseXml(text: string, form: XmlForm, sink: XmlSink): void {
  new XmlParser(text, sink).parse(form);
}

/**
 * Finds the next occurrence of a word from increasing positions. It searches no part of the text
 * twice, so all searches together take time proportional to the length of the text.
 */
class NextWord {
  readonly #text: string;
  readonly #word: string;
  #found = -1;

  constructor(text: string, word: string) {
    this.#text = text;
    this.#word = word;
  }

  /** Returns the first position of the word at or after `from`; infinity if there is none. */
  after(from: number): number {
    if (this.#found < from) {
      const found = this.#text.indexOf(this.#word, from);
      this.#found = found < 0 ? Number.POSITIVE_INFINITY : found;
    }
    return this.#found;
  }
}

class XmlParser {
  readonly #text: string;
  readonly #sink: XmlSink;
  readonly #nextTag: NextWord;
  readonly #nextReference: NextWord;
  readonly #nextClose: NextWord;
  #at = 0;
  /** The names of the open elements. */
  readonly #open: string[] = [];
  readonly #entities = new Set<string>();
  /** Whether an entity may be declared in a file or parameter entity that is not read. */
  #mayDeclareElsewhere = false;

  constructor(text: string, sink: XmlSink) {
    this.#text = text;
    this.#sink = sink;
    this.#nextTag = new NextWord(text, "<");
    this.#nextReference = new NextWord(text, "&");
    this.#nextClose = new NextWord(text, "]]>");
  }

  parse(form: XmlForm): void {
    const text = this.#text;
    const forbidden = text.search(FORBIDDEN);
    if (forbidden >= 0)
      this.#fail("the text contains a character that XML does not allow", forbidden);
    if (!text.isWellFormed()) this.#fail("the text contains an unpaired surrogate", 0);
    if (/^<\?xml[ \t\r\n]/.test(text)) this.#declaration();
    const start = this.#at;
    if (form === "content" && !this.#isBeforeDoctype()) {
      this.#at = start;
      this.#content();
      const name = this.#open.at(-1);
      if (name !== undefined) this.#fail(`element ${excerpt(name)} is not closed`);
      return;
    }
    this.#at = start;
    this.#document();
  }

  #document(): void {
    const { length } = this.#text;
    this.#misc(true);
    if (this.#at >= length || !this.#is("<")) this.#fail("the document has no root element");
    this.#startTag();
    if (this.#open.length > 0) this.#content();
    const name = this.#open.at(-1);
    if (name !== undefined) this.#fail(`element ${excerpt(name)} is not closed`);
    this.#misc(false);
    if (this.#at < length) this.#fail("there is content after the root element");
  }

  #declaration(): void {
    const declaration = xmlDeclarationOf(this.#text);
    if (declaration === undefined) this.#fail("the XML declaration is malformed");
    this.#at = declaration.end;
  }

  /** Whether only comments, instructions and whitespace precede a DOCTYPE. */
  #isBeforeDoctype(): boolean {
    const text = this.#text;
    for (;;) {
      this.#space();
      const isComment = text.startsWith("<!--", this.#at);
      if (!isComment && !this.#is("<?")) return this.#is("<!DOCTYPE");
      const close = isComment ? "-->" : "?>";
      const end = text.indexOf(close, this.#at + 2);
      if (end < 0) return false;
      this.#at = end + close.length;
    }
  }

  /** Parses comments, instructions and whitespace outside the root element. */
  #misc(mayHaveDoctype: boolean): void {
    let mayFollow = mayHaveDoctype;
    for (;;) {
      this.#space();
      if (this.#is("<!--")) this.#comment();
      else if (this.#is("<?")) this.#instruction();
      else if (mayFollow && this.#is("<!DOCTYPE")) {
        this.#doctype();
        mayFollow = false;
      } else return;
    }
  }

  /**
   * Parses content up to the end of the text or, inside an element, up to the end of the outermost
   * open element.
   */
  #content(): void {
    const text = this.#text;
    const openMin = Math.min(this.#open.length, 1);
    while (this.#at < text.length && this.#open.length >= openMin) {
      const end = Math.min(this.#nextTag.after(this.#at), text.length);
      if (end > this.#at) this.#characters(end);
      if (end < text.length) this.#markup();
    }
  }

  #markup(): void {
    switch (this.#text[this.#at + 1]) {
      case "/":
        return this.#endTag();
      case "?":
        return this.#instruction();
      case "!":
        if (this.#is("<!--")) return this.#comment();
        if (this.#is("<![CDATA[")) return this.#cdata();
        return this.#fail("markup is malformed");
      default:
        return this.#startTag();
    }
  }

  #characters(end: number): void {
    const start = this.#at;
    const close = this.#nextClose.after(start);
    if (close < end) this.#fail("text contains ]]>", close);
    this.#references(start, end);
    this.#at = end;
    this.#sink.text(start, end);
  }

  /** Checks the references to entities and characters between two positions. */
  #references(start: number, end: number): void {
    const text = this.#text;
    let at = this.#nextReference.after(start);
    while (at < end) {
      REFERENCE.lastIndex = at;
      const found = REFERENCE.exec(text);
      if (found === null || at + found[0].length > end) {
        this.#fail("a reference is malformed", at);
      }
      const [all, decimal, hex, name] = found;
      if (name === undefined) {
        const code = Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? 16 : 10);
        if (!isCharacter(code))
          this.#fail("a character reference does not name a valid XML character", at);
      } else {
        this.#checkEntity(name, at);
      }
      at = this.#nextReference.after(at + all.length);
    }
  }

  #checkEntity(name: string, at: number): void {
    if (PREDEFINED.has(name)) return;
    NAME.lastIndex = 0;
    if (NAME.exec(name)?.[0] !== name) this.#fail("a reference is malformed", at);
    if (!this.#entities.has(name) && !this.#mayDeclareElsewhere) {
      this.#fail(`entity ${excerpt(name)} is not declared`, at);
    }
    this.#sink.entity(name);
  }

  #startTag(): void {
    const text = this.#text;
    const start = this.#at;
    this.#at += 1;
    const name = this.#name();
    if (this.#open.length >= DEPTH_MAX) {
      this.#fail(`elements are nested more than ${DEPTH_MAX} levels deep`, start);
    }
    this.#sink.element(name, start);
    this.#attributes();
    this.#sink.startTagEnd();
    if (text.startsWith("/>", this.#at)) {
      this.#at += 2;
      this.#sink.elementEnd();
      return;
    }
    if (!this.#is(">")) this.#fail(`the start tag of ${excerpt(name)} is malformed`);
    this.#at += 1;
    this.#open.push(name);
  }

  #attributes(): void {
    const text = this.#text;
    let names: Set<string> | undefined;
    for (;;) {
      const hasSpace = this.#space();
      const next = text[this.#at];
      if (next === ">" || next === "/" || next === undefined) return;
      if (!hasSpace) this.#fail("whitespace is missing before an attribute");
      const name = this.#name();
      names ??= new Set();
      if (names.has(name)) this.#fail(`attribute ${excerpt(name)} is repeated`);
      names.add(name);
      this.#space();
      if (!this.#is("=")) this.#fail(`attribute ${excerpt(name)} has no value`);
      this.#at += 1;
      this.#space();
      const quote = text[this.#at];
      if (quote !== '"' && quote !== "'") this.#fail("the value of an attribute is not quoted");
      const start = this.#at + 1;
      const end = text.indexOf(quote, start);
      if (end < 0) this.#fail("the value of an attribute is not closed");
      const tag = this.#nextTag.after(start);
      if (tag < end) this.#fail("the value of an attribute contains <", tag);
      this.#references(start, end);
      this.#sink.attribute(name, start, end);
      this.#at = end + 1;
    }
  }

  #endTag(): void {
    const start = this.#at;
    this.#at += 2;
    const name = this.#name();
    this.#space();
    if (!this.#is(">")) this.#fail("an end tag is malformed", start);
    this.#at += 1;
    const open = this.#open.pop();
    if (open === undefined) this.#fail(`end tag ${excerpt(name)} has no matching start tag`, start);
    if (open !== name) {
      this.#fail(`end tag ${excerpt(name)} does not match ${excerpt(open)}`, start);
    }
    this.#sink.elementEnd();
  }

  #comment(): void {
    const text = this.#text;
    const start = this.#at + 4;
    const end = text.indexOf("--", start);
    if (end < 0) this.#fail("a comment is not closed");
    if (text[end + 2] !== ">") this.#fail("a comment contains --", end);
    this.#at = end + 3;
    this.#sink.comment(start, end);
  }

  #instruction(): void {
    const text = this.#text;
    const begin = this.#at;
    this.#at += 2;
    const target = this.#name();
    if (target.toLowerCase() === "xml") {
      this.#fail("an XML declaration is allowed only at the very start", begin);
    }
    const hasSpace = this.#space();
    const start = this.#at;
    const end = text.indexOf("?>", start);
    if (end < 0) this.#fail("a processing instruction is not closed", begin);
    if (!hasSpace && end > start) this.#fail("a processing instruction is malformed", begin);
    this.#at = end + 2;
    this.#sink.instruction(target, start, end);
  }

  #cdata(): void {
    const start = this.#at + 9;
    const end = this.#text.indexOf("]]>", start);
    if (end < 0) this.#fail("a CDATA section is not closed");
    this.#at = end + 3;
    this.#sink.cdata(start, end);
  }

  #doctype(): void {
    this.#at += "<!DOCTYPE".length;
    if (!this.#space()) this.#fail("the DOCTYPE is malformed");
    this.#name();
    this.#space();
    if (this.#is("SYSTEM") || this.#is("PUBLIC")) {
      const count = this.#is("PUBLIC") ? 2 : 1;
      this.#at += "SYSTEM".length;
      for (let each = 0; each < count; each += 1) {
        if (!this.#space()) this.#fail("the DOCTYPE is malformed");
        this.#quoted();
      }
      this.#mayDeclareElsewhere = true;
      this.#space();
    }
    if (this.#is("[")) this.#subset();
    this.#space();
    if (!this.#is(">")) this.#fail("the DOCTYPE is malformed");
    this.#at += 1;
  }

  /** Parses the declarations inside a DOCTYPE. */
  #subset(): void {
    const text = this.#text;
    this.#at += 1;
    for (;;) {
      this.#space();
      if (this.#is("]")) {
        this.#at += 1;
        return;
      }
      if (this.#is("<!--")) this.#skipTo("-->", 4);
      else if (this.#is("<?")) this.#skipTo("?>", 2);
      else if (this.#is("%")) {
        this.#at += 1;
        this.#name();
        if (!this.#is(";")) this.#fail("the DOCTYPE is malformed");
        this.#at += 1;
        this.#mayDeclareElsewhere = true;
      } else if (
        /^<!(?:ELEMENT|ATTLIST|ENTITY|NOTATION)[ \t\r\n]/.test(text.slice(this.#at, this.#at + 12))
      ) {
        this.#markupDeclaration();
      } else this.#fail("the DOCTYPE is malformed");
    }
  }

  #skipTo(close: string, open: number): void {
    const end = this.#text.indexOf(close, this.#at + open);
    if (end < 0) this.#fail("the DOCTYPE is malformed");
    this.#at = end + close.length;
  }

  #markupDeclaration(): void {
    const text = this.#text;
    const isEntity = this.#is("<!ENTITY");
    this.#at += isEntity ? "<!ENTITY".length : 2;
    if (isEntity) {
      this.#space();
      if (!this.#is("%")) this.#entities.add(this.#name());
    }
    for (;;) {
      switch (text[this.#at]) {
        case ">":
          this.#at += 1;
          return;
        case '"':
        case "'":
          this.#quoted();
          break;
        case "<":
        case undefined:
          return this.#fail("the DOCTYPE is malformed");
        default:
          this.#at += 1;
      }
    }
  }

  #quoted(): void {
    const quote = this.#text[this.#at];
    const end = quote === '"' || quote === "'" ? this.#text.indexOf(quote, this.#at + 1) : -1;
    if (end < 0) this.#fail("the DOCTYPE is malformed");
    this.#at = end + 1;
  }

  #name(): string {
    NAME.lastIndex = this.#at;
    const found = NAME.exec(this.#text);
    if (found === null) this.#fail("a name is missing");
    this.#at += found[0].length;
    return found[0];
  }

  /** Skips whitespace. Returns whether there was any. */
  #space(): boolean {
    SPACE.lastIndex = this.#at;
    const length = SPACE.exec(this.#text)?.[0].length ?? 0;
    this.#at += length;
    return length > 0;
  }

  #is(word: string): boolean {
    return this.#text.startsWith(word, this.#at);
  }

  #fail(why: string, at = this.#at): never {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(this.#text)} as xml: ${why} (at character ${at + 1})`,
    );
  }
}

/** Whether a code point is a character of XML 1.0. */
function isCharacter(code: number): boolean {
  if (code < 0x20) return code === 9 || code === 10 || code === 13;
  if (code >= 0xd800 && code <= 0xdfff) return false;
  return code <= 0x10ffff && code !== 0xfffe && code !== 0xffff;
}
