/**
 * Defines the functions that ask for privileges, such as has_table_privilege, and those that
 * describe an object, such as obj_description. The answers follow from the roles, the owners of
 * namespaces, the access levels and the policies of Tidemark.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  excerpt,
  INT,
  type ObjectNameKind,
  OID,
  oidOfObjectName,
  REGCLASS,
  TEXT,
  textFromObjectName,
  type Value,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, Overload, PrivilegeObject, ScalarFunction } from "./base/function.ts";
import { objectWithName } from "./objects.ts";

const STABLE = { volatility: "stable" } as const;

/** The objects of a function that asks for privileges, and the privileges that they can have. */
interface PrivilegeFunction {
  readonly object: PrivilegeObject;
  readonly kind: ObjectNameKind;
  readonly privileges: readonly string[];
}

const ON_COLUMNS = ["select", "insert", "update", "references"];

const ASKED: readonly PrivilegeFunction[] = [
  {
    object: "table",
    kind: "regclass",
    privileges: [...ON_COLUMNS, "delete", "truncate", "trigger"],
  },
  { object: "any column", kind: "regclass", privileges: ON_COLUMNS },
  { object: "sequence", kind: "regclass", privileges: ["usage", "select", "update"] },
  { object: "schema", kind: "regnamespace", privileges: ["create", "usage"] },
  { object: "function", kind: "regprocedure", privileges: ["execute"] },
  { object: "type", kind: "regtype", privileges: ["usage"] },
];

export const PRIVILEGE_FUNCTIONS: readonly ScalarFunction[] = [
  ...ASKED.flatMap((asked) =>
    functionsNamed(
      [`has_${asked.object.replace(" ", "_")}_privilege`],
      ...objectTypes(asked.kind).flatMap((type) => [
        overload(
          [type, TEXT],
          BOOLEAN,
          ([object, words], call) => {
            return onObject(asked, { object, type, words }, call);
          },
          STABLE,
        ),
        overload(
          [TEXT, type, TEXT],
          BOOLEAN,
          ([user, object, words], call) => {
            return onObject(asked, { user: user as string, object, type, words }, call);
          },
          STABLE,
        ),
      ]),
    ),
  ),
  ...functionsNamed(["has_column_privilege"], ...columnOverloads()),
  ...functionsNamed(
    ["pg_has_role"],
    overload(
      [TEXT, TEXT],
      BOOLEAN,
      ([role, words], call) => {
        return hasRole(undefined, role as string, { words, call });
      },
      STABLE,
    ),
    overload(
      [TEXT, TEXT, TEXT],
      BOOLEAN,
      ([user, role, words], call) => {
        return hasRole(user as string, role as string, { words, call });
      },
      STABLE,
    ),
  ),
  ...functionsNamed(
    ["obj_description"],
    overload([OID], TEXT, ([oid], call) => commentOf(oid, undefined, call), STABLE),
    overload([OID, TEXT], TEXT, ([oid, list], call) => commentOf(oid, list, call), STABLE),
  ),
  ...functionsNamed(
    ["col_description"],
    overload(
      [OID, INT],
      TEXT,
      ([oid, position], { objects }) => {
        return objects.text({ about: "column", oid: oid as string, position: position as number });
      },
      STABLE,
    ),
  ),
  ...functionsNamed(
    ["pg_get_viewdef"],
    ...[TEXT, OID, REGCLASS].flatMap((type) => [
      overload([type], TEXT, ([view], call) => viewText(view, type, call), STABLE),
      overload([type, BOOLEAN], TEXT, ([view], call) => viewText(view, type, call), STABLE),
    ]),
  ),
];

function objectTypes(kind: ObjectNameKind): readonly DataType[] {
  return [TEXT, OID, { kind }];
}

function columnOverloads(): Overload[] {
  const asked: PrivilegeFunction = { object: "column", kind: "regclass", privileges: ON_COLUMNS };
  return objectTypes("regclass").flatMap((type) =>
    [TEXT, INT].flatMap((columnType) => [
      overload(
        [type, columnType, TEXT],
        BOOLEAN,
        ([object, column, words], call) => {
          return onObject(asked, { object, type, words, column }, call);
        },
        STABLE,
      ),
      overload(
        [TEXT, type, columnType, TEXT],
        BOOLEAN,
        ([user, object, column, words], call) => {
          return onObject(asked, { user: user as string, object, type, words, column }, call);
        },
        STABLE,
      ),
    ]),
  );
}

interface PrivilegeArguments {
  readonly user?: string;
  /** A name, or an OID or a value of an object type, according to `type`. */
  readonly object: Value | undefined;
  readonly type: DataType;
  /** The privileges, separated by commas. */
  readonly words: Value | undefined;
  /** The name or the position of a column. */
  readonly column?: Value | undefined;
}

function onObject(
  { kind, object: what, privileges }: PrivilegeFunction,
  { column, object, type, user, words }: PrivilegeArguments,
  { objects }: CallDeps,
): Value {
  const asked = privilegesIn(words as string, privileges);
  const found =
    type.kind === "text"
      ? objectWithName(kind, object as string, objects)
      : objects.withOid(kind, oidOf(object as string, type));
  // The text of an OID that belongs to no object is the number itself.
  if (type.kind !== "text" && /^(?:\d+|-)$/.test(textFromObjectName(found))) return null;
  const question = {
    object: what,
    oid: oidOfObjectName(found),
    ...(user !== undefined && { user }),
    ...(column !== undefined && { column: column as string | number }),
  };
  const answers = new Set(asked.map((privilege) => objects.privilege({ ...question, privilege })));
  return answers.has(null) ? null : answers.has(true);
}

function oidOf(value: string, type: DataType): string {
  return type.kind === "oid" ? value : oidOfObjectName(value);
}

/**
 * Reads a list such as `SELECT, UPDATE WITH GRANT OPTION`. Nobody can pass rights on, so a
 * privilege with the grant option is never granted.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
function privilegesIn(text: string, known: readonly string[]): readonly string[] {
  return text.split(",").map((each) => {
    const word = each.trim().toLowerCase();
    const privilege = word.replace(/ with grant option$/, "");
    if (!known.includes(privilege)) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot ask for the privilege ${excerpt(each.trim())}: it must be one of ` +
          known.map((name) => name.toUpperCase()).join(", "),
        { sqlstate: "22023" },
      );
    }
    return word;
  });
}

const MEMBERSHIPS = ["usage", "member"];

function hasRole(
  user: string | undefined,
  role: string,
  { call: { objects }, words }: { readonly words: Value | undefined; readonly call: CallDeps },
): Value {
  const question = { object: "role", role, ...(user !== undefined && { user }) } as const;
  return privilegesIn(words as string, MEMBERSHIPS).some(
    (privilege) => objects.privilege({ ...question, privilege }) === true,
  );
}

function commentOf(oid: Value | undefined, list: Value | undefined, { objects }: CallDeps): Value {
  return objects.text({
    about: "object",
    oid: oid as string,
    ...(list !== undefined && { list: list as string }),
  });
}

function viewText(view: Value | undefined, type: DataType, { objects }: CallDeps): Value {
  const oid =
    type.kind === "text"
      ? oidOfObjectName(objectWithName("regclass", view as string, objects))
      : oidOf(view as string, type);
  return objects.text({ about: "view", oid });
}
