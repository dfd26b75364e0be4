/**
 * Looks up objects by name and by OID for a statement in a reader. The reader asks the event loop,
 * which has the catalog, and caches the answers for the statement.
 */
import { putNewest } from "../../base/newest.ts";
import type { ObjectNameKind } from "../../types/mod.ts";
import type {
  ObjectCalls,
  PartitionRow,
  PrivilegeQuestion,
  TextQuestion,
} from "../functions/base/function.ts";

/** The maximum number of cached answers. */
const KNOWN_MAX = 4096;

interface NamingCall {
  readonly op: "named" | "with oid";
  readonly kind: ObjectNameKind;
  /** The name to look up, or an OID as a value of type OID. */
  readonly text: string;
}

/** The look-up of an object, as a reader sends it to the event loop. */
export type ObjectCall =
  | NamingCall
  | { readonly op: "ancestors" | "tree"; readonly oid: string }
  | { readonly op: "privilege"; readonly question: PrivilegeQuestion }
  | { readonly op: "text"; readonly question: TextQuestion };

export type ObjectAnswer = string | boolean | undefined | readonly PartitionRow[];

/** Looks up an object on the event loop to answer a reader. @throws {DatabaseError} */
export function answeredLookup(call: ObjectCall, objects: ObjectCalls): ObjectAnswer {
  switch (call.op) {
    case "named":
      return objects.named(call.kind, call.text) ?? undefined;
    case "with oid":
      return objects.withOid(call.kind, call.text);
    case "privilege":
      return objects.privilege(call.question) ?? undefined;
    case "text":
      return objects.text(call.question) ?? undefined;
    default:
      return objects.partitions(call.oid, call.op);
  }
}

export class AskedObjectCalls implements ObjectCalls {
  readonly #ask: (call: ObjectCall) => ObjectAnswer;
  readonly #known = new Map<string, string | null>();

  /**
   * Gives a reader access to the names of objects.
   * @param ask Sends a question to the event loop and waits for the answer.
   * @throws {DatabaseError}
   */
  constructor(ask: (call: ObjectCall) => ObjectAnswer) {
    this.#ask = ask;
  }

  named(kind: ObjectNameKind, name: string): string | null {
    return this.#kept({ op: "named", kind, text: name });
  }

  withOid(kind: ObjectNameKind, oid: string): string {
    return this.#kept({ op: "with oid", kind, text: oid }) ?? "";
  }

  partitions(oid: string, which: "ancestors" | "tree"): readonly PartitionRow[] {
    return this.#ask({ op: which, oid }) as readonly PartitionRow[];
  }

  privilege(question: PrivilegeQuestion): boolean | null {
    return (this.#ask({ op: "privilege", question }) as boolean | undefined) ?? null;
  }

  text(question: TextQuestion): string | null {
    return (this.#ask({ op: "text", question }) as string | undefined) ?? null;
  }

  #kept(call: NamingCall): string | null {
    const key = `${call.op} ${call.kind} ${call.text}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = (this.#ask(call) as string | undefined) ?? null;
    putNewest(this.#known, [key, found], KNOWN_MAX);
    return found;
  }
}
