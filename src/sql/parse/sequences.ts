/**
 * Parses CREATE, ALTER and DROP SEQUENCE.
 */
import type {
  AlterOwnerStatement,
  AlterSequenceStatement,
  CreateSequenceStatement,
  DropSequenceStatement,
  QName,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { acceptBehaviour, acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { acceptOwner } from "./ownership.ts";
import { parseSequenceOptions } from "./sequence_options.ts";

const SEQUENCE = "a sequence";

/** Parses the rest of a statement after `CREATE SEQUENCE`. */
export function parseCreateSequence(
  cursor: Cursor,
  start: number,
  temporary: true | undefined,
): CreateSequenceStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname(SEQUENCE);
  const options = parseSequenceOptions(cursor);
  const _location = cursor.since(start);
  return { type: "create sequence", name, temporary, ifNotExists, options, _location };
}

/** Parses the rest of a statement after `ALTER SEQUENCE`. */
export function parseAlterSequence(
  cursor: Cursor,
  start: number,
): AlterOwnerStatement | AlterSequenceStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.qname(SEQUENCE);
  if (cursor.acceptAll("rename", "to")) {
    const renamedTo = cursor.name(SEQUENCE);
    const _location = cursor.since(start);
    return { type: "alter sequence", name, ifExists, options: [], renamedTo, _location };
  }
  const owned = acceptOwner(cursor, start, { kind: "sequence", name, ifExists });
  if (owned !== undefined) return owned;
  if (cursor.is("set"))
    cursor.refuse(
      "SET of a sequence",
      "create a sequence in the other namespace, and drop this one",
    );
  const options = parseSequenceOptions(cursor);
  if (options.length === 0) cursor.unexpected("RESTART, OWNED BY or another option");
  return { type: "alter sequence", name, ifExists, options, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP SEQUENCE`. */
export function parseDropSequence(cursor: Cursor, start: number): DropSequenceStatement {
  const ifExists = acceptIfExists(cursor);
  const names: QName[] = [];
  do names.push(cursor.qname(SEQUENCE));
  while (cursor.accept(","));
  const cascade = acceptBehaviour(cursor);
  return { type: "drop sequence", names, ifExists, cascade, _location: cursor.since(start) };
}
