/**
 * In which order the entries of WITH RECURSIVE are bound. Each may read every other, those behind
 * it too, so each comes behind what it reads; entries that read each other in a circle are refused.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { FromTable, WithBinding, WithStatement } from "../../parse/ast/ast.ts";
import { directPartsOf, isPart } from "../../parse/ast/tree_parts.ts";

/** The entries, each behind those that it reads; as they are written where that is so already. */
export function inOrderOfReading(entries: readonly WithBinding[]): readonly WithBinding[] {
  const places = new Map(entries.map(({ alias }, place) => [alias.name, place]));
  const read = entries.map(({ alias, statement }) => {
    const names = new Set<string>();
    addNamesRead(statement, new Set(), names);
    // An entry that reads itself is a matter of its own form.
    names.delete(alias.name);
    return [...names].flatMap((name) => places.get(name) ?? []);
  });
  if (read.every((each, place) => each.every((other) => other < place))) return entries;

  const readers = entries.map((): number[] => []);
  for (const [place, each] of read.entries()) {
    for (const other of each) readers[other]?.push(place);
  }
  const openCounts = read.map(({ length }) => length);
  const order = openCounts.flatMap((count, place) => (count === 0 ? [place] : []));
  for (const place of order) {
    for (const reader of readers[place] ?? []) {
      const openCount = defined(openCounts[reader], "a reader is an entry") - 1;
      openCounts[reader] = openCount;
      if (openCount === 0) order.push(reader);
    }
  }
  const inCircle = entries[openCounts.findIndex((count) => count > 0)];
  if (inCircle !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot run a recursive query: entries of WITH read each other in a circle",
      { position: inCircle.alias._location.start, hint: "let one entry read itself" },
    );
  }
  return order.map((place) => defined(entries[place], "a place is that of an entry"));
}

/**
 * Adds the names in FROM that may be those of entries: without a namespace, and no WITH within
 * hides.
 */
function addNamesRead(part: unknown, hidden: ReadonlySet<string>, names: Set<string>): void {
  if (!isPart(part)) return;
  if (isWith(part)) {
    const isRecursive = part.type === "with recursive";
    const all = new Set([...hidden, ...part.bind.map(({ alias }) => alias.name)]);
    const before = new Set(hidden);
    for (const { alias, statement } of part.bind) {
      addNamesRead(statement, isRecursive ? all : before, names);
      before.add(alias.name);
    }
    addNamesRead(part.in, all, names);
    return;
  }
  if (isTable(part)) {
    const { name, schema } = part.name;
    if (schema === undefined && !hidden.has(name)) names.add(name);
  }
  for (const child of directPartsOf(part)) addNamesRead(child, hidden, names);
}

function isWith(part: object): part is WithStatement {
  return "type" in part && (part.type === "with" || part.type === "with recursive");
}

function isTable(part: object): part is FromTable {
  return "type" in part && part.type === "table";
}
