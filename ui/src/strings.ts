/** Contains all user-visible text, so that it can be translated, and checked as a whole. */

const number = new Intl.NumberFormat("en");
const milliseconds = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

function count(value: number, one: string, many: string): string {
  return `${number.format(value)} ${value === 1 ? one : many}`;
}

function duration(ms: number): string {
  return ms < 1000 ? `${milliseconds.format(ms)} ms` : `${milliseconds.format(ms / 1000)} s`;
}

export const strings = {
  product: "Tidemark",
  tagline: "A SQL database you can subscribe to.",
  loading: "Loading …",
  count: (value: number): string => number.format(value),
  duration: (ms: number): string => duration(ms),
  rows: (value: number): string => count(value, "row", "rows"),

  broken: {
    title: "Something went wrong on this page",
    reload: "Reload",
  },

  unreachable: {
    title: "The server does not respond",
    help: "It may still be starting, or this computer may be offline.",
    again: "Try again",
  },

  setup: {
    title: "First-time setup",
    help:
      "Nobody can log in yet. Create the first administrator account, and set a password for " +
      "root, the account that always exists.",
    user: "Your user name",
    password: "Your password",
    rootPassword: "Password for root",
    passwordHelp: "At least 8 characters, and not a common password.",
    code: "Setup code",
    codeHelp: "The server printed this code when it started.",
    submit: "Set up",
    busy: "Setting up …",
    taken: "This server has already been set up. Log in.",
  },

  login: {
    title: "Log in",
    user: "User name",
    password: "Password",
    submit: "Log in",
    busy: "Logging in …",
    by: (provider: string): string => `Log in with ${provider}`,
    failures: new Map([
      ["denied", "The provider did not allow the login."],
      ["state_mismatch", "The login was not started in this browser, or took too long. Try again."],
      ["exchange_failed", "The provider could not be reached, or rejected the login. Try again."],
      ["token_invalid", "The provider's response is not valid. The server's log has the reason."],
      ["unknown_user", "No account is linked to this login. An administrator can create one."],
    ]),
    failed: "The login failed.",
    notAdmin: "This page is only for administrators. Your role does not have access to it.",
    ended: "Your session has ended. Log in again.",
    retryAfter: (seconds: number): string =>
      seconds < 120
        ? `Try again in ${count(seconds, "second", "seconds")}.`
        : `Try again in ${count(Math.ceil(seconds / 60), "minute", "minutes")}.`,
  },

  header: {
    logout: "Log out",
    theme: "Colours",
    themes: { system: "System", light: "Light", dark: "Dark" },
    signedInAs: (user: string, role: string): string => `${user} · ${role}`,
    pages: "Pages",
    sql: "SQL",
    rights: "Rights",
  },

  rights: {
    title: "Rights",
    name: "Name",
    change: "Change",
    expires: "Expires",
    expiresHelp: "An interval such as 90 days. Leave it empty if the entry should never expire.",
    never: "never",
    statement: "SQL statement to be run",
    drop: (name: string): string => `Drop ${name}`,
    dropReally: (name: string): string => `Do you really want to drop ${name}?`,
    dropShort: "Drop",
    dropReallyShort: "Really drop it?",
    secret: "This secret is shown only once. The server keeps only its hash.",
    copySecret: "Copy it",
    hideSecret: "Hide it",
    policies: {
      title: "Policies",
      help:
        "With the roles user and service, people can read and write only those rows of a " +
        "RESTRICTED table that one of its policies permits. If a table has no policies, they see " +
        "none of its rows.",
      none: "No policies yet.",
      noTable:
        "No table is RESTRICTED, so policies would have no effect. To change this for a table, " +
        "run ALTER TABLE … SET ACCESS LEVEL restricted.",
      add: "Create policy",
      alter: "Change policy",
      policy: "Policy",
      table: "Table",
      command: "Command",
      roles: "Roles",
      using: "USING: the rows that users can see and change",
      check: "WITH CHECK: the rows that users may write",
      state: "State",
      inForce: "in effect",
      notInForce: (owner: string): string =>
        `permits nothing, because ${owner} may not read the tables that it uses`,
    },
    users: {
      title: "User roles",
      help:
        "Only the first 200 users are listed. Each role includes the rights of the roles before " +
        "it. You cannot change your own role.",
      role: "Role",
      roleOf: (user: string): string => `Role of ${user}`,
      kind: "Login",
      lockedUntil: "Locked until",
    },
    tokens: {
      title: "Service tokens",
      help:
        "Programs use service tokens instead of logging in. A token grants the rights listed in " +
        "its scopes, but never more than its user has.",
      none: "No service tokens yet.",
      add: "Create token",
      user: "For user",
      scopes: "Scopes",
      all: "all rights of the user",
      lastUse: "Last used",
      namespaces: "Namespaces",
      namespacesHelp:
        "Namespaces, separated by commas. Leave the field empty to include all of them.",
    },
    signUp: {
      title: "Sign-up",
      help:
        "What people can do with their own accounts. To change this, edit the section [auth] of " +
        "the configuration.",
      key: "Key",
      value: "Value",
      meaning: "Meaning",
      meanings: {
        "auth.signup": "who can create an account: nobody, everyone, or people with an invitation",
        "auth.guests": "whether people can use the server as guests, without a name",
        "auth.own_password": "whether people can change their own passwords",
        "auth.own_deletion": "whether people can delete their own accounts",
        "auth.password_reset": "whether people can set a new password through a link sent by email",
        "auth.email_login": "whether people can log in with a verified email address",
      } as Readonly<Record<string, string>>,
    },
    links: {
      title: "Logins through providers",
      help:
        "A login at a provider gives access to the account that is linked to it. An account can " +
        "have up to ten such links.",
      none: "No account is linked to a provider yet.",
      add: "Link a login",
      provider: "Provider",
      subject: "Subject",
      subjectHelp: "The id by which the provider identifies the person.",
      nameOf: ({
        provider,
        subject,
        user,
      }: Readonly<Record<"provider" | "subject" | "user", string>>): string =>
        `${provider} ${subject} of ${user}`,
    },
    invitations: {
      title: "Invitations",
      help: 'People can sign up with the code of an invitation if auth.signup is "invitation".',
      none: "No invitations yet.",
      add: "Create invitation",
      uses: "Number of accounts",
      used: "Used",
      usedOf: (uses: string, most: string): string => `${uses} of ${most}`,
      any: "any number",
    },
  },

  tables: {
    title: "Tables",
    none: "No tables yet.",
    loading: "Loading the list of tables …",
    failed: "The list of tables could not be loaded.",
    reload: "Reload the list of tables",
    show: (name: string): string => `Show ${name}`,
  },

  editor: {
    label: "SQL",
    run: "Run",
    runHelp: "Runs the selected text, or all statements",
    stop: "Stop",
    live: "Live",
    liveHelp: "Follow a query on a single table: its current rows, then every change",
    leaveHelp: "To leave the editor, press Escape, then Tab",
  },

  results: {
    region: "Results",
    tabs: "Statements",
    grid: (statement: number): string => `Rows of statement ${statement}`,
    tab: (index: number, rows: number | undefined, { hasMore }: { hasMore: boolean }): string => {
      if (rows === undefined) return `${index}`;
      return hasMore
        ? `${index} · ${number.format(rows)}+ rows`
        : `${index} · ${count(rows, "row", "rows")}`;
    },
    loaded: (rows: number): string =>
      `${count(rows, "row", "rows")} loaded; scroll down to load more`,
    cut: (rows: number): string =>
      `only the first ${number.format(rows)} rows are kept; to see all of them, run this ` +
      "statement on its own",
    loading: "Loading …",
    loadAll: "Load all",
    exportCsv: "Export CSV",
    exportNdjson: "Export NDJSON",
    failedTab: (index: number): string => `${index} · failed`,
    empty: "Results appear here.",
    emptyHelp: (key: string): string =>
      `${key} runs the statements. If Live is on, the query is followed instead. To leave the ` +
      "editor, press Escape, then Tab.",
    running: "Running …",
    took: (ms: number): string => `took ${duration(ms)}`,
    asUser: (user: string): string => `as ${user}`,
    lastSeq: (seq: number): string => `last _seq ${seq}`,
    copyCell: "Copy cell",
    showCell: "Show cell",
    closeCell: "Close",
    cellTitle: (column: string, row: number): string => `${column}, row ${number.format(row)}`,
    copied: "Copied",
    notCopied: "The browser did not allow copying",
    null: "NULL",
    done: "Done",
    stopped: (rows: number): string => `Stopped after ${count(rows, "row", "rows")}`,
    left: (rows: number): string =>
      `The server ended the statement after ${count(rows, "row", "rows")}, because the page ` +
      "did not read more rows for a minute, or because the statement was killed",
    leftHelp:
      "To see the remaining rows, run the statement again. Load all and the exports read rows " +
      "without pausing.",
    stoppedTab: "stopped",
    stoppedHelp: "If the statement had already begun to write, its changes may have been made.",
  },

  error: {
    at: (line: number, column: number): string => `line ${line}, column ${column}`,
    goTo: "Show in editor",
    copy: "Copy error",
    hint: (hint: string): string => `Hint: ${hint}`,
    connection: "connection",
  },

  live: {
    sortedGrid: "Rows of the live query, in the order of the query",
    sorted: (order: string): string => `This page sorts the rows by ${order}.`,
    notSorted: (order: string): string =>
      "The rows are not sorted; the newest come first. This page can sort only by columns of " +
      `the result, not by ${order}.`,
    noQuery: "There is no query to follow, because none of these statements is a SELECT.",
    noQueryHelp: "put the cursor in a SELECT on a single table, or select its text",
    moving: "To demonstrate live changes, this page updates one of these rows every second.",
    notMoving: (message: string): string => `The page can no longer update rows: ${message}`,
    grid: "Rows of the live query, newest first",
    status: {
      connecting: "Connecting …",
      loading: "Loading …",
      ready: "Live",
      offline: "Offline",
      ended: "Ended",
    },
    pause: "Pause",
    resume: "Resume",
    held: (changes: number): string => `${count(changes, "change", "changes")} held`,
    cut: "Disconnect for 3 s",
    cutting: "Connection lost: changes made in the meantime will be replayed when it is restored",
    back: "Back: resuming",
    resumed: (seq: number, replayed: number): string =>
      `Resumed after _seq ${seq}: ${count(replayed, "change", "changes")} replayed`,
    restarted:
      "The rows were reloaded, because the table was altered, or because its history no longer " +
      "reaches back far enough",
    partial: (rows: number): string => `only the newest ${number.format(rows)} rows are kept here`,
    stats: {
      rows: "Rows",
      changes: "Changes",
      p50: "Commit → screen p50",
      p99: "p99",
      missed: "Missed",
      doubled: "Doubled",
      resumes: "Resumes",
    },
    statsLabel: "Delivery",
    latencyHelp:
      "Time from the commit, by the server's clock, until the change appears on screen, by this " +
      "computer's clock",
    missedHelp: "Changes whose previous version, according to _seq, was not on screen",
    doubledHelp: "Changes that, according to _seq, arrived twice and were discarded",
    none: "–",
  },
};
