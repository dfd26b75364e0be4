/**
 * The page about rights: the rights of users, and the ways in which people can join. Everything on
 * the page is SQL that a script could run as well, and all lists are live queries.
 */
import type { ReactNode } from "react";
import type { CellObject } from "../../src/client/mod.ts";
import {
  InvitationForm,
  LinkForm,
  PolicyChangeForm,
  PolicyForm,
  TokenForm,
} from "./rights_forms.tsx";
import { DropButton, Fault, RightsList, useStatement } from "./rights_list.tsx";
import {
  dropPolicySql,
  dropSql,
  type LinkDraft,
  linkSql,
  RIGHTS_QUERIES,
  ROLES,
  setRoleSql,
  tableOfPolicy,
} from "./rights_sql.ts";
import { strings } from "./strings.ts";
import { textOf } from "./use_rows.ts";

const texts = strings.rights;

function column(head: string, name: string): { head: string; cell: (row: CellObject) => string } {
  return { head, cell: (row) => textOf(row, name) };
}

export function Rights({ userId }: { readonly userId: string }): ReactNode {
  return (
    <div className="rights">
      <h2>{texts.title}</h2>
      <Policies />
      <Users userId={userId} />
      <Links />
      <Tokens />
      <SignUp />
      <Invitations />
    </div>
  );
}

function Policies(): ReactNode {
  const { policies } = texts;
  return (
    <RightsList
      title={policies.title}
      help={policies.help}
      none={policies.none}
      query={RIGHTS_QUERIES.policies}
      keyOf={(row) => `${textOf(row, "table_id")} ${textOf(row, "policy_name")}`}
      columns={[
        column(policies.table, "table_id"),
        column(texts.name, "policy_name"),
        column(policies.command, "command"),
        column(policies.roles, "roles"),
        { ...column(policies.using, "using_expression"), isCode: true },
        { ...column(policies.check, "check_expression"), isCode: true },
        {
          head: policies.state,
          cell: (row) =>
            row["is_in_force"] === true
              ? policies.inForce
              : policies.notInForce(textOf(row, "owner")),
        },
        {
          head: texts.change,
          cell: (row) => {
            const name = textOf(row, "policy_name");
            return (
              <DropButton
                name={name}
                sql={dropPolicySql(name, tableOfPolicy(textOf(row, "table_id")))}
              />
            );
          },
        },
      ]}
    >
      <PolicyForm />
      <PolicyChangeForm />
    </RightsList>
  );
}

function Users({ userId }: { readonly userId: string }): ReactNode {
  const { users } = texts;
  return (
    <RightsList
      title={users.title}
      help={users.help}
      none=""
      query={RIGHTS_QUERIES.users}
      keyOf={(row) => textOf(row, "user_id")}
      columns={[
        column(texts.name, "user_id"),
        { head: users.role, cell: (row) => <RoleChoice row={row} userId={userId} /> },
        column(users.kind, "auth_type"),
        column(users.lockedUntil, "locked_until"),
      ]}
    />
  );
}

function RoleChoice({
  row,
  userId,
}: {
  readonly row: CellObject;
  /** The current user, whom the page keeps from removing their own rights by mistake. */
  readonly userId: string;
}): ReactNode {
  const { fault, isBusy, run } = useStatement();
  const name = textOf(row, "user_id");
  return (
    <>
      <select
        aria-label={texts.users.roleOf(name)}
        value={textOf(row, "role")}
        disabled={isBusy || name === userId}
        onChange={({ currentTarget }) => void run(setRoleSql(name, currentTarget.value))}
      >
        {ROLES.map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      <Fault text={fault} />
    </>
  );
}

function Links(): ReactNode {
  const { links } = texts;
  return (
    <RightsList
      title={links.title}
      help={links.help}
      none={links.none}
      query={RIGHTS_QUERIES.links}
      keyOf={(row) => JSON.stringify(linkOf(row))}
      columns={[
        column(texts.name, "user_id"),
        column(links.provider, "provider"),
        column(links.subject, "subject"),
        {
          head: texts.change,
          cell: (row) => {
            const link = linkOf(row);
            return <DropButton name={links.nameOf(link)} sql={linkSql("DROP", link)} />;
          },
        },
      ]}
    >
      <LinkForm />
    </RightsList>
  );
}

function linkOf(row: CellObject): LinkDraft {
  const [user, provider, subject] = [
    textOf(row, "user_id"),
    textOf(row, "provider"),
    textOf(row, "subject"),
  ];
  return { user, provider, subject };
}

function Tokens(): ReactNode {
  const { tokens } = texts;
  return (
    <RightsList
      title={tokens.title}
      help={tokens.help}
      none={tokens.none}
      query={RIGHTS_QUERIES.tokens}
      keyOf={(row) => textOf(row, "name")}
      columns={[
        column(texts.name, "name"),
        column(tokens.user, "user_id"),
        { head: tokens.scopes, cell: (row) => textOf(row, "scopes") || tokens.all },
        { head: texts.expires, cell: (row) => textOf(row, "expires_at") || texts.never },
        { head: tokens.lastUse, cell: (row) => textOf(row, "last_used_at") || texts.never },
        {
          head: texts.change,
          cell: (row) => {
            const name = textOf(row, "name");
            return <DropButton name={name} sql={dropSql("TOKEN", name)} />;
          },
        },
      ]}
    >
      <TokenForm />
    </RightsList>
  );
}

function SignUp(): ReactNode {
  const { signUp } = texts;
  return (
    <RightsList
      title={signUp.title}
      help={signUp.help}
      none=""
      query={RIGHTS_QUERIES.signUp}
      keyOf={(row) => textOf(row, "name")}
      columns={[
        column(signUp.key, "name"),
        column(signUp.value, "value"),
        { head: signUp.meaning, cell: (row) => signUp.meanings[textOf(row, "name")] ?? "" },
      ]}
    />
  );
}

function Invitations(): ReactNode {
  const { invitations } = texts;
  return (
    <RightsList
      title={invitations.title}
      help={invitations.help}
      none={invitations.none}
      query={RIGHTS_QUERIES.invitations}
      keyOf={(row) => textOf(row, "name")}
      columns={[
        column(texts.name, "name"),
        {
          head: invitations.used,
          cell: (row) =>
            invitations.usedOf(textOf(row, "uses"), textOf(row, "uses_max") || invitations.any),
        },
        { head: texts.expires, cell: (row) => textOf(row, "expires_at") || texts.never },
        {
          head: texts.change,
          cell: (row) => {
            const name = textOf(row, "name");
            return <DropButton name={name} sql={dropSql("INVITATION", name)} />;
          },
        },
      ]}
    >
      <InvitationForm />
    </RightsList>
  );
}
