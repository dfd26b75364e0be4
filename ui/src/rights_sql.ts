/**
 * Provides the statements with which the page shows and changes rights. All user input is quoted
 * here, except for the conditions of policies, which are SQL themselves.
 */
/**
 * The queries that the page follows. The rows of each query are in the order in which they are
 * displayed.
 */
export const RIGHTS_QUERIES = {
  policies: `SELECT table_id, policy_name, upper(command) AS command, roles, using_expression, check_expression,
      owner, is_in_force
    FROM system.policies ORDER BY table_id, policy_name`,
  tables: `SELECT namespace_id, table_name
    FROM system.tables WHERE upper(access_level) = 'RESTRICTED' ORDER BY namespace_id, table_name`,
  users: `SELECT user_id, role, auth_type, locked_until::TEXT AS locked_until
    FROM system.users WHERE deleted_at IS NULL ORDER BY user_id LIMIT 200`,
  links: `SELECT u.user_id, l.value ->> 'provider' AS provider, l.value ->> 'subject' AS subject
    FROM system.users u CROSS JOIN LATERAL jsonb_array_elements(
      CASE WHEN jsonb_typeof(u.auth_data::JSONB) = 'array' THEN u.auth_data::JSONB
        ELSE jsonb_build_array(u.auth_data::JSONB) END) AS l (value)
    WHERE u.deleted_at IS NULL AND u.auth_data IS NOT NULL
    ORDER BY user_id, provider, subject LIMIT 200`,
  tokens: `SELECT name, user_id, scopes, expires_at::TEXT AS expires_at,
      last_used_at::TEXT AS last_used_at
    FROM system.tokens ORDER BY name`,
  invitations: `SELECT name, uses, uses_max, expires_at::TEXT AS expires_at
    FROM system.invitations ORDER BY name`,
  signUp: `SELECT name, value
    FROM system.settings
    WHERE name IN ('auth.signup', 'auth.guests', 'auth.own_password', 'auth.own_deletion',
      'auth.password_reset', 'auth.email_login')
    ORDER BY name`,
} as const;

export const COMMANDS = ["ALL", "SELECT", "INSERT", "UPDATE", "DELETE"] as const;
export const POLICY_ROLES = ["user", "service"] as const;
export const ROLES = ["user", "service", "dba", "system"] as const;
export const SCOPES = ["READ", "WRITE", "DEFINE", "ACT"] as const;

export interface PolicyDraft {
  readonly table: string;
  readonly name: string;
  readonly command: string;
  /** The role to which the policy applies; empty if the policy applies to both roles. */
  readonly roles: readonly string[];
  readonly using: string;
  readonly check: string;
}

export interface TokenDraft {
  readonly name: string;
  readonly user: string;
  /** The time until expiry, as an interval such as "90 days"; empty for never. */
  readonly expires: string;
  readonly scopes: readonly string[];
  /** The names of namespaces, separated by commas. */
  readonly namespaces: string;
}

/** A login at an identity provider that gives access to an account. */
export interface LinkDraft {
  readonly user: string;
  readonly provider: string;
  /** The provider's id for the person; empty for an account that is found by its own id. */
  readonly subject: string;
}

export interface InvitationDraft {
  readonly name: string;
  readonly uses: string;
  readonly expires: string;
}

/** Returns the name of a table, as shown in the list of tables, in SQL notation. */
export function tableSql(namespace: string, table: string): string {
  return `${nameSql(namespace)}.${nameSql(table)}`;
}

/** Returns a quoted name. Names are always quoted, because a name may be a keyword. */
function nameSql(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function createPolicySql({
  check,
  command,
  name,
  roles,
  table,
  using,
}: PolicyDraft): string {
  const mayUse = command !== "INSERT" && using.trim() !== "";
  const mayCheck = command !== "SELECT" && command !== "DELETE" && check.trim() !== "";
  return [
    `CREATE POLICY ${nameSql(name)} ON ${table} FOR ${command}`,
    roles.length === 0 ? "" : ` TO ${roles.join(", ")}`,
    mayUse ? `\n  USING (${using.trim()})` : "",
    mayCheck ? `\n  WITH CHECK (${check.trim()})` : "",
  ].join("");
}

/** A policy, with the parts that ALTER POLICY can change. */
export interface PolicyChange {
  readonly name: string;
  readonly table: string;
  readonly command: string;
  readonly roles: readonly string[];
  readonly using: string;
  readonly check: string;
}

/**
 * Returns an ALTER POLICY statement. A condition left empty stays as it is, because ALTER POLICY
 * cannot remove a condition.
 */
export function alterPolicySql({ check, name, roles, table, using }: PolicyChange): string {
  return [
    `ALTER POLICY ${nameSql(name)} ON ${table}`,
    ` TO ${roles.length === 0 ? "public" : roles.join(", ")}`,
    using.trim() === "" ? "" : `\n  USING (${using.trim()})`,
    check.trim() === "" ? "" : `\n  WITH CHECK (${check.trim()})`,
  ].join("");
}

/**
 * Returns the table of an entry in the list of policies: its name and namespace, both without
 * quotes.
 */
export function tableOfPolicy(tableId: string): string {
  const [namespace = "", table = ""] = tableId.split(/\.(.*)/s);
  return tableSql(namespace, table);
}

export function dropPolicySql(name: string, table: string): string {
  return `DROP POLICY ${nameSql(name)} ON ${table}`;
}

export function dropSql(kind: "INVITATION" | "TOKEN", name: string): string {
  return `DROP ${kind} ${nameSql(name)}`;
}

export function createTokenSql({ expires, name, namespaces, scopes, user }: TokenDraft): string {
  const spaces = namespaces
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
  const listed = [...scopes, ...spaces.map((each) => `NAMESPACE ${nameSql(each)}`)];
  const limits = listed.length === 0 ? "" : ` SCOPES (${listed.join(", ")})`;
  return `CREATE TOKEN ${nameSql(name)} FOR USER ${literal(user)}${expirySql(expires)}${limits}`;
}

export function createInvitationSql({ expires, name, uses }: InvitationDraft): string {
  const count = uses.trim() === "" ? "" : ` USES ${Number(uses)}`;
  return `CREATE INVITATION ${nameSql(name)}${count}${expirySql(expires)}`;
}

export function linkSql(action: "ADD" | "DROP", { provider, subject, user }: LinkDraft): string {
  const link = { provider: provider.trim(), ...(subject === "" ? {} : { subject }) };
  return `ALTER USER ${literal(user)} ${action} OAUTH ${literal(JSON.stringify(link))}`;
}

export function setRoleSql(user: string, role: string): string {
  return `ALTER USER ${literal(user)} SET ROLE ${role}`;
}

function expirySql(expires: string): string {
  return expires.trim() === "" ? " EXPIRES NEVER" : ` EXPIRES IN ${literal(expires.trim())}`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
