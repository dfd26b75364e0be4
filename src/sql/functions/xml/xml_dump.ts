/** Serialises the nodes of an XML document. */
import { escapedXmlAttribute, escapedXmlText } from "../../../types/mod.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { XmlNode, type XmlNodeName, type XmlSpace, type XmlTree } from "./xml_tree.ts";

/**
 * Serialises a node as an XML value. An element also declares the namespaces that it uses and that
 * its ancestors declare in the document. An attribute becomes its escaped value.
 */
export function xmlOfNode(tree: XmlTree, node: number): string {
  switch (tree.kindOf(node)) {
    case XmlNode.text:
    case XmlNode.attribute:
      return escapedXmlText(tree.ownValue(node));
    case XmlNode.document: {
      const texts: string[] = [];
      for (let child = 1; child < tree.count; child = tree.afterOf(child)) {
        texts.push(xmlOfNode(tree, child), "\n");
      }
      return texts.join("");
    }
    default: {
      const parts: string[] = [];
      write(tree, node, missingSpaces(tree, node), parts);
      const text = parts.join("");
      checkMadeLength(text.length);
      return text;
    }
  }
}

/** Returns the namespaces that an element or its descendants use without declaring them. */
function missingSpaces(tree: XmlTree, root: number): readonly XmlSpace[] {
  const missing = new Map<string, string>();
  const declared = new Map<string, number>();
  const declare = (node: number, change: number): void => {
    for (const { prefix } of tree.spacesOf(node)) {
      declared.set(prefix, (declared.get(prefix) ?? 0) + change);
    }
  };
  const require = ({ prefix, uri }: XmlNodeName): void => {
    if (uri === "" || prefix === "xml" || (declared.get(prefix) ?? 0) > 0) return;
    if (!missing.has(prefix)) missing.set(prefix, uri);
  };
  const visit = (node: number): void => {
    if (tree.kindOf(node) !== XmlNode.element) return;
    declare(node, 1);
    const first = tree.firstInside(node);
    for (let each = node; each < first; each += 1) require(tree.nameOf(each));
    for (let child = first; child < tree.afterOf(node); child = tree.afterOf(child)) visit(child);
    declare(node, -1);
  };
  visit(root);
  return Array.from(missing, ([prefix, uri]) => ({ prefix, uri }));
}

function write(tree: XmlTree, node: number, further: readonly XmlSpace[], parts: string[]): void {
  switch (tree.kindOf(node)) {
    case XmlNode.element:
      writeElement(tree, node, further, parts);
      return;
    case XmlNode.cdata:
      parts.push(`<![CDATA[${tree.ownValue(node)}]]>`);
      return;
    case XmlNode.comment:
      parts.push(`<!--${tree.ownValue(node)}-->`);
      return;
    case XmlNode.instruction: {
      const content = tree.ownValue(node);
      parts.push(`<?${tree.nameOf(node).local}${content === "" ? "" : ` ${content}`}?>`);
      return;
    }
    default:
      parts.push(escapedXmlText(tree.ownValue(node)).replaceAll("&#x0d;", "&#13;"));
  }
}

function writeElement(
  tree: XmlTree,
  node: number,
  further: readonly XmlSpace[],
  parts: string[],
): void {
  const name = writtenName(tree.nameOf(node));
  parts.push(`<${name}`);
  for (const { prefix, uri } of [...tree.spacesOf(node), ...further]) {
    const key = prefix === "" ? "xmlns" : `xmlns:${prefix}`;
    parts.push(` ${key}="${escapedXmlAttribute(uri)}"`);
  }
  const first = tree.firstInside(node);
  for (let attribute = node + 1; attribute < first; attribute += 1) {
    const key = writtenName(tree.nameOf(attribute));
    parts.push(` ${key}="${escapedXmlAttribute(tree.ownValue(attribute))}"`);
  }
  const after = tree.afterOf(node);
  if (first >= after) {
    parts.push("/>");
    return;
  }
  parts.push(">");
  for (let child = first; child < after; child = tree.afterOf(child)) {
    write(tree, child, [], parts);
  }
  parts.push(`</${name}>`);
}

/** Returns a name with its prefix, as it is written in the document. */
export function writtenName({ local, prefix }: XmlNodeName): string {
  return prefix === "" ? local : `${prefix}:${local}`;
}
