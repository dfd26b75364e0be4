/**
 * Provides the parts of a request that depend on definitions. Within a transaction that has
 * changed definitions, these parts use the changed definitions.
 */
import { DefinitionStatements } from "../ddl/definitions.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { Administration } from "../utility/administration.ts";
import type { RequestDeps } from "./request_deps.ts";
import type { RunnerOptions } from "./run_options.ts";
import { StatementRunner } from "./statement_runner.ts";

interface ScopeParts {
  readonly deps: RequestDeps;
  readonly definitions: DefinitionStatements;
  readonly administration: Administration;
  readonly runner: StatementRunner;
  readonly lockingRunner: StatementRunner;
}

export interface RequestScopeOptions {
  readonly ledger: RequestLedger;
  /** Returns the dependencies that are currently in force, which a transaction may replace. */
  readonly deps: () => RequestDeps;
  readonly runner: RunnerOptions;
  /** The options for a runner that returns rows to the request instead of streaming them. */
  readonly lockingRunner: RunnerOptions;
}

export class RequestScope {
  readonly #options: RequestScopeOptions;
  #parts: ScopeParts | undefined;

  constructor(options: RequestScopeOptions) {
    this.#options = options;
  }

  get deps(): RequestDeps {
    return this.#options.deps();
  }

  get definitions(): DefinitionStatements {
    return this.#current().definitions;
  }

  get administration(): Administration {
    return this.#current().administration;
  }

  get runner(): StatementRunner {
    return this.#current().runner;
  }

  get lockingRunner(): StatementRunner {
    return this.#current().lockingRunner;
  }

  #current(): ScopeParts {
    const { deps } = this;
    if (this.#parts?.deps !== deps) {
      const { ledger, lockingRunner, runner } = this.#options;
      this.#parts = {
        deps,
        definitions: new DefinitionStatements(deps, ledger),
        administration: new Administration(deps),
        runner: new StatementRunner(deps, runner),
        lockingRunner: new StatementRunner({ ...deps, readers: undefined }, lockingRunner),
      };
    }
    return this.#parts;
  }
}
