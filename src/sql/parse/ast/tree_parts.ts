/**
 * All parts of a syntax tree, for who looks for something wherever it stands.
 */

/**
 * A part and every object and list below it, each before what is in it and in the tree's order. The
 * values of a long list of literals are left out: it makes their nodes only for who asks, and they
 * hold no name, no call and no query.
 */
export function* partsOf(root: unknown): Generator<object> {
  const rest: unknown[] = [root];
  while (rest.length > 0) {
    const part = rest.pop();
    if (typeof part !== "object" || part === null || ArrayBuffer.isView(part)) continue;
    yield part;
    const isLiterals = "literals" in part && part.literals !== undefined;
    const keys = Object.keys(part);
    for (let index = keys.length - 1; index >= 0; index -= 1) {
      const key = keys[index] ?? "";
      if (isLiterals && (key === "expressions" || key === "values")) continue;
      rest.push((part as Readonly<Record<string, unknown>>)[key]);
    }
  }
}
