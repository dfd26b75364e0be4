/**
 * Verifies, cell by cell, the matrix of permissions of each role. U, S, D and Y stand for the
 * roles user, service, dba and system; O is a user with the role user who owns the namespace.
 */
import { expect, test } from "bun:test";
import {
  mayRead,
  mayRun,
  mayWrite,
  type Principal,
  requireAlter,
  requireCreateTable,
  requireDrop,
  requireRun,
  requireWrite,
  type StatementClass,
} from "../../src/auth/mod.ts";
import {
  isAtLeast,
  mayAlter,
  mayExecuteAs,
  mayManageUser,
  maySetPassword,
} from "../../src/auth/permissions.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import type {
  AccessLevel,
  NamespaceEntry,
  Role,
  TableEntry,
  TableKind,
} from "../../src/catalog/mod.ts";
import { tableEntry } from "../catalog/catalog_fixture.ts";

const NAMESPACE: NamespaceEntry = { name: "app", owner: "o", options: {}, createdAtMs: 1 };
const FREE: NamespaceEntry = { ...NAMESPACE, name: "free", owner: undefined };

function principal(userId: string, role: Role, change: Partial<Principal> = {}): Principal {
  return {
    userId,
    role,
    owner: 1,
    actorId: userId,
    actorRole: role,
    isImpersonated: false,
    sessionId: "s",
    ...change,
  };
}

const CALLERS: Readonly<Record<string, Principal>> = {
  U: principal("u", "user"),
  S: principal("s", "service"),
  D: principal("d", "dba"),
  Y: principal("y", "system"),
  O: principal("o", "user"),
};

/** A principal with the role dba that acts on behalf of the namespace's owner with EXECUTE AS. */
const INSIDE = principal("o", "user", { actorId: "d", actorRole: "dba", isImpersonated: true });

function who(isAllowed: (caller: Principal) => boolean): string {
  return Object.entries(CALLERS)
    .filter(([, caller]) => isAllowed(caller))
    .map(([letter]) => letter)
    .join("");
}

/** Turns a check that throws into a function that returns whether it accepts a caller. */
function isLet(require: (caller: Principal) => void): (caller: Principal) => boolean {
  return (caller) => {
    try {
      require(caller);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "PERMISSION_DENIED" });
      return false;
    }
  };
}

function table(kind: TableKind, accessLevel?: AccessLevel): TableEntry {
  return tableEntry({
    namespace: "app",
    kind,
    options: accessLevel === undefined ? {} : { accessLevel },
  });
}

test("isAtLeast compares the ranks of roles", () => {
  const roles: readonly Role[] = ["user", "service", "dba", "system"];
  for (const [index, role] of roles.entries()) {
    for (const [other, minimum] of roles.entries()) {
      expect(isAtLeast(role, minimum), `${role} ${minimum}`).toBe(index >= other);
    }
  }
});

test("mayRun follows the matrix of roles and statements", () => {
  const matrix: Readonly<Record<StatementClass, string>> = {
    rows: "USDYO",
    export: "USDYO",
    show: "USDYO",
    defineTable: "SDYO",
    removeTable: "DYO",
    namespace: "DY",
    maintain: "SDY",
    inspect: "DY",
    operate: "DY",
    newUsers: "SDY",
    users: "DY",
    administer: "DY",
  };
  for (const [statement, expected] of Object.entries(matrix)) {
    const kind = statement as StatementClass;
    expect(
      who((caller) => mayRun(caller, kind, NAMESPACE)),
      statement,
    ).toBe(expected);
    const withoutOwner = expected.startsWith("U") ? expected : expected.replace("O", "");
    expect(
      who((caller) => mayRun(caller, kind, FREE)),
      statement,
    ).toBe(withoutOwner);
    expect(
      who((caller) => mayRun(caller, kind)),
      statement,
    ).toBe(withoutOwner);
  }
});

test("mayRead, mayWrite, mayAlter, requireDrop and requireCreateTable follow the matrix for tables", () => {
  const matrix: readonly [TableEntry, read: string, write: string, alter: string, drop: string][] =
    [
      [table("user"), "USDYO", "USDYO", "SDYO", "DYO"],
      [table("stream"), "USDYO", "USDYO", "SDYO", "DYO"],
      [table("shared", "PUBLIC"), "USDYO", "SDYO", "SDYO", "DYO"],
      [table("shared"), "SDYO", "SDYO", "SDYO", "DYO"],
      [table("shared", "PRIVATE"), "SDYO", "SDYO", "SDYO", "DYO"],
      [table("shared", "RESTRICTED"), "DYO", "DYO", "DYO", "DYO"],
      [table("shared", "DBA"), "DYO", "DYO", "DYO", "DYO"],
    ];
  for (const [entry, read, write, alter, drop] of matrix) {
    const name = `${entry.kind} ${entry.options.accessLevel}`;
    expect(
      who((caller) => mayRead(caller, entry, NAMESPACE)),
      name,
    ).toBe(read);
    expect(
      who((caller) => mayWrite(caller, entry, NAMESPACE)),
      name,
    ).toBe(write);
    expect(
      who((caller) => mayAlter(caller, entry, NAMESPACE)),
      name,
    ).toBe(alter);
    expect(who(isLet((caller) => requireDrop(caller, entry, { namespace: NAMESPACE }))), name).toBe(
      drop,
    );
  }
  const create = (namespace: NamespaceEntry | undefined): string =>
    who(isLet((caller) => requireCreateTable(caller, "app.fresh", { namespace })));
  expect(create(NAMESPACE)).toBe("SDYO");
  expect(create(FREE)).toBe("SDY");
  expect(create(undefined)).toBe("SDY");
  const dropIn = (namespace: NamespaceEntry | undefined): string =>
    who(isLet((caller) => requireDrop(caller, table("user"), { namespace })));
  expect(dropIn(FREE)).toBe("DY");
  expect(dropIn(undefined)).toBe("DY");
});

test("no caller owns a namespace or writes a SHARED table inside EXECUTE AS", () => {
  const levels: readonly AccessLevel[] = ["PUBLIC", "PRIVATE", "RESTRICTED", "DBA"];
  for (const level of levels) {
    const entry = table("shared", level);
    expect(mayRead(INSIDE, entry, NAMESPACE), level).toBe(level === "PUBLIC");
    expect(mayWrite(INSIDE, entry, NAMESPACE), level).toBeFalse();
    const why = level === "RESTRICTED" ? "no policy" : "EXECUTE AS";
    expect(() => requireWrite(INSIDE, entry, { namespace: NAMESPACE })).toThrow(why);
  }
  expect(mayRead(INSIDE, table("user"), NAMESPACE)).toBeTrue();
  expect(mayWrite(INSIDE, table("user"), NAMESPACE)).toBeTrue();
  const at = { namespace: NAMESPACE };
  expect(isLet((caller) => requireDrop(caller, table("user"), at))(INSIDE)).toBeFalse();
  expect(isLet((caller) => requireCreateTable(caller, "app.fresh", at))(INSIDE)).toBeFalse();
});

test("mayExecuteAs follows its matrix, and an id without an account counts as role user", () => {
  const roles: readonly Role[] = ["user", "service", "dba", "system"];
  const matrix: readonly [actor: Role, targets: readonly (Role | undefined)[]][] = [
    ["user", []],
    ["service", ["user", "service", undefined]],
    ["dba", ["user", "service", "dba", undefined]],
    ["system", [...roles, undefined]],
  ];
  for (const [actor, targets] of matrix) {
    for (const role of [...roles, undefined]) {
      const may = mayExecuteAs({ userId: "a", role: actor }, { userId: "b", role });
      expect(may, `${actor} as ${role}`).toBe(targets.includes(role));
      expect(mayExecuteAs({ userId: "a", role: actor }, { userId: "a", role })).toBeTrue();
    }
  }
});

test("mayManageUser lets only role system manage users of role system", () => {
  const target = { userId: "x", role: "user" } as const;

  expect(who((caller) => mayManageUser(caller, target))).toBe("DY");
  expect(who((caller) => mayManageUser(caller, { ...target, newRole: "dba" }))).toBe("DY");
  expect(who((caller) => mayManageUser(caller, { ...target, newRole: "system" }))).toBe("Y");
  expect(who((caller) => mayManageUser(caller, { ...target, role: "system" }))).toBe("Y");
  expect(who((caller) => mayManageUser(caller, { userId: "root", role: "system" }))).toBe("Y");
  expect(mayManageUser({ ...INSIDE, role: "system" }, target)).toBeFalse();
  expect(who((caller) => maySetPassword(caller, { userId: "u", role: "user" }))).toBe("UDY");
  expect(maySetPassword(INSIDE, { userId: "o", role: "user" })).toBeFalse();
});

test("the require functions throw a PERMISSION_DENIED that names the object and its position", () => {
  const { U = INSIDE, Y = INSIDE } = CALLERS;
  const entry = table("shared", "DBA");
  const at = { namespace: NAMESPACE, position: 7 };
  const actions: readonly [(caller: Principal) => void, named: string][] = [
    [(caller) => requireWrite(caller, entry, at), "app.notes"],
    [(caller) => requireAlter(caller, entry, at), "app.notes"],
    [(caller) => requireDrop(caller, entry, at), "app.notes"],
    [(caller) => requireCreateTable(caller, "app.fresh", at), "app.fresh"],
    [
      (caller) => requireRun(caller, "inspect", { action: "explain a query", position: 7 }),
      "explain",
    ],
  ];
  for (const [action, named] of actions) {
    expect(() => action(Y)).not.toThrow();
    try {
      action(U);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(DatabaseError);
      expect(error).toMatchObject({ code: "PERMISSION_DENIED", position: 7 });
      expect(String(error)).toContain(named);
    }
  }
});
