/**
 * Represents a parsed XML document as a table of nodes in document order, for evaluating XPath.
 *
 *     <a x="1"><b/>t</a>      node     0         1        2          3        4
 *                             kind     document  element  attribute  element  text
 *                             after    5         5        3          4        5
 *
 * The attributes of an element follow it directly. The descendants of a node are the nodes between
 * it and `after`, so every axis is a traversal of consecutive numbers. Text is decoded only when
 * it is read.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  excerpt,
  parseXml,
  predefinedEntity,
  type XmlForm,
  type XmlSink,
} from "../../../types/mod.ts";

export const XmlNode = {
  document: 0,
  element: 1,
  attribute: 2,
  text: 3,
  cdata: 4,
  comment: 5,
  instruction: 6,
} as const;

/** An expanded XML name, and the prefix with which it was written. */
export interface XmlNodeName {
  readonly prefix: string;
  readonly local: string;
  /** The namespace URI; an empty string if the name has no namespace. */
  readonly uri: string;
}

/** A namespace declaration. The prefix of the default namespace is an empty string. */
export interface XmlSpace {
  readonly prefix: string;
  readonly uri: string;
}

/** The maximum number of nodes in a document on which XPath expressions are evaluated. */
const NODES_MAX = 2 ** 20;

const XML_SPACE = "http://www.w3.org/XML/1998/namespace";
/**
 * Matches a string that consists of URI characters. The empty string removes the default
 * namespace.
 */
const URI = /^[\w!#$%&'()*+,\-./:;=?@[\]~]*$/;
const NO_NAME: XmlNodeName = { prefix: "", local: "", uri: "" };
const NO_SPACES: readonly XmlSpace[] = [];

export class XmlTree implements XmlSink {
  readonly #text: string;
  readonly #kinds: number[] = [];
  readonly #parents: number[] = [];
  readonly #afters: number[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #names: XmlNodeName[] = [];
  readonly #spaces = new Map<number, readonly XmlSpace[]>();
  readonly #knownNames = new Map<string, XmlNodeName>();
  #open = 0;
  /**
   * The URIs that the open elements declare for each prefix. The innermost declaration comes last.
   */
  readonly #scope = new Map<string, string[]>([["xml", [XML_SPACE]]]);
  #pending: { name: string; attributes: { name: string; start: number; end: number }[] } = {
    name: "",
    attributes: [],
  };

  /**
   * Parses an XML document.
   * @throws {DatabaseError} INVALID_VALUE, LIMIT_EXCEEDED, UNSUPPORTED_FEATURE
   */
  constructor(text: string, form: XmlForm = "document") {
    this.#text = text;
    this.#add(XmlNode.document, 0, 0, NO_NAME);
    parseXml(text, form, this);
    this.#afters[0] = this.count;
  }

  get count(): number {
    return this.#kinds.length;
  }

  kindOf(node: number): number {
    return this.#kinds[node] ?? XmlNode.document;
  }

  /** Returns the parent of a node; -1 for the document node. */
  parentOf(node: number): number {
    return this.#parents[node] ?? -1;
  }

  /** Returns the number after that of a node's last descendant. */
  afterOf(node: number): number {
    return this.#afters[node] ?? node + 1;
  }

  nameOf(node: number): XmlNodeName {
    return this.#names[node] ?? NO_NAME;
  }

  /** Returns the namespaces that an element itself declares. */
  spacesOf(node: number): readonly XmlSpace[] {
    return this.#spaces.get(node) ?? NO_SPACES;
  }

  /**
   * Returns the first node after the attributes of a node. If the node has no children, the result
   * lies beyond its descendants.
   */
  firstInside(node: number): number {
    let first = node + 1;
    while (this.#kinds[first] === XmlNode.attribute && this.#parents[first] === node) first += 1;
    return first;
  }

  /** Returns the length of the source text from which the value of a node is read. */
  lengthOf(node: number): number {
    return (this.#ends[node] ?? 0) - (this.#starts[node] ?? 0);
  }

  /** Returns the value of a node that is neither an element nor the document. */
  ownValue(node: number): string {
    const source = this.#text.slice(this.#starts[node], this.#ends[node]);
    const text = source.includes("\r") ? source.replaceAll(/\r\n?/g, "\n") : source;
    switch (this.#kinds[node]) {
      case XmlNode.text:
        return decoded(text);
      case XmlNode.attribute:
        return decoded(text.replaceAll(/[\t\n]/g, " "));
      default:
        return text;
    }
  }

  #add(kind: number, start: number, end: number, name: XmlNodeName): number {
    const node = this.#kinds.length;
    if (node >= NODES_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot evaluate a path in the XML document: it has more than ${NODES_MAX} nodes`,
        { hint: "store smaller documents" },
      );
    }
    this.#kinds.push(kind);
    this.#parents.push(node === 0 ? -1 : this.#open);
    this.#afters.push(node + 1);
    this.#starts.push(start);
    this.#ends.push(end);
    this.#names.push(name);
    return node;
  }

  element(name: string): void {
    this.#pending = { name, attributes: [] };
  }

  attribute(name: string, start: number, end: number): void {
    this.#pending.attributes.push({ name, start, end });
  }

  startTagEnd(): void {
    const { attributes, name } = this.#pending;
    const declared = attributes.filter((each) => /^xmlns(?::|$)/.test(each.name));
    const spaces = declared.map((each) => this.#declaredSpace(each));
    for (const { prefix, uri } of spaces) {
      const uris = this.#scope.get(prefix);
      if (uris === undefined) this.#scope.set(prefix, [uri]);
      else uris.push(uri);
    }
    const node = this.#add(XmlNode.element, 0, 0, this.#resolved(name, true));
    if (spaces.length > 0) this.#spaces.set(node, spaces);
    this.#open = node;
    for (const each of attributes) {
      if (declared.includes(each)) continue;
      this.#add(XmlNode.attribute, each.start, each.end, this.#resolved(each.name, false));
    }
  }

  /** Reads a namespace declaration. @throws {DatabaseError} INVALID_VALUE */
  #declaredSpace({ end, name, start }: { name: string; start: number; end: number }): XmlSpace {
    const prefix = name.slice("xmlns:".length);
    const uri = decoded(this.#text.slice(start, end));
    if (URI.test(uri) && (uri !== "" || prefix === "")) return { prefix, uri };
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot evaluate a path in the XML document: the namespace ${excerpt(uri)} is not a URI`,
    );
  }

  /** Resolves the namespace prefix of a name. @throws {DatabaseError} INVALID_VALUE */
  #resolved(name: string, usesDefault: boolean): XmlNodeName {
    const colon = name.indexOf(":");
    const prefix = colon < 0 ? "" : name.slice(0, colon);
    const local = name.slice(colon + 1);
    const isBare = prefix === "" && !usesDefault;
    const found = isBare ? undefined : this.#scope.get(prefix)?.at(-1);
    if (found === undefined && prefix !== "") {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot evaluate a path in the XML document: it does not declare the namespace prefix ${excerpt(prefix)}`,
      );
    }
    const uri = found ?? "";
    const key = `${name} ${uri}`;
    const known = this.#knownNames.get(key) ?? { prefix, local, uri };
    this.#knownNames.set(key, known);
    return known;
  }

  elementEnd(): void {
    this.#afters[this.#open] = this.count;
    for (const { prefix } of this.spacesOf(this.#open)) this.#scope.get(prefix)?.pop();
    this.#open = this.parentOf(this.#open);
  }

  text(start: number, end: number): void {
    this.#add(XmlNode.text, start, end, NO_NAME);
  }

  cdata(start: number, end: number): void {
    this.#add(XmlNode.cdata, start, end, NO_NAME);
  }

  comment(start: number, end: number): void {
    this.#add(XmlNode.comment, start, end, NO_NAME);
  }

  instruction(target: string, start: number, end: number): void {
    this.#add(XmlNode.instruction, start, end, { prefix: "", local: target, uri: "" });
  }

  entity(name: string): void {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot evaluate a path in the XML document: it uses the entity ${excerpt(name)}, and entities that a DOCTYPE declares are never expanded`,
      { hint: "write the text itself instead of the entity" },
    );
  }
}

/**
 * Replaces character references and predefined entities with the characters that they represent.
 */
function decoded(text: string): string {
  if (!text.includes("&")) return text;
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-fA-F]+)|([^;]+));/g, (all, decimal, hex, name) => {
    if (typeof name === "string") return predefinedEntity(name) ?? all;
    const isHex = typeof hex === "string";
    return String.fromCodePoint(Number.parseInt(isHex ? hex : decimal, isHex ? 16 : 10));
  });
}
