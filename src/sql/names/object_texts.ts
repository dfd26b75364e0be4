/**
 * Finds the comments on objects and columns, and the definitions of views, for functions such as
 * obj_description. An object that the caller may not see has neither.
 */
import { mayRun, ownsNamespace } from "../../auth/mod.ts";
import { shownColumnsOf } from "../../catalog/mod.ts";
import { idOfOid } from "../bind/query/table_oid.ts";
import type { TextQuestion } from "../functions/base/function.ts";
import { namespaceWithOid, type ObjectPlace, objectWithOid } from "./object_names.ts";

/** Returns the text that a question asks for; undefined if there is none. */
export function objectText(question: TextQuestion, place: ObjectPlace): string | undefined {
  switch (question.about) {
    case "object":
      return commentOn(question.oid, question.list, place);
    case "column":
      return commentOnColumn(question.oid, question.position, place);
    case "view":
      return queryOfView(question.oid, place);
  }
}

/** Returns the comment on the object with an OID in a list of PostgreSQL's catalog. */
function commentOn(oid: string, list: string | undefined, place: ObjectPlace): string | undefined {
  const { catalog } = place;
  const id = idOfOid(oid);
  const isListed = (name: string): boolean => list === undefined || list === name;
  if (isListed("pg_class") && objectWithOid("regclass", oid, place) !== undefined) {
    const sequence = catalog.sequences().find(({ sequenceId }) => sequenceId === id);
    return (catalog.tableById(id) ?? catalog.viewById(id) ?? sequence)?.comment;
  }
  if (isListed("pg_proc") && objectWithOid("regprocedure", oid, place) !== undefined) {
    return catalog.viewById(id)?.comment;
  }
  if (isListed("pg_type") && objectWithOid("regtype", oid, place) !== undefined) {
    return catalog.types().find(({ typeId }) => typeId === id)?.comment;
  }
  if (isListed("pg_namespace") && objectWithOid("regnamespace", oid, place) !== undefined) {
    return namespaceWithOid(oid, place)?.comment;
  }
  return undefined;
}

function commentOnColumn(oid: string, position: number, place: ObjectPlace): string | undefined {
  if (objectWithOid("regclass", oid, place) === undefined) return undefined;
  const table = place.catalog.tableById(idOfOid(oid));
  return table && shownColumnsOf(table)[position - 1]?.comment;
}

/** Returns the query of a view, which only users who may define views see. */
function queryOfView(oid: string, place: ObjectPlace): string | undefined {
  const { catalog, principal } = place;
  const relation = objectWithOid("regclass", oid, place);
  if (relation === undefined) return undefined;
  const id = idOfOid(oid);
  const queryId = catalog.tableById(id)?.materialized?.queryId;
  const view = catalog.viewById(queryId ?? id);
  if (view === undefined || view.partition !== undefined) return undefined;
  const holder = catalog.namespace(view.namespace);
  const isShown = mayRun(principal, "inspect") || ownsNamespace(principal, holder);
  return isShown ? view.sql : undefined;
}
