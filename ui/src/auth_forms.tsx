/**
 * The forms for first-time setup and login. A refusal is shown next to the field concerned or, if
 * it concerns no field, below the form.
 */
import { type ReactNode, type SubmitEvent, useId, useState } from "react";
import { ConnectionError, ServerError } from "../../src/client/mod.ts";
import type { AuthStatusBody } from "../../src/protocol/mod.ts";
import { db } from "./database.ts";
import { SoftButton } from "./soft_button.tsx";
import { strings } from "./strings.ts";

interface Failure {
  readonly message: string;
  readonly field: string | undefined;
}

function failureFrom(error: unknown): Failure {
  if (error instanceof ServerError) {
    const { field, message, retryAfterSeconds } = error;
    const isWait = retryAfterSeconds !== undefined;
    const text = isWait ? `${message}. ${strings.login.retryAfter(retryAfterSeconds)}` : message;
    return { message: text, field: error.code === "invalid_user" ? "user" : field };
  }
  if (error instanceof ConnectionError) return { message: error.message, field: undefined };
  throw error;
}

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly type: "text" | "password";
  readonly autoComplete: string;
  readonly help?: string;
  readonly failure: Failure | undefined;
  readonly hasFocus?: boolean;
}

function Field({
  label,
  name,
  type,
  autoComplete,
  help,
  failure,
  hasFocus,
}: FieldProps): ReactNode {
  const id = useId();
  const message = failure?.field === name ? failure.message : undefined;
  const note = message ?? help;
  return (
    <p className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        name={name}
        type={type}
        autoComplete={autoComplete}
        // The first field gets the focus if this is the only form.
        autoFocus={hasFocus === true}
        required
        spellCheck={false}
        autoCapitalize="none"
        dir="auto"
        aria-invalid={message !== undefined}
        {...(note === undefined ? {} : { "aria-describedby": `${id}-note` })}
      />
      {note !== undefined && (
        <span
          id={`${id}-note`}
          className={message === undefined ? "help" : "fault"}
          {...(message === undefined ? {} : { role: "alert" })}
        >
          {note}
        </span>
      )}
    </p>
  );
}

interface FormState {
  readonly failure: Failure | undefined;
  readonly isBusy: boolean;
  readonly submit: (event: SubmitEvent<HTMLFormElement>) => void;
}

/** Passes the fields of a form to `send` by name, and keeps the outcome. */
function useForm(send: (field: (name: string) => string) => Promise<void>): FormState {
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (isBusy) return;
    const data = new FormData(event.currentTarget);
    setBusy(true);
    setFailure(undefined);
    send((name) => textOf(data.get(name)))
      .catch((error: unknown) => setFailure(failureFrom(error)))
      .finally(() => setBusy(false));
  };
  return { failure, isBusy, submit };
}

function textOf(value: FormDataEntryValue | null): string {
  return typeof value === "string" ? value : "";
}

export function SetupForm({
  asksForCode,
  onDone,
  onTaken,
}: {
  /** Whether the server asks for the code that it printed at startup. */
  readonly asksForCode: boolean;
  readonly onDone: (user: string, password: string) => Promise<void>;
  /**
   * Called if somebody else has finished the setup first, or if the response to a successful setup
   * was lost.
   */
  readonly onTaken: () => void;
}): ReactNode {
  const { failure, isBusy, submit } = useForm(async (field) => {
    const user = field("user");
    const password = field("password");
    try {
      const code = asksForCode ? { setup_code: field("setup_code") } : {};
      await db.session.setup({ user, password, root_password: field("root_password"), ...code });
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== "already_configured") throw error;
      return onTaken();
    }
    await onDone(user, password);
  });
  const { setup } = strings;
  return (
    <form className="card" onSubmit={submit} aria-labelledby="setup-title">
      <h2 id="setup-title">{setup.title}</h2>
      <p>{setup.help}</p>
      <Field
        label={setup.user}
        name="user"
        type="text"
        autoComplete="username"
        failure={failure}
        hasFocus
      />
      <Field
        label={setup.password}
        name="password"
        type="password"
        autoComplete="new-password"
        help={setup.passwordHelp}
        failure={failure}
      />
      <Field
        label={setup.rootPassword}
        name="root_password"
        type="password"
        autoComplete="new-password"
        failure={failure}
      />
      {asksForCode && (
        <Field
          label={setup.code}
          name="setup_code"
          type="text"
          autoComplete="off"
          help={setup.codeHelp}
          failure={failure}
        />
      )}
      <FormFailure failure={failure} />
      <SubmitButton isBusy={isBusy} texts={setup} />
    </form>
  );
}

/** The providers through which people can log in. */
export type Providers = AuthStatusBody["oidc_providers"];

export function LoginForm({
  notice,
  providers,
  onLogin,
  onProvider,
}: {
  readonly notice: string | undefined;
  readonly providers: Providers;
  readonly onLogin: (user: string, password: string) => Promise<void>;
  /**
   * Called with the address at which the login through a provider starts. The browser then leaves
   * the page.
   */
  readonly onProvider: (url: string) => void;
}): ReactNode {
  const { failure, isBusy, submit } = useForm((field) => onLogin(field("user"), field("password")));
  const { login } = strings;
  return (
    <form className="card" onSubmit={submit} aria-labelledby="login-title">
      <h2 id="login-title">{login.title}</h2>
      {notice !== undefined && <p role="status">{notice}</p>}
      <Field
        label={login.user}
        name="user"
        type="text"
        autoComplete="username"
        failure={failure}
        hasFocus
      />
      <Field
        label={login.password}
        name="password"
        type="password"
        autoComplete="current-password"
        failure={failure}
      />
      <FormFailure failure={failure} />
      <SubmitButton isBusy={isBusy} texts={login} />
      {providers.map(({ label, login_url: url, name }) => (
        <button key={name} type="button" onClick={() => onProvider(url)}>
          {login.by(label)}
        </button>
      ))}
    </form>
  );
}

function SubmitButton({
  isBusy,
  texts: { busy, submit },
}: {
  readonly isBusy: boolean;
  readonly texts: { readonly busy: string; readonly submit: string };
}): ReactNode {
  return (
    <SoftButton type="submit" className="primary" isOff={isBusy}>
      {isBusy ? busy : submit}
    </SoftButton>
  );
}

function FormFailure({ failure }: { readonly failure: Failure | undefined }): ReactNode {
  if (failure === undefined || failure.field !== undefined) return null;
  return (
    <p className="fault" role="alert">
      {failure.message}
    </p>
  );
}
