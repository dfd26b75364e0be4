/** Defines the dependencies of a request. */
import type { SqlEnvironment } from "../ports/environment.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";
import type { PlanCache } from "../prepare/plan_cache.ts";
import type { StatementDeps } from "./run_options.ts";

/** The dependencies that all requests of an engine share, including the system views. */
export type RequestDeps = SqlEnvironment &
  NameDeps &
  Pick<StatementDeps, "readers"> & { readonly plans: PlanCache };
