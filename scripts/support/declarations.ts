/**
 * Bundles the TypeScript declarations of several modules into one file: the exports of the entry
 * module and every declaration that they refer to, each under a name that is unique in the file.
 *
 * The parser relies on the layout that the compiler emits: a declaration begins at the left edge,
 * and its other lines are indented or close it.
 */
import { posix } from "node:path";

interface Module {
  /**
   * The declarations of the module by name, each with its preceding comment and without `export`.
   */
  readonly declarations: ReadonlyMap<string, string>;
  /** The imported names, each mapped to the module and name from which it comes. */
  readonly imports: ReadonlyMap<string, Origin>;
  readonly exports: ReadonlyMap<string, Export>;
}

interface Origin {
  readonly path: string;
  readonly name: string;
}

interface Export extends Origin {
  /**
   * Whether only the type of a class is exported, so that users of the bundle cannot construct it.
   */
  readonly isType: boolean;
}

interface NamedExport {
  readonly name: string;
  readonly from: Origin;
  readonly isType: boolean;
}

const NAMED = /^(?:import|export) (type )?\{([^}]*)\} from "([^"]+)";/gm;
const BEGINNING =
  /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|function|const) (\w+)/;

/**
 * Combines the declarations of an entry module and of its imports into a single file.
 * @param read Returns the declarations of a module, given its path without an extension.
 */
export function bundleDeclarations(entry: string, read: (path: string) => string): string {
  const modules = new Map<string, Module>();
  const moduleAt = (path: string): Module => {
    const module = modules.get(path) ?? moduleFrom(path, read(path));
    modules.set(path, module);
    return module;
  };
  const origin = ({ name, path }: Origin): Origin => {
    const { declarations, exports, imports } = moduleAt(path);
    const from = declarations.has(name) ? undefined : (exports.get(name) ?? imports.get(name));
    return from === undefined ? { name, path } : origin(from);
  };
  const exported = Array.from(
    moduleAt(entry).exports,
    ([name, { isType, ...from }]): NamedExport => {
      return { name, from: origin(from), isType };
    },
  );
  const names = new Map<string, string>();
  for (const { from, name } of exported) names.set(keyOf(from), name);
  const nameOf = (from: Origin): string => {
    const key = keyOf(from);
    const taken = new Set(names.values());
    const free = [from.name, `Wire${from.name}`].find((name) => !taken.has(name));
    const name = names.get(key) ?? free;
    if (name === undefined)
      throw new Error(`Cannot name ${key}: its name is already used by two declarations`);
    names.set(key, name);
    return name;
  };
  const texts = new Map<string, string>();
  const open = exported.map(({ from }) => from);
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const key = keyOf(next);
    if (texts.has(key)) continue;
    const { declarations, imports } = moduleAt(next.path);
    const declaration = declarations.get(next.name);
    if (declaration === undefined) throw new Error(`Cannot find the declaration of ${key}`);
    const { path } = next;
    const text = renamed(declaration, (word) => {
      if (!declarations.has(word) && !imports.has(word)) return word;
      const from = origin({ path, name: word });
      open.push(from);
      return nameOf(from);
    });
    texts.set(key, text);
  }
  const listed = (areTypes: boolean): string =>
    exported
      .filter(({ isType }) => isType === areTypes)
      .map(({ name }) => name)
      .toSorted()
      .join(", ");
  return [
    "// The client of Tidemark, as the server delivers it at /v1/client.js.",
    ...texts.values(),
    `export { ${listed(false)} };`,
    `export type { ${listed(true)} };`,
    "",
  ].join("\n");
}

function moduleFrom(path: string, text: string): Module {
  const imports = new Map<string, Origin>();
  const exports = new Map<string, Export>();
  for (const [line, type = "", list = "", from = ""] of text.matchAll(NAMED)) {
    const target = posix.join(posix.dirname(path), from).replace(/\.ts$/, "");
    for (const part of list.split(",").filter((each) => each.trim() !== "")) {
      const words = type + part.trim();
      const [name = "", local = name] = words.replace(/^(?:type )+/, "").split(" as ");
      const origin = { path: target, name, isType: words.startsWith("type ") };
      if (line.startsWith("import")) imports.set(local, origin);
      else exports.set(local, origin);
    }
  }
  return { declarations: declarationsIn(text), imports, exports };
}

function declarationsIn(text: string): Map<string, string> {
  const declarations = new Map<string, string>();
  let comment: string[] = [];
  let lines: string[] = [];
  let found: string | undefined;
  const end = (): void => {
    if (found !== undefined) declarations.set(found, lines.join("\n"));
    found = undefined;
  };
  for (const line of text.split("\n")) {
    const [, name] = BEGINNING.exec(line) ?? [];
    if (name !== undefined) {
      end();
      found = name;
      lines = [
        ...comment,
        line.replace(/^export /, "").replace(/^(?=class|function|const)/, "declare "),
      ];
      comment = [];
    } else if (/^(?:\/\*\*| \*)/.test(line)) {
      // A comment begins at the left edge if it belongs to a declaration, or if it is within a
      // union.
      if (line.startsWith("/**")) comment = [];
      comment.push(line);
    } else if (/^(?:import|export) /.test(line)) {
      end();
      comment = [];
    } else if (found !== undefined && line !== "") {
      lines.push(...comment, line);
      comment = [];
    }
  }
  end();
  return declarations;
}

/** Renames the identifiers in a declaration. Its comments stay as they are. */
function renamed(text: string, nameOf: (word: string) => string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|"(?:[^"\\]|\\.)*"|\b[A-Za-z_]\w*\b/g, (word) =>
    /^[A-Za-z_]/.test(word) ? nameOf(word) : word,
  );
}

function keyOf({ name, path }: Origin): string {
  return `${path}#${name}`;
}
