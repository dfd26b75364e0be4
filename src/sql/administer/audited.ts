/**
 * Which statements leave an event in the audit log, and what it says of them: their kind and what
 * they name. Of their text only a form without literals is told, so no password and no row is.
 */
import type { AuditEvent, Principal } from "../../auth/mod.ts";
import { type DatabaseError, isDenial } from "../../base/errors.ts";
import type { AuditLog } from "../common/audit_log.ts";
import type { SqlRequest } from "../common/engine.ts";
import { strangersText } from "../common/query_text.ts";
import type { QName, Statement } from "../parse/ast/ast.ts";

interface Subject {
  readonly target: string;
  /** The user whom the statement is about. */
  readonly subject?: string;
}

export interface EndedStatement {
  readonly principal: Principal;
  readonly request: SqlRequest;
  readonly namespace: string;
  /** Why it failed; absent: it did not. */
  readonly error: DatabaseError | undefined;
}

/** Notes what a statement did, or why it did not; of a check nothing. */
export async function noteStatement(
  audit: AuditLog,
  node: Statement,
  ended: EndedStatement,
): Promise<void> {
  const event = ended.request.check === true ? undefined : auditEventOf(node, ended);
  if (event === undefined) return;
  const noted = audit.note(event);
  // Who acts for others does so with each request, and would wait twice as long.
  if (node.type !== "execute as") await noted;
}

/** The event of a statement that has ended; undefined for those that leave none. */
function auditEventOf(
  node: Statement,
  { error, namespace, principal, request }: EndedStatement,
): AuditEvent | undefined {
  const about = subjectOf(node, { namespace, principal });
  if (about === undefined) return undefined;
  const { origin } = request;
  const denied =
    error !== undefined && (isDenial(error) || error.condition === "MANAGED_BY_CONFIG");
  return {
    ...about,
    action: node.type,
    actor: principal.actorId,
    outcome: error === undefined ? "ok" : denied ? "denied" : "failed",
    address: origin?.address,
    details: {
      sql: strangersText(node),
      ...(error === undefined ? {} : { condition: error.condition }),
      ...(origin === undefined ? {} : { request_id: origin.requestId }),
    },
  };
}

/** Of statements about users, whom they are about; of others that count, what. */
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
    case "execute as":
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
    case "create namespace":
    case "alter namespace":
    case "drop namespace":
    case "create storage":
    case "alter storage":
    case "drop storage":
      return node.name.name;
    case "create table":
    case "create view":
      return pathOf(node.name);
    case "alter table":
      return pathOf(node.table);
    case "drop table":
    case "drop view":
      return node.names.map(pathOf).join(", ");
    case "kill":
      return `${node.target} ${node.id}`;
    case "backup":
      return node.target;
    case "restore":
      return node.source;
    default:
      return undefined;
  }
}
