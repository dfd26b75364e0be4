/**
 * The forms that add policies, tokens and invitations. Each form shows the statement that it will
 * run, so that users can learn it and repeat it in a script.
 */
import { type ReactNode, type SubmitEvent, useId, useState } from "react";
import type { CellObject } from "../../src/client/mod.ts";
import { copyText } from "./clipboard.ts";
import { Icon } from "./icon.tsx";
import { Fault, useStatement } from "./rights_list.tsx";
import {
  alterPolicySql,
  COMMANDS,
  createInvitationSql,
  createPolicySql,
  createTokenSql,
  type InvitationDraft,
  type LinkDraft,
  linkSql,
  POLICY_ROLES,
  type PolicyChange,
  type PolicyDraft,
  RIGHTS_QUERIES,
  SCOPES,
  type TokenDraft,
  tableOfPolicy,
  tableSql,
} from "./rights_sql.ts";
import { SoftButton } from "./soft_button.tsx";
import { strings } from "./strings.ts";
import { textOf, useRows } from "./use_rows.ts";

const texts = strings.rights;

const NO_POLICY: PolicyDraft = {
  table: "",
  name: "",
  command: "SELECT",
  roles: [],
  using: "",
  check: "",
};

export function PolicyForm(): ReactNode {
  const tables = (useRows(RIGHTS_QUERIES.tables).rows ?? []).map((row) =>
    tableSql(textOf(row, "namespace_id"), textOf(row, "table_name")),
  );
  const [draft, setDraft] = useState(NO_POLICY);
  const { command } = draft;
  const table = tables.includes(draft.table) ? draft.table : (tables[0] ?? "");
  const change = (part: Partial<PolicyDraft>): void => setDraft({ ...draft, ...part });
  if (tables.length === 0) return <p className="help">{texts.policies.noTable}</p>;
  return (
    <AddForm
      title={texts.policies.add}
      sql={createPolicySql({ ...draft, table })}
      onDone={() => setDraft({ ...NO_POLICY, table })}
    >
      <Choice
        label={texts.policies.table}
        value={table}
        values={tables}
        onChange={(value) => change({ table: value })}
      />
      <Field
        label={texts.name}
        value={draft.name}
        isRequired
        onChange={(name) => change({ name })}
      />
      <Choice
        label={texts.policies.command}
        value={command}
        values={COMMANDS}
        onChange={(value) => change({ command: value })}
      />
      <Checks
        label={texts.policies.roles}
        values={POLICY_ROLES}
        chosen={draft.roles}
        onChange={(roles) => change({ roles })}
      />
      {command !== "INSERT" && (
        <Field
          label={texts.policies.using}
          value={draft.using}
          isCode
          onChange={(using) => change({ using })}
        />
      )}
      {command !== "SELECT" && command !== "DELETE" && (
        <Field
          label={texts.policies.check}
          value={draft.check}
          isCode
          onChange={(check) => change({ check })}
        />
      )}
    </AddForm>
  );
}

/** Changes an existing policy. The form initially shows its current definition. */
export function PolicyChangeForm(): ReactNode {
  const rows = useRows(RIGHTS_QUERIES.policies).rows ?? [];
  const policies = new Map(rows.map((row) => [policyIdOf(row), changeOf(row)]));
  const [draft, setDraft] = useState<{ id: string; changed: Partial<PolicyChange> }>();
  const ids = [...policies.keys()];
  const id = draft !== undefined && policies.has(draft.id) ? draft.id : (ids[0] ?? "");
  const before = policies.get(id);
  if (before === undefined) return null;
  const { changed = {} } = draft?.id === id ? draft : {};
  const policy = { ...before, ...changed };
  const change = (part: Partial<PolicyChange>): void =>
    setDraft({ id, changed: { ...changed, ...part } });
  return (
    <AddForm
      title={texts.policies.alter}
      sql={alterPolicySql(policy)}
      onDone={() => setDraft(undefined)}
    >
      <Choice
        label={texts.policies.policy}
        value={id}
        values={ids}
        onChange={(value) => setDraft({ id: value, changed: {} })}
      />
      <Checks
        label={texts.policies.roles}
        values={POLICY_ROLES}
        chosen={policy.roles}
        onChange={(roles) => change({ roles })}
      />
      {policy.command !== "INSERT" && (
        <Field
          label={texts.policies.using}
          value={policy.using}
          isCode
          onChange={(using) => change({ using })}
        />
      )}
      {policy.command !== "SELECT" && policy.command !== "DELETE" && (
        <Field
          label={texts.policies.check}
          value={policy.check}
          isCode
          onChange={(check) => change({ check })}
        />
      )}
    </AddForm>
  );
}

function policyIdOf(row: CellObject): string {
  return `${textOf(row, "policy_name")} ON ${textOf(row, "table_id")}`;
}

function changeOf(row: CellObject): PolicyChange {
  const roles = textOf(row, "roles");
  return {
    name: textOf(row, "policy_name"),
    table: tableOfPolicy(textOf(row, "table_id")),
    command: textOf(row, "command"),
    roles: POLICY_ROLES.filter((role) => roles.split(/\W+/).includes(role)),
    using: textOf(row, "using_expression"),
    check: textOf(row, "check_expression"),
  };
}

const NO_TOKEN: TokenDraft = {
  name: "",
  user: "",
  expires: "90 days",
  scopes: ["READ"],
  namespaces: "",
};

export function TokenForm(): ReactNode {
  const [draft, setDraft] = useState(NO_TOKEN);
  const change = (part: Partial<TokenDraft>): void => setDraft({ ...draft, ...part });
  return (
    <AddForm
      title={texts.tokens.add}
      sql={createTokenSql(draft)}
      secretColumn="token"
      onDone={() => setDraft(NO_TOKEN)}
    >
      <Field
        label={texts.name}
        value={draft.name}
        isRequired
        onChange={(name) => change({ name })}
      />
      <Field
        label={texts.tokens.user}
        value={draft.user}
        isRequired
        onChange={(user) => change({ user })}
      />
      <Field
        label={texts.expires}
        value={draft.expires}
        help={texts.expiresHelp}
        onChange={(expires) => change({ expires })}
      />
      <Checks
        label={texts.tokens.scopes}
        values={SCOPES}
        chosen={draft.scopes}
        onChange={(scopes) => change({ scopes })}
      />
      <Field
        label={texts.tokens.namespaces}
        value={draft.namespaces}
        help={texts.tokens.namespacesHelp}
        onChange={(namespaces) => change({ namespaces })}
      />
    </AddForm>
  );
}

const NO_INVITATION: InvitationDraft = { name: "", uses: "20", expires: "7 days" };

export function InvitationForm(): ReactNode {
  const [draft, setDraft] = useState(NO_INVITATION);
  const change = (part: Partial<InvitationDraft>): void => setDraft({ ...draft, ...part });
  return (
    <AddForm
      title={texts.invitations.add}
      sql={createInvitationSql(draft)}
      secretColumn="code"
      onDone={() => setDraft(NO_INVITATION)}
    >
      <Field
        label={texts.name}
        value={draft.name}
        isRequired
        onChange={(name) => change({ name })}
      />
      <Field
        label={texts.invitations.uses}
        value={draft.uses}
        type="number"
        onChange={(uses) => change({ uses })}
      />
      <Field
        label={texts.expires}
        value={draft.expires}
        help={texts.expiresHelp}
        onChange={(expires) => change({ expires })}
      />
    </AddForm>
  );
}

const NO_LINK: LinkDraft = { user: "", provider: "", subject: "" };

export function LinkForm(): ReactNode {
  const [draft, setDraft] = useState(NO_LINK);
  const change = (part: Partial<LinkDraft>): void => setDraft({ ...draft, ...part });
  const { links } = texts;
  return (
    <AddForm title={links.add} sql={linkSql("ADD", draft)} onDone={() => setDraft(NO_LINK)}>
      <Field
        label={texts.name}
        value={draft.user}
        isRequired
        onChange={(user) => change({ user })}
      />
      <Field
        label={links.provider}
        value={draft.provider}
        isRequired
        onChange={(provider) => change({ provider })}
      />
      <Field
        label={links.subject}
        value={draft.subject}
        help={links.subjectHelp}
        isRequired
        onChange={(subject) => change({ subject })}
      />
    </AddForm>
  );
}

interface AddFormProps {
  readonly title: string;
  readonly sql: string;
  /** The result column with a secret, which is shown only once. */
  readonly secretColumn?: string;
  readonly onDone: () => void;
  readonly children: ReactNode;
}

function AddForm({ children, onDone, secretColumn, sql, title }: AddFormProps): ReactNode {
  const { fault, isBusy, run } = useStatement();
  const [secret, setSecret] = useState("");
  const submit = async (event: SubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    const row = await run(sql);
    if (row === undefined) return;
    if (secretColumn !== undefined) setSecret(textOf(row, secretColumn));
    onDone();
  };
  return (
    <>
      {secret !== "" && <Secret text={secret} onClose={() => setSecret("")} />}
      <details className="rights-add">
        <summary>{title}</summary>
        <form aria-label={title} onSubmit={(event) => void submit(event)}>
          <div className="rights-fields">{children}</div>
          <pre className="rights-sql" aria-label={texts.statement} role="group" tabIndex={0}>
            {sql}
          </pre>
          <Fault text={fault} />
          <SoftButton type="submit" className="primary" isOff={isBusy}>
            {title}
          </SoftButton>
        </form>
      </details>
    </>
  );
}

function Secret({
  onClose,
  text,
}: {
  readonly text: string;
  readonly onClose: () => void;
}): ReactNode {
  const [note, setNote] = useState("");
  const copy = (): void =>
    void copyText(text).then((isDone) =>
      setNote(isDone ? strings.results.copied : strings.results.notCopied),
    );
  return (
    <div className="rights-secret" role="status">
      <p>{texts.secret}</p>
      <code>{text}</code>
      <p className="rights-actions">
        <button type="button" onClick={copy}>
          <Icon name="copy" />
          {texts.copySecret}
        </button>
        <button type="button" onClick={onClose}>
          {texts.hideSecret}
        </button>
        {note}
      </p>
    </div>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly help?: string;
  readonly type?: "number" | "text";
  readonly isRequired?: boolean;
  readonly isCode?: boolean;
}

function Field({ help, isCode, isRequired, label, onChange, type, value }: FieldProps): ReactNode {
  const id = useId();
  const shared = {
    id,
    value,
    spellCheck: false,
    autoCapitalize: "none",
    autoComplete: "off",
    ...(help === undefined ? {} : { "aria-describedby": `${id}-help` }),
  };
  return (
    <p className={isCode === true ? "field wide" : "field"}>
      <label htmlFor={id}>{label}</label>
      {isCode === true ? (
        <textarea
          {...shared}
          rows={2}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      ) : (
        <input
          {...shared}
          type={type ?? "text"}
          required={isRequired === true}
          {...(type === "number" ? { min: 1 } : {})}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
      {help !== undefined && (
        <span id={`${id}-help`} className="help">
          {help}
        </span>
      )}
    </p>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly values: readonly string[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, onChange, value, values }: ChoiceProps): ReactNode {
  const id = useId();
  return (
    <p className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {values.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </p>
  );
}

interface ChecksProps {
  readonly label: string;
  readonly values: readonly string[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: string[]) => void;
}

function Checks({ chosen, label, onChange, values }: ChecksProps): ReactNode {
  return (
    <fieldset className="field">
      <legend>{label}</legend>
      {values.map((value) => (
        <label key={value}>
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={({ currentTarget: { checked } }) =>
              onChange(values.filter((each) => (each === value ? checked : chosen.includes(each))))
            }
          />
          {value}
        </label>
      ))}
    </fieldset>
  );
}
