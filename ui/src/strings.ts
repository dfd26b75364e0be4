/** All user-visible text in one place, so that it can be translated and checked as a whole. */

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
    title: "The server does not answer",
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
    notAdmin: "This page is for administrators: your role may not open it.",
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
      `only the first ${number.format(rows)} rows are kept: run this statement alone for all`,
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
    missedHelp: "Changes whose previous version was not the one shown, by _seq",
    doubledHelp: "Changes that arrived a second time and were dropped, by _seq",
    none: "–",
  },
};
