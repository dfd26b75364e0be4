/**
 * Decides which statements are audited, and builds their events from the kind of statement and the
 * names in it. An event contains a statement's text only without its literals, so it reveals no
 * passwords and no data from rows.
 */
import type { AuditEvent, Principal } from "../../auth/mod.ts";
import { type DatabaseError, isDenial } from "../../base/errors.ts";
import { strangersText } from "../activity/query_text.ts";
import type { AuditLog } from "../own_tables/audit_log.ts";
import type { QName, Statement } from "../parse/ast/ast.ts";
import { actedForIn } from "../parse/ast/query_nodes.ts";
import { isTriggerNode } from "../parse/print/print_triggers.ts";
import type { SqlRequest } from "../ports/engine.ts";

interface Subject {
  readonly target: string;
  /** The user whom the audited statement concerns. */
  readonly subject?: string;
}

export interface EndedStatement {
  readonly principal: Principal;
  readonly request: SqlRequest;
  readonly namespace: string;
  /** The error with which the audited statement failed; undefined on success. */
  readonly error: DatabaseError | undefined;
}

/**
 * Records the outcome of a statement in the audit log. Statements that are only checked are not
 * recorded.
 */
export async function noteStatement(
  audit: AuditLog,
  node: Statement,
  ended: EndedStatement,
): Promise<void> {
  const event = ended.request.check === true ? undefined : auditEventOf(node, ended);
  if (event === undefined) return;
  const noted = audit.note(event);
  // The statement does not wait for its audit event to be written. An application that acts on
  // behalf of other users runs EXECUTE AS in each request, and waiting would double the duration
  // of that request.
  if (node.type !== "execute as") await noted;
}

/** Returns the audit event for a finished statement; undefined if the statement is not audited. */
function auditEventOf(
  node: Statement,
  { error, namespace, principal, request }: EndedStatement,
): AuditEvent | undefined {
  const about = subjectOf(node, { namespace, principal });
  if (about === undefined) return undefined;
  const { origin } = request;
  const denied = error !== undefined && (isDenial(error) || error.code === "MANAGED_BY_CONFIG");
  return {
    ...about,
    action: actedForIn(node) === undefined ? node.type : "execute as",
    actor: principal.actorId,
    outcome: error === undefined ? "ok" : denied ? "denied" : "failed",
    address: origin?.address,
    details: {
      sql: strangersText(node),
      ...(error === undefined ? {} : { condition: error.code }),
      ...(origin === undefined ? {} : { request_id: origin.requestId }),
    },
  };
}

/**
 * Returns the user whom an audited statement concerns or, if it concerns no user, the object that
 * it concerns.
 */
function subjectOf(
  node: Statement,
  { namespace, principal }: { namespace: string; principal: Principal },
): Subject | undefined {
  switch (node.type) {
    case "create user":
    case "drop user":
      return { target: node.name.name, subject: node.name.name };
    case "alter user": {
      const userId = node.name.currentUser === true ? principal.userId : node.name.name;
      return { target: userId, subject: userId };
    }
    case "create token": {
      const userId = node.user.currentUser === true ? principal.userId : node.user.name;
      return { target: node.name.name, subject: userId };
    }
    case "do":
      return subjectOf(node.statement, { namespace, principal });
    case "alter owner":
      return { target: `${node.name.schema ?? namespace}.${node.name.name}` };
    case "comment on": {
      const { kind, name } = node;
      const isNamespace = kind === "namespace";
      return { target: isNamespace ? name.name : `${name.schema ?? namespace}.${name.name}` };
    }
    case "export user data":
      return { target: principal.userId, subject: principal.userId };
    case "execute as":
    case "explain":
      if (node.user === undefined) return undefined;
      return { target: node.user.name, subject: node.user.name };
    default: {
      const target = targetOf(node, namespace);
      return target === undefined ? undefined : { target };
    }
  }
}

function targetOf(node: Statement, namespace: string): string | undefined {
  const pathOf = ({ name, schema }: QName): string => `${schema ?? namespace}.${name}`;
  switch (node.type) {
    case "create table":
    case "create table as":
    case "refresh materialized view":
    case "create view":
    case "create aggregate":
    case "create function":
    case "alter function":
    case "alter index":
    case "alter view":
    case "create sequence":
    case "alter sequence":
    case "create topic":
    case "alter topic":
    case "drop topic":
    case "clear topic":
      return pathOf(node.name);
    case "truncate":
      return node.tables.map(pathOf).join(", ");
    default:
      return changedNames(node)?.map(pathOf).join(", ") ?? unqualifiedTarget(node);
  }
}

/**
 * Returns the names of the types or tables that a definition changes, or of the objects that DROP
 * removes.
 */
function changedNames(node: Statement): readonly QName[] | undefined {
  if (isTriggerNode(node)) return [node.table];
  switch (node.type) {
    case "create collation":
    case "create domain":
    case "alter domain":
    case "create type":
    case "alter type":
      return [node.name];
    case "attach partition":
    case "detach partition":
      return [node.partition];
    case "alter table":
    case "create index":
    case "create policy":
    case "alter policy":
    case "drop policy":
      return [node.table];
    case "drop table":
    case "drop index":
    case "drop view":
    case "drop sequence":
    case "drop type":
    case "drop function":
      return node.names;
    default:
      return undefined;
  }
}

function unqualifiedTarget(node: Statement): string | undefined {
  switch (node.type) {
    case "kill":
      return `${node.target} ${node.id}`;
    case "backup":
      return node.target;
    case "restore":
      return node.source;
    case "drop namespace":
      return node.names.map(({ name }) => name).join(", ");
    case "create namespace":
    case "alter namespace":
    case "create storage":
    case "alter storage":
    case "drop storage":
    case "create webhook":
    case "alter webhook":
    case "drop webhook":
    case "drop token":
    case "create invitation":
    case "drop invitation":
      return node.name.name;
    default:
      return undefined;
  }
}
