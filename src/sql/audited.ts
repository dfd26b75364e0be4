/**
 * Which statements leave an event in the audit log, and what it says of them: their kind and what
 * they name. Of their text only a form without literals is told, so no password and no row is.
 */
import type { AuditEvent, Principal } from "../auth/mod.ts";
import type { DatabaseError } from "../base/errors.ts";
import type { SqlRequest } from "./engine.ts";
import type { QName, Statement } from "./parse/ast.ts";
import { strangersText } from "./query_text.ts";

interface Subject {
  readonly target: string;
  /** The user whom the statement is about. */
  readonly subject?: string;
}

/** Why a statement that failed counts as denied. */
const DENIALS: ReadonlySet<string> = new Set(["PERMISSION_DENIED", "MANAGED_BY_CONFIG"]);

/** The event of a statement that has ended; undefined for those that leave none. */
export function auditEventOf(
  node: Statement,
  {
    error,
    namespace,
    principal,
    request,
  }: {
    principal: Principal;
    request: SqlRequest;
    namespace: string;
    error?: DatabaseError;
  },
): AuditEvent | undefined {
  const about = subjectOf(node, { namespace, principal });
  if (about === undefined) return undefined;
  const { origin } = request;
  const denied = error !== undefined && DENIALS.has(error.condition);
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

function subjectOf(
  node: Statement,
  { namespace, principal }: { namespace: string; principal: Principal },
): Subject | undefined {
  const pathOf = ({ name, schema }: QName): string => `${schema ?? namespace}.${name}`;
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
    case "create namespace":
    case "alter namespace":
    case "drop namespace":
    case "create storage":
    case "alter storage":
    case "drop storage":
      return { target: node.name.name };
    case "create table":
    case "create view":
    case "create topic":
    case "alter topic":
    case "drop topic":
    case "clear topic":
      return { target: pathOf(node.name) };
    case "create policy":
    case "alter policy":
    case "drop policy":
      return { target: `${node.name.name} on ${pathOf(node.table)}` };
    case "alter table":
      return { target: pathOf(node.table) };
    case "drop table":
    case "drop view":
      return { target: node.names.map(pathOf).join(", ") };
    case "kill":
      return { target: `${node.target} ${node.id}` };
    case "backup":
      return { target: node.target };
    case "restore":
      return { target: node.source };
    default:
      return undefined;
  }
}
