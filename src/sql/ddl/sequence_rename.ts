/**
 * Executes ALTER SEQUENCE … RENAME TO. DEFAULTs refer to a sequence by name, so they are changed
 * in the same catalog transaction. The sequence keeps its numbers.
 */
import { DatabaseError } from "../../base/errors.ts";
import { checkObjectName, type SequenceEntry, type TableEntry } from "../../catalog/mod.ts";
import { columnsTakingFrom, findSequence, withRenamedSequence } from "../names/sequences.ts";
import type { AlterSequenceStatement, Name } from "../parse/ast/ast.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { isRelation } from "./numbered_columns.ts";
import { redefineTable } from "./redefined_table.ts";
import type { SequenceCaller, SequenceDefinitionDeps } from "./sequence_definitions.ts";

interface RenamedSequence {
  readonly node: AlterSequenceStatement;
  readonly to: Name;
}

/**
 * Binds the renaming of a sequence.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_NAME, UNSUPPORTED_FEATURE
 */
export function renameSequence(
  { node, to }: RenamedSequence,
  { namespace: current }: SequenceCaller,
  deps: SequenceDefinitionDeps,
): BoundDefinition {
  const { catalog, clock } = deps;
  const { name, schema: namespace = current } = node.name;
  const shown = `${namespace}.${name}`;
  if (node.ifExists === true && catalog.sequence(namespace, name) === undefined) {
    return () => `Sequence ${shown} does not exist`;
  }
  const position = to._location.start;
  const planned = (): { before: SequenceEntry; table: TableEntry | undefined } => {
    const before = findSequence(catalog, node.name, current);
    checkObjectName("sequence", to.name, { position });
    if (isRelation(catalog, namespace, to.name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot rename sequence ${shown} to "${to.name}": ${namespace}.${to.name} already exists`,
        { position },
      );
    }
    const tables = new Set(columnsTakingFrom(catalog, [before]).map(({ table }) => table));
    if (tables.size <= 1) return { before, table: [...tables][0] };
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot rename sequence ${shown}: the DEFAULTs of ${tables.size} tables use it, but only ` +
        "a sequence used by at most one table can be renamed",
      {
        position,
        hint: "keep the sequence for one of the tables, and create separate sequences for the others",
      },
    );
  };
  planned();
  return () => {
    const { before, table } = planned();
    const renamed = { ...before, name: to.name, updatedAtMs: clock.nowMs() };
    if (table === undefined) catalog.changeSequence(renamed);
    else {
      const columns = table.columns.map((column) => withRenamedSequence(column, before, renamed));
      const after = { ...table, columns, schemaVersion: table.schemaVersion + 1 };
      redefineTable(deps, { before: table, after }, { sequences: [renamed] });
    }
    return `Sequence ${shown} renamed to ${to.name}`;
  };
}
