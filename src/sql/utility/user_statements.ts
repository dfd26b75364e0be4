/**
 * Runs CREATE, ALTER and DROP USER by translating them to operations on accounts. It also erases
 * the data of dropped users.
 */
import {
  type AlterUserRequest,
  type CreateUserRequest,
  type NewCredentials,
  type Principal,
  roleFromWord,
} from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Role } from "../../catalog/mod.ts";
import { renewRightsOf } from "../ddl/given_rights.ts";
import type { RedefinitionDeps } from "../ddl/redefined_table.ts";
import { atName } from "../names/table_names.ts";
import type {
  AlterUserStatement,
  CreateUserStatement,
  DropUserStatement,
  Name,
  Statement,
} from "../parse/ast/ast.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { messageResult, rowsResult } from "../result/result.ts";
import { type ErasureDeps, eraseName } from "./erasure.ts";
import { eraseUser, JOB_COLUMNS } from "./job_statements.ts";

type UserStatement = CreateUserStatement | AlterUserStatement | DropUserStatement;

/** The parts of the database that user statements use. */
export interface UserDeps
  extends ErasureDeps,
    Omit<RedefinitionDeps, "live" | "topics">,
    Pick<SqlEnvironment, "auth" | "live"> {}

interface UserStatementCall {
  readonly deps: UserDeps;
  readonly principal: Principal;
}

/** Whether a statement changes only the caller's own password, which is always allowed. */
export function changesOwnPassword(node: Statement, principal: Principal): boolean {
  if (node.type !== "alter user" || node.password === undefined) return false;
  return userIdOf(node.name, principal) === principal.userId;
}

/**
 * Checks a statement about a user, apart from its password.
 * @throws {DatabaseError}
 */
export function checkUserStatement(
  node: UserStatement,
  { principal, deps }: UserStatementCall,
): void {
  const { auth, catalog } = deps;
  const isThere = catalog.accounts.user(node.name.name) !== undefined;
  switch (node.type) {
    case "create user": {
      if (isThere && node.ifNotExists === true) return;
      const user = newUserOf(node);
      return atName(node.name, () => auth.checkCreateUser(principal, user));
    }
    case "alter user": {
      const change = userChangeOf(node, principal);
      return atName(node.name, () => auth.checkAlterUser(principal, change));
    }
    case "drop user":
      if (!isThere && node.ifExists === true) return;
      return atName(node.name, () => auth.checkDropUser(principal, node.name.name));
  }
}

/** Runs a statement that creates, changes or drops a user. @throws {DatabaseError} */
export async function runUserStatement(
  node: UserStatement,
  call: UserStatementCall,
): Promise<StatementResult> {
  const asUser = call.principal.userId;
  checkUserStatement(node, call);
  switch (node.type) {
    case "create user":
      return messageResult(await createUser(node, call), asUser);
    case "alter user":
      return messageResult(await alterUser(node, call), asUser);
    case "drop user":
      return dropUser(node, call);
  }
}

async function createUser(
  node: CreateUserStatement,
  { principal, deps }: UserStatementCall,
): Promise<string> {
  const { auth, catalog } = deps;
  const userId = node.name.name;
  if (node.ifNotExists === true && catalog.accounts.user(userId) !== undefined) {
    return `User ${userId} already exists`;
  }
  await auth.createUser(principal, newUserOf(node));
  // Erases the data of an earlier user with this name. The new account has a different owner
  // number and could not see that data in any case.
  const leftovers = eraseName(deps, { userId, createdBy: principal.userId });
  await Promise.all(leftovers.map(({ ended }) => ended));
  return `User ${userId} created`;
}

async function alterUser(
  node: AlterUserStatement,
  { principal, deps }: UserStatementCall,
): Promise<string> {
  const change = userChangeOf(node, principal);
  await deps.auth.alterUser(principal, change);
  if (change.role !== undefined) renewRightsOf(change.userId, deps);
  return `User ${change.userId} altered`;
}

async function dropUser(
  node: DropUserStatement,
  { principal, deps }: UserStatementCall,
): Promise<StatementResult> {
  const { auth, catalog } = deps;
  const userId = node.name.name;
  const asUser = principal.userId;
  if (node.ifExists === true && catalog.accounts.user(userId) === undefined) {
    return messageResult(`User ${userId} does not exist`, asUser);
  }
  const erasesNow = node.purge === true;
  auth.dropUser(principal, userId, { erasesNow });
  if (!erasesNow) return messageResult(`User ${userId} deleted`, asUser);
  return rowsResult(JOB_COLUMNS, await eraseUser(deps, { userId, createdBy: asUser }), asUser);
}

function userIdOf(name: AlterUserStatement["name"], principal: Principal): string {
  return name.currentUser === true ? principal.userId : name.name;
}

function userChangeOf(node: AlterUserStatement, principal: Principal): AlterUserRequest {
  const role = roleOf(node.role);
  return {
    userId: userIdOf(node.name, principal),
    ...(node.password === undefined ? {} : { password: node.password }),
    ...(role === undefined ? {} : { role }),
    ...(node.email === undefined ? {} : { email: node.email }),
    ...(node.metadata === undefined ? {} : { metadata: node.metadata }),
    ...(node.link === undefined ? {} : { link: node.link }),
  };
}

function roleOf(word: Name | undefined): Role | undefined {
  if (word === undefined) return undefined;
  const role = roleFromWord(word.name);
  if (role !== undefined) return role;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use role "${word.name}": there is no such role`,
    {
      position: word._location.start,
      hint: "the roles are user, service, dba and system",
    },
  );
}

function newUserOf(node: CreateUserStatement): CreateUserRequest {
  const role = roleOf(node.role);
  return {
    userId: node.name.name,
    credentials: credentialsOf(node),
    ...(role === undefined ? {} : { role }),
    ...(node.email === undefined ? {} : { email: node.email }),
    ...(node.metadata === undefined ? {} : { metadata: node.metadata }),
  };
}

function credentialsOf({ oauth, password }: CreateUserStatement): NewCredentials {
  if (password !== undefined) return { kind: "password", password };
  if (oauth !== undefined) return { kind: "oauth", link: oauth };
  return { kind: "internal" };
}
