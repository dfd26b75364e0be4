/**
 * Looks up objects by name and by OID for statements on the event loop. Results are cached as long
 * as the catalog is unchanged, because a statement may look up the same object for every row.
 */
import { type ObjectNameKind, objectNameValue, textFromValue } from "../../types/mod.ts";
import type {
  ObjectCalls,
  PartitionRow,
  PrivilegeQuestion,
  TextQuestion,
} from "../functions/base/function.ts";
import { type ObjectPlace, objectNamed, objectWithOid } from "../names/object_names.ts";
import { objectText } from "../names/object_texts.ts";
import { partitionAncestors, partitionTree } from "../names/partition_tree.ts";
import { hasPrivilege } from "../names/privileges.ts";

/** The maximum number of cached look-ups. */
const KNOWN_MAX = 4096;

export class OwnObjectCalls implements ObjectCalls {
  readonly #place: ObjectPlace;
  readonly #known = new Map<string, string | null>();
  #knownVersion: number;

  constructor(place: ObjectPlace) {
    this.#place = place;
    this.#knownVersion = place.catalog.version;
  }

  named(kind: ObjectNameKind, name: string): string | null {
    return this.#kept(`${kind} ${name}`, () => objectNamed(kind, name, this.#place) ?? null);
  }

  withOid(kind: ObjectNameKind, oid: string): string {
    const found = this.#kept(
      `${kind} #${oid}`,
      () => objectWithOid(kind, oid, this.#place) ?? unnamedValue(oid),
    );
    return found ?? unnamedValue(oid);
  }

  partitions(oid: string, which: "ancestors" | "tree"): readonly PartitionRow[] {
    return which === "tree"
      ? partitionTree(oid, this.#place)
      : partitionAncestors(oid, this.#place);
  }

  privilege(question: PrivilegeQuestion): boolean | null {
    return hasPrivilege(question, this.#place);
  }

  text(question: TextQuestion): string | null {
    return objectText(question, this.#place) ?? null;
  }

  #kept(key: string, find: () => string | null): string | null {
    const { version } = this.#place.catalog;
    if (version !== this.#knownVersion || this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#knownVersion = version;
    let found = this.#known.get(key);
    if (found === undefined) {
      found = find();
      this.#known.set(key, found);
    }
    return found;
  }
}

/** Returns the value for an OID that belongs to no object. Its text is the OID as a number. */
function unnamedValue(oid: string): string {
  const number = textFromValue({ kind: "oid" }, oid);
  return objectNameValue(oid, number === "0" ? "-" : number);
}
