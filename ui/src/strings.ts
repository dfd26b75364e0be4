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
    title: "This page failed",
    reload: "Reload",
  },

  unreachable: {
    title: "The server does not respond",
    help: "It may be starting, or this computer may have lost its connection.",
    again: "Try again",
  },

  setup: {
    title: "First-time setup",
    help: "Nobody can log in yet. Create the first administrator, and set a password for root, the account that always exists.",
    user: "Your user name",
    password: "Your password",
    rootPassword: "Password for root",
    passwordHelp: "At least 8 characters, and not a common password.",
    code: "Setup code",
    codeHelp: "The server printed it when it started.",
    submit: "Set up",
    busy: "Setting up …",
    taken: "This server has been set up in the meantime. Log in.",
  },

  login: {
    title: "Log in",
    user: "User name",
    password: "Password",
    submit: "Log in",
    busy: "Logging in …",
    by: (provider: string): string => `Log in with ${provider}`,
    failures: new Map([
      ["denied", "The login was not permitted at the provider."],
      ["state_mismatch", "The login did not begin in this browser, or took too long. Try again."],
      ["exchange_failed", "The provider could not be reached or refused the login. Try again."],
      [
        "token_invalid",
        "The provider's response is not valid. The server's log contains the reason.",
      ],
      ["unknown_user", "No account belongs to this login. An administrator can create one."],
    ]),
    failed: "The login failed.",
    notAdmin: "This page is for administrators: your role does not have access to it.",
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
    expiresHelp: "An interval such as 90 days. If it is empty, the entry never expires.",
    never: "never",
    statement: "The statement that will run",
    drop: (name: string): string => `Drop ${name}`,
    dropReally: (name: string): string => `Really drop ${name}?`,
    dropShort: "Drop",
    dropReallyShort: "Really drop?",
    secret: "This is shown once. The server keeps only its hash.",
    copySecret: "Copy it",
    hideSecret: "Hide it",
    policies: {
      title: "Policies",
      help: "The roles user and service can read and write those rows of a RESTRICTED table that one of its policies permits. Without a policy, they see none of its rows.",
      none: "No policies yet.",
      noTable:
        "No table is RESTRICTED, so a policy would have no effect. ALTER TABLE … SET ACCESS LEVEL restricted changes that.",
      add: "Create policy",
      alter: "Change policy",
      policy: "Policy",
      table: "Table",
      command: "Command",
      roles: "Roles",
      using: "USING: the rows that can be seen",
      check: "WITH CHECK: the rows that may be written",
      state: "State",
      inForce: "in force",
      notInForce: (owner: string): string =>
        `permits nothing: ${owner} may not read the tables that it uses`,
    },
    users: {
      title: "Roles of users",
      help: "The first 200 users. Each role may do everything that the roles before it may do. Only somebody else can change your own role.",
      role: "Role",
      roleOf: (user: string): string => `Role of ${user}`,
      kind: "Login",
      lockedUntil: "Locked until",
    },
    tokens: {
      title: "Service tokens",
      help: "Programs use them instead of logging in. A token may do what its scopes list, but never more than its user.",
      none: "No service tokens yet.",
      add: "Create token",
      user: "For user",
      scopes: "Scopes",
      all: "all that the user may do",
      lastUse: "Last used",
      namespaces: "Namespaces",
      namespacesHelp: "Separated by commas. Leave it empty for all.",
    },
    signUp: {
      title: "Sign-up",
      help: "What people may do with their own accounts. The section [auth] of the configuration determines this.",
      key: "Key",
      value: "Value",
      meaning: "Meaning",
      meanings: {
        "auth.signup": "who can create an account: nobody, everybody, or people with an invitation",
        "auth.guests": "whether people can start without a name",
        "auth.own_password": "whether people can change their passwords",
        "auth.own_deletion": "whether people can delete their accounts",
        "auth.password_reset": "whether a link can be used to set a new password",
        "auth.email_login": "whether a verified address is a login name",
      } as Readonly<Record<string, string>>,
    },
    links: {
      title: "Logins through providers",
      help: "Each login gives access to the account of one user. An account can have up to ten logins.",
      none: "No account is linked to a provider yet.",
      add: "Link a login",
      provider: "Provider",
      subject: "Subject",
      subjectHelp: "The id that the provider gives the person.",
      nameOf: ({
        provider,
        subject,
        user,
      }: Readonly<Record<"provider" | "subject" | "user", string>>): string =>
        `${provider} ${subject} of ${user}`,
    },
    invitations: {
      title: "Invitations",
      help: 'Each has a code with which people sign up, if auth.signup is "invitation".',
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
    loading: "Loading the list …",
    failed: "The list could not be loaded.",
    reload: "Reload the list of tables",
    show: (name: string): string => `Show ${name}`,
  },

  editor: {
    label: "SQL",
    run: "Run",
    runHelp: "Runs the selection, or everything",
    stop: "Stop",
    live: "Live",
    liveHelp: "Follow a query of one table: its current rows, then every change",
    leaveHelp: "Press Escape, then Tab, to leave the editor",
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
    loaded: (rows: number): string => `${count(rows, "row", "rows")} loaded, more while you scroll`,
    cut: (rows: number): string =>
      `only the first ${number.format(rows)} rows are kept: run this statement on its own for all of them`,
    loading: "Loading …",
    loadAll: "Load all",
    exportCsv: "Export CSV",
    exportNdjson: "Export NDJSON",
    failedTab: (index: number): string => `${index} · failed`,
    empty: "Results appear here.",
    emptyHelp: (key: string): string =>
      `${key} runs. With Live on, the query is followed instead. Press Escape, then Tab, to leave the editor.`,
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
      `The server ended the statement after ${count(rows, "row", "rows")}: its rows were not read for a minute, or it was killed`,
    leftHelp: "Run the statement again to see the rest. Load all and the exports do not pause.",
    stoppedTab: "stopped",
    stoppedHelp: "A write that had already begun may have taken effect.",
  },

  error: {
    at: (line: number, column: number): string => `line ${line}, column ${column}`,
    goTo: "Show in editor",
    copy: "Copy error",
    hint: (hint: string): string => `Hint: ${hint}`,
    connection: "connection",
  },

  live: {
    sortedGrid: "Rows of the live query, in their order",
    sorted: (order: string): string => `This page sorts the rows by ${order}.`,
    notSorted: (order: string): string =>
      `Not sorted, newest first: this page can only sort by columns of the result, not by ${order}.`,
    noQuery: "There is no query to follow: none of these statements is a SELECT.",
    noQueryHelp: "put the cursor in a SELECT of one table, or select its text",
    moving: "To show changes, this page updates one of these rows every second.",
    notMoving: (message: string): string => `The page has stopped changing rows: ${message}`,
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
    cut: "Cut the connection for 3 s",
    cutting: "Connection cut: changes made now are replayed when it is back",
    back: "Back: resuming",
    resumed: (seq: number, replayed: number): string =>
      `Resumed after _seq ${seq}: ${count(replayed, "change", "changes")} replayed`,
    restarted:
      "The rows were read again: the table was altered, or its history no longer reaches back that far",
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
    latencyHelp: "From the commit, by the server's clock, to the screen, by this computer's clock",
    missedHelp: "Changes whose previous version, according to _seq, was not the one shown",
    doubledHelp: "Changes that, according to _seq, arrived a second time and were dropped",
    none: "–",
  },
};
